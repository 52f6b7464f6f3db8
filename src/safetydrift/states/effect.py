"""What one step did, said in the levels of the safety dimensions."""

from __future__ import annotations

from safetydrift.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Effect(Value):
    """The effect of one tool call: a level in each dimension, and how we know.

    An effect speaks of the step alone; what it makes of the trajectory is `StateSpace.after`.

    Parameters
    ----------
    levels
        Level by dimension name, for example ``{"data": "sensitive", "tool": "network",
        "reversibility": "irreversible"}``.
    source
        The layer that decided: ``"rule"`` (an exact catalogue entry or a parsed command), ``"pattern"``,
        ``"annotation"`` or ``"default"``.
    reasons
        Why, in words, for people.
    """

    __slots__ = ("levels", "reasons", "source")
    levels: tuple[tuple[str, str], ...]
    source: str
    reasons: tuple[str, ...]

    def __init__(
        self,
        levels: Mapping[str, str] | tuple[tuple[str, str], ...],
        source: str = "rule",
        reasons: tuple[str, ...] = (),
    ) -> None:
        pairs = levels if isinstance(levels, tuple) else tuple(levels.items())
        self._fill(levels=tuple(sorted(pairs)), source=source, reasons=reasons)

    def __getitem__(self, dimension: str) -> str:
        """Return the level in a dimension; KeyError if the effect says nothing about it."""
        for name, level in self.levels:
            if name == dimension:
                return level
        raise KeyError(dimension)
