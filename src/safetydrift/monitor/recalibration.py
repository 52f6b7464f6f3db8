"""What a deployment's own runs say about the probabilities of a hazard: one pass, two numbers per link.

A hazard that was fitted elsewhere ranks runs of a new model or a new place well enough, but its probabilities may be
too high or too low there. For every link, standing and proposed, the log odds ``z`` that it gives are corrected to
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
from safetydrift.monitor.hazard import LinkSpread
from safetydrift.monitor.intervals import MOST_BETWEEN
from safetydrift.monitor.walk import walk
from safetydrift.states.trajectory import VIOLATED, observe

if TYPE_CHECKING:
    from collections.abc import Iterable

    from safetydrift.markov._arrays import BoolArray, FloatArray, IntArray
    from safetydrift.monitor.hazard import Hazard, Spread
    from safetydrift.monitor.model import Model
    from safetydrift.states.trajectory import Trajectory

INTERCEPT_SPREAD, SLOPE_SPREAD = 1.0, 0.3
"""Standard deviations of the prior."""

ROWS_PER_RUN = 8.0
"""As how many independent observations the rows of one run count together, at most."""

FLATTEST = 0.1
"""Slopes are never below: a hazard that ranks wrongly is flattened, not turned round."""

ROUNDS = 50
SMALLEST_STEP = 1e-9
_FURTHEST = 16.0
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Said:
    """What a hazard said along runs, and what came of it.

    Parameters
    ----------
    odds : (rows, horizons) array
        Log odds of a violation within 1, 2, .. steps; for standings, in the end in one more column.
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
    """Return what a model with a hazard says along runs: of where they stand, and of what they propose."""
    monitor = monitor_for(model)
    never = np.iinfo(np.int64).max
    sides: tuple[list[tuple[float, ...]], list[tuple[float, ...]]] = ([], [])
    rest: tuple[list[tuple[int, bool, int]], list[tuple[int, bool, int]]] = ([], [])
    for number, run in enumerate(trajectories):
        seen = observe(run, model.space, model.notion, model.unknown_onset)
        for step, (state, move) in enumerate(walk(monitor, run, len(seen.states))):
            left = never if seen.onset is None else seen.onset - step
            verdict = monitor.verdict(state)
            sides[0].append((*verdict.within[1:], verdict.eventually))
            rest[0].append((left, seen.end == VIOLATED, number))
            if move is not None:
                sides[1].append(monitor.foresee(state, move).within[1:])
                rest[1].append((left, seen.end == VIOLATED, number))
    widths = model.max_horizon + 1, model.max_horizon
    return _said(sides[0], rest[0], widths[0]), _said(sides[1], rest[1], widths[1])


def _said(probabilities: list[tuple[float, ...]], rest: list[tuple[int, bool, int]], width: int) -> Said:
    found = np.array(probabilities, dtype=np.float64).reshape(-1, width)
    with np.errstate(divide="ignore"):
        odds = np.clip(np.log(found) - np.log1p(-found), -_FURTHEST, _FURTHEST)
    columns = np.array(rest, dtype=np.int64).reshape(-1, 3)
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


def corrected(model: Model, trajectories: Iterable[Trajectory]) -> tuple[Hazard, dict[str, Any]]:
    """Return a model's hazard with its links corrected, and what the next correction starts from.

    Parameters
    ----------
    model
        A model with a hazard; its provenance may hold the corrections made before.
    trajectories
        Runs that it was not fitted on.

    Raises
    ------
    ModelFileError
        If the corrections made before cannot be read.
    """
    hazard = model.hazard
    if hazard is None:
        raise ValueError("a model without a hazard has no links to correct")
    standing, proposal = said_of(model, trajectories)
    n = model.max_horizon
    before = corrections_of(model.provenance.get("recalibration"), n)
    after = {
        "standing": _corrections(standing, before["standing"], n),
        "proposal": _corrections(proposal, before["proposal"], n),
    }
    links = {
        "standing": (*hazard.within, hazard.eventually),
        "proposal": hazard.proposed,
    }
    changed = {
        side: tuple(_link(*found) for found in zip(links[side], before[side], after[side], strict=True))
        for side in links
    }
    result = replace(
        hazard,
        within=changed["standing"][:n],
        eventually=changed["standing"][n],
        proposed=changed["proposal"],
        spread=None if hazard.spread is None else _narrowed(hazard.spread, before, after),
    )
    return result, {
        side: [[one.intercept, one.slope, *one.precision] for one in corrections]
        for side, corrections in after.items()
    }


def corrections_of(definition: Any, max_horizon: int) -> dict[str, list[Correction]]:
    """Return the corrections that a model file tells of; none at all where it tells of none.

    Raises
    ------
    ModelFileError
        If they cannot be read.
    """
    lengths = {"standing": max_horizon + 1, "proposal": max_horizon}
    if definition is None:
        return {side: [Correction()] * length for side, length in lengths.items()}
    try:
        found = {side: [_correction(one) for one in definition[side]] for side in lengths}
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"the corrections of its hazard cannot be read: {error!r}") from error
    if any(len(found[side]) != length for side, length in lengths.items()):
        raise ModelFileError("the corrections of its hazard are more or fewer than its links")
    return found


def _correction(numbers: Any) -> Correction:
    intercept, slope, first, mixed, second = map(float, numbers)
    if not (np.isfinite([intercept, slope, first, mixed, second]).all() and slope >= FLATTEST):
        raise ValueError("a correction that no update makes")
    if not (first > 0.0 and first * second > mixed * mixed):
        raise ValueError("a precision that is none")
    return Correction(intercept, slope, (first, mixed, second))


def _corrections(said: Said, before: list[Correction], n_horizons: int) -> list[Correction]:
    """Return the corrections after what was said, in terms of the odds before any correction."""
    weight = said.weight
    return [
        one.after(
            (said.odds[:, column] - one.intercept) / one.slope, said.happened(column, n_horizons), weight
        )
        for column, one in enumerate(before)
    ]


def _narrowed(
    spread: Spread, before: dict[str, list[Correction]], after: dict[str, list[Correction]]
) -> Spread:
    """Return what is not known after a correction.

    What a weight is matters less, the more is known of the correction, which holds what the weights of a deployment's
    model, tools and words have in common. What differs between its tasks stays, at the new slope.
    """
    links = {"standing": (*spread.within, spread.eventually), "proposal": spread.proposed}
    found = {
        side: tuple(
            LinkSpread(
                round(min(one.between * (now.slope / then.slope) ** 2, MOST_BETWEEN), _DIGITS),
                round(now.open, _DIGITS),
            )
            for one, then, now in zip(links[side], before[side], after[side], strict=True)
        )
        for side in links
    }
    standing = found["standing"]
    return replace(spread, within=standing[:-1], eventually=standing[-1], proposed=found["proposal"])


def _link(link: tuple[float, float], before: Correction, after: Correction) -> tuple[float, float]:
    """Return a link with one correction taken back and another made."""
    intercept, slope = (link[0] - before.intercept) / before.slope, link[1] / before.slope
    return (
        round(after.intercept + after.slope * intercept, _DIGITS),
        round(after.slope * slope, _DIGITS),
    )
