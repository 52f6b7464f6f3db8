"""The highest figure of each run, and the thresholds that spend a budget of alarms on them."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, isnan, nan
from typing import TYPE_CHECKING

import numpy as np

from safetydrift.monitor.verdict import Basis
from safetydrift.monitor.walk import walk
from safetydrift.states.trajectory import VIOLATED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from safetydrift.markov._arrays import BoolArray, FloatArray, IntArray
    from safetydrift.monitor.lookup import LookupMonitor
    from safetydrift.monitor.policy import Policy
    from safetydrift.monitor.verdict import Verdict
    from safetydrift.states.trajectory import ObservedRun, Trajectory

ALWAYS, NEVER = 2.0, -1.0
"""The figures of runs that alarm at every threshold, and at none."""

_PLACES = 1_000_000
"""Thresholds are given to six places."""


@dataclass(frozen=True, slots=True)
class Maxima:
    """The highest figure of each run that a threshold would have been compared with.

    Parameters
    ----------
    current, proposal : (runs,) arrays
        Of where the run stood before the violating call, and of the calls proposed up to and with it.
    violated : (runs,) array of bool
        Whether the run ends violated.
    task : (runs,) array of int
        Number of the run's task.
    """

    current: FloatArray
    proposal: FloatArray
    violated: BoolArray
    task: IntArray

    @classmethod
    def along(cls, monitor: LookupMonitor, runs: Iterable[tuple[Trajectory, ObservedRun]]) -> Maxima:
        """Return what a monitor says, at most, along runs.

        Parameters
        ----------
        runs
            Each with what is observed of it; none of them is left out.
        """
        policy = monitor.policy
        rows: list[tuple[float, float, bool, int]] = []
        numbers: dict[tuple[str, str, str], int] = {}
        for run, seen in runs:
            current = proposal = NEVER
            for state, move in walk(monitor, run, len(seen.states)):
                current = max(current, _compared(monitor.verdict(state), policy))
                if move is not None:
                    proposal = max(proposal, _compared(monitor.foresee(state, move), policy))
            task = numbers.setdefault((run.source, run.category, run.task), len(numbers))
            rows.append((current, proposal, seen.end == VIOLATED, task))
        columns = [np.array(column) for column in zip(*rows, strict=True)] or [np.zeros(0)] * 4
        return cls(columns[0], columns[1], columns[2].astype(np.bool_), columns[3].astype(np.int64))

    def share_unknown(self) -> float:
        """Return the share of the runs without a violation that alarm at every threshold; nan without such runs."""
        safe = ~self.violated
        return float(np.mean(self.current[safe] >= ALWAYS)) if safe.any() else nan

    def thresholds(self, current: float, proposal: float) -> tuple[float, float]:
        """Return the lowest thresholds at which at most these shares of the runs without a violation alarm."""
        safe = ~self.violated
        return threshold_for(self.current[safe], current), threshold_for(self.proposal[safe], proposal)


def threshold_for(maxima: FloatArray, budget: float) -> float:
    """Return the lowest threshold, to six places, that at most a share of the given runs reach.

    Parameters
    ----------
    maxima
        The highest figure of each run.
    budget
        The share of them that may alarm, from 0 to 1.

    Returns
    -------
    float
        A run alarms when its figure is at least the threshold. 1.0 when there are no runs; above 1, at which no known
        probability alarms, where too many runs came to certainty.

    Notes
    -----
    A description of these very runs: applied to others, the share may be higher.

    Examples
    --------
    >>> threshold_for(np.array([0.1, 0.2, 0.3, 0.9]), budget=0.25)
    0.300001
    """
    if not 0.0 <= budget <= 1.0:
        raise ValueError(f"a budget is a share between 0 and 1, got {budget}")
    if not len(maxima):
        return 1.0
    allowed = floor(budget * len(maxima) + 1e-9)  # of 100 runs, 29 % are 29
    if allowed == len(maxima):
        return 0.0
    first_silent = min(max(float(np.sort(maxima)[::-1][allowed]), 0.0), 1.0)
    return (floor(first_silent * _PLACES) + 1) / _PLACES


def _compared(verdict: Verdict, policy: Policy) -> float:
    """Return what a threshold is compared with."""
    if verdict.basis is Basis.VIOLATED:
        return ALWAYS
    compared = policy.compared(verdict.probability, verdict.high)
    if verdict.basis is Basis.UNSEEN or isnan(compared):
        return ALWAYS if policy.alarm_unseen else NEVER
    return compared
