"""Ordered levels per dimension, as a catalogue declares them, and effects as positions on them.

Inside this package an effect is a tuple of ranks, one per dimension: the position of its level, or `SILENT`
where it says nothing. So the join of effects is a plain maximum, and a partial effect joins like a whole one.
"""

from __future__ import annotations

from safetydrift.errors import CatalogueError
from safetydrift.states.effect import Effect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    Ranks = tuple[int, ...]

SILENT = -1


class Scales:
    """The dimensions a catalogue speaks of, with their levels in ascending order of concern."""

    __slots__ = ("_levels", "_pairs", "_positions", "lowest", "names")

    def __init__(self, levels: Mapping[str, tuple[str, ...]]) -> None:
        self.names = tuple(levels)
        self.lowest: Ranks = (0,) * len(self.names)
        self._levels = tuple(levels.values())
        self._positions = tuple({level: rank for rank, level in enumerate(scale)} for scale in self._levels)
        self._pairs: dict[Ranks, tuple[tuple[str, str], ...]] = {}

    def levels(self, name: str) -> tuple[str, ...]:
        """Return the levels of a dimension, lowest first."""
        return self._levels[self.names.index(name)]

    def read(self, effect: object, where: str, *, whole: bool = True) -> Ranks:
        """Return the ranks of an effect given as plain data.

        Parameters
        ----------
        effect
            Level by dimension name.
        where
            The entry that holds it, for the message.
        whole
            Whether every dimension has to be named.

        Raises
        ------
        CatalogueError
            If it is no table, or a dimension or level is unknown or missing.
        """
        if not isinstance(effect, dict):
            raise CatalogueError(f"{where}: an effect is a table of levels, got {effect!r}")
        unknown = [name for name in effect if name not in self.names]
        if unknown:
            raise CatalogueError(
                f"{where}: unknown dimension {unknown[0]!r}; the scales are: {', '.join(self.names)}"
            )
        missing = [name for name in self.names if name not in effect]
        if missing and whole:
            raise CatalogueError(f"{where}: the effect lacks a level for {missing[0]!r}")
        return tuple(
            self._rank(effect[name], name, positions, where) if name in effect else SILENT
            for name, positions in zip(self.names, self._positions, strict=True)
        )

    def effect(self, ranks: Ranks, source: str, reasons: tuple[str, ...]) -> Effect:
        """Return the effect at these ranks; a silent dimension stands at its lowest."""
        pairs = self._pairs.get(ranks)
        if pairs is None:
            pairs = self._pairs[ranks] = tuple(
                sorted(
                    (name, levels[max(rank, 0)])
                    for name, levels, rank in zip(self.names, self._levels, ranks, strict=True)
                )
            )
        return Effect(pairs, source, reasons)

    def ranks(self, effect: Effect) -> Ranks:
        """Return the ranks of an effect that `effect` made."""
        return tuple([at[effect[name]] for name, at in zip(self.names, self._positions, strict=True)])

    @staticmethod
    def _rank(level: object, name: str, positions: dict[str, int], where: str) -> int:
        rank = positions.get(level) if isinstance(level, str) else None
        if rank is None:
            raise CatalogueError(f"{where}: {name!r} has no level {level!r}; it has: {', '.join(positions)}")
        return rank


def join(one: Ranks, other: Ranks) -> Ranks:
    """Return the higher rank in each dimension."""
    return tuple(map(max, one, other))


def overlay(base: Ranks, upper: Ranks) -> Ranks:
    """Return the base with the dimensions that the upper effect names replaced, higher or lower."""
    return tuple([b if a == SILENT else a for a, b in zip(upper, base, strict=True)])
