"""Values that decide what an act does, in one form by shape: accounts, amounts, dates, hosts, addresses, paths.

A value has a shape and keys: ``"host:example.com"``, ``"amount:1200"``. Two writings of one value share a key.
"""

from __future__ import annotations

import re
from functools import lru_cache
from posixpath import normpath

import msgspec

from safetydrift.authority.text import bounded, fold, names, words_in
from safetydrift.effects.languages.addresses import split_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

SHAPES = names("account phone amount date url host mail path handle id name")
"""What a value can be; a ``name`` is what is known by its words alone."""
MAX_VALUE = 2048
"""Longer values have no shape, in characters."""
MAX_VALUES = 1024
"""Values that are looked for in one text."""
MAX_PARTS = 16
"""Components of a path and labels of a host that are told apart, from the end."""

_AROUND = "\"'`,;:!?([]{}<>«»“”„‘’…|="
"""What a sentence writes around a value; a closing bracket only where none was opened."""
_SUFFIX = frozenset(
    names(
        "md txt rst html htm pdf doc docx odt rtf csv tsv json jsonl yaml yml toml ini cfg conf xml log py ipynb js "
        "mjs ts tsx jsx css scss go rs java kt c h cc cpp hpp cs php rb pl lua r sql sh bash zsh ps1 bat cmd exe dll "
        "so o jar war zip gz tgz bz2 xz zst tar 7z rar png jpg jpeg gif svg webp bmp mp3 mp4 wav mov mkv xls xlsx ods "
        "ppt pptx key pem crt cer p12 pub env lock bak tmp temp old orig swp pid db sqlite sqlite3 parquet npy npz pt "
        "pth ckpt safetensors bin iso img ova deb rpm whl tf tfvars tfstate ics eml msg vcf tex bib out err cache "
        "patch diff plist service timer dockerfile"
    )
)
_GENERIC_DOMAINS = names(
    "com org net edu gov mil int info biz dev app cloud xyz online site tech page test example local internal corp "
    "lan onion shop store blog news wiki name pro mobi agency company email live world zone link click top club"
)
_SECOND_LEVEL = names("ac co com edu gob gov go ltd me mil ne net nom or org plc sch gouv asso in gen firm")
_SHARED = names(
    "github.com gitlab.com bitbucket.org codeberg.org gist.github.com raw.githubusercontent.com huggingface.co "
    "pastebin.com docs.google.com drive.google.com sites.google.com dropbox.com onedrive.live.com s3.amazonaws.com "
    "storage.googleapis.com bit.ly tinyurl.com t.co medium.com youtube.com reddit.com facebook.com x.com twitter.com "
    "linkedin.com discord.com t.me wordpress.com blogspot.com npmjs.com pypi.org hub.docker.com"
)
"""Hosts on which anybody has pages: their name alone says nothing about whose page is meant."""
_TENANTS = names(
    "github.io gitlab.io pages.dev workers.dev vercel.app netlify.app herokuapp.com web.app firebaseapp.com r2.dev "
    "appspot.com azurewebsites.net cloudfront.net amazonaws.com blogspot.com wordpress.com ngrok.io ngrok-free.app"
)
"""Suffixes below which every name has an owner of its own."""

