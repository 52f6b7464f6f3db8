"""``safetydrift fit``."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

import click

from safetydrift.cli import options
from safetydrift.cli.inputs import Inputs
from safetydrift.cli.output import emit_json, notes, remark, show_part

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from safetydrift.evaluation.document import Cell, Table
    from safetydrift.monitor.fitting import FittedChains
    from safetydrift.monitor.guarantee import Goal
    from safetydrift.monitor.model import Model
    from safetydrift.monitor.settings import FitSettings

FEW_RUNS = 100


@click.command
@options.paths
@options.output("Model file to write.", required=True)
@options.fitting
@click.option(
    "--threshold",
    type=options.Probability(),
    help="Alarm at this probability; by default the lowest at which at most 10 % of the training runs without a "
    "violation alarm.",
)
@click.option(
    "--horizon", type=click.IntRange(min=1), default=5, show_default=True, help="Horizon of the policy."
)
@options.goal()
@options.labelling()
@options.reading
@options.as_json
def fit(
    paths: tuple[str, ...],
    output: Path,
    threshold: float | None,
    horizon: int,
    labelling: options.Labelling,
    reading: options.Reading,
    as_json: bool,
    settings: FitSettings,
    goal: Goal | None,
) -> None:
    """Fit a model on traces or labelled runs.

    \b
    Example:
      safetydrift fit corpus -o model.json
      safetydrift fit corpus --space flow --risk-score --false-alarms 0.05 -o model.json
      safetydrift fit traces/ --notion rules --states coarse --estimator published -o published.json
    """
    from safetydrift.formats import save_model
    from safetydrift.monitor.fitting import fit_model
    from safetydrift.monitor.model import AGGREGATE

    space, labeler = labelling.load()
    inputs = Inputs(paths, space, labeler, reading, output)
    trajectories = list(inputs)
    with nullcontext() if reading.quiet or not notes.is_terminal else notes.status("fitting"):
        model, chains = fit_model(
            trajectories,
            space,
            labeler.catalogue,
            settings,
            horizon=horizon,
            threshold=threshold,
            provenance=inputs.provenance(),
            goal=goal,
        )
    save_model(model, output)
    inputs.summarise()
    used = sum(chains.evidence[AGGREGATE].ends.values())
    if used < FEW_RUNS and not reading.quiet:
        remark(f"fitted on {used} runs: every figure of this model is a guess", style="red")
    if as_json:
        emit_json({"model": str(output), "policy": model.policy.definition(), "provenance": model.provenance})
    else:
        for table in _summary(chains, model):
            show_part(table)
    if not reading.quiet:
        remark(f"model written to {output}")


def _summary(chains: FittedChains, model: Model) -> Iterator[Table]:
    """Yield what a fit used, and the policy it suggests."""
    from safetydrift.evaluation.chain_tables import NOTION_WORDS
    from safetydrift.evaluation.document import Table
    from safetydrift.monitor.model import category_name

    n_rows, policy = len(chains.rows.names), model.policy
    rows: list[tuple[Cell, ...]] = []
    for category, evidence in chains.evidence.items():
        ends, counts = evidence.ends, evidence.counts
        visited = f"{int((counts.departures[:n_rows] > 0).sum())} of {n_rows}"
        by_end = (ends[name] for name in ("violated", "completed", "censored"))
        rows.append((category_name(category), sum(ends.values()), *by_end, counts.total, visited))
    columns = ("category", "runs", "violated", "completed", "cut off", "transitions", "rows visited")
    yield Table(f"Runs used ({NOTION_WORDS[model.notion]})", "", columns, tuple(rows))
    if chains.left_out:
        left_out = sorted(chains.left_out.items(), key=lambda item: -item[1])
        yield Table("Runs left out", "", ("reason", "runs"), tuple(left_out))
    suggested = (str(policy.horizon), policy.threshold, policy.pending_threshold, policy.intervention.value)
    header = ("horizon", "threshold", "threshold for a proposed call", "intervention")
    yield Table("Policy suggested with the model of all these runs", "", header, (suggested,))
