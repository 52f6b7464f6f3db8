"""Thresholds with a guarantee for new tasks, after Learn-then-Test; from costs; for a wanted recall.

Runs of one task are alike, so it is tasks that are drawn anew: what is bounded is the mean, over tasks, of the share of
a task's runs that go wrong. Write ``L_i(t)`` for that share in task ``i`` at threshold ``t`` (non-violating runs that
alarm, or violating runs that do not), which is between 0 and 1. For every threshold of a grid fixed beforehand, the
hypothesis that ``E L(t)`` exceeds the limit ``a`` is tested by betting against it, task after task in a random order::

    K_n = product of (1 + b_i (a - L_i))

The bets ``b_i`` depend on the tasks before only, so that ``K_n`` has a mean of at most one if the hypothesis is true,
and is seldom ``1 / level`` or more; they grow with the distance of the losses so far from the limit and shrink with
their variance, so that tasks of many runs, whose shares vary little, are used for what they are worth. ``K_n`` is
averaged over a few orders, which keeps its mean. The thresholds are tested one after the other, from the one at which
least can go wrong, and the first that is not rejected ends the walk (fixed-sequence testing: the error level is spent
once). All of them up to there keep the limit with the stated confidence, if the tasks to come are drawn as those looked
at were. Nothing is assumed of the runs within a task.

Literature
----------
A. Angelopoulos, S. Bates, E. Candes, M. Jordan, L. Lei, "Learn then Test: calibrating predictive algorithms to achieve
risk control", 2021. I. Waudby-Smith, A. Ramdas, "Estimating means of bounded random variables by betting", JRSS B 86
(2024), for the bets.
"""

from __future__ import annotations

from math import log, log1p
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from safetydrift.errors import CalibrationError, LeakageError
from safetydrift.monitor.foresight import monitor_for
from safetydrift.monitor.guarantee import COSTS, FALSE_ALARMS, Goal, Promise, Subject, as_provenance
from safetydrift.monitor.maxima import ALWAYS, NEVER, Maxima
from safetydrift.states.task_words import task_digest
from safetydrift.states.trajectory import observe

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from safetydrift.markov._arrays import BoolArray, FloatArray, IntArray
    from safetydrift.monitor.model import Model
    from safetydrift.states.trajectory import ObservedRun, Trajectory

_FURTHEST = 9 * 32
GRID = np.round(1.0 / (1.0 + np.exp(-np.arange(_FURTHEST, -_FURTHEST - 1, -1) / 32.0)), 6)
"""The thresholds that are tried, the strictest first; fixed, whatever the runs are."""


def maxima_of(model: Model, trajectories: Iterable[Trajectory]) -> Maxima:
    """Return what a model says, at most, along runs that it was not fitted on.

    Runs that cannot be used under the model's notion of violation have no say.

    Raises
    ------
    LeakageError
        If the model was fitted on one of their tasks.
    CalibrationError
        If the model does not say on which tasks it was fitted, or no run can be used.
    """
    fitted_on = model.provenance.get("tasks")
    if fitted_on is None:
        raise CalibrationError(
            "the model does not say on which tasks it was fitted, so no run is known to be new to it; fit it again"
        )
    found = Maxima.along(monitor_for(model), _new_runs(model, frozenset(fitted_on), trajectories))
    if not len(found.task):
        raise CalibrationError("none of the runs can be used under the model's notion of violation")
    return found


def _new_runs(
    model: Model, fitted_on: frozenset[str], trajectories: Iterable[Trajectory]
) -> Iterator[tuple[Trajectory, ObservedRun]]:
    known: set[tuple[str, str, str]] = set()
    for run in trajectories:
        seen = observe(run, model.space, model.notion, model.unknown_onset)
        if seen.left_out:
            continue
        task = (run.source, run.category, run.task)
        if task not in known and task_digest(*task) in fitted_on:
            raise LeakageError("task", (task,), "the runs the model was fitted on")
        known.add(task)
        yield run, seen


def calibrate(model: Model, trajectories: Iterable[Trajectory], goal: Goal) -> Model:
    """Return a model with thresholds chosen for a goal, on runs it was not fitted on.

    Raises
    ------
    LeakageError
        If the model was fitted on one of their tasks.
    CalibrationError
        If the goal cannot be reached with these runs.
    """
    return with_thresholds(model, maxima_of(model, trajectories), goal)


