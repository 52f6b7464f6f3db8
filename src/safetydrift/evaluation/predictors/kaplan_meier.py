"""The hazard by step number: what the mere passing of steps tells, with runs that end counted as censored.

With ``n_j`` the training runs that made a j-th call and ``d_j`` those it violated, the hazard of call j is ``d_j /
n_j``, and a run of k calls is violated within the next h with probability ``1 - prod_{j=k+1..k+h} (1 - d_j / n_j)``.
A run that finished is treated like one that was cut off, so the figure answers "if the run goes on".

E. L. Kaplan and P. Meier, "Nonparametric estimation from incomplete observations", JASA 53 (1958).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from safetydrift.evaluation.scores import HORIZONS, Scores

if TYPE_CHECKING:
    from safetydrift.evaluation.cases import CaseSet
    from safetydrift.markov._arrays import FloatArray


@dataclass(frozen=True, slots=True)
class KaplanMeier:
    """Hazard by step number."""

    name: str = "kaplan-meier"

    def fit(self, cases: CaseSet) -> FittedHazard:
        """Count the calls made and the violations among them, by number of the call."""
        call = np.arange(int(cases.first_proposal[-1])) - cases.first_proposal[cases.run_of_proposal]
        at_risk = np.bincount(call)
        violations = np.bincount(call, weights=cases.violating_proposal)
        overall = float(cases.violating_proposal.mean()) if len(call) else 1.0
        return FittedHazard(self.name, violations / at_risk, overall)


@dataclass(frozen=True, slots=True)
class FittedHazard:
    """Hazards.

    Parameters
    ----------
    name
        How tables name it.
    hazard : (longest training run,) array
        Entry j is the hazard of call j + 1.
    beyond
        The hazard of later calls: that of all calls together, for there is nothing closer.
    """

    name: str
    hazard: FloatArray = field(repr=False)
    beyond: float

    def score(self, cases: CaseSet) -> Scores:
        """Score every point and proposal by its step number alone."""
        steps = int(cases.step_of_point.max(initial=0)) + 1
        hazard = np.full(max(steps + HORIZONS[-1], len(self.hazard)), self.beyond)
        hazard[: len(self.hazard)] = self.hazard
        goes_well = np.ones((steps, len(HORIZONS)))
        for column, horizon in enumerate(HORIZONS):
            for ahead in range(horizon):
                goes_well[:, column] *= 1.0 - hazard[ahead : ahead + steps]
        call = np.arange(int(cases.first_proposal[-1])) - cases.first_proposal[cases.run_of_proposal]
        return Scores(self.name, 1.0 - goes_well[cases.step_of_point], hazard[call])
