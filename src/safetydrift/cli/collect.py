"""``safetydrift collect``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from safetydrift.cli import options
from safetydrift.cli.output import console, emit_json, notes, percent

if TYPE_CHECKING:
    from safetydrift.study.scenarios.approval import Way
    from safetydrift.study.scenarios.collection import Display


@click.command
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Folder for the logs; what it holds already is not run again.",
)
@click.option(
    "--model",
    default="simulated/mixed",
    show_default=True,
    metavar="NAME",
    help="As Inspect names it (provider/model), or simulated/ and careful, hurried, over-helpful, injected or mixed.",
)
@click.option(
    "--epochs", type=click.IntRange(1, 1000), default=8, show_default=True, help="Runs per scenario."
)
@click.option("--category", default="", metavar="NAME", help="Only scenarios of a category.")
@click.option(
    "--scenario", "names", multiple=True, metavar="ID|FILE", help="Only this scenario; may be repeated."
)
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="What chance is drawn from."
)
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
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@options.as_json
def collect(
    folder: Path,
    model: str,
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
    traces. Needs the extra [collect].

    \b
    Example:
      safetydrift collect -o logs/ --model simulated/mixed --epochs 8
      safetydrift fit logs/ -o model.json
    """
    from safetydrift.formats.reading import read_traces
    from safetydrift.study.scenarios.collection import collect as run

    display: Display = "none" if quiet or as_json or not notes.is_terminal else "rich"
    done = run(
        folder,
        model,
        category=category,
        names=names,
        epochs=epochs,
        seed=seed,
        display=display,
        max_samples=max_samples,
        monitor=monitor,
        intervention=intervention,
    )
    traces = list(read_traces(done.logs))
    violated = sum(trace.label.violated is True for trace in traces)
    steps = sum(len(trace.steps) for trace in traces)
    if as_json:
        emit_json(
            {
                "complete": done.complete,
                "runs": len(traces),
                "violated": violated,
                "steps": steps,
                "model": model,
                "simulated": model.startswith("simulated/"),
                "logs": [str(log) for log in done.logs],
            }
        )
    else:
        kind = "simulated runs" if model.startswith("simulated/") else "runs"
        share = percent(violated / len(traces)) if traces else "-"
        console.print(f"{len(traces)} {kind} in {folder}, {steps} steps; {violated} violated ({share})")
    if not done.complete:
        notes.print("not every run was made; the same command goes on")
        raise SystemExit(1)
