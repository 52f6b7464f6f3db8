"""Addresses as programs understand them: the host behind a URL, a mail address, ``user@host:path`` or ``host:port``.

Whoever wants to hide where a request goes spells the host in a way that a plain comparison misses: as one number, in
hexadecimal, wrapped in IPv6, percent-encoded, or as a name that resolves to the address it contains. All of these are
brought to one form here. Where two programs would disagree about the host, it cannot be told.
"""

from __future__ import annotations

import re

MAX_ADDRESS = 4096
"""Longer texts are not taken for an address."""
MAX_ADDRESSES = 64
"""No more addresses than these are looked for in one text."""
MAX_SEARCHED = 64 * 1024
"""Longer texts are searched for addresses up to here."""

_SCHEME = re.compile(r"[a-z][a-z0-9+.\-]*(?::[a-z][a-z0-9+.\-]*)*", re.IGNORECASE)
_WITHOUT_HOST = frozenset(("about", "blob", "cid", "data", "javascript", "news", "tel", "urn", "vbscript"))
_BROWSED = frozenset(("http", "https", "ws", "wss", "ftp"))
"""Schemes whose slashes browsers do not count."""
_IGNORED: dict[int, None] = dict.fromkeys((*range(32), 127, 0xAD, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF))
_DOTS = {0x3002: ".", 0xFF0E: ".", 0xFF61: "."}
_PERCENT = re.compile(r"%([0-9a-fA-F]{2})")
_NAME = re.compile(r"[\w\-]+(?:\.[\w\-]+)*")
_WILDCARD_DNS = (".nip.io", ".sslip.io", ".xip.io", ".nip.direct", ".rbndr.us", ".1u.ms")
"""Services that resolve a name to the address written in it."""
_DISPENSERS = ("169.254.", "100.100.100.200", "192.0.0.192")
"""Addresses at which clouds hand out keys begin like this."""
_QUAD = re.compile(r"(?<![0-9])(\d{1,3})[.\-](\d{1,3})[.\-](\d{1,3})[.\-](\d{1,3})(?![0-9])")
_HEX_QUAD = re.compile(r"(?<![0-9a-z])([0-9a-f]{8})(?![0-9a-z])")


class Address:
    """The parts of an address; those it lacks are empty.

    Attributes
    ----------
    scheme
        In small letters, without colon.
    user
        What stands before ``@``: a user, possibly with a password after a colon.
    host
        In one form, see `host_of`.
    path, query
        As written; the query without question mark and fragment.
    """

    __slots__ = ("host", "path", "query", "scheme", "user")

    def __init__(self, scheme: str, user: str, host: str, path: str, query: str) -> None:
        self.scheme, self.user, self.host, self.path, self.query = scheme, user, host, path, query


def host_of(text: str) -> str:
    """Return the host of a URL, a mail address, ``user@host:path``, ``host:port`` or ``host/path``.

    Small letters, without brackets, port and final dot; addresses of the Internet protocol are written in the usual
    way whatever their spelling, and a name of ``nip.io`` and the like that stands for a cloud's metadata address is
    that address. Empty where there is none (a local path, ``data:``), or where it cannot be told: a variable, a
    template, or a spelling that programs understand differently.

    >>> host_of("https://user:pass@Example.COM:8443/a?b#c"), host_of("git@example.com:team/project.git")
    ('example.com', 'example.com')
    >>> host_of("http://0xa9fea9fe/latest"), host_of("[::ffff:169.254.169.254]:80"), host_of("./a.txt")
    ('169.254.169.254', '169.254.169.254', '')
    """
    return split_address(text).host


def split_address(text: str) -> Address:
    """Return the parts of an address; never raises, and takes what it cannot follow for an address without host."""
    text = text.strip().translate(_IGNORED)
    if len(text) > MAX_ADDRESS:
        return Address("", "", "", "", "")
    scheme, rest, has_host = _split_scheme(text)
    if not has_host:
        path, _, query = rest.partition("#")[0].partition("?")
        return Address(scheme, "", "", path, query)
    authority, path, query = _split_rest(rest)
    user, host = _split_authority(authority)
    return Address(scheme, user, host, path, query)


