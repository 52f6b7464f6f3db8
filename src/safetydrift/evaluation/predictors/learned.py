"""What the learned baselines share: one classifier per horizon for points, and another for proposals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from safetydrift.evaluation.predictors.features import Features, Table, training_weights
from safetydrift.evaluation.scores import HORIZONS, Scores

if TYPE_CHECKING:
    from safetydrift.evaluation.cases import CaseSet
    from safetydrift.markov._arrays import BoolArray, FloatArray

Inputs: TypeAlias = Callable[[Table], Any]
"""Turns features into what a classifier reads."""
Learn: TypeAlias = Callable[[Any, "BoolArray", "FloatArray", Table], Any]
"""Fits a classifier: inputs, outcomes, weights, features; returns something with ``predict_proba``."""

MOST_POINTS = 300_000
"""Training points; of larger sets part of the runs without a violation is left out and weighed instead."""


@dataclass(frozen=True, slots=True)
class FittedClassifiers:
    """Classifiers by horizon, and one for proposals.

    Parameters
    ----------
    name
        How tables name it.
    features, inputs
        What they read.
    by_horizon, of_proposals
        The classifiers; a number where training knew one outcome only.
    """

    name: str
    features: Features = field(repr=False)
    inputs: Inputs = field(repr=False)
    by_horizon: tuple[Any, ...] = field(repr=False)
    of_proposals: Any = field(repr=False)

    def score(self, cases: CaseSet) -> Scores:
        """Score every point and proposal; a longer horizon is never less likely than a shorter one."""
        table = self.features.points(cases)
        inputs = self.inputs(table)
        within = np.stack([_probability(one, inputs, len(table)) for one in self.by_horizon], axis=1)
        proposals = self.features.proposals(cases)
        pending = _probability(self.of_proposals, self.inputs(proposals), len(proposals))
        return Scores(self.name, np.maximum.accumulate(within, axis=1), pending)


def fit_classifiers(
    name: str, cases: CaseSet, features: Features, inputs: Inputs, learn: Learn, most_points: int = MOST_POINTS
) -> FittedClassifiers:
    """Fit one classifier per horizon on points, and one on proposals."""
    kept, weight = training_weights(cases, most_points)
    training = cases.select(kept)
    weight = weight[kept]
    table = features.points(training)
    read = inputs(table)
    of_points = weight[training.run_of_point]
    by_horizon = tuple(
        _learned(learn, read, training.happens_within(horizon), of_points, table) for horizon in HORIZONS
    )
    proposals = features.proposals(training)
    of_proposals = _learned(
        learn,
        inputs(proposals),
        training.violating_proposal,
        weight[training.run_of_proposal],
        proposals,
    )
    return FittedClassifiers(name, features, inputs, by_horizon, of_proposals)


def _learned(learn: Learn, read: Any, happened: BoolArray, weight: FloatArray, table: Table) -> Any:
    if not len(happened):
        return 1.0
    if happened.all() or not happened.any():
        return float(happened[0])
    return learn(read, happened, weight, table)


def _probability(classifier: Any, inputs: Any, count: int) -> FloatArray:
    if isinstance(classifier, float) or not count:
        return np.full(count, classifier if isinstance(classifier, float) else 0.0)
    probability: FloatArray = classifier.predict_proba(inputs)[:, 1].astype(np.float64)
    return probability
