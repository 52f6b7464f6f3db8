"""Our own monitors as predictors: fitted on the training runs, or read from a model file.

Scores are what `safetydrift.evaluation.replay` says, run by run; where a model knows nothing the probability is 1, as
in a prediction file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from safetydrift.errors import HorizonError
from safetydrift.evaluation.predictors.walks import projected
from safetydrift.evaluation.replay import replay
from safetydrift.evaluation.scores import HORIZONS, Fixed, Scores, cautious
from safetydrift.monitor.fitting import fit_model
from safetydrift.monitor.foresight import monitor_for
from safetydrift.monitor.model import AGGREGATE
from safetydrift.monitor.settings import FitSettings
from safetydrift.states.task_words import task_digest

if TYPE_CHECKING:
    from safetydrift.effects.catalogue import Catalogue
    from safetydrift.evaluation.cases import CaseSet
    from safetydrift.monitor.lookup import LookupMonitor
    from safetydrift.monitor.model import Model
    from safetydrift.states.space import StateSpace


@dataclass(frozen=True, slots=True)
class MonitorScores:
    """A fitted monitor, asked at every point and proposal of recorded runs.

    Parameters
    ----------
    name
        How tables name it.
    monitor
        The monitor; alarms are those of its policy.
    recorded
        The space in which the runs to score are given, if it is not the model's own.
    told
        Whether it is told the category of a run; without, it has to find out.
    in_sample, trained_on
        As `compare` asks of what was fitted elsewhere: whether it saw tasks tried, and which (None: not known).

    Raises
    ------
    HorizonError
        If the model's tables end before the furthest of `HORIZONS`.
    """

    name: str
    monitor: LookupMonitor = field(repr=False)
    recorded: StateSpace | None = None
    told: bool = True
    in_sample: bool = False
    trained_on: frozenset[tuple[str, str, str]] | None = None

    def __post_init__(self) -> None:
        """Refuse a model that cannot be compared."""
        reach = self.monitor.model.max_horizon
        if reach < HORIZONS[-1]:
            raise HorizonError(
                f"predictors are compared up to {HORIZONS[-1]} steps, the model's tables end at {reach}; "
                f"fit it with a maximum horizon of {HORIZONS[-1]} or more"
            )

    def score(self, cases: CaseSet) -> Scores:
        """Score every point and proposal."""
        space = self.monitor.model.space
        within: list[list[float]] = []
        alarm, pending, pending_alarm = [], [], []
        for case in projected(cases, self.recorded or space, space).cases:
            run = case.run if self.told else replace(case.run, category=AGGREGATE)
            found = replay(run, self.monitor)
            for verdict in found.current[: case.n_points]:
                within.append([cautious(verdict, horizon) for horizon in HORIZONS])
                alarm.append(verdict.alarm)
            for verdict in found.pending[: case.n_proposals]:
                pending.append(cautious(verdict, verdict.horizon))
                pending_alarm.append(verdict.alarm)
        return Scores(
            self.name,
            np.array(within).reshape(-1, len(HORIZONS)),
            np.array(pending),
            np.array(alarm, dtype=np.bool_),
            np.array(pending_alarm, dtype=np.bool_),
        )


@dataclass(frozen=True, slots=True)
class MonitorPredictor:
    """A model fitted on the training runs by `fit_model`: the product itself, and every variant its settings allow.

    Parameters
    ----------
    name
        How tables name it.
    space, catalogue, settings
        What `fit_model` takes.
    recorded
        The space in which the runs are given, if it is another one.
    horizon, threshold
        The policy; by default the threshold spends the false-alarm budget of the settings on the training runs.
    by_category
        Whether each category has its own chain; without, all runs share one.
    told
        Whether it is told the categories of the runs it scores.
    """

    name: str
    space: StateSpace
    catalogue: Catalogue = field(repr=False)
    settings: FitSettings = field(default_factory=FitSettings)
    recorded: StateSpace | None = None
    horizon: int = 5
    threshold: float | None = None
    by_category: bool = True
    told: bool = True

    def fit(self, cases: CaseSet) -> MonitorScores:
        """Fit the model.

        Raises
        ------
        ChainError
            If no run can be used, or a risk score is asked for and no run is violated, or none is not.
        """
        runs = [case.run for case in projected(cases, self.recorded or self.space, self.space).cases]
        if not self.by_category:
            runs = [replace(run, category=AGGREGATE) for run in runs]
        model, _ = fit_model(
            runs, self.space, self.catalogue, self.settings, horizon=self.horizon, threshold=self.threshold
        )
        return MonitorScores(self.name, monitor_for(model), self.recorded, self.told)


def model_predictor(name: str, model: Model, cases: CaseSet, recorded: StateSpace) -> Fixed:
    """Return a model as a predictor, having looked which of the tasks tried it was fitted on.

    Parameters
    ----------
    name
        How tables name it.
    cases
        The runs it may be tried on.
    recorded
        The space of these runs.

    Raises
    ------
    HorizonError
        If the model's tables end too early to be compared.
    """
    said = model.provenance.get("tasks")
    seen: int | None = None
    if isinstance(said, list | tuple):
        fitted = frozenset(said)
        seen = sum(task_digest(*task) in fitted for task in cases.tasks)
    none_seen: frozenset[tuple[str, str, str]] | None = frozenset() if seen == 0 else None
    scores = MonitorScores(name, monitor_for(model), recorded, in_sample=bool(seen), trained_on=none_seen)
    return Fixed(name, scores)
