"""The category prior: knowing only what kind of task it is.

The paper's categories differ more in how often runs are violated than the states within one do, so a monitor that
is no better than this has learned the category and nothing of the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from safetydrift.evaluation.predictors.base_rates import FittedRates, GroupRates, group_numbers, shares
from safetydrift.evaluation.scores import HORIZONS

if TYPE_CHECKING:
    from collections.abc import Hashable

    from safetydrift.evaluation.cases import Case, CaseSet


def of_category(case: Case) -> Hashable:
    """Return source and category."""
    return case.category


def category_prior(name: str = "category-prior") -> GroupRates:
    """Return the share of points in a category that are followed by the violation within h calls."""
    return GroupRates(name, of_category)


@dataclass(frozen=True, slots=True)
class CategoryRunRate:
    """The share of the runs of a category that are violated, at every point alike.

    It ranks runs; as a probability of a violation *within h calls* it would be too high.
    """

    name: str = "category-run-rate"

    def fit(self, cases: CaseSet) -> FittedRates:
        """Count runs."""
        groups, group = group_numbers(cases, of_category)
        rate = shares(group, cases.violated, len(groups))
        within = np.repeat(rate[:, None], len(HORIZONS), axis=1)
        return FittedRates(self.name, of_category, groups, within, rate, probabilistic=False)
