"""The published study again, in one go: its figures beside those of collected runs and of real traces.

Nothing is made to agree. The published figures belong to the authors' runs; the simulated ones to an agent whose
temptations we chose; the real ones to other tasks and agents. Side by side they show that the whole way from a scenario
to a table can be gone, and what comes out of it on each.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from safetydrift.evaluation.evidence import Plan, gather_evidence
from safetydrift.evaluation.evidence_figures import drawings, save_figures
from safetydrift.evaluation.evidence_report import write_evidence_report
from safetydrift.evaluation.predictors import Circumstances, predictor
from safetydrift.evaluation.rate import Rate
from safetydrift.evaluation.workers import usable_processors
from safetydrift.formats.catalogue_file import load_catalogue
from safetydrift.states.trajectory import Notion, observe
from safetydrift.study.analyses.analysis import Analysis
from safetydrift.study.published import CATEGORIES, RUNS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from safetydrift.evaluation.evidence import Evidence
    from safetydrift.states.space import StateSpace
    from safetydrift.states.trajectory import Trajectory
    from safetydrift.study.analyses.analysis import Cell
    from safetydrift.study.trial import Trial

ANALYSES = ("transitions", "order", "thresholds", "ablation", "learning-curve", "cross-model")
"""What the paper's tables and figures are made of."""
COMPARED = ("monitor", "coarse-published-by-category", "keyword", "category-prior")
"""Our chain, the paper's, and two baselines."""
RESAMPLES = 200
PUBLISHED_STEPS = 2947
"""Steps in the paper's runs."""
NOTIONS = {"rules": Notion.RULES, "label": Notion.LABEL}


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
        What the evaluation says of them: the monitor and its baselines on held-out tasks, and the paper's analyses.
    """

    name: str
    runs: tuple[Trajectory, ...]
    evidence: Evidence

    @property
    def analyses(self) -> Mapping[str, Analysis]:
        """The paper's analyses of them, by name."""
        return self.evidence.analyses

    def draw(self, folder: Path) -> None:
        """Save figures 1 to 7, and the whole evaluation as a page of its own."""
        found = drawings(self.evidence)
        folder.mkdir(parents=True, exist_ok=True)
        save_figures(found, folder)
        write_evidence_report(self.evidence, folder / "evaluation.html", found)


def column(name: str, runs: Iterable[Trajectory], space: StateSpace, notion: Notion, seed: int = 0) -> Column:
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
    plan = Plan(analyses=ANALYSES, resamples=RESAMPLES, seed=seed, processes=min(usable_processors(), 2))
    evidence = gather_evidence(found, given, lambda _: [predictor(one, given) for one in COMPARED], plan)
    return Column(name, found, evidence)


def side_by_side(columns: Sequence[Column], space: StateSpace, notion: Notion) -> Analysis:
    """Return the headline figures, published ones first and a column for each body of runs."""
    rows: list[tuple[Cell, ...]] = [
        ("runs", RUNS, *(len(one.runs) for one in columns)),
        ("steps per run", PUBLISHED_STEPS / RUNS, *(_steps(one) for one in columns)),
    ]
    for category, row in CATEGORIES.items():
        key = category.replace(" and ", "_").replace(" ", "_")
        shares = [
            _violated([run for run in one.runs if run.category == key], space, notion) for one in columns
        ]
        rows.append((f"violated: {category}", Rate(row.violated, row.runs), *shares))
    violated = Rate(sum(row.violated for row in CATEGORIES.values()), RUNS)
    rows.append(("violated: all", violated, *(_violated(one.runs, space, notion) for one in columns)))
    return Analysis(
        "Published, and what our runs give",
        "Different tasks, agents and runs in every column: agreement is no test, and disagreement no fault. A category "
        "that a column does not have is empty.",
        ("figure", "published", *(one.name for one in columns)),
        tuple(rows),
    )


def _steps(one: Column) -> float:
    return sum(run.n_steps for run in one.runs) / len(one.runs)


def _violated(runs: Sequence[Trajectory], space: StateSpace, notion: Notion) -> Rate | None:
    seen = [one for run in runs if not (one := observe(run, space, notion)).left_out]
    return Rate(sum(one.onset is not None for one in seen), len(seen)) if seen else None


def page(tables: Sequence[tuple[str, Analysis]], trial: Trial | None, remarks: Sequence[str]) -> str:
    """Return everything on one page of HTML that needs nothing but itself."""
    parts = [_table(heading, one) for heading, one in tables]
    if trial is not None:
        parts.append(_trial(trial))
    said = "".join(f"<li>{escape(one)}</li>" for one in remarks)
    return _PAGE.replace("@remarks", said).replace("@body", "\n".join(parts))


def _table(heading: str, one: Analysis) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in one.columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(_cell(cell))}</td>" for cell in row) + "</tr>" for row in one.rows
    )
    return (
        f"<h2>{escape(heading)}</h2><p>{escape(one.note)}</p>"
        f'<div class="wide"><table><tr>{head}</tr>{rows}</table></div>'
    )


def _trial(trial: Trial) -> str:
    names = ("violated", "done", "prevented", "kept", "false_interventions", "warning")
    rows = tuple((arm, *(str(getattr(one, name)) for name in names)) for arm, one in trial.arms.items())
    runs = next(iter(trial.arms.values())).runs
    note = (
        f"{runs} runs per row, of {len(trial.held_out)} scenarios that the model was not "
        f"fitted on, by {trial.agent}. Brackets are 95 % intervals over whole scenarios."
    )
    return _table("The monitor in the loop", Analysis("trial", note, ("intervention", *names), rows))


def _cell(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:.3f}" if cell == cell else "-"  # noqa: PLR0124  # nan
    return str(cell)


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>The study again</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid #8884; white-space: nowrap; }
</style></head><body>
<h1>The published study again</h1>
<ul>@remarks</ul>
@body
</body></html>
"""
