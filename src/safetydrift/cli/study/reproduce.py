"""``safetydrift study reproduce``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from safetydrift.cli import options
from safetydrift.cli.output import emit_json, remark, show_part
from safetydrift.cli.study import _options
from safetydrift.states.trajectory import Notion

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from safetydrift.states.space import StateSpace
    from safetydrift.states.trajectory import Trajectory
    from safetydrift.study.reproduction import Column


@click.command
@_options.folder
@click.option("--logs", multiple=True, metavar="PATH", help="Take these runs instead of collecting any.")
@_options.agent
@_options.epochs(8)
@click.option(
    "--real",
    type=click.IntRange(0),
    default=4000,
    show_default=True,
    help="Runs of the shipped corpus for the column of real traces; 0 leaves it out.",
)
@options.notion_of(Notion.RULES)
@click.option("--trial/--no-trial", default=True, show_default=True, help="Try the monitor in the loop, too.")
@_options.seed
@options.as_json
def reproduce(
    folder: Path,
    logs: tuple[str, ...],
    agent: str,
    epochs: int,
    real: int,
    notion: Notion,
    trial: bool,
    seed: int,
    as_json: bool,
) -> None:
    """Run the published study again: collect, label, analyse, and put the figures side by side.

    With the simulated agent it needs neither a key nor a network.

    \b
    Example:
      safetydrift study reproduce -o study/
      safetydrift study reproduce -o mine/ --logs traces/ --real 0
    """
    from safetydrift.evaluation.document import Drawing, save_drawings, to_html
    from safetydrift.formats.space_file import load_space
    from safetydrift.study.reproduction import report, side_by_side

    columns = _columns(folder, logs, agent, epochs, real, load_space("paper"), notion, seed)
    tried = None
    if trial and not logs:
        from safetydrift.study.trial import run_trial

        tried = run_trial(folder / "trial", agent, epochs=max(2, epochs // 2), seed=seed, tell=remark)
    folder.mkdir(parents=True, exist_ok=True)
    for one in columns:
        own, document = folder / one.name.replace(" ", "-"), one.document()
        save_drawings(document.parts(Drawing), own)
        (own / "evaluation.html").write_text(to_html(document), encoding="utf-8", newline="\n")
    document = report(columns, tried)
    (folder / "report.html").write_text(to_html(document), encoding="utf-8", newline="\n")
    emit_json(document, folder / "report.json")
    if as_json:
        emit_json(document)
        return
    show_part(side_by_side(columns))
    if tried is not None:
        show_part(tried.table())
    remark(f"report written to {folder / 'report.html'}")


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

        remark(f"collecting {epochs} runs of every scenario with {agent}")
        paths = collect(folder / "logs", agent, epochs=epochs, seed=seed).whole()
    labeler = Labeler(load_catalogue(), Boundary(domains=load_scenarios()[0].inside))
    name = "simulated" if not logs and agent.startswith("simulated/") else "collected"
    remark("labelling and analysing")
    found = [column(name, TrajectoryReader(paths, space, labeler), space, notion, seed)]
    if real:
        remark(f"analysing {real} real runs of the shipped corpus")
        found.append(column("real traces", _sample(real, space, seed), space, notion, seed))
    return found


def _sample(n: int, space: StateSpace, seed: int) -> list[Trajectory]:
    """Return some runs of the shipped corpus, drawn evenly over it."""
    from random import Random

    from safetydrift.effects.labeler import Labeler
    from safetydrift.formats.catalogue_file import load_catalogue
    from safetydrift.formats.trajectories import TrajectoryReader

    runs = list(TrajectoryReader(["corpus"], space, Labeler(load_catalogue())))
    return Random(seed).sample(runs, len(runs))[:n]  # noqa: S311  # repeatable on purpose
