"""``safetydrift update``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from safetydrift.cli import options
from safetydrift.cli.inputs import Inputs
from safetydrift.cli.output import emit_json, remark, say

if TYPE_CHECKING:
    from pathlib import Path


@click.command
@options.model_argument
@options.paths
@options.output("Model file to write.", required=True)
@click.option(
    "--half-life",
    type=click.FloatRange(min=1.0, max=1e9),
    metavar="RUNS",
    help="Forget: a run weighs half as much for every so many runs after it. By default nothing is forgotten.",
)
@options.reading
@options.as_json
def update(
    model: str,
    paths: tuple[str, ...],
    output: Path,
    half_life: float | None,
    reading: options.Reading,
    as_json: bool,
) -> None:
    """Add runs of your own to a model.

    MODEL is a model file, or "default" for the shipped one. The tables become those of a fit on all runs together; the
    probabilities of the risk score are corrected by what happened here. What was promised about thresholds no longer
    holds:
    calibrate again, on runs of other tasks.

    \b
    Example:
      safetydrift update default my-runs/ -o mine.json
      safetydrift update mine.json this-week/ --half-life 5000 -o mine-now.json
    """
    from safetydrift.formats import load_model, save_model
    from safetydrift.monitor.foresight import monitor_for
    from safetydrift.monitor.updating import update as updated

    fitted = load_model(model)
    inputs = Inputs(paths, fitted.space, monitor_for(fitted).labeler, reading, output)
    runs = list(inputs)
    found = updated(fitted, runs, half_life=half_life, provenance=inputs.provenance())
    save_model(found.model, output)
    inputs.summarise()
    if as_json:
        emit_json(
            {
                "model": str(output),
                "runs": found.runs,
                "tasks": found.tasks,
                "new_tasks": found.new_tasks,
                "new_categories": found.new_categories,
                "left_out": found.left_out,
                "recalibration": found.model.provenance.get("recalibration"),
            }
        )
    else:
        categories = ", ".join(found.new_categories) or "none"
        say(
            f"added {found.runs:,} runs of {found.tasks:,} tasks ({found.new_tasks:,} of them new); "
            f"new categories: {categories}"
        )
        for reason, count in sorted(found.left_out.items(), key=lambda pair: -pair[1]):
            say(f"left out {count:,}: {reason}")
    if not reading.quiet:
        remark(f"model written to {output}")