_MAIL = re.compile(
    r"(?:mailto:)?([^\s@<>,;:\"()\[\]]{1,64})@((?:[\w\-]{1,63}\.){1,8}[\w\-]{2,63})", re.IGNORECASE
)
_SPOKEN_MAIL = re.compile(
    r"(?<![\w@.])([\w.+\-]{1,64})\s{0,3}(?:[\[({]\s?|\s)(?:at|arroba|arobase|chiocciola|ät|@)\s?[\])}]?\s{0,3}"
    r"([\w\-]{1,63}(?:\s?[\[({\s]\s?(?:dot|punkt|punto|point|ponto|punt|tochka)\s?[\])}\s]\s?[\w\-]{2,63}){1,4})",
    re.IGNORECASE,
)
_DOT = re.compile(r"\s?[\[({\s]\s?(?:dot|punkt|punto|point|ponto|punt|tochka)\s?[\])}\s]\s?", re.IGNORECASE)
_HOST = re.compile(r"((?:[\w\-]{1,63}\.){1,10}[\w\-]{2,63})\.?(?::\d{1,5})?(?![\w.])")
_LOGIN = re.compile(r"[\w.\-]{1,64}@((?:[\w\-]{1,63}\.){1,8}[\w\-]{2,63}):([^\s:@]{1,512})")
"""``user@host:path``, as remote shells and repositories write it."""
_SENTENCE = re.compile(r"(?<=\.[a-z]{3})\.[A-Z][a-z]{1,12}\Z")
"""The first word of a sentence that begins without a blank behind a host."""
_QUAD = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?")
_IBAN = re.compile(
    r"(?<![A-Za-z0-9])[A-Za-z]{2}\d\d(?:[ \-]?[A-Za-z0-9]{4}){2,7}(?:[ \-]?[A-Za-z0-9]{1,3})?(?![A-Za-z0-9])"
)
_COIN = re.compile(r"0x[0-9a-fA-F]{40}|bc1[a-z0-9]{25,60}|[13][1-9A-HJ-NP-Za-km-z]{25,34}")
_DIGITS = re.compile(r"(?<![\w.])(?:\+\s?|\()?\d(?:[ .\-/,()'’\u00a0\u202f]{0,2}\d){0,30}(?![\w])")
_SPACED = re.compile(r"(?<!\S)\w(?:[ \-.·]\w){5,63}(?!\S)")
_JOINED = re.compile(r"([\"'])([^\"'\n]{1,80})\1(?:\s{0,3}\+\s{0,3}([\"'])[^\"'\n]{1,80}\3){1,8}")
_JOINT = re.compile(r"[\"']\s{0,3}\+\s{0,3}[\"']|[\"']")
_ISO_DATE = re.compile(r"(\d{4})[\-/.](\d{1,2})[\-/.](\d{1,2})(?:[T ]\d{1,2}:\d{2}.{0,15})?")
_OTHER_DATE = re.compile(r"(\d{1,2})[./\-](\d{1,2})[./\-](\d{4}|\d{2})")
_GROUPED = re.compile(r"\d{1,3}(?:([., '’\u00a0\u202f])\d{3})(?:\1\d{3}){0,4}")
_AMOUNT = re.compile(
    r"(?:[$€£¥₹₽₺₩₫]|[A-Z]{3}\s)?\s?(\d[\d., '’\u00a0\u202f]{0,24})\s?(k|m|mio|tsd|bn)?\s?"
    r"(?:[$€£¥₹₽₺₩₫%]|(?!st\b|nd\b|rd\b|th\b)[A-Za-z]{2,8})?\Z"
)
_FACTORS = {"k": 1000, "tsd": 1000, "m": 10**6, "mio": 10**6, "bn": 10**9}
_ID = re.compile(r"(?=[\w.\-]*\d)[\w]+(?:[.\-][\w]+){0,8}|#\d+")
_HANDLE = re.compile(r"@[\w][\w.\-]{0,38}")
_CHUNK = re.compile(r"[^\s\u3000-\u9fff]+")
_SPOKEN = re.compile(r"[\s\[({](?:dot|punkt|punto|point|ponto|punt|tochka)[\s\])}]", re.IGNORECASE)
_PHONE_DIGITS, _LONG, _YEAR = 9, 8, 2000


class Found(msgspec.Struct):
    """A value that stands in a text: from where to where, as written, and its forms, ``shape:canonical``."""

    start: int
    end: int
    text: str
    keys: tuple[str, ...]


