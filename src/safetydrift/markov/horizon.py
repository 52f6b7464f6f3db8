"""Finite horizons: the probability of reaching an absorbing class within the next few steps.

Let ``v_h[i]`` be the probability that a run in state ``i`` is in a given class after at most ``h`` steps. As
the class is never left, ``v_0`` is 1 inside the class and 0 elsewhere, and the first step decides the rest::

    v_h = P v_{h-1}

One such column answers for every state at once; a matrix power is never needed. ``v_h`` grows with ``h`` and
tends to the absorption probability. It grows in floating point too: rounded sums and products of non-negative
numbers are monotone in each term, so the table is monotone exactly, not up to rounding.

Mass that runs into a state without observations counts for the class ``unseen``, so the true probability lies
between that of the class and the sum of the two.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING

import numpy as np

from safetydrift.errors import ChainError, HorizonError
from safetydrift.markov._arrays import CHUNK, FloatArray, ReadOnly, text_table
from safetydrift.markov.chain import Absorbing, AbsorbingChain, AbsorbingClasses, close, matrix_stack
from safetydrift.markov.estimation import posterior_weights

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike

    from safetydrift.markov.counts import TransitionCounts

BLOCK = 8 * CHUNK
"""Chains drawn ahead by the bootstrap's thread."""

SMALLEST_ROW = 0.1
"""The least weight of a row that is drawn from: below it all of its draws may underflow to zero at once."""


@dataclass(frozen=True, eq=False, repr=False)
class HorizonTable(ReadOnly):
    """The probability of each class within each horizon, from every state.

    Attributes
    ----------
    chain
        The chain.
    probabilities : (classes, max_horizon + 1, n) array
        By class of ``chain.class_names``, by horizon in steps, by state. Non-decreasing along the second
        axis.
    """

    chain: AbsorbingChain
    probabilities: FloatArray

    @property
    def max_horizon(self) -> int:
        """The longest horizon in the table, in steps."""
        return int(self.probabilities.shape[1]) - 1

    def probability(self, class_name: str | None = None) -> FloatArray:
        """Return one class's table, shape (max_horizon + 1, n).

        Parameters
        ----------
        class_name
            The class; the chain's first if left out.

        Raises
        ------
        ChainError
            If there is no such class.
        """
        table: FloatArray = self.probabilities[self.chain.class_index(class_name)]
        return table

    def within(self, horizon: int, class_name: str | None = None) -> FloatArray:
        """Return the probability of reaching a class within so many steps from every state, shape (n,).

        Parameters
        ----------
        horizon
            Steps, 0 to `max_horizon`.
        class_name
            The class; the chain's first if left out.

        Raises
        ------
        HorizonError
            If the horizon is not in the table.
        ChainError
            If there is no such class.
        """
        row: FloatArray = self.probability(class_name)[_checked(horizon, self.max_horizon)]
        return row

    def bounds(self, horizon: int, class_name: str | None = None) -> tuple[FloatArray, FloatArray]:
        """Return what is certain of `within`, and what is possible if all unseen mass went to the class.

        Parameters
        ----------
        horizon, class_name
            As for `within`.

        Returns
        -------
        tuple of two (n,) arrays
            The lower and the upper bound.
        """
        lower = self.within(horizon, class_name)
        return lower, np.minimum(lower + self.within(horizon, self.chain.class_names[-1]), 1.0)

    def points_of_no_return(
        self, horizon: int = 5, probability: float = 0.85, class_name: str | None = None
    ) -> tuple[int, ...]:
        """Return the transient states from which a class is reached within the horizon that probably.

        Parameters
        ----------
        horizon, class_name
            As for `within`.
        probability
            The published method takes 0.85 within 5 steps.
        """
        likely = self.within(horizon, class_name)[self.chain.transient] >= probability
        return tuple(self.chain.transient[likely].tolist())

    def __repr__(self) -> str:
        horizons = sorted({1, 2, 5, self.max_horizon} & set(range(1, self.max_horizon + 1)))
        rows = [
            [self.chain.names[state], *(f"{self.within(h)[state]:.3f}" for h in horizons)]
            for state in self.chain.transient
        ]
        return text_table([f"{self.chain.class_names[0]} within", *map(str, horizons)], rows)


@dataclass(frozen=True, eq=False)
class HorizonQuantiles(ReadOnly):
    """What the uncertainty of the counts does to a horizon table.

    Attributes
    ----------
    class_names : tuple of str
        The declared classes, then ``"unseen"``.
    levels : (q,) array
        The quantiles taken, each between 0 and 1.
    values : (q, classes, max_horizon + 1, n) array
        Quantiles over the draws, by class, horizon in steps and state.
    """

    class_names: tuple[str, ...]
    levels: FloatArray
    values: FloatArray

    def within(self, horizon: int, class_name: str | None = None) -> FloatArray:
        """Return the quantiles of the probability of a class within so many steps, shape (q, n).

        Raises
        ------
        HorizonError
            If the horizon is not in the table.
        ChainError
            If there is no such class.
        """
        name = self.class_names[0] if class_name is None else class_name
        if name not in self.class_names:
            raise ChainError(f"there is no class {name!r}; there are {', '.join(self.class_names)}")
        return self.values[:, self.class_names.index(name), _checked(horizon, self.values.shape[2] - 1)]


