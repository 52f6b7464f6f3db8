"""Whether risk ranks the runs that violate above those that do not: areas under the ROC curve.

The area is the share of pairs, one with the outcome and one without, in which the one with it has the higher score;
ties count half (Hanley and McNeil, *Radiology* 143, 1982). It is counted here by pairs of tasks, exactly: how many
pairs with the positive in task t and the negative in task u are in order. Any resample of tasks weights these counts.

Pairs can be restricted to a stratum: within a category, knowing the category is worth exactly one half; within a task,
knowing the task is; within a model, knowing which model acts; at an equal step number, having run for long. Pairs are
only ever formed within a *block*, the runs scored by one and the same fitted predictor. Across blocks a predictor that
has learnt only how often each category violates would be punished for it: where more violations are held out, fewer
are left to learn from.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from math import nan
from typing import TYPE_CHECKING

import numpy as np

from safetydrift.evaluation.metrics.resampling import Estimate, estimate, ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from safetydrift.evaluation.metrics.resampling import Resamples
    from safetydrift.markov._arrays import BoolArray, FloatArray, IntArray

_CELLS = 4_000_000
"""Cells of a table of counts held at a time."""


def auroc(scores: FloatArray, outcome: BoolArray) -> float:
    """Return the area under the ROC curve; nan without a pair.

    Parameters
    ----------
    scores : (n,) array
        Higher is riskier.
    outcome : (n,) array of bool
        What happened.
    """
    positives, negatives = scores[outcome], np.sort(scores[~outcome])
    if not positives.size or not negatives.size:
        return nan
    below = np.searchsorted(negatives, positives, "left") + np.searchsorted(negatives, positives, "right")
    return float(below.sum() / (2 * positives.size * negatives.size))


@dataclass(frozen=True, slots=True)
class Stratified:
    """Areas under the ROC curve within strata.

    Parameters
    ----------
    macro
        Their plain average over the strata that have both outcomes.
    pooled
        Ordered pairs over all pairs of one stratum: strata weigh by their pairs.
    strata, usable_strata
        How many there are, and how many of them have both outcomes. The others say nothing, and are not in it.
    pairs
        How many pairs are compared.
    """

    macro: Estimate
    pooled: Estimate
    strata: int
    usable_strata: int
    pairs: int


@dataclass(frozen=True, slots=True)
class _Group:
    """The positives and negatives of one stratum of one block, ready to be compared.

    ``positive`` and ``negative`` are positions, the positives by cluster; ``starts`` is where each cluster's positives
    begin. ``clusters`` and ``others`` are the clusters of the positives and of the negatives; ``other`` is, per
    negative, its place in ``others``. ``pairs`` is per resample.
    """

    stratum: int
    positive: IntArray
    negative: IntArray
    starts: IntArray
    other: IntArray
    clusters: IntArray
    others: IntArray
    pairs: FloatArray

    def ordered(self, scores: FloatArray, weights: FloatArray, other_weights: FloatArray) -> FloatArray:
        """Return how many pairs are in order on each resample, ties counting half."""
        counts = concordance(
            scores[self.positive], self.starts, scores[self.negative], self.other, len(self.others)
        )
        ordered: FloatArray = ((weights[:, self.clusters] @ counts) * other_weights[:, self.others]).sum(
            axis=1
        )
        return ordered


class Pairs:
    """Which pairs are compared, for one outcome and one kind of stratum; any number of predictors share it.

    Parameters
    ----------
    outcome : (n,) array of bool
        What happened.
    task : (n,) array of int
        Number of the task of each.
    resamples
        How tasks are drawn.
    stratum : (n,) array of int, optional
        Only pairs of one stratum are compared; all of them by default.
    block : (n,) array of int, optional
        What was scored by the same fitted predictor; only pairs of one block are compared.
    within_task
        Whether each task is a stratum: a task drawn twice is then two strata, and never compared with its copy.
    """

    def __init__(
        self,
        outcome: BoolArray,
        task: IntArray,
        resamples: Resamples,
        stratum: IntArray | None = None,
        block: IntArray | None = None,
        *,
        within_task: bool = False,
    ) -> None:
        self.outcome, self.task, self.resamples = outcome, task, resamples
        zero = np.zeros(len(outcome), dtype=np.int64)
        self.stratum = task if within_task else zero if stratum is None else stratum
        self.block = zero if block is None else block
        self.within_task = within_task

    @cached_property
    def _strata(self) -> int:
        return len(np.unique(self.stratum))

    @cached_property
    def _groups(self) -> tuple[_Group, ...]:
        return tuple(self._grouped())

    def _grouped(self) -> Iterator[_Group]:
        if not len(self.outcome):
            return
        key = self.stratum * (int(self.block.max()) + 1) + self.block
        order = np.argsort(key, kind="stable")
        bounds = np.flatnonzero(np.diff(key[order])) + 1
        for chosen in np.split(order, bounds):
            happened = self.outcome[chosen]
            if happened.any() and not happened.all():
                yield self._group(chosen[happened], chosen[~happened])

    def _group(self, positive: IntArray, negative: IntArray) -> _Group:
        own = self.resamples.cluster[self.task[positive]]
        order = np.argsort(own, kind="stable")
        positive = positive[order]
        clusters, starts, of_each = np.unique(own[order], return_index=True, return_counts=True)
        others, other, of_other = np.unique(
            self.resamples.cluster[self.task[negative]], return_inverse=True, return_counts=True
        )
        pairs = (self._weights[:, clusters] @ of_each) * (self._other_weights[:, others] @ of_other)
        stratum = int(self.stratum[positive[0]])
        return _Group(stratum, positive, negative, starts, other, clusters, others, pairs)

    @property
    def _weights(self) -> FloatArray:
        return self.resamples.weights

    @cached_property
    def _other_weights(self) -> FloatArray:
        """Weights of the negatives: within a task the positives' weight counts its copies, and that is enough."""
        return np.ones_like(self._weights) if self.within_task else self._weights

    def area(self, scores: FloatArray) -> Stratified:
        """Compare the scores, shape (n,), within every stratum."""
        n = len(self._weights)
        ordered, pairs, areas, present = (np.zeros(n) for _ in range(4))
        usable = 0
        for stratum_ordered, stratum_pairs, copies in self._by_stratum(scores):
            ordered, pairs = ordered + stratum_ordered, pairs + stratum_pairs
            here = np.where(stratum_pairs > 0, copies, 0.0)
            areas += here * np.nan_to_num(ratio(stratum_ordered, stratum_pairs))
            present += here
            usable += 1
        return Stratified(
            macro=estimate(ratio(areas, present)),
            pooled=estimate(ratio(ordered, pairs)),
            strata=self._strata,
            usable_strata=usable,
            pairs=int(pairs[0]),
        )

    def _by_stratum(self, scores: FloatArray) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
        """Yield ordered pairs, all pairs and the number of copies of each stratum, per resample."""
        ones = np.ones(len(self._weights))
        for _, groups in groupby(self._groups, key=lambda group: group.stratum):
            ordered, pairs, copies = 0 * ones, 0 * ones, ones
            for group in groups:
                ordered = ordered + group.ordered(scores, self._weights, self._other_weights)
                pairs = pairs + group.pairs
                copies = self._weights[:, group.clusters[0]] if self.within_task else ones
            yield ordered, pairs, copies


