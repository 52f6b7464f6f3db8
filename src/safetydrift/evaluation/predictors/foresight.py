"""The chain with its risk score, as a predictor."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from safetydrift.evaluation.predictors.lookup import MonitorScores
from safetydrift.evaluation.predictors.walked import WalkedScores
from safetydrift.evaluation.predictors.walks import projected
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
class ForesightPredictor:
    """The chain with its risk score, fitted on the training runs: the shipped model's way of predicting.

    Parameters
    ----------
    name
        How tables name it.
    space, catalogue, settings
        What `fit_model` takes; the settings ask for a risk score.
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