def shape_of(value: str) -> str:
    """Return which of the `SHAPES` a value has.

    Examples
    --------
    >>> shape_of("DE89 3704 0044 0532 0130 00"), shape_of("1.200,50 EUR"), shape_of("~/notes.txt")
    ('account', 'amount', 'path')
    >>> shape_of("Ann <ann@example.com>"), shape_of("example.com/a"), shape_of("Ann Miller")
    ('mail', 'url', 'name')
    """
    return keys_of(value)[0].partition(":")[0]


def canonical(value: str) -> str:
    """Return the one form of a value among all that write the same: separators, schemes, case where it means nothing.

    Examples
    --------
    >>> canonical("at68 5453 2054"), canonical("$1,200.50"), canonical("HTTPS://www.Example.com:443/")
    ('AT6854532054', '1200.5', 'example.com')
    """
    return keys_of(value)[0].partition(":")[2]


@lru_cache(4096)
def keys_of(value: str) -> tuple[str, ...]:
    """Return the keys of a value, the main one first; a value without shape has its folded words as a ``name``."""
    value = value.strip()
    if 0 < len(value) <= MAX_VALUE:
        for keys in _readers(value):
            if keys:
                return keys
    return (f"name:{' '.join(words_in(value[:MAX_VALUE]))}",)


def _trimmed(word: str) -> str:
    """Return a value without the signs of the sentence around it."""
    word = word.strip(_AROUND).rstrip(_AROUND + ".")
    return word if word.count(")") <= word.count("(") else word.rstrip(_AROUND + ".)")


def _readers(value: str) -> Iterator[tuple[str, ...]]:
    inner = _trimmed(value) or value
    yield _mail(value)
    if not (value[0] in "/~" or value.startswith(("./", "../"))):
        yield _web(inner)
    yield _account(inner)
    yield _date(inner)
    yield _number(value.strip("\"'`.,;:!?<>[]{}"))
    yield _path(value.strip("\"'`,;:!?<>()|"))
    if _HANDLE.fullmatch(value):
        yield (f"handle:{fold(value[1:])}",)
    if _ID.fullmatch(inner):
        yield (f"id:{fold(inner).lstrip('#')}",)


# -- mail addresses, hosts and URLs --------------------------------------------------------------------------


def _mail(value: str) -> tuple[str, ...]:
    if "@" not in value:
        spoken = _SPOKEN_MAIL.fullmatch(value)
        return _mail(f"{spoken[1]}@{_DOT.sub('.', spoken[2])}") if spoken else ()
    if "://" in value:
        return ()
    found = _MAIL.search(value)
    if found is None:
        return ()
    outside = value[: found.start()] + value[found.end() :]
    if "@" in outside or (outside.strip(_AROUND + ".) ") and not value.rstrip("\"'`,;:!?.").endswith(">")):
        return ()  # several addresses, or user@host:path
    return (f"mail:{found[1].casefold()}@{host_form(found[2])}",)


def _web(value: str) -> tuple[str, ...]:
    address = split_address(value)
    if address.scheme == "file":
        return _path(address.path)
    login = _LOGIN.fullmatch(value) is not None
    if not (address.scheme or login or _is_host(value)):
        return ()
    host = host_form(address.host) if address.host else ""
    path = f"/{value.partition(':')[2].lstrip('/')}" if login else address.path
    path = path.rstrip("/") + (f"?{address.query}" if address.query else "")
    return () if not host else (f"url:{host}{path}" if path else f"host:{host}", f"at:{host}")


def _is_host(text: str) -> bool:
    """Return whether a text without scheme begins with a host: it begins or ends like one, and not like a file."""
    text, slash, _ = re.sub(r"[/?#]", "\n", text, count=1).partition("\n")
    if _QUAD.fullmatch(text):
        return True
    found = _HOST.fullmatch(text)
    if found is None or ".." in text:
        return False
    last = found[1].rpartition(".")[2].lower()
    if text[:4].lower() == "www." or last in _GENERIC_DOMAINS or last.startswith("xn--"):
        return True
    is_country = len(last) == 2 and last.isalpha() and bool(last not in _SUFFIX or slash)  # noqa: PLR2004
    return is_country or (":" in text and last not in _SUFFIX and not last.isdigit())


