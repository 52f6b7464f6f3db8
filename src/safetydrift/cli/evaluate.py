"""``safetydrift evaluate``."""

from __future__ import annotations

import gc
import re
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from safetydrift.cli import options
from safetydrift.cli.inputs import Inputs
from safetydrift.cli.output import console, emit_json, notes, shown, table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from safetydrift.evaluation.cases import CaseSet
    from safetydrift.evaluation.comparison import SplitComparison
    from safetydrift.evaluation.evidence import Evidence
    from safetydrift.evaluation.evidence_words import Row
    from safetydrift.evaluation.predictors import Circumstances
    from safetydrift.evaluation.scores import Fixed, Predictor

SPLITS = ("tasks", "models", "tasks-and-models", "suites", "sources", "random")
ANALYSES = (
    "transitions",
    "order",
    "thresholds",
    "ablation",
    "learning-curve",
    "cross-model",
    "misclassification",
)
SHIPPED = "shipped-model"
RESAMPLES = 200
SEED = 260327148
MOST_PROCESSES = 4
FEW_TASKS = 30
SLOW = frozenset({"logistic-hazard", "boosting", "foresight"})
OURS = ("monitor", "monitor-soft-categories", "monitor-without-categories", "monitor-published-space")


class _Names(click.ParamType):  # type: ignore[type-arg]  # generic only in later versions of click
    """Names separated by commas, or a word for several."""

    name = "names"

    def __init__(self, known: Sequence[str]) -> None:
        self.known = tuple(known)

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Return the names, each of them known."""
        if isinstance(value, tuple):
            return value
        if value in {"all", "none"}:
            return self.known if value == "all" else ()
        names = tuple(dict.fromkeys(name.strip() for name in str(value).split(",") if name.strip()))
        unknown = [name for name in names if name not in self.known]
        if unknown:
            self.fail(
                f"there is no {unknown[0]!r}; there are: {', '.join(self.known)}, all, none", param, ctx
            )
        return names


@dataclass(frozen=True, slots=True)
class _Compared:
    """What is compared: predictors by name, model files, prediction files, recorded judgements."""

    predictor: tuple[str, ...]
    model: tuple[str, ...]
    predictions: tuple[str, ...]
    judgements: tuple[str, ...]


@click.command
@options.paths
@options.output("HTML report to write.")
@click.option(
    "--model", multiple=True, metavar="FILE", help='Model file to compare; "default" is the shipped one.'
)
@click.option(
    "--predictions",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Prediction file to compare (docs/prediction-files.md).",
)
@click.option(
    "--judgements",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Risks that a language model was recorded to see in every step (safetydrift judge steps).",
)
@click.option(
    "--predictor",
    multiple=True,
    metavar="NAME",
    help='Predictor to fit and compare; "baselines", or "all" with the slow learned ones. By default our monitor and '
    "the baselines.",
)
@click.option(
    "--split",
    multiple=True,
    type=click.Choice(SPLITS),
    default=("tasks",),
    show_default=True,
    help="What is held out; the first is the one to read first.",
)
@click.option(
    "--folds", type=click.IntRange(2, 50), default=5, show_default=True, help="Parts a division by names has."
)
@click.option(
    "--notion",
    type=click.Choice(("label", "rules")),
    default="label",
    show_default=True,
    help="What counts as a violation: the source's own label, or the rules of the space.",
)
@click.option(
    "--analyses",
    type=_Names(ANALYSES),
    default="none",
    show_default=True,
    help=f"The paper's own analyses, by comma: {', '.join(ANALYSES)}, all.",
)
@click.option(
    "--resamples",
    type=click.IntRange(0, 10_000),
    default=RESAMPLES,
    show_default=True,
    help="How often tasks are drawn again for intervals.",
)
@click.option(
    "--seed", type=click.IntRange(0), default=SEED, show_default=True, help="Of everything drawn at random."
)
@click.option(
    "--figures",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the figures, as SVG and PNG.",
)
@click.option(
    "--evidence",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=options.in_a_folder,
    metavar="FILE",
    help="Markdown page to write, its figures in a folder beside it.",
)
@click.option(
    "--jobs", type=click.IntRange(1, 64), help="Processes; by default one per processor, at most 4."
)
@options.flow_labelling
@options.reading
@options.as_json
def evaluate(
    paths: tuple[str, ...],
    output: Path | None,
    model: tuple[str, ...],
    predictions: tuple[str, ...],
    judgements: tuple[str, ...],
    predictor: tuple[str, ...],
    split: tuple[str, ...],
    folds: int,
    notion: str,
    analyses: tuple[str, ...],
    resamples: int,
    seed: int,
    figures: Path | None,
    evidence: Path | None,
    jobs: int | None,
    labelling: options.Labelling,
    reading: options.Reading,
    as_json: bool,
) -> None:
    """Compare monitors, model files and predictions with honest baselines.

    Every predictor is fitted without what it is tried on, and measured on the same runs and the same resamples of
    tasks. A model or prediction file is taken as it is; a model that was fitted on tasks it is tried on is marked.

    \b
    Example:
      safetydrift evaluate corpus
      safetydrift evaluate corpus --predictor all --split tasks --split models --analyses all -o report.html
      safetydrift evaluate traces/ --model model.json --predictions theirs.jsonl --json
    """
    from safetydrift.evaluation.evidence import Plan, gather_evidence
    from safetydrift.evaluation.workers import usable_processors

    compared = _Compared(
        _chosen(predictor), _models(model, predictions + judgements, paths), predictions, judgements
    )
    drawing = output is not None or figures is not None or evidence is not None
    _require_extras(compared.predictor, drawing=drawing)
    given, trajectories, inputs = _read(paths, labelling, reading, notion, output)
    plan = Plan(
        splits=tuple(dict.fromkeys(split)),
        folds=folds,
        analyses=analyses,
        resamples=resamples,
        seed=seed,
        with_curves=drawing,
        processes=jobs or min(usable_processors(), MOST_PROCESSES),
    )
    gc.freeze()  # the runs stay to the end: walking over them again and again would take a third of the time
    with _progress(quiet=reading.quiet) as progress:
        found = gather_evidence(
            trajectories,
            given,
            lambda cases: _predictors(compared, given, cases, quiet=reading.quiet),
            plan,
            provenance=inputs.provenance(),
            progress=progress,
        )
    inputs.summarise()
    if drawing:  # first: whoever reads our output may stop before its end
        _write(found, output, figures, evidence, quiet=reading.quiet)
    if as_json:
        emit_json(found.as_dict())
    else:
        _show(found)


def _read(
    paths: tuple[str, ...],
    labelling: options.Labelling,
    reading: options.Reading,
    notion: str,
    output: Path | None,
) -> tuple[Circumstances, list, Inputs]:  # type: ignore[type-arg]
    """Read the runs, and say in which circumstances they are compared."""
    from safetydrift.errors import SpaceMismatchError
    from safetydrift.evaluation.predictors import Circumstances
    from safetydrift.formats import load_space
    from safetydrift.states.projection import projection
    from safetydrift.states.trajectory import Notion

    space, labeler = labelling.load()
    inputs = Inputs(paths, space, labeler, reading, output)
    published = load_space("paper")
    try:
        projection(space, published)
    except SpaceMismatchError:
        published = space
    given = Circumstances(space, labeler.catalogue, published, Notion(notion))
    return given, list(inputs), inputs


def _require_extras(names: tuple[str, ...], *, drawing: bool) -> None:
    """Find out before minutes of work whether what it takes is installed."""
    from importlib import import_module

    if SLOW & set(names):
        import_module("sklearn")
    if drawing:
        import_module("safetydrift.evaluation.evidence_report")


def _chosen(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the predictors asked for, in the order of the registry."""
    from safetydrift.evaluation.predictors import PREDICTORS

    baselines = [name for name in PREDICTORS if name not in SLOW and name not in OURS]
    if not names:
        return (OURS[0], *baselines)
    asked: set[str] = set()
    for name in names:
        if name == "all":
            asked.update(PREDICTORS)
        elif name == "baselines":
            asked.update(baselines)
        elif name in PREDICTORS:
            asked.add(name)
        else:
            known = ", ".join([*PREDICTORS, "baselines", "all"])
            raise click.BadParameter(f"there is no {name!r}; there are: {known}", param_hint="--predictor")
    return tuple(name for name in PREDICTORS if name in asked)


