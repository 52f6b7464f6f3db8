"""What was promised about a threshold: plain data that travels in the model file and says itself in words."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct, convert, to_builtins

from safetydrift.errors import ModelFileError
from safetydrift.monitor.policy import HIGHEST_THRESHOLD

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION = 2
"""Version of the plain data."""

FALSE_ALARMS, RECALL, COSTS = "false-alarms", "recall", "costs"
"""What a threshold can be chosen for."""

_AIMS = (FALSE_ALARMS, RECALL, COSTS)
Subject = Literal["current", "proposal"]
SUBJECTS: tuple[Subject, ...] = ("current", "proposal")
"""The thresholds there are: for where a run stands, and for a call that it proposes."""

Count = Annotated[int, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]


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
        Which verdict is compared with it.
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
        Whether the runs were those the model was fitted on, each scored by a risk score fitted on other tasks.
    """

    goal: Goal
    subject: Subject
    horizon: Count
    threshold: Annotated[float, Meta(ge=0.0, le=HIGHEST_THRESHOLD)]
    tasks: Count
    runs: Count
    false_alarms: Share | None = None
    recall: Share | None = None
    cost: Annotated[float, Meta(ge=0.0)] | None = None
    cross_fitted: bool = False

    def __str__(self) -> str:
        goal = self.goal
        based = f"calibrated on {self.tasks:,} tasks ({self.runs:,} runs"
        based += ", each scored by a risk score fitted on other tasks)" if self.cross_fitted else ")"
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
        """Return the promise as plain data, with what it says in words."""
        return {**to_builtins(self), "statement": str(self)}


def as_provenance(promises: Mapping[Subject, Promise]) -> dict[str, Any]:
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
        return {subject: convert(part[subject], Promise) for subject in SUBJECTS}
    except (KeyError, ValueError) as error:
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
