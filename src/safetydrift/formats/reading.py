"""Reading traces from files: one call for every source, with bounded memory and an account of what was read.

A file holds one record per line, or a single JSON document: a record, or an array of them. Which of the two
is told by its suffix (.jsonl and .ndjson hold lines) and otherwise by its first line. What kind of records it
holds is told by its first readable one, so a file never mixes formats. In some formats a record is a run; in
others, the logs, runs are put together from the records of a file, of files that have a key in common, or of all.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from safetydrift.errors import MissingExtraError, TraceFormatError
from safetydrift.formats.agentdojo import AgentDojo
from safetydrift.formats.atif import Atif
from safetydrift.formats.chat import Chat
from safetydrift.formats.claude_code import ClaudeCode
from safetydrift.formats.codex import Codex
from safetydrift.formats.eval_file import is_eval, sample_records
from safetydrift.formats.files import LINE_SUFFIXES, Damage, Lines, files_below, json_suffix
from safetydrift.formats.format import HOSTILE, Format, LogFormat, Place, is_no_json, why
from safetydrift.formats.gemini_cli import GeminiCLI
from safetydrift.formats.inspect_log import InspectLog
from safetydrift.formats.langfuse import Langfuse
from safetydrift.formats.langsmith import LangSmith
from safetydrift.formats.mlflow import MLflow
from safetydrift.formats.native import Native
from safetydrift.formats.odcv import Odcv
from safetydrift.formats.openai_agents import OpenAIAgents
from safetydrift.formats.openhands import OpenHands
from safetydrift.formats.opentelemetry import OpenTelemetry
from safetydrift.formats.report import KEPT_BAD_RECORDS, BadRecord, FormatAccount, ReadReport
from safetydrift.formats.responses import Responses
from safetydrift.formats.scout import Scout
from safetydrift.formats.sessions import Sessions
from safetydrift.formats.tau_bench import TauBench

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from safetydrift.formats.format import Gatherer
    from safetydrift.trace import Trace

RECORD_FORMATS: tuple[Format, ...] = (
    Native(),
    AgentDojo(),
    OpenHands(),
    Odcv(),
    TauBench(),
    Chat(),
    InspectLog(),
    Sessions(),
    Responses(),
    Scout(),
)
LOG_FORMATS: tuple[LogFormat, ...] = (
    ClaudeCode(),
    Codex(),
    GeminiCLI(),
    Atif(),
    OpenTelemetry(),
    OpenAIAgents(),
    Langfuse(),
    LangSmith(),
    MLflow(),
)
FORMATS: tuple[Format | LogFormat, ...] = (*RECORD_FORMATS, *LOG_FORMATS)
"""Every trace format, in no order of preference: at most one of them recognises a record."""

MAX_RECORD_BYTES = 64 << 20
HEAD_LINES, HEAD_BYTES = 20, 1 << 16
"""How much of a file is looked at to tell whether others tell of the same runs."""


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
    Sidecar("prompts", frozenset({"sessionId", "messageId", "type", "message", "timestamp"})),
)
"""What stands beside the traces of AgentDojo and AgentDyn, beside those of OpenAgentSafety, and Gemini CLI's chats."""


