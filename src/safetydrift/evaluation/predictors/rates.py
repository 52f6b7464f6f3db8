"""Baselines that look at no call: how often it happened before, by what is known from the start or by run length."""

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


@dataclass(frozen=True, slots=True)
class Silent:
    """No monitor at all: never alarms and ranks nothing."""

    name: str = "silent"

    def fit(self, cases: CaseSet) -> Silent:  # noqa: ARG002  # nothing to learn
        """Return itself."""
        return self

    def score(self, cases: CaseSet) -> Scores:
        """Return zeros."""
        n_points, n_proposals = int(cases.first_point[-1]), int(cases.first_proposal[-1])
        return Scores(
            self.name,
            np.zeros((n_points, len(HORIZONS))),
            np.zeros(n_proposals),
            np.zeros(n_points, dtype=np.bool_),
            np.zeros(n_proposals, dtype=np.bool_),
            probabilistic=False,
        )


@dataclass(frozen=True, slots=True)
class GroupRates:
    """The share of training points of a run's group that were followed by the violation within h calls.

    By category this is the category prior: the paper's categories differ more in how often runs are violated than the
    states within one do, so a monitor that is no better has learned the category and nothing of the run.

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
        groups: dict[Hashable, int] = {}
        group = np.array(
            [groups.setdefault(self.key(case), len(groups)) for case in cases.cases], dtype=np.int64
        )
        at_point, at_proposal = group[cases.run_of_point], group[cases.run_of_proposal]
        within = np.stack(
            [shares(at_point, cases.happens_within(horizon), len(groups)) for horizon in HORIZONS], axis=1
        )
        return FittedRates(
            self.name, self.key, groups, within, shares(at_proposal, cases.violating_proposal, len(groups))
        )


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
    """

    name: str
    key: Key = field(repr=False)
    groups: dict[Hashable, int] = field(repr=False)
    within: FloatArray = field(repr=False)
    pending: FloatArray = field(repr=False)

    def score(self, cases: CaseSet) -> Scores:
        """Give every point and proposal the rate of its run's group."""
        unseen = len(self.groups)
        group = np.array([self.groups.get(self.key(case), unseen) for case in cases.cases], dtype=np.int64)
        return Scores(
            self.name, self.within[group[cases.run_of_point]], self.pending[group[cases.run_of_proposal]]
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


@dataclass(frozen=True, slots=True)
class RunLength:
    """Monotone regression of the outcome on the number of calls made, and nothing else.

    If longer runs are the violated ones, any score that grows along a run looks good without knowing anything. Rising
    and falling fits are made for every horizon; the direction with the smaller squared error over all of them is
    taken for all.
    """

    name: str = "run-length"

    def fit(self, cases: CaseSet) -> FittedLength:
        """Fit both directions and keep the better one."""
        from scipy.optimize import isotonic_regression  # noqa: PLC0415  # of the extra

        step = cases.step_of_point
        weights = np.bincount(step).astype(np.float64)
        if not len(weights):
            return FittedLength(self.name, np.ones((1, len(HORIZONS))), np.ones(1))
        rates = [np.bincount(step, weights=cases.happens_within(horizon)) / weights for horizon in HORIZONS]
        made = np.bincount(cases.step_of_proposal, minlength=len(weights)).astype(np.float64)
        violating = np.bincount(
            cases.step_of_proposal, weights=cases.violating_proposal, minlength=len(weights)
        )
        pending = np.divide(violating, made, out=np.zeros_like(made), where=made > 0)
        options = []
        for rising in (True, False):
            fits = [isotonic_regression(rate, weights=weights, increasing=rising).x for rate in rates]
            error = sum(float(weights @ (fit - rate) ** 2) for fit, rate in zip(fits, rates, strict=True))
            options.append((error, not rising, fits))
        _, falling, fits = min(options, key=lambda option: option[:2])
        proposals = isotonic_regression(pending, weights=np.maximum(made, 1e-9), increasing=not falling).x
        return FittedLength(self.name, np.stack(fits, axis=1), proposals)


@dataclass(frozen=True, slots=True)
class FittedLength:
    """Risk by number of calls made; what is longer than any training run has the risk of the longest.

    Parameters
    ----------
    name
        How tables name it.
    within : (steps, 3) array
        Probability by calls made and horizon.
    pending : (steps,) array
        Probability that the next call is the violation, by calls made before it.
    """

    name: str
    within: FloatArray = field(repr=False)
    pending: FloatArray = field(repr=False)

    def score(self, cases: CaseSet) -> Scores:
        """Score by the number of calls made."""
        return Scores(
            self.name,
            self.within[np.minimum(cases.step_of_point, len(self.within) - 1)],
            self.pending[np.minimum(cases.step_of_proposal, len(self.pending) - 1)],
        )
