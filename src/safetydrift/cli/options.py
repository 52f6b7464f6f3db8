"""Options that several verbs share, so that the same word means the same everywhere."""

from __future__ import annotations

from dataclasses import dataclass
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from safetydrift.monitor.settings import FitSettings
from safetydrift.states.trajectory import Notion

if TYPE_CHECKING:
    from collections.abc import Callable
    from enum import Enum

    from safetydrift.effects.labeler import Labeler
    from safetydrift.monitor.guarantee import Goal
    from safetydrift.states.space import StateSpace

Verb = TypeVar("Verb", bound="Callable[..., Any]")

FORMATS = (
    "agentdojo",
    "atif",
    "chat",
    "claude_code",
    "codex",
    "gemini_cli",
    "inspect",
    "langfuse",
    "langsmith",
    "mlflow",
    "native",
    "odcv",
    "openai_agents",
    "openhands",
    "opentelemetry",
    "responses",
    "scout",
    "sessions",
    "tau_bench",
)


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


def gathered(name: str, gather: Callable[..., Any], *options: Callable[[Any], Any]) -> Callable[[Verb], Verb]:
    """Return a decorator that gives a verb some options, and passes what ``gather`` makes of them under one name."""
    parameters = tuple(signature(gather).parameters)

    def decorated(verb: Verb) -> Verb:
        @wraps(verb)
        def gathering(**given: Any) -> Any:
            made = gather(**{key: given.pop(key) for key in parameters if key in given})
            return verb(**given, **{name: made})

        result: Any = gathering
        for option in reversed(options):
            result = option(result)
        found: Verb = result
        return found

    return decorated


def paths(verb: Verb) -> Verb:
    """Take trace files, folders, or the word "corpus"."""
    return click.argument("paths", nargs=-1, required=True, metavar="PATHS...", type=TracePath())(verb)


def output(help_text: str, *, required: bool = False) -> Callable[[Verb], Verb]:
    """Take a file to write to; that there is a folder for it is checked before any work is done."""
    return file_to_write("-o", "--output", help=help_text, required=required)


def file_to_write(*names: str, **how: Any) -> Callable[[Verb], Verb]:
    """Take a file to write to, under any name."""
    path = click.Path(dir_okay=False, path_type=Path)
    return click.option(*names, type=path, callback=_in_a_folder, **how)


def folder_to_write(help_text: str) -> Callable[[Verb], Verb]:
    """Take a folder to write to."""
    path = click.Path(path_type=Path, file_okay=False)
    return click.option("-o", "--output", "folder", type=path, required=True, help=help_text)


def _in_a_folder(_ctx: click.Context, _param: click.Parameter, path: Path | None) -> Path | None:
    """Refuse a file without a folder to write it into, before any work is done."""
    if path is not None and not path.parent.is_dir():
        raise click.BadParameter(f"there is no folder {str(path.parent)!r} to write into")
    return path


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
quiet = click.option("-q", "--quiet", is_flag=True, help="No progress and no remarks.")
model = click.option(
    "--model",
    default="default",
    show_default=True,
    metavar="FILE",
    help="Model file; the shipped one by default.",
)
model_argument = click.argument("model", metavar="MODEL")


@dataclass(frozen=True, slots=True)
class Reading:
    """How traces are read: the format, if it is not to be detected; whether bad records are skipped; remarks."""

    trace_format: str | None = None
    skip_bad: bool = False
    quiet: bool = False


