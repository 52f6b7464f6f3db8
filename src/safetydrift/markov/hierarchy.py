"""Dirichlet priors one within the other: how far rows of a part follow those of the whole, learnt from the counts.

A row of a part (one category of tasks) is like the same row of the whole, but not the same. Say that its
probabilities are drawn from a Dirichlet distribution whose mean ``m`` is the row of the whole and whose
*concentration* ``s`` says how closely parts follow it: a row departed from ``s`` times lies half-way. The counts
``c`` of the row, ``d`` departures in all, are then *Dirichlet-multinomial*, and the data themselves say which ``s``
fits, by the likelihood that is left when the unknown probabilities are integrated out::

    log L(s)  = sum_i [log G(s) - log G(s + d_i)] + sum_ij [log G(c_ij + s m_ij) - log G(s m_ij)]
    d/ds      = sum_i [psi(s) - psi(s + d_i)] + sum_ij m_ij [psi(c_ij + s m_ij) - psi(s m_ij)]

with the gamma function ``G``, its logarithmic derivative ``psi``, and cells without counts adding nothing. One
concentration serves all rows of a level. A weak prior on ``log s`` answers where there are too few counts to say.

Levels nest as *rings*: the outermost ring holds the runs farthest away, the innermost the part itself, and every count
stands in one ring only. The posterior mean given one ring is the prior mean of the next, so nothing is used twice:
neither to say what is expected nor to say how closely it is followed.

Literature
----------
T. P. Minka, "Estimating a Dirichlet distribution", 2000 (revised 2012), for the likelihood and its gradient.
I. J. Good, *The Estimation of Probabilities*, 1965, for concentrations fitted in this way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from safetydrift.errors import ChainError
from safetydrift.markov.special import digamma, log_gamma

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from safetydrift.markov._arrays import FloatArray

LOWEST, HIGHEST = 1e-2, 1e6
"""Concentrations considered: below, parts share nothing; above, they are the whole."""

EXPECTED = 10.0
"""The median of the weak prior of a concentration."""

SPREAD = 2.0
"""Standard deviation of that prior, on the natural logarithm: from 0.2 to 500 with a probability of 0.95."""

GRID = 41
"""Concentrations tried before the best of them is refined."""

HALVINGS = 40


def log_likelihood(counts: ArrayLike, means: ArrayLike, concentration: float) -> float:
    """Return the Dirichlet-multinomial log-likelihood, without the factor that does not depend on the concentration.

    Parameters
    ----------
    counts : (rows, cells) array
        Observed counts, which need not be whole.
    means : (rows, cells) array
        Expected probabilities; each row sums to one.
    concentration
        Above 0.

    Raises
    ------
    ChainError
        If the shapes differ, or something was observed that the means rule out.
    """
    return _Observed(counts, means).log_likelihood(concentration)


def gradient(counts: ArrayLike, means: ArrayLike, concentration: float) -> float:
    """Return the derivative of `log_likelihood` by the concentration."""
    return _Observed(counts, means).gradient(concentration)


def fit_concentration(
    counts: ArrayLike, means: ArrayLike, *, expected: float = EXPECTED, spread: float = SPREAD
) -> float:
    """Return the concentration that fits best, between `LOWEST` and `HIGHEST`.

    Parameters
    ----------
    counts, means : (rows, cells) arrays
        As for `log_likelihood`. Rows without counts have no say.
    expected, spread
        The log-normal prior of the concentration; an infinite spread leaves the counts alone to decide.

    Raises
    ------
    ChainError
        If the shapes differ, or something was observed that the means rule out.

    Notes
    -----
    The likelihood may have several maxima when rows disagree, so a grid comes first and bisection on the gradient
    second.

    Examples
    --------
    >>> means = np.full((2, 2), 0.5)
    >>> fit_concentration([[50, 50], [50, 50]], means) > fit_concentration([[100, 0], [0, 100]], means)
    True
    """
    observed = _Observed(counts, means)
    middle = np.log(expected)

    def slope(position: float) -> float:
        concentration = float(np.exp(position))
        return concentration * observed.gradient(concentration) - float(position - middle) / spread**2

    grid = np.linspace(np.log(LOWEST), np.log(HIGHEST), GRID)
    heights = [
        observed.log_likelihood(float(np.exp(position))) - 0.5 * ((position - middle) / spread) ** 2
        for position in grid
    ]
    best = int(np.argmax(heights))
    low, high = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, GRID - 1)])
    for _ in range(HALVINGS):
        position = 0.5 * (low + high)
        low, high = (position, high) if slope(position) > 0.0 else (low, position)
    return float(np.exp(0.5 * (low + high)))


def posterior_mean(counts: ArrayLike, means: ArrayLike, concentration: float) -> FloatArray:
    """Return the rows expected after the counts, ``(c + s m) / (d + s)``, shape (rows, cells).

    Parameters
    ----------
    counts, means
        As for `log_likelihood`, of shapes that broadcast.
    """
    seen, prior = np.asarray(counts, dtype=np.float64), np.asarray(means, dtype=np.float64)
    result: FloatArray = (seen + concentration * prior) / (seen.sum(axis=-1, keepdims=True) + concentration)
    return result


def nested_mean(rings: Sequence[ArrayLike], base: ArrayLike, concentrations: Sequence[float]) -> FloatArray:
    """Return the rows expected after several rings of counts, the outermost first.

    Parameters
    ----------
    rings
        Counts, each of shape (rows, cells); no run stands in two of them.
    base : (rows, cells) array
        What is expected before anything is seen.
    concentrations
        One per ring: how closely it follows what the rings outside it say.

    Examples
    --------
    >>> nested_mean([[[3, 1]], [[0, 2]]], [[0.5, 0.5]], [4.0, 2.0]).tolist()
    [[0.3125, 0.6875]]
    """
    mean = np.asarray(base, dtype=np.float64)
    for counts, concentration in zip(rings, concentrations, strict=True):
        mean = posterior_mean(counts, mean, concentration)
    return mean


class _Observed:
    """The cells that have counts: all that the likelihood asks for."""

    def __init__(self, counts: ArrayLike, means: ArrayLike) -> None:
        seen, prior = np.asarray(counts, dtype=np.float64), np.asarray(means, dtype=np.float64)
        if seen.shape != prior.shape:
            raise ChainError(f"the counts have shape {seen.shape}, what is expected {prior.shape}")
        cells = np.nonzero(seen)
        self._counts, self._means = seen[cells], prior[cells]
        if (self._means <= 0.0).any():
            raise ChainError("something was observed that is expected never to happen")
        departures = seen.sum(axis=-1)
        self._departures = departures[departures > 0.0]

    def log_likelihood(self, s: float) -> float:
        rows = log_gamma(np.full(1, s)) - log_gamma(s + self._departures)
        cells = log_gamma(self._counts + s * self._means) - log_gamma(s * self._means)
        return float(rows.sum() + cells.sum())

    def gradient(self, s: float) -> float:
        rows = digamma(np.full(1, s)) - digamma(s + self._departures)
        cells = self._means * (digamma(self._counts + s * self._means) - digamma(s * self._means))
        return float(rows.sum() + cells.sum())
