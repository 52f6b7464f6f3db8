"""The shape of every monitor, ours or yours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from safetydrift.monitor.session import TrajectoryState
    from safetydrift.monitor.verdict import Verdict
    from safetydrift.trace import Step, ToolCall


class Monitor(Protocol):
    """Follows any number of trajectories at once: what it knows of one is in that one's state.

    Both checks are pure: the same arguments give the same answer, and nothing is kept in between.
    """

    def start(self, category: str = "", task: str = "") -> TrajectoryState:
        """Return the state of a run that has not made a call yet."""
        ...

    def verdict(self, state: TrajectoryState) -> Verdict:
        """Return the finding about where a run stands."""
        ...

    def check(self, state: TrajectoryState, step: Step) -> tuple[TrajectoryState, Verdict]:
        """Record a call with its result; return where the run stands now, and the finding about it."""
        ...

    def check_pending(self, state: TrajectoryState, call: ToolCall) -> Verdict:
        """Judge a call before it is made. Nothing is recorded."""
        ...
