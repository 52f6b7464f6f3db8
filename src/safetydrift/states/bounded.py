"""Types of numbers that are checked where they are read: what a kept state or a file may hold, and how much of it."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from safetydrift.states.task_words import WORD_BINS

Count = Annotated[int, Meta(ge=0)]
"""How many, how often, or which: never below 0."""

Word = Annotated[int, Meta(ge=0, lt=WORD_BINS)]
"""A word as `safetydrift.states.task_words` numbers it."""

Words = Annotated[frozenset[Word], Meta(max_length=WORD_BINS)]
"""Many of them."""

Digest = Annotated[int, Meta(ge=0, lt=1 << 32)]
"""A digest of 32 bits."""
