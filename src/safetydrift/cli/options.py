"""Options that several verbs share, so that the same word means the same everywhere."""

from __future__ import annotations

from dataclasses import dataclass
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from safetydrift.monitor.settings import Estimator, FitSettings, Granularity
from safetydrift.states.trajectory import Notion, UnknownOnset

if TYPE_CHECKING:
    from collections.abc import Callable
    from enum import Enum

    from safetydrift.effects.labeler import Labeler
    from safetydrift.monitor.guarantee import Goal
    from safetydrift.states.space import StateSpace

Verb = TypeVar("Verb", bound="Callable[..., Any]")

FORMATS = ("agentdojo", "chat", "inspect", "native", "odcv", "openhands", "sessions", "tau_bench")


def _choice(kind: type[Enum]) -> click.Choice[str]:
    return click.Choice([member.value for member in kind])


class TracePath(click.ParamType):  # type: ignore[type-arg]  # generic only in later versions of click
    """A file or folder of traces, or a word that stands for one."""

    name = "path"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Offer files, and the words this verb knows."""
        words = ("corpus", "published") if ctx.command.name == "analyze" else ("corpus",)
        known = [CompletionItem(word) for word in words if word.startswith(incomplete)]
        return [*known, CompletionItem(incomplete, type="file")]


class Probability(click.FloatRange):
    """A number from 0 to 1."""

    name = "probability"

    def __init__(self) -> None:
        super().__init__(0.0, 1.0)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Refuse what compares with nothing."""
        number: float = super().convert(value, param, ctx)
        if number != number:  # noqa: PLR0124 - nan is not equal to itself
            self.fail(f"{value} is not a probability", param, ctx)
        return number


def paths(verb: Verb) -> Verb:
    """Take trace files, folders, or the word "corpus"."""
    return click.argument("paths", nargs=-1, required=True, metavar="PATHS...", type=TracePath())(verb)


def output(help_text: str, *, required: bool = False) -> Callable[[Verb], Verb]:
    """Take a file to write to; that there is a folder for it is checked before any work is done."""
    return click.option(
        "-o",
        "--output",
        type=click.Path(dir_okay=False, path_type=Path),
        required=required,
        callback=in_a_folder,
        help=help_text,
    )


def in_a_folder(_ctx: click.Context, _param: click.Parameter, path: Path | None) -> Path | None:
    """Refuse a file without a folder to write it into, before any work is done."""
    if path is not None and not path.parent.is_dir():
        raise click.BadParameter(f"there is no folder {str(path.parent)!r} to write into")
    return path


def as_json(verb: Verb) -> Verb:
    """Print JSON instead of tables."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")(verb)


@dataclass(frozen=True, slots=True)
class Reading:
    """How traces are read: the format, if it is not to be detected; whether bad records are skipped; remarks."""

    trace_format: str | None
    skip_bad: bool
    quiet: bool


def reading(verb: Verb) -> Verb:
    """Say how traces are read; the verb is given a `Reading`."""
    verb = _gathered(verb, "reading", Reading)
    for option in (
        click.option(
            "--format",
            "trace_format",
            type=click.Choice(FORMATS),
            help="Read every trace file as this format instead of detecting it.",
        ),
        click.option(
            "--skip-bad", is_flag=True, help="Go on after a record that cannot be read, and count it."
        ),
        click.option("-q", "--quiet", is_flag=True, help="No progress and no remarks."),
    ):
        verb = option(verb)
    return verb


@dataclass(frozen=True, slots=True)
class Labelling:
    """In which space, and with which catalogue, effects are read."""

    space: str
    base_catalogue: str
    additions: tuple[str, ...]
    config: str | None
    judge: str | None

    def load(self) -> tuple[StateSpace, Labeler]:
        """Read the files."""
        from safetydrift.formats import load_space

        return load_space(self.space), surroundings(
            self.base_catalogue, self.additions, self.config, self.judge
        )


def surroundings(
    base_catalogue: str, additions: tuple[str, ...], config: str | None, judge: str | None = None
) -> Labeler:
    """Return a labeler with what the operator has said about his tools and his organisation.

    Parameters
    ----------
    judge
        A file of recorded answers for calls that no rule decides; none are asked for.
    """
    from safetydrift.formats import load_catalogue
    from safetydrift.formats.config_file import Config, load_config

    said = Config() if config is None else load_config(config)
    labeler = said.labeler(load_catalogue(base_catalogue, additions))
    if judge is None:
        return labeler
    from safetydrift.judge import RecordedJudge, judged

    return judged(labeler, RecordedJudge(judge, scales=labeler.catalogue.scales))


def config(verb: Verb) -> Verb:
    """Take the operator's configuration file."""
    return click.option(
        "--config",
        type=click.Path(dir_okay=False, exists=True),
        envvar="SAFETYDRIFT_CONFIG",
        metavar="FILE",
        help="What is inside your organisation and what is sensitive in it (TOML, docs/configuration.md).",
    )(verb)


def catalogue(verb: Verb) -> Verb:
    """Say with which catalogue effects are read."""
    for option in (_BASE_CATALOGUE, _ADDITIONS):
        verb = option(verb)
    return verb


