"""``safetydrift replay``."""

from __future__ import annotations

from contextlib import closing
from itertools import islice
from math import isnan
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from safetydrift.cli import options
from safetydrift.cli.inputs import Inputs
from safetydrift.cli.output import WIDTH, console, emit_json, say, shown, table

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import RenderableType

    from safetydrift.evaluation.replay import Replay
    from safetydrift.monitor.lookup import LookupMonitor
    from safetydrift.monitor.outlook import Outlook
    from safetydrift.monitor.verdict import Verdict

WIDE = 120
"""Columns of a terminal that has room for the whole state and a bar."""
BAR = 20
LONGEST_TOOL, LONGEST_EFFECT = 20, 24
WORTH_A_WORD = 0.01
"""A category that is believed less is not shown."""


@click.command
@options.paths
@options.model
@click.option(
    "--trace", "traces", multiple=True, metavar="ID", help="Only the run with this id; may be repeated."
)
@click.option(
    "-n", "--limit", type=click.IntRange(min=1), default=3, show_default=True, help="Show this many runs."
)
@options.output("JSON file to write.")
@options.reading
@options.as_json
def replay(
    paths: tuple[str, ...],
    model: str,
    traces: tuple[str, ...],
    limit: int,
    output: Path | None,
    reading: options.Reading,
    as_json: bool,
) -> None:
    """Show runs step by step: what each call did, where it led, the probability after it, the alarm.

    A narrow terminal is shown of each effect what is above the lowest level of its dimension, and no state; --json has
    all of it.

    \b
    Example:
      safetydrift replay traces/ --limit 1
      safetydrift replay corpus --trace runs/gpt-4o-2024-05-13/banking/user_task_3/direct/injection_task_0.json
    """
    from safetydrift.evaluation.replay import replay as walk
    from safetydrift.formats.model_file import load_model
    from safetydrift.monitor.foresight import monitor_for

    fitted = load_model(model)
    monitor = monitor_for(fitted, intervals=True)
    inputs = Inputs(paths, fitted.space, monitor.labeler, reading, output)
    with closing(inputs.__iter__()) as runs:  # ends the progress of a reading that is not gone on with
        chosen = (run for run in runs if not traces or run.id in traces)
        replays = [walk(run, monitor) for run in islice(chosen, len(traces) or limit)]
    if not replays:
        raise click.BadParameter("no run with that id among those read", param_hint="--trace")
    if as_json or output is not None:
        emit_json([as_dict(one, monitor) for one in replays], output)
    if not as_json:
        for one in replays:
            console.print(replay_view(one, monitor))
            say(outcome(one))
            say(foreseen(one, monitor))


def as_dict(replay: Replay, monitor: LookupMonitor) -> dict[str, Any]:
    """Return a replay as plain data."""
    run, space = replay.trajectory, monitor.model.space
    steps = zip(replay.positions, replay.current, [*replay.pending, None], strict=True)
    return {
        "trace": run.id,
        "source": run.source,
        "category": run.category,
        "model": run.model,
        "left_out": replay.left_out,
        "onset": replay.onset,
        "first_alarm_after_calls": replay.alarm,
        "first_alarm_at_proposal_of": replay.proposal_alarm,
        "lead_time": replay.lead_time,
        "stopped_at_proposal": replay.stopped_at_proposal,
        "steps": [
            {
                "calls": position.steps,
                "tool": run.tools[position.steps - 1] if position.steps and run.tools else None,
                "effect": space.describe(run.effects[position.steps - 1]) if position.steps else None,
                "state": space.describe(position.state),
                "risk": verdict.risk,
                "probability": verdict.probability,
                "low": verdict.low,
                "high": verdict.high,
                "horizon": verdict.horizon,
                "basis": verdict.basis.value,
                "alarm": verdict.alarm,
                "why": monitor.explain(position, verdict),
                "outlook": _outlook(monitor.outlook(position)),
                "pending": pending and {"risk": pending.probability, "alarm": pending.alarm},
            }
            for position, verdict, pending in steps
        ],
    }


