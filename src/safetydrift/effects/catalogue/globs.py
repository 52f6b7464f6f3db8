"""Sets of glob patterns, asked as one: whether any of them matches the whole text."""

from __future__ import annotations

import re
from fnmatch import translate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_BETWEEN = "\0"
"""Stands in no text that is asked about as part of a pattern."""
_MOST_NAMES, _LONGEST_NAME = 1024, 64
"""Names of arguments that are remembered by one set, and their characters."""
_WILD = re.compile(r"[*?\[]")
_NO_LITERAL = re.compile(r"\[!?\]?[^\]]*\]|[*?\[]")


class Globs:
    """Glob patterns as one set.

    The common forms ``name``, ``start*``, ``*end`` and ``*part*`` are matched as plain text, which is several
    times faster than a regular expression over all of them; the rest share one expression.

    Parameters
    ----------
    patterns
        Patterns of :mod:`fnmatch`; each has to match the whole text.
    fold
        Whether the case of letters is ignored.
    """

    __slots__ = ("_ends", "_exact", "_fold", "_literals", "_match", "_parts", "_rest", "_starts")

    def __init__(self, patterns: Iterable[str], *, fold: bool = False) -> None:
        literals, starts, ends, parts, rest = [], [], [], [], []
        for given in patterns:
            pattern = given.lower() if fold else given
            core = pattern.strip("*")
            if not _WILD.search(pattern):
                literals.append(pattern)
            elif not core or _WILD.search(core):
                rest.append(pattern)
            elif pattern[0] != "*":
                starts.append(core)
            elif pattern[-1] != "*":
                ends.append(core)
            else:
                parts.append(core)
        self._fold = fold
        self._literals = frozenset(literals)
        self._starts, self._ends, self._parts = tuple(starts), tuple(ends), tuple(parts)
        self._rest = tuple(rest)
        self._exact = not (starts or ends or parts or rest)
        # Compiled on first use: a process that asks about one command needs few of the sets.
        self._match: re.Pattern[str] | None = None

    def __bool__(self) -> bool:
        return bool(self._literals or self._starts or self._ends or self._parts or self._rest)

    def __contains__(self, text: str) -> bool:
        if self._fold:
            text = text.lower()
        if self._exact:
            return text in self._literals
        if text in self._literals or text.startswith(self._starts) or text.endswith(self._ends):
            return True
        for part in self._parts:
            if part in text:
                return True
        return bool(self._rest) and self._expression().match(text) is not None

    def pieces(self) -> tuple[str, ...]:
        """Return one text per pattern that whatever matches it contains; it may be empty."""
        runs = [max(_NO_LITERAL.split(pattern), key=len) for pattern in self._rest]
        return (*self._literals, *self._starts, *self._ends, *self._parts, *runs)

    def any_of(self, texts: Iterable[str]) -> bool:
        """Return whether one of the texts matches."""
        if self._exact:
            return not self._literals.isdisjoint(map(str.lower, texts) if self._fold else texts)
        texts = [text.lower() for text in texts] if self._fold else list(texts)
        if not self._literals.isdisjoint(texts):
            return True
        starts, ends = self._starts, self._ends
        if starts or ends:
            for text in texts:
                if text.startswith(starts) or text.endswith(ends):
                    return True
        if self._parts:
            whole = _BETWEEN.join(texts)
            for part in self._parts:
                if part in whole:
                    return True
        return bool(self._rest) and any(map(self._expression().match, texts))

    def _expression(self) -> re.Pattern[str]:
        """Return one expression for the patterns that are no plain texts."""
        if self._match is None:
            self._match = re.compile("|".join(map(translate, self._rest)))
        return self._match


class NameGlobs(Globs):
    """Glob patterns for the names of arguments: the same few are asked about again and again.

    Parameters
    ----------
    patterns
        As for `Globs`; the case of letters is ignored.
    """

    __slots__ = ("_known",)

    def __init__(self, patterns: Iterable[str]) -> None:
        super().__init__(patterns, fold=True)
        self._known: dict[str, bool] = {}

    def __contains__(self, text: str) -> bool:
        known = self._known.get(text)
        if known is None:
            known = super().__contains__(text)
            if len(self._known) < _MOST_NAMES and len(text) <= _LONGEST_NAME:
                self._known[text] = known
        return known
