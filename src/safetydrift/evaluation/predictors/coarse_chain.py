"""The published coarse chain: five risk levels, violation as the only absorbing class, maximum likelihood.

Three variants, as in the paper: one chain for all runs, one per category, and a second-order chain on the product
space of the last two levels. Each is here as published, where finished runs are treated as cut off so that every
run is violated in the end, and with completion as a competing end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from safetydrift.evaluation.predictors.lookup import LookupPredictor
from safetydrift.evaluation.predictors.row_chain import RowTable, fit_rows
from safetydrift.evaluation.predictors.walks import join, projected, walks
from safetydrift.evaluation.scores import Scores
from safetydrift.monitor.settings import Estimator, FitSettings, Granularity
from safetydrift.states.trajectory import Notion, UnknownOnset

if TYPE_CHECKING:
    from safetydrift.effects.catalogue import Catalogue
    from safetydrift.evaluation.cases import CaseSet
    from safetydrift.markov._arrays import IntArray
    from safetydrift.states.space import StateSpace

THRESHOLD = 0.4
"""Lower end of the published operating region, at five steps."""


def coarse_chain(
    name: str,
    space: StateSpace,
    catalogue: Catalogue,
    *,
    by_category: bool = False,
    completion: bool = False,
    notion: Notion = Notion.LABEL,
    unknown_onset: UnknownOnset = UnknownOnset.LAST_CALL,
    recorded: StateSpace | None = None,
) -> LookupPredictor:
    """Return the first-order coarse chain.

    Parameters
    ----------
    space
        Its risk levels are the rows.
    by_category
        One chain per category instead of one for all runs.
    completion
        Whether finishing competes with violation as an end; as published it does not.
    notion, unknown_onset
        What counts as a violation in training.
    recorded
        The space in which runs are given, if it is another one.
    """
    settings = FitSettings(
        notion=notion,
        granularity=Granularity.COARSE,
        estimator=Estimator.MAXIMUM_LIKELIHOOD if completion else Estimator.PUBLISHED,
        unknown_onset=unknown_onset,
    )
    return LookupPredictor(
        name, space, catalogue, settings, recorded, threshold=THRESHOLD, by_category=by_category
    )


@dataclass(frozen=True, slots=True)
class SecondOrderChain:
    """The coarse chain on pairs of risk levels, the one before the latest call and the one after it.

    A run starts with the pair of its starting level and itself. It is fitted on the violations of the cases it is
    given, whatever their notion.

    Parameters
    ----------
    name
        How tables name it.
    space
        Its risk levels are paired.
    completion
        As for `coarse_chain`.
    recorded
        The space in which runs are given, if it is another one.
    """

    name: str
    space: StateSpace
    completion: bool = False
    recorded: StateSpace | None = None

    def fit(self, cases: CaseSet) -> FittedPairs:
        """Count and solve."""
        row, leads_to = _pairs(cases, self.recorded or self.space, self.space)
        n_rows = len(self.space.risks) ** 2
        table = fit_rows(cases, row, leads_to, n_rows, completion=self.completion)
        return FittedPairs(self.name, self.space, self.recorded or self.space, table)


@dataclass(frozen=True, slots=True)
class FittedPairs:
    """A fitted second-order chain."""

    name: str
    space: StateSpace
    recorded: StateSpace
    table: RowTable = field(repr=False)

    def score(self, cases: CaseSet) -> Scores:
        """Look up every pair."""
        row, leads_to = _pairs(cases, self.recorded, self.space)
        within, pending = self.table.within[row], self.table.pending[leads_to]
        return Scores(self.name, within, pending, within[:, -1] >= THRESHOLD, pending >= THRESHOLD)


def _pairs(cases: CaseSet, recorded: StateSpace, space: StateSpace) -> tuple[IntArray, IntArray]:
    """Return the pair at each point, shape (points,), and the one each proposed call leads to, (proposals,)."""
    cases = projected(cases, recorded, space)
    walk = walks(cases)
    risk = np.array(space.risk_of, dtype=np.int64)
    now = risk[walk.state]
    before = np.where(cases.step_of_point == 0, now, np.append(now[:1], now[:-1]))
    after = risk[join(space, walk.state[walk.point], walk.proposed)]
    return before * len(space.risks) + now, now[walk.point] * len(space.risks) + after
