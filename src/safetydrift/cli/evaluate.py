"""``safetydrift evaluate``."""

from __future__ import annotations

import gc
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from safetydrift.cli import options
from safetydrift.cli.inputs import Inputs
from safetydrift.cli.output import emit_json, remark, show, work_progress

if TYPE_CHECKING:
    from safetydrift.evaluation.cases import CaseSet
    from safetydrift.evaluation.document import Document
    from safetydrift.evaluation.predictors import Circumstances
    from safetydrift.evaluation.scores import Predictor
    from safetydrift.states.trajectory import Notion

SPLITS = ("tasks", "models", "tasks-and-models", "suites", "sources", "random")
SHIPPED = "shipped-model"
RESAMPLES = 200
SEED = 260327148
MOST_PROCESSES = 4
FEW_TASKS = 30
SLOW = frozenset({"logistic-hazard", "boosting", "foresight"})
OURS = ("monitor", "monitor-soft-categories", "monitor-without-categories", "monitor-published-space")


@dataclass(frozen=True, slots=True)
class _Compared:
    """What is compared: predictors by name, model files, prediction files, recorded judgements."""

    predictor: tuple[str, ...]
    model: tuple[str, ...]
    predictions: tuple[str, ...]
    judgements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Written:
    """What is written: a report, a folder of figures, a page of documentation with its figures beside it."""

    output: Path | None
    figures: Path | None
    evidence: Path | None


_FILE = click.Path(exists=True, dir_okay=False)


