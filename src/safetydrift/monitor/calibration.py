"""Thresholds from a false-alarm budget."""

from __future__ import annotations

from math import floor, inf, isnan, nextafter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from safetydrift.monitor.lookup import LookupMonitor
from safetydrift.states.trajectory import VIOLATED, UnknownOnset, observe

if TYPE_CHECKING:
    from collections.abc import Iterable

    from safetydrift.monitor.model import Model
    from safetydrift.monitor.policy import Policy
    from safetydrift.monitor.verdict import Verdict
    from safetydrift.states.trajectory import Trajectory


def threshold_for_budget(peaks: Iterable[float], budget: float) -> float:
    """Return the lowest threshold at which no more than a share of the given runs alarm.

    Parameters
    ----------
    peaks
        Highest probability seen in each run that did not violate.
    budget
        The share of them that may alarm, from 0 to 1.

    Returns
    -------
    float
        A run alarms when its peak is at least the threshold. 1.0 when there are no runs.

    Notes
    -----
    A description of these very runs: applied to others, the share may be higher.

    Examples
    --------
    >>> threshold_for_budget([0.1, 0.2, 0.3, 0.9], budget=0.25)
    0.30000000000000004
    """
    if not 0.0 <= budget <= 1.0:
        raise ValueError(f"a budget is a share between 0 and 1, got {budget}")
    ranked = sorted(peaks, reverse=True)
    allowed = floor(budget * len(ranked))
    if allowed == len(ranked):
        return 0.0 if ranked else 1.0
    return min(1.0, nextafter(ranked[allowed], inf))


def suggest_policy(
    model: Model, trajectories: Iterable[Trajectory], budget: float, unknown_onset: UnknownOnset
) -> Policy:
    """Return the model's policy with both thresholds set to spend a false-alarm budget on the given runs.

    Runs left out under the model's notion of violation, and runs that violate, have no say.
    """
    monitor, space = LookupMonitor(model), model.space
    standing_peaks, pending_peaks = [], []
    compared: dict[str, tuple[list[float], list[float]]] = {}
    for trajectory in trajectories:
        run = observe(trajectory, space, model.notion, unknown_onset)
        if run.left_out or run.end == VIOLATED:
            continue
        if monitor.mixes(trajectory.category):
            standing_peak, pending_peak = _walked(monitor, trajectory)
            standing_peaks.append(standing_peak)
            pending_peaks.append(pending_peak)
            continue
        category = monitor.start(trajectory.category).category
        if category not in compared:
            tables = monitor.standing(category), monitor.arriving(category)
            standing, arriving = ([_compared(one, model.policy) for one in table] for table in tables)
            compared[category] = standing, arriving
        standing, arriving = compared[category]
        standing_peaks.append(max(map(standing.__getitem__, run.states)))
        proposals = zip(run.states, trajectory.proposed, strict=False)
        pending_peaks.append(
            max((arriving[space.successors(state)[call]] for state, call in proposals), default=0.0)
        )
    return replace(
        model.policy,
        threshold=threshold_for_budget(standing_peaks, budget),
        pending_threshold=threshold_for_budget(pending_peaks, budget),
    )


def _walked(monitor: LookupMonitor, run: Trajectory) -> tuple[float, float]:
    """Return the highest figures of a run whose category nobody named: no table holds them."""
    state, policy = monitor.begin(run), monitor.policy
    standing, pending = [monitor.verdict(state)], []
    for move in run.moves():
        pending.append(monitor.foresee(state, move))
        state = monitor.follow(state, move)
        standing.append(monitor.verdict(state))
    highest = [max([_compared(one, policy) for one in found], default=0.0) for found in (standing, pending)]
    return highest[0], highest[1]


def _compared(verdict: Verdict, policy: Policy) -> float:
    """Return what a threshold is compared with; what is unknown is treated as certain to alarm."""
    compared = policy.compared(verdict.probability, verdict.high)
    return 1.0 if isnan(compared) else compared
