"""What a judge says of a call: a reviewer, or the program."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a judge says of a call.

    Parameters
    ----------
    levels
        Level by dimension, where the judge says one.
    kinds
        Kinds of violation; None where the judge says nothing about them.
    alternatives
        Levels by dimension that the judge would accept too.
    """

    levels: Mapping[str, str]
    kinds: frozenset[str] | None = None
    alternatives: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def accepts(self, dimension: str, level: str) -> bool:
        """Return whether the judge gives or would accept a level."""
        return level == self.levels[dimension] or level in self.alternatives.get(dimension, ())