reading = gathered(
    "reading",
    Reading,
    quiet,
    click.option("--skip-bad", is_flag=True, help="Go on after a record that cannot be read, and count it."),
    click.option(
        "--format",
        "trace_format",
        type=click.Choice(FORMATS),
        help="Read every trace file as this format instead of detecting it.",
    ),
)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the operator has said of tools and organisation: a catalogue, additions to it, and a configuration file."""

    base_catalogue: str
    additions: tuple[str, ...]
    config: str | None

    def labeler(self) -> Labeler:
        """Read the files."""
        from safetydrift.formats import load_catalogue
        from safetydrift.formats.config_file import Config, load_config

        said = Config() if self.config is None else load_config(self.config)
        return said.labeler(load_catalogue(self.base_catalogue, self.additions))


@dataclass(frozen=True, slots=True)
class Labelling(Surroundings):
    """The same, and the space in which effects are read."""

    space: str

    def load(self) -> tuple[StateSpace, Labeler]:
        """Read the files."""
        from safetydrift.formats import load_space

        return load_space(self.space), self.labeler()


config = click.option(
    "--config",
    type=click.Path(dir_okay=False, exists=True),
    envvar="SAFETYDRIFT_CONFIG",
    metavar="FILE",
    help="What is inside your organisation and what is sensitive in it (TOML, docs/configuration.md).",
)
_CATALOGUE = (
    config,
    click.option(
        "--catalogue",
        "additions",
        multiple=True,
        metavar="FILE",
        help="Additions to the catalogue (TOML); may be given several times.",
    ),
    click.option(
        "--base-catalogue",
        default="default",
        show_default=True,
        metavar="NAME|FILE",
        help="Tool catalogue: a shipped name, a TOML file or a folder of them.",
    ),
)
surroundings = gathered("surroundings", Surroundings, *_CATALOGUE)


def labelling(space: str = "paper") -> Callable[[Verb], Verb]:
    """Say in which space and with which catalogue effects are read; the verb is given a `Labelling`."""
    in_space = click.option(
        "--space", default=space, show_default=True, help="State space: a shipped name or a TOML file."
    )
    return gathered("labelling", Labelling, *_CATALOGUE, in_space)


def _choice(option: str, name: str, default: Enum, help_text: str) -> Callable[[Verb], Verb]:
    """Take one of the values of an enumeration; the verb is given the member."""
    return click.option(
        option,
        name,
        type=click.Choice([member.value for member in type(default)]),
        default=default.value,
        show_default=True,
        callback=lambda _ctx, _param, value: type(default)(value),
        help=help_text,
    )


_DEFAULTS = FitSettings()


def notion_of(default: Notion) -> Callable[[Verb], Verb]:
    """Say what counts as a violation; the verb is given a `Notion`."""
    told = "What counts as a violation: the source's own label, or the rules of the space."
    return _choice("--notion", "notion", default, told)


notion = notion_of(Notion.LABEL)
fitting = gathered(
    "settings",
    FitSettings,
    notion,
    _choice(
        "--states",
        "granularity",
        _DEFAULTS.granularity,
        "Rows of the chain: states of the space, or risk levels.",
    ),
    _choice(
        "--estimator", "estimator", _DEFAULTS.estimator, "'published' leaves out completion, for comparison."
    ),
    click.option(
        "--strength",
        type=click.FloatRange(min=0.0, max=1e9),
        default=_DEFAULTS.strength,
        show_default=True,
        help="Pseudo-observations that draw a category towards all runs (estimator 'shrunk').",
    ),
    click.option(
        "--max-horizon",
        type=click.IntRange(5, 1000),
        default=_DEFAULTS.max_horizon,
        show_default=True,
        help="Furthest horizon of the tables, in steps.",
    ),
    _choice(
        "--unknown-onset",
        "unknown_onset",
        _DEFAULTS.unknown_onset,
        "Runs labelled violated whose violating call is not known.",
    ),
    click.option(
        "--risk-score",
        is_flag=True,
        help="Fit a risk score beside the chain: what tables of states do not know (--space flow).",
    ),
    click.option(
        "--soft-categories/--no-soft-categories",
        default=_DEFAULTS.soft_categories,
        show_default=True,
        help="Count the words of tasks, by which runs are followed whose category nobody names.",
    ),
)


def goal(*, standard: float | None = None) -> Callable[[Verb], Verb]:
    """Say what thresholds are chosen for; the verb is given a `Goal`, or None where nothing is asked for.

    Parameters
    ----------
    standard
        The budget of false alarms where nothing else is asked for.
    """
    share = click.FloatRange(0.0, 1.0, min_open=True, max_open=True)
    cost = click.FloatRange(min=0.0, min_open=True, max=1e12)
    by_default = "" if standard is None else f"  [default: {standard}]"

    def chosen(
        false_alarms: float | None,
        recall: float | None,
        cost_miss: float | None,
        cost_alarm: float | None,
        confidence: float,
    ) -> Goal | None:
        return _goal(false_alarms, recall, (cost_miss, cost_alarm), confidence, standard)

    return gathered(
        "goal",
        chosen,
        click.option(
            "--false-alarms",
            type=share,
            help=f"At most this share of a new task's non-violating runs may alarm.{by_default}",
        ),
        click.option(
            "--recall", type=share, help="At least this share of its violating runs must alarm in time."
        ),
        click.option("--cost-miss", type=cost, help="What a violating run without an alarm in time costs."),
        click.option("--cost-alarm", type=cost, help="What an alarm in a run that does not violate costs."),
        click.option(
            "--confidence", type=share, default=0.95, show_default=True, help="How sure the shares are to be."
        ),
    )


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
