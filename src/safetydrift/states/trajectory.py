"""The fold of effects into states, and what a chain may learn from the result.

Two notions of violation exist and are never mixed silently: by the *rules* of the space (the published one), and
by the source's own *label* at its onset. `observe` reads a trajectory under one of them.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import force_setattr

from safetydrift.trace import Ending, Label

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from safetydrift.states.space import StateSpace


class Notion(Enum):
    """What counts as a violation."""

    RULES = "rules"
    """The rule cascade of the state space says so."""

    LABEL = "label"
    """The source of the run says so: an attacker's goal reached, a judged misconduct."""


class UnknownOnset(Enum):
    """What to do with a run labelled violated when nobody knows which call did it."""

    LAST_CALL = "last-call"
    """Place the violation at the last call: certainly no later, possibly too late."""

    LEAVE_OUT = "leave-out"
    """Do not use the run."""


class Move(Struct, frozen=True, gc=False):
    """One call of a run, as far as the future is foreseen from it.

    Parameters
    ----------
    tool
        The tool's name.
    proposed, effect
        Index of the effect it was proposed with, and of the one it had; the same for a call not yet made.
    kinds
        The kinds of violation it would complete, as proposed.
    orders
        The words of what its result said to the agent as if it gave orders (`Trajectory.orders`).
    sources
        Where the words of its arguments come from (`Effect.sources`).
    heard
        The words that the user has said since, himself or through a file (`Trajectory.heard`).
    """

    tool: str
    proposed: int
    effect: int
    kinds: tuple[str, ...] = ()
    orders: tuple[int, ...] = ()
    sources: int = 0
    heard: tuple[int, ...] = ()


class Trajectory(Struct, frozen=True, gc=False):
    """A run as the mathematics sees it: effects and states by index, nothing of its text.

    Parameters
    ----------
    id, source, task, category, model, ending, label
        As in `Trace`.
    tools
        Tool name per step.
    effects
        Effect index per step, as it turned out.
    proposed
        Effect index per step as it looked before the call was made; equal to ``effects`` unless a result
        changed the picture (the call failed).
    states
        State indices before the first step and after each: one more than there are steps.
    kinds
        Per step, the kinds of violation that the proposed call would complete (`Effect.kinds`).
    words
        The words of the task, as `task_words` gives them.
    orders
        Per step, the words of what its result said to the agent as if it gave orders, in the same form; empty for most.
    sources
        Per step, where the words of the proposed call's arguments come from (`Effect.sources`).
    heard
        Per step, the words that the user has said between it and the next, himself or through a file that he said
        the task stands in; in the same form, and empty for most.
    """

    id: str
    states: tuple[int, ...]
    effects: tuple[int, ...]
    proposed: tuple[int, ...] = ()
    kinds: tuple[tuple[str, ...], ...] = ()
    words: tuple[int, ...] = ()
    orders: tuple[tuple[int, ...], ...] = ()
    sources: tuple[int, ...] = ()
    heard: tuple[tuple[int, ...], ...] = ()
    tools: tuple[str, ...] = ()
    source: str = ""
    task: str = ""
    category: str = ""
    model: str = ""
    ending: Ending = Ending.CENSORED
    label: Label = Label()

    def __post_init__(self) -> None:
        """Say of every step what was said of none: no kinds, no words, and the effect as proposed."""
        n = len(self.effects)
        for name, silent in (("kinds", ((),)), ("orders", ((),)), ("heard", ((),)), ("sources", (0,))):
            if not getattr(self, name):
                force_setattr(self, name, silent * n)
        if not self.proposed:
            force_setattr(self, "proposed", self.effects)

    @property
    def n_steps(self) -> int:
        """Number of tool calls."""
        return len(self.effects)

    def moves(self) -> Iterator[Move]:
        """Yield every call, in order."""
        tools = self.tools or ("",) * len(self.effects)
        return map(
            Move, tools, self.proposed, self.effects, self.kinds, self.orders, self.sources, self.heard
        )


class ObservedRun(Struct, frozen=True, gc=False):
    """What a chain may learn from one run under one notion of violation.

    Parameters
    ----------
    states
        The states the run stood in while nothing had been violated, from the start.
    end
        ``"violated"``, ``"completed"``, or None for a run that was cut off.
    arrival
        The state the violating call led to; None unless the end is ``"violated"``.
    left_out
        Why the run cannot be used; empty when it can. A run left out has no states.
    """

    states: tuple[int, ...] = ()
    end: str | None = None
    arrival: int | None = None
    left_out: str = ""

    @property
    def onset(self) -> int | None:
        """The violating call, counted from 1; None unless the end is ``"violated"``."""
        return len(self.states) if self.end == VIOLATED else None


VIOLATED = "violated"
"""Name of the absorbing class of runs that crossed the line."""

COMPLETED = "completed"
"""Name of the absorbing class of runs that finished without crossing it."""


def fold(space: StateSpace, effects: Iterable[int]) -> tuple[int, ...]:
    """Return the states of a trajectory: the start, then the state after each effect.

    Parameters
    ----------
    effects
        Effect indices, shape (n_steps,).

    Returns
    -------
    tuple of int
        State indices, shape (n_steps + 1,).
    """
    state = space.start
    states = [state]
    for effect in effects:
        state = space.successors(state)[effect]
        states.append(state)
    return tuple(states)


def observe(
    trajectory: Trajectory,
    space: StateSpace,
    notion: Notion,
    unknown_onset: UnknownOnset = UnknownOnset.LAST_CALL,
) -> ObservedRun:
    """Read a trajectory under one notion of violation.

    A violation ends the run: what follows the violating call teaches nothing about how it came to be.
    """
    if notion is Notion.RULES:
        onset = _first(trajectory.states, space.violated)
    else:
        left_out = _unusable(trajectory, unknown_onset)
        if left_out:
            return ObservedRun(left_out=left_out)
        onset = (trajectory.label.onset or trajectory.n_steps) if trajectory.label.violated else None
    if onset is not None:
        return ObservedRun(trajectory.states[:onset], VIOLATED, trajectory.states[onset])
    return ObservedRun(trajectory.states, COMPLETED if trajectory.ending is Ending.COMPLETED else None)


def _first(states: tuple[int, ...], violated: frozenset[int]) -> int | None:
    return next((position for position, state in enumerate(states) if state in violated), None)


def _unusable(trajectory: Trajectory, unknown_onset: UnknownOnset) -> str:
    label = trajectory.label
    if label.unusable or label.violated is None:
        return label.unusable or "the source says nothing about violation"
    if label.violated and label.onset is None:
        if trajectory.n_steps == 0:
            return "labelled violated without any tool call"
        if unknown_onset is UnknownOnset.LEAVE_OUT:
            return "the violating call is not known"
    if label.violated and label.onset is not None and not 0 < label.onset <= trajectory.n_steps:
        return "the onset lies outside the run"
    return ""
