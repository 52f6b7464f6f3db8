"""What a predictor said about every point and proposal of a set of cases, and the shape of every predictor."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from safetydrift.monitor.verdict import Basis

if TYPE_CHECKING:
    from safetydrift.evaluation.cases import CaseSet
    from safetydrift.markov._arrays import BoolArray, FloatArray
    from safetydrift.monitor.verdict import Verdict

HORIZONS = (1, 3, 5)
"""Horizons at which predictors are compared, in steps."""


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores of one predictor, aligned with a `CaseSet`.

    Parameters
    ----------
    name
        The predictor, as tables name it.
    within : (points, 3) array
        Per point, the probability (or, where not ``probabilistic``, a risk that can only be ranked) of a violation
        within each of `HORIZONS`. Never nan: where a predictor knows nothing it says 1, as prediction files do.
    pending : (proposals,) array, optional
        Per proposed call, its risk as proposed; None for a predictor that does not look at proposals.
    alarm : (points,) array of bool, optional
        The predictor's own alarms at its own threshold.
    pending_alarm : (proposals,) array of bool, optional
        The same for proposals.
    probabilistic
        Whether ``within`` can be held against frequencies (Brier, log loss, calibration).
    covered : (cases,) array of bool, optional
        The runs a prediction file says something about; None for all of them.
    """

    name: str
    within: FloatArray
    pending: FloatArray | None = None
    alarm: BoolArray | None = None
    pending_alarm: BoolArray | None = None
    probabilistic: bool = True
    covered: BoolArray | None = None


class FittedPredictor(Protocol):
    """A predictor that has seen its training cases and can score others."""

    def score(self, cases: CaseSet) -> Scores:
        """Score every point and proposal; at point k only calls 1 to k and their results may be looked at."""
        ...


class Predictor(Protocol):
    """Something that can be fitted and compared."""

    @property
    def name(self) -> str:
        """How tables name it: short, lower case."""
        ...

    def fit(self, cases: CaseSet) -> FittedPredictor:
        """Fit on training cases. Deterministic: the same cases give the same predictor."""
        ...


@dataclass(frozen=True, slots=True)
class Fixed:
    """A predictor that needs no fitting, or has been fitted elsewhere.

    Parameters
    ----------
    name
        How tables name it.
    fitted
        What scores.
    """

    name: str
    fitted: FittedPredictor = field(repr=False)

    def fit(self, cases: CaseSet) -> FittedPredictor:  # noqa: ARG002  # nothing to learn
        """Return what was fitted elsewhere."""
        return self.fitted


def cautious(verdict: Verdict, horizon: int) -> float:
    """Return the probability of a violation within some steps; what is unknown counts as certain."""
    return 1.0 if verdict.basis is Basis.UNSEEN else verdict.within[horizon]
