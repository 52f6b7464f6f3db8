"""Reading traces from files: one call for every source, with bounded memory and an account of what was read.

A file holds one record per line, or a single JSON document: a record, or an array of them. Which of the two
is told by its suffix (.jsonl and .ndjson hold lines) and otherwise by its first line. What kind of records it
holds is told by its first readable one, so a file never mixes formats.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from safetydrift.errors import TraceFormatError
from safetydrift.formats.agentdojo import AgentDojo
from safetydrift.formats.chat import Chat
from safetydrift.formats.eval_file import is_eval, sample_records
from safetydrift.formats.files import LINE_SUFFIXES, Damage, Lines, files_below, json_suffix
from safetydrift.formats.inspect_log import InspectLog
from safetydrift.formats.native import Native
from safetydrift.formats.odcv import Odcv
from safetydrift.formats.openhands import OpenHands
from safetydrift.formats.sessions import Sessions
from safetydrift.formats.tau_bench import TauBench

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from safetydrift.formats.format import Format
    from safetydrift.trace import Trace

FORMATS: tuple[Format, ...] = (
    Native(),
    AgentDojo(),
    OpenHands(),
    Odcv(),
    TauBench(),
    Chat(),
    InspectLog(),
    Sessions(),
)
"""Every trace format, in no order of preference: at most one of them recognises a record."""

MAX_RECORD_BYTES = 64 << 20
KEPT_BAD_RECORDS = 1000


@dataclass(frozen=True, slots=True)
class Sidecar:
    """Records that lie beside traces and belong to them, but are none."""

    name: str
    needs: frozenset[str]
    may_have: frozenset[str] = frozenset()

    def recognises(self, record: object) -> bool:
        """Return whether a record is of this kind."""
        return isinstance(record, dict) and self.needs <= record.keys() <= self.needs | self.may_have


SIDECARS = (
    Sidecar(
        "derived onsets",
        frozenset({"path", "n_calls", "first_match_call"}),
        frozenset({"exposure_after_call", "last_match_call", "security", "has_rule"}),
    ),
    Sidecar("task descriptions", frozenset({"task", "task.md"}), frozenset({"checkpoints.md"})),
)
"""What stands beside the traces of AgentDojo and AgentDyn, and beside those of OpenAgentSafety."""


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that was skipped.

    Attributes
    ----------
    path, line, reason
        As in ``TraceFormatError``.
    """

    path: str
    line: int | None
    reason: str

    def __str__(self) -> str:
        """Return place and reason on one line."""
        return str(TraceFormatError(self.path, self.line, self.reason))


@dataclass(slots=True)
class ReadReport:
    """What was read so far, and what was not.

    Attributes
    ----------
    files
        Files opened.
    records
        Records met in them, sidecars and bad ones included.
    traces, steps
        What they held.
    bad, n_bad
        The first thousand bad records, and how many there were.
    passed_over
        Reason by path, for the files in folders that were not opened.
    empty
        Files without a single record.
    sidecars
        Number of sidecar records by path.
    duplicate_ids
        Traces whose id had been met before.
    """

    files: int = 0
    records: int = 0
    traces: int = 0
    steps: int = 0
    bad: list[BadRecord] = field(default_factory=list)
    n_bad: int = 0
    passed_over: dict[str, str] = field(default_factory=dict)
    empty: list[str] = field(default_factory=list)
    sidecars: Counter[str] = field(default_factory=Counter)
    duplicate_ids: int = 0

    def __add__(self, other: ReadReport) -> ReadReport:
        """Return the report of both readings."""
        return ReadReport(
            files=self.files + other.files,
            records=self.records + other.records,
            traces=self.traces + other.traces,
            steps=self.steps + other.steps,
            bad=(self.bad + other.bad)[:KEPT_BAD_RECORDS],
            n_bad=self.n_bad + other.n_bad,
            passed_over=self.passed_over | other.passed_over,
            empty=self.empty + other.empty,
            sidecars=self.sidecars + other.sidecars,
            duplicate_ids=self.duplicate_ids + other.duplicate_ids,
        )