def host_form(host: str) -> str:
    """Return a host in one form: no port, final dot or ``www.``; letters beyond ASCII as punycode.

    Examples
    --------
    >>> host_form("WWW.Example.com.:8080"), host_form("bücher.example"), host_form("xn--bcher-kva.example")
    ('example.com', 'xn--bcher-kva.example', 'xn--bcher-kva.example')
    """
    host = host.partition(":")[0].rstrip(".").lower()
    if not host.isascii():
        from unicodedata import normalize  # noqa: PLC0415  # few hosts need it

        host = normalize("NFKC", host).replace("\u3002", ".").casefold()
        host = ".".join([label if label.isascii() else _punycode(label) for label in host.split(".")])
    return host.removeprefix("www.") if host.count(".") > 1 else host


def _punycode(label: str) -> str:
    return "xn--" + label.encode("punycode", "replace").decode("ascii")


def registered_domain(host: str) -> str:
    """Return the part of a host that somebody has registered, by a small set of rules.

    Examples -------- >>> registered_domain("a.b.example.co.uk"), registered_domain("me.github.io"),
    registered_domain("evil-example.com") ('example.co.uk', 'me.github.io', 'evil-example.com')
    """
    host = host_form(host)
    labels = host.split(".")
    if _QUAD.fullmatch(host) or len(labels) < 3:  # noqa: PLR2004
        return host
    two = ".".join(labels[-2:])
    public = two in _TENANTS or (len(labels[-1]) == 2 and labels[-2] in _SECOND_LEVEL)  # noqa: PLR2004
    return ".".join(labels[-3:]) if public else two


def is_shared(host: str) -> bool:
    """Return whether anybody can have pages at a host."""
    return host in _SHARED


# -- accounts, phones, amounts and dates ---------------------------------------------------------------------


def _account(value: str) -> tuple[str, ...]:
    if _COIN.fullmatch(value):
        return (f"account:{value}",)
    if not value[:1].isalpha() and not _SPACED.fullmatch(value):
        return ()
    value = fold(value).upper()
    if _SPACED.fullmatch(value):
        value = re.sub(r"[\W_]", "", value)
        if value.isdigit():
            return _long_number(value)
        return (f"account:{value}",) if _IBAN.fullmatch(value) else (f"id:{value.lower()}",)
    return (f"account:{re.sub(r'[ -]', '', value)}",) if _IBAN.fullmatch(value) else ()


def _date(value: str) -> tuple[str, ...]:
    found = _ISO_DATE.fullmatch(value)
    if found:
        return _day(int(found[1]), int(found[2]), int(found[3]))
    found = _OTHER_DATE.fullmatch(value)
    if found:
        one, two, year = int(found[1]), int(found[2]), int(found[3])
        year += _YEAR if year < 100 else 0  # noqa: PLR2004
        return _day(year, two, one) + _day(year, one, two)
    return ()


def _day(year: int, month: int, day: int) -> tuple[str, ...]:
    if not (0 < month <= 12 and 0 < day <= 31):  # noqa: PLR2004
        return ()
    return (f"date:{year:04}-{month:02}-{day:02}", f"day:{month:02}-{day:02}")


def date_keys(year: int, month: int, day: int) -> tuple[str, ...]:
    """Return the keys of a date; a year of 0 is one that was left open."""
    return _day(year, month, day) if year else (f"anyyear:{month:02}-{day:02}", f"day:{month:02}-{day:02}")


