"""From counts to chains, and how sure the counts make us.

Write ``c_ij`` for the counts of a row and ``d_i`` for its departures. Each row is a multinomial of its own,
so rows are estimated one by one:

- *maximum likelihood*, ``p_ij = c_ij / d_i``. Where ``d_i`` is zero there is no estimate, and none is
  invented: the state is `unseen` and the chain reports the mass that runs into it.
- *shrinkage*, the posterior mean of a Dirichlet prior with ``s`` pseudo-counts spread as ``m_i``, a row known
  from elsewhere: ``p_ij = (c_ij + s m_ij) / (d_i + s)``. Much evidence outweighs the prior, little does not.
- *smoothing on the support*, a prior of ``a`` pseudo-counts for each transition that can happen at all. What
  cannot happen (a *structural zero*) is knowledge, and receives nothing.

Each marks the rows that no departure supports in ``chain.visited``, however plausible the prior made them.

Literature
----------
T. W. Anderson and L. A. Goodman, "Statistical inference about Markov chains", Annals of Mathematical
Statistics 28 (1957), section 2, for maximum likelihood. E. B. Wilson, "Probable inference, the law of
succession, and statistical inference", JASA 22 (1927), for the interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from safetydrift.errors import ChainError
from safetydrift.markov._arrays import FloatArray, ReadOnly
from safetydrift.markov.chain import Absorbing, AbsorbingChain, AbsorbingClasses, require_stochastic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from safetydrift.markov.counts import TransitionCounts


def maximum_likelihood(
    counts: TransitionCounts, absorbing: Absorbing, names: Sequence[str] | None = None
) -> AbsorbingChain:
    """Estimate every row by its observed frequencies.

    Parameters
    ----------
    counts
        What was observed.
    absorbing
        Class names and their states.
    names
        One name per state.

    Returns
    -------
    AbsorbingChain
        Rows never departed from are zero and their states `unseen`.

    Raises
    ------
    ChainError
        If nothing was counted, or an absorbing state was observed to be left.

    Examples
    --------
    >>> from safetydrift.markov import count_transitions
    >>> chain = maximum_likelihood(count_transitions([[0, 0, 0, 1], [0, 2]], 3), {"violated": [1]})
    >>> chain.transitions[0].tolist(), chain.visited.tolist(), chain.unseen.tolist()
    ([0.5, 0.25, 0.25], [True, True, False], [2])
    """
    if not counts.total:
        raise ChainError(
            "no transitions were counted; use shrunk() or dirichlet() where a prior must speak alone"
        )
    return _posterior_mean(counts, np.zeros(counts.matrix.shape), absorbing, names)


def shrunk(
    counts: TransitionCounts,
    absorbing: Absorbing,
    *,
    towards: ArrayLike,
    strength: float,
    names: Sequence[str] | None = None,
) -> AbsorbingChain:
    """Estimate every row as the posterior mean of a Dirichlet prior centred at another chain's row.

    Parameters
    ----------
    counts
        What was observed.
    absorbing
        Class names and their states.
    towards : (n, n) array
        Transition matrix to shrink to, for example of all categories together. A row of zeros means that
        nothing is known there either; such a row is estimated by its frequencies alone.
    strength
        Pseudo-counts given to the prior: a row departed from that often lies half-way. Zero is maximum
        likelihood.
    names
        One name per state.

    Raises
    ------
    ChainError
        If `towards` is no transition matrix of this size, the strength is negative or not finite, or an
        absorbing state was observed to be left.

    Examples
    --------
    >>> from safetydrift.markov import TransitionCounts
    >>> counts = TransitionCounts([[0, 4], [0, 0]])
    >>> shrunk(counts, {"done": [1]}, towards=[[0.5, 0.5], [0, 1]], strength=4).transitions[0].tolist()
    [0.25, 0.75]
    """
    prior = np.asarray(towards, dtype=np.float64)
    if prior.shape != counts.matrix.shape:
        raise ChainError(f"towards has shape {prior.shape}, the counts {counts.matrix.shape}")
    require_stochastic(prior, zero_rows=True)
    return _posterior_mean(counts, _pseudo_counts(strength) * prior, absorbing, names)


def dirichlet(
    counts: TransitionCounts,
    absorbing: Absorbing,
    *,
    support: ArrayLike,
    concentration: float,
    names: Sequence[str] | None = None,
) -> AbsorbingChain:
    """Estimate every row as the posterior mean of a symmetric Dirichlet prior on the allowed transitions.

    Parameters
    ----------
    counts
        What was observed.
    absorbing
        Class names and their states.
    support : (n, n) array of bool
        The transitions that can happen. All others stay zero exactly.
    concentration
        Pseudo-counts given to each allowed transition; 1/2 is Jeffreys' choice, 1 Laplace's.
    names
        One name per state.

    Raises
    ------
    ChainError
        If the support has another shape, a transition outside it was observed, the concentration is negative
        or not finite, or an absorbing state was observed to be left.
    """
    allowed = np.asarray(support, dtype=np.bool_)
    if allowed.shape != counts.matrix.shape:
        raise ChainError(f"the support has shape {allowed.shape}, the counts {counts.matrix.shape}")
    outside = np.argwhere((counts.matrix > 0) & ~allowed)
    if outside.size:
        row, column = outside[0]
        raise ChainError(
            f"{len(outside)} observed transitions lie outside the support, first from state {row} to {column}"
        )
    return _posterior_mean(
        counts, _pseudo_counts(concentration) * allowed.astype(np.float64), absorbing, names
    )


@dataclass(frozen=True)
class Interval(ReadOnly):
    """Observed proportions with the bounds of their confidence intervals, all of one shape.

    Attributes
    ----------
    value, low, high : arrays
        Where nothing was tried the value is undefined, ``nan``, and the interval is 0 to 1.
    """

    value: FloatArray
    low: FloatArray
    high: FloatArray


def wilson_interval(hits: ArrayLike, total: ArrayLike, confidence: float = 0.95) -> Interval:
    """Return Wilson's score interval for proportions.

    The bounds are the roots of ``(1 + z²/n) x² - (2 p + z²/n) x + p² = 0``. The upper bound of ``p`` is one
    minus the lower bound of ``1 - p``, and the lower bound is computed as the product of the roots over the
    larger one, so that neither loses digits near 0 and 1.

    Parameters
    ----------
    hits, total : array_like
        Successes and trials, of shapes that broadcast.
    confidence
        Coverage aimed at, between 0 and 1.

    Raises
    ------
    ChainError
        If ``0 <= hits <= total`` does not hold, or the confidence is not between 0 and 1.

    Examples
    --------
    >>> interval = wilson_interval([36, 4, 0], [38, 34, 0])
    >>> interval.low.round(2).tolist(), interval.high.round(2).tolist()
    ([0.83, 0.05, 0.0], [0.99, 0.27, 1.0])
    """
    successes, trials = np.broadcast_arrays(np.asarray(hits, np.float64), np.asarray(total, np.float64))
    if not ((successes >= 0) & (successes <= trials)).all():
        raise ChainError("an interval needs 0 <= hits <= total")
    if not 0.0 < confidence < 1.0:
        raise ChainError(f"confidence {confidence} is not between 0 and 1")
    z = NormalDist().inv_cdf((1.0 + confidence) / 2.0)
    tried = trials > 0
    n = np.where(tried, trials, 1.0)
    low = np.where(tried, _wilson_low(successes, n, z), 0.0)
    high = np.where(tried, 1.0 - _wilson_low(n - successes, n, z), 1.0)
    return Interval(np.where(tried, successes / n, np.nan), low, high)


def row_intervals(counts: TransitionCounts, confidence: float = 0.95) -> Interval:
    """Return Wilson's interval for every transition probability, shape (n, n).

    Each cell is taken alone; the intervals of a row do not hold jointly.
    """
    return wilson_interval(counts.matrix, counts.departures[:, None], confidence)


def posterior_weights(
    counts: TransitionCounts, pseudo_counts: FloatArray, classes: AbsorbingClasses
) -> FloatArray:
    """Return counts plus pseudo-counts, shape (n, n), with nothing in the rows of absorbing states.

    Raises
    ------
    ChainError
        If an absorbing state was observed to be left for a state outside its class.
    """
    for name, states in classes.members.items():
        left = np.delete(counts.matrix[list(states)], states, axis=1).sum(axis=1)
        if left.any():
            worst = int(left.argmax())
            raise ChainError(
                f"state {states[worst]} of the absorbing class {name!r} was left {left[worst]} times; "
                "end the sequences at absorption, or do not declare it absorbing"
            )
    weights = counts.matrix + pseudo_counts
    weights[classes.absorbing] = 0.0
    return weights


def _posterior_mean(
    counts: TransitionCounts, pseudo_counts: FloatArray, absorbing: Absorbing, names: Sequence[str] | None
) -> AbsorbingChain:
    weights = posterior_weights(counts, pseudo_counts, AbsorbingClasses(absorbing, counts.n_states))
    totals = weights.sum(axis=1, keepdims=True)
    transitions = np.divide(weights, totals, out=np.zeros_like(weights), where=totals > 0.0)
    return AbsorbingChain(transitions, absorbing, names, visited=counts.departures > 0)


def _pseudo_counts(number: float) -> float:
    if not 0.0 <= number < np.inf:
        raise ChainError(f"pseudo-counts must be a finite number, 0 or more, not {number}")
    return number


def _wilson_low(successes: FloatArray, n: FloatArray, z: float) -> FloatArray:
    p = successes / n
    half = z * np.sqrt(p * (1.0 - p) / n + (z / (2.0 * n)) ** 2)
    larger = p + z * z / (2.0 * n) + half
    return p * p / larger
