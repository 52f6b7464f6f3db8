"""Passages that speak to the agent: content from outside that reads like an order rather than like information."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from safetydrift.effects.escapes import unescaped
from safetydrift.effects.history.words import bounded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from safetydrift.effects.catalogue.entries import MarkEntry

_MEMO_TEXT = 16 * 1024
_MEMO_SIZE = 256
BEFORE = 100
AFTER = 800
"""Characters before and after a mark that belong to the passage."""
MAX_MARKS = 1024
"""A text with more marks than this is one passage as a whole."""
MAX_PLACES = 4096
"""Places of a text at which what follows one lead is compared."""


class InstructionReader:
    """Finds the passages of a text that read like instructions to an agent.

    Parameters
    ----------
    marks
        What gives such passages away, from the catalogue.
    """

    __slots__ = ("_marks", "_memo")

    def __init__(self, marks: Sequence[MarkEntry]) -> None:
        self._marks = tuple(
            [
                (lead, re.compile(mark.then, re.DOTALL) if mark.then else None)
                for mark in marks
                for lead in mark.leads
            ]
        )
        self._memo = lru_cache(_MEMO_SIZE)(self._passages)

    def passages(self, text: str) -> tuple[str, ...]:
        """Return the passages, in order; none for most texts."""
        return self._memo(text) if len(text) <= _MEMO_TEXT else self._passages(bounded(text))

    def _passages(self, text: str) -> tuple[str, ...]:
        text = unescaped(text)
        lower = text.lower()
        text = text if len(text) == len(lower) else lower  # some letters become two, and places would shift
        found = sorted(self._found(lower))
        if len(found) > MAX_MARKS:
            return (text,)
        spans: list[list[int]] = []
        for start, end in found:
            first, last = max(0, start - BEFORE), end + AFTER
            if spans and first <= spans[-1][1]:
                spans[-1][1] = max(last, spans[-1][1])
            else:
                spans.append([first, last])
        return tuple([text[start:end] for start, end in spans])

    def _found(self, text: str) -> Iterator[tuple[int, int]]:
        for lead, then in self._marks:
            at, places = text.find(lead), 0
            while at >= 0 and places < MAX_PLACES:
                places += 1
                end = at + len(lead)
                if not (at and lead[0].isalnum() and text[at - 1].isalnum()):
                    if then is None:
                        yield at, end
                    elif (match := then.match(text, end)) is not None:
                        yield at, match.end()
                at = text.find(lead, end)
