"""Content in places that are made for names: whether a part of an address takes more along than it needs to."""

from __future__ import annotations

import re

LONG = 200
"""Values of so many characters carry content, whatever they look like."""
_LONG_LABEL = 40
"""So do labels of host names."""
_SHORTEST = 16
_SHORTEST_HEX = 20
_MAX_DECODED = 4096
_BASE64 = re.compile(r"[A-Za-z0-9+/_\-]+={0,2}")
_BASE32 = re.compile(r"[A-Z2-7]+={0,6}", re.IGNORECASE)
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})+")
_TEXT_SHARE = 0.95
_PERCENT = re.compile(r"(?:%[0-9a-fA-F]{2})+")


def unquoted(text: str) -> str:
    """Return a text with percent signs and plus signs decoded.

    >>> unquoted("a%20b+c")
    'a b c'
    """
    plain = text.replace("+", " ") if " " not in text else text
    if "%" not in plain:
        return plain
    return _PERCENT.sub(
        lambda match: bytes.fromhex(match[0].replace("%", "")).decode("utf-8", "replace"), plain
    )


def carried(text: str, *, label: bool = False) -> str:
    """Return what gives a part of an address away as content; empty if nothing does.

    Identifiers, hashes and signatures are of random bytes; what is encoded to be taken along is text, so only what
    decodes to text counts.

    Parameters
    ----------
    label
        Whether the text is a host name, whose labels are looked at one by one.

    >>> carried("c2VjcmV0OiBodW50ZXIy"), carried("9f86d081884c7d659a2feaa0c55ad015"), carried("a-page-about-cats")
    ('encoded text', '', '')
    """
    if label:
        parts = text.split(".")
        if sum(len(part) for part in parts) >= LONG or any(len(part) >= _LONG_LABEL for part in parts):
            return "a very long host name"
        return next(filter(None, map(_encoded, (*parts, "".join(parts[:-2])))), "")
    if len(text) >= LONG:
        return "a very long part of the address"
    return _encoded(text)


def _encoded(text: str) -> str:
    if len(text) < _SHORTEST:
        return ""
    text = text.replace(" ", "+")
    return "encoded text" if _from_base64(text) or _from_hex(text) or _from_base32(text) else ""


def _from_base64(text: str) -> bool:
    if not _BASE64.fullmatch(text):
        return False
    from binascii import Error, a2b_base64  # noqa: PLC0415  # few addresses need it

    core = text.rstrip("=").replace("-", "+").replace("_", "/")[:_MAX_DECODED]
    try:
        return _is_text(a2b_base64(core[: len(core) - (len(core) % 4 == 1)] + "=" * (-len(core) % 4)))
    except Error:
        return False


def _from_hex(text: str) -> bool:
    return (
        len(text) >= _SHORTEST_HEX
        and bool(_HEX.fullmatch(text))
        and _is_text(bytes.fromhex(text[:_MAX_DECODED]))
    )


def _from_base32(text: str) -> bool:
    if not _BASE32.fullmatch(text):
        return False
    from base64 import b32decode  # noqa: PLC0415  # few addresses need it

    core = text.rstrip("=").upper()[:_MAX_DECODED]
    try:
        return _is_text(b32decode(core[: len(core) // 8 * 8]))
    except ValueError:
        return False


def _is_text(data: bytes) -> bool:
    """Return whether bytes are text: signs that a keyboard has."""
    if not data:
        return False
    plain = sum(32 <= byte < 127 or byte in b"\t\r\n" for byte in data)  # noqa: PLR2004
    return plain >= _TEXT_SHARE * len(data)
