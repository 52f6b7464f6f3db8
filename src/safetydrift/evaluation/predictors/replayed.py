"""Any monitor of the common protocol, replayed over raw traces call by call."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from safetydrift.errors import HorizonError
from safetydrift.evaluation.scores import HORIZONS, Scores
from safetydrift.monitor.verdict import Basis

if TYPE_CHECKING:
    from collections.abc import Mapping

    from safetydrift.evaluation.cases import Case, CaseSet
    from safetydrift.monitor.protocol import Monitor
    from safetydrift.monitor.verdict import Verdict
    from safetydrift.trace import Trace


@dataclass(frozen=True, slots=True)
class ReplayedMonitor:
    """A monitor that reads calls and results by itself. It needs the traces; labelled runs hold no texts.

    Parameters
    ----------
    name
        How tables name it.
    monitor
        Any `Monitor`. Its verdicts must reach the furthest of `HORIZONS`.
    traces
        Traces by id. Runs without one are not covered.
    """

    name: str
    monitor: Monitor
    traces: Mapping[str, Trace] = field(repr=False)

    def score(self, cases: CaseSet) -> Scores:
        """Walk every covered run through the monitor.

        Raises
        ------
        HorizonError
            If a verdict does not reach far enough.
        """
        n_points, n_proposals = int(cases.first_point[-1]), int(cases.first_proposal[-1])
        scores = Scores(
            self.name,
            within=np.ones((n_points, len(HORIZONS))),
            pending=np.ones(n_proposals),
            alarm=np.zeros(n_points, dtype=np.bool_),
            pending_alarm=np.zeros(n_proposals, dtype=np.bool_),
            covered=np.array([case.run.id in self.traces for case in cases.cases], dtype=np.bool_),
        )
        for number, case in enumerate(cases.cases):
            trace = self.traces.get(case.run.id)
            if trace is not None:
                self._walk(
                    case, trace, scores, int(cases.first_point[number]), int(cases.first_proposal[number])
                )
        return scores

    def _walk(self, case: Case, trace: Trace, scores: Scores, point: int, proposal: int) -> None:
        if len(trace.steps) < case.n_points - 1:
            raise ValueError(f"trace {trace.id!r} has fewer calls than the run of that name")
        assert scores.pending is not None  # noqa: S101  # made above
        assert scores.alarm is not None  # noqa: S101
        assert scores.pending_alarm is not None  # noqa: S101
        state = self.monitor.start(case.run.category, trace.prompt)
        verdict = self.monitor.verdict(state)
        for step in range(case.n_points):
            scores.within[point + step] = [_within(verdict, horizon) for horizon in HORIZONS]
            scores.alarm[point + step] = verdict.alarm
            if step < case.n_proposals:
                ahead = self.monitor.check_pending(state, trace.steps[step].call)
                scores.pending[proposal + step] = _within(ahead, ahead.horizon)
                scores.pending_alarm[proposal + step] = ahead.alarm
            if step + 1 < case.n_points:
                state, verdict = self.monitor.check(state, trace.steps[step])


def _within(verdict: Verdict, horizon: int) -> float:
    if verdict.basis is Basis.UNSEEN:
        return 1.0
    if len(verdict.within) <= horizon:
        raise HorizonError(
            f"predictors are compared up to {HORIZONS[-1]} steps; a verdict ends before {horizon}"
        )
    return verdict.within[horizon]