class TraceReader:
    """The traces in some files; iterating reads them, and iterating again reads them again.

    Memory is bounded by ``max_record_bytes``, or by the longest run where it is spread over several records, apart
    from one hash per trace, kept to tell repeated ids. Spans wait for the rest of their runs on disk if need be.

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
        format: Format | LogFormat | None = None,  # noqa: A002  # the word users know
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
        self._pools: dict[str, Gatherer] = {}
        self._batch: dict[str, Gatherer] = {}

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
        self.report = ReadReport()
        self._pools = {}
        seen: set[int] = set()
        for name, trace in self._runs():
            self.report.traces += 1
            self.report.steps += len(trace.steps)
            self.report.of(name).add(trace)
            self.report.duplicate_ids += hash(trace.id) in seen
            seen.add(hash(trace.id))
            yield trace

    def _runs(self) -> Iterator[tuple[str, Trace]]:
        """Yield every run with the name of its format."""
        batches = _batches(list(self._files()))
        metered = self._metered([path for batch in batches for path in batch])
        for batch in batches:
            self._batch = {}
            for _ in batch:
                path, on_read = next(metered)
                self.report.files += 1
                records, n_bad = self.report.records, self.report.n_bad
                yield from self._read_file(path, on_read)
                if self.report.records == records and self.report.n_bad == n_bad:
                    self.report.empty.append(str(path))
            yield from _finished(self._batch)
        next(metered, None)
        yield from _finished(self._pools)

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
                self._bad(Place(str(path)), str(damage))

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

    def _read_file(self, path: Path, on_read: Callable[[int], None]) -> Iterator[tuple[str, Trace]]:
        try:
            if is_eval(path):
                yield from self._traces(path, self._samples(path, on_read))
                return
            with Lines(path, self._limit, on_read) as lines:
                yield from self._traces(path, self._documents(path, lines), lines)
        except Damage as damage:
            self._bad(Place(str(path)), str(damage))

    def _documents(self, path: Path, lines: Lines) -> Iterator[tuple[int | None, bytes]]:
        """Yield each JSON text of a file, with its line unless it is the file as a whole."""
        rows: Iterable[tuple[int, bytes | None]] = lines
        if json_suffix(path) not in LINE_SUFFIXES:
            for first in lines:
                if first[1] is None or _holds_text(first[1]):
                    if first[1] is not None and not _is_json(first[1]):
                        yield from self._whole(path, first[1], lines)
                        return
                    rows = chain([first], lines)
                    break
        for number, row in rows:
            if row is None:
                self.report.records += 1
                self._bad(Place(str(path), number), f"the record is longer than {self._limit} bytes")
            elif row and not row.isspace():
                yield number, row

    def _samples(self, path: Path, on_read: Callable[[int], None]) -> Iterator[tuple[int, bytes]]:
        """Yield each sample of an Inspect log, with its number in place of a line."""
        for number, text in sample_records(path, self._limit, on_read):
            if text is None:
                self.report.records += 1
                self._bad(Place(str(path), number), f"the sample is longer than {self._limit} bytes")
            else:
                yield number, text

    def _whole(self, path: Path, first: bytes, lines: Lines) -> Iterator[tuple[None, bytes]]:
        rest = lines.rest()
        if rest is None or len(first) + len(rest) >= self._limit:
            self.report.records += 1
            self._bad(
                Place(str(path)), f"the document is longer than {self._limit} bytes; use one line per record"
            )
        else:
            yield None, first + b"\n" + rest

    def _traces(
        self, path: Path, documents: Iterable[tuple[int | None, bytes]], lines: Lines | None = None
    ) -> Iterator[tuple[str, Trace]]:
        kind = _Kind(self._format)
        file, report = str(path), self.report
        take: Callable[[bytes, Place], Iterable[Trace]] | None = None
        for line, data in documents:
            if kind.log is not None and data[:1] == b"{":
                take = take or self._gatherer(kind.log).take
                report.records += 1
                try:
                    runs = take(data, Place(file, line))
                except HOSTILE as error:
                    self._refuse(Place(file, line), error, kind, lines)
                else:
                    for trace in runs:
                        yield kind.log.name, trace
                continue
            try:
                records = kind.records(data)
            except HOSTILE as error:
                self.report.records += 1
                self._refuse(Place(file, line), error, kind, lines)
                continue
            for number, record in records:
                self.report.records += 1
                yield from self._record(Place(file, line, number), record, kind, lines)

    def _record(
        self, place: Place, record: Any, kind: _Kind, lines: Lines | None
    ) -> Iterator[tuple[str, Trace]]:
        try:
            kind.find(record)
            if kind.log is not None:
                for trace in self._gatherer(kind.log).take(kind.data_of(record, place.number), place):
                    yield kind.log.name, trace
            elif kind.format is not None:
                trace = kind.format.read(record, f"{Path(place.path).name}:{_number(place)}")
                self.report.of(kind.format.name).used += 1
                yield kind.format.name, trace
            else:
                kind.check_sidecar(record)
                self.report.sidecars[place.path] += 1
        except HOSTILE as error:
            self._refuse(place, error, kind, lines)

    def _refuse(self, place: Place, error: BaseException, kind: _Kind, lines: Lines | None) -> None:
        """Tell of a record that cannot be read; the last line of a log may be one that was still being written."""
        if kind.log is not None and lines is not None and lines.is_torn and is_no_json(error):
            self._account(kind.log).skipped("a last line that is not complete", place)
        else:
            self._bad(place, kind.mismatch(error), kind)

    def _gatherer(self, found: LogFormat) -> Gatherer:
        kept = self._pools if found.pooled else self._batch
        if found.name not in kept:
            kept[found.name] = found.gather(self._account(found))
        return kept[found.name]

    def _account(self, found: LogFormat) -> FormatAccount:
        return FormatAccount(self.report.of(found.name), self._bad)

    def _bad(self, place: Place, reason: str, kind: _Kind | None = None) -> None:
        reason = f"record {place.number}: {reason}" if place.number else reason
        if not self._skip_bad:
            raise TraceFormatError(place.path, place.line, reason)
        self.report.n_bad += 1
        if kind is not None and kind.name:
            self.report.of(kind.name).bad += 1
        if len(self.report.bad) < KEPT_BAD_RECORDS:
            self.report.bad.append(BadRecord(place.path, place.line, reason))


def _finished(gatherers: dict[str, Gatherer]) -> Iterator[tuple[str, Trace]]:
    for name, gatherer in gatherers.items():
        for trace in gatherer.finish():
            yield name, trace


def _number(place: Place) -> str:
    return f"{place.line or 1}.{place.number}" if place.number else f"{place.line or 1}"


def _batches(paths: list[Path]) -> list[list[Path]]:
    """Return files in the order given, but those that have a key in common right after the first of them."""
    joined = list(range(len(paths)))

    def first_of(number: int) -> int:
        while joined[number] != number:
            joined[number] = number = joined[joined[number]]
        return number

    by_key: dict[str, int] = {}
    for number, path in enumerate(paths):
        for key in _keys(path) if len(paths) > 1 else ():
            one, other = sorted((first_of(number), first_of(by_key.setdefault(key, number))))
            joined[other] = one
    batches: dict[int, list[Path]] = {}
    for number, path in enumerate(paths):
        batches.setdefault(first_of(number), []).append(path)
    return list(batches.values())


def _keys(path: Path) -> Iterator[str]:
    """Yield what a file of lines has in common with others that tell of the same runs."""
    if json_suffix(path) not in LINE_SUFFIXES or not path.is_file():
        return
    try:
        with Lines(path, HEAD_BYTES, lambda _n: None) as lines:
            head = _decodable(lines)
            first = next(head, None)
            for one in LOG_FORMATS:
                if not one.pooled and one.recognises(first):
                    yield from one.keys(path, chain([first], head))
                    return
    except (Damage, MissingExtraError):
        return  # reading it will say why


def _decodable(lines: Lines) -> Iterator[object]:
    """Yield what the first lines of a file say, without those that are too long or no JSON."""
    for number, line in lines:
        try:
            if line is not None:
                yield msgspec.json.decode(line)
        except HOSTILE:
            pass
        if number >= HEAD_LINES:
            return


class _Kind:
    """What a file holds, found out from its first record unless the caller said so."""

    def __init__(self, asked_for: Format | LogFormat | None) -> None:
        self._asked_for = asked_for
        self.format: Format | None = None
        self.log: LogFormat | None = None
        self._sidecar: Sidecar | None = None
        self._decode: Callable[[bytes], Any] = msgspec.json.decode
        self._data = b""

    @property
    def name(self) -> str:
        """The name of the format found, if one was."""
        found = self.format or self.log
        return "" if found is None else found.name

    def records(self, data: bytes) -> Iterable[tuple[int, Any]]:
        """Return the records in a text with their numbers in an array, from 1; 0 for one that stands alone."""
        self._data = data
        if self.log is not None:
            if data.lstrip()[:1] != b"[":
                return ((0, data),)
            return enumerate(msgspec.json.decode(data, type=list[msgspec.Raw]), 1)
        value = self._decode(data)
        return enumerate(value, 1) if self._is_array_of_records(value) else ((0, value),)

    def _is_array_of_records(self, value: object) -> bool:
        formats = FORMATS if self._asked_for is None else (self._asked_for,)
        return isinstance(value, list) and not any(one.recognises(value) for one in formats)

    def find(self, record: object) -> None:
        """Find out what the file holds, from its first record."""
        if self.name or self._sidecar is not None:
            return
        self._sidecar = next((one for one in SIDECARS if one.recognises(record)), None)
        if self._sidecar is None:
            name = (self._asked_for or _recognised(record)).name
            self.log = next((one for one in LOG_FORMATS if one.name == name), None)
            self.format = next((one for one in RECORD_FORMATS if one.name == name), None)
        if self.format is not None:
            self._decode = msgspec.json.Decoder(self.format.record_type).decode

    def check_sidecar(self, record: object) -> None:
        """Refuse a record that is none of the sidecars this file began with."""
        if self._sidecar is not None and not self._sidecar.recognises(record):
            raise ValueError(f"not one of the {self._sidecar.name} this file began with")

    def data_of(self, record: Any, number: int) -> bytes:
        """Return the bytes of a record of a log, which may have been decoded to tell what it is."""
        if isinstance(record, (bytes, msgspec.Raw)):
            return bytes(record)
        return msgspec.json.encode(record) if number else self._data

    def mismatch(self, error: BaseException) -> str:
        """Return why a record is not what the file holds."""
        if not self.name or is_no_json(error):
            return why(error)
        return f"not a trace of format {self.name}: {why(error)}"


def _recognised(record: object) -> Format | LogFormat:
    fitting = [one for one in FORMATS if one.recognises(record)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise ValueError(f"could be {' or '.join(one.name for one in fitting)}; say which with format=...")
    raise ValueError(f"not a record of a known format ({', '.join(one.name for one in FORMATS)})")


def _holds_text(row: bytes) -> bool:
    return bool(row) and not row.isspace()


def _is_json(row: bytes) -> bool:
    try:
        msgspec.json.decode(row, type=msgspec.Raw)
    except HOSTILE:
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
    progress: Callable[[int, int], None] | None = None,
) -> TraceReader:
    """Read traces, one at a time.

    Parameters
    ----------
    paths
        Files and folders, or one of them. Folders are walked for .json, .jsonl and .ndjson, compressed or
        not, and for the logs of Inspect (.eval); a file that is named is read whatever it is called. gzip, xz
        and Zstandard are told by content. A run that is spread over several of the files is one run.
    format
        Name of the one format to read; by default each file's format is recognised.
    skip_bad
        Go on after a bad record and keep it in the report, instead of raising.
    max_record_bytes
        The longest line, or document of several lines, to accept.
    progress
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
        on_progress=progress,
    )
