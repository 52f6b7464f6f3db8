"""Functions of the gamma family on arrays: what Dirichlet distributions are made of.

Only numpy is needed. ``log_gamma`` and ``digamma`` shift their argument to ``SHIFT`` or more and use the
asymptotic series there.

Literature
----------
F. W. J. Olver et al., *NIST Handbook of Mathematical Functions*, 2010, 5.11.1, 5.11.2, 5.15.8, for the series.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from safetydrift.markov._arrays import FloatArray

SHIFT = 10
"""From here on the series below are exact to the last digits."""

HALF_LOG_TAU = 0.5 * np.log(2.0 * np.pi)

REACH = 12.0
"""How far a quantile is looked for, in standard deviations of the log-odds."""

POINTS = 401
"""Points of the grid it is looked for on."""


def log_gamma(x: ArrayLike) -> FloatArray:
    """Return the logarithm of the gamma function, for ``x > 0``.

    Examples
    --------
    >>> log_gamma([1.0, 5.0]).round(12).tolist()
    [0.0, 3.178053830348]
    """
    given = np.asarray(x, dtype=np.float64)
    small = given < SHIFT
    y = np.where(small, given + SHIFT, given)
    inverse = 1.0 / y
    square = inverse * inverse
    series = inverse * (
        1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188)))
    )
    result: FloatArray = (y - 0.5) * np.log(y) - y + HALF_LOG_TAU + series
    if small.any():
        low = given[small]
        result[small] -= sum(np.log(low + k) for k in range(SHIFT))
    return result


def digamma(x: ArrayLike) -> FloatArray:
    """Return the derivative of `log_gamma`, for ``x > 0``.

    Examples
    --------
    >>> digamma([1.0, 2.0]).round(12).tolist()
    [-0.577215664902, 0.422784335098]
    """
    given = np.asarray(x, dtype=np.float64)
    small = given < SHIFT
    y = np.where(small, given + SHIFT, given)
    inverse = 1.0 / y
    square = inverse * inverse
    series = square * (
        1 / 12 - square * (1 / 120 - square * (1 / 252 - square * (1 / 240 - square * (1 / 132))))
    )
    result: FloatArray = np.log(y) - 0.5 * inverse - series
    if small.any():
        low = given[small]
        result[small] -= sum(1.0 / (low + k) for k in range(SHIFT))
    return result


def beta_quantile(level: float, a: ArrayLike, b: ArrayLike) -> FloatArray:
    """Return the quantile of beta distributions at one level, for ``a, b > 0``.

    The log-odds ``y`` of a beta variable have the smooth, log-concave density ``exp(a y - (a + b) log(1 + e^y))``, up
    to a factor. It is summed over an even grid as wide as its mean and standard deviation say, and the sum inverted
    between the points: right to about three places, unless both parameters are far below one.

    Parameters
    ----------
    level
        Between 0 and 1.
    a, b : array_like
        Of shapes that broadcast.

    Examples
    --------
    >>> beta_quantile(0.25, [1.0, 2.0], 1.0).round(3).tolist()
    [0.25, 0.5]
    """
    left, right = np.broadcast_arrays(np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64))
    p, q = left.reshape(-1, 1), right.reshape(-1, 1)
    middle = digamma(p) - digamma(q)
    width = REACH * np.sqrt(_trigamma(p) + _trigamma(q))
    y = middle + width * np.linspace(-1.0, 1.0, POINTS)
    logarithm = p * y - (p + q) * np.logaddexp(0.0, y)
    density = np.exp(logarithm - logarithm.max(axis=1, keepdims=True))
    below = np.cumsum(0.5 * (density[:, 1:] + density[:, :-1]), axis=1)
    wanted = level * below[:, -1:]
    after = np.minimum((below < wanted).sum(axis=1, keepdims=True), POINTS - 2)
    reached = np.take_along_axis(below, after, axis=1)
    step = 0.5 * np.take_along_axis(density[:, 1:] + density[:, :-1], after, axis=1)
    share = np.clip((wanted - (reached - step)) / np.where(step > 0.0, step, 1.0), 0.0, 1.0)
    found = np.take_along_axis(y, after, axis=1) + share * (y[:, 1:2] - y[:, :1])
    result: FloatArray = (0.5 * (1.0 + np.tanh(0.5 * found))).reshape(left.shape)
    return result


def _trigamma(x: FloatArray) -> FloatArray:
    """Return the derivative of `digamma`."""
    small = x < SHIFT
    y = np.where(small, x + SHIFT, x)
    inverse = 1.0 / y
    square = inverse * inverse
    result: FloatArray = (
        inverse
        + 0.5 * square
        + inverse * square * (1 / 6 - square * (1 / 30 - square * (1 / 42 - square / 30)))
    )
    if small.any():
        low = x[small]
        result[small] += sum(1.0 / (low + k) ** 2 for k in range(SHIFT))
    return result
