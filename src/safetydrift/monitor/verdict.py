"""What a monitor finds: a probability, what it rests on, and what the policy makes of it."""

from __future__ import annotations

from enum import Enum
from math import nan

from msgspec import Struct


class Basis(Enum):
    """What a verdict rests on."""

    ESTIMATED = "estimated"
    """Runs of this category that went on from this state."""

    BORROWED = "borrowed"
    """Only runs of other categories that did."""

    UNSEEN = "unseen"
    """Nothing: no run ever went on from this state. The policy decides what that means."""

    VIOLATED = "violated"
    """The rules say the line has been crossed."""


class Intervention(Enum):
    """What is done to the agent when a verdict alarms (paper, A4), or ALLOW when it does not."""

    ALLOW = "allow"
    WARN = "warn"
    """Inject a warning into the agent's context."""
    ASK = "ask"
    """Pause for a person's approval."""
    SUGGEST = "suggest"
    """Refuse, and name a safer step."""
    BLOCK = "block"
    """Refuse the call."""


class Verdict(Struct, frozen=True, gc=False, kw_only=True, array_like=True, forbid_unknown_fields=True):
    """The finding about one state, built once and shared by every trajectory that stands there.

    Parameters
    ----------
    state
        The state the verdict is about.
    risk
        Its risk level by the rules.
    probability
        Probability of a violation within ``horizon`` steps; nan when the basis is UNSEEN.
    horizon
        In steps. For a proposed call, the call itself is the first of them.
    within
        Probability of a violation within h steps, h = 0, 1, .. up to the table's maximum.
    eventually
        Probability that the run ends violated.
    uncertain
        Probability mass that runs into states from which no run ever went on: the true ``probability`` lies
        between it and it plus this.
    low, high
        Between which the true ``probability`` lies with a posterior probability of 0.9, as far as the model can say
        (docs/explanation/risk-score.md); nan where that is not known or was not asked for.
    basis
        What the figures rest on.
    alarm
        Whether the policy wants an intervention.
    intervention
        Which one; ALLOW when there is no alarm.
    """

    state: int
    risk: str
    probability: float
    horizon: int
    within: tuple[float, ...]
    eventually: float
    uncertain: float
    basis: Basis
    alarm: bool
    intervention: Intervention
    low: float = nan
    high: float = nan

    def __str__(self) -> str:
        if self.basis is Basis.VIOLATED:
            return "already violated by the rules"
        if self.basis is Basis.UNSEEN:
            return "no run ever went on from here"
        return f"{self.probability:.2f} within {self.horizon} steps"
