"""What one step did, said in the levels of the safety dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Self


class Effect(Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """The effect of one tool call: a level in each dimension, and how we know.

    An effect speaks of the step alone; what it makes of the trajectory is `StateSpace.after`.

    Parameters
    ----------
    levels
        Level by dimension name, for example ``{"data": "sensitive", "tool": "network",
        "reversibility": "irreversible"}``.
    source
        The layer that decided: ``"rule"`` (an exact catalogue entry, or text in a language that was parsed),
        ``"pattern"``, ``"annotation"``, ``"judge"`` or ``"default"``.
    reasons
        Why, in words, for people.
    kinds
        The kinds of violation it would complete, in alphabetical order; empty for most.
    external
        Whether it reaches beyond the operator's own hosts and accounts.
    leaves
        Whether content goes there.
    destinations
        Hosts, addresses and recipients that text in a language was found to send to, as written.
    sources
        Where the words of the arguments come from, once strangers have given orders; see
        `safetydrift.effects.history.sources`. 0 before.
    confidence
        How sure we are: the probability that a reviewer would give the same levels. Between 0 and 1.
    """

    levels: tuple[tuple[str, str], ...]
    source: str = "rule"
    reasons: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    external: bool = False
    leaves: bool = False
    destinations: tuple[str, ...] = ()
    sources: int = 0
    confidence: float = 1.0

    @classmethod
    def of(cls, levels: Mapping[str, str], *rest: Any, **named: Any) -> Self:
        """Return an effect with these levels, in any order; the rest as for the class."""
        return cls(tuple(sorted(levels.items())), *rest, **named)

    def __getitem__(self, dimension: str) -> str:
        """Return the level in a dimension; KeyError if the effect says nothing about it."""
        for name, level in self.levels:
            if name == dimension:
                return level
        raise KeyError(dimension)
