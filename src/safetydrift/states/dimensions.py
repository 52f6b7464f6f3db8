"""Ordered safety dimensions and the two ways they add up over a trajectory."""

from __future__ import annotations

from enum import Enum

from safetydrift.errors import SpaceError
from safetydrift.value import Value


class Accumulation(Enum):
    """How the effects of successive steps combine in one dimension."""

    HIGHEST = "highest"
    """The highest level so far; never falls."""

    LATEST = "latest"
    """The level of the latest effect."""


class Dimension(Value):
    """A named dimension with levels in ascending order of concern; the first is where a trajectory starts.

    Raises
    ------
    SpaceError
        If there are fewer than two levels, or one is named twice.
    """

    __slots__ = ("accumulation", "levels", "name", "title")
    name: str
    title: str
    levels: tuple[str, ...]
    accumulation: Accumulation

    def __init__(
        self, name: str, levels: tuple[str, ...], accumulation: Accumulation, title: str = ""
    ) -> None:
        if len(levels) < 2 or len(set(levels)) != len(levels):  # noqa: PLR2004
            raise SpaceError(f"dimension {name!r} needs two or more distinct levels, got {list(levels)}")
        self._fill(name=name, title=title or name, levels=levels, accumulation=accumulation)

    def index(self, level: str) -> int:
        """Return the position of a level, 0 for the lowest.

        Raises
        ------
        SpaceError
            If the dimension has no such level.
        """
        try:
            return self.levels.index(level)
        except ValueError:
            known = ", ".join(self.levels)
            raise SpaceError(f"dimension {self.name!r} has no level {level!r}; it has: {known}") from None
