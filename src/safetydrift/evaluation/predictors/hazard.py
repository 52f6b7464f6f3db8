"""Logistic regression on the state, the trajectory so far and the words of the task.

A baseline for what little learning achieves: linear, calibrated by construction, and with the words of the task the
strongest simple model on tasks it has not seen. One regression per horizon, directly for "within h calls", rather
than one hazard multiplied up over h calls: that would need a model of where the run goes in between.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from safetydrift.evaluation.predictors.features import Features, Table
from safetydrift.evaluation.predictors.learned import MOST_POINTS, fit_classifiers

if TYPE_CHECKING:
    from safetydrift.evaluation.cases import CaseSet
    from safetydrift.evaluation.predictors.learned import FittedClassifiers
    from safetydrift.markov._arrays import BoolArray, FloatArray
    from safetydrift.states.space import StateSpace


@dataclass(frozen=True, slots=True)
class LogisticHazard:
    """L2-regularised logistic regression. Needs the extra ``evaluate``.

    Parameters
    ----------
    space
        The space of the runs.
    with_kind
        Whether it may know source and category.
    strength
        Inverse of the regularisation, scikit-learn's ``C``.
    most_points
        See `training_weights`.
    """

    space: StateSpace
    with_kind: bool = True
    strength: float = 0.3
    most_points: int = MOST_POINTS
    name: str = "logistic-hazard"

    def fit(self, cases: CaseSet) -> FittedClassifiers:
        """Fit four regressions: three horizons, and proposals."""
        features = Features.of(cases, self.space, with_kind=self.with_kind)
        return fit_classifiers(
            self.name, cases, features, Table.sparse, self._learn, most_points=self.most_points
        )

    def _learn(self, inputs: Any, happened: BoolArray, weight: FloatArray, _table: Table) -> Any:
        from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415  # of the extra
        from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

        regression = LogisticRegression(C=self.strength, max_iter=200, tol=1e-3)
        with warnings.catch_warnings():  # stopped early it is a little more regularised, and as deterministic
            warnings.simplefilter("ignore", ConvergenceWarning)
            return regression.fit(inputs, happened, sample_weight=weight)
