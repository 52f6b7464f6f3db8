"""Whatever a user points at, read as trajectories: traces are labelled on the way, labelled runs are taken as such."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from safetydrift.effects.labeling import label_trace
from safetydrift.errors import TraceFormatError
from safetydrift.formats.corpus import corpus_file
from safetydrift.formats.files import Damage, Lines, files_below
from safetydrift.formats.reading import MAX_RECORD_BYTES, TraceReader, read_traces
from safetydrift.formats.report import ReadReport
from safetydrift.formats.runs import catalogue_of, encode_run, is_runs_header, read_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from safetydrift.effects.labeler import Labeler
    from safetydrift.states.space import StateSpace
    from safetydrift.states.trajectory import Trajectory

CORPUS = "corpus"
"""The path that stands for the corpus that comes with SafetyDrift."""


class TrajectoryReader:
    """Read trajectories from trace files, folders of them, labelled runs, or the shipped corpus.

    Parameters
    ----------
    paths
        Files, folders, or the word ``"corpus"``.
    space
        The state space to read them in.
    labeler
        Reads what each call of a trace does; labelled runs bring their effects along.
    format
        Read every trace file as this format instead of detecting it.
    skip_bad
        Go on after a trace record that cannot be read, and count it in the report. Labelled runs are our own
        output: a damaged one is always an error.
    on_progress
        Called with bytes read and bytes in all, as they lie on disk.

    Raises
    ------
    CatalogueError
        If there are traces to label and the labeler's catalogue does not know the dimensions of the space.

    Attributes
    ----------
    report
        What was read so far, and what was not.
    tally
        Number of calls by (layer that decided the effect, tool name), of the traces labelled here.
    digest
        SHA-256 over the runs read so far, in order; it names a labelled data set, whatever files it came in.
    other_catalogues
        Labelled runs that were read with another catalogue than the labeler's: its identity, by file.
    """

    def __init__(
        self,
        paths: Sequence[str | Path],
        space: StateSpace,
        labeler: Labeler,
        *,
        format: str | None = None,  # noqa: A002  # the word users know
        skip_bad: bool = False,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.on_progress = on_progress
        self._of_runs = ReadReport()
        self._reader: TraceReader | None = None
        self.tally: dict[tuple[str, str], int] = {}
        self._hash = sha256()
        self._space, self._labeler = space, labeler
        self._format, self._skip_bad = format, skip_bad
        self._runs: dict[Path, bytes] = {}
        self._traces: list[Path] = []
        self._passed_over: dict[str, str] = {}
        for path in paths:
            self._sort(corpus_file() if str(path) == CORPUS else Path(path))
        self.other_catalogues = self._other_catalogues()
        if self._traces:
            labeler.require_cover(space)

    def _sort(self, path: Path) -> None:
        """Tell labelled runs from traces; a folder may hold both."""
        if not path.is_dir():
            header = _header(path)
            if header:
                self._runs[path] = header
            else:
                self._traces.append(path)
            return
        files = _files(path)
        runs = {file: header for file, reason in files if not reason and (header := _header(file))}
        if not runs:
            self._traces.append(path)
            return
        self._runs |= runs
        self._traces += [file for file, reason in files if not reason and file not in runs]
        self._passed_over |= {str(file): reason for file, reason in files if reason}

    def _other_catalogues(self) -> dict[str, str]:
        mine = self._labeler.catalogue.identity
        identities = {str(path): catalogue_of(header) for path, header in self._runs.items()}
        return {path: identity for path, identity in identities.items() if identity not in {"", mine}}

    @property
    def report(self) -> ReadReport:
        """What was read so far, and what was not."""
        return self._of_runs if self._reader is None else self._of_runs + self._reader.report

    @property
    def digest(self) -> str:
        """SHA-256 over the runs read so far."""
        return self._hash.hexdigest()

    def __iter__(self) -> Iterator[Trajectory]:
        """Read the trajectories.

        Raises
        ------
        TraceFormatError
            At the first record that cannot be read, unless they are skipped.
        SpaceMismatchError
            If labelled runs cannot be read in the space asked for.
        """
        self.tally, self._hash, self._reader = {}, sha256(), None
        self._of_runs = ReadReport(passed_over=dict(self._passed_over))
        for path in self._runs:
            yield from self._hashed(self._read_runs(path))
        if self._traces:
            yield from self._hashed(self._read_traces())

    def _read_runs(self, path: Path) -> Iterator[Trajectory]:
        total = path.stat().st_size
        done = 0

        def on_read(n: int) -> None:
            nonlocal done
            done += n
            if self.on_progress is not None:
                self.on_progress(done, total)

        try:
            with Lines(path, MAX_RECORD_BYTES, on_read) as lines:
                self._of_runs.files += 1
                for run in read_runs(lines, str(path), self._space):
                    self._of_runs.traces += 1
                    self._of_runs.steps += run.n_steps
                    yield run
        except Damage as damage:
            raise TraceFormatError(str(path), None, str(damage)) from damage

    def _read_traces(self) -> Iterator[Trajectory]:
        reader = read_traces(
            self._traces,
            format=self._format,
            skip_bad=self._skip_bad,
            progress=lambda done, total: self.on_progress and self.on_progress(done, total),
        )
        self._reader = reader
        for trace in reader:
            yield label_trace(trace, self._labeler, self._space, self.tally)

    def _hashed(self, runs: Iterator[Trajectory]) -> Iterator[Trajectory]:
        for run in runs:
            self._hash.update(encode_run(run))
            yield run


def _header(path: Path) -> bytes:
    """Return the header of a file of labelled runs; nothing for any other file."""
    if not path.is_file():
        return b""
    try:
        with Lines(path, MAX_RECORD_BYTES, lambda _n: None) as lines:
            first = next(iter(lines), (1, b""))[1] or b""
    except Damage:
        return b""  # reading it as traces will say what is wrong
    return first if is_runs_header(first) else b""


def _files(folder: Path) -> list[tuple[Path, str]]:
    try:
        return list(files_below(folder))
    except Damage:
        return []
