"""Penalised logistic regression on wide rows of which many share their words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from safetydrift.monitor.risk_score import Link
from safetydrift.states.task_words import WORD_BINS

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from safetydrift.markov._arrays import BoolArray, FloatArray, IntArray

MAX_ITERATIONS = 80
TOLERANCE = 1e-5
"""Largest entry of the gradient of the mean loss at which a fit is done."""
CERTAIN = 16.0
"""Log odds of what always happened."""
DIGITS = 4
"""Decimal places of weights and links."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """A wide matrix in parts; its columns are those of ``own``, then those of every set of words."""

    own: Any
    """Sparse, (rows, columns)."""
    words: tuple[Any, ...]
    """Sparse, (sets, `WORD_BINS`) each."""
    words_of: tuple[IntArray, ...]
    """Number of the set, by row."""

    def __len__(self) -> int:
        return len(self.words_of[0])

    def take(self, chosen: BoolArray) -> Inputs:
        """Return some of the rows."""
        return Inputs(self.own[chosen], self.words, tuple([numbers[chosen] for numbers in self.words_of]))

    def squared(self) -> Inputs:
        """Return the matrix with every number squared."""
        return Inputs(self.own.power(2), tuple([words.power(2) for words in self.words]), self.words_of)

    def times(self, coefficients: FloatArray) -> FloatArray:
        """Return the matrix times a vector of column weights, (rows,)."""
        first = self.own.shape[1]
        product: FloatArray = self.own @ coefficients[:first]
        for words, numbers, part in zip(
            self.words, self.words_of, np.split(coefficients[first:], len(self.words)), strict=True
        ):
            product += (words @ part)[numbers]
        return product

    def back(self, residuals: FloatArray) -> FloatArray:
        """Return the transposed matrix times a vector of row weights, (columns,)."""
        parts = [
            words.T @ np.bincount(numbers, residuals, minlength=words.shape[0])
            for words, numbers in zip(self.words, self.words_of, strict=True)
        ]
        return np.concatenate([self.own.T @ residuals, *parts])


@dataclass(frozen=True, slots=True)
class Regression:
    """What was found.

    Parameters
    ----------
    coefficients : (columns,) array
        One per column.
    bias
        The log odds where all columns are zero.
    """

    coefficients: FloatArray
    bias: float

    @classmethod
    def of(cls, inputs: Inputs, target: BoolArray, penalty: float) -> Regression:
        """Fit a ridge-penalised logistic regression whose bias is free.

        Stops after `MAX_ITERATIONS` in any case: stopping early is one more way to stay near zero.

        Parameters
        ----------
        penalty
            Inverse strength of the penalty (C of scikit-learn).
        """
        from scipy.optimize import minimize  # noqa: PLC0415  # only fitting needs it
        from threadpoolctl import threadpool_limits  # noqa: PLC0415  # as above

        n, sign = len(inputs), np.where(target, -1.0, 1.0)
        ridge = 1.0 / (penalty * n)

        def loss(point: FloatArray) -> tuple[float, FloatArray]:
            coefficients = point[:-1]
            margins = sign * (inputs.times(coefficients) + point[-1])
            residuals = sign / (1.0 + np.exp(-margins)) / n
            value = float(np.logaddexp(0.0, margins).mean() + 0.5 * ridge * (coefficients @ coefficients))
            return value, np.append(inputs.back(residuals) + ridge * coefficients, residuals.sum())

        start = np.zeros(inputs.own.shape[1] + len(inputs.words) * WORD_BINS + 1)
        with (
            threadpool_limits(limits=1),
            np.errstate(over="ignore"),
        ):  # threads would wait more than they share
            options = {"maxiter": MAX_ITERATIONS, "gtol": TOLERANCE}
            found = minimize(loss, start, method="L-BFGS-B", jac=True, options=options).x
        return cls(found[:-1], float(found[-1]))

    def scores(self, inputs: Inputs) -> FloatArray:
        """Return the log odds of rows, (rows,)."""
        return inputs.times(self.coefficients) + self.bias

    def information(self, inputs: Inputs) -> FloatArray:
        """Return the Fisher information that rows hold about each coefficient, (columns,)."""
        with np.errstate(over="ignore"):
            expected = 1.0 / (1.0 + np.exp(-self.scores(inputs)))
        return inputs.squared().back(expected * (1.0 - expected))


def link(scores: FloatArray, happened: BoolArray) -> Link:
    """Return the logistic link from scores to what happened (Platt, 1999)."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415  # only fitting needs it

    if happened.all() or not happened.any():
        return Link(CERTAIN if happened.all() else -CERTAIN, 0.0)
    fitted = LogisticRegression(C=1e6).fit(scores[:, None], happened)
    slope = max(float(fitted.coef_[0, 0]), 0.0)
    return Link(round(float(fitted.intercept_[0]), DIGITS), round(slope, DIGITS))


def one_hot(numbers: IntArray, size: int, present: BoolArray | None = None) -> Any:
    """Return a sparse matrix with a 1 in the column that each row numbers, if it is present."""
    from scipy import sparse  # noqa: PLC0415  # as above

    rows = np.arange(len(numbers)) if present is None else np.flatnonzero(present)
    columns = numbers if present is None else numbers[present]
    return sparse.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(len(numbers), size))


def members(sets: Sequence[Collection[int]], width: int, values: FloatArray | None = None) -> Any:
    """Return a sparse matrix with, in every row, the columns that a set names.

    Parameters
    ----------
    values
        What stands in every column of a row, (sets,); 1 if not given.
    """
    from scipy import sparse  # noqa: PLC0415  # as above

    lengths = np.array([len(one) for one in sets], dtype=np.int64)
    columns = np.array([one for found in sets for one in found], dtype=np.int64)
    rows = np.repeat(np.arange(len(sets)), lengths)
    entries = np.ones(len(columns)) if values is None else np.repeat(values, lengths)
    return sparse.csr_matrix((entries, (rows, columns)), shape=(len(sets), width))
