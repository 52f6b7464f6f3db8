"""``safetydrift reproduce``."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from safetydrift.cli import options
from safetydrift.cli.output import console, emit_json, notes, shown, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from safetydrift.states.space import StateSpace
    from safetydrift.states.trajectory import Notion, Trajectory
    from safetydrift.study.analyses.analysis import Analysis
    from safetydrift.study.reproduction import Column

HEADINGS = {
    "transitions": "Figure 1: the transition matrix",
    "horizons": "Figures 2 and 3: a violation within h steps",
    "order": "Table 1: next-state prediction by order",
    "categories": "Table 2: categories and points of no return",
    "thresholds": "Table 3 and figures 4 and 5: detection, false alarms and lead time",
    "ablation": "Figure 6: ablation",
    "learning-curve": "Figure 7: learning curve",
    "cross-model": "Table 4: two models side by side",
}
REMARKS = (
    "Published figures are the authors', of their own runs.",
    "Simulated runs are of an agent whose temptations we chose: they say nothing about real models.",
    "Real traces are a sample of the shipped corpus: other tasks, other agents.",
)


@click.command
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Folder for logs, tables and the report; runs it holds already are not made again.",
)
@click.option("--logs", multiple=True, metavar="PATH", help="Take these runs instead of collecting any.")
@click.option(
    "--model",
    "agent",
    default="simulated/mixed",
    show_default=True,
    metavar="NAME",
    help="The agent, as for collect.",
)
@click.option(
    "--epochs", type=click.IntRange(1, 200), default=8, show_default=True, help="Runs per scenario."
)
@click.option(
    "--real",
    type=click.IntRange(0),
    default=4000,
    show_default=True,
    help="Runs of the shipped corpus for the column of real traces; 0 leaves it out.",
)
@click.option(
    "--notion",
    type=click.Choice(("rules", "label")),
    default="rules",
    show_default=True,
    help="What counts as a violation: the paper's rules, or the checks and labels of the sources.",
)
@click.option("--trial/--no-trial", default=True, show_default=True, help="Try the monitor in the loop, too.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of everything drawn.")
@options.as_json
def reproduce(
    folder: Path,
    logs: tuple[str, ...],
    agent: str,
    epochs: int,
    real: int,
    notion: str,
    trial: bool,
    seed: int,
    as_json: bool,
) -> None:
    """Run the published study again: collect, label, analyse, and put the figures side by side.

    Needs the extras [collect] and [evaluate]; with the simulated agent neither a key nor a network.

    \b
    Example:
      safetydrift reproduce -o study/
    """
    from safetydrift.formats.space_file import load_space
    from safetydrift.study.reproduction import NOTIONS, page, side_by_side

    space = load_space("paper")
    chosen = NOTIONS[notion]
    columns = _columns(folder, logs, agent, epochs, real, space, chosen, seed)
    first = side_by_side(columns, space, chosen)
    tables = [("Side by side", first), *_tables(columns)]
    tried = None
    if trial and not logs:
        from safetydrift.study.trial import run_trial

        tried = run_trial(folder / "trial", agent, epochs=max(2, epochs // 2), seed=seed, tell=notes.print)
    folder.mkdir(parents=True, exist_ok=True)
    for one in columns:
        one.draw(folder / one.name.replace(" ", "-"))
    report = folder / "report.html"
    report.write_text(page(tables, tried, REMARKS), "utf-8")
    plain: dict[str, Any] = {heading: one.as_dict() for heading, one in tables}
    plain["The monitor in the loop"] = None if tried is None else tried.as_dict()
    emit_json(plain, folder / "report.json")
    if as_json:
        emit_json(plain)
        return
    console.print(table(first.title, first.columns, [[_cell(cell) for cell in row] for row in first.rows]))
    if tried is not None:
        from safetydrift.cli.trial import show

        show(tried)
    notes.print(shown(f"report written to {report}"), markup=False)


def _columns(
    folder: Path,
    logs: tuple[str, ...],
    agent: str,
    epochs: int,
    real: int,
    space: StateSpace,
    notion: Notion,
    seed: int,
) -> list[Column]:
    from safetydrift.effects.boundary import Boundary
    from safetydrift.effects.labeler import Labeler
    from safetydrift.formats.catalogue_file import load_catalogue
    from safetydrift.formats.trajectories import TrajectoryReader
    from safetydrift.study.reproduction import column
    from safetydrift.study.scenarios import load_scenarios

    paths: Sequence[str | Path] = logs
    if not logs:
        from safetydrift.study.scenarios.collection import collect

        notes.print(f"collecting {epochs} runs of every scenario with {agent}")
        paths = collect(folder / "logs", agent, epochs=epochs, seed=seed).logs
    labeler = Labeler(load_catalogue(), Boundary(domains=load_scenarios()[0].inside))
    name = "simulated" if not logs and agent.startswith("simulated/") else "collected"
    notes.print("labelling and analysing")
    found = [column(name, TrajectoryReader(paths, space, labeler), space, notion, seed)]
    if real:
        notes.print(f"analysing {real} real runs of the shipped corpus")
        found.append(column("real traces", _sample(real, space, seed), space, notion, seed))
    return found


def _sample(n: int, space: StateSpace, seed: int) -> list[Trajectory]:
    """Return some runs of the shipped corpus, drawn evenly over it."""
    from random import Random

    from safetydrift.effects.labeler import Labeler
    from safetydrift.formats.catalogue_file import load_catalogue
    from safetydrift.formats.trajectories import TrajectoryReader

    runs = list(TrajectoryReader(["corpus"], space, Labeler(load_catalogue())))
    order = Random(seed)  # noqa: S311  # repeatable on purpose
    return list(islice(order.sample(runs, len(runs)), n))


def _tables(columns: list[Column]) -> list[tuple[str, Analysis]]:
    return [
        (f"{heading}, {one.name}", one.analyses[name])
        for name, heading in HEADINGS.items()
        for one in columns
        if name in one.analyses
    ]


def _cell(cell: object) -> object:
    return cell if cell is None or isinstance(cell, (str, int, float)) else str(cell)
