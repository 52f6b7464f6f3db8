"""Gradient-boosted trees on the state and the trajectory so far.

A baseline for what a flexible model finds in the same information that the chain has, beyond the state: step
number, counts, latest tools. It does not see the words of the task. One model per horizon, and one for proposals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from safetydrift.evaluation.predictors.features import Features, Table
from safetydrift.evaluation.predictors.learned import MOST_POINTS, fit_classifiers

if TYPE_CHECKING:
    from safetydrift.evaluation.cases import CaseSet
    from safetydrift.evaluation.predictors.learned import FittedClassifiers
    from safetydrift.markov._arrays import BoolArray, FloatArray
    from safetydrift.states.space import StateSpace

SEED = 0


@dataclass(frozen=True, slots=True)
class Boosting:
    """Histogram gradient boosting. Needs the extra ``evaluate``.

    Parameters
    ----------
    space
        The space of the runs.
    with_kind
        Whether it may know source and category.
    rounds
        Trees per model.
    most_points
        See `training_weights`.
    """

    space: StateSpace
    with_kind: bool = True
    rounds: int = 80
    most_points: int = MOST_POINTS
    name: str = "boosting"

    def fit(self, cases: CaseSet) -> FittedClassifiers:
        """Fit four models: three horizons, and proposals."""
        features = Features.of(cases, self.space, with_kind=self.with_kind)
        return fit_classifiers(
            self.name, cases, features, Table.dense, self._learn, most_points=self.most_points
        )

    def _learn(self, inputs: Any, happened: BoolArray, weight: FloatArray, table: Table) -> Any:
        from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415  # of the extra

        named = [table.numbers.shape[1] + place for place in table.named]
        trees = HistGradientBoostingClassifier(
            max_iter=self.rounds,
            learning_rate=0.1,
            max_leaf_nodes=15,
            min_samples_leaf=1,  # equal rows are one here, so that a count of rows says nothing
            l2_regularization=10.0,
            categorical_features=named,
            early_stopping=False,
            random_state=SEED,
        )
        return trees.fit(inputs, happened, sample_weight=weight)
