"""What several categories say at once: verdicts and outlooks, weighed by how much each category is believed."""

from __future__ import annotations

from math import nan
from operator import mul
from typing import TYPE_CHECKING

from safetydrift.monitor.outlook import Outlook
from safetydrift.monitor.verdict import Basis, Intervention, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from safetydrift.monitor.policy import Policy

# Members of an enumeration take longer to get than to compare.
UNSEEN, VIOLATED = Basis.UNSEEN, Basis.VIOLATED

BELIEVED = 0.05
"""Intervals enclose those of the categories that are believed at least this much."""


def mixed_verdict(parts: Sequence[tuple[float, Verdict]], policy: Policy, *, pending: bool) -> Verdict:
    """Return the verdict of several categories about one state.

    Probabilities are means, weighed by belief; ``low`` and ``high`` enclose the intervals of every category that is
    believed by `BELIEVED` or more, and the mean. What the figures rest on is what those of the likeliest category rest
    on.

    Parameters
    ----------
    parts
        How much each category is believed, and its verdict; at least one. Beliefs need not add up to one.
    policy
        The policy, whose horizon the verdicts have.
    pending
        Whether they are about a proposed call.
    """
    known = [part for part in parts if part[1].basis is not UNSEEN] or parts
    belief, likeliest = max(known, key=_belief)
    basis = likeliest.basis
    if len(known) == 1 or basis is VIOLATED or basis is UNSEEN:
        return likeliest
    whole = sum([part[0] for part in known])
    believed = min(BELIEVED * whole, belief)
    within: list[float] = []
    eventually = uncertain = 0.0
    low, high, surely = 1.0, 0.0, True
    # One loop, plainly written: this is made at every step, and cannot be made before.
    for belief, one in known:
        share = belief / whole
        curve = one.within
        if within:
            within = [mean + share * value for mean, value in zip(within, curve, strict=True)]
        else:
            within = [share * value for value in curve]
        eventually += share * one.eventually
        uncertain += share * one.uncertain
        if belief >= believed:
            low = min(one.low, low)
            high = max(one.high, high)
            surely = surely and one.low == one.low  # not nan
    if not surely:
        low, high = nan, nan
    if within[-1] > 1.0:  # by an ulp, since shares add up to one only so exactly
        within = [min(value, 1.0) for value in within]
    probability = within[likeliest.horizon]
    low, high = min(low, probability), max(high, probability)  # of nan and a number, both give nan
    alarm = policy.alarms(probability, basis, pending=pending, high=high)
    return Verdict(
        state=likeliest.state,
        risk=likeliest.risk,
        probability=probability,
        horizon=likeliest.horizon,
        within=tuple(within),
        eventually=min(eventually, 1.0),
        uncertain=min(uncertain, 1.0),
        basis=basis,
        alarm=alarm,
        intervention=policy.intervention if alarm else Intervention.ALLOW,
        low=low,
        high=high,
    )


def mixed_outlook(parts: Sequence[tuple[float, Outlook]]) -> Outlook:
    """Return the outlook of several categories on one run.

    How long a violation takes and of which kinds it is, is weighed by how likely each category makes one.

    Parameters
    ----------
    parts
        How much each category is believed, and its outlook; at least one.
    """
    known = [part for part in parts if _is_known(part[1].violates)] or list(parts)
    if len(known) == 1:
        return known[0][1]
    shares, outlooks = _shares(known), [outlook for _, outlook in known]
    violates = sum(map(mul, shares, [one.violates for one in outlooks]))
    violating = list(map(mul, shares, [one.violates for one in outlooks]))
    timed = [
        (weight, one.steps) for weight, one in zip(violating, outlooks, strict=True) if _is_known(one.steps)
    ]
    kinds: dict[str, float] = {}
    for weight, one in zip(violating, outlooks, strict=True):
        for kind, share in one.kinds:
            kinds[kind] = kinds.get(kind, 0.0) + weight * share
    low, high = _hull(shares, [(one.low, one.high) for one in outlooks])
    violates = min(violates, 1.0)
    return Outlook(
        violates=violates,
        low=min(low, violates),
        high=max(high, violates),
        completes=min(sum(map(mul, shares, [one.completes for one in outlooks])), 1.0),
        steps=_mean(timed),
        kinds=_ranked(kinds),
    )


def _shares(parts: Iterable[tuple[float, object]]) -> list[float]:
    beliefs = [belief for belief, _ in parts]
    whole = sum(beliefs)
    return [belief / whole for belief in beliefs]


def _hull(shares: Sequence[float], intervals: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the least interval around those that are believed; nan where one of them is not known."""
    most = max(shares)
    believed = [one for share, one in zip(shares, intervals, strict=True) if share >= min(BELIEVED, most)]
    if not all(_is_known(low) and _is_known(high) for low, high in believed):
        return nan, nan
    return min([low for low, _ in believed]), max([high for _, high in believed])


def _mean(weighed: Sequence[tuple[float, float]]) -> float:
    whole = sum([weight for weight, _ in weighed])
    return sum([weight * value for weight, value in weighed]) / whole if whole > 0.0 else nan


def _ranked(kinds: dict[str, float]) -> tuple[tuple[str, float], ...]:
    whole = sum(kinds.values())
    shares = [(kind, weight / whole) for kind, weight in kinds.items() if weight > 0.0]
    return tuple(sorted(shares, key=_likeliest))


def _likeliest(pair: tuple[str, float]) -> tuple[float, str]:
    return -pair[1], pair[0]


def _belief(part: tuple[float, object]) -> float:
    return part[0]


def _is_known(value: float) -> bool:
    return value == value  # noqa: PLR0124  # not nan
