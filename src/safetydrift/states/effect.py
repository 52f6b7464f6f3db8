"""What one step did, said in the levels of the safety dimensions."""

from __future__ import annotations

from safetydrift.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from safetydrift.states.operations import Operation


class Effect(Value):
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
    operations
        What it does to what, and which harm that is if nobody with authority asked for it.
    sources
        Where the words of the arguments come from, once strangers have given orders; see
        `safetydrift.effects.history.sources`. 0 before.
    confidence
        How sure we are: the probability that a reviewer would give the same levels. Between 0 and 1.
    """

    __slots__ = (
        "confidence",
        "destinations",
        "external",
        "kinds",
        "leaves",
        "levels",
        "operations",
        "reasons",
        "source",
        "sources",
    )
    levels: tuple[tuple[str, str], ...]
    source: str
    reasons: tuple[str, ...]
    kinds: tuple[str, ...]
    external: bool
    leaves: bool
    destinations: tuple[str, ...]
    operations: tuple[Operation, ...]
    sources: int
    confidence: float

    def __init__(
        self,
        levels: Mapping[str, str] | tuple[tuple[str, str], ...],
        source: str = "rule",
        reasons: tuple[str, ...] = (),
        *,
        kinds: tuple[str, ...] = (),
        external: bool = False,
        leaves: bool = False,
        destinations: tuple[str, ...] = (),
        operations: tuple[Operation, ...] = (),
        sources: int = 0,
        confidence: float = 1.0,
    ) -> None:
        pairs = levels if isinstance(levels, tuple) else tuple(levels.items())
        self._fill(
            levels=tuple(sorted(pairs)),
            source=source,
            reasons=reasons,
            kinds=kinds,
            external=external,
            leaves=leaves,
            destinations=destinations,
            operations=operations,
            sources=sources,
            confidence=confidence,
        )

    def __getitem__(self, dimension: str) -> str:
        """Return the level in a dimension; KeyError if the effect says nothing about it."""
        for name, level in self.levels:
            if name == dimension:
                return level
        raise KeyError(dimension)
