"""``safetydrift predict``."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click
import msgspec

from safetydrift.cli import options
from safetydrift.cli.inputs import Inputs
from safetydrift.cli.output import binary_output, remark

if TYPE_CHECKING:
    from pathlib import Path


@click.command
@options.paths
@options.model
@options.output("Prediction file, one JSON line per step; standard output if not given.")
@options.reading
def predict(paths: tuple[str, ...], model: str, output: Path | None, reading: options.Reading) -> None:
    """Write the probability of a violation at every step of every run.

    Each line holds the number of calls already made ("step"), the probabilities of a violation within the next
    1, 3 and 5 calls ("p"), the probability that the run ends violated ("p_end"), whether the policy alarms, and the
    verdict on the next call as proposed ("pending"). docs/prediction-files.md describes the format.

    \b
    Example:
      safetydrift predict traces/ -o predictions.jsonl
      safetydrift predict corpus --model model.json -o predictions.jsonl
    """
    from safetydrift.evaluation.predictions import predictions
    from safetydrift.evaluation.replay import replay
    from safetydrift.formats.model_file import load_model
    from safetydrift.monitor.foresight import monitor_for
    from safetydrift.monitor.model import AGGREGATE

    fitted = load_model(model)
    monitor = monitor_for(fitted, intervals=True)
    inputs = Inputs(paths, fitted.space, monitor.labeler, reading, output)
    encoder = msgspec.json.Encoder()
    buffer = bytearray()
    unknown: Counter[str] = Counter()
    with binary_output(output) as stream:
        for trajectory in inputs:
            unknown[trajectory.category] += trajectory.category not in fitted.tables
            for line in predictions(replay(trajectory, monitor)):
                encoder.encode_into(line, buffer)
                stream.write(buffer)
                stream.write(b"\n")
    inputs.summarise()
    if reading.quiet:
        return
    judged = "its soft categories" if monitor.mixes(AGGREGATE) else "all runs"
    for category, count in unknown.items():
        if count:
            remark(
                f"{count:,} runs of category {category!r}, which the model does not know, were judged by {judged}"
            )
    if output is not None:
        remark(f"predictions written to {output}")
