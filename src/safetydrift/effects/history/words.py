"""The words of a text, in the form in which texts are compared: small letters, addresses both whole and in parts."""

from __future__ import annotations

import re
from functools import lru_cache
from zlib import crc32

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_WORDS = 4096
"""Of a longer text, the words of its beginning and its end are kept, half each."""
MAX_TEXT = 64 * 1024

_WORD = re.compile(r"\w+(?:[.@\-/:+']+\w+)*")
_ADDRESS_ENDS = re.compile(r"[:/]+")
_PART = re.compile(r"\w+")
_NUMBER = re.compile(
    r"(?<!\w)(?:[a-z]{2}\d\d(?:[ \-]?[a-z0-9]{4}){2,7}(?:[ \-]?[a-z0-9]{1,3})?|\+?\d(?:[ \-./()]{0,2}\d){6,20})(?!\w)"
)
"""A bank account, or a telephone or card number, written in groups or not."""
_BREAK = re.compile(r"[\W_]+")
_WEB = re.compile(r"^(?:https?://)?(?:www\.)?")


def bounded(text: str) -> str:
    """Return a text of reasonable length: of a longer one, its beginning and its end."""
    if len(text) <= MAX_TEXT:
        return text
    return f"{text[: MAX_TEXT // 2]} {text[-MAX_TEXT // 2 :]}"


@lru_cache(512)
def words(text: str) -> frozenset[str]:
    """Return the distinct words of a text: ``"Mail a@b.org"`` has ``mail``, ``a@b.org``, ``a``, ``b`` and ``org``."""
    text = bounded(text).lower()
    found = set(_bounded_list(_PART.findall(text)))
    longer = _bounded_list(_WORD.findall(text))
    found.update(longer)
    for word in longer:
        if "@" in word:  # an address is found behind "mailto:", too
            found.update(_ADDRESS_ENDS.split(word))
    found.update(_BREAK.sub("", number) for number in _bounded_list(_NUMBER.findall(text)))
    return frozenset(found)


@lru_cache(512)
def word_digests(text: str) -> frozenset[int]:
    """Return 32-bit digests of the words of a text.

    For sets in which a collision only makes us more cautious; where it would make us less so, `words` are compared
    as they are.
    """
    return frozenset([crc32(word.encode("utf-8", "surrogatepass")) for word in words(text)])


def parts_of(value: str) -> tuple[str, ...]:
    """Return the words that a text must contain for a value to come from it: the value itself, or all its parts.

    A mail address or an account counts as a whole: its parts may well be said apart from each other.
    """
    whole = canonical(value)
    if _NUMBER.fullmatch(whole):
        return (_BREAK.sub("", whole),)
    parts = tuple(_PART.findall(whole))
    if len(parts) <= 1:
        return parts or (whole,)
    return (whole,) if "@" in whole else (whole, *parts)


def canonical(value: str) -> str:
    """Return a value without what writing it differently would change: case, a scheme, ``www.``, a full stop."""
    return _WEB.sub("", value.strip().lower()).rstrip("/.")


def digests(found: Iterable[str]) -> tuple[int, ...]:
    """Return the digests of words, in order."""
    return tuple([crc32(word.encode("utf-8", "surrogatepass")) for word in found])


def _bounded_list(found: list[str]) -> list[str]:
    return found if len(found) <= MAX_WORDS else found[: MAX_WORDS // 2] + found[-MAX_WORDS // 2 :]
