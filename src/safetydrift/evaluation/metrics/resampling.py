"""How sure a figure is: resampling whole tasks.

Runs of one task are alike, so a task is drawn with all its runs or not at all (the cluster bootstrap; Davison and
Hinkley, *Bootstrap Methods and their Application*, 1997, sect. 3.8). Every metric is a function of sums over tasks, or
over pairs of tasks, and a resample only weights these sums. All predictors share the same resamples, which makes the
difference between two of them a paired one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import nan
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from safetydrift.markov._arrays import BoolArray, FloatArray, IntArray

RESAMPLES = 500
"""How often tasks are drawn again."""

SEED = 260327148
"""Seed of the resamples, where the caller brings no generator."""

MAX_CLUSTERS = 1500
"""Beyond this many tasks, several at random are drawn together: pairs of tasks are counted, and must stay few."""


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """A figure, and the same figure on every resample of the tasks.

    Parameters
    ----------
    value
        The figure on the runs as they are; nan where it is not defined.
    draws : (resamples,) array
        The figure on each resample; nan where it is not defined on one.
    """

    value: float
    draws: FloatArray = field(repr=False)

    @property
    def undefined(self) -> int:
        """On how many resamples the figure is not defined; the interval speaks of the others."""
        return int(np.isnan(self.draws).sum())

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the percentile interval; nan where the figure is defined on no resample, or not at all."""
        defined = self.draws[~np.isnan(self.draws)]
        if not defined.size or np.isnan(self.value):
            return nan, nan
        tail = (1 - confidence) / 2
        low, high = np.quantile(defined, [tail, 1 - tail])
        return float(low), float(high)

    def minus(self, other: Estimate) -> Estimate:
        """Return the difference to a figure on the same resamples."""
        return Estimate(self.value - other.value, self.draws - other.draws)

    @property
    def excludes_zero(self) -> bool:
        """Whether the 95 % interval lies on one side of zero."""
        low, high = self.interval()
        return low > 0 or high < 0

    def as_dict(self) -> dict[str, float | int]:
        """Return value and interval as plain data."""
        low, high = self.interval()
        return {"value": self.value, "low": low, "high": high, "undefined_resamples": self.undefined}

    def written(self, *, signed: bool = False) -> str:
        """Write the figure with its interval; with its sign, one that is not zero for sure has a star."""
        if np.isnan(self.value):
            return "\N{EN DASH}"
        figure, (low, high) = f"{self.value:+.3f}" if signed else f"{self.value:.3f}", self.interval()
        star = "*" if signed and self.excludes_zero else ""
        return figure if np.isnan(low) else f"{figure} [{low:.2f}, {high:.2f}]{star}"

    def __str__(self) -> str:
        return self.written()


@dataclass(frozen=True, eq=False)
class Resamples:
    """How often each task is in each resample.

    Parameters
    ----------
    weights : (1 + resamples, clusters) array
        Times each cluster of tasks was drawn. The first row is all ones: the runs as they are.
    cluster : (tasks,) array of int
        The cluster of each task; its own, unless there are more tasks than `MAX_CLUSTERS`.
    """

    weights: FloatArray
    cluster: IntArray

    @classmethod
    def draw(
        cls, n_tasks: int, rng: np.random.Generator | None = None, n_resamples: int = RESAMPLES
    ) -> Resamples:
        """Draw ``n_tasks`` tasks with replacement, ``n_resamples`` times.

        Parameters
        ----------
        rng
            Where the draws come from; seeded with `SEED` when left out.
        """
        rng = np.random.default_rng(SEED) if rng is None else rng
        cluster = np.arange(n_tasks)
        if n_tasks > MAX_CLUSTERS:
            cluster = rng.permutation(n_tasks) % MAX_CLUSTERS
        n_clusters = min(n_tasks, MAX_CLUSTERS)
        drawn = rng.multinomial(n_clusters, np.full(n_clusters, 1 / max(1, n_clusters)), size=n_resamples)
        return cls(np.vstack([np.ones(n_clusters), drawn.astype(np.float64)]), cluster)

    @property
    def n_resamples(self) -> int:
        """How often tasks were drawn."""
        return len(self.weights) - 1

    @cached_property
    def n_clusters(self) -> int:
        """How many things are drawn."""
        return int(self.weights.shape[1])

    def total(self, values: FloatArray | IntArray | BoolArray, task: IntArray) -> FloatArray:
        """Return the sum of values on each resample, shape (1 + resamples,).

        Parameters
        ----------
        values, task : (n,) arrays
            A value each, and the task it belongs to.
        """
        by_cluster = np.bincount(self.cluster[task], weights=values, minlength=self.n_clusters)
        total: FloatArray = self.weights @ by_cluster
        return total


def estimate(row: FloatArray) -> Estimate:
    """Return a figure from its value on the runs as they are (first) and on each resample (the rest)."""
    return Estimate(float(row[0]), row[1:])


def ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Divide; nan where the denominator is 0."""
    out: FloatArray = np.full(np.broadcast(numerator, denominator).shape, nan)
    np.divide(numerator, denominator, out=out, where=np.asarray(denominator) > 0)
    return out
