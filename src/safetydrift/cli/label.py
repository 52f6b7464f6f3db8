"""``safetydrift label``."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

from safetydrift.cli import options
from safetydrift.cli.inputs import Inputs
from safetydrift.cli.output import binary_output, console, emit_json, percent, table

if TYPE_CHECKING:
    from pathlib import Path

    from safetydrift.states.space import StateSpace
    from safetydrift.states.trajectory import Trajectory

LAYERS = ("rule", "pattern", "annotation", "judge", "default")
SHOWN_MISSES = 20


@click.command
@options.paths
@options.output("File for the labelled runs (JSON Lines); without it, only the summary is made.")
@options.labelling()
@options.reading
@options.as_json
def label(
    paths: tuple[str, ...],
    output: Path | None,
    labelling: options.Labelling,
    reading: options.Reading,
    as_json: bool,
) -> None:
    """Read what every tool call did, and count what could not be read.

    The labelled runs hold effects and states by index and no text of the traces; every verb takes them in place of
    the traces themselves.

    \b
    Example:
      safetydrift label traces/ -o runs.jsonl
      safetydrift fit runs.jsonl -o model.json
    """
    space, labeler = labelling.load()
    inputs = Inputs(paths, space, labeler, reading, output)
    write_labelled(inputs, space, labeler.catalogue.identity, output, as_json=as_json)


def write_labelled(
    inputs: Inputs, space: StateSpace, catalogue: str, output: Path | None, *, as_json: bool
) -> None:
    """Write labelled runs, and show a summary of them."""
    from safetydrift.formats.runs import RunWriter

    summary = _Summary()
    if output is None:
        for run in inputs:
            summary.add(run)
    else:
        with binary_output(output) as stream:
            writer = RunWriter(stream, space, catalogue)
            for run in inputs:
                summary.add(run)
                writer.write(run)
    if as_json:
        emit_json(summary.as_dict(inputs))
    else:
        summary.show(inputs)
    inputs.summarise()


class _Summary:
    """Runs and steps per source, and how the effects were found."""

    def __init__(self) -> None:
        self.runs: Counter[str] = Counter()
        self.steps: Counter[str] = Counter()
        self.violated: Counter[tuple[str, str]] = Counter()
        self.unusable: Counter[tuple[str, str]] = Counter()

    def add(self, run: Trajectory) -> None:
        self.runs[run.source] += 1
        self.steps[run.source] += run.n_steps
        if run.label.unusable or run.label.violated is None:
            self.unusable[run.source, run.label.unusable or "no label"] += 1
        else:
            self.violated[run.source, "violated" if run.label.violated else "not violated"] += 1

    def as_dict(self, inputs: Inputs) -> dict[str, object]:
        return {
            "sources": {
                source: {
                    "runs": runs,
                    "steps": self.steps[source],
                    "violated": self.violated[source, "violated"],
                    "not_violated": self.violated[source, "not violated"],
                    "without_usable_label": _of(self.unusable, source),
                }
                for source, runs in sorted(self.runs.items())
            },
            "layers": dict(inputs.layers()),
            "misses": dict(inputs.misses().most_common()),
            "bad_records_skipped": inputs.n_bad,
        }

    def show(self, inputs: Inputs) -> None:
        rows = [
            (
                source or "(none)",
                runs,
                self.steps[source],
                self.violated[source, "violated"],
                self.violated[source, "not violated"],
                sum(_of(self.unusable, source).values()),
            )
            for source, runs in sorted(self.runs.items())
        ]
        columns = ("source", "runs", "steps", "violated", "not violated", "no usable label")
        console.print(table("Runs by their source's own label", columns, rows))
        reasons = [(source, reason, count) for (source, reason), count in sorted(self.unusable.items())]
        if reasons:
            console.print(
                table("\nWhy a label cannot be used", ("source", "reason", "runs"), reasons, left=2)
            )
        layers, total = inputs.layers(), sum(inputs.layers().values())
        if total:
            shares = [(layer, layers[layer], percent(layers[layer] / total)) for layer in LAYERS]
            console.print(table("\nWhat decided the effect of a call", ("layer", "calls", "share"), shares))
        misses = inputs.misses()
        if misses:
            title = (
                f"\nCalls left to the cautious default: {len(misses):,} tools, {sum(misses.values()):,} calls"
            )
            console.print(table(title, ("tool", "calls"), misses.most_common(SHOWN_MISSES)))


def _of(counts: Counter[tuple[str, str]], source: str) -> dict[str, int]:
    return {reason: count for (where, reason), count in sorted(counts.items()) if where == source}
