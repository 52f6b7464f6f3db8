"""``safetydrift study collect``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from safetydrift.cli import options
from safetydrift.cli.output import emit_json, notes, percent, remark, say
from safetydrift.cli.study import _options

if TYPE_CHECKING:
    from pathlib import Path

    from safetydrift.study.scenarios.approval import Way
    from safetydrift.study.scenarios.collection import Display


@click.command
@_options.folder
@_options.agent
@_options.epochs(8)
@click.option("--category", default="", metavar="NAME", help="Only scenarios of a category.")
@click.option(
    "--scenario", "names", multiple=True, metavar="ID|FILE", help="Only this scenario; may be repeated."
)
@_options.seed
@click.option(
    "--max-samples", type=click.IntRange(1, 256), default=8, show_default=True, help="Runs at a time."
)
@click.option(
    "--monitor", default="", metavar="MODEL", help='Watch the agent with a model file, or "default".'
)
@click.option(
    "--intervention",
    type=click.Choice(["warn", "ask", "suggest", "block"]),
    default="block",
    show_default=True,
    help="What an alarm does; who is asked is a simulated person.",
)
@options.quiet
@options.as_json
def collect(
    folder: Path,
    agent: str,
    epochs: int,
    category: str,
    names: tuple[str, ...],
    seed: int,
    max_samples: int,
    monitor: str,
    intervention: Way,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run scenarios with an agent, real or simulated, and keep the logs.

    The same command with the same folder goes on where it was interrupted. The logs are read by every verb that takes
    traces. The exit code is 1 if runs are missing, 130 if it was interrupted.

    \b
    Example:
      safetydrift study collect -o logs/ --model simulated/mixed --epochs 8
      safetydrift fit logs/ -o model.json
    """
    from safetydrift.formats.reading import read_traces
    from safetydrift.study.scenarios.collection import SIMULATED
    from safetydrift.study.scenarios.collection import collect as run

    display: Display = "none" if quiet or as_json or not notes.is_terminal else "rich"
    done = run(
        folder,
        agent,
        category=category,
        names=names,
        epochs=epochs,
        seed=seed,
        display=display,
        max_samples=max_samples,
        monitor=monitor,
        intervention=intervention,
    )
    traces = list(read_traces(done.logs)) if done.logs else []
    violated = sum(trace.label.violated is True for trace in traces)
    steps = sum(len(trace.steps) for trace in traces)
    if as_json:
        emit_json(
            {
                "complete": done.complete,
                "runs": len(traces),
                "violated": violated,
                "steps": steps,
                "model": agent,
                "simulated": agent.startswith(SIMULATED),
                "logs": [str(log) for log in done.logs],
            }
        )
    else:
        kind = "simulated runs" if agent.startswith(SIMULATED) else "runs"
        share = percent(violated / len(traces)) if traces else "-"
        say(f"{len(traces)} {kind} in {folder}, {steps} steps; {violated} violated ({share})")
    if not done.complete:
        remark("not every run was made; the same command goes on")
    if done.interrupted:
        raise click.Abort
    if not done.complete:
        raise SystemExit(1)