def with_thresholds(model: Model, maxima: Maxima, goal: Goal, *, cross_fitted: bool = False) -> Model:
    """Return a model with thresholds chosen for a goal, and what is promised about them.

    Raises
    ------
    CalibrationError
        If the goal cannot be reached with these runs.
    """
    scores: dict[Subject, FloatArray] = {"current": maxima.current, "proposal": maxima.proposal}
    horizon = model.policy.horizon
    promises = {
        subject: promise(found, maxima, goal, subject=subject, horizon=horizon, cross_fitted=cross_fitted)
        for subject, found in scores.items()
    }
    policy = replace(
        model.policy,
        threshold=promises["current"].threshold,
        pending_threshold=promises["proposal"].threshold,
    )
    return replace(model, policy=policy, provenance={**model.provenance, **as_provenance(promises)})


def promise(
    scores: FloatArray,
    maxima: Maxima,
    goal: Goal,
    *,
    subject: Subject,
    horizon: int,
    cross_fitted: bool = False,
) -> Promise:
    """Choose one threshold.

    Raises
    ------
    CalibrationError
        If the goal cannot be reached with these runs.
    """
    safe, violated = ~maxima.violated, maxima.violated
    alarmed = shares(scores, maxima.task, safe)
    caught = shares(scores, maxima.task, violated)
    cost = None
    if goal.aim == COSTS:
        costs = _costs(scores, maxima, goal)
        place = int(np.argmin(costs))
        cost, tasks, runs = float(costs[place]), len(np.unique(maxima.task)), len(scores)
    elif goal.aim == FALSE_ALARMS:
        place, tasks, runs = kept_until(alarmed, goal.limit, goal, subject), len(alarmed), int(safe.sum())
    else:
        missed = 1.0 - caught[:, ::-1]
        place = len(GRID) - 1 - kept_until(missed, 1.0 - goal.limit, goal, subject)
        tasks, runs = len(caught), int(violated.sum())
    return Promise(
        goal,
        subject,
        horizon=horizon,
        threshold=float(GRID[place]),
        tasks=tasks,
        runs=runs,
        false_alarms=_mean(alarmed, place),
        recall=_mean(caught, place),
        cost=cost,
        cross_fitted=cross_fitted,
    )


def shares(scores: FloatArray, task: IntArray, chosen: BoolArray) -> FloatArray:
    """Return the share of each task's chosen runs that alarm, by threshold: (tasks with such runs, len(GRID))."""
    found, place = np.unique(task[chosen], return_inverse=True)
    if not len(found):
        return np.zeros((0, len(GRID)))
    first = np.searchsorted(-GRID, -scores[chosen], side="left")  # the first threshold that is reached
    counts = np.zeros((len(found), len(GRID) + 1))
    np.add.at(counts, (place, first), 1.0)
    alarmed: FloatArray = np.cumsum(counts[:, :-1], axis=1) / counts.sum(axis=1, keepdims=True)
    return alarmed


def kept_until(losses: FloatArray, limit: float, goal: Goal, subject: str = "runs") -> int:
    """Return the last place of a sequence at which the limit is kept with the confidence of a goal.

    Parameters
    ----------
    losses : (tasks, places) array
        Shares that went wrong, never falling from place to place.
    limit
        Their mean over new tasks is to be at most this.

    Raises
    ------
    CalibrationError
        If it is not kept at the first place.
    """
    wanted, place = -log(1.0 - goal.confidence), 0
    changes = np.flatnonzero((losses[:, 1:] != losses[:, :-1]).any(axis=0)) + 1
    starts = np.concatenate([[0], changes])  # places where nothing changed need no test of their own
    for first in range(0, len(starts) if len(losses) else 0, _BLOCK):
        block = starts[first : first + _BLOCK]
        kept = log_winnings(losses[:, block], limit) >= wanted - _ROUNDING
        if not kept.all():
            place = int(block[int(np.argmin(kept))])
            break
        place = losses.shape[1]
    if place:
        return place - 1
    fewest, what = fewest_tasks(limit, goal.confidence), _about(goal)
    if len(losses) < fewest:
        raise CalibrationError(
            f"{what} with confidence {goal.confidence:g} needs at least {fewest:,} tasks with such runs, even if "
            f"nothing goes wrong in any; there are {len(losses):,}"
        )
    raise CalibrationError(
        f"{what} with confidence {goal.confidence:g} is out of reach by the {subject} threshold on these "
        f"{len(losses):,} tasks: at the safest threshold {losses[:, 0].mean():.1%} go wrong"
    )


