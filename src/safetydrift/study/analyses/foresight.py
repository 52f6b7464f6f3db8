"""How well the next risk level, and a violation within a few steps, is foretold.

The next level is foretold from *contexts*, a ladder of them from broad to narrow (everything; the level; the level and
the one before). The estimate on each rung leans on the rung above by a pseudo-observation, the top one on equal
shares::

    p(j | context) = (c(context, j) + s p(j | broader context)) / (c(context) + s)

so that a context never seen in training answers as its broader one does, and no probability is zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from safetydrift.evaluation.metrics.discrimination import auroc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from safetydrift.markov._arrays import BoolArray, FloatArray, IntArray
    from safetydrift.study.analyses.study import Study

STRENGTH = 1.0
"""Pseudo-observations by which a narrow context leans on its broader one."""


def conditional(
    contexts: Sequence[IntArray],
    target: IntArray,
    n_targets: int,
    train: BoolArray,
    strength: float = STRENGTH,
) -> FloatArray:
    """Estimate the probability of each target in the narrowest of the contexts.

    Parameters
    ----------
    contexts
        One (m,) array per rung, from broad to narrow; each context lies within one of the rung above.
    target : (m,) array
        What came of it, 0 to ``n_targets - 1``.
    train : (m,) array of bool
        What may be learnt from.
    strength
        Pseudo-observations by which each rung leans on the one above.

    Returns
    -------
    (contexts of the last rung, n_targets) array
        Rows sum to one.
    """
    table = np.full((1, n_targets), 1.0 / n_targets)
    broader = np.zeros_like(target)
    for context in contexts:
        n_contexts = int(context.max(initial=0)) + 1
        parent = np.zeros(n_contexts, dtype=np.int64)
        parent[context] = broader
        cells = context[train] * n_targets + target[train]
        counts = np.bincount(cells, minlength=n_contexts * n_targets).reshape(n_contexts, n_targets)
        weight = counts.sum(axis=1, keepdims=True) + strength
        table, broader = (counts + strength * table[parent]) / weight, context
    return table


@dataclass(frozen=True, slots=True)
class NextLevel:
    """How well the next level was foretold.

    Parameters
    ----------
    hits, total
        Steps whose next level was the likeliest one, and all of them.
    surprise
        Sum of the negative log probabilities of what came, in nats.
    """

    hits: int = 0
    total: int = 0
    surprise: float = 0.0

    @property
    def accuracy(self) -> float:
        """Share foretold; nan where nothing was tried."""
        return self.hits / self.total if self.total else float("nan")

    @property
    def log_loss(self) -> float:
        """Mean negative log probability of what came, in nats; nan where nothing was tried."""
        return self.surprise / self.total if self.total else float("nan")

    def __add__(self, other: NextLevel) -> NextLevel:
        return NextLevel(self.hits + other.hits, self.total + other.total, self.surprise + other.surprise)


def foretell(
    contexts: Sequence[IntArray], target: IntArray, n_targets: int, train: BoolArray, test: BoolArray
) -> NextLevel:
    """Learn what follows each context on one set of steps and foretell it on another.

    Parameters
    ----------
    contexts, target, n_targets, train
        As for `conditional`.
    test : (m,) array of bool
        The steps to foretell. Between equally likely levels the lower one is named.
    """
    table = conditional(contexts, target, n_targets, train)
    context, came = contexts[-1][test], target[test]
    likeliest = table.argmax(axis=1)
    return NextLevel(
        int((likeliest[context] == came).sum()), len(came), float(-np.log(table[context, came]).sum())
    )


def dense(values: IntArray) -> IntArray:
    """Return the rank of each value among the distinct ones, from 0."""
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


@dataclass(frozen=True)
class Ranking:
    """How well scores rank moments before a violation above the others, as counts that add up.

    Pairs are formed among what one and the same chain scored. Where more violations are held out fewer are left to
    learn from, so that scores of different folds must not be compared.

    Parameters
    ----------
    ordered, pairs : (categories + 1,) arrays
        Pairs of a moment with the outcome and one without in which the former scores higher, ties counting half, and
        all pairs: within each category, and last without regard to it.
    """

    ordered: FloatArray
    pairs: FloatArray

    @classmethod
    def of(cls, score: FloatArray, outcome: BoolArray, category: IntArray, n_categories: int) -> Ranking:
        """Count the pairs of what one chain scored; arrays of shape (m,)."""
        ordered, pairs = np.zeros(n_categories + 1), np.zeros(n_categories + 1)
        for number in range(n_categories + 1):
            chosen = category == number if number < n_categories else np.ones(len(score), dtype=np.bool_)
            happened = outcome[chosen]
            pairs[number] = np.count_nonzero(happened) * float(np.count_nonzero(~happened))
            if pairs[number]:
                ordered[number] = auroc(score[chosen], happened) * pairs[number]
        return cls(ordered, pairs)

    @property
    def auroc(self) -> float:
        """Share of all pairs in order; nan where there is no pair."""
        return float(self.ordered[-1] / self.pairs[-1]) if self.pairs[-1] else float("nan")

    @property
    def within_category(self) -> float:
        """The mean of the same share over the categories with both outcomes; nan without any.

        Here the category alone scores exactly a half.
        """
        some = self.pairs[:-1] > 0
        return float((self.ordered[:-1][some] / self.pairs[:-1][some]).mean()) if some.any() else float("nan")

    def __add__(self, other: Ranking) -> Ranking:
        return Ranking(self.ordered + other.ordered, self.pairs + other.pairs)


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps whose outcome is known: everything but the ends of runs.

    Parameters
    ----------
    point : (m,) array
        Position of each step's point in the study.
    target : (m,) array
        The level that followed; after the last level come the violation and, where it counts, completion.
    n_targets
        Number of levels and ends.
    """

    point: IntArray
    target: IntArray
    n_targets: int

    @classmethod
    def of(cls, study: Study, level: IntArray, n_levels: int, *, completion: bool = False) -> Steps:
        """Gather the steps of a study whose points stand at the given levels."""
        after = study.following(level, n_levels, completion=completion)
        point = np.flatnonzero(after >= 0)
        return cls(point, after[point], n_levels + 1 + completion)