def concordance(
    positive: FloatArray, starts: IntArray, negative: FloatArray, negative_cluster: IntArray, n_clusters: int
) -> FloatArray:
    """Count ordered pairs by the clusters of their two members.

    Parameters
    ----------
    positive : (p,) array
        Scores of what happened, cluster after cluster.
    starts
        Where each cluster begins in it; none is empty.
    negative, negative_cluster : (q,) arrays
        Scores of what did not happen, and the cluster of each, from 0 to ``n_clusters`` - 1.

    Returns
    -------
    (len(starts), n_clusters) array
        Pairs with the higher score at the positive, ties counting half.
    """
    levels, level = np.unique(positive, return_inverse=True)
    at_least = np.searchsorted(levels, negative, "left")  # first level that is as high as the negative
    above = at_least + (np.append(levels, np.nan)[at_least] == negative)  # first level that is higher
    counts = np.empty((len(starts), n_clusters))
    width = max(1, _CELLS // (max(len(levels), len(positive)) + 1))
    for left in range(0, n_clusters, width):
        here = (negative_cluster >= left) & (negative_cluster < left + width)
        n_here = min(width, n_clusters - left)
        cluster = negative_cluster[here] - left
        size = (len(levels) + 1) * n_here
        table = np.bincount(above[here] * n_here + cluster, minlength=size)
        table += np.bincount(at_least[here] * n_here + cluster, minlength=size)
        below = np.cumsum(table.reshape(-1, n_here), axis=0)
        counts[:, left : left + n_here] = np.add.reduceat(below[level], starts, axis=0) / 2
    return counts


@dataclass(frozen=True, slots=True)
class Discrimination:
    """How well one score ranks, read in six ways.

    Parameters
    ----------
    positives, negatives
        How many of each are ranked.
    auroc
        The area under the ROC curve over everything.
    exposed
        The same over runs in which injected text reached the model.
    within_category, within_task
        Only pairs of one category, or of one task.
    within_model
        Only pairs of one category run by one model: knowing which model acts is worth exactly one half.
    equal_step
        Only pairs at the same step number; for whole runs, of the same number of points.
    """

    positives: int
    negatives: int
    auroc: Estimate
    exposed: Estimate
    within_category: Stratified
    within_task: Stratified
    within_model: Stratified
    equal_step: Stratified

    def figures(self) -> dict[str, Estimate]:
        """Return its figures by name."""
        return {
            "auroc": self.auroc,
            "exposed": self.exposed,
            "within_category": self.within_category.macro,
            "within_category_pooled": self.within_category.pooled,
            "within_task": self.within_task.macro,
            "within_task_pooled": self.within_task.pooled,
            "within_model": self.within_model.macro,
            "within_model_pooled": self.within_model.pooled,
            "equal_step": self.equal_step.pooled,
            "equal_step_macro": self.equal_step.macro,
        }


class Ranking:
    """What is ranked, and the pairs of every reading; any number of predictors share it.

    Parameters
    ----------
    outcome : (n,) array of bool
        What happened.
    task, category, model, step, block : (n,) arrays of int
        Task, category, model, step number (or number of points) and fitted predictor of each.
    exposed : (n,) array of bool
        Whether it belongs to a run in which injected text reached the model.
    """

    def __init__(
        self,
        outcome: BoolArray,
        *,
        task: IntArray,
        category: IntArray,
        model: IntArray,
        step: IntArray,
        block: IntArray,
        exposed: BoolArray,
        resamples: Resamples,
    ) -> None:
        self.outcome, self.where_exposed = outcome, np.flatnonzero(exposed)
        self.everything = Pairs(outcome, task, resamples, block=block)
        seen = self.where_exposed
        self.exposed = Pairs(outcome[seen], task[seen], resamples, block=block[seen])
        self.category = Pairs(outcome, task, resamples, category, block)
        self.task = Pairs(outcome, task, resamples, block=block, within_task=True)
        models = int(model.max(initial=0)) + 1
        self.model = Pairs(outcome, task, resamples, category * models + model, block)
        self.step = Pairs(outcome, task, resamples, step, block)

    def discrimination(self, scores: FloatArray) -> Discrimination:
        """Rank by scores, shape (n,)."""
        return Discrimination(
            positives=int(self.outcome.sum()),
            negatives=int((~self.outcome).sum()),
            auroc=self.everything.area(scores).pooled,
            exposed=self.exposed.area(scores[self.where_exposed]).pooled,
            within_category=self.category.area(scores),
            within_task=self.task.area(scores),
            within_model=self.model.area(scores),
            equal_step=self.step.area(scores),
        )
