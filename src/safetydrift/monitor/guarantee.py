"""What was promised about a threshold: plain data that travels in the model file and says itself in words."""

from __future__ import annotations

from math import inf, isfinite
from typing import TYPE_CHECKING

from msgspec import Struct

from safetydrift.errors import ModelFileError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

VERSION = 1
"""Version of the plain data."""

FALSE_ALARMS, RECALL, COSTS = "false-alarms", "recall", "costs"
"""What a threshold can be chosen for."""

_AIMS = (FALSE_ALARMS, RECALL, COSTS)
_SUBJECTS = ("standing", "proposal")


class Goal(Struct, frozen=True, gc=False):
    """What thresholds are to be chosen for.

    Parameters
    ----------
    aim
        `FALSE_ALARMS`, `RECALL` or `COSTS`.
    limit
        The largest share of non-violating runs alarmed, or the smallest share of violating runs alarmed in time; 0 for
        costs.
    confidence
        How sure that is to be; 0 for costs.
    miss, false_alarm
        What a violating run without an alarm in time costs, and an alarm in one that does not violate; 0 but for costs.

    Raises
    ------
    ValueError
        If a part is out of range.
    """

    aim: str = FALSE_ALARMS
    limit: float = 0.0
    confidence: float = 0.0
    miss: float = 0.0
    false_alarm: float = 0.0

    def __post_init__(self) -> None:
        """Check the parts."""
        if self.aim not in _AIMS:
            raise ValueError(f"no threshold is chosen for {self.aim!r}; there are {', '.join(_AIMS)}")
        if self.aim == COSTS:
            if not (0.0 < self.miss < inf and 0.0 < self.false_alarm < inf):
                raise ValueError(
                    f"costs are above 0, got {self.miss} for a miss and {self.false_alarm} for a false alarm"
                )
        elif not (0.0 < self.limit < 1.0 and 0.0 < self.confidence < 1.0):
            raise ValueError(
                f"a share and a confidence lie between 0 and 1, got {self.limit} and {self.confidence}"
            )


class Promise(Struct, frozen=True, gc=False):
    """What a threshold was chosen for, on what, and what it did there.

    Parameters
    ----------
    goal
        What it was chosen for.
    subject
        ``"standing"`` or ``"proposal"``: which verdict is compared with it.
    horizon
        The horizon of the probabilities compared, in steps.
    threshold
        The threshold.
    tasks, runs
        How many tasks and runs of the kind the goal is about (all for costs) it was chosen on.
    false_alarms, recall
        Shares of runs alarmed there, as means over tasks: of those that do not violate, and of those that do (in time);
        None without such runs.
    cost
        Mean cost of a run there, for costs.
    cross_fitted
        Whether the runs were those the model was fitted on, each scored by a hazard fitted on other tasks.
    """

    goal: Goal
    subject: str
    horizon: int
    threshold: float
    tasks: int
    runs: int
    false_alarms: float | None = None
    recall: float | None = None
    cost: float | None = None
    cross_fitted: bool = False

    def __str__(self) -> str:
        goal = self.goal
        based = f"calibrated on {self.tasks:,} tasks ({self.runs:,} runs"
        based += ", each scored by a hazard fitted on other tasks)" if self.cross_fitted else ")"
        if goal.aim == COSTS:
            cost = "" if self.cost is None else f", {self.cost:.3g} per run"
            return (
                f"lowest cost{cost} where a miss costs {goal.miss:g} and a false alarm {goal.false_alarm:g}, "
                f"{based}; no guarantee"
            )
        sure = f"confidence {_percent(goal.confidence)}, {based}"
        if goal.aim == FALSE_ALARMS:
            return f"at most {_percent(goal.limit)} of non-violating runs alarmed, {sure}"
        return f"at least {_percent(goal.limit)} of violating runs alarmed in time, {sure}"

    def definition(self) -> dict[str, Any]:
        """Return the promise as plain data."""
        goal = self.goal
        return {
            "aim": goal.aim,
            "limit": goal.limit,
            "confidence": goal.confidence,
            "miss": goal.miss,
            "false_alarm": goal.false_alarm,
            "horizon": self.horizon,
            "threshold": self.threshold,
            "tasks": self.tasks,
            "runs": self.runs,
            "false_alarms": self.false_alarms,
            "recall": self.recall,
            "cost": self.cost,
            "cross_fitted": self.cross_fitted,
            "statement": str(self),
        }

    @classmethod
    def from_definition(cls, subject: str, definition: Mapping[str, Any]) -> Promise:
        """Build a promise from plain data; the inverse of `definition`.

        Raises
        ------
        ValueError, TypeError, KeyError
            If a part is missing or of the wrong kind.
        """
        goal = Goal(
            definition["aim"],
            limit=_number(definition["limit"]),
            confidence=_number(definition["confidence"]),
            miss=_number(definition["miss"]),
            false_alarm=_number(definition["false_alarm"]),
        )
        threshold = _number(definition["threshold"])
        if not 0.0 <= threshold <= 1.0 or type(definition["cross_fitted"]) is not bool:
            raise ValueError("a threshold is a probability, and 'cross_fitted' true or false")
        return cls(
            goal,
            subject,
            horizon=_count(definition["horizon"]),
            threshold=threshold,
            tasks=_count(definition["tasks"]),
            runs=_count(definition["runs"]),
            false_alarms=_known(definition["false_alarms"]),
            recall=_known(definition["recall"]),
            cost=_known(definition["cost"]),
            cross_fitted=definition["cross_fitted"],
        )


def as_provenance(promises: Mapping[str, Promise]) -> dict[str, Any]:
    """Return what a model file says of its thresholds, for its provenance."""
    words = [f"{subject}: {promise}" for subject, promise in promises.items()]
    return {
        "threshold": "; ".join(words),
        "calibration": {
            "version": VERSION,
            **{subject: promise.definition() for subject, promise in promises.items()},
        },
    }


def promises_of(provenance: Mapping[str, Any]) -> dict[str, Promise]:
    """Return what was promised about the thresholds of a model, by subject; empty where nothing was.

    Raises
    ------
    ModelFileError
        If the promise is of an unknown version or malformed.
    """
    part = provenance.get("calibration")
    if part is None:
        return {}
    if not isinstance(part, dict) or part.get("version") != VERSION:
        raise ModelFileError("what it promises about its thresholds is of a version unknown here")
    try:
        return {subject: Promise.from_definition(subject, part[subject]) for subject in _SUBJECTS}
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"what it promises about its thresholds cannot be read: {error}") from error


def without_promise(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """Return provenance without a promise about thresholds that no longer holds."""
    kept = {key: value for key, value in provenance.items() if key not in {"calibration", "threshold"}}
    said = provenance.get("threshold")
    return (
        {**kept, "threshold": f"before the update: {said.removeprefix('before the update: ')}"}
        if said
        else kept
    )


def _percent(share: float) -> str:
    return f"{100 * share:.4g} %"


def _number(value: Any) -> float:
    if type(value) not in {int, float} or not isfinite(value):
        raise TypeError(f"{value!r} is no number")
    return float(value)


def _known(value: Any) -> float | None:
    return None if value is None else _number(value)


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise TypeError(f"{value!r} is no count")
    return value
