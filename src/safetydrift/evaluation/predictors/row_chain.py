"""An absorbing chain over whatever rows a predictor puts its points in, by maximum likelihood."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from safetydrift.evaluation.predictors.base_rates import shares
from safetydrift.evaluation.scores import HORIZONS
from safetydrift.markov.counts import TransitionCounts
from safetydrift.markov.estimation import maximum_likelihood
from safetydrift.markov.horizon import horizon_table
from safetydrift.states.trajectory import COMPLETED, VIOLATED
from safetydrift.trace import Ending

if TYPE_CHECKING:
    from safetydrift.evaluation.cases import CaseSet
    from safetydrift.markov._arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class RowTable:
    """What a chain says of each row; 1 for rows that no training run went on from.

    Parameters
    ----------
    within : (n_rows, 3) array
        Probability of a violation within each of `HORIZONS`.
    pending : (n_rows,) array
        Risk of a call that would lead to the row: that it is the violation itself, or that one follows within the
        furthest horizon, the call being the first of its steps.
    """

    within: FloatArray = field(repr=False)
    pending: FloatArray = field(repr=False)


def fit_rows(
    cases: CaseSet, row: IntArray, leads_to: IntArray, n_rows: int, *, completion: bool = True
) -> RowTable:
    """Estimate a chain from the rows that training runs went through.

    Parameters
    ----------
    row : (points,) array
        The row of each point.
    leads_to : (proposals,) array
        The row each proposed call would lead to.
    n_rows
        Number of rows; those that never occur cost nothing.
    completion
        Whether finishing competes with being violated as an end. Without it finished runs count as cut off.
    """
    seen, compact = np.unique(row, return_inverse=True)
    size = len(seen) + 2
    target = _targets(cases, compact, len(seen), completion=completion)
    went_on = target >= 0
    table = RowTable(np.ones((n_rows, len(HORIZONS))), np.ones(n_rows))
    if not went_on.any():
        return table
    pairs = np.bincount(compact[went_on] * size + target[went_on], minlength=size * size)
    counts = TransitionCounts(pairs.reshape(size, size))
    chain = maximum_likelihood(counts, {VIOLATED: [size - 2], COMPLETED: [size - 1]})
    curve = horizon_table(chain, HORIZONS[-1]).probability(VIOLATED)[:, : len(seen)].copy()
    curve[:, counts.departures[: len(seen)] == 0] = 1.0
    table.within[seen] = curve[list(HORIZONS)].T
    return RowTable(table.within, _pending(cases, leads_to, n_rows, seen, curve[HORIZONS[-1] - 1]))


def _targets(cases: CaseSet, row: IntArray, violated: int, *, completion: bool) -> IntArray:
    """Return the row after each point, or the end of its run; -1 where it was cut off."""
    target = np.append(row[1:], -1)
    ends = cases.first_point[1:] - 1
    target[ends] = -1
    target[ends[cases.violated]] = violated
    if completion:
        finished = np.array([case.run.ending is Ending.COMPLETED for case in cases.cases], dtype=np.bool_)
        target[ends[finished & ~cases.violated]] = violated + 1
    return target


def _pending(
    cases: CaseSet, leads_to: IntArray, n_rows: int, seen: IntArray, later: FloatArray
) -> FloatArray:
    """Return the risk of a call by the row it would lead to: the chance of either it or what follows it."""
    known = np.bincount(leads_to, minlength=n_rows) > 0
    itself = shares(leads_to, cases.violating_proposal, n_rows)[:-1]
    afterwards = np.ones(n_rows)
    afterwards[seen] = later
    return np.where(known, itself + (1.0 - itself) * afterwards, 1.0)