def _split_scheme(text: str) -> tuple[str, str, bool]:
    """Return the scheme, what follows it, and whether that begins with a host."""
    before, mark, after = text.partition("://")
    if mark and _SCHEME.fullmatch(before):
        scheme = before.lower().rpartition(":")[2]
        return scheme, after.lstrip("/\\") if scheme in _BROWSED else after, True
    scheme, colon, after = text.partition(":")
    scheme = scheme.lower()
    if colon and scheme in _BROWSED:
        return scheme, after.lstrip("/\\"), True
    if colon and (scheme in _WITHOUT_HOST or scheme == "file"):
        return scheme, after, False
    if scheme == "mailto":
        return scheme, after, "@" in after
    if text.startswith("//"):
        return "", text[2:], True
    return "", text, not _is_local(text)


def _is_local(text: str) -> bool:
    """Return whether a text without scheme names a local file: a path, or a drive of Windows."""
    return not text or text[0] in "/.~-\\" or text[1:3] in {":\\", ":/"}


def _split_rest(rest: str) -> tuple[str, str, str]:
    rest = rest.partition("#")[0]
    before, _, query = rest.partition("?")
    authority, slash, path = before.partition("/")
    return authority, slash + path, query


def _split_authority(authority: str) -> tuple[str, str]:
    """Return the user and the host; a backslash ends the host for browsers but not for others."""
    user, at, host = authority.rpartition("@")
    host = _bare(host)
    if "\\" in authority:
        browsed = _bare(authority.partition("\\")[0].rpartition("@")[2])
        host = browsed if not at or browsed == host else ""
    return user, host


def _bare(host: str) -> str:
    """Return a host in one form, without port, brackets and zone."""
    if "%" in host and not host.startswith("["):
        host = _PERCENT.sub(lambda match: chr(int(match[1], 16)), host)
    if not host.isascii():
        from unicodedata import normalize  # noqa: PLC0415  # few hosts need it

        host = normalize("NFKC", host.translate(_DOTS))
    host = host.lower()
    if host.startswith("["):
        return _sixth(host[1:].partition("]")[0])
    if host.count(":") > 1 and (literal := _sixth(host)):
        return literal
    host = host.rstrip(">").partition(":")[0].rstrip(".")
    if not _NAME.fullmatch(host):
        return ""
    return _fourth(host) or _resolved(host)


def _sixth(text: str) -> str:
    """Return an address of version 6 in its usual form, as version 4 where it stands for one; empty if it is none."""
    from ipaddress import AddressValueError, IPv4Address, IPv6Address  # noqa: PLC0415  # few hosts need it

    try:
        address = IPv6Address(text.partition("%")[0])
    except AddressValueError:
        return ""
    number = int(address)
    inner = address.ipv4_mapped or address.sixtofour
    if inner is None and (number >> 32 == 0x64FF9B << 64 or (number >> 32 == 0 and number != 1)):
        inner = IPv4Address(number & 0xFFFFFFFF)
    return str(inner or address)


def _fourth(text: str) -> str:
    """Return an address of version 4 with four decimal parts; empty if it is none.

    As the C library reads it: one to four parts, each decimal, ``0x`` hexadecimal or ``0`` octal, and the last fills
    the bytes that are left.
    """
    if not text[0].isdecimal() or len(text) > 64:  # noqa: PLR2004
        return ""
    parts = text.split(".")
    numbers = [_number(part) for part in parts]
    last = numbers.pop()
    if len(numbers) > 3 or last >= 256 ** (4 - len(numbers)) or min(last, *numbers, 0) < 0:  # noqa: PLR2004
        return ""
    if any(number > 255 for number in numbers):  # noqa: PLR2004
        return ""
    filled = last.to_bytes(4 - len(numbers), "big")
    return ".".join(map(str, (*numbers, *filled)))


def _number(text: str) -> int:
    """Return a number as the C library reads it; -1 if it is none."""
    base = 10
    if text[:2] == "0x":
        text, base = text[2:] or "0", 16
    elif len(text) > 1 and text[0] == "0":
        base = 8
    try:
        return int(text, base) if text.isascii() and text.isalnum() else -1
    except ValueError:
        return -1