def _number(value: str) -> tuple[str, ...]:
    """Return what a row of digits is: an amount, a phone or an account."""
    if "." in value or "," in value or not value.isascii() or not value.isdigit():
        amount = _AMOUNT.fullmatch(value)
        if amount and (readings := _readings(amount[1].strip(" '’"))):
            factor = _FACTORS.get((amount[2] or "").lower(), 1)
            return tuple([f"amount:{plain(reading, factor)}" for reading in readings])
    if not _DIGITS.fullmatch(value):
        return ()
    digits = re.sub(r"\D", "", fold(value))
    dialled = value[0] in "+(" or digits.startswith("00") or (digits[0] == "0" and len(digits) < len(value))
    if dialled and len(digits) >= _LONG - 1:
        return (f"phone:{digits[-_PHONE_DIGITS:]}",)
    return _long_number(digits) if len(digits) >= _LONG else (f"amount:{plain(digits)}",)


def _long_number(digits: str) -> tuple[str, ...]:
    phone = (f"phone:{digits[-_PHONE_DIGITS:]}",) if len(digits) <= 15 else ()  # noqa: PLR2004
    return (f"account:{digits}", *phone)


def _readings(digits: str) -> tuple[str, ...]:
    """Return what a number with separators can mean as plain decimals: ``1.200`` is 1200 or 1.2."""
    if digits.isdigit():
        return (digits,) if len(digits) < _LONG else ()
    bare = re.sub(r"[ '’\u00a0\u202f]", "", digits)
    last = max(bare.rfind("."), bare.rfind(","))
    if last < 0:
        return (bare,) if _GROUPED.fullmatch(digits) else ()
    whole, sign, tail = bare[:last], bare[last], bare[last + 1 :]
    if not tail.isdigit() or not whole or (sign in whole and not _GROUPED.fullmatch(bare)):
        return ()
    grouped = re.sub(r"[.,]", "", bare)
    if sign in whole:
        return (grouped,)
    decimal = f"{re.sub(r'[.,]', '', whole)}.{tail}"
    if len(tail) == 3 and whole.isdigit() and len(whole) <= 3 and whole != "0":  # noqa: PLR2004
        return (grouped, decimal) if sign == "," else (decimal, grouped)
    return (decimal,)


def plain(number: str | float, factor: int = 1) -> str:
    """Return a number times a factor without a needless zero."""
    from decimal import Decimal  # noqa: PLC0415  # few texts hold numbers

    scaled = f"{Decimal(str(number)) * factor:f}"
    return (scaled.rstrip("0").rstrip(".") if "." in scaled else scaled.lstrip("0")) or "0"


# -- paths -----------------------------------------------------------------------------------------------------


def _path(value: str) -> tuple[str, ...]:
    if not _is_path(value):
        return ()
    parts = path_parts(value)
    rooted = value[0] in "/~\\" or value[1:3] in {":\\", ":/"}
    tails = ["/".join(parts[-count:]) for count in range(1, len(parts) + (not rooted))]
    whole = "/" * (value[0] in "/\\") + "/".join(parts)
    relative = () if rooted else (f"relative:{whole}",)
    return (f"path:{whole}", *relative, *[f"tail:{tail}" for tail in tails])


def _is_path(value: str) -> bool:
    if "://" in value or "\n" in value or not value or value.count(" ") > 3:  # noqa: PLR2004
        return False
    if value[0] in "/~" or value.startswith(("./", "../", ".\\")) or value[1:3] in {":\\", ":/"}:
        return " " not in value or "/" in value[1:]
    last = value.replace("\\", "/").rstrip("/").rpartition("/")[2]
    suffix = last.rpartition(".")[2].lower() if "." in last else ""
    if (suffix in _SUFFIX and len(last) > 1) or (last[:1] == "." and last[1:2].isalpha()):
        return value.count(" ") == 0 or "/" not in value
    return " " not in value and ("/" in value or "*" in value) and any(sign.isalpha() for sign in value)


