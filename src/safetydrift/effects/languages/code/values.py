"""Values of expressions, as far as they are known without running anything, and what can be done with them.

A text may have parts that are not known; `HOLE` stands for each of them.
"""

from __future__ import annotations

import re
from typing import TypeGuard

from msgspec import Struct

HOLE = "\uffff"
"""Stands for what is not known within a text; no character, and none that bytes decode to."""
MAX_TEXT = 64 * 1024
"""Longer texts are not put together."""

_ESCAPE = re.compile(
    r"\\(?:[ux]\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([0-3]?[0-7]{1,2})|(\r\n|.))",
    re.DOTALL,
)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "a": " ", "\n": "", "\r\n": ""}


def unescaped(text: str) -> str:
    r"""Return the text that a literal's inside stands for.

    >>> unescaped(r"\x61\u{62}\143")
    'abc'
    """
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    if not code and not match[4]:
        return _ESCAPED.get(match[5], match[5])
    number = int(code, 16) if code else int(match[4], 8)
    return chr(number) if 0 < number < 0x110000 and not 0xD800 <= number < 0xE000 else " "  # noqa: PLR2004


class Unknown(Struct, frozen=True):
    """A value of which nothing is known."""


UNKNOWN = Unknown()


class Library(Struct, frozen=True):
    """A function, class or object of a library, or what came of calling one.

    Parameters
    ----------
    name
        Its full name; what a call returns goes by the name of what was called.
    made
        Whether it came of a call, so that it is no function any more.
    """

    name: str
    made: bool = False


class Method(Struct, eq=False):
    """A method of something that is of no known library."""

    base: object
    name: str


class Several(Struct, eq=False):
    """A list, with the values that each item may have; `open_ended` if there may be more of them."""

    items: list[tuple[object, ...]]
    open_ended: bool = False


class Keyed(Struct, eq=False):
    """A table, with the values that each item may have."""

    items: dict[str, tuple[object, ...]]


class Function(Struct, eq=False):
    """A function written in the text, with the values it may return."""

    returns: tuple[object, ...]


def as_text(value: object) -> str:
    """Return a value as it would stand within a text; a hole if that is not known."""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1 << 64:
        return str(value)
    return HOLE


def is_known(value: object) -> TypeGuard[str]:
    """Return whether a value is a text at least part of which is known."""
    return isinstance(value, str) and (not value or bool(value.strip(HOLE)))


def joined(parts: list[object], between: str = "") -> object:
    """Return texts one after the other, or lists if one of them is a list."""
    if any(isinstance(part, Several) for part in parts):
        items: list[tuple[object, ...]] = []
        more = False
        for part in parts:
            if isinstance(part, Several):
                items += part.items
                more = more or part.open_ended
            else:
                more = True
        return Several(items[:256], open_ended=more or len(items) > 256)  # noqa: PLR2004
    if between:
        return _path([as_text(part) for part in parts])
    text = "".join(map(as_text, parts))
    return text if len(text) <= MAX_TEXT and text.strip(HOLE) else UNKNOWN if text else ""


def _path(parts: list[str]) -> object:
    """Return the path of several parts; one that starts at the root forgets those before it."""
    path = ""
    for part in parts:
        path = part if not path or part.startswith("/") else f"{path.rstrip('/')}/{part}"
    return path if len(path) <= MAX_TEXT and path.strip(HOLE + "/") else UNKNOWN


def command_line(value: Several) -> str:
    """Return a list of words as a shell would need them written; each hole becomes an unknown word."""
    words = []
    for choices in value.items:
        word = as_text(choices[0]) if choices else HOLE
        plain = (
            word.replace(HOLE, "x").replace("-", "x").replace("/", "x").replace(".", "x").replace("_", "x")
        )
        if plain.isalnum() and plain.isascii():
            words.append(word)
        else:
            inner = HOLE.join("'" + part.replace("'", "'\"'\"'") + "'" for part in word.split(HOLE))
            words.append(inner)
    if value.open_ended:
        words.append(HOLE)
    return " ".join(words)
