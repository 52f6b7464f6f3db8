"""What one session makes of a call, before a decision is made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from safetydrift.authority.score import CLEAR
from safetydrift.guard.policy import Finding
from safetydrift.monitor.session import Pending, TrajectoryState
from safetydrift.monitor.verdict import Verdict

if TYPE_CHECKING:
    from safetydrift.authority.score import Assessment
    from safetydrift.states.effect import Effect


class Judgement(Struct, frozen=True, gc=False):
    """What one session makes of a call.

    Parameters
    ----------
    found
        What the policy says.
    position
        Where the run stands, calls under way included.
    pending
        What was read of the call.
    verdict
        The finding about it.
    """

    found: Finding
    position: TrajectoryState
    pending: Pending
    verdict: Verdict

    @property
    def assessment(self) -> Assessment:
        """How probable it is that the call is unauthorised harm."""
        return self.pending.assessment or CLEAR

    @property
    def effect(self) -> Effect:
        """What the call was taken to do."""
        return self.pending.proposal.effect
