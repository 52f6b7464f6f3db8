"""``safetydrift trial``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from safetydrift.cli import options
from safetydrift.cli.output import console, emit_json, notes, table

if TYPE_CHECKING:
    from safetydrift.study.trial import Trial


@click.command
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Folder for the logs of every arm and the model; what it holds already is not run again.",
)
@click.option(
    "--model",
    "agent",
    default="simulated/mixed",
    show_default=True,
    metavar="NAME",
    help="The agent, as for collect.",
)
@click.option(
    "--monitor",
    default="",
    metavar="FILE",
    help='Model file to watch with, or "default"; without one, a model is fitted on the other half of the scenarios.',
)
@click.option(
    "--epochs", type=click.IntRange(1, 200), default=6, show_default=True, help="Runs per scenario and arm."
)
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="What chance is drawn from."
)
@options.as_json
def trial(folder: Path, agent: str, monitor: str, epochs: int, seed: int, as_json: bool) -> None:
    """Run held-out scenarios with the monitor in the loop, in each intervention, and without it.

    Says how many violations were prevented and how many tasks still done, with intervals over whole scenarios. Needs
    the extras [collect] and [evaluate].

    \b
    Example:
      safetydrift trial -o trial/
    """
    from safetydrift.study.trial import run_trial

    found = run_trial(folder, agent, monitor=monitor, epochs=epochs, seed=seed, tell=notes.print)
    if as_json:
        emit_json(found.as_dict())
    else:
        show(found)


COLUMNS = ("prevented", "done", "kept", "false_interventions", "warning", "violated")


def show(found: Trial) -> None:
    """Show the figures of a trial, an arm per row."""
    rows = [(arm, *(_cell(getattr(one, name)) for name in COLUMNS)) for arm, one in found.arms.items()]
    first = next(iter(found.arms.values()))
    kind = "simulated runs" if found.simulated else "runs"
    console.print(
        table(
            f"{first.runs} {kind} of {len(found.held_out)} held-out scenarios per arm, by {found.agent}",
            ("intervention", *(name.replace("_", " ") for name in COLUMNS)),
            rows,
        )
    )
    console.print(
        "\nprevented: of the runs that violate unwatched, those that do not when watched; kept: of the runs that do "
        "the task without violation unwatched, those that still do; warning: steps before the violating call.\n"
        "Brackets are 95 % intervals over whole scenarios."
    )


def _cell(value: Any) -> str:
    return str(value)