def horizon_table(chain: AbsorbingChain, max_horizon: int = 10) -> HorizonTable:
    """Return the probabilities of every class within 0 to `max_horizon` steps.

    The chain need not absorb surely: a trap keeps its zeros.

    Parameters
    ----------
    chain
        The chain.
    max_horizon
        Steps, 0 or more.

    Raises
    ------
    HorizonError
        If the horizon is negative.

    Examples
    --------
    >>> chain = AbsorbingChain([[0.5, 0.25, 0.25], [0] * 3, [0] * 3], {"violated": [1], "completed": [2]})
    >>> table = horizon_table(chain, max_horizon=3)
    >>> table.within(2).tolist()
    [0.375, 1.0, 0.0]
    >>> table.probability("completed")[:, 0].tolist()
    [0.0, 0.25, 0.375, 0.4375]
    """
    closed = chain.transitions.copy()
    closed[chain.unseen, chain.unseen] = 1.0
    inside = chain.membership.T
    table = np.empty((len(inside), _length(max_horizon), chain.n_states))
    for column, rows in zip(inside, table, strict=True):
        _fill(rows, closed, column)
    return HorizonTable(chain, table)


def horizon_batch(transitions: ArrayLike, absorbing: Absorbing, max_horizon: int = 10) -> FloatArray:
    """Return the horizon tables of many chains over the same states.

    Parameters
    ----------
    transitions : (k, n, n) array
        The transition matrices. Rows of declared states are zero or the identity's; any other row of zeros
        makes its state unseen in that chain.
    absorbing
        Class names and their states, the same for all chains.
    max_horizon
        Steps, 0 or more.

    Returns
    -------
    (k, classes, max_horizon + 1, n) array
        By chain, by class with ``unseen`` last, by horizon, by state.

    Raises
    ------
    ChainError
        If a matrix is not a transition matrix.
    HorizonError
        If the horizon is negative.
    """
    stack = matrix_stack(transitions)
    n_chains, n_states = stack.shape[:2]
    classes = AbsorbingClasses(absorbing, n_states)
    table = np.zeros((n_chains, len(classes.names), _length(max_horizon), n_states))
    inside = classes.indicator().T
    for start in range(0, n_chains, CHUNK):
        part = slice(start, start + CHUNK)
        closed, unseen = close(stack[part], classes)
        for column in range(len(classes.members)):
            _fill(table[part, column], closed, inside[column])
        if unseen.any():
            _fill(table[part, -1], closed, unseen.astype(np.float64))
    return table


