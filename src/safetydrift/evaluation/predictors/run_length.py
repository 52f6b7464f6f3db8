"""The number of calls made, and nothing else: runs that go on are different from runs that end.

A baseline for leaks of the evaluation itself. If longer runs are the violated ones, any score that grows along a run
looks good without knowing anything. Which way the risk goes is learned from the training runs, and kept to one way.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from safetydrift.evaluation.scores import HORIZONS, Scores

if TYPE_CHECKING:
    from safetydrift.evaluation.cases import CaseSet
    from safetydrift.markov._arrays import FloatArray


@dataclass(frozen=True, slots=True)
class RunLength:
    """Monotone regression of the outcome on the number of calls made.

    Rising and falling fits are made for every horizon; the direction with the smaller squared error over all of them
    is taken for all.
    """

    name: str = "run-length"

    def fit(self, cases: CaseSet) -> FittedLength:
        """Fit both directions and keep the better one."""
        step = cases.step_of_point
        weights = np.bincount(step).astype(np.float64)
        if not len(weights):
            return FittedLength(self.name, np.ones((1, len(HORIZONS))), np.ones(1))
        hits = [np.bincount(step, weights=cases.happens_within(horizon)) for horizon in HORIZONS]
        rates = [part / weights for part in hits]
        call = np.arange(int(cases.first_proposal[-1])) - cases.first_proposal[cases.run_of_proposal]
        made = np.bincount(call, minlength=len(weights)).astype(np.float64)
        violating = np.bincount(call, weights=cases.violating_proposal, minlength=len(weights))
        pending = np.divide(violating, made, out=np.zeros_like(made), where=made > 0)
        options = []
        for sign in (1.0, -1.0):
            fits = [sign * isotonic(sign * rate, weights) for rate in rates]
            error = sum(float(weights @ (fit - rate) ** 2) for fit, rate in zip(fits, rates, strict=True))
            options.append((error, sign, fits))
        _, sign, fits = min(options, key=lambda option: option[0])
        proposals = sign * isotonic(sign * pending, np.maximum(made, 1e-9))
        return FittedLength(self.name, np.stack(fits, axis=1), proposals)


@dataclass(frozen=True, slots=True)
class FittedLength:
    """Risk by number of calls made; what is longer than any training run has the risk of the longest.

    Parameters
    ----------
    name
        How tables name it.
    within : (steps, 3) array
        Probability by calls made and horizon.
    pending : (steps,) array
        Probability that the next call is the violation, by calls made before it.
    """

    name: str
    within: FloatArray = field(repr=False)
    pending: FloatArray = field(repr=False)

    def score(self, cases: CaseSet) -> Scores:
        """Score by the number of calls made."""
        call = np.arange(int(cases.first_proposal[-1])) - cases.first_proposal[cases.run_of_proposal]
        last = len(self.within) - 1
        return Scores(
            self.name,
            self.within[np.minimum(cases.step_of_point, last)],
            self.pending[np.minimum(call, len(self.pending) - 1)],
        )


def isotonic(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the non-decreasing sequence closest to the values in weighted squares, shape (n,).

    By pooling adjacent violators: M. Ayer et al., "An empirical distribution function for sampling with incomplete
    information", Annals of Mathematical Statistics 26 (1955).

    Examples
    --------
    >>> isotonic(np.array([1.0, 3.0, 2.0]), np.array([1.0, 1.0, 1.0])).tolist()
    [1.0, 2.5, 2.5]
    """
    pools: list[tuple[float, float, int]] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        mean, total, size = value, weight, 1
        while pools and pools[-1][0] >= mean:
            before, mass, members = pools.pop()
            mean = (before * mass + mean * total) / (mass + total)
            total, size = total + mass, size + members
        pools.append((mean, total, size))
    return np.repeat([mean for mean, _, _ in pools], [size for _, _, size in pools])
