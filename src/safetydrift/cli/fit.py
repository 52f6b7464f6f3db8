"""``safetydrift fit``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from safetydrift.cli import options
from safetydrift.cli.inputs import Inputs
from safetydrift.cli.output import console, emit_json, notes

if TYPE_CHECKING:
    from pathlib import Path

    from safetydrift.monitor.guarantee import Goal
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
@options.goal
@options.labelling
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
        notes.print(f"[red]fitted on {used} runs: every figure of this model is a guess[/red]")
    if as_json:
        emit_json(
            {"model": str(output), "policy": model.policy.definition(), "provenance": dict(model.provenance)}
        )
    else:
        from safetydrift.cli.tables import fit_summary

        console.print(fit_summary(chains, model))
    if not reading.quiet:
        notes.print(f"model written to {output}")
