"""How sure a chain is of what it says: variances and intervals of horizon and absorption probabilities.

The rows of a chain are estimates. With counts and pseudo-counts of weight ``w_k`` in all, row ``k`` is Dirichlet, and
its deviation from its mean ``p_k`` has the covariance ``(diag(p_k) - p_k p_k^T) / (w_k + 1)``, independently of all
other rows. A small change of the rows changes the probability of violation within ``h`` steps by::

    dv_h[i] = sum_k sum_{a < h} (P^(h-1-a))[i, k]  dp_k . v_a

so that, with ``C_k[a, b]`` the covariance of ``v_a`` and ``v_b`` under row ``k``::

    Var v_h[i] = sum_k sum_{a, b < h} (P^(h-1-a))[i, k] (P^(h-1-b))[i, k] C_k[a, b] / (w_k + 1)

and at the end, with the fundamental matrix ``N``, ``Var v[i] = sum_k N[i, k]^2 Var_k(v) / (w_k + 1)``. For one step
this is exact; for more it leaves out what is of second order in the deviations. The interval is that of the beta
distribution with this mean and variance, for one step the exact posterior. Nothing is drawn, so nothing depends on a
seed; `safetydrift.markov.bootstrap_horizons` draws, and the tests compare the two.

Rows share their uncertainty only through the chain: that runs of one task resemble each other is not in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from safetydrift.errors import ChainError
from safetydrift.markov.horizon import horizon_table
from safetydrift.markov.special import beta_quantile

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from safetydrift.markov._arrays import FloatArray
    from safetydrift.markov.absorption import Absorption
    from safetydrift.markov.chain import AbsorbingChain

LEVELS = (0.05, 0.95)
"""The quantiles taken unless told otherwise."""

ENOUGH = 1e-9
"""A relative error that no interval shows."""


def horizon_variance(chain: AbsorbingChain, weights: ArrayLike, max_horizon: int) -> FloatArray:
    """Return the variance of the probability of the first class within h steps, shape (max_horizon + 1, n).

    Parameters
    ----------
    chain
        The chain, each row the mean of its posterior.
    weights : (n,) array
        Counts and pseudo-counts behind each row. Rows of states that end a run, or were never left, are certain.
    max_horizon
        Steps, 0 or more.

    Raises
    ------
    ChainError
        If the weights do not fit the chain.
    """
    share = _uncertainty(chain, weights)
    open_states = chain.transient
    moves = chain.transitions[open_states]
    curves = horizon_table(chain, max_horizon).probability()
    means = moves @ curves.T
    # covariance[k, a, b] of the curves after a and after b steps under row k, over its weight
    covariance = np.einsum("kj,aj,bj->kab", moves, curves, curves, optimize=True)
    covariance -= means[:, :, None] * means[:, None, :]
    covariance *= share[:, None, None]
    powers = [np.eye(chain.n_states)[:, open_states]]
    closed = chain.transitions
    for _ in range(max_horizon - 1):
        powers.append(closed @ powers[-1])
    variance = np.zeros(curves.shape)
    for horizon in range(1, max_horizon + 1):
        reach = np.stack(powers[horizon - 1 :: -1][:horizon])  # by a: P^(h-1-a)
        part = covariance[:, :horizon, :horizon]
        variance[horizon] = np.einsum("aik,kab,bik->i", reach, part, reach, optimize=True)
    return np.maximum(variance, 0.0)


def absorption_variance(ends: Absorption, weights: ArrayLike, visits: FloatArray | None = None) -> FloatArray:
    """Return the variance of the probability of ending in the first class, shape (n,).

    Parameters
    ----------
    ends
        How the runs of the chain end.
    weights
        As for `horizon_variance`.
    visits : (t, t) array, optional
        The fundamental matrix, if it is at hand.

    Raises
    ------
    ChainError
        If the weights do not fit the chain.
    """
    chain, probability = ends.chain, ends.probability()
    share = _uncertainty(chain, weights)
    moves = chain.transitions[chain.transient]
    spread = np.maximum(moves @ probability**2 - (moves @ probability) ** 2, 0.0) * share
    visits = ends.fundamental(ENOUGH) if visits is None else visits
    variance = np.zeros(chain.n_states)
    variance[chain.transient] = visits**2 @ spread
    return variance


def beta_interval(
    mean: ArrayLike, variance: ArrayLike, levels: tuple[float, float] = LEVELS
) -> tuple[FloatArray, FloatArray]:
    """Return quantiles of beta distributions given by mean and variance.

    A variance no distribution on 0 to 1 can have is taken for the widest of which the quantiles still say something;
    without variance, or at 0 and 1, both quantiles are the mean. What is ``nan`` stays so.

    Parameters
    ----------
    mean, variance : array_like
        Of one shape.

    Examples
    --------
    >>> low, high = beta_interval([0.5, 0.0], [1 / 12, 0.0])
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.05, 0.0], [0.95, 0.0])
    """
    centre = np.asarray(mean, dtype=np.float64)
    spread = np.asarray(variance, dtype=np.float64)
    low, high = centre.copy(), centre.copy()
    uncertain = (centre > 0.0) & (centre < 1.0) & (spread > 0.0)
    p = centre[uncertain]
    total = np.maximum(p * (1.0 - p) / spread[uncertain] - 1.0, SMALLEST_TOTAL)
    total = np.minimum(total, LARGEST_TOTAL)
    low[uncertain] = np.minimum(beta_quantile(levels[0], p * total, (1.0 - p) * total), p)
    high[uncertain] = np.maximum(beta_quantile(levels[1], p * total, (1.0 - p) * total), p)
    return low, high


SMALLEST_TOTAL = 0.05
"""The least weight of a beta distribution whose quantiles are asked for."""

LARGEST_TOTAL = 1e7
"""The largest: the interval is then narrower than anything that is shown."""


def _uncertainty(chain: AbsorbingChain, weights: ArrayLike) -> FloatArray:
    """Return ``1 / (w + 1)`` of the transient states."""
    behind = np.asarray(weights, dtype=np.float64)
    if behind.shape != (chain.n_states,) or not (behind[chain.transient] >= 0.0).all():
        raise ChainError(f"a weight is needed for each of the {chain.n_states} states, none below 0")
    result: FloatArray = 1.0 / (behind[chain.transient] + 1.0)
    return result
