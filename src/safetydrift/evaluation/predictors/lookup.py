"""Our own monitors: any fitted model, scored through its tables in bulk.

What is returned is exactly what `safetydrift.evaluation.replay` says run by run; where a model knows nothing the
probability is 1, as in a prediction file.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from msgspec import structs

from safetydrift.errors import HorizonError
from safetydrift.evaluation.cases import CaseSet
from safetydrift.evaluation.predictors.walked import WalkedScores
from safetydrift.evaluation.predictors.walks import join, projected, so_far, walks
from safetydrift.evaluation.scores import HORIZONS, Scores
from safetydrift.monitor.fitting import fit_model
from safetydrift.monitor.lookup import LookupMonitor
from safetydrift.monitor.model import AGGREGATE
from safetydrift.monitor.settings import FitSettings
from safetydrift.monitor.verdict import Basis
from safetydrift.states.trajectory import Notion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from safetydrift.effects.catalogue import Catalogue
    from safetydrift.evaluation.predictors.walks import Walks
    from safetydrift.evaluation.scores import FittedPredictor, Predictor
    from safetydrift.markov._arrays import BoolArray, FloatArray, IntArray
    from safetydrift.monitor.verdict import Verdict
    from safetydrift.states.space import StateSpace


@dataclass(frozen=True, slots=True)
class MonitorScores:
    """A monitor that has been fitted, or was read from a model file.

    Parameters
    ----------
    name
        How tables name it.
    monitor
        The monitor; alarms are those of its policy.
    recorded
        The space in which the runs to score are given, if it is not the model's own.

    Raises
    ------
    HorizonError
        If the model's tables end before the furthest of `HORIZONS`.
    """

    name: str
    monitor: LookupMonitor = field(repr=False)
    recorded: StateSpace | None = None

    def __post_init__(self) -> None:
        """Refuse a model that cannot be compared."""
        reach = self.monitor.model.max_horizon
        if reach < HORIZONS[-1]:
            raise HorizonError(
                f"predictors are compared up to {HORIZONS[-1]} steps, the model's tables end at {reach}; "
                f"fit it with a maximum horizon of {HORIZONS[-1]} or more"
            )

    def score(self, cases: CaseSet) -> Scores:
        """Score every point and proposal by the tables; runs of categories that are mixed are walked one by one."""
        model = self.monitor.model
        if any(self.monitor.mixes(category) for category in set(_categories(cases))):
            return WalkedScores(self.name, self.monitor, self.recorded).score(cases)
        space = model.space
        cases = projected(cases, self.recorded or space, space)
        walk = walks(cases)
        standing, arriving = self._positions(cases, walk)
        categories = [category if category in model.tables else AGGREGATE for category in _categories(cases)]
        names = sorted(set(categories))
        of_run = np.array([names.index(category) for category in categories], dtype=np.int64)
        here, ahead = of_run[cases.run_of_point], of_run[cases.run_of_proposal]
        now = [_Table.of(self.monitor.standing(name)) for name in names]
        then = [_Table.of(self.monitor.arriving(name)) for name in names]
        within = np.ones((len(standing), len(HORIZONS)))
        alarm = np.zeros(len(standing), dtype=np.bool_)
        pending, pending_alarm = np.ones(len(arriving)), np.zeros(len(arriving), dtype=np.bool_)
        for number in range(len(names)):
            mine, next_ones = here == number, ahead == number
            within[mine] = now[number].within[standing[mine]]
            alarm[mine] = now[number].alarm[standing[mine]]
            pending[next_ones] = then[number].risk[arriving[next_ones]]
            pending_alarm[next_ones] = then[number].alarm[arriving[next_ones]]
        return Scores(self.name, within, pending, alarm, pending_alarm)

    def _positions(self, cases: CaseSet, walk: Walks) -> tuple[IntArray, IntArray]:
        """Return the state of each point and the one each proposed call leads to; past a violation none is left."""
        space = self.monitor.model.space
        standing = walk.state
        arriving = join(space, standing[walk.point], walk.proposed)
        if self.monitor.model.notion is Notion.RULES and space.violated:
            violated = sorted(space.violated)
            crossed = so_far(cases, np.isin(standing, violated)) > 0
            standing = np.where(crossed, violated[0], standing)
            arriving = np.where(crossed[walk.point], violated[0], arriving)
        return standing, arriving


@dataclass(frozen=True, slots=True)
class LookupPredictor:
    """A model fitted on the training runs by `fit_model`: the product itself, and every variant its settings allow.

    Parameters
    ----------
    name
        How tables name it.
    space, catalogue
        What `fit_model` takes.
    settings
        The choices of the fit.
    recorded
        The space in which the runs are given, if it is another one.
    horizon, threshold
        The policy; by default the threshold spends the false-alarm budget of the settings on the training runs.
    by_category
        Whether each category has its own chain; without, all runs share one.
    """

    name: str
    space: StateSpace
    catalogue: Catalogue = field(repr=False)
    settings: FitSettings = field(default_factory=FitSettings)
    recorded: StateSpace | None = None
    horizon: int = 5
    threshold: float | None = None
    by_category: bool = True

    def fit(self, cases: CaseSet) -> MonitorScores:
        """Fit the model.

        Raises
        ------
        ChainError
            If no run can be used.
        """
        cases = projected(cases, self.recorded or self.space, self.space)
        runs = [case.run for case in cases.cases]
        if not self.by_category:
            runs = [structs.replace(run, category=AGGREGATE) for run in runs]
        model, _ = fit_model(
            runs, self.space, self.catalogue, self.settings, horizon=self.horizon, threshold=self.threshold
        )
        return MonitorScores(self.name, LookupMonitor(model), self.recorded)


@dataclass(frozen=True, slots=True)
class UntoldPredictor:
    """A predictor that is fitted on runs with their categories, and has to find out those of the runs it scores.

    Parameters
    ----------
    told
        The predictor, as it is when it is told.
    """

    told: Predictor

    @property
    def name(self) -> str:
        """How tables name it."""
        return self.told.name

    def fit(self, cases: CaseSet) -> Untold:
        """Fit the predictor."""
        return Untold(self.told.fit(cases))


@dataclass(frozen=True, slots=True)
class Untold:
    """A fitted predictor that nobody tells the category of a run.

    Parameters
    ----------
    fitted
        The predictor.
    """

    fitted: FittedPredictor

    def score(self, cases: CaseSet) -> Scores:
        """Score every point and proposal."""
        nameless = [replace(case, run=structs.replace(case.run, category=AGGREGATE)) for case in cases.cases]
        return self.fitted.score(CaseSet(nameless))


@dataclass(frozen=True, slots=True)
class _Table:
    """What a category's verdicts say of every state: (n_states, 3), (n_states,), (n_states,)."""

    within: FloatArray
    risk: FloatArray
    alarm: BoolArray

    @classmethod
    def of(cls, verdicts: Sequence[Verdict]) -> _Table:
        within = np.array([[verdict.within[horizon] for horizon in HORIZONS] for verdict in verdicts])
        risk = np.array([verdict.within[verdict.horizon] for verdict in verdicts])
        unseen = np.array([verdict.basis is Basis.UNSEEN for verdict in verdicts])
        within[unseen], risk[unseen] = 1.0, 1.0
        return cls(within, risk, np.array([verdict.alarm for verdict in verdicts]))


def _categories(cases: CaseSet) -> list[str]:
    return [case.run.category for case in cases.cases]
