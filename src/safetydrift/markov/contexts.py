"""Contexts: what follows depends on more than the state, as far as there is evidence for it.

A *context* is what a prediction may look at: the state, and the last moves that led there, one or more. The longer it
is, the more it says and the less often it was seen. So what is expected of a long context leans on what was seen in
all others that it shares its shorter part with, and these on the next shorter part: it *backs off*, level by level.
Each level is a Dirichlet prior for the one after it, as in `safetydrift.markov.hierarchy`, and every count stands in
one ring only: in a level stands what shares that much of the context and no more. A context that was never seen is
expected to go on as its shorter part does.

How closely a level follows the one before it, its *concentration*, may be fitted in two ways. Empirical Bayes
(`empirical_concentrations`) takes every count as a draw by itself. Where counts come in groups that are alike, such as
runs of one task, that makes too much of them; `held_out_concentrations` chooses what foretells groups that were left
out.

Literature
----------
J. Rissanen, "A universal data compression system", 1983, for contexts of variable length.
D. J. C. MacKay and L. C. Bauman Peto, "A hierarchical Dirichlet language model", 1995, for their priors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from safetydrift.errors import ChainError
from safetydrift.markov.hierarchy import fit_concentration, nested_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from safetydrift.markov._arrays import FloatArray, IntArray

UNKNOWN = -1
"""The key of a context that is not known at a level; what is known at it is known at all levels before it."""

FOLDS = 5
"""Into how many parts groups are divided to choose concentrations."""

TRIED = np.geomspace(0.1, 30_000.0, 24)
"""Concentrations tried on the groups left out."""

SWEEPS = 2
"""How often each level's concentration is chosen anew, given those of the others."""

_FIRST_GUESS = 10.0


class ContextCounts:
    """What followed contexts, counted at every level.

    Parameters
    ----------
    keys : (levels, n) array of int
        By level, from the shortest part of a context to all of it, a number of 0 or more for what stood there. What is
        equal at a level is equal at all levels before it.
    followed : (n,) array of int
        What came next, 0 .. n_outcomes - 1.
    n_outcomes
        In how many ways it can go on.

    Attributes
    ----------
    n_levels
        How many levels there are.
    base : (n_outcomes,) array
        What is expected of a context of which nothing is known: the shares of all outcomes together, half an
        observation of each added.

    Raises
    ------
    ChainError
        If the shapes do not fit, or a number is out of range.
    """

    def __init__(self, keys: ArrayLike, followed: ArrayLike, n_outcomes: int) -> None:
        places, outcomes = np.asarray(keys, dtype=np.int64), np.asarray(followed, dtype=np.int64)
        if places.ndim != 2 or outcomes.shape != places.shape[1:]:  # noqa: PLR2004
            raise ChainError(f"keys of shape {places.shape} do not fit outcomes of shape {outcomes.shape}")
        if ((outcomes < 0) | (outcomes >= n_outcomes)).any() or (places < 0).any():
            raise ChainError("a key or an outcome is out of range")
        self.n_levels, self.n_outcomes = len(places), n_outcomes
        overall = np.bincount(outcomes, minlength=n_outcomes) + 0.5
        self.base: FloatArray = overall / overall.sum()
        self._keys: list[IntArray] = []
        self._counts: list[FloatArray] = []
        self._paths: list[IntArray] = []
        for level in places:
            distinct, first, where = np.unique(level, return_index=True, return_inverse=True)
            cells = np.bincount(where * n_outcomes + outcomes, minlength=(len(distinct) + 1) * n_outcomes)
            self._keys.append(distinct)
            self._counts.append(cells.reshape(-1, n_outcomes).astype(np.float64))  # the last row stays empty
            self._paths.append(places[:, first])

    def rings(self, keys: ArrayLike, outcome: IntArray | None = None) -> FloatArray:
        """Return by level what followed contexts that share so much of each of these and no more.

        Parameters
        ----------
        keys : (levels, m) array of int
            The contexts, with at most as many levels as were counted; `UNKNOWN` where nothing is known.
        outcome : (m,) array of int, optional
            The only outcome asked about, by context.

        Returns
        -------
        array
            Shape (levels, m, n_outcomes); with an outcome (levels, m, 2): how often it followed, and how often another.
        """
        known = [self._at(level, row, outcome) for level, row in enumerate(np.asarray(keys, dtype=np.int64))]
        rings = np.array(known).reshape(len(known), -1, self.n_outcomes if outcome is None else 2)
        rings[:-1] -= rings[1:]
        return rings

    def _at(self, level: int, keys: IntArray, outcome: IntArray | None) -> FloatArray:
        distinct, counts = self._keys[level], self._counts[level]
        place = np.searchsorted(distinct, keys)
        rows = np.where(np.append(distinct, UNKNOWN)[place] == keys, place, len(distinct))
        if outcome is None:
            return counts[rows]
        asked = counts[rows, outcome]
        return np.stack([asked, counts.sum(axis=1)[rows] - asked], axis=1)

    def expected(self, keys: ArrayLike, concentrations: Sequence[float]) -> FloatArray:
        """Return the probability of every outcome after each context, shape (m, n_outcomes).

        Parameters
        ----------
        keys : (levels, m) array of int
            As for `rings`.
        concentrations
            One per level.
        """
        rings = self.rings(keys)
        base = np.broadcast_to(self.base, rings.shape[1:])
        return nested_mean(list(rings), base, concentrations)

    def expected_of(self, keys: ArrayLike, outcome: IntArray, concentrations: Sequence[float]) -> FloatArray:
        """Return the probability of one outcome after each context, shape (m,); the others are not computed."""
        base = np.stack([self.base[outcome], 1.0 - self.base[outcome]], axis=1)
        found: FloatArray = nested_mean(list(self.rings(keys, outcome)), base, concentrations)[:, 0]
        return found

    def empirical_concentrations(self) -> list[float]:
        """Return the concentration of each level that makes the counts likeliest if each is a draw by itself."""
        fitted: list[float] = []
        for level, path in enumerate(self._paths):
            rings = self.rings(path[: level + 1])
            base = np.broadcast_to(self.base, rings.shape[1:])
            fitted.append(fit_concentration(rings[-1], nested_mean(list(rings[:-1]), base, fitted)))
        return fitted


