"""Monitors that look at more than a state: scored by walking every run, since no table holds their answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from safetydrift.evaluation.predictors.lookup import MonitorScores
from safetydrift.evaluation.predictors.walks import projected
from safetydrift.evaluation.scores import HORIZONS, Scores
from safetydrift.monitor.fitting import fit_model
from safetydrift.monitor.foresight import ForesightMonitor, monitor_for

if TYPE_CHECKING:
    from safetydrift.effects.catalogue import Catalogue
    from safetydrift.evaluation.cases import CaseSet
    from safetydrift.evaluation.scores import FittedPredictor
    from safetydrift.monitor.model import Model
    from safetydrift.monitor.settings import FitSettings
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
    monitor: ForesightMonitor = field(repr=False)
    recorded: StateSpace | None = None

    def score(self, cases: CaseSet) -> Scores:
        """Score every point and proposal."""
        monitor, space = self.monitor, self.monitor.model.space
        cases = projected(cases, self.recorded or space, space)
        within: list[tuple[float, ...]] = []
        alarm, pending, pending_alarm = [], [], []
        for case in cases.cases:
            state = monitor.begin(case.run)
            moves = case.run.moves()
            for point in range(case.n_points):
                standing = monitor.verdict(state)
                within.append(tuple([standing.within[horizon] for horizon in HORIZONS]))
                alarm.append(standing.alarm)
                if point < case.n_proposals:
                    move = next(moves)
                    proposed = monitor.foresee(state, move)
                    pending.append(proposed.within[proposed.horizon])
                    pending_alarm.append(proposed.alarm)
                    state = monitor.follow(state, move)
        return Scores(
            self.name,
            np.array(within).reshape(-1, len(HORIZONS)),
            np.array(pending),
            np.array(alarm, dtype=np.bool_),
            np.array(pending_alarm, dtype=np.bool_),
        )


@dataclass(frozen=True, slots=True)
class ForesightPredictor:
    """The chain with its hazard, fitted on the training runs: the shipped model's way of predicting.

    Parameters
    ----------
    name
        How tables name it.
    space, catalogue, settings
        What `fit_model` takes; the settings ask for a hazard.
    recorded
        The space in which the runs are given, if it is another one.
    """

    name: str
    space: StateSpace
    catalogue: Catalogue = field(repr=False)
    settings: FitSettings
    recorded: StateSpace | None = None

    def fit(self, cases: CaseSet) -> FittedPredictor:
        """Fit the model.

        Raises
        ------
        ChainError
            If no run is violated, or none is not.
        """
        runs = [case.run for case in projected(cases, self.recorded or self.space, self.space).cases]
        model, _ = fit_model(runs, self.space, self.catalogue, self.settings)
        return model_scores(self.name, model, self.recorded)


def model_scores(name: str, model: Model, recorded: StateSpace | None) -> MonitorScores | WalkedScores:
    """Return what scores with a fitted model: in bulk where tables are all there is, by walking where they are not.

    Raises
    ------
    HorizonError
        If the model's tables end before the furthest of `HORIZONS`.
    """
    monitor = monitor_for(model)
    if isinstance(monitor, ForesightMonitor):
        return WalkedScores(name, monitor, recorded)
    return MonitorScores(name, monitor, recorded)
