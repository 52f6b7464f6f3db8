"""The words of a text, in the form in which texts are compared: small letters, addresses both whole and in parts."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING
from zlib import crc32

from safetydrift.effects.escapes import unescaped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_WORDS = 4096
"""Of a longer text, the words of its beginning and its end are kept, half each."""
MAX_TEXT = 64 * 1024

_JOINS = ".@-/:+'"
"""What holds the parts of one word together: an address, a path, a date."""
_ASCII = tuple(map(chr, range(128)))
_TO_WORDS = "".join([sign if sign.isalnum() or sign == "_" or sign in _JOINS else " " for sign in _ASCII])
_TO_PARTS = "".join([sign if sign.isalnum() or sign == "_" else " " for sign in _ASCII])
_TO_LETTERS = _TO_PARTS.replace("_", " ")
_NO_WORD = re.compile(r"[^\w\x00-\x7f]+")
_ADDRESS_ENDS = re.compile(r"[:/]+")
_PART = re.compile(r"\w+")
_SHAPE = "".join(["a" if sign.isalpha() else "0" if sign.isdigit() else " " for sign in _ASCII])
_BLANK = "\x01"
_OF_NUMBERS = "".join(
    [
        " "
        if sign.isalpha() or sign == "_"
        else _BLANK
        if sign == " "
        else sign
        if sign in "0123456789-./()"
        else ","
        for sign in _ASCII
    ]
)
_ACCOUNT = re.compile(r"[a-z]{2}\d\d(?:[ \-]?[a-z0-9]{4}){2,7}(?:[ \-]?[a-z0-9]{1,3})?(?!\w)")
_DIGITS = re.compile(rf"(?<!\w)\d(?:[{_BLANK}\-./()]{{0,2}}\d){{6,20}}(?!\w)")
"""A bank account with its country, and a telephone or card number; written in groups or not."""
_FEWEST_DIGITS = 7
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
    text = _simple(unescaped(bounded(text).lower()))
    longer = {word.strip(_JOINS) for word in set(_bounded_list(text.translate(_TO_WORDS).split()))}
    found = set(_bounded_list(text.translate(_TO_PARTS).split())) | longer
    for word in longer:
        if "@" in word:  # an address is found behind "mailto:", too
            found.update(_ADDRESS_ENDS.split(word))
    found.update(_numbers(text))
    found.discard("")
    return frozenset(found)


def letters_of(text: str) -> list[str]:
    """Return the runs of letters and digits of a text, in small letters and in order."""
    return _simple(unescaped(text.lower())).translate(_TO_LETTERS).split()


def _simple(text: str) -> str:
    """Return a text in which whatever is no part of a word is ASCII; translating that is many times as fast."""
    return text if text.isascii() else _NO_WORD.sub(" ", text)


def _numbers(text: str) -> list[str]:
    """Return long numbers without the signs between their groups."""
    # Both expressions are slow where they find nothing, so they are shown only the places where they may.
    between = [part for part in f",{text},".translate(_OF_NUMBERS).split() if len(part) >= _FEWEST_DIGITS]
    digits = _DIGITS.findall(f"a{'aa'.join(between)}a") if between else []
    return [_BREAK.sub("", number) for number in _bounded_list([*_accounts(text), *digits])]


def _accounts(text: str) -> Iterator[str]:
    shape = text.translate(_SHAPE)
    at = shape.find("aa00")
    while at >= 0:
        match = None if at and (text[at - 1].isalnum() or text[at - 1] == "_") else _ACCOUNT.match(text, at)
        if match is not None:
            yield match[0]
        at = shape.find("aa00", match.end() if match else at + 1)


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
    number = _BREAK.sub("", whole)
    if number in _numbers(_simple(whole)):
        return (number,)
    parts = tuple(_PART.findall(whole))
    if len(parts) <= 1:
        return parts or (whole,)
    return (whole,) if "@" in whole else (whole, *parts)


def canonical(value: str) -> str:
    """Return a value without what writing it differently would change: case, a scheme, ``www.``, a full stop."""
    return _WEB.sub("", unescaped(value.lower()).strip()).rstrip("/.")


def digests(found: Iterable[str]) -> tuple[int, ...]:
    """Return the digests of words, in order."""
    return tuple([crc32(word.encode("utf-8", "surrogatepass")) for word in found])


def _bounded_list(found: list[str]) -> list[str]:
    return found if len(found) <= MAX_WORDS else found[: MAX_WORDS // 2] + found[-MAX_WORDS // 2 :]
