"""``safetydrift calibrate``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from safetydrift.cli import options
from safetydrift.cli.inputs import Inputs
from safetydrift.cli.output import console, emit_json, remark, say, table

if TYPE_CHECKING:
    from pathlib import Path

    from safetydrift.monitor.guarantee import Goal
    from safetydrift.monitor.model import Model


@click.command
@options.model_argument
@options.paths
@options.output("Model file to write.", required=True)
@options.goal(standard=0.05)
@options.reading
@options.as_json
def calibrate(
    model: str,
    paths: tuple[str, ...],
    output: Path,
    goal: Goal,
    reading: options.Reading,
    as_json: bool,
) -> None:
    """Choose a model's thresholds on runs it was not fitted on.

    MODEL is a model file, or "default" for the shipped one. One threshold is chosen for where a run stands and one for
    proposed calls. Shares are promised for runs of new tasks, drawn as the tasks of PATHS were; tasks the model was
    fitted on are refused.

    \b
    Example:
      safetydrift calibrate default my-runs/ --false-alarms 0.05 --confidence 0.95 -o mine.json
      safetydrift calibrate default my-runs/ --recall 0.9 -o mine.json
      safetydrift calibrate default my-runs/ --cost-miss 20 --cost-alarm 1 -o mine.json
    """
    from safetydrift.formats import load_model, save_model
    from safetydrift.monitor.foresight import monitor_for
    from safetydrift.monitor.guarantee import promises_of
    from safetydrift.monitor.risk_control import calibrate as chosen

    fitted = load_model(model)
    inputs = Inputs(paths, fitted.space, monitor_for(fitted).labeler, reading, output)
    result = chosen(fitted, inputs, goal)
    save_model(result, output)
    inputs.summarise()
    if as_json:
        found = {subject: promise.definition() for subject, promise in promises_of(result.provenance).items()}
        emit_json({"model": str(output), "policy": result.policy.definition(), "calibration": found})
    else:
        show_promises(result)
    if not reading.quiet:
        remark(f"model written to {output}")


def show_promises(model: Model) -> None:
    """Print what is promised about the thresholds of a model, if anything is."""
    from safetydrift.monitor.guarantee import promises_of

    promises = promises_of(model.provenance)
    if not promises:
        return
    rows = [
        [subject, promise.threshold, promise.false_alarms, promise.recall, promise.tasks, promise.runs]
        for subject, promise in promises.items()
    ]
    columns = [
        "threshold of the",
        "alarms from",
        "non-violating runs alarmed",
        "violating in time",
        "tasks",
        "runs",
    ]
    console.print(
        table("Thresholds, and what they did where they were chosen (means over tasks)", columns, rows)
    )
    for subject, promise in promises.items():
        say(f"{subject}: {promise}")
