"""From a trace to its trajectory: every step read once, in view of what the run had shown, and folded into states."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from safetydrift.effects.history import History
from safetydrift.effects.proposal import Proposal
from safetydrift.states.effect import Effect
from safetydrift.states.task_words import bins, task_words
from safetydrift.states.trajectory import Move, Trajectory, fold
from safetydrift.trace import Step

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping

    from safetydrift.effects.labeler import Labeler
    from safetydrift.states.space import StateSpace
    from safetydrift.trace import Trace


class ReadStep(NamedTuple):
    """One step of a trace as it was read.

    Attributes
    ----------
    step
        The step.
    proposal, effect
        What was read of the call, and what it did.
    silent, before, after
        What the run had shown before the user spoke, before the call, and after its result.
    """

    step: Step
    proposal: Proposal
    effect: Effect
    silent: History
    before: History
    after: History


def read_steps(trace: Trace, labeler: Labeler) -> Iterator[ReadStep]:
    """Yield every step of a trace, read in view of all before it."""
    history = History().hears(trace.prompt) if trace.prompt else History()
    for step in trace.steps:
        silent, history = history, history.hears(step.said) if step.said else history
        proposal = labeler.read_call(step.call, history)
        effect, after = labeler.read_result(proposal, step.result, step.error, history)
        yield ReadStep(step, proposal, effect, silent, history, after or history)
        history = after or history


def move_of(proposal: Proposal, space: StateSpace) -> Move:
    """Return a call as it was proposed, in the numbers of a state space."""
    index = space.effect_index(proposal.effect)
    return Move(proposal.tool, index, index, proposal.effect.kinds, sources=proposal.sources)


def made(
    move: Move, effect: Effect, before: History | None, after: History | None, space: StateSpace
) -> Move:
    """Return a call after its result has come back.

    Parameters
    ----------
    move
        The call as it was proposed.
    effect
        What it did.
    before, after
        What the run had shown before the result, and with it; None where nobody asks.
    """
    index = space.effect_index(effect)
    if before is None or after is None:
        return move if index == move.effect else replace(move, effect=index)
    if index == move.effect and after.instructed is before.instructed and after.said is before.said:
        return move
    injected, heard = bins(after.injected_since(before)), bins(after.heard_since(before))
    return replace(move, effect=index, injected=injected, heard=heard)


def label_trace(
    trace: Trace,
    labeler: Labeler,
    space: StateSpace,
    tally: MutableMapping[tuple[str, str], int] | None = None,
) -> Trajectory:
    """Read what every step of a trace did, and where that led.

    Parameters
    ----------
    tally
        Where to count, by (layer that decided, tool name), how the effects were found; layers are those of
        `Effect.source`.
    """
    moves: list[Move] = []
    words = task_words(trace.prompt)
    for read in read_steps(trace, labeler):
        said = read.step.said
        if said and moves:
            heard = bins([*moves[-1].heard, *read.before.heard_since(read.silent)])
            moves[-1] = replace(moves[-1], heard=heard)
        elif said:
            words = tuple(sorted({*words, *task_words(said)}))
        moves.append(made(move_of(read.proposal, space), read.effect, read.before, read.after, space))
        if tally is not None:
            key = (read.proposal.effect.source, read.step.call.name)
            tally[key] = tally.get(key, 0) + 1
    return Trajectory(
        trace.id,
        tuple(moves),
        states=fold(space, [move.effect for move in moves]),
        words=words,
        source=trace.source,
        task=trace.task,
        category=trace.category,
        model=trace.model,
        ending=trace.ending,
        label=trace.label,
    )