def replay_view(replay: Replay, monitor: LookupMonitor) -> RenderableType:
    """Show one run, a line per step; what comes after the violating call is dimmed."""
    run, space = replay.trajectory, monitor.model.space
    wide = get_terminal_size((WIDTH, 24)).columns >= WIDE
    rows = []
    for step, position in enumerate(replay.positions):
        verdict = replay.current[step]
        pending = replay.pending[step] if step < len(replay.pending) else None
        over = "dim" if replay.onset is not None and step >= replay.onset else ""
        tool = "(start)" if not step else run.tools[step - 1] if run.tools else "?"
        effect = run.effects[step - 1] if step else space.start
        if wide:
            told = [
                tool,
                space.describe(effect) if step else "",
                space.describe(position.state),
                verdict.risk,
            ]
            known = [_percent(verdict), _bar(verdict)]
        else:
            told = [_cut(tool, LONGEST_TOOL), _cut(_raised(space.decode(effect), space), LONGEST_EFFECT)]
            known = [_percent(verdict)]
        proposal = "" if pending is None else _percent(pending) + (" !" if pending.alarm else "  ")
        rows.append(
            [
                *(Text(shown(cell), style=over) for cell in (str(step), *told, *known)),
                Text(proposal, style="red" if pending is not None and pending.alarm else over),
                _mark(replay, step),
            ]
        )
    within = f"within {monitor.policy.horizon}"
    columns = ["call", "tool", "effect", "state", "risk (rules)", within, "", "next call", ""]
    narrow = ["call", "tool", "effect", within, "next call", ""]
    origin = ", ".join(filter(None, (run.source, run.category, run.model)))
    title = f"\n{run.id}  ({origin})"
    return table(title, columns if wide else narrow, rows, left=5 if wide else 3)


def _raised(levels: Any, space: Any) -> str:
    """Return the levels of an effect that are above the lowest of their dimension."""
    lowest = {dimension.name: dimension.levels[0] for dimension in space.dimensions}
    return " ".join(level for name, level in levels.items() if level != lowest[name])


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def outcome(replay: Replay) -> str:
    """Say in a sentence how the monitor did on a run."""
    after = None if replay.alarm is None else f"alarm after call {replay.alarm}"
    proposal = (
        None if replay.proposal_alarm is None else f"alarm when call {replay.proposal_alarm} was proposed"
    )
    alarms = ", ".join(filter(None, (after, proposal))) or "no alarm"
    if replay.left_out:
        return f"whether this is a violation is not known ({replay.left_out}); {alarms}"
    if replay.onset is None:
        return f"no violation; {'false ' if alarms != 'no alarm' else ''}{alarms}"
    at_proposal = (
        "the violating call alarmed when it was proposed"
        if replay.stopped_at_proposal
        else "the violating call raised no alarm when it was proposed"
    )
    if replay.alarm is None:
        return f"violation at call {replay.onset}, not foreseen; {at_proposal}"
    steps = "step" if replay.lead_time == 1 else "steps"
    return f"violation at call {replay.onset}, alarm {replay.lead_time} {steps} before it; {at_proposal}"


def foreseen(replay: Replay, monitor: LookupMonitor) -> str:
    """Say how the run was expected to go on from its last moment with nothing violated."""
    calls = replay.before_onset - 1
    position = replay.positions[calls]
    text = f"expected after {calls} {'call' if calls == 1 else 'calls'}: {monitor.outlook(position)}"
    if position.belief is not None:
        likeliest = [
            f"{name or 'none of the categories'} ({share:.2f})"
            for name, share in monitor.categories(position)[:3]
            if share >= WORTH_A_WORD
        ]
        text += f"; taken for {', '.join(likeliest)}"
    return text


def _outlook(outlook: Outlook) -> dict[str, Any]:
    return {
        "violates": outlook.violates,
        "low": outlook.low,
        "high": outlook.high,
        "completes": outlook.completes,
        "steps_to_violation": outlook.steps,
        "kinds": dict(outlook.kinds),
    }


def _mark(replay: Replay, step: int) -> Text:
    if step == replay.onset:
        return Text("VIOLATION", style="bold")
    if replay.onset is not None and step > replay.onset:
        return Text("")
    if step == replay.alarm:
        return Text("ALARM", style="bold red")
    return Text("alarm" if replay.current[step].alarm else "", style="red")


def _percent(verdict: Verdict) -> str:
    return f"{100 * verdict.probability:.0f} %" if not isnan(verdict.probability) else "unseen"


def _bar(verdict: Verdict) -> str:
    filled = 0 if isnan(verdict.probability) else round(BAR * verdict.probability)
    return "█" * filled + "·" * (BAR - filled)