def fewest_tasks(limit: float, confidence: float) -> int:
    """Return how many tasks a goal needs if nothing goes wrong in any of them.

    Examples
    --------
    >>> fewest_tasks(0.05, 0.95), fewest_tasks(0.01, 0.95)
    (65, 332)
    """
    wanted, won, n = -log(1.0 - confidence), 0.0, 0
    mean, variance = _PRIOR_MEAN * limit, _PRIOR_VARIANCE * limit * (1.0 - limit)
    squares = variance
    while won < wanted - _ROUNDING:
        won += log1p(float(_bet(np.array(mean), np.array(squares / (n + 1.0)), limit)) * limit)
        n += 1
        mean = _PRIOR_MEAN * limit / (n + 1.0)
        squares += mean**2
    return n


def log_winnings(losses: FloatArray, limit: float) -> FloatArray:
    """Return the logarithm of what betting against *the mean exceeds the limit* has won, by column.

    Parameters
    ----------
    losses : (tasks, places) array
        Between 0 and 1; the tasks independent of each other.

    Examples
    --------
    >>> losses = np.zeros((200, 2))
    >>> losses[:40, 1] = 1.0
    >>> np.exp(log_winnings(losses, 0.1)) > 20
    array([ True, False])
    """
    n, rng = len(losses), np.random.default_rng(_ORDER_SEED)
    seen = np.arange(1.0, n + 1.0)[:, None]
    mean, variance = _PRIOR_MEAN * limit, _PRIOR_VARIANCE * limit * (1.0 - limit)
    won = []
    for _ in range(_ORDERS):
        ordered = losses[rng.permutation(n)]
        means = (mean + np.cumsum(ordered, axis=0)) / (seen + 1.0)
        variances = (variance + np.cumsum((ordered - means) ** 2, axis=0)) / (seen + 1.0)
        means, variances = (
            np.vstack([np.full((1, losses.shape[1]), first), later[:-1]])
            for first, later in ((mean, means), (variance, variances))
        )
        won.append(np.log1p(_bet(means, variances, limit) * (limit - ordered)).sum(axis=0))
    result: FloatArray = np.logaddexp.reduce(won, axis=0) - log(_ORDERS)
    return result


def _bet(means: FloatArray, variances: FloatArray, limit: float) -> FloatArray:
    """Return how much is bet after losses of some mean and variance: never so much that one loss ruins."""
    distance = limit - means
    bets: FloatArray = np.clip(distance / (variances + distance**2), 0.0, _BOLDEST / (1.0 - limit))
    return bets


_BLOCK = 64
_ORDERS, _ORDER_SEED = 16, 20260401
_PRIOR_MEAN, _PRIOR_VARIANCE = 0.5, 0.5
_BOLDEST = 0.9
_ROUNDING = 1e-9


def _costs(scores: FloatArray, maxima: Maxima, goal: Goal) -> FloatArray:
    """Return the mean cost of a run by threshold; every task weighs the same."""
    every = np.ones(len(scores), dtype=np.bool_)
    violating = shares(np.where(maxima.violated, ALWAYS, NEVER), maxima.task, every)[:, 0]
    caught = shares(np.where(maxima.violated, scores, NEVER), maxima.task, every)
    alarmed = shares(np.where(maxima.violated, NEVER, scores), maxima.task, every)
    costs: FloatArray = (goal.miss * (violating[:, None] - caught) + goal.false_alarm * alarmed).mean(axis=0)
    return costs


def _mean(rows: FloatArray, place: int) -> float | None:
    return round(float(rows[:, place].mean()), 6) if len(rows) else None


def _about(goal: Goal) -> str:
    if goal.aim == FALSE_ALARMS:
        return f"at most {goal.limit:g} of non-violating runs alarmed"
    return f"at least {goal.limit:g} of violating runs alarmed in time"
