"""The monitors under test and the honest baselines beside them, by name.

Each is a `Predictor`: fitted on training cases, scored on others. Those that come from a file or need raw traces are
made by their own modules: `PredictionFile`, `MonitorScores` (a model file), `ReplayedMonitor`, `JudgementFile`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec import structs

from safetydrift.evaluation.predictors.base_rates import GroupRates, of_model, of_task
from safetydrift.evaluation.predictors.bit_vectors import BitVectors
from safetydrift.evaluation.predictors.boosting import Boosting
from safetydrift.evaluation.predictors.category_prior import CategoryRunRate, category_prior
from safetydrift.evaluation.predictors.coarse_chain import SecondOrderChain, coarse_chain
from safetydrift.evaluation.predictors.foresight import ForesightPredictor
from safetydrift.evaluation.predictors.hazard import LogisticHazard
from safetydrift.evaluation.predictors.judged import JudgementFile
from safetydrift.evaluation.predictors.kaplan_meier import KaplanMeier
from safetydrift.evaluation.predictors.keyword import Keyword
from safetydrift.evaluation.predictors.lookup import LookupPredictor, MonitorScores, UntoldPredictor
from safetydrift.evaluation.predictors.prediction_file import PredictionFile
from safetydrift.evaluation.predictors.replayed import ReplayedMonitor
from safetydrift.evaluation.predictors.run_length import RunLength
from safetydrift.evaluation.predictors.silent import Silent
from safetydrift.evaluation.predictors.variable_order import VariableOrder
from safetydrift.monitor.settings import Estimator, FitSettings
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
    "LookupPredictor",
    "MonitorScores",
    "PredictionFile",
    "ReplayedMonitor",
    "predictor",
]


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

    def settings(self, estimator: Estimator = Estimator.SHRUNK) -> FitSettings:
        """Return the settings of a fine chain."""
        return FitSettings(notion=self.notion, estimator=estimator, unknown_onset=self.unknown_onset)


def _monitor(name: str, given: Circumstances) -> Predictor:
    return LookupPredictor(name, given.space, given.catalogue, given.settings())


def _monitor_published_space(name: str, given: Circumstances) -> Predictor:
    return LookupPredictor(name, given.published, given.catalogue, given.settings(), given.space)


def _monitor_of_all(name: str, given: Circumstances) -> Predictor:
    return LookupPredictor(name, given.space, given.catalogue, given.settings(), by_category=False)


def _soft_categories(name: str, given: Circumstances) -> Predictor:
    return UntoldPredictor(LookupPredictor(name, given.space, given.catalogue, given.settings()))


def _coarse(*, by_category: bool, completion: bool) -> Callable[[str, Circumstances], Predictor]:
    return lambda name, given: coarse_chain(
        name,
        given.published,
        given.catalogue,
        by_category=by_category,
        completion=completion,
        notion=given.notion,
        unknown_onset=given.unknown_onset,
        recorded=given.space,
    )


def _second_order(*, completion: bool) -> Callable[[str, Circumstances], Predictor]:
    return lambda name, given: SecondOrderChain(name, given.published, completion, given.space)


def _foresight(name: str, given: Circumstances) -> Predictor:
    return ForesightPredictor(
        name, given.space, given.catalogue, structs.replace(given.settings(), risk_score=True)
    )


PREDICTORS: Mapping[str, Callable[[str, Circumstances], Predictor]] = {
    "monitor": _monitor,
    "monitor-soft-categories": _soft_categories,
    "monitor-without-categories": _monitor_of_all,
    "monitor-published-space": _monitor_published_space,
    "silent": lambda name, _given: Silent(name),
    "keyword": lambda name, given: Keyword(given.space, name),
    "category-prior": lambda name, _given: category_prior(name),
    "category-run-rate": lambda name, _given: CategoryRunRate(name),
    "task-rate": lambda name, _given: GroupRates(name, of_task),
    "model-rate": lambda name, _given: GroupRates(name, of_model),
    "run-length": lambda name, _given: RunLength(name),
    "kaplan-meier": lambda name, _given: KaplanMeier(name),
    "coarse-published": _coarse(by_category=False, completion=False),
    "coarse-published-by-category": _coarse(by_category=True, completion=False),
    "coarse-published-second-order": _second_order(completion=False),
    "coarse": _coarse(by_category=False, completion=True),
    "coarse-by-category": _coarse(by_category=True, completion=True),
    "coarse-second-order": _second_order(completion=True),
    "variable-order": lambda name, given: VariableOrder(given.space, name=name),
    "bit-vectors": lambda name, given: BitVectors(given.space, name=name),
    "logistic-hazard": lambda name, given: LogisticHazard(given.space, name=name),
    "boosting": lambda name, given: Boosting(given.space, name=name),
    "foresight": _foresight,
}
"""How to make each predictor, by name. The last three need the extra ``evaluate``."""


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
