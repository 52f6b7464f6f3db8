"""Grafts: harmful calls put into recorded runs, the same calls asked for, and harmless calls that look like harm.

Recorded corpora hold few kinds of harm. A graft puts a call of our own (`safetydrift.formats.graft_data`) into a run
that somebody recorded, in one of these ways:

``unprompted``
    Harm: the agent does it without a word from anybody.
``injected``
    Harm: a passage in an earlier result brings it about: a fact, a changed record, an instruction, an encoded text.
``undesignated``
    Harm: the agent reads a document that the user did not point to, and does what it says.
``near miss``
    Harm: the user asked for something close to it, such as the same act on another target.
``asked in task``, ``asked later``, ``operator``, ``delegated``
    None: the same calls, asked for by the task, by a later message, by the operator's configuration ahead of the
    task, or by a document that the user points to.
``ignored``
    None: the passage stands in a result, and the run goes on as it was recorded.
``look-alike``
    None: a harmless call that looks like harm.

A harmful run is violated, with the grafted call as its onset. ``goal`` is the id of the act, ``harm/channel/name``, so
that a split can hold out acts, harms and channels; the id ends with the way and with the form, the style and the words
that were drawn.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from safetydrift.formats.graft_forms import surface, tools_of
from safetydrift.formats.graft_values import Filling
from safetydrift.formats.graft_words import Insertion, Scene, Words
from safetydrift.trace import NO_ATTACK, NO_SAFETY_LABEL, Ending, Label, Step, Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from safetydrift.formats.graft_data import Act, Grafts

_HARMFUL: dict[str, Callable[[Words], Insertion]] = {
    "unprompted": Words.unprompted,
    "injected": Words.injected,
    "undesignated": Words.undesignated,
    "near miss": Words.near_miss,
}
_HARMLESS: dict[str, Callable[[Words], Insertion]] = {
    "asked in task": Words.asked_in_task,
    "asked later": Words.asked_later,
    "operator": Words.operator,
    "delegated": Words.delegated,
    "ignored": Words.ignored,
}
HARMFUL, HARMLESS, LOOK_ALIKE = tuple(_HARMFUL), tuple(_HARMLESS), "look-alike"
"""The ways of grafting that are harm, and those that are not."""

MAX_STEPS = 120
"""Steps of a base run that are used."""

_KEPT_SHARE = 0.5  # of the runs go on after the graft as they were recorded
_TYPED_SHARE = 0.25  # of the grafts in a run with a shell use another tool


def suits(base: Trace) -> bool:
    """Return whether a run can carry a graft: it has calls, nobody attacked it, and nothing speaks of a violation."""
    label = base.label
    is_harmless = label.violated is False or label.unusable in {"", NO_ATTACK, NO_SAFETY_LABEL}
    return bool(base.steps) and not label.attack and not label.violated and is_harmless


def graft_runs(bases: Iterable[Trace], grafts: Grafts, seed: int, *, per_base: int = 2) -> Iterator[Trace]:
    """Yield grafted runs, three per draw: a harmful one, a harmless one of the same calls, and a look-alike.

    Parameters
    ----------
    bases
        Recorded runs; those that `suits` refuses are passed over.
    grafts
        The data, from `safetydrift.formats.graft_data.load_grafts`.
    seed
        The same seed, bases and data give the same runs.
    per_base
        Draws per base run. Harms are drawn evenly, then acts within a harm.

    Examples
    --------
    >>> from safetydrift.formats.graft_data import load_grafts
    >>> from safetydrift.trace import ToolCall
    >>> step = Step(ToolCall("bash", {"command": "ls"}), "a.txt", said="List the files.")
    >>> base = Trace("run-1", (step,), prompt="List the files.")
    >>> harmful, twin, look_alike = graft_runs([base], load_grafts(), seed=7, per_base=1)
    >>> harmful.label.violated, twin.label.violated, look_alike.label.violated
    (True, False, False)
    >>> harmful.label.goal == twin.label.goal
    True
    """
    for base in filter(suits, bases):
        rng = random.Random(f"{seed}/{base.id}")  # noqa: S311  # draws data, guards nothing
        has_shell = tools_of(base.steps[:MAX_STEPS]).shell is not None
        for draw in range(per_base):
            is_shell = has_shell and rng.random() > _TYPED_SHARE
            by_harm = [
                fit for acts in grafts.acts.values() if (fit := [a for a in acts if a.is_shell == is_shell])
            ]
            act = rng.choice(rng.choice(by_harm))
            look_alike = rng.choice([act for act in grafts.look_alikes if act.is_shell == is_shell])
            key = f"{seed}.{draw}"
            yield graft(base, act, rng.choice(HARMFUL), grafts, key)
            yield graft(base, act, rng.choice(HARMLESS), grafts, key)
            yield graft(base, look_alike, LOOK_ALIKE, grafts, key)


def graft(base: Trace, act: Act, way: str, grafts: Grafts, key: str) -> Trace:
    """Return a run with an act put into it.

    Parameters
    ----------
    base
        The recorded run; its first `MAX_STEPS` steps are used.
    act
        An act of ``grafts``, or a look-alike.
    way
        One of `HARMFUL` or `HARMLESS` for an act, `LOOK_ALIKE` for a look-alike.
    key
        The calls, their values and their place depend on base, act and key alone: they are the same for every way.

    Raises
    ------
    ValueError
        If the way does not fit the act, or a shell act is put into a run without a shell.
    """
    words_of = {LOOK_ALIKE: Words.look_alike} if act.is_look_alike else _HARMFUL | _HARMLESS
    if way not in words_of:
        raise ValueError(f"{act.goal} cannot be grafted as {way!r}")
    steps, tools = base.steps[:MAX_STEPS], tools_of(base.steps[:MAX_STEPS])
    about = f"{key}/{base.id}/{act.goal}"
    rng = random.Random(about)  # noqa: S311
    fill = Filling(grafts.values, rng)
    form = rng.randrange(len(act.forms))
    server = rng.choice(grafts.frames.servers.get(act.channel, [act.channel]))
    calls, style = surface(act, act.lines()[form], tools, server, fill)
    place, is_kept = rng.choice(_places(steps)), rng.random() < _KEPT_SHARE
    scene = Scene(act, grafts.frames, base.prompt, steps, place, calls, tools)
    words = Words(scene, fill, random.Random(f"{about}/{way}"))  # noqa: S311
    insertion = words_of[way](words)
    rest = steps[place:] if is_kept or way == "ignored" else ()
    grafted = _inserted(base, place, insertion, rest)
    return Trace(
        f"graft/{about}/{way}/{'; '.join([f'form {form}', style, *words.drawn])}",
        grafted,
        source="graft",
        task=base.task,
        category=base.category,
        model=base.model,
        prompt=insertion.prompt,
        ending=base.ending if grafted[-1].call is base.steps[-1].call else Ending.CENSORED,
        label=Label(
            way in HARMFUL,
            onset=place + len(insertion.calls) if way in HARMFUL else None,
            exposure=insertion.exposure,
            attack=way if way in HARMFUL or insertion.exposure is not None else "",
            goal=act.goal,
            origin="graft",
        ),
    )


def _places(steps: Sequence[Step]) -> list[int]:
    """Return where calls can be put in: between messages of the agent, never amid parallel calls."""
    return [i for i in range(len(steps) + 1) if i in {0, len(steps)} or steps[i].turn != steps[i - 1].turn]


def _inserted(base: Trace, place: int, insertion: Insertion, after: Sequence[Step]) -> tuple[Step, ...]:
    before, n_new = base.steps[:place], len(insertion.calls)
    turn = before[-1].turn + 1 if before else 0
    new = [Step(call, result, turn=turn + i) for i, (call, result) in enumerate(insertion.calls)]
    steps = [*before, *new, *(_changed(step, turn=step.turn + n_new) for step in after)]
    if insertion.host is not None:
        steps[insertion.host] = _changed(steps[insertion.host], result=insertion.result)
    if not before and new and after:
        steps[n_new] = _changed(
            steps[n_new], said=""
        )  # it was said before the first call, which is another one now
    first = base.steps[0].said
    steps[0] = _changed(steps[0], said=first.replace(base.prompt, insertion.prompt, 1) or insertion.prompt)
    if insertion.said:
        steps[place] = _changed(steps[place], said=insertion.said)
    return tuple(steps)


def _changed(
    step: Step, *, result: str | None = None, turn: int | None = None, said: str | None = None
) -> Step:
    return Step(
        step.call,
        step.result if result is None else result,
        step.error,
        step.turn if turn is None else turn,
        step.said if said is None else said,
    )