def _resolved(name: str) -> str:
    """Return what a name stands for, where the name itself says so.

    Only what raises an effect is believed: a name of such a service that stands for this host today may be
    anybody's tomorrow.
    """
    if name.endswith(".localhost"):
        return "localhost"
    if not name.endswith(_WILDCARD_DNS):
        return name
    written = [".".join(match) for match in _QUAD.findall(name)]
    written += [".".join(map(str, bytes.fromhex(match))) for match in _HEX_QUAD.findall(name)]
    return next((address for address in written if address.startswith(_DISPENSERS)), name)


# -- addresses within a longer text ------------------------------------------------------------------------

_WORD = re.compile(r"[^\s<>\"'`|{}\\^]+")
_BEFORE = re.compile(r"[a-z][a-z0-9+.\-]*\Z", re.IGNORECASE)
_PIECE = re.compile(r"[^,;()\[\]=]+")
_MAIL = re.compile(r"[\w.!#$%&*+/?^~\-]+@(?:[\w\-]+\.)+[\w\-]{2,}")
_HOST = re.compile(r"((?:[\w\-]+\.)+[\w\-]+)(?::\d{1,5})?(?:/.*)?")
_SCHEME_LENGTH = 24
_MAX_CLOSING = 8
_DOMAINS = frozenset(
    (
        *(
            "com",
            "org",
            "net",
            "edu",
            "gov",
            "mil",
            "int",
            "info",
            "biz",
            "io",
            "dev",
            "app",
            "ai",
            "co",
            "cloud",
        ),
        *(
            "xyz",
            "online",
            "site",
            "tech",
            "page",
            "test",
            "example",
            "local",
            "internal",
            "corp",
            "lan",
            "onion",
        ),
        *(
            "uk",
            "de",
            "fr",
            "nl",
            "ch",
            "at",
            "eu",
            "us",
            "ca",
            "au",
            "jp",
            "cn",
            "ru",
            "in",
            "br",
            "it",
            "es",
        ),
    )
)
"""Last parts of names that are taken for hosts; most others are endings of files as well."""


def addresses_in(text: str) -> tuple[str, ...]:
    """Return the URLs, mail addresses and hosts in a longer text, each once, in order, as written.

    Names without scheme count as hosts if they end like one (``example.com``, ``10.0.0.1:80``); the first
    `MAX_SEARCHED` characters are searched, and no more than `MAX_ADDRESSES` returned.

    >>> addresses_in("Write to Ann (ann@example.com) or see https://example.com/a_(b), not to notes.txt.")
    ('ann@example.com', 'https://example.com/a_(b)')
    """
    found: dict[str, None] = {}
    for match in _WORD.finditer(text[:MAX_SEARCHED]):
        word = match[0][:MAX_ADDRESS]
        if "." in word or "@" in word or "://" in word:
            found.update(dict.fromkeys(_urls(word) if "://" in word else _pieces(word)))
        if len(found) >= MAX_ADDRESSES:
            break
    return tuple(found)[:MAX_ADDRESSES]


def _urls(word: str) -> list[str]:
    """Return the URLs in a word; one within another counts too."""
    urls: list[str] = []
    at = word.find("://")
    while at >= 0 and len(urls) < MAX_ADDRESSES:
        scheme = _BEFORE.search(word, max(0, at - _SCHEME_LENGTH), at)
        if scheme and at + 3 < len(word):
            urls.append(_trimmed(word[scheme.start() :]))
        at = word.find("://", at + 3)
    return urls


def _trimmed(url: str) -> str:
    """Return a URL without the signs of the sentence around it."""
    url = url.rstrip(".,;:!?*_")
    for _ in range(_MAX_CLOSING):
        if not url.endswith((")", "]")) or url.count(url[-1]) <= url.count("(" if url[-1] == ")" else "["):
            break
        url = url[:-1].rstrip(".,;:!?*_")
    return url


def _pieces(word: str) -> list[str]:
    """Return the mail addresses and hosts in a word without URL."""
    found = []
    for match in _PIECE.finditer(word):
        piece = match[0].strip(".:!?*").removeprefix("mailto:")
        if _MAIL.fullmatch(piece) or _is_host(piece):
            found.append(piece)
    return found


def _is_host(piece: str) -> bool:
    match = _HOST.fullmatch(piece)
    if match is None:
        return False
    host = match[1]
    last = host.rpartition(".")[2].lower()
    return last in _DOMAINS or last.startswith("xn--") or (host.count(".") == 3 and bool(_fourth(host)))  # noqa: PLR2004
