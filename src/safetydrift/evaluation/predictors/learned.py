"""What the learned baselines share: one classifier per horizon for points, and another for proposals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from safetydrift.evaluation.predictors.features import Features, Table, training_weights
from safetydrift.evaluation.scores import HORIZONS, Scores

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

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
        within = self._scored(self.features.points(cases), self.by_horizon)
        pending = self._scored(self.features.proposals(cases), (self.of_proposals,))[:, 0]
        return Scores(self.name, np.maximum.accumulate(within, axis=1), pending)

    def _scored(self, table: Table, classifiers: tuple[Any, ...]) -> FloatArray:
        """Return one column per classifier, shape (n, classifiers); rows that are equal are looked at once."""
        if not len(table):
            return np.ones((0, len(classifiers)))
        distinct, which = table.distinct()
        read = self.inputs(distinct)
        scored = [_probability(one, read, len(distinct)) for one in classifiers]
        return np.stack(scored, axis=1)[which]


def fit_classifiers(
    name: str,
    cases: CaseSet,
    features: Features,
    inputs: Inputs,
    learn: Learn,
    *,
    most_points: int = MOST_POINTS,
) -> FittedClassifiers:
    """Fit one classifier per horizon on points, and one on proposals."""
    kept, weight = training_weights(cases, most_points)
    training = cases.select(kept)
    weight = weight[kept]
    outcomes = [training.happens_within(horizon) for horizon in HORIZONS]
    by_horizon = _learned(learn, inputs, features.points(training), outcomes, weight[training.run_of_point])
    (of_proposals,) = _learned(
        learn,
        inputs,
        features.proposals(training),
        [training.violating_proposal],
        weight[training.run_of_proposal],
    )
    return FittedClassifiers(name, features, inputs, tuple(by_horizon), of_proposals)


def _learned(
    learn: Learn, inputs: Inputs, table: Table, outcomes: list[BoolArray], weight: FloatArray
) -> list[Any]:
    """Fit a classifier per outcome. Equal rows are one row with their weights added up, for each outcome."""
    if not len(table):
        return [1.0] * len(outcomes)
    distinct, which = table.distinct()
    read = inputs(distinct)
    fitted: list[Any] = []
    for happened in outcomes:
        if happened.all() or not happened.any():
            fitted.append(float(happened[0]))
            continue
        positive = np.bincount(which, weights=weight * happened, minlength=len(distinct))
        negative = np.bincount(which, weights=weight * ~happened, minlength=len(distinct))
        yes, no = np.flatnonzero(positive), np.flatnonzero(negative)
        rows = np.concatenate([yes, no])
        outcome = np.arange(len(rows)) < len(yes)
        with one_thread():
            fitted.append(learn(read[rows], outcome, np.concatenate([positive[yes], negative[no]]), distinct))
    return fitted


def _probability(classifier: Any, inputs: Any, count: int) -> FloatArray:
    if isinstance(classifier, float):
        return np.full(count, classifier)
    with one_thread():
        probability: FloatArray = classifier.predict_proba(inputs)[:, 1].astype(np.float64)
    return probability


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which sums are made in one order; and threads that wait for each other cost more."""
    from threadpoolctl import threadpool_limits  # noqa: PLC0415  # comes with scikit-learn

    limits: AbstractContextManager[Any] = threadpool_limits(limits=1)
    return limits
