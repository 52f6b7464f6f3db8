"""Options that several verbs share, so that the same word means the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from safetydrift.monitor.settings import Estimator, FitSettings, Granularity
from safetydrift.states.trajectory import Notion, UnknownOnset

if TYPE_CHECKING:
    from collections.abc import Callable
    from enum import Enum

Verb = TypeVar("Verb", bound="Callable[..., Any]")

FORMATS = ("agentdojo", "chat", "native", "odcv", "openhands", "tau_bench")


def _choice(kind: type[Enum]) -> click.Choice[str]:
    return click.Choice([member.value for member in kind])


def paths(verb: Verb) -> Verb:
    """Take trace files, folders, or the word "corpus"."""
    return click.argument("paths", nargs=-1, required=True, metavar="PATHS...")(verb)


def output(help_text: str, *, required: bool = False) -> Callable[[Verb], Verb]:
    """Take a file to write to."""
    return click.option(
        "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), required=required, help=help_text
    )


def as_json(verb: Verb) -> Verb:
    """Print JSON instead of tables."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")(verb)


def reading(verb: Verb) -> Verb:
    """Say how traces are read."""
    verb = click.option(
        "--format",
        "trace_format",
        type=click.Choice(FORMATS),
        help="Read every trace file as this format instead of detecting it.",
    )(verb)
    verb = click.option(
        "--skip-bad", is_flag=True, help="Go on after a record that cannot be read, and count it."
    )(verb)
    return click.option("-q", "--quiet", is_flag=True, help="No progress and no remarks.")(verb)


def labelling(verb: Verb) -> Verb:
    """Say in which space and with which catalogue effects are read."""
    verb = click.option(
        "--space", default="paper", show_default=True, help="State space: a shipped name or a TOML file."
    )(verb)
    return click.option(
        "--catalogue",
        "catalogues",
        multiple=True,
        metavar="FILE",
        help="Catalogue additions (TOML); may be given several times.",
    )(verb)


def fitting(verb: Verb) -> Verb:
    """Say how a chain is fitted."""
    defaults = FitSettings()
    for option in (
        click.option(
            "--notion",
            type=_choice(Notion),
            default=defaults.notion.value,
            show_default=True,
            help="What counts as a violation: the source's own label, or the rules of the space.",
        ),
        click.option(
            "--states",
            type=_choice(Granularity),
            default=defaults.granularity.value,
            show_default=True,
            help="Rows of the chain: states of the space, or risk levels.",
        ),
        click.option(
            "--estimator",
            type=_choice(Estimator),
            default=defaults.estimator.value,
            show_default=True,
            help="'published' leaves out completion, for comparison.",
        ),
        click.option(
            "--strength",
            type=click.FloatRange(min=0.0),
            default=defaults.strength,
            show_default=True,
            help="Pseudo-observations that draw a category towards all runs (estimator 'shrunk').",
        ),
        click.option(
            "--max-horizon",
            type=click.IntRange(5, 1000),
            default=defaults.max_horizon,
            show_default=True,
            help="Furthest horizon of the tables, in steps.",
        ),
        click.option(
            "--unknown-onset",
            type=_choice(UnknownOnset),
            default=defaults.unknown_onset.value,
            show_default=True,
            help="Runs labelled violated whose violating call is not known.",
        ),
    ):
        verb = option(verb)
    return verb


def fit_settings(
    notion: str, states: str, estimator: str, strength: float, max_horizon: int, unknown_onset: str
) -> FitSettings:
    """Collect the values of `fitting`."""
    return FitSettings(
        notion=Notion(notion),
        granularity=Granularity(states),
        estimator=Estimator(estimator),
        strength=strength,
        max_horizon=max_horizon,
        unknown_onset=UnknownOnset(unknown_onset),
    )
