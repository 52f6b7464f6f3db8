"""What a deployment's own runs say about the probabilities of a risk score: one pass, two numbers per link.

A score that was fitted elsewhere ranks runs of a new model or a new place well enough, but its probabilities may be
too high or too low there. For every link the log odds ``z`` that it gives are corrected to
``a + b z``. The intercept and the slope have a normal prior around 0 and 1, so that few runs change little; their
posterior mode and its precision are found by Newton's method, and stand in the model file, where they are the prior of
the next update. The rows of a run are alike, so each weighs less, the more of them there are: together they weigh as
much as `ROWS_PER_RUN`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from safetydrift.errors import ModelFileError
from safetydrift.monitor.foresight import monitor_for
from safetydrift.monitor.guarantee import SUBJECTS
from safetydrift.monitor.risk_score import MOST_BETWEEN, Link, RiskScore, Side
from safetydrift.monitor.score_rows import NEVER
from safetydrift.monitor.walk import walk
from safetydrift.states.trajectory import VIOLATED, observe

if TYPE_CHECKING:
    from collections.abc import Iterable

    from safetydrift.markov._arrays import BoolArray, FloatArray, IntArray
    from safetydrift.monitor.guarantee import Subject
    from safetydrift.monitor.model import Model
    from safetydrift.monitor.verdict import Verdict
    from safetydrift.states.trajectory import Trajectory

INTERCEPT_SPREAD, SLOPE_SPREAD = 1.0, 0.3
"""Standard deviations of the prior."""

ROWS_PER_RUN = 8.0
"""As how many independent observations the rows of one run count together, at most."""

FLATTEST = 0.1
"""Slopes are never below: a score that ranks wrongly is flattened, not turned round."""

ROUNDS = 50
SMALLEST_STEP = 1e-9
_FURTHEST = 16.0
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Said:
    """What a risk score said along runs, and what came of it.

    Parameters
    ----------
    odds : (rows, horizons + 1) array
        Log odds of a violation within 1, 2, .. steps, and in the end.
    left : (rows,) array of int
        Calls until the violation has happened; a large number where there is none.
    violated : (rows,) array of bool
        Whether the run ends violated.
    run : (rows,) array of int
        Number of the run.
    """

    odds: FloatArray
    left: IntArray
    violated: BoolArray
    run: IntArray

    def happened(self, column: int, n_horizons: int) -> BoolArray:
        """Return what a column of the log odds was about."""
        return self.violated if column >= n_horizons else self.left <= column + 1

    @property
    def weight(self) -> FloatArray:
        """How much each row counts, (rows,)."""
        rows = np.bincount(self.run)[self.run] if len(self.run) else np.zeros(0)
        return np.asarray(np.minimum(1.0, ROWS_PER_RUN / np.maximum(rows, 1)))


def said_of(model: Model, trajectories: Iterable[Trajectory]) -> tuple[Said, Said]:
    """Return what a model with a risk score says along runs: of where they stand, and of what they propose."""
    monitor, current, proposal = monitor_for(model), _Collected(), _Collected()
    for number, run in enumerate(trajectories):
        seen = observe(run, model.space, model.notion, model.unknown_onset)
        for step, (state, move) in enumerate(walk(monitor, run, len(seen.states))):
            left = NEVER if seen.onset is None else seen.onset - step
            rest = left, seen.end == VIOLATED, number
            current.add(monitor.verdict(state), rest)
            if move is not None:
                proposal.add(monitor.foresee(state, move), rest)
    return current.said(model.max_horizon), proposal.said(model.max_horizon)


class _Collected:
    """Collects verdicts."""

    def __init__(self) -> None:
        self._probabilities: list[tuple[float, ...]] = []
        self._rest: list[tuple[int, bool, int]] = []

    def add(self, verdict: Verdict, rest: tuple[int, bool, int]) -> None:
        self._probabilities.append((*verdict.within[1:], verdict.eventually))
        self._rest.append(rest)

    def said(self, max_horizon: int) -> Said:
        found = np.array(self._probabilities, dtype=np.float64).reshape(-1, max_horizon + 1)
        with np.errstate(divide="ignore"):
            odds = np.clip(np.log(found) - np.log1p(-found), -_FURTHEST, _FURTHEST)
        columns = np.array(self._rest, dtype=np.int64).reshape(-1, 3)
        return Said(odds, columns[:, 0], columns[:, 1].astype(np.bool_), columns[:, 2])


@dataclass(frozen=True, slots=True)
class Correction:
    """Intercept and slope of a link's log odds, with their precision.

    Parameters
    ----------
    intercept, slope
        The posterior mode.
    precision
        Of (intercept, slope): the entries (0, 0), (0, 1), (1, 1) of a symmetric matrix.
    """

    intercept: float = 0.0
    slope: float = 1.0
    precision: tuple[float, float, float] = (INTERCEPT_SPREAD**-2, 0.0, SLOPE_SPREAD**-2)

    @property
    def open(self) -> float:
        """The share of the prior's standard area that is left: 1 before any run, near 0 after many."""
        first, mixed, second = self.precision
        return min(1.0 / (INTERCEPT_SPREAD * SLOPE_SPREAD * float(np.sqrt(first * second - mixed**2))), 1.0)

    def after(self, odds: FloatArray, happened: BoolArray, weight: FloatArray) -> Correction:
        """Return the correction after what was observed.

        Parameters
        ----------
        odds : (rows,) array
            What the link gave before any correction.
        happened : (rows,) array of bool
            What came of it.
        weight : (rows,) array
            How much each row counts.
        """
        mean = np.array([self.intercept, self.slope])
        first, mixed, second = self.precision
        prior = np.array([[first, mixed], [mixed, second]])
        inputs = np.column_stack([np.ones_like(odds), odds])

        def loss(point: FloatArray) -> float:
            margins = np.where(happened, -1.0, 1.0) * (inputs @ point)
            return float(weight @ np.logaddexp(0.0, margins) + 0.5 * (point - mean) @ prior @ (point - mean))

        point, curvature = mean.copy(), prior
        for _ in range(ROUNDS):
            expected = _probability(inputs @ point)
            slope = inputs.T @ (weight * (expected - happened)) + prior @ (point - mean)
            curvature = (inputs.T * (weight * expected * (1.0 - expected))) @ inputs + prior
            step = np.linalg.solve(curvature, slope)
            while loss(point - step) > loss(point) and np.abs(step).max() > SMALLEST_STEP:
                step *= 0.5
            point = point - step
            if np.abs(step).max() < SMALLEST_STEP:
                break
        kept = np.round(curvature[[0, 0, 1], [0, 1, 1]], _DIGITS).tolist()
        return Correction(
            round(float(point[0]), _DIGITS), round(max(float(point[1]), FLATTEST), _DIGITS), (*kept,)
        )


