"""Options that verbs of the study share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from safetydrift.cli import options

if TYPE_CHECKING:
    from collections.abc import Callable

    from safetydrift.cli.options import Verb

folder = options.folder_to_write(
    "Folder for the logs and what is made of them; what it holds is not made again."
)
agent = click.option(
    "--model",
    "agent",
    default="simulated/mixed",
    show_default=True,
    metavar="NAME",
    help="As Inspect names it (provider/model), or simulated/ and careful, hurried, over-helpful, injected or mixed.",
)
seed = click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Of everything drawn at random."
)


def epochs(default: int) -> Callable[[Verb], Verb]:
    """Take the number of runs per scenario."""
    return click.option(
        "--epochs",
        type=click.IntRange(1, 1000),
        default=default,
        show_default=True,
        help="Runs per scenario (and arm).",
    )