class TraceReader:
    """The traces in some files; iterating reads them, and iterating again reads them again.

    Memory is bounded by ``max_record_bytes``, apart from one hash per trace, kept to tell repeated ids.

    Attributes
    ----------
    report
        What the latest iteration has read so far.
    on_progress
        Called with bytes read and bytes in all, both as they lie on disk.
    """

    def __init__(
        self,
        paths: Iterable[Path],
        *,
        format: Format | None = None,  # noqa: A002  # the word users know
        skip_bad: bool = False,
        max_record_bytes: int = MAX_RECORD_BYTES,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.report = ReadReport()
        self.on_progress = on_progress
        self._paths = tuple(paths)
        self._format = format
        self._skip_bad = skip_bad
        self._limit = max_record_bytes

    def __repr__(self) -> str:
        """Return what is read, and how far that is."""
        return f"<TraceReader of {len(self._paths)} paths: {self.report.traces} traces read>"

    def __iter__(self) -> Iterator[Trace]:
        """Read the traces.

        Raises
        ------
        TraceFormatError
            At the first bad record, unless they are skipped.
        MissingExtraError
            If a file is compressed with Zstandard and the package for it is not installed.
        """
        report = self.report = ReadReport()
        seen: set[int] = set()
        for path, on_read in self._metered(list(self._files())):
            report.files += 1
            records, n_bad = report.records, report.n_bad
            for trace in self._read_file(path, on_read):
                report.traces += 1
                report.steps += len(trace.steps)
                report.duplicate_ids += hash(trace.id) in seen
                seen.add(hash(trace.id))
                yield trace
            if report.records == records and report.n_bad == n_bad:
                report.empty.append(str(path))

    def _files(self) -> Iterator[Path]:
        for path in self._paths:
            if not path.is_dir():
                yield path
                continue
            try:
                for found, reason in files_below(path):
                    if reason:
                        self.report.passed_over[str(found)] = reason
                    else:
                        yield found
            except Damage as damage:
                self._bad(path, None, str(damage))

    def _metered(self, files: list[Path]) -> Iterator[tuple[Path, Callable[[int], None]]]:
        """Yield every file with the function to tell how many of its bytes were read."""
        sizes = [_size(path) for path in files]
        total, before = sum(sizes), 0
        for path, size in zip(files, sizes, strict=True):
            yield path, self._meter(before, before + size, total)
            before += size
            if self.on_progress is not None:
                self.on_progress(before, total)

    def _meter(self, done: int, at_most: int, total: int) -> Callable[[int], None]:
        def on_read(n: int) -> None:
            nonlocal done
            done = min(done + n, at_most)  # a file may grow while it is read
            if self.on_progress is not None:
                self.on_progress(done, total)

        return on_read

    def _read_file(self, path: Path, on_read: Callable[[int], None]) -> Iterator[Trace]:
        try:
            if is_eval(path):
                yield from self._traces(path, self._samples(path, on_read))
                return
            with Lines(path, self._limit, on_read) as lines:
                yield from self._traces(path, self._documents(path, lines))
        except Damage as damage:
            self._bad(path, None, str(damage))

    def _documents(self, path: Path, lines: Lines) -> Iterator[tuple[int | None, bytes]]:
        """Yield each JSON text of a file, with its line unless it is the file as a whole."""
        rows: Iterable[tuple[int, bytes | None]] = (
            (n, row) for n, row in lines if row is None or _holds_text(row)
        )
        if json_suffix(path) not in LINE_SUFFIXES:
            for first in rows:
                if first[1] is not None and not _is_json(first[1]):
                    yield from self._whole(path, first[1], lines)
                    return
                rows = chain([first], rows)
                break
        for number, row in rows:
            if row is None:
                self.report.records += 1
                self._bad(path, number, f"the record is longer than {self._limit} bytes")
            else:
                yield number, row

    def _samples(self, path: Path, on_read: Callable[[int], None]) -> Iterator[tuple[int, bytes]]:
        """Yield each sample of an Inspect log, with its number in place of a line."""
        for number, text in sample_records(path, self._limit, on_read):
            if text is None:
                self.report.records += 1
                self._bad(path, number, f"the sample is longer than {self._limit} bytes")
            else:
                yield number, text

    def _whole(self, path: Path, first: bytes, lines: Lines) -> Iterator[tuple[None, bytes]]:
        rest = lines.rest()
        if rest is None or len(first) + len(rest) >= self._limit:
            self.report.records += 1
            self._bad(path, None, f"the document is longer than {self._limit} bytes; use one line per record")
        else:
            yield None, first + b"\n" + rest

    def _records(
        self, path: Path, documents: Iterable[tuple[int | None, bytes]], kind: _Kind
    ) -> Iterator[tuple[int | None, int, object]]:
        """Yield every record with its line and its number in an array, from 1; 0 where it stands alone."""
        for line, data in documents:
            try:
                value = kind.decode(data)
            except _HOSTILE as error:
                self.report.records += 1
                self._bad(path, line, _why(error))
                continue
            numbered = enumerate(value, 1) if kind.is_array_of_records(value) else [(0, value)]
            for number, record in numbered:
                self.report.records += 1
                yield line, number, record

    def _traces(self, path: Path, documents: Iterable[tuple[int | None, bytes]]) -> Iterator[Trace]:
        kind = _Kind(self._format)
        for line, number, record in self._records(path, documents, kind):
            place = f"{line or 1}.{number}" if number else f"{line or 1}"
            try:
                trace = kind.read(record, f"{path.name}:{place}")
            except _HOSTILE as error:
                self._bad(path, line, f"record {number}: {_why(error)}" if number else _why(error))
                continue
            if trace is None:
                self.report.sidecars[str(path)] += 1
            else:
                yield trace

    def _bad(self, path: Path, line: int | None, reason: str) -> None:
        if not self._skip_bad:
            raise TraceFormatError(str(path), line, reason)
        self.report.n_bad += 1
        if len(self.report.bad) < KEPT_BAD_RECORDS:
            self.report.bad.append(BadRecord(str(path), line, reason))


class _Kind:
    """What a file holds, found out from its first record unless the caller said so."""

    def __init__(self, asked_for: Format | None) -> None:
        self._asked_for = asked_for
        self._found: Format | Sidecar | None = None
        self._decode: Callable[[bytes], Any] = msgspec.json.decode

    def decode(self, data: bytes) -> Any:
        """Return what a record is read from."""
        try:
            return self._decode(data)
        except msgspec.ValidationError as error:
            if self._found is None:
                raise
            raise _mismatch(self._found, error) from error

    def is_array_of_records(self, value: object) -> bool:
        formats = FORMATS if self._asked_for is None else (self._asked_for,)
        return isinstance(value, list) and not any(one.recognises(value) for one in formats)

    def read(self, record: object, fallback_id: str) -> Trace | None:
        """Return the trace in a record, or None for a sidecar."""
        found = self._found = self._found or self._find(record)
        if isinstance(found, Sidecar):
            if not found.recognises(record):
                raise ValueError(f"not one of the {found.name} this file began with")
            return None
        try:
            return found.read(record, fallback_id)
        except ValueError as error:
            raise _mismatch(found, error) from error

    def _find(self, record: object) -> Format | Sidecar:
        for sidecar in SIDECARS:
            if sidecar.recognises(record):
                return sidecar
        found = self._asked_for or _recognised(record)
        self._decode = msgspec.json.Decoder(found.record_type).decode
        return found


def _mismatch(kind: Format | Sidecar, error: Exception) -> ValueError:
    return ValueError(f"not a trace of format {kind.name}: {error}")


def _recognised(record: object) -> Format:
    fitting = [one for one in FORMATS if one.recognises(record)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise ValueError(f"could be {' or '.join(one.name for one in fitting)}; say which with format=...")
    raise ValueError(f"not a record of a known format ({', '.join(one.name for one in FORMATS)})")


_HOSTILE = (ValueError, RecursionError, MemoryError)
"""What bytes from elsewhere can make a parser or a format raise; anything else is a mistake of ours."""


def _why(error: BaseException) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, MemoryError):
        return "needs more memory than there is"
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8: {error}"
    if isinstance(error, msgspec.DecodeError):
        return f"not JSON: {error}"
    return str(error)


def _holds_text(row: bytes) -> bool:
    return bool(row) and not row.isspace()


def _is_json(row: bytes) -> bool:
    try:
        msgspec.json.decode(row, type=msgspec.Raw)
    except _HOSTILE:
        return False
    return True


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except (OSError, ValueError):
        return 0  # reading it will say why


def read_traces(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    format: str | None = None,  # noqa: A002  # the word users know
    skip_bad: bool = False,
    max_record_bytes: int = MAX_RECORD_BYTES,
    on_progress: Callable[[int, int], None] | None = None,
) -> TraceReader:
    """Read traces, one at a time.

    Parameters
    ----------
    paths
        Files and folders, or one of them. Folders are walked for .json, .jsonl and .ndjson, compressed or
        not, and for the logs of Inspect (.eval); a file that is named is read whatever it is called. gzip, xz
        and Zstandard are told by content.
    format
        Name of the one format to read; by default each file's format is recognised.
    skip_bad
        Go on after a bad record and keep it in the report, instead of raising.
    max_record_bytes
        The longest line, or document of several lines, to accept.
    on_progress
        Called with bytes read so far and bytes in all, as they lie on disk.

    Returns
    -------
    TraceReader
        Iterate it for the traces; its ``report`` says what was read and what was not.

    Raises
    ------
    ValueError
        If there is no format of that name.
    """
    named = {one.name: one for one in FORMATS}
    if format is not None and format not in named:
        raise ValueError(f"no trace format {format!r}; there are {', '.join(named)}")
    return TraceReader(
        [Path(path) for path in ([paths] if isinstance(paths, (str, os.PathLike)) else paths)],
        format=None if format is None else named[format],
        skip_bad=skip_bad,
        max_record_bytes=max_record_bytes,
        on_progress=on_progress,
    )