_BASE_CATALOGUE = click.option(
    "--base-catalogue",
    default="default",
    show_default=True,
    metavar="NAME|FILE",
    help="Tool catalogue: a shipped name, a TOML file or a folder of them.",
)
_ADDITIONS = click.option(
    "--catalogue",
    "additions",
    multiple=True,
    metavar="FILE",
    help="Additions to the catalogue (TOML); may be given several times.",
)


def labelling(verb: Verb, space: str = "paper") -> Verb:
    """Say in which space and with which catalogue effects are read; the verb is given a `Labelling`."""
    verb = _gathered(verb, "labelling", Labelling)
    for option in (
        click.option(
            "--space", default=space, show_default=True, help="State space: a shipped name or a TOML file."
        ),
        _BASE_CATALOGUE,
        _ADDITIONS,
        config,
        click.option(
            "--judge",
            type=click.Path(dir_okay=False, exists=True),
            metavar="FILE",
            help="Recorded answers of a model about calls that no rule decides (safetydrift judge record).",
        ),
    ):
        verb = option(verb)
    return verb


def fitting(verb: Verb) -> Verb:
    """Say how a chain is fitted; the verb is given `FitSettings`."""
    defaults = FitSettings()
    verb = _gathered(verb, "settings", _settings)
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
            type=click.FloatRange(min=0.0, max=1e9),
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
        click.option(
            "--risk-score",
            is_flag=True,
            help="Fit a risk score beside the chain: what tables of states do not know (--space flow).",
        ),
        click.option(
            "--soft-categories/--no-soft-categories",
            default=defaults.soft_categories,
            show_default=True,
            help="Count the words of tasks, by which runs are followed whose category nobody names.",
        ),
    ):
        verb = option(verb)
    return verb


def _settings(
    notion: str,
    states: str,
    estimator: str,
    strength: float,
    max_horizon: int,
    unknown_onset: str,
    risk_score: bool,
    soft_categories: bool,
) -> FitSettings:
    return FitSettings(
        notion=Notion(notion),
        granularity=Granularity(states),
        estimator=Estimator(estimator),
        strength=strength,
        max_horizon=max_horizon,
        unknown_onset=UnknownOnset(unknown_onset),
        risk_score=risk_score,
        soft_categories=soft_categories,
    )


def goal(verb: Verb, *, by_default: bool = False) -> Verb:
    """Say what thresholds are chosen for; the verb is given a `Goal`, or None where nothing is asked for."""
    standard = 0.05 if by_default else None

    def goal(
        false_alarms: float | None,
        recall: float | None,
        cost_miss: float | None,
        cost_alarm: float | None,
        confidence: float,
    ) -> Goal | None:
        return _goal(false_alarms, recall, (cost_miss, cost_alarm), confidence, standard)

    verb = _gathered(verb, "goal", goal)
    share = click.FloatRange(0.0, 1.0, min_open=True, max_open=True)
    cost = click.FloatRange(min=0.0, min_open=True, max=1e12)
    for option in (
        click.option(
            "--false-alarms",
            type=share,
            help="At most this share of a new task's non-violating runs may alarm."
            + ("  [default: 0.05]" if by_default else ""),
        ),
        click.option(
            "--recall", type=share, help="At least this share of its violating runs must alarm in time."
        ),
        click.option("--cost-miss", type=cost, help="What a violating run without an alarm in time costs."),
        click.option("--cost-alarm", type=cost, help="What an alarm in a run that does not violate costs."),
        click.option(
            "--confidence", type=share, default=0.95, show_default=True, help="How sure the shares are to be."
        ),
    ):
        verb = option(verb)
    return verb


def standard_goal(verb: Verb) -> Verb:
    """Say what thresholds are chosen for, a budget of false alarms by default; the verb is given a `Goal`."""
    return goal(verb, by_default=True)


def _goal(
    false_alarms: float | None,
    recall: float | None,
    costs: tuple[float | None, float | None],
    confidence: float,
    standard: float | None,
) -> Goal | None:
    from safetydrift.monitor.guarantee import COSTS, FALSE_ALARMS, RECALL, Goal

    miss, false_alarm = costs
    if (miss is None) != (false_alarm is None):
        raise click.UsageError("--cost-miss and --cost-alarm belong together: only their ratio counts")
    if (false_alarms is not None) + (recall is not None) + (miss is not None) > 1:
        raise click.UsageError("choose one of --false-alarms, --recall and costs")
    if miss is not None and false_alarm is not None:
        return Goal(COSTS, miss=miss, false_alarm=false_alarm)
    if recall is not None:
        return Goal(RECALL, limit=recall, confidence=confidence)
    limit = standard if false_alarms is None else false_alarms
    return None if limit is None else Goal(FALSE_ALARMS, limit=limit, confidence=confidence)


def flow_labelling(verb: Verb) -> Verb:
    """As `labelling`, in the finest shipped space unless told otherwise."""
    return labelling(verb, "flow")


def _gathered(verb: Verb, name: str, gather: Callable[..., Any]) -> Verb:
    """Return a verb that takes the parameters of ``gather`` and passes what it makes of them under one name."""
    parameters = tuple(signature(gather).parameters)

    @wraps(verb)
    def gathering(**given: Any) -> Any:
        made = gather(**{key: given.pop(key) for key in parameters})
        return verb(**given, **{name: made})

    return gathering  # type: ignore[return-value]