def path_parts(path: str) -> tuple[str, ...]:
    """Return the components of a path, the last `MAX_PARTS` of them, without ``.``, with ``..`` resolved.

    Examples
    --------
    >>> path_parts("./a//b/../c.txt"), path_parts("/"), path_parts("~/x/")
    (('a', 'c.txt'), (), ('~', 'x'))
    """
    parts = [part for part in normpath(path.replace("\\", "/")).split("/") if part not in {"", "."}]
    return tuple(parts[-MAX_PARTS:])


def without_suffix(name: str) -> str:
    """Return the name of a file without its suffix, where that is one of the usual.

    >>> without_suffix("notes.txt"), without_suffix("v1.2"), without_suffix(".env")
    ('notes', 'v1.2', '.env')
    """
    stem, dot, suffix = name.rpartition(".")
    return stem if dot and stem and suffix.lower() in _SUFFIX else name


# -- values within a text --------------------------------------------------------------------------------------


def values_in(text: str) -> list[Found]:
    """Return the values with a shape that stand in a text, in order and without overlap, at most `MAX_VALUES`."""
    text = bounded(text)
    found = [*_chunks(text), *_spread(text)]
    found.sort(key=lambda value: (value.start, -value.end))
    merged: list[Found] = []
    for value in found:
        if merged and value.start < merged[-1].end:
            if (value.start, value.end) == (merged[-1].start, merged[-1].end):
                merged[-1].keys = tuple(dict.fromkeys((*merged[-1].keys, *value.keys)))
            continue
        merged.append(value)
    return merged if len(merged) <= MAX_VALUES else merged[: MAX_VALUES // 2] + merged[-MAX_VALUES // 2 :]


def _chunks(text: str) -> Iterator[Found]:
    """Yield the values that hold no blank."""
    for match in _CHUNK.finditer(text):
        word = match[0]
        if word.isalpha() or len(word) > MAX_VALUE or word[:-1].isalpha():
            continue
        inner = _trimmed(word)
        if inner and not inner.isalpha():
            yield from _inside(inner, match.start() + word.find(inner))


def _inside(word: str, start: int) -> Iterator[Found]:
    """Yield the value that a word without blanks is, or those between its commas and brackets."""
    if not word:
        return
    if word[0] in "$€£¥+" or (word[0].isdigit() and _DIGITS.match(word)):
        word = word.lstrip("$€£¥+")
        if not any(sign.isalpha() for sign in word):
            return  # numbers may hold blanks and commas: they are looked for in the text as a whole
    if "://" not in word and (pieces := re.split(r"[,;|()\[\]{}<>\"'`=]", word))[1:]:
        at = start
        for piece in pieces:
            if piece and not piece.isalpha() and not piece.isdigit():
                yield from _inside(piece.rstrip(".:"), at)
            at += len(piece) + 1
        return
    word = _SENTENCE.sub("", word) if word.count(".") > 1 else word
    if word.isdigit() or not any(map(str.isalnum, word)) or re.fullmatch(r"[^\W\d]+(?:[-'’][^\W\d]+)*", word):
        return
    keys = keys_of(word)
    if not keys[0].startswith("name:"):
        yield Found(start, start + len(word), word, keys)


def _spread(text: str) -> Iterator[Found]:
    """Yield the values that may hold blanks: numbers in groups, accounts, what is spelled out."""
    expressions = [_SPACED]
    if any(map(str.isdigit, text)):
        expressions += [_DIGITS, _IBAN]
    if _SPOKEN.search(text):
        expressions.append(_SPOKEN_MAIL)
    for expression in expressions:
        for match in expression.finditer(text):
            keys = keys_of(match[0])
            if not keys[0].startswith("name:") or expression is _SPACED:
                yield Found(match.start(), match.end(), match[0], keys)
    if "+" in text:
        for match in _JOINED.finditer(text):
            yield Found(match.start(), match.end(), match[0], keys_of(_JOINT.sub("", match[0])))
