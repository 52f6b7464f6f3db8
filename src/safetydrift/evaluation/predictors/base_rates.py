"""How often it happened before: rates by task, by model, or by anything else that is known before the first call.

A baseline for knowing whom and what one deals with, and looking at nothing the agent does.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from safetydrift.evaluation.scores import HORIZONS, Scores

if TYPE_CHECKING:
    from safetydrift.evaluation.cases import Case, CaseSet
    from safetydrift.markov._arrays import BoolArray, FloatArray, IntArray

Key: TypeAlias = Callable[["Case"], Hashable]
"""What the runs of one group share."""


def of_task(case: Case) -> Hashable:
    """Return source, category and task. In a split that holds tasks out, no test run has a group."""
    return case.task


def of_model(case: Case) -> Hashable:
    """Return the model that acted."""
    return case.run.model


@dataclass(frozen=True, slots=True)
class GroupRates:
    """The share of training points of a run's group that were followed by the violation within h calls.

    Parameters
    ----------
    name
        How tables name it.
    key
        What makes the groups. A run of a group that training did not see is given the rates of all runs.
    """

    name: str
    key: Key = field(repr=False)

    def fit(self, cases: CaseSet) -> FittedRates:
        """Count."""
        groups, group = group_numbers(cases, self.key)
        at_point, at_proposal = group[cases.run_of_point], group[cases.run_of_proposal]
        within = np.stack(
            [shares(at_point, cases.happens_within(horizon), len(groups)) for horizon in HORIZONS], axis=1
        )
        pending = shares(at_proposal, cases.violating_proposal, len(groups))
        return FittedRates(self.name, self.key, groups, within, pending)


@dataclass(frozen=True, slots=True)
class FittedRates:
    """Rates by group.

    Parameters
    ----------
    groups
        Number of each group seen; the one after the last is all of them together.
    within : (groups + 1, 3) array
        Rates at points, by horizon.
    pending : (groups + 1,) array
        Share of the calls that were the violation.
    probabilistic
        Whether the rates are what happens within the horizons.
    """

    name: str
    key: Key = field(repr=False)
    groups: dict[Hashable, int] = field(repr=False)
    within: FloatArray = field(repr=False)
    pending: FloatArray = field(repr=False)
    probabilistic: bool = True

    def score(self, cases: CaseSet) -> Scores:
        """Give every point and proposal the rate of its run's group."""
        unseen = len(self.groups)
        group = np.array([self.groups.get(self.key(case), unseen) for case in cases.cases], dtype=np.int64)
        return Scores(
            self.name,
            self.within[group[cases.run_of_point]],
            self.pending[group[cases.run_of_proposal]],
            probabilistic=self.probabilistic,
        )


def group_numbers(cases: CaseSet, key: Key) -> tuple[dict[Hashable, int], IntArray]:
    """Return the number of each group, and that of each run, shape (n,)."""
    groups: dict[Hashable, int] = {}
    return groups, np.array(
        [groups.setdefault(key(case), len(groups)) for case in cases.cases], dtype=np.int64
    )


def shares(group: IntArray, happened: BoolArray, n_groups: int) -> FloatArray:
    """Return the share of true entries by group and then over all, shape (n_groups + 1,).

    A group without entries has the share of all; without any entry at all that is 1, for nothing is known.
    """
    total = np.bincount(group, minlength=n_groups)
    hits = np.bincount(group, weights=happened, minlength=n_groups)
    overall = float(happened.mean()) if len(happened) else 1.0
    share = np.divide(hits, total, out=np.full(n_groups, overall), where=total > 0)
    return np.append(share, overall)
