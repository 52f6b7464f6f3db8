"""Walk a recorded run through a monitor, step by step, as the live loop would."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from safetydrift.monitor.walk import walk
from safetydrift.states.trajectory import observe

if TYPE_CHECKING:
    from safetydrift.monitor.lookup import LookupMonitor
    from safetydrift.monitor.session import TrajectoryState
    from safetydrift.monitor.verdict import Verdict
    from safetydrift.states.trajectory import Trajectory


@dataclass(frozen=True, slots=True)
class Replay:
    """What a monitor would have said along one run.

    Parameters
    ----------
    trajectory
        The run.
    positions
        Where it stood after k calls, k = 0 .. n_steps.
    current
        The verdict after k calls, k = 0 .. n_steps: it knows calls 1 to k and their results only.
    pending
        The verdict on call k + 1 as proposed, k = 0 .. n_steps - 1.
    onset
        The violating call, counted from 1, by the model's own notion of violation; None if there is none or the
        model's treatment of unknown onsets leaves the run out.
    left_out
        Why it cannot be said whether the run is violated, under the model's notion; empty when it can.
    """

    trajectory: Trajectory
    positions: tuple[TrajectoryState, ...]
    current: tuple[Verdict, ...]
    pending: tuple[Verdict, ...]
    onset: int | None
    left_out: str = ""

    @property
    def before_onset(self) -> int:
        """How many of the current verdicts come before the violating call is made."""
        return len(self.current) if self.onset is None else self.onset

    @property
    def alarm(self) -> int | None:
        """Calls made when the first alarm was raised, strictly before the violating call; None if none was."""
        verdicts = self.current[: self.before_onset]
        return next((step for step, verdict in enumerate(verdicts) if verdict.alarm), None)

    @property
    def proposal_alarm(self) -> int | None:
        """The first call that raised an alarm when it was proposed, counted from 1, up to the violating one."""
        proposals = self.pending if self.onset is None else self.pending[: self.onset]
        return next((step for step, verdict in enumerate(proposals, 1) if verdict.alarm), None)

    @property
    def lead_time(self) -> int | None:
        """Steps from the first alarm to the violating call; None without a violation or without an alarm."""
        if self.onset is None or self.alarm is None:
            return None
        return self.onset - self.alarm

    @property
    def stopped_at_proposal(self) -> bool:
        """Whether the violating call itself raised an alarm when it was proposed."""
        return self.onset is not None and self.pending[self.onset - 1].alarm


def replay(trajectory: Trajectory, monitor: LookupMonitor) -> Replay:
    """Walk a run through a monitor.

    Parameters
    ----------
    trajectory
        A run labelled in the monitor's own state space.
    """
    positions, current, pending = [], [], []
    for state, move in walk(monitor, trajectory):
        positions.append(state)
        current.append(monitor.verdict(state))
        if move is not None:
            pending.append(monitor.foresee(state, move))
    model = monitor.model
    run = observe(trajectory, model.space, model.notion, model.unknown_onset)
    return Replay(trajectory, tuple(positions), tuple(current), tuple(pending), run.onset, run.left_out)
