"""A safer tool in place of one that is refused."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING

from safetydrift.guard.policy import Call
from safetydrift.monitor.verdict import Intervention

if TYPE_CHECKING:
    from collections.abc import Iterable

    from safetydrift.guard.policy import GuardPolicy
    from safetydrift.monitor.lookup import LookupMonitor
    from safetydrift.monitor.session import TrajectoryState

MAX_TRIED = 64
"""Tools that are looked at."""


def safer_tool(
    monitor: LookupMonitor, position: TrajectoryState, refused: str, tools: Iterable[str], policy: GuardPolicy
) -> str:
    """Return the name of a tool at hand that would go ahead and is safest; empty if there is none.

    Tools whose names have a word in common with the refused one come first: they are likelier to be of use.
    """
    others = sorted(set(tools) - {refused})[:MAX_TRIED]
    if not others:
        return ""
    words = _words(refused)
    best: tuple[bool, float, str] | None = None
    for one in monitor.alternatives(position, others):
        call = Call(one.tool, position.category, one.effect, one.verdict)
        if isnan(one.verdict.probability):
            continue
        if policy.decide(call, monitor.policy, monitor.model.space).intervention is not Intervention.ALLOW:
            continue
        found = (words.isdisjoint(_words(one.tool)), one.verdict.probability, one.tool)
        best = found if best is None else min(best, found)
    return "" if best is None else best[2]


def _words(name: str) -> set[str]:
    return set(name.lower().replace("-", "_").split("_"))
