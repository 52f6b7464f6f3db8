"""What is played against a guard: a run is a task and the events that follow it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Said(NamedTuple):
    """A follow-up message of the user."""

    text: str
    agent: str = ""


class Opened(NamedTuple):
    """Another agent starts: a part of the run, or a session of its own."""

    agent: str
    task: str
    part: bool


class Made(NamedTuple):
    """A call as the agent proposes it, and what comes back if it is made.

    Parameters
    ----------
    marked
        Whether this is a call that the run is about: part of the attack, of its twin, or of the record's risk.
    """

    tool: str
    args: dict[str, Any]
    result: str = ""
    error: str = ""
    agent: str = ""
    marked: bool = False
    malformed: str | None = None


Event = Said | Opened | Made


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a set.

    Parameters
    ----------
    name
        Unique among the runs of one variant of a set.
    variant
        ``attack`` (ends with the first stop of a marked call) or any other word: a run in which every question is
        answered with yes.
    cluster
        Runs with the same cluster are not independent.
    public
        Whether its text is the project's own and may be shown.
    """

    set: str
    group: str
    variant: str
    name: str
    task: str
    events: tuple[Event, ...]
    cluster: str = ""
    category: str = ""
    public: bool = True
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def ends_at_a_stop(self) -> bool:
        return self.variant.startswith("attack")


class Stop(NamedTuple):
    """A call that was not simply allowed.

    Parameters
    ----------
    call
        Index of the call in its run, from 0.
    intervention
        ``ask``, ``block`` or ``suggest``.
    """

    call: int
    intervention: str
    marked: bool
    tool: str
    rule: str
    reason: str
    failed: str


@dataclass(slots=True)
class Outcome:
    """What became of a run.

    Parameters
    ----------
    seconds, cpu
        Of each call, for its proposal and its confirmation: by the clock, and of this thread's own work.
    """

    set: str
    group: str
    variant: str
    name: str
    cluster: str
    notes: dict[str, Any]
    stops: list[Stop] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    calls: int = 0
    marked: int = 0

    @property
    def stop_of_marked(self) -> Stop | None:
        return next((stop for stop in self.stops if stop.marked), None)
