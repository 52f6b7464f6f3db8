"""The monitors under test and the honest baselines beside them, by name.

Each is a `Predictor`: fitted on training cases, scored on others. Those that come from a file are made by their own
modules: `PredictionFile`, `JudgementFile`, and `monitors.model_predictor` for a model file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from safetydrift.evaluation.predictors.judged import JudgementFile
from safetydrift.evaluation.predictors.keyword import Keyword
from safetydrift.evaluation.predictors.learned import Boosting, LogisticHazard
from safetydrift.evaluation.predictors.monitors import MonitorPredictor, MonitorScores, model_predictor
from safetydrift.evaluation.predictors.prediction_file import PredictionFile
from safetydrift.evaluation.predictors.rates import GroupRates, RunLength, Silent
from safetydrift.monitor.settings import Estimator, FitSettings, Granularity
from safetydrift.states.trajectory import Notion, UnknownOnset

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from safetydrift.effects.catalogue import Catalogue
    from safetydrift.evaluation.scores import Predictor
    from safetydrift.states.space import StateSpace

__all__ = [
    "PREDICTORS",
    "Circumstances",
    "JudgementFile",
    "MonitorPredictor",
    "MonitorScores",
    "PredictionFile",
    "model_predictor",
    "predictor",
]

PUBLISHED_THRESHOLD = 0.4
"""Lower end of the published operating region, at five steps."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What predictors have to know before they see a case.

    Parameters
    ----------
    space
        The space in which the runs are given, and in which predictors work.
    catalogue
        The catalogue the runs were labelled with.
    published_space
        The space of the published chains, if it is another one; runs are then projected into it.
    notion, unknown_onset
        What counts as a violation: as the cases were made.
    """

    space: StateSpace
    catalogue: Catalogue = field(repr=False)
    published_space: StateSpace | None = None
    notion: Notion = Notion.LABEL
    unknown_onset: UnknownOnset = UnknownOnset.LAST_CALL

    @property
    def published(self) -> StateSpace:
        """The space of the published chains."""
        return self.published_space or self.space

    def monitor(self, name: str, space: StateSpace | None = None, **options: Any) -> MonitorPredictor:
        """Return a monitor to be fitted; ``options`` are those of `MonitorPredictor`, and settings of the fit."""
        settings = FitSettings(notion=self.notion, unknown_onset=self.unknown_onset)
        known = {
            name: options.pop(name) for name in ("granularity", "estimator", "risk_score") if name in options
        }
        return MonitorPredictor(
            name, space or self.space, self.catalogue, replace(settings, **known), self.space, **options
        )


def _coarse(*, by_category: bool, completion: bool) -> Callable[[str, Circumstances], Predictor]:
    """Return the published coarse chain: risk levels, maximum likelihood, violation the only end unless told."""
    estimator = Estimator.MAXIMUM_LIKELIHOOD if completion else Estimator.PUBLISHED
    return lambda name, given: given.monitor(
        name,
        given.published,
        granularity=Granularity.COARSE,
        estimator=estimator,
        threshold=PUBLISHED_THRESHOLD,
        by_category=by_category,
    )


PREDICTORS: Mapping[str, Callable[[str, Circumstances], Predictor]] = {
    "monitor": lambda name, given: given.monitor(name),
    "monitor-soft-categories": lambda name, given: given.monitor(name, told=False),
    "monitor-without-categories": lambda name, given: given.monitor(name, by_category=False),
    "monitor-published-space": lambda name, given: given.monitor(name, given.published),
    "silent": lambda name, _given: Silent(name),
    "keyword": lambda name, given: Keyword(given.space, name),
    "category-prior": lambda name, _given: GroupRates(name, lambda case: case.category),
    "task-rate": lambda name, _given: GroupRates(name, lambda case: case.task),
    "model-rate": lambda name, _given: GroupRates(name, lambda case: case.run.model),
    "run-length": lambda name, _given: RunLength(name),
    "coarse-published": _coarse(by_category=False, completion=False),
    "coarse-published-by-category": _coarse(by_category=True, completion=False),
    "coarse": _coarse(by_category=False, completion=True),
    "coarse-by-category": _coarse(by_category=True, completion=True),
    "logistic-hazard": lambda name, given: LogisticHazard(given.space, name=name),
    "boosting": lambda name, given: Boosting(given.space, name=name),
    "foresight": lambda name, given: given.monitor(name, risk_score=True),
}
"""How to make each predictor, by name. The last three take minutes, and the two before them scikit-learn."""


def predictor(name: str, given: Circumstances) -> Predictor:
    """Return a predictor by name.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    if name not in PREDICTORS:
        raise ValueError(f"there is no predictor {name!r}; there are: {', '.join(PREDICTORS)}")
    return PREDICTORS[name](name, given)
