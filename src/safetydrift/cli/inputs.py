"""What the verbs read: traces, labelled runs or the shipped corpus, as trajectories; or traces themselves."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import click

from safetydrift.cli.output import reading_progress, remark
from safetydrift.errors import NoRunsError
from safetydrift.formats.trajectories import CORPUS, TrajectoryReader
from safetydrift.states.trajectory import Trajectory
from safetydrift.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from safetydrift.cli.options import Reading
    from safetydrift.effects.labeler import Labeler
    from safetydrift.states.space import StateSpace

SHOWN_BAD = 10

Run = TypeVar("Run")


class _Read(Generic[Run]):
    """Runs of the paths of a command line, read with progress each time they are iterated."""

    def __init__(self, reader: Any, paths: Sequence[str], reading: Reading) -> None:
        self.reader, self.paths, self.quiet = reader, tuple(map(str, paths)), reading.quiet

    def __iter__(self) -> Generator[Run]:
        with reading_progress(quiet=self.quiet) as progress:
            self.reader.on_progress = progress
            yield from self.reader
        if not self.reader.report.traces:
            self.summarise()
            raise NoRunsError(self.paths)

    @property
    def n_bad(self) -> int:
        """How many records were skipped."""
        skipped: int = self.reader.report.n_bad
        return skipped

    def summarise(self) -> None:
        """Say on standard error what was passed over, skipped or repeated."""
        report = self.reader.report
        if self.quiet:
            return
        if report.passed_over:
            names = ", ".join(sorted({path.rsplit("/", 1)[-1] for path in report.passed_over})[:SHOWN_BAD])
            remark(f"passed over {len(report.passed_over)} files that hold no traces: {names}")
        if report.n_bad:
            remark(f"skipped {report.n_bad} bad records:", style="red")
            for bad in report.bad[:SHOWN_BAD]:
                remark(f"  {bad}")


class Traces(_Read[Trace]):
    """The traces of a command line, texts and all; the corpus has none."""

    def __init__(self, paths: Sequence[str], reading: Reading) -> None:
        from safetydrift.formats import read_traces

        if CORPUS in paths:
            raise click.BadParameter("the corpus holds effects and no calls; name traces", param_hint="PATHS")
        super().__init__(
            read_traces(paths, format=reading.trace_format, skip_bad=reading.skip_bad), paths, reading
        )


class Inputs(_Read[Trajectory]):
    """The runs of a command line, labelled in a space."""

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
        reader = TrajectoryReader(
            paths, space, labeler, format=reading.trace_format, skip_bad=reading.skip_bad
        )
        super().__init__(reader, paths, reading)

    def tally(self) -> Counter[tuple[str, str]]:
        """Return how many calls there were by deciding layer and tool; empty for runs that were labelled before."""
        return Counter(self.reader.tally)

    def layers(self) -> Counter[str]:
        """Return how many calls each labelling layer decided; empty for runs that were labelled before."""
        layers: Counter[str] = Counter()
        for (layer, _), count in self.reader.tally.items():
            layers[layer] += count
        return layers

    def misses(self) -> Counter[str]:
        """Return the tools no layer knew, with the number of their calls."""
        return Counter({tool: n for (layer, tool), n in self.reader.tally.items() if layer == "default"})

    def provenance(self) -> dict[str, object]:
        """Return what was read, for a model file."""
        found: dict[str, object] = {"corpus_digest": self.reader.digest}
        if self.n_bad:
            found["bad_records_skipped"] = self.n_bad
        if self.reader.other_catalogues:
            found["labelled_with_catalogues"] = sorted(self.reader.other_catalogues.values())
        return found

    def summarise(self) -> None:
        """Say on standard error what was passed over, skipped or repeated."""
        super().summarise()
        if self.quiet:
            return
        for path, identity in self.reader.other_catalogues.items():
            remark(
                f"{path} was labelled with another catalogue ({identity}); its effects stand as they were read"
            )
        if doubled := self.reader.report.duplicate_ids:
            remark(f"{doubled} runs have the id of another; nothing tells them apart", style="red")


def _same(output: Path, path: str) -> bool:
    return output.exists() and Path(path).is_file() and output.samefile(path)
