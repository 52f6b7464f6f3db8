"""What the verbs read: traces, labelled runs or the shipped corpus, as trajectories."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from safetydrift.cli.output import notes, reading_progress, shown
from safetydrift.errors import NoRunsError
from safetydrift.formats.trajectories import TrajectoryReader

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from safetydrift.cli.options import Reading
    from safetydrift.effects.labeler import Labeler
    from safetydrift.states.space import StateSpace
    from safetydrift.states.trajectory import Trajectory

SHOWN_BAD = 10


class Inputs:
    """Read the paths of a command line once, with progress, and say afterwards what was not read."""

    def __init__(
        self,
        paths: Sequence[str],
        space: StateSpace,
        labeler: Labeler,
        reading: Reading,
        output: Path | None = None,
    ) -> None:
        if output is not None and any(_same(output, path) for path in paths):
            raise click.BadParameter(
                f"{output} is one of the inputs, and would be lost", param_hint="--output"
            )
        self._reader = TrajectoryReader(
            paths, space, labeler, format=reading.trace_format, skip_bad=reading.skip_bad
        )
        self._quiet = reading.quiet
        self._paths = tuple(map(str, paths))

    def __iter__(self) -> Iterator[Trajectory]:
        with reading_progress(quiet=self._quiet) as progress:
            self._reader.on_progress = progress
            yield from self._reader
        if not self._reader.report.traces:
            self.summarise()
            raise NoRunsError(self._paths)

    def tally(self) -> Counter[tuple[str, str]]:
        """Return how many calls there were by deciding layer and tool; empty for runs that were labelled before."""
        return Counter(self._reader.tally)

    def layers(self) -> Counter[str]:
        """Return how many calls each labelling layer decided; empty for runs that were labelled before."""
        layers: Counter[str] = Counter()
        for (layer, _), count in self._reader.tally.items():
            layers[layer] += count
        return layers

    def misses(self) -> Counter[str]:
        """Return the tools no layer knew, with the number of their calls."""
        return Counter({tool: n for (layer, tool), n in self._reader.tally.items() if layer == "default"})

    @property
    def n_bad(self) -> int:
        """How many records were skipped."""
        return self._reader.report.n_bad

    def provenance(self) -> dict[str, object]:
        """Return what was read, for a model file."""
        found: dict[str, object] = {"corpus_digest": self._reader.digest}
        if self._reader.report.n_bad:
            found["bad_records_skipped"] = self._reader.report.n_bad
        if self._reader.other_catalogues:
            found["labelled_with_catalogues"] = sorted(self._reader.other_catalogues.values())
        return found

    def summarise(self) -> None:
        """Say on standard error what was passed over, skipped or repeated."""
        report = self._reader.report
        if self._quiet:
            return
        if report.passed_over:
            names = ", ".join(sorted({path.rsplit("/", 1)[-1] for path in report.passed_over})[:SHOWN_BAD])
            notes.print(
                shown(f"passed over {len(report.passed_over)} files that hold no traces: {names}"),
                markup=False,
            )
        for path, identity in self._reader.other_catalogues.items():
            what = f"{path} was labelled with another catalogue ({identity}); its effects stand as they were read"
            notes.print(shown(what), markup=False)
        if report.duplicate_ids:
            notes.print(
                f"[red]{report.duplicate_ids} runs have the id of another; nothing tells them apart[/red]"
            )
        if report.n_bad:
            notes.print(f"[red]skipped {report.n_bad} bad records:[/red]")
            for bad in report.bad[:SHOWN_BAD]:
                notes.print(shown(f"  {bad}"), markup=False)


def _same(output: Path, path: str) -> bool:
    return output.exists() and Path(path).is_file() and output.samefile(path)
