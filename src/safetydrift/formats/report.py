"""The account of a reading: what was read, format by format, and what was not."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from safetydrift.errors import TraceFormatError
from safetydrift.formats.run_builder import ARGUMENTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from safetydrift.effects.catalogue import Catalogue
    from safetydrift.formats.format import Place
    from safetydrift.trace import Trace

KEPT_BAD_RECORDS = 1000
KEPT_TOOLS = 10_000


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
class FormatSummary:
    """What was read of one format. Every item that was met is counted once: used, skipped, or bad.

    Attributes
    ----------
    used
        Items (records; in logs their lines, spans or messages) that became part of a run.
    skipped
        Number of items that belong to the format but say nothing of what an agent did, by reason.
    skipped_at
        Where the first item of each reason stands, as ``path:line``.
    bad
        Items that could not be read.
    runs, calls, messages
        Runs, their calls, and messages of users.
    without_arguments
        Calls whose arguments are not in the record, or were cut there; they are malformed.
    without_result
        Calls whose result is not in the record although there was one, or was cut there.
    refused
        Calls that were refused, and so were not made.
    unread
        Messages and model calls that are not in the record, or were cut there.
    tools
        Number of calls by the tool's name; names beyond the first ten thousand are counted as an empty name.
    """

    used: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    skipped_at: dict[str, str] = field(default_factory=dict)
    bad: int = 0
    runs: int = 0
    calls: int = 0
    messages: int = 0
    without_arguments: int = 0
    without_result: int = 0
    refused: int = 0
    unread: int = 0
    tools: Counter[str] = field(default_factory=Counter)

    def unknown_tools(self, catalogue: Catalogue) -> Counter[str]:
        """Return the tools that a catalogue knows neither by name nor by pattern, with the number of their calls."""
        known = catalogue.tools
        found = {
            name: n for name, n in self.tools.items() if name not in known and catalogue.pattern(name) is None
        }
        return Counter(found)

    def add(self, trace: Trace) -> None:
        """Count a run."""
        self.runs += 1
        self.calls += len(trace.steps)
        self.messages += trace.messages
        self.unread += trace.unread
        for step in trace.steps:
            name = step.call.name
            self.tools[name if name in self.tools or len(self.tools) < KEPT_TOOLS else ""] += 1
            self.refused += bool(step.refused_by)
            if step.unread:
                self.without_arguments += ARGUMENTS in step.unread
                self.without_result += len(step.unread) - (ARGUMENTS in step.unread)

    def __add__(self, other: FormatSummary) -> FormatSummary:
        """Return the summary of both."""
        return FormatSummary(
            **{
                name: getattr(other, name) | getattr(self, name)
                if name == "skipped_at"
                else getattr(self, name) + getattr(other, name)
                for name in self.__dataclass_fields__
            }
        )


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
    formats
        The same and more, by the name of the format.
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
    formats: dict[str, FormatSummary] = field(default_factory=dict)
    bad: list[BadRecord] = field(default_factory=list)
    n_bad: int = 0
    passed_over: dict[str, str] = field(default_factory=dict)
    empty: list[str] = field(default_factory=list)
    sidecars: Counter[str] = field(default_factory=Counter)
    duplicate_ids: int = 0

    def of(self, name: str) -> FormatSummary:
        """Return the summary of a format, a new one if nothing was read of it yet."""
        return self.formats.setdefault(name, FormatSummary())

    def __add__(self, other: ReadReport) -> ReadReport:
        """Return the report of both readings."""
        names = dict.fromkeys((*self.formats, *other.formats))
        nothing = FormatSummary()
        both = {name: self.formats.get(name, nothing) + other.formats.get(name, nothing) for name in names}
        return ReadReport(
            files=self.files + other.files,
            records=self.records + other.records,
            traces=self.traces + other.traces,
            steps=self.steps + other.steps,
            formats=both,
            bad=(self.bad + other.bad)[:KEPT_BAD_RECORDS],
            n_bad=self.n_bad + other.n_bad,
            passed_over=self.passed_over | other.passed_over,
            empty=self.empty + other.empty,
            sidecars=self.sidecars + other.sidecars,
            duplicate_ids=self.duplicate_ids + other.duplicate_ids,
        )


class FormatAccount:
    """What a log format tells of its reading (`format.Account`), kept in its summary."""

    def __init__(self, summary: FormatSummary, on_bad: Callable[[Place, str], None]) -> None:
        self._summary, self._on_bad = summary, on_bad

    @property
    def items(self) -> int:
        """How many items were counted."""
        return self._summary.used + self._summary.skipped.total() + self._summary.bad

    def used(self, n: int = 1) -> None:
        """Count items that became part of a run."""
        self._summary.used += n

    def skipped(self, reason: str, place: Place, n: int = 1) -> None:
        """Count items that say nothing of what an agent did."""
        self._summary.skipped[reason] += n
        self._summary.skipped_at.setdefault(reason, f"{place.path}:{place.line or 1}")

    def bad(self, place: Place, reason: str) -> None:
        """Count an item that cannot be read; raises unless bad records are skipped."""
        self._summary.bad += 1
        self._on_bad(place, reason)
