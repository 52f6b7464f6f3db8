"""Ordered safety dimensions and the two ways they add up over a trajectory."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct
from msgspec.structs import force_setattr

from safetydrift.errors import SpaceError


class Accumulation(Enum):
    """How the effects of successive steps combine in one dimension."""

    HIGHEST = "highest"
    """The highest level so far; never falls."""

    LATEST = "latest"
    """The level of the latest effect."""


class Dimension(Struct, frozen=True, gc=False):
    """A named dimension with levels in ascending order of concern; the first is where a trajectory starts.

    Raises
    ------
    SpaceError
        If there are fewer than two levels, or one is named twice.
    """

    name: str
    levels: tuple[str, ...]
    accumulation: Accumulation
    title: str = ""

    def __post_init__(self) -> None:
        """Check the levels; a dimension without a title is called by its name."""
        if len(self.levels) < 2 or len(set(self.levels)) != len(self.levels):  # noqa: PLR2004
            raise SpaceError(
                f"dimension {self.name!r} needs two or more distinct levels, got {list(self.levels)}"
            )
        if not self.title:
            force_setattr(self, "title", self.name)

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
