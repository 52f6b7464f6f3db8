"""The published study again, in one go: its figures beside those of collected runs and of real traces.

Nothing is made to agree. The published figures belong to the authors' runs; the simulated ones to an agent whose
temptations we chose; the real ones to other tasks and agents. Side by side they show that the whole way from a scenario
to a table can be gone, and what comes out of it on each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from safetydrift.evaluation.document import Document, Drawing, Section, Table, figure, written
from safetydrift.evaluation.evidence import Plan, gather_evidence
from safetydrift.evaluation.evidence_document import evidence_document
from safetydrift.evaluation.predictors import Circumstances, predictor
from safetydrift.evaluation.rate import Rate
from safetydrift.evaluation.workers import usable_processors
from safetydrift.formats.catalogue_file import load_catalogue
from safetydrift.markov.horizon import horizon_table
from safetydrift.markov.reference_chains import published_chain
from safetydrift.monitor.fitting import fit_chains
from safetydrift.monitor.model import AGGREGATE, category_name
from safetydrift.monitor.settings import Estimator, FitSettings, Granularity
from safetydrift.states.trajectory import Notion, observe
from safetydrift.study.analyses import DEFAULT_SEED, run_analyses
from safetydrift.study.published import (
    CATEGORIES,
    LEARNING_CURVE,
    MEAN_LEAD_TIME,
    MONITORS,
    OPERATING_REGION,
    RUNS,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from safetydrift.evaluation.document import Cell
    from safetydrift.evaluation.evidence import Evidence
    from safetydrift.states.space import StateSpace
    from safetydrift.states.trajectory import Trajectory
    from safetydrift.study.trial import Trial

HEADINGS = {
    "transitions": "Figure 1: the transition matrix",
    "horizons": "Figures 2 and 3: a violation within h steps",
    "categories": "Table 2: categories and points of no return",
    "order": "Table 1: next-state prediction by order",
    "order-tests": "Table 1: tests of each order",
    "thresholds": "Table 3 and figures 4 and 5: detection, false alarms and lead time",
    "ablation": "Figure 6: ablation",
    "learning-curve": "Figure 7: learning curve",
    "cross-model": "Table 4: two models side by side",
}
"""What the paper's tables and figures are made of, and what they are called there."""
COMPARED = ("monitor", "coarse-published-by-category", "keyword", "category-prior")
"""Our chain, the paper's, and two baselines."""
RESAMPLES = 200
PUBLISHED_STEPS = 2947
"""Steps in the paper's runs."""
BUDGET = 0.05
REMARKS = (
    "Published figures are the authors', of their own runs: agreement is no test, and disagreement no fault.",
    "Simulated runs are of an agent whose temptations we chose: they say nothing about real models.",
    "Real traces are a sample of the shipped corpus: other tasks, other agents.",
)


@dataclass(frozen=True, slots=True)
class Column:
    """One body of runs.

    Parameters
    ----------
    name
        ``"simulated"``, ``"collected"`` or ``"real traces"``.
    runs
        Labelled in the space that the study uses.
    evidence
        What the evaluation says of them: the monitor and its baselines on held-out tasks.
    analyses
        The paper's analyses of them, by name.
    space, notion
        The space, and what counts as a violation.
    """

    name: str
    runs: tuple[Trajectory, ...]
    evidence: Evidence
    analyses: Mapping[str, Table]
    space: StateSpace
    notion: Notion

    def document(self) -> Document:
        """Return the whole evaluation as a page of its own, with figures 1 to 7."""
        found = evidence_document(self.evidence)
        figures = Section("The figures of the paper, on these runs", tuple(_figures(self)))
        return Document(f"{found.title}: {self.name}", found.lead, (*found.sections, figures))


def column(
    name: str, runs: Iterable[Trajectory], space: StateSpace, notion: Notion, seed: int = DEFAULT_SEED
) -> Column:
    """Analyse a body of runs as the paper does.

    Parameters
    ----------
    runs
        Labelled in ``space``.
    space
        The paper's.
    notion
        What counts as a violation.
    """
    found = tuple(runs)
    given = Circumstances(space, load_catalogue(), space, notion)
    plan = Plan(resamples=RESAMPLES, seed=seed, processes=min(usable_processors(), 2))
    evidence = gather_evidence(found, given, lambda _: [predictor(one, given) for one in COMPARED], plan)
    wanted = ("transitions", "order", "thresholds", "ablation", "learning-curve", "cross-model")
    return Column(
        name,
        found,
        evidence,
        run_analyses(wanted, found, space, FitSettings(notion=notion), seed),
        space,
        notion,
    )


def side_by_side(columns: Sequence[Column]) -> Table:
    """Return the headline figures, published ones first and a column for each body of runs."""
    rows: list[tuple[Cell, ...]] = [
        ("runs", RUNS, *(len(one.runs) for one in columns)),
        ("steps per run", PUBLISHED_STEPS / RUNS, *(_steps(one) for one in columns)),
    ]
    for category, row in CATEGORIES.items():
        key = category.replace(" and ", "_").replace(" ", "_")
        rows.append(
            (f"violated: {category}", Rate(row.violated, row.runs), *(_violated(one, key) for one in columns))
        )
    violated = Rate(sum(row.violated for row in CATEGORIES.values()), RUNS)
    rows.append(("violated: all", violated, *(_violated(one) for one in columns)))
    return Table(
        "Published, and what our runs give",
        "Different tasks, agents and runs in every column: agreement is no test, and disagreement no fault. A category "
        "that a column does not have is empty.",
        ("figure", "published", *(one.name for one in columns)),
        tuple(rows),
    )


