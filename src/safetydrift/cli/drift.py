"""``safetydrift drift``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import asdict

from safetydrift.cli import options
from safetydrift.cli.inputs import Inputs
from safetydrift.cli.output import console, emit_json, remark, say, shown, table

if TYPE_CHECKING:
    from pathlib import Path

    from safetydrift.monitor.drift import DriftAlarm

MAX_STATE_BYTES = 64 << 20


@click.command
@options.model_argument
@options.paths
@click.option(
    "--level",
    type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
    default=0.01,
    show_default=True,
    help="Probability of ever raising a false alarm.",
)
@options.file_to_write(
    "--state",
    help="File in which the alarm is kept from call to call; made where there is none. It keeps its own level.",
)
@options.file_to_write("--plot", help="Figure to write (.svg or .png): the evidence after every run.")
@options.reading
@options.as_json
def drift(
    model: str,
    paths: tuple[str, ...],
    level: float,
    state: Path | None,
    plot: Path | None,
    reading: options.Reading,
    as_json: bool,
) -> None:
    """Say whether a deployment's runs still fit a model.

    MODEL is a model file, or "default" for the shipped one. Runs are taken in the order of PATHS, and need no labels.
    The alarm is raised at most with the probability of the level as long as nothing has changed, however long it runs.

    \b
    Example:
      safetydrift drift default my-runs/
      safetydrift drift mine.json today/ --state drift.json --plot drift.svg
    """
    from safetydrift.formats import load_model
    from safetydrift.monitor.drift import DriftAlarm
    from safetydrift.monitor.foresight import monitor_for
    from safetydrift.states.trajectory import COMPLETED, observe
    from safetydrift.trace import Ending

    fitted = load_model(model)
    alarm = DriftAlarm(fitted, level)
    if state is not None and state.exists():
        alarm = DriftAlarm.from_state(fitted, _read(state))
    inputs = Inputs(paths, fitted.space, monitor_for(fitted).labeler, reading, state)
    curve = []
    for run in inputs:
        seen = observe(run, fitted.space, fitted.notion, fitted.unknown_onset)
        if seen.left_out:  # nobody said whether it violates: what it did is known all the same
            alarm.record(run.category, run.states, completed=run.ending is Ending.COMPLETED)
        else:
            alarm.record(run.category, seen.states, completed=seen.end == COMPLETED)
        curve.append(alarm.log_evidence)
    inputs.summarise()
    if state is not None:
        emit_json(alarm.state(), state)
    if plot is not None:
        _plot(curve, alarm.level, plot)
    if as_json:
        emit_json(_as_dict(alarm))
    else:
        _show(alarm)
    if plot is not None and not reading.quiet:
        remark(f"figure written to {plot}")


def _plot(curve: list[float], level: float, path: Path) -> None:
    from math import log, log10

    from safetydrift.evaluation.figures import curves_figure, encoded

    runs = range(1, len(curve) + 1)
    evidence: dict[str, Any] = {"evidence": (runs, [value / log(10.0) for value in curve])}
    evidence[f"alarm, level {level:g}"] = ((1, len(curve)), [-log10(level)] * 2)
    figure = curves_figure(evidence, "runs", "evidence (powers of ten)")
    path.write_bytes(encoded(figure, path.suffix.lstrip(".") or "svg"))


def _read(path: Path) -> Any:
    from safetydrift.errors import ModelFileError

    try:
        with path.open("rb") as file:
            return json.loads(file.read(MAX_STATE_BYTES))
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path}: the state of the drift alarm cannot be read: {error}") from error


def _as_dict(alarm: DriftAlarm) -> dict[str, Any]:
    return {
        "runs": alarm.runs,
        "level": alarm.level,
        "concentration": alarm.concentration,
        "alarmed": alarm.alarmed_at is not None,
        "alarmed_at_run": alarm.alarmed_at,
        "log_evidence": alarm.log_evidence,
        "drivers": [dict(sorted(asdict(driver).items())) for driver in alarm.drivers()],
    }


def _show(alarm: DriftAlarm) -> None:
    if alarm.alarmed_at is None:
        say(
            f"no drift found in {alarm.runs:,} runs: the evidence is {alarm.evidence:.3g}, and an alarm is raised at "
            f"{1 / alarm.level:g}"
        )
        return
    say(
        f"drift: run {alarm.alarmed_at:,} of {alarm.runs:,} raised the alarm (error level {alarm.level:g}); "
        "update the model and calibrate it, or fit another"
    )
    rows = [
        [
            shown(f"{one.origin} -> {one.target}"),
            one.category or "all runs",
            one.observed,
            one.expected,
            one.departures,
        ]
        for one in alarm.drivers()
    ]
    columns = ["transition", "category", "observed share", "expected share", "departures"]
    console.print(table("\nTransitions that speak loudest against the model", columns, rows, left=2))