def _models(models: tuple[str, ...], predictions: tuple[str, ...], paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return the model files to compare: on a user's own runs the shipped one, unless told otherwise."""
    own = "corpus" not in paths and not models and not predictions
    return ("default",) if own else tuple(dict.fromkeys(models))


def _predictors(compared: _Compared, given: Circumstances, cases: CaseSet, *, quiet: bool) -> list[Predictor]:
    """Make all predictors; the category prior is always among them, for it is what the others are held against."""
    from safetydrift.evaluation.comparison import REFERENCE
    from safetydrift.evaluation.predictors import JudgementFile, PredictionFile, predictor

    if len(cases.tasks) < FEW_TASKS and not quiet:
        notes.print(f"[red]{len(cases.tasks)} tasks: too few for any figure to be sure of[/red]")
    names = compared.predictor if REFERENCE in compared.predictor else (*compared.predictor, REFERENCE)
    found: list[Predictor] = [predictor(name, given) for name in names]
    taken = set(names)
    found += [_model(path, given, cases, taken) for path in compared.model]
    files: list[PredictionFile | JudgementFile] = [PredictionFile(path) for path in compared.predictions]
    files += [JudgementFile(path) for path in compared.judgements]
    for file in files:
        file.name = _free(file.name, taken)
        found.append(file.predictor)
    return found


def _model(path: str, given: Circumstances, cases: CaseSet, taken: set[str]) -> Fixed:
    from safetydrift.evaluation.predictors.model_file import model_predictor
    from safetydrift.formats import load_model

    name = SHIPPED if path == "default" else Path(path).name.split(".")[0]
    return model_predictor(_free(name, taken), load_model(path), cases, given.space)


def _free(name: str, taken: set[str]) -> str:
    """Return a name that nothing else has."""
    number, free = 2, name
    while free in taken:
        free, number = f"{name}-{number}", number + 1
    taken.add(free)
    return free


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Callable[[str, int, int], None]]:
    """Show what is being done; the display starts with the first piece, after processes were forked."""
    if quiet or not notes.is_terminal:
        yield lambda _what, _done, _total: None
        return
    columns = (
        SpinnerColumn(),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    progress = Progress(*columns, console=notes, transient=True)
    task = progress.add_task("", total=None)

    def on(what: str, done: int, total: int) -> None:
        progress.start()
        progress.update(task, description=shown(what), completed=done, total=total)

    try:
        yield on
    finally:
        progress.stop()


def _write(
    found: Evidence, output: Path | None, figures: Path | None, page: Path | None, *, quiet: bool
) -> None:
    from safetydrift.evaluation.evidence_figures import drawings, save_figures
    from safetydrift.evaluation.evidence_report import write_evidence_page, write_evidence_report

    drawn = drawings(found)
    written: list[tuple[str, Path]] = []
    if output is not None:
        write_evidence_report(found, output, drawn)
        written.append(("report", output))
    if figures is not None:
        save_figures(drawn, figures)
        written.append(("figures", figures))
    if page is not None:
        write_evidence_page(found, page, drawn=drawn)
        written.append(("page", page))
    if not quiet:
        for what, path in written:
            notes.print(f"{what} written to {shown(str(path))}", markup=False)


# -- on the terminal --------------------------------------------------------------------------------------


def _show(found: Evidence) -> None:
    from safetydrift.evaluation.evidence_words import EXPLAINED, caveats, finding

    console.print(shown(finding(found)), markup=False)
    for split in found.comparison.splits:
        _show_split(found, split)
    console.print(f"\n{EXPLAINED.format(h=found.comparison.horizon)}", markup=False)
    console.print("\n[bold]What this does not show[/bold]")
    for caveat in caveats(found):
        console.print(f"- {shown(caveat)}", markup=False)
    for analysis in found.analyses.values():
        from safetydrift.evaluation.evidence_words import cell_written

        rows = [[cell_written(cell) for cell in row] for row in analysis.rows]
        console.print(table(f"\n{analysis.title}", analysis.columns, rows))
        console.print(shown(analysis.note), markup=False)


def _show_split(found: Evidence, split: SplitComparison) -> None:
    from safetydrift.evaluation.evidence_words import differences, summary

    horizon = found.comparison.horizon
    title = (
        f"\n{split.name}: {split.violated.total:,} runs of {split.tasks:,} tasks, {split.violated.hits:,} violated; "
        f"{horizon} steps ahead"
    )
    console.print(_rows(title, summary(split, horizon)))
    if minus := differences(split, horizon):
        reference = found.comparison.reference
        console.print(_rows(f"\nMinus {reference} (* where the interval excludes zero)", minus, signed=True))
    for note in split.notes:
        console.print(shown(note), markup=False)


def _rows(title: str, rows: list[Row], *, signed: bool = False) -> object:
    from safetydrift.evaluation.evidence_words import written

    cells = [
        [
            f"{row.name} ({row.remark})" if row.remark else row.name,
            *(_short(written(cell, signed=signed)) for cell in row.cells.values()),
        ]
        for row in rows
    ]
    return table(title, ["predictor", *(rows[0].cells if rows else ())], cells)


def _short(figures: str) -> str:
    """Leave out the zero before a point and the space in an interval, so that a row fits."""
    return re.sub(r"(?<!\d)0\.", ".", figures).replace(", ", ",")
