"""The trees of SQL, from the parser of `sqlglot`, with bounds on what it is given: it descends into itself."""

from __future__ import annotations

from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from safetydrift.effects.languages.sql.lexer import Word

MAX_PARSED = 16 * 1024
"""Longer statements are not parsed."""
MAX_WORDS = 1500
"""Statements of more words are not parsed."""
MAX_DEPTH = 24
"""Statements with deeper brackets are not parsed."""
DIALECTS = ("", "mysql", "postgres", "tsql", "sqlite")
"""The dialects in the order they are tried; the first stands for what most have in common."""
_OPENING, _CLOSING = frozenset(("(", "[", "{", "CASE")), frozenset((")", "]", "}", "END"))
_PREFIXES = frozenset(("NOT", "-", "+", "~", "!"))


def tree(source: str, words: Sequence[Word]) -> Any:
    """Return the tree of one statement in the first dialect that takes it whole; None if none does."""
    if len(source) > MAX_PARSED or len(words) > MAX_WORDS or _depth(words) > MAX_DEPTH:
        return None
    glot = _glot()
    for dialect in DIALECTS:
        try:
            trees = glot.parse(source, read=dialect or None)
        except Exception:  # noqa: BLE001, S112  # a parser that is given hostile text fails in any way
            continue
        if (
            len(trees) == 1
            and trees[0] is not None
            and not isinstance(trees[0], glot.exp.Command | glot.exp.Alias)
        ):
            return trees[0]
    return None


def _depth(words: Sequence[Word]) -> int:
    """Return how deep the brackets go, or how many signs follow one another before an operand."""
    deepest = depth = signs = 0
    for word in words:
        signs = signs + 1 if word.key in _PREFIXES else 0
        if word.key in _OPENING:
            depth += 1
        elif word.key in _CLOSING:
            depth -= 1
        deepest = max(deepest, depth, signs)
    return deepest


@lru_cache(1)
def _glot() -> Any:
    """Return the parser; it takes a tenth of a second to load, for which only those who meet a query should wait."""
    import logging  # noqa: PLC0415  # comes with the parser

    import sqlglot  # noqa: PLC0415  # slow to load

    # It reports each statement that it takes unparsed; that is none of the operator's concern.
    logging.getLogger("sqlglot").addHandler(logging.NullHandler())
    return sqlglot


def expressions() -> Any:
    """Return the kinds of nodes that trees have."""
    return _glot().exp
