"""From a trace to its trajectory: every step's effect, read once, folded into states."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safetydrift.effects.history import History
from safetydrift.states.task_words import bins, task_words
from safetydrift.states.trajectory import Trajectory, fold

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from safetydrift.effects.labeler import Labeler
    from safetydrift.states.space import StateSpace
    from safetydrift.trace import Trace


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
    proposed, effects, kinds, orders, sources = [], [], [], [], []
    heard: list[tuple[int, ...]] = []
    history = History().hears(trace.prompt) if trace.prompt else History()
    words = task_words(trace.prompt)
    for step in trace.steps:
        if step.said:
            silent, history = history, history.hears(step.said)
            if heard:
                heard[-1] = bins([*heard[-1], *history.heard_since(silent)])
            else:
                words = tuple(sorted({*words, *task_words(step.said)}))
        intended = labeler.propose(step.call, history)
        happened = labeler.effect(step, intended, history)
        before, history = history, labeler.remember(history, step, happened)
        proposed.append(space.effect_index(intended))
        effects.append(space.effect_index(happened))
        kinds.append(intended.kinds)
        orders.append(bins(history.ordered_since(before)))
        sources.append(intended.sources)
        heard.append(bins(history.heard_since(before)))
        if tally is not None:
            key = (intended.source, step.call.name)
            tally[key] = tally.get(key, 0) + 1
    return Trajectory(
        trace.id,
        states=fold(space, effects),
        effects=tuple(effects),
        proposed=tuple(proposed),
        kinds=tuple(kinds),
        words=words,
        orders=tuple(orders) if any(orders) else (),
        sources=tuple(sources) if any(sources) else (),
        heard=tuple(heard) if any(heard) else (),
        tools=tuple([step.call.name for step in trace.steps]),
        source=trace.source,
        task=trace.task,
        category=trace.category,
        model=trace.model,
        ending=trace.ending,
        label=trace.label,
    )
