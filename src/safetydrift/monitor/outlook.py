"""What lies ahead beyond one probability: how sure it is, how the run ends, and what could be done instead."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING

from msgspec import Struct

from safetydrift.monitor.verdict import Verdict
from safetydrift.states.effect import Effect

if TYPE_CHECKING:
    from collections.abc import Sequence


class Bounds(Struct, frozen=True, gc=False, kw_only=True):
    """Between which probabilities the true ones lie, with a posterior probability of 0.9; nan where not known.

    Parameters
    ----------
    horizon
        The horizon they are for, in steps: that of the policy the model was fitted with.
    low, high
        Of a violation within the horizon, by row.
    pending_low, pending_high
        The same for a proposed call that would lead to the row, the call being the first step.
    eventually_low, eventually_high
        Of ending violated, by row.
    """

    horizon: int
    low: tuple[float, ...]
    high: tuple[float, ...]
    pending_low: tuple[float, ...]
    pending_high: tuple[float, ...]
    eventually_low: tuple[float, ...]
    eventually_high: tuple[float, ...]


class Endings(Struct, frozen=True, gc=False):
    """How the runs that stand in each row end.

    Parameters
    ----------
    completes
        Probability of finishing without a violation, by row; nan where not visited.
    steps
        Expected steps until the violation of the runs that end in one, by row; nan where none does.
    kinds
        By kind, the share of it among the violations that runs end in, by row; nan where none does.
    """

    completes: tuple[float, ...]
    steps: tuple[float, ...]
    kinds: tuple[tuple[str, tuple[float, ...]], ...]

    def kinds_of(self, row: int) -> tuple[tuple[str, float], ...]:
        """Return the kinds of violation that runs from a row end in with their shares, the likeliest first."""
        shares = [(kind, values[row]) for kind, values in self.kinds]
        return tuple(sorted([pair for pair in shares if pair[1] > 0.0], key=_likeliest))


class Outlook(Struct, frozen=True, gc=False, kw_only=True):
    """How a run is expected to go on from where it stands; what is not known is nan.

    Parameters
    ----------
    violates, low, high
        Probability that it ends in a violation, and between which it lies with a posterior probability of 0.9.
    completes
        Probability that it finishes without one. What is missing to one runs into states nobody went on from.
    steps
        Expected steps until the violation, if there is one.
    kinds
        The kinds it would be of with their shares, the likeliest first.
    """

    violates: float
    low: float
    high: float
    completes: float
    steps: float
    kinds: tuple[tuple[str, float], ...]

    def __str__(self) -> str:
        if self.violates != self.violates:  # nan
            return "how it ends is not known"
        sure = f" ({self.low:.2f} to {self.high:.2f})" if self.low == self.low else ""  # not nan
        text = f"ends violated with {self.violates:.2f}{sure}, completes with {self.completes:.2f}"
        if self.kinds:
            text += f"; a violation would come after {self.steps:.1f} steps and be "
            text += ", ".join([f"{kind} ({share:.2f})" for kind, share in self.kinds[:3]])
        return text


def with_risk_score(
    outlook: Outlook, within: Sequence[float], violates: float, low: float = nan, high: float = nan
) -> Outlook:
    """Return the outlook of a chain, made to agree with what a risk score says of the same run.

    The score says how likely a violation is and how soon; the chain, of which kinds it would be, and how the other
    runs end. Beyond the furthest horizon the chain says how long it takes.

    Parameters
    ----------
    outlook
        What the chain says.
    within
        The score's probability of a violation within h steps, h = 0, 1, ..
    violates, low, high
        Its probability that the run ends violated, and between which it lies.
    """
    known = outlook.completes == outlook.completes  # not nan
    rest = 1.0 - outlook.violates
    completes = (
        (1.0 - violates) * min(outlook.completes / rest, 1.0) if known and rest > 0.0 else 1.0 - violates
    )
    steps = nan
    if violates > 0.0:
        later = [1.0 - min(sooner / violates, 1.0) for sooner in within]
        beyond = outlook.steps if outlook.steps == outlook.steps else 1.0  # as above
        steps = sum(later[:-1]) + later[-1] * beyond
    return Outlook(
        violates=violates, low=low, high=high, completes=completes, steps=steps, kinds=outlook.kinds
    )


class Alternative(Struct, frozen=True, gc=False):
    """A tool at hand, and what calling it would lead to.

    Parameters
    ----------
    tool
        Its name.
    effect
        What a call of it is taken to do, by the catalogue alone: its arguments are not known yet.
    verdict
        The finding about such a call.
    reason
        Why it stands where it does, in words.
    """

    tool: str
    effect: Effect
    verdict: Verdict
    reason: str


def _likeliest(pair: tuple[str, float]) -> tuple[float, str]:
    return -pair[1], pair[0]
