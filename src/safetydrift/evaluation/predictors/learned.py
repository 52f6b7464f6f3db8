"""Learned baselines: one classifier per horizon for points, and another for proposals. They need scikit-learn.

Boosting shows what a flexible model finds in the information that the chain has, beyond the state: step number,
counts, latest tools. Logistic regression also sees the words of the task, and is the strongest simple model on tasks
it has not seen. One regression per horizon, directly for "within h calls", rather than one hazard multiplied up over h
calls: that would need a model of where the run goes in between.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from safetydrift.evaluation.predictors.features import Features
from safetydrift.evaluation.scores import HORIZONS, Scores

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from safetydrift.evaluation.cases import CaseSet
    from safetydrift.evaluation.predictors.features import Table
    from safetydrift.markov._arrays import BoolArray, FloatArray
    from safetydrift.states.space import StateSpace

MOST_POINTS = 300_000
"""Training points; of larger sets part of the runs without a violation is left out and weighed instead."""
SEED = 0


@dataclass(frozen=True, slots=True)
class LearnedPredictor(ABC):
    """What the learned baselines share.

    Parameters
    ----------
    space
        The space of the runs.
    with_kind
        Whether it may know source and category.
    most_points
        See `training_weights`.
    """

    space: StateSpace
    name: str
    with_kind: bool = True
    most_points: int = MOST_POINTS

    @abstractmethod
    def inputs(self, table: Table) -> Any:
        """Return what the classifier reads of a table of features."""

    @abstractmethod
    def learn(self, inputs: Any, happened: BoolArray, weight: FloatArray, table: Table) -> Any:
        """Fit a classifier; return something with ``predict_proba``."""

    def fit(self, cases: CaseSet) -> FittedClassifiers:
        """Fit one classifier per horizon on points, and one on proposals."""
        features = Features.of(cases, self.space, with_kind=self.with_kind)
        kept, weight = training_weights(cases, self.most_points)
        training, weight = cases.select(kept), weight[kept]
        outcomes = [training.happens_within(horizon) for horizon in HORIZONS]
        by_horizon = self._learned(features.points(training), outcomes, weight[training.run_of_point])
        (of_proposals,) = self._learned(
            features.proposals(training), [training.violating_proposal], weight[training.run_of_proposal]
        )
        return FittedClassifiers(self, features, tuple(by_horizon), of_proposals)

    def _learned(self, table: Table, outcomes: list[BoolArray], weight: FloatArray) -> list[Any]:
        """Fit a classifier per outcome. Equal rows are one row with their weights added up, for each outcome."""
        if not len(table):
            return [1.0] * len(outcomes)
        distinct, which = table.distinct()
        read = self.inputs(distinct)
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
            weights = np.concatenate([positive[yes], negative[no]])
            with one_thread():
                fitted.append(self.learn(read[rows], outcome, weights, distinct))
        return fitted


@dataclass(frozen=True, slots=True)
class FittedClassifiers:
    """Classifiers by horizon, and one for proposals.

    Parameters
    ----------
    predictor
        What fitted them.
    features
        What they read.
    by_horizon, of_proposals
        The classifiers; a number where training knew one outcome only.
    """

    predictor: LearnedPredictor
    features: Features = field(repr=False)
    by_horizon: tuple[Any, ...] = field(repr=False)
    of_proposals: Any = field(repr=False)

    def score(self, cases: CaseSet) -> Scores:
        """Score every point and proposal; a longer horizon is never less likely than a shorter one."""
        within = self._scored(self.features.points(cases), self.by_horizon)
        pending = self._scored(self.features.proposals(cases), (self.of_proposals,))[:, 0]
        return Scores(self.predictor.name, np.maximum.accumulate(within, axis=1), pending)

    def _scored(self, table: Table, classifiers: tuple[Any, ...]) -> FloatArray:
        """Return one column per classifier, shape (n, classifiers); rows that are equal are looked at once."""
        if not len(table):
            return np.ones((0, len(classifiers)))
        distinct, which = table.distinct()
        read = self.predictor.inputs(distinct)
        scored = [_probability(one, read, len(distinct)) for one in classifiers]
        return np.stack(scored, axis=1)[which]


@dataclass(frozen=True, slots=True)
class LogisticHazard(LearnedPredictor):
    """L2-regularised logistic regression.

    Parameters
    ----------
    strength
        Inverse of the regularisation, scikit-learn's ``C``.
    """

    name: str = "logistic-hazard"
    strength: float = 0.3

    def inputs(self, table: Table) -> Any:
        """Return a sparse matrix with every word a column."""
        return table.sparse()

    def learn(self, inputs: Any, happened: BoolArray, weight: FloatArray, table: Table) -> Any:  # noqa: ARG002
        """Fit a regression."""
        from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415  # of the extra
        from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

        regression = LogisticRegression(C=self.strength, max_iter=200, tol=1e-3)
        with warnings.catch_warnings():  # stopped early it is a little more regularised, and as deterministic
            warnings.simplefilter("ignore", ConvergenceWarning)
            return regression.fit(inputs, happened, sample_weight=weight)


@dataclass(frozen=True, slots=True)
class Boosting(LearnedPredictor):
    """Histogram gradient boosting, without the words of the task.

    Parameters
    ----------
    rounds
        Trees per model.
    """

    name: str = "boosting"
    rounds: int = 80

    def inputs(self, table: Table) -> Any:
        """Return numbers and codes side by side."""
        return table.dense()

    def learn(self, inputs: Any, happened: BoolArray, weight: FloatArray, table: Table) -> Any:
        """Fit the trees."""
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


def training_weights(cases: CaseSet, most_points: int) -> tuple[BoolArray, FloatArray]:
    """Return which runs to train on and how much each counts, shapes (n,), (n,).

    All violated runs are kept. Of the others so many are left out that about ``most_points`` points remain, chosen by
    a digest of their ids so that the order of the runs does not matter, and those kept stand for those left out.
    """
    points = np.diff(cases.first_point)
    violated = int(points[cases.violated].sum())
    others = int(points[~cases.violated].sum())
    share = 1.0 if not others else min(1.0, max((most_points - violated) / others, 0.05))
    drawn = np.array([crc32(case.run.id.encode()) / 2**32 for case in cases.cases])
    kept: BoolArray = cases.violated | (drawn < share)
    return kept, np.where(cases.violated, 1.0, 1.0 / share)


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
