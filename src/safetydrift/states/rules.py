"""The rule cascade that turns a safety state into a risk level: data, evaluated first match wins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from safetydrift.errors import SpaceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from safetydrift.states.dimensions import Dimension

_OPERATORS = (">=", "<=")


class Rule(Struct, frozen=True, gc=False):
    """If every condition holds, the state has this risk.

    Parameters
    ----------
    when
        Condition by dimension name: a level (``"network"``), or a bound (``">= sensitive"``, ``"<= internal"``).
        A rule without conditions always holds.
    risk
        The risk level it assigns.
    """

    when: Mapping[str, str]
    risk: str

    def bounds(self, dimensions: Sequence[Dimension]) -> tuple[tuple[int, int], ...]:
        """Return, per dimension, the lowest and highest level index the rule accepts, both inclusive.

        Raises
        ------
        SpaceError
            If a condition names an unknown dimension or level.
        """
        accepted = {dimension.name: (0, len(dimension.levels) - 1) for dimension in dimensions}
        by_name = {dimension.name: dimension for dimension in dimensions}
        for name, condition in self.when.items():
            if name not in by_name:
                raise SpaceError(f"a rule for {self.risk!r} speaks of an unknown dimension {name!r}")
            dimension = by_name[name]
            operator = next((sign for sign in _OPERATORS if condition.startswith(sign)), "")
            level = dimension.index(condition.removeprefix(operator).strip())
            lowest = 0 if operator == "<=" else level
            highest = len(dimension.levels) - 1 if operator == ">=" else level
            accepted[name] = (lowest, highest)
        return tuple(accepted[dimension.name] for dimension in dimensions)
