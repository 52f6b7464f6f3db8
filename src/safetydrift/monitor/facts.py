"""What of a run's past its safety state does not hold: the facts that the features of the risk score read.

Fitting and live use move a run's facts on with the same `Features.follow`; nothing here looks ahead.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Annotated
from zlib import crc32

from msgspec import Meta, Struct

from safetydrift.states.bounded import Words
from safetydrift.states.task_words import WORD_BINS

_TOOL_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_FEWEST_LETTERS = 2
MAX_TRACKED = 1 << 20
"""The highest value that a feature may track."""


class Facts(Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """What a run has shown so far.

    Parameters
    ----------
    task_words, heard_words
        The words of the task; and those that the user has said since, or that stand in a file they named as the task.
    injected_words
        The words of injected instructions that results held.
    tools
        Names of the tools used.
    last, before
        The last two tools; empty before the first call.
    tracked
        What features track from call to call, each in a place of its own (`features.Tracked`).
    """

    task_words: Words = frozenset()
    heard_words: Words = frozenset()
    injected_words: Words = frozenset()
    tools: frozenset[str] = frozenset()
    last: str = ""
    before: str = ""
    tracked: Annotated[tuple[Annotated[int, Meta(ge=0, le=MAX_TRACKED)], ...], Meta(max_length=255)] = ()


@lru_cache(4096)
def likeness_of(tool: str, words: frozenset[int]) -> int:
    """Return how well a tool's name fits some words: 3 as it stands, 2 every part of it, 1 some part, 0 none.

    >>> from safetydrift.states.task_words import task_words
    >>> said = frozenset(task_words("please send the money"))
    >>> [likeness_of(tool, said) for tool in ("send", "send_money", "sendEmail", "read_file")]
    [3, 2, 1, 0]
    """
    whole, parts = _bins(tool)
    if whole in words:
        return 3
    found = len(parts & words)
    return 2 if found and found == len(parts) else 1 if found else 0


@lru_cache(4096)
def _bins(tool: str) -> tuple[int, frozenset[int]]:
    parts = [part.lower() for part in _TOOL_PARTS.findall(tool) if len(part) >= _FEWEST_LETTERS]
    return crc32(tool.lower().encode("utf-8", "replace")) % WORD_BINS, frozenset(
        [crc32(part.encode()) % WORD_BINS for part in parts]
    )