def bootstrap_horizons(
    counts: TransitionCounts,
    absorbing: Absorbing,
    draws: int,
    max_horizon: int,
    rng: np.random.Generator,
    *,
    pseudo_counts: ArrayLike | None = None,
    levels: ArrayLike = (0.025, 0.5, 0.975),
) -> HorizonQuantiles:
    """Return quantiles of the horizon table when the rows are drawn from their Dirichlet posteriors.

    A Dirichlet draw is a row of independent gamma draws over their sum. Only cells with counts or
    pseudo-counts are drawn: structural zeros stay zero in every draw. Rows without any are unseen in every
    draw.

    Parameters
    ----------
    counts
        What was observed.
    absorbing
        Class names and their states.
    draws
        The number of chains drawn.
    max_horizon
        Steps, 0 or more.
    rng
        The source of randomness.
    pseudo_counts : (n, n) array, optional
        The prior: for the posterior whose mean `shrunk` returns, ``strength * towards``. None means no prior
        (Rubin's Bayesian bootstrap).
    levels
        The quantiles wanted, interpolated linearly between draws.

    Raises
    ------
    ChainError
        If draws or pseudo-counts are not usable, a row has weight but less than 0.1 of it (`SMALLEST_ROW`), a
        level is not between 0 and 1, or an absorbing state was observed to be left.
    HorizonError
        If the horizon is negative.

    References
    ----------
    D. B. Rubin, "The Bayesian bootstrap", Annals of Statistics 9 (1981), 130-134.

    Examples
    --------
    >>> from safetydrift.markov import TransitionCounts
    >>> counts = TransitionCounts([[60, 40], [0, 0]])
    >>> rng = np.random.default_rng(1)
    >>> bootstrap_horizons(counts, {"violated": [1]}, 1000, 1, rng).within(1)[:, 0].round(2).tolist()
    [0.31, 0.4, 0.5]
    """
    classes = AbsorbingClasses(absorbing, counts.n_states)
    weights = posterior_weights(counts, _prior(pseudo_counts, counts), classes)
    known = weights.any(axis=1)
    if (weights[known].sum(axis=1) < SMALLEST_ROW).any():
        raise ChainError(f"a row has a weight below {SMALLEST_ROW}; give it more pseudo-counts, or none")
    if draws < 1:
        raise ChainError(f"at least one draw is needed, not {draws}")
    quantiles = np.asarray(levels, dtype=np.float64)
    if not ((quantiles >= 0.0) & (quantiles <= 1.0)).all():
        raise ChainError("quantile levels lie between 0 and 1")

    inside = classes.indicator().T
    inside[-1] = ~known
    inside[-1, classes.absorbing] = 0.0
    reachable = np.flatnonzero(inside.any(axis=1))
    samples = np.empty((len(reachable), _length(max_horizon), counts.n_states, draws))
    cells = np.flatnonzero(weights)
    chains = np.broadcast_to(np.diag(~known).astype(np.float64), (CHUNK, *weights.shape)).copy()
    start = 0
    for gammas in _gamma_chunks(weights.flat[cells], draws, rng):
        part = chains[: len(gammas)]
        part.reshape(len(part), -1)[:, cells] = gammas
        totals = part @ np.ones((len(weights), 1))
        for sample, column in zip(samples, reachable, strict=True):
            _fill(sample[..., start : start + CHUNK].transpose(2, 0, 1), part, inside[column], totals)
        start += CHUNK
    values = np.zeros((len(quantiles), len(inside), *samples.shape[1:3]))
    values[:, reachable] = _quantiles(samples, quantiles)
    return HorizonQuantiles(classes.names, quantiles, values)


def _gamma_chunks(shapes: FloatArray, draws: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Yield gamma draws, `CHUNK` chains at a time, while a thread draws the next block.

    The draws are most of the work of a bootstrap. One thread takes them all, in order, so they depend on the
    generator alone.
    """

    def block(start: int) -> FloatArray:
        return rng.standard_gamma(shapes, size=(min(BLOCK, draws - start), len(shapes)))

    with ThreadPoolExecutor(max_workers=1) as pool:
        coming = pool.submit(block, 0)
        for start in range(BLOCK, draws + BLOCK, BLOCK):
            drawn = coming.result()
            if start < draws:
                coming = pool.submit(block, start)
            for first in range(0, len(drawn), CHUNK):
                yield drawn[first : first + CHUNK]


def _fill(
    table: FloatArray, closed: FloatArray, inside: FloatArray, totals: FloatArray | float = 1.0
) -> None:
    """Write the table (..., max_horizon + 1, n) of the class marked by `inside`.

    The rows of the matrices (..., n, n) sum to `totals`; dividing the products is cheaper than the matrices.
    """
    column = np.broadcast_to(inside, closed.shape[:-1])[..., None]
    table[..., 0, :] = column[..., 0]
    for horizon in range(1, table.shape[-2]):
        column = np.minimum(closed @ column / totals, 1.0)  # a row may sum to one and an ulp
        table[..., horizon, :] = column[..., 0]


def _quantiles(samples: FloatArray, levels: FloatArray) -> FloatArray:
    """Sort the samples along their last axis, in place, and interpolate; the levels come first."""
    samples.sort(axis=-1)
    position = levels * (samples.shape[-1] - 1)
    below = position.astype(np.intp)
    above = np.minimum(below + 1, samples.shape[-1] - 1)
    low, high = samples[..., below], samples[..., above]
    return np.moveaxis(low + (position - below) * (high - low), -1, 0)


def _prior(pseudo_counts: ArrayLike | None, counts: TransitionCounts) -> FloatArray:
    if pseudo_counts is None:
        return np.zeros(counts.matrix.shape)
    prior = np.asarray(pseudo_counts, dtype=np.float64)
    if prior.shape != counts.matrix.shape:
        raise ChainError(f"pseudo-counts have shape {prior.shape}, the counts {counts.matrix.shape}")
    if not ((prior >= 0.0) & np.isfinite(prior)).all():
        raise ChainError("pseudo-counts must be finite and not negative")
    return prior


def _length(max_horizon: int) -> int:
    steps = index(max_horizon)
    if steps < 0:
        raise HorizonError(f"a horizon is a number of steps, 0 or more, not {steps}")
    return steps + 1


def _checked(horizon: int, max_horizon: int) -> int:
    steps = _length(horizon) - 1
    if steps > max_horizon:
        raise HorizonError(
            f"horizon {steps} exceeds the table's maximum {max_horizon}; build it with max_horizon>={steps}"
        )
    return steps
