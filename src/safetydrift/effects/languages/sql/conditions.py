"""Conditions that hold for every row, or surely for nearly all: a change under one of them is not bounded."""

from __future__ import annotations

import re

from safetydrift.effects.languages.sql.lexer import QUOTED, STRING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Words = list[tuple[str, str]]

MAX_WORDS = 200
"""Longer conditions are taken to bound something."""
_COMPARED = re.compile(r"=|>=|<=|<>|!=|>|<|LIKE|ILIKE|IS|IN|BETWEEN")
_CONSTANTS = frozenset(("TRUE", "FALSE", "NULL", "NOT", "EXISTS", "SELECT"))


def holds_always(keys: Sequence[str], texts: Sequence[str]) -> bool:
    """Return whether a condition, given as the words of a statement, asks for next to nothing."""
    return len(keys) <= MAX_WORDS and _always(list(zip(keys, texts, strict=True)))


def _always(words: Words) -> bool:
    words = _bare(words)
    for sign, found in (("OR", any), ("AND", all)):
        parts = list(_parts(words, sign))
        if len(parts) > 1:
            return found(map(_always, parts))
    if words[:1] and words[0][0] == "NOT":
        return _is_constant(words) and not _always(words[1:])
    if _is_constant(words):
        return not _is_false(words)
    return _is_trivial(words)


def _bare(words: Words) -> Words:
    """Return words without the brackets around all of them."""
    while len(words) > 1 and words[0][0] == "(" and words[-1][0] == ")":
        depth = 0
        for place, (key, _) in enumerate(words):
            depth += (key == "(") - (key == ")")
            if depth == 0 and place < len(words) - 1:
                return words
        words = words[1:-1]
    return words


def _parts(words: Words, sign: str) -> Iterator[Words]:
    """Yield the parts of a condition between the signs outside brackets; BETWEEN has an AND of its own."""
    part: Words = []
    depth, between = 0, False
    for key, text in words:
        depth += (key == "(") - (key == ")")
        between = between or (key == "BETWEEN" and depth == 0)
        if key == sign and depth == 0 and not (sign == "AND" and between):
            yield part
            part = []
        else:
            part.append((key, text))
        between = between and key != "AND"
    yield part


def _is_constant(words: Words) -> bool:
    """Return whether no name of a column stands in a condition."""
    return not any(
        key == QUOTED
        or (key not in _CONSTANTS and (key[0].isalpha() or key[0] in "_@") and not _COMPARED.fullmatch(key))
        for key, _ in words
    )


def _is_false(words: Words) -> bool:
    """Return whether a condition without columns is plainly false; any other is taken for true."""
    if len(words) == 1:
        return words[0][0] in {"FALSE", "0", "NULL"}
    if len(words) == 3 and words[1][0] == "=":  # noqa: PLR2004
        return words[0] != words[2]
    return False


def _is_trivial(words: Words) -> bool:
    """Return whether a condition on columns asks for next to nothing: ``x = x``, ``x IS NOT NULL``, ``x LIKE '%'``."""
    at = next((place for place, (key, _) in enumerate(words) if _COMPARED.fullmatch(key)), len(words))
    sign = "".join(key for key, _ in words[at:] if not (key[0].isalnum() or key in {STRING, QUOTED, "-"}))
    left, right = words[:at], words[at + max(1, len(sign)) :]
    value = "".join(text for _, text in right)
    if sign in {"=", ">=", "<="} and [text for _, text in left] == [text for _, text in right]:
        return True
    verb = words[at][0] if at < len(words) else ""
    if verb in {"LIKE", "ILIKE"}:
        return [key for key, _ in right] == [STRING] and not value.strip("%")
    if verb == "IS":
        return [key for key, _ in right] == ["NOT", "NULL"]
    if sign in {">", ">="}:
        return value == "0" or (value[:1] == "-" and value[1:].isdigit())
    return sign in {"<>", "!="} and value in {"", "0", "-1"}