def log_loss(
    counts: ContextCounts, concentrations: Sequence[float], keys: ArrayLike, followed: ArrayLike
) -> float:
    """Return the mean negative logarithm of the probability that was given to what followed, in nats."""
    probability = counts.expected_of(keys, np.asarray(followed, dtype=np.int64), concentrations)
    return -float(np.log(probability).mean())


def held_out_concentrations(
    keys: ArrayLike, followed: ArrayLike, n_outcomes: int, groups: ArrayLike
) -> list[float]:
    """Return the concentration of each level that best foretells groups that were left out.

    Parameters
    ----------
    keys, followed, n_outcomes
        As for `ContextCounts`.
    groups : (n,) array of int
        Which counts are alike, such as those of runs of one task: numbers from 0. Groups are divided by number into
        `FOLDS` parts, each of which is left out once. With fewer than two groups nothing can be, and the
        concentrations are `ContextCounts.empirical_concentrations`.
    """
    places, outcomes = np.asarray(keys, dtype=np.int64), np.asarray(followed, dtype=np.int64)
    fold = np.asarray(groups, dtype=np.int64) % FOLDS
    parts = np.unique(fold)
    if len(parts) < 2:  # noqa: PLR2004
        return ContextCounts(places, outcomes, n_outcomes).empirical_concentrations()
    rings, base, often = [], [], []
    for part in parts:
        tried = fold == part
        counts = ContextCounts(places[:, ~tried], outcomes[~tried], n_outcomes)
        cells = np.stack([places[-1, tried], outcomes[tried]])
        _, first, repeated = np.unique(cells, axis=1, return_index=True, return_counts=True)
        asked = outcomes[tried][first]
        rings.append(counts.rings(places[:, tried][:, first], asked))
        base.append(counts.base[asked])
        often.append(repeated)
    tries = _Tries(np.concatenate(rings, axis=1), np.concatenate(base), np.concatenate(often))
    chosen = [_FIRST_GUESS] * len(places)
    for level in np.tile(np.arange(len(places)), SWEEPS):
        losses = [tries.loss([*chosen[:level], float(one), *chosen[level + 1 :]]) for one in TRIED]
        chosen[level] = float(TRIED[int(np.argmin(losses))])
    return chosen


class _Tries:
    """What followed in the groups left out, how often, and what the other groups say of it."""

    def __init__(self, rings: FloatArray, base: FloatArray, often: IntArray) -> None:
        self._rings = list(rings)
        self._base = np.stack([base, 1.0 - base], axis=1)
        self._often = often

    def loss(self, concentrations: Sequence[float]) -> float:
        """Return the negative logarithm of the probability of all of it, in nats."""
        return -float(self._often @ np.log(nested_mean(self._rings, self._base, concentrations)[:, 0]))