def _probability(odds: FloatArray) -> FloatArray:
    return np.asarray(np.exp(-np.logaddexp(0.0, -odds)))


# -- in a model -------------------------------------------------------------------------------------------


def corrected(model: Model, trajectories: Iterable[Trajectory]) -> tuple[RiskScore, dict[str, Any]]:
    """Return a model's risk score with its links corrected, and what the next correction starts from.

    Parameters
    ----------
    model
        A model with a risk score; its provenance may hold the corrections made before.
    trajectories
        Runs that it was not fitted on.

    Raises
    ------
    ModelFileError
        If the corrections made before cannot be read.
    """
    found = model.risk_score
    if found is None:
        raise ValueError("a model without a risk score has no links to correct")
    before = corrections_of(model.provenance.get("recalibration"), model.max_horizon)
    current, proposal = (
        _corrected(side, said, before[subject])
        for subject, side, said in zip(
            SUBJECTS, (found.current, found.proposal), said_of(model, trajectories), strict=True
        )
    )
    result = RiskScore(traits=found.traits, current=current[0], proposal=proposal[0])
    told = zip(SUBJECTS, (current[1], proposal[1]), strict=True)
    return result, {
        subject: [[one.intercept, one.slope, *one.precision] for one in corrections]
        for subject, corrections in told
    }


def corrections_of(definition: Any, max_horizon: int) -> dict[Subject, list[Correction]]:
    """Return the corrections that a model file tells of, those of the end last; none at all where it tells of none.

    Raises
    ------
    ModelFileError
        If they cannot be read.
    """
    if definition is None:
        return {subject: [Correction()] * (max_horizon + 1) for subject in SUBJECTS}
    try:
        found = {subject: [_correction(one) for one in definition[subject]] for subject in SUBJECTS}
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"the corrections of its risk score cannot be read: {error!r}") from error
    if any(len(each) != max_horizon + 1 for each in found.values()):
        raise ModelFileError("the corrections of its risk score are more or fewer than its links")
    return found


def _correction(numbers: Any) -> Correction:
    intercept, slope, first, mixed, second = map(float, numbers)
    if not (np.isfinite([intercept, slope, first, mixed, second]).all() and slope >= FLATTEST):
        raise ValueError("a correction that no update makes")
    if not (first > 0.0 and first * second > mixed * mixed):
        raise ValueError("a precision that is none")
    return Correction(intercept, slope, (first, mixed, second))


def _corrected(side: Side, said: Said, before: list[Correction]) -> tuple[Side, list[Correction]]:
    """Return a side after what was said, and its corrections in terms of the odds before any correction."""
    weight, n_horizons = said.weight, len(side.within)
    after = [
        one.after(
            (said.odds[:, column] - one.intercept) / one.slope, said.happened(column, n_horizons), weight
        )
        for column, one in enumerate(before)
    ]
    *within, eventually = [
        _link(*each) for each in zip((*side.within, side.eventually), before, after, strict=True)
    ]
    return replace(side, within=tuple(within), eventually=eventually), after


def _link(link: Link, before: Correction, after: Correction) -> Link:
    """Return a link with one correction taken back and another made.

    What a weight is matters less, the more is known of the correction, which holds what the weights of a deployment's
    model, tools and words have in common. What differs between its tasks stays, at the new slope.
    """
    intercept, slope = (link.intercept - before.intercept) / before.slope, link.slope / before.slope
    between = link.between
    if between is not None:
        between = round(min(between * (after.slope / before.slope) ** 2, MOST_BETWEEN), _DIGITS)
    return Link(
        round(after.intercept + after.slope * intercept, _DIGITS),
        round(after.slope * slope, _DIGITS),
        between,
        link.left if between is None else round(after.open, _DIGITS),
    )
