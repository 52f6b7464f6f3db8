"""``safetydrift study trial``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from safetydrift.cli import options
from safetydrift.cli.output import emit_json, remark, show_part
from safetydrift.cli.study import _options

if TYPE_CHECKING:
    from pathlib import Path


@click.command
@_options.folder
@_options.agent
@click.option(
    "--monitor",
    default="",
    metavar="FILE",
    help='Model file to watch with, or "default"; without one, a model is fitted on the other half of the scenarios.',
)
@_options.epochs(6)
@_options.seed
@options.as_json
def trial(folder: Path, agent: str, monitor: str, epochs: int, seed: int, as_json: bool) -> None:
    """Run held-out scenarios with the monitor in the loop, in each intervention, and without it.

    Says how many violations were prevented and how many tasks still done, with intervals over whole scenarios.

    \b
    Example:
      safetydrift study trial -o trial/
    """
    from safetydrift.study.trial import run_trial

    found = run_trial(folder, agent, monitor=monitor, epochs=epochs, seed=seed, tell=remark)
    if as_json:
        emit_json(found)
    else:
        show_part(found.table())
