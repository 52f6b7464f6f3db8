"""Chains whose answers are known in closed form, to test solvers on and to learn from."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import expm1, log
from typing import TYPE_CHECKING

import numpy as np

from safetydrift.errors import ChainError
from safetydrift.markov._arrays import FloatArray, ReadOnly
from safetydrift.markov.chain import AbsorbingChain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, eq=False)
class ReferenceChain(ReadOnly):
    """A chain with what theory says about it. Rows are its transient states.

    Attributes
    ----------
    chain
        The chain.
    probabilities : (t, declared classes) array
        Absorption probabilities.
    expected_steps, variance_of_steps : (t,) arrays
        Mean and variance of the steps until absorption; the variance is ``nan`` where no closed form is
        given.
    """

    chain: AbsorbingChain
    probabilities: FloatArray
    expected_steps: FloatArray
    variance_of_steps: FloatArray


def geometric(escape: float) -> ReferenceChain:
    """Return the chain with one transient state, left with the same probability at every step.

    The steps are geometric: mean ``1/e``, variance ``(1 - e)/e^2``.
    """
    _require_probability(escape)
    chain = AbsorbingChain([[1.0 - escape, escape], [0.0, 1.0]], {"left": [1]}, names=["in", "out"])
    return ReferenceChain(
        chain, np.ones((1, 1)), np.array([1.0 / escape]), np.array([(1.0 - escape) / escape**2])
    )


def gamblers_ruin(p: float, n: int) -> ReferenceChain:
    """Return the walk on 0 .. n that wins one with probability `p`, else loses one, and ends at either side.

    With ``r = (1 - p)/p``, a stake of ``i`` reaches ``n`` with probability ``(1 - r^i)/(1 - r^n)``, after
    ``(n w_i - i)/(2p - 1)`` steps on average. For ``p = 1/2`` these are ``i/n`` and ``i (n - i)``, and the
    variance is ``i (n - i) (i^2 + (n - i)^2 - 2)/3``.

    References
    ----------
    W. Feller, *An Introduction to Probability Theory and Its Applications*, vol. 1, 3rd ed., XIV.2, XIV.3.
    """
    _require_probability(p)
    q = 1.0 - p
    stakes = np.arange(1, n)
    matrix = np.diag(np.full(n, p), 1) + np.diag(np.full(n, q), -1)
    matrix[[0, n]] = 0.0
    chain = AbsorbingChain(matrix, {"won": [n], "ruined": [0]})
    if p == q:
        won = stakes / n
        steps = (stakes * (n - stakes)).astype(np.float64)
        variance = steps * (stakes**2 + (n - stakes) ** 2 - 2) / 3.0
    else:
        ratio = log(q / p)
        won = np.array([expm1(i * ratio) / expm1(n * ratio) for i in stakes.tolist()])
        steps = (n * won - stakes) / (p - q)
        variance = np.full(n - 1, np.nan)
    return ReferenceChain(chain, np.column_stack([won, 1.0 - won]), steps, variance)


def birth_death(up: Sequence[float], down: Sequence[float]) -> ReferenceChain:
    """Return the walk on 0 .. n that climbs from ``i`` with probability ``up[i]`` and falls with ``down[i]``.

    It rests otherwise, cannot fall from 0, and ends at ``n = len(up)``. The first passage from ``i`` to ``i +
    1`` takes ``h_i = (1 + d_i h_{i-1})/u_i`` steps on average. Its second moment ``m_i`` solves the same
    recursion one order higher, ``u_i m_i = 1 + 2 d_i (h_{i-1} + h_i + h_{i-1} h_i) + 2 s_i h_i + d_i
    m_{i-1}`` with ``s_i = 1 - u_i - d_i``. Passages are independent, so means and variances add up from ``i``
    to ``n - 1``.
    """
    n = len(up)
    if len(down) != n or down[0] != 0.0:
        raise ChainError("a birth-death chain needs as many ways down as up, and none from state 0")
    matrix = np.zeros((n + 1, n + 1))
    mean, second = np.zeros(n), np.zeros(n)
    for i, (u, d) in enumerate(zip(up, down, strict=True)):
        _require_probability(u)
        rest = 1.0 - u - d
        matrix[i, i + 1], matrix[i, i] = u, rest
        before, moment = (mean[i - 1], second[i - 1]) if i else (0.0, 0.0)
        if i:
            matrix[i, i - 1] = d
        mean[i] = h = (1.0 + d * before) / u
        second[i] = (1.0 + 2.0 * d * (before + h + before * h) + 2.0 * rest * h + d * moment) / u
    variance = second - mean**2
    chain = AbsorbingChain(matrix, {"top": [n]})
    return ReferenceChain(
        chain, np.ones((n, 1)), np.cumsum(mean[::-1])[::-1], np.cumsum(variance[::-1])[::-1]
    )


def stiff(escape: float, violated: float = 0.25) -> ReferenceChain:
    """Return two states that send a run back and forth, and let it go once in ``1/escape`` rounds.

    From ``near`` the run moves on to ``far`` surely. From ``far`` it is violated with probability ``e v``,
    completed with ``e (1 - v)``, and back otherwise. It ends violated with probability ``v``, however small
    ``e``; a round is two steps, so it takes ``2/e`` steps from ``near`` and one fewer from ``far``, with
    variance ``4 (1 - e)/e^2``.
    """
    _require_probability(escape)
    out, done = escape * violated, escape * (1.0 - violated)
    chain = AbsorbingChain(
        [[0.0, 1.0, 0.0, 0.0], [1.0 - escape, 0.0, out, done], [0.0] * 4, [0.0] * 4],
        {"violated": [2], "completed": [3]},
        names=["near", "far", "violated", "completed"],
    )
    return ReferenceChain(
        chain,
        np.tile([violated, 1.0 - violated], (2, 1)),
        np.array([2.0 / escape, 2.0 / escape - 1.0]),
        np.full(2, 4.0 * (1.0 - escape) / escape**2),
    )


@dataclass(frozen=True, eq=False)
class PublishedChain(ReadOnly):
    """A chain from the literature, with its printed figures as columns to compare with.

    Attributes
    ----------
    chain
        The chain as printed, that is, rounded.
    low, high : (n, n) arrays
        Printed bounds of the 95 % Wilson intervals; ``nan`` where none is printed.
    within_5_steps : mapping of state name to float
        Printed probabilities of violation within 5 steps. They come from the unrounded matrix, so the printed
        one gives other figures, and these are no expected values.
    """

    chain: AbsorbingChain
    low: FloatArray
    high: FloatArray
    within_5_steps: Mapping[str, float] = field(default_factory=dict)


def published_chain() -> PublishedChain:
    """Return the aggregate chain of the SafetyDrift paper, on five risk levels.

    Violation is its only absorbing class: runs that finished are not in it, so it is absorbed there surely,
    by construction.

    References
    ----------
    A. Dhodapkar and F. Pishori, "SafetyDrift: Predicting When AI Agents Cross the Line Before They Actually
    Do", arXiv 2603.27148 (2026), figure 1.
    """
    names = ("safe", "mild", "elevated", "critical", "violated")
    printed: dict[tuple[str, str], tuple[float, float, float]] = {
        ("safe", "safe"): (0.54, 0.50, 0.58),
        ("safe", "mild"): (0.32, 0.28, 0.36),
        ("safe", "elevated"): (0.14, 0.12, 0.17),
        ("mild", "mild"): (0.74, 0.70, 0.77),
        ("mild", "elevated"): (0.13, 0.10, 0.16),
        ("mild", "critical"): (0.00, 0.00, 0.01),
        ("mild", "violated"): (0.13, 0.11, 0.16),
        ("elevated", "elevated"): (0.81, 0.78, 0.84),
        ("elevated", "critical"): (0.12, 0.09, 0.15),
        ("elevated", "violated"): (0.07, 0.05, 0.09),
        ("critical", "critical"): (0.93, 0.90, 0.95),
        ("critical", "violated"): (0.07, 0.05, 0.10),
    }
    columns = np.full((3, len(names), len(names)), np.nan)
    for (source, target), figures in printed.items():
        columns[:, names.index(source), names.index(target)] = figures
    value, low, high = columns
    chain = AbsorbingChain(np.nan_to_num(value), {"violated": [4]}, names)
    return PublishedChain(chain, low, high, {"mild": 0.463, "critical": 0.295})


def _require_probability(value: float) -> None:
    if not 0.0 < value < 1.0:
        raise ChainError(f"{value} is not a probability between 0 and 1")
