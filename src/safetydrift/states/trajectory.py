"""The fold of effects into states, and what a chain may learn from the result.

Two notions of violation exist and are never mixed silently: by the *rules* of the space (the published one), and
by the source's own *label* at its onset. `observe` reads a trajectory under one of them.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from safetydrift.states.bounded import Count, Word
from safetydrift.trace import Ending, Label

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Self

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


class Move(Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """One call of a run in numbers: all that the future is foreseen from, and nothing of its text.

    Parameters
    ----------
    tool
        The tool's name; empty if it is not known.
    proposed, effect
        Index of the effect it was proposed with, and of the one it had: they differ where the result changed the
        picture (the call failed). The same for a call not yet made.
    kinds
        The kinds of violation it would complete, as proposed (`Effect.kinds`).
    injected
        The words of instructions that its result was found to hold, as `task_words` gives them; empty for most.
    sources
        Where the words of its arguments come from (`safetydrift.effects.proposal.Proposal.sources`).
    heard
        The words that the user has said between it and the next, or that stood in a file that they said the task
        stands in; empty for most.
    """

    tool: str
    proposed: Count
    effect: Count
    kinds: tuple[str, ...] = ()
    injected: tuple[Word, ...] = ()
    sources: Count = 0
    heard: tuple[Word, ...] = ()


class Trajectory(Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """A run as the mathematics sees it: calls and states in numbers, nothing of its text.

    Parameters
    ----------
    id, source, task, category, model, ending, label
        As in `Trace`.
    moves
        Its calls, in order.
    states
        State indices before the first call and after each: one more than there are calls.
    words
        The words of the task, as `task_words` gives them.
    """

    id: str
    moves: tuple[Move, ...]
    states: tuple[Count, ...]
    words: tuple[Word, ...] = ()
    source: str = ""
    task: str = ""
    category: str = ""
    model: str = ""
    ending: Ending = Ending.CENSORED
    label: Label = Label()

    @classmethod
    def of_columns(
        cls,
        id: str,  # noqa: A002
        *,
        states: Sequence[int],
        effects: Sequence[int],
        proposed: Sequence[int] = (),
        tools: Sequence[str] = (),
        kinds: Sequence[tuple[str, ...]] = (),
        injected: Sequence[tuple[int, ...]] = (),
        sources: Sequence[int] = (),
        heard: Sequence[tuple[int, ...]] = (),
        **rest: Any,
    ) -> Self:
        """Return a run from what is known of each of its calls, by column; the rest as for the class.

        A column that is left out says nothing of any call; every call then did as it was proposed.
        """
        n = len(effects)
        columns = (
            tools or ("",) * n,
            proposed or effects,
            effects,
            kinds or ((),) * n,
            injected or ((),) * n,
            sources or (0,) * n,
            heard or ((),) * n,
        )
        moves = [Move(*row) for row in zip(*columns, strict=True)]
        return cls(id, tuple(moves), tuple(states), **rest)

    @property
    def n_steps(self) -> int:
        """Number of tool calls."""
        return len(self.moves)

    @property
    def tools(self) -> tuple[str, ...]:
        """Tool name per call."""
        return tuple([move.tool for move in self.moves])

    @property
    def effects(self) -> tuple[int, ...]:
        """Effect index per call, as it turned out."""
        return tuple([move.effect for move in self.moves])

    @property
    def proposed(self) -> tuple[int, ...]:
        """Effect index per call, as it was proposed."""
        return tuple([move.proposed for move in self.moves])


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
