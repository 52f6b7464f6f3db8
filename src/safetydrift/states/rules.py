"""The rule cascade that turns a safety state into a risk level: data, evaluated first match wins."""

from __future__ import annotations

from safetydrift.errors import SpaceError
from safetydrift.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from safetydrift.states.dimensions import Dimension

_OPERATORS = (">=", "<=")


class Rule(Value):
    """If every condition holds, the state has this risk.

    Parameters
    ----------
    when
        Condition by dimension name: a level (``"network"``), or a bound (``">= sensitive"``, ``"<= internal"``).
        A rule without conditions always holds.
    risk
        The risk level it assigns.
    """

    __slots__ = ("risk", "when")
    when: tuple[tuple[str, str], ...]
    risk: str

    def __init__(self, when: Mapping[str, str] | tuple[tuple[str, str], ...], risk: str) -> None:
        pairs = when if isinstance(when, tuple) else tuple(when.items())
        self._fill(when=pairs, risk=risk)

    def bounds(self, dimensions: Sequence[Dimension]) -> tuple[tuple[int, int], ...]:
        """Return, per dimension, the lowest and highest level index the rule accepts, both inclusive.

        Raises
        ------
        SpaceError
            If a condition names an unknown dimension or level.
        """
        accepted = {dimension.name: (0, len(dimension.levels) - 1) for dimension in dimensions}
        by_name = {dimension.name: dimension for dimension in dimensions}
        for name, condition in self.when:
            if name not in by_name:
                raise SpaceError(f"a rule for {self.risk!r} speaks of an unknown dimension {name!r}")
            dimension = by_name[name]
            operator = next((sign for sign in _OPERATORS if condition.startswith(sign)), "")
            level = dimension.index(condition.removeprefix(operator).strip())
            lowest = 0 if operator == "<=" else level
            highest = len(dimension.levels) - 1 if operator == ">=" else level
            accepted[name] = (lowest, highest)
        return tuple(accepted[dimension.name] for dimension in dimensions)
