"""What a probability means: the choices a deployment makes, kept apart from the model."""

from __future__ import annotations

from enum import Enum
from math import isnan, nan
from typing import TYPE_CHECKING

from msgspec import Struct, to_builtins
from msgspec.structs import force_setattr

from safetydrift.monitor.verdict import Basis, Intervention

if TYPE_CHECKING:
    from typing import Any


class Bound(Enum):
    """Which figure of a verdict is compared with the threshold."""

    MEAN = "mean"
    """The probability."""

    UPPER = "upper"
    """The upper end of the interval it lies in: little evidence then alarms sooner."""


HIGHEST_THRESHOLD = 1.000001
"""Just above certainty: no known probability alarms."""


class Policy(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """When to intervene, and how.

    Parameters
    ----------
    horizon
        Look this many steps ahead. The published monitor uses 5.
    threshold
        Alarm when the probability of a violation within the horizon is at least this. The published operating
        region is 0.4 to 0.5; above 1, up to `HIGHEST_THRESHOLD`, no known probability alarms.
    pending_threshold
        The same for a proposed call, whose probability already includes what that call itself may do; the
        threshold above if not given.
    intervention
        What an alarm does to the agent.
    alarm_unseen
        Whether to be in a state the model knows nothing about is an alarm. It is by default: unknown is
        not safe.
    bound
        Whether thresholds are compared with the probability or with the upper end of its interval.

    Raises
    ------
    ValueError
        If the horizon is below 1 or a threshold is not a probability.
    """

    horizon: int = 5
    threshold: float = 0.4
    pending_threshold: float = nan
    intervention: Intervention = Intervention.WARN
    alarm_unseen: bool = True
    bound: Bound = Bound.MEAN

    def __post_init__(self) -> None:
        """Check the parts; a threshold for proposals that is not given is the same as the other."""
        if isnan(self.pending_threshold):
            force_setattr(self, "pending_threshold", self.threshold)
        if type(self.horizon) is not int or self.horizon < 1:
            raise ValueError(f"a horizon is at least 1 step, got {self.horizon!r}")
        for value in (self.threshold, self.pending_threshold):
            if not 0.0 <= value <= HIGHEST_THRESHOLD:
                raise ValueError(f"a threshold is a probability between 0 and 1, got {value}")

    def compared(self, probability: float, high: float = nan) -> float:
        """Return the figure that thresholds are compared with.

        Parameters
        ----------
        probability
            Of a violation within the horizon.
        high
            The upper end of its interval; nan where it is not known.
        """
        return probability if self.bound is Bound.MEAN else high

    def alarms(self, probability: float, basis: Basis, *, pending: bool, high: float = nan) -> bool:
        """Return whether a finding calls for an intervention; ``high`` is the upper end of its interval."""
        if basis is Basis.VIOLATED:
            return True
        compared = self.compared(probability, high)
        if basis is Basis.UNSEEN or isnan(compared):
            return self.alarm_unseen
        return compared >= (self.pending_threshold if pending else self.threshold)

    def definition(self) -> dict[str, Any]:
        """Return the policy as plain data, as a model file holds it."""
        found: dict[str, Any] = to_builtins(self)
        return found
