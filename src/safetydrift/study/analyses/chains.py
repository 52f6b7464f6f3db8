"""Chains fitted on some of the runs, and the probability they give every point of all of them.

Estimates are the monitor's own (`estimate_chains`); only the counting differs: over flat arrays, so that a fit on a
part of the runs takes milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from safetydrift.markov.counts import TransitionCounts
from safetydrift.markov.horizon import horizon_table
from safetydrift.monitor.evidence import Evidence, Rows
from safetydrift.monitor.fitting import estimate_chains
from safetydrift.monitor.model import AGGREGATE
from safetydrift.monitor.settings import Estimator, Granularity
from safetydrift.states.trajectory import VIOLATED

if TYPE_CHECKING:
    from safetydrift.markov._arrays import BoolArray, FloatArray, IntArray
    from safetydrift.markov.chain import AbsorbingChain
    from safetydrift.states.space import StateSpace
    from safetydrift.study.analyses.study import Study

NOWHERE = "(no run was ever here)"
"""The row of all states of a fine chain that no run visits."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where each point stands in a chain: on which of its rows.

    Parameters
    ----------
    rows
        The rows.
    row : (points,) array
        The row of each point.
    level : (points,) array
        The risk level that the row of each point has.
    """

    rows: Rows
    row: IntArray
    level: IntArray

    @property
    def n_rows(self) -> int:
        """Number of rows, ends not counted."""
        return len(self.rows.names)

    @classmethod
    def coarse(cls, study: Study) -> Places:
        """Rows are risk levels."""
        return cls(Rows.of(study.space, Granularity.COARSE), study.level, study.level)

    @classmethod
    def fine(cls, study: Study, without: frozenset[str] = frozenset()) -> Places:
        """Rows are the states that were visited, seen without some of the dimensions.

        Parameters
        ----------
        without
            Names of dimensions whose levels are all taken for the lowest.
        """
        merged = project(study.space, without)
        visited = np.unique(merged[study.state])
        number = np.full(study.space.n_states, len(visited), dtype=np.int64)
        number[visited] = np.arange(len(visited))
        row_of = number[merged]
        names = (*map(study.space.describe, visited.tolist()), NOWHERE)
        level = np.array(study.space.risk_of, dtype=np.int64)[merged[study.state]]
        return cls(Rows(names, tuple(row_of.tolist())), row_of[study.state], level)

    @classmethod
    def of(cls, study: Study) -> Places:
        """Rows as the settings of the study have them."""
        return cls.coarse(study) if study.settings.granularity is Granularity.COARSE else cls.fine(study)


def project(space: StateSpace, without: frozenset[str]) -> IntArray:
    """Return the state that remains of each when some dimensions are put to their lowest level, shape (n_states,)."""
    sizes = [len(dimension.levels) for dimension in space.dimensions]
    digits = np.array(np.unravel_index(np.arange(space.n_states), sizes))
    for position, dimension in enumerate(space.dimensions):
        if dimension.name in without:
            digits[position] = 0
    return np.asarray(np.ravel_multi_index(tuple(digits), sizes), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class CategoryChains:
    """One chain per category and one over all, with the counts behind them.

    Parameters
    ----------
    chains
        By number of the category; the last one is over all.
    counts : (categories + 1, n_rows + 2, n_rows + 2) array
        Transitions in the same order; after the rows come *violated* and *completed*.
    """

    chains: tuple[AbsorbingChain, ...]
    counts: IntArray

    def within(self, max_horizon: int) -> FloatArray:
        """Return the probability of a violation within 0 to ``max_horizon`` steps.

        Returns
        -------
        (categories + 1, max_horizon + 1, n_rows) array
            1 where nothing is known: neither the category nor all runs together ever left that row.
        """
        n_rows = self.counts.shape[1] - 2
        departed = self.counts.sum(axis=2) > 0
        departed |= departed[-1]
        tables = []
        for chain, seen in zip(self.chains, departed, strict=True):
            table = horizon_table(chain, max_horizon).probability(VIOLATED).copy()
            table[:, ~(seen & chain.transitions.any(axis=1))] = 1.0
            tables.append(table[:, :n_rows])
        return np.stack(tables)


def fit(study: Study, places: Places, runs: BoolArray, *, completion: bool | None = None) -> CategoryChains:
    """Fit the chains of a study on some of its runs.

    Parameters
    ----------
    runs : (runs,) array of bool
        The ones to learn from.
    completion
        Whether finishing is an end; by default as the settings' estimator has it.
    """
    if completion is None:
        completion = study.settings.estimator is not Estimator.PUBLISHED
    counts = count(study, places, runs, completion=completion)
    nothing = np.zeros(places.n_rows, dtype=np.int64)
    names = [*map(str, range(len(counts) - 1)), AGGREGATE]
    evidence = {
        name: Evidence(TransitionCounts(matrix), nothing, nothing)
        for name, matrix in zip(names, counts, strict=True)
    }
    chains = estimate_chains(evidence, places.rows, study.space, study.settings)
    return CategoryChains(tuple(chains[name] for name in names), counts)


def count(study: Study, places: Places, runs: BoolArray, *, completion: bool) -> IntArray:
    """Count transitions by category; shape (categories + 1, n_rows + 2, n_rows + 2), the last over all."""
    size, n_categories = places.n_rows + 2, len(study.categories)
    after = study.following(places.row, places.n_rows, completion=completion)
    used = runs[study.cases.run_of_point] & (after >= 0)
    cells = (study.category[used] * size + places.row[used]) * size + after[used]
    counts = np.bincount(cells, minlength=n_categories * size * size).reshape(n_categories, size, size)
    return np.concatenate([counts, counts.sum(axis=0, keepdims=True)])
