"""Ordered levels per dimension, as a catalogue declares them, and effects as positions on them.

Inside this package an effect is a tuple of ranks, one per dimension: the position of its level, or `SILENT`
where it says nothing. So the join of effects is a plain maximum, and a partial effect joins like a whole one.
"""

from __future__ import annotations

from safetydrift.errors import CatalogueError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from safetydrift.states.effect import Effect

    Ranks = tuple[int, ...]

SILENT = -1


class Scales:
    """The dimensions a catalogue speaks of, with their levels in ascending order of concern.

    Parameters
    ----------
    levels
        The dimensions that every whole effect names.
    context
        Dimensions that depend on what came before in a run; an effect that does not name them is silent there.
    """

    __slots__ = ("_levels", "_pairs", "_positions", "lowest", "names", "required")

    def __init__(
        self, levels: Mapping[str, tuple[str, ...]], context: Mapping[str, tuple[str, ...]] | None = None
    ) -> None:
        self.required = tuple(levels)
        levels = {**levels, **(context or {})}
        self.names = tuple(levels)
        self.lowest: Ranks = (0,) * len(self.names)
        self._levels = tuple(levels.values())
        self._positions = tuple({level: rank for rank, level in enumerate(scale)} for scale in self._levels)
        self._pairs: dict[Ranks, tuple[tuple[str, str], ...]] = {}

    def levels(self, name: str) -> tuple[str, ...]:
        """Return the levels of a dimension, lowest first."""
        return self._levels[self.names.index(name)]

    def level(self, ranks: Ranks, name: str) -> str:
        """Return the level in one dimension at these ranks."""
        position = self.names.index(name)
        return self._levels[position][max(ranks[position], 0)]

    def read(self, effect: object, where: str, *, whole: bool = True) -> Ranks:
        """Return the ranks of an effect given as plain data.

        Parameters
        ----------
        effect
            Level by dimension name.
        where
            The entry that holds it, for the message.
        whole
            Whether every dimension that is not of the context has to be named.

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
        missing = [name for name in self.required if name not in effect]
        if missing and whole:
            raise CatalogueError(f"{where}: the effect lacks a level for {missing[0]!r}")
        return tuple(
            self._rank(effect[name], name, positions, where) if name in effect else SILENT
            for name, positions in zip(self.names, self._positions, strict=True)
        )

    def pairs(self, ranks: Ranks) -> tuple[tuple[str, str], ...]:
        """Return dimension and level at these ranks, in the order of `Effect.levels`; silent stands at its lowest."""
        pairs = self._pairs.get(ranks)
        if pairs is None:
            pairs = self._pairs[ranks] = tuple(
                sorted(
                    (name, levels[max(rank, 0)])
                    for name, levels, rank in zip(self.names, self._levels, ranks, strict=True)
                )
            )
        return pairs

    def ranks(self, effect: Effect) -> Ranks:
        """Return the ranks of an effect whose levels `pairs` made."""
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
