"""Types of numbers that are checked where they are read: what a kept state or a file may hold, and how much of it."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from safetydrift.states.task_words import WORD_BINS

Count = Annotated[int, Meta(ge=0)]
"""How many, how often, or which: never below 0."""

Words = Annotated[frozenset[Annotated[int, Meta(ge=0, lt=WORD_BINS)]], Meta(max_length=WORD_BINS)]
"""Words as `safetydrift.states.task_words` numbers them."""

Digest = Annotated[int, Meta(ge=0, lt=1 << 32)]
"""A digest of 32 bits."""