@click.command
@options.paths
@options.gathered(
    "written",
    _Written,
    options.output("HTML report to write."),
    click.option(
        "--figures",
        type=click.Path(file_okay=False, path_type=Path),
        help="Folder for the figures, as SVG and PNG.",
    ),
    options.file_to_write(
        "--evidence", metavar="FILE", help="Markdown page to write, its figures in a folder beside it."
    ),
)
@options.gathered(
    "compared",
    _Compared,
    click.option(
        "--model", multiple=True, metavar="FILE", help='Model file to compare; "default" is the shipped one.'
    ),
    click.option(
        "--predictions",
        multiple=True,
        type=_FILE,
        metavar="FILE",
        help="Prediction file to compare (docs/prediction-files.md).",
    ),
    click.option(
        "--judgements",
        multiple=True,
        type=_FILE,
        metavar="FILE",
        help="Risks that a language model was recorded to see in every step (safetydrift study judge steps).",
    ),
    click.option(
        "--predictor",
        multiple=True,
        metavar="NAME",
        help='Predictor to fit and compare; "baselines", or "all" with the slow learned ones. By default our monitor '
        "and the baselines.",
    ),
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
@options.notion
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
    "--jobs", type=click.IntRange(1, 64), help="Processes; by default one per processor, at most 4."
)
@options.labelling("flow")
@options.reading
@options.as_json
def evaluate(
    paths: tuple[str, ...],
    written: _Written,
    compared: _Compared,
    split: tuple[str, ...],
    folds: int,
    notion: Notion,
    resamples: int,
    seed: int,
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
      safetydrift evaluate corpus --predictor all --split tasks --split models -o report.html
      safetydrift evaluate traces/ --model model.json --predictions theirs.jsonl --json
    """
    from safetydrift.evaluation.evidence import Plan, gather_evidence
    from safetydrift.evaluation.evidence_document import evidence_document
    from safetydrift.evaluation.workers import usable_processors

    chosen = _chosen(compared.predictor)
    _require_extras(chosen, written)
    space, labeler = labelling.load()
    inputs = Inputs(paths, space, labeler, reading, written.output)
    given = _circumstances(labelling, notion)
    trajectories = list(inputs)
    plan = Plan(
        splits=tuple(dict.fromkeys(split)),
        folds=folds,
        resamples=resamples,
        seed=seed,
        processes=jobs or min(usable_processors(), MOST_PROCESSES),
    )
    gc.freeze()  # the runs stay to the end: walking over them again and again would take a third of the time
    with work_progress(quiet=reading.quiet) as progress:
        found = gather_evidence(
            trajectories,
            given,
            lambda cases: _predictors(chosen, compared, paths, given, cases, quiet=reading.quiet),
            plan,
            provenance=inputs.provenance(),
            progress=progress,
        )
    inputs.summarise()
    document = evidence_document(found)
    _write(document, written, quiet=reading.quiet)  # first: whoever reads our output may stop before its end
    if as_json:
        emit_json(found)
    else:
        show(document)


def _circumstances(labelling: options.Labelling, notion: Notion) -> Circumstances:
    """Say in which circumstances runs are compared: where their space has the published one in it, in that, too."""
    from safetydrift.errors import SpaceMismatchError
    from safetydrift.evaluation.predictors import Circumstances
    from safetydrift.formats import load_space
    from safetydrift.states.projection import projection

    space, labeler = labelling.load()
    published = load_space("paper")
    try:
        projection(space, published)
    except SpaceMismatchError:
        published = space
    return Circumstances(space, labeler.catalogue, published, notion)


def _require_extras(names: tuple[str, ...], written: _Written) -> None:
    """Find out before minutes of work whether what it takes is installed."""
    from importlib import import_module

    if {"logistic-hazard", "boosting"} & set(names):
        import_module("sklearn")
    if written != _Written(None, None, None):
        import_module("safetydrift.evaluation.figures")
    if written.output is not None:
        import_module("jinja2")


def _chosen(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the predictors asked for, in the order of the registry."""
    from safetydrift.evaluation.predictors import PREDICTORS

    baselines = [name for name in PREDICTORS if name not in SLOW and name not in OURS]
    if not names:
        return (OURS[0], *baselines)
    words = {"all": list(PREDICTORS), "baselines": baselines}
    asked = {one for name in names for one in words.get(name, [name])}
    if unknown := asked - PREDICTORS.keys():
        known = ", ".join([*PREDICTORS, *words])
        raise click.BadParameter(
            f"there is no {min(unknown)!r}; there are: {known}", param_hint="--predictor"
        )
    return tuple(name for name in PREDICTORS if name in asked)


def _predictors(
    chosen: tuple[str, ...],
    compared: _Compared,
    paths: tuple[str, ...],
    given: Circumstances,
    cases: CaseSet,
    *,
    quiet: bool,
) -> list[Predictor]:
    """Make all predictors; the category prior is always among them, for it is what the others are held against.

    On a user's own runs the shipped model is among them, unless other files are named.
    """
    from safetydrift.evaluation.comparison import REFERENCE
    from safetydrift.evaluation.predictors import JudgementFile, PredictionFile, model_predictor, predictor
    from safetydrift.formats import load_model

    if len(cases.tasks) < FEW_TASKS and not quiet:
        remark(f"{len(cases.tasks)} tasks: too few for any figure to be sure of", style="red")
    found: list[Predictor] = [predictor(name, given) for name in dict.fromkeys((*chosen, REFERENCE))]
    taken = {one.name for one in found}
    named = compared.model or compared.predictions or compared.judgements or "corpus" in paths
    for path in dict.fromkeys(compared.model) if named else ("default",):
        name = SHIPPED if path == "default" else Path(path).name.split(".")[0]
        found.append(model_predictor(_free(name, taken), load_model(path), cases, given.space))
    files: list[PredictionFile | JudgementFile] = [PredictionFile(path) for path in compared.predictions]
    files += [JudgementFile(path) for path in compared.judgements]
    for file in files:
        file.name = _free(file.name, taken)
        found.append(file.predictor)
    return found


def _free(name: str, taken: set[str]) -> str:
    """Return a name that nothing else has."""
    number, free = 2, name
    while free in taken:
        free, number = f"{name}-{number}", number + 1
    taken.add(free)
    return free


def _write(document: Document, written: _Written, *, quiet: bool) -> None:
    from safetydrift.evaluation.document import Drawing, save_drawings, to_html, to_markdown

    drawings = list(document.parts(Drawing))
    if written.output is not None:
        written.output.write_text(to_html(document), encoding="utf-8", newline="\n")
    if written.figures is not None:
        save_drawings(drawings, written.figures)
    if (page := written.evidence) is not None:
        folder = page.with_suffix("")
        save_drawings(drawings, folder, ("svg",))
        page.write_text(to_markdown(document, folder.name), encoding="utf-8", newline="\n")
    for what, path in (("report", written.output), ("figures", written.figures), ("page", written.evidence)):
        if path is not None and not quiet:
            remark(f"{what} written to {path}")
