"""Monitors that look at more than a state: scored by walking every run, since no table holds their answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from safetydrift.evaluation.predictors.walks import projected
from safetydrift.evaluation.scores import HORIZONS, Scores
from safetydrift.monitor.verdict import Basis
from safetydrift.monitor.walk import walk

if TYPE_CHECKING:
    from safetydrift.evaluation.cases import CaseSet
    from safetydrift.monitor.lookup import LookupMonitor
    from safetydrift.monitor.verdict import Verdict
    from safetydrift.states.space import StateSpace


@dataclass(frozen=True, slots=True)
class WalkedScores:
    """A monitor of any kind, asked at every point and proposal of recorded runs.

    Parameters
    ----------
    name
        How tables name it.
    monitor
        The monitor; alarms are those of its policy.
    recorded
        The space in which the runs to score are given, if it is not the model's own.
    """

    name: str
    monitor: LookupMonitor = field(repr=False)
    recorded: StateSpace | None = None

    def score(self, cases: CaseSet) -> Scores:
        """Score every point and proposal."""
        monitor, space = self.monitor, self.monitor.model.space
        cases = projected(cases, self.recorded or space, space)
        within: list[list[float]] = []
        alarm, pending, pending_alarm = [], [], []
        for case in cases.cases:
            for point, (state, move) in enumerate(walk(monitor, case.run, case.n_points)):
                standing = monitor.verdict(state)
                within.append([_within(standing, horizon) for horizon in HORIZONS])
                alarm.append(standing.alarm)
                if move is not None and point < case.n_proposals:
                    proposed = monitor.foresee(state, move)
                    pending.append(_within(proposed, proposed.horizon))
                    pending_alarm.append(proposed.alarm)
        return Scores(
            self.name,
            np.array(within).reshape(-1, len(HORIZONS)),
            np.array(pending),
            np.array(alarm, dtype=np.bool_),
            np.array(pending_alarm, dtype=np.bool_),
        )


def _within(verdict: Verdict, horizon: int) -> float:
    """Return a probability; what is unknown counts as certain, as in a prediction file."""
    return 1.0 if verdict.basis is Basis.UNSEEN else verdict.within[horizon]