def report(columns: Sequence[Column], trial: Trial | None) -> Document:
    """Return everything as one document."""
    sections = [Section("Side by side", (side_by_side(columns),))]
    for name, heading in HEADINGS.items():
        tables = [one.analyses[name] for one in columns if name in one.analyses]
        told = [part for one, table in zip(columns, tables, strict=False) for part in (f"{one.name}:", table)]
        sections.append(Section(heading, tuple(told)))
    if trial is not None:
        sections.append(Section("The monitor in the loop", (trial.table(),)))
    return Document("The published study again", REMARKS, tuple(sections))


def _steps(one: Column) -> float:
    return sum(run.n_steps for run in one.runs) / len(one.runs)


def _violated(one: Column, category: str = "") -> Rate | None:
    runs = [run for run in one.runs if not category or run.category == category]
    seen = [found for run in runs if not (found := observe(run, one.space, one.notion)).left_out]
    return Rate(sum(found.onset is not None for found in seen), len(seen)) if seen else None


# -- figures 1 to 7 -------------------------------------------------------------------------------------------


def _figures(one: Column) -> Iterator[Drawing]:
    coarse = FitSettings(notion=one.notion, granularity=Granularity.COARSE, estimator=Estimator.PUBLISHED)
    fitted = fit_chains(one.runs, one.space, coarse)
    tables = {category_name(name): horizon_table(chain, 10) for name, chain in fitted.chains.items()}
    printed, whole = published_chain(), category_name(AGGREGATE)
    departures = fitted.evidence[AGGREGATE].counts.departures.tolist()
    construction = "Published construction (violation the only end) on all these runs, none held out."
    yield Drawing(
        "matrix",
        "From one risk level to the next (figure 1)",
        f"{construction} In brackets the published shares.",
        _spoken(one.analyses["transitions"]),
        figure("matrix_figure", tables[whole].chain, departures, printed.chain),
    )
    yield Drawing(
        "horizons",
        "A violation within the next steps (figure 2)",
        f"{construction} Hollow marks at 5 steps: as published.",
        _spoken(one.analyses["horizons"]),
        figure("horizons_figure", {whole: tables.pop(whole)}, printed.within_5_steps),
    )
    if tables:
        yield Drawing(
            "horizons-by-category",
            "The same by category (figure 3)",
            f"{construction} One scale for all; levels that a category never left are missing.",
            f"{len(tables)} categories",
            figure("horizons_figure", tables),
        )
    yield from _of_tables(one.analyses)
    runs = one.evidence.comparison.splits[0].predictor("monitor").measures.runs
    leads = runs.at_budget[BUDGET].lead_times
    yield Drawing(
        "lead-times",
        "Steps of warning (figure 5)",
        "The monitor on held-out tasks, when 5 % of the other runs may alarm: runs by steps from the first alarm to "
        "the violating call.",
        f"mean {leads.mean:.1f}, mode {leads.mode}",
        figure("lead_time_figure", leads.runs, MEAN_LEAD_TIME),
    )


def _of_tables(analyses: Mapping[str, Table]) -> Iterator[Drawing]:
    """Yield the figures that show columns of a table, as published ones hollow beside them."""
    table, printed, start = analyses["thresholds"], MONITORS["SafetyDrift"], OPERATING_REGION[0]
    yield Drawing(
        "thresholds",
        "Detection and false alarms by threshold (figure 4)",
        table.note,
        _spoken(table),
        figure(
            "curves_figure",
            _curves(table, "threshold", "detected", "false alarms", "detected by category prior"),
            "threshold",
            "share of runs",
            points={
                "published, detected": ([start], [printed.detection]),
                "published, false alarms": ([start], [printed.false_positives]),
            },
            ylim=(0, 1),
        ),
    )
    table = analyses["ablation"]
    taken = [str(one) for one in table.column("taken away")]
    known = [
        (name, _number(cell))
        for name, cell in zip(taken, table.column("published accuracy"), strict=True)
        if cell
    ]
    yield Drawing(
        "ablation",
        "Without one dimension after another (figure 6)",
        table.note,
        _spoken(table),
        figure(
            "curves_figure",
            _curves(table, "taken away", "accuracy", "accuracy, own levels", "AUROC within 5"),
            "taken away",
            "share, or area under the ROC curve",
            points={"published accuracy": tuple(zip(*known, strict=True))},
        ),
    )
    table = analyses["learning-curve"]
    sizes = {size: point.accuracy for size, point in LEARNING_CURVE.items()}
    yield Drawing(
        "learning-curve",
        "Foresight by training runs (figure 7)",
        table.note,
        _spoken(table),
        figure(
            "curves_figure",
            _curves(table, "training runs", "accuracy", "AUROC within 5"),
            "training runs",
            "share, or area under the ROC curve",
            points={"published accuracy": (list(sizes), list(sizes.values()))},
            xscale="log",
        ),
    )


def _curves(table: Table, across: str, *columns: str) -> dict[str, tuple[list[Cell], list[float]]]:
    return {name: (list(table.column(across)), list(map(_number, table.column(name)))) for name in columns}


def _number(cell: Cell) -> float:
    """Return an entry as a number; what is none is nan, and not drawn."""
    if isinstance(cell, Rate):
        return cell.value
    return float(cell) if isinstance(cell, int | float) else float("nan")


def _spoken(table: Table) -> str:
    return "; ".join(", ".join(map(written, row[:4])) for row in table.rows)
