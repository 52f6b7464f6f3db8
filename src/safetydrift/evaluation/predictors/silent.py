"""No monitor at all: what every other one has to be better than."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from safetydrift.evaluation.scores import HORIZONS, Scores

if TYPE_CHECKING:
    from safetydrift.evaluation.cases import CaseSet


@dataclass(frozen=True, slots=True)
class Silent:
    """Never alarms and ranks nothing."""

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
