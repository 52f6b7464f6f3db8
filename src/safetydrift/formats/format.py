"""What a trace format is, and what all of them share.

A format is one object that recognises the records of one source and reads them as traces. It never sees a
file: ``reading`` opens, splits and decodes, and adds file and line to what a format says about a bad record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from safetydrift.trace import Step, ToolCall, Trace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


class FormatMismatch(ValueError):  # noqa: N818  # a reason; the error callers meet is TraceFormatError
    """A record is not what its format says it should be. The message is the reason alone."""


class Format(Protocol):
    """Reads the records of one source.

    Attributes
    ----------
    name
        What to call it in ``read_traces(format=...)``.
    description
        One line for a person who has to choose.
    record_type
        What the JSON of a record is decoded into; ``Any`` for plain dicts and lists.
    """

    @property
    def name(self) -> str:
        """What to call it."""

    @property
    def description(self) -> str:
        """What it reads, in one line."""

    @property
    def record_type(self) -> Any:
        """What a record is decoded into."""

    def recognises(self, record: object) -> bool:
        """Return whether decoded JSON is a record of this format, and of no other."""

    def read(self, record: object, fallback_id: str) -> Trace:
        """Return the trace in a record, without changing the record.

        Parameters
        ----------
        record
            Decoded JSON, or a ``record_type``.
        fallback_id
            ``<file name>:<line>``: the trace's id if the record has none, and all there is to know of the
            file.

        Raises
        ------
        ValueError
            If the record is not well formed; the message says what is wrong with it.
        """


HOSTILE = (ValueError, RecursionError, MemoryError)
"""What bytes from elsewhere can make a parser or a format raise; anything else is a mistake of ours."""


def is_no_json(error: BaseException) -> bool:
    """Return whether a parser found no JSON, as opposed to JSON of something else."""
    return isinstance(error, msgspec.DecodeError) and not isinstance(error, msgspec.ValidationError)


def why(error: BaseException) -> str:
    """Return what is wrong with a record, in words for the person who has to look at it."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, MemoryError):
        return "needs more memory than there is"
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8: {error}"
    return f"not JSON: {error}" if is_no_json(error) else str(error)


class Place(NamedTuple):
    """Where a record stands: file, line (None for a whole document), and number in an array from 1, else 0."""

    path: str
    line: int | None = None
    number: int = 0


class Account(Protocol):
    """What a log format tells of its reading, so that nothing is left out in silence.

    Every item a format meets (a line, a span, a message) is told of once: used, skipped, or bad.
    """

    @property
    def items(self) -> int:
        """How many were told of."""

    def used(self, n: int = 1) -> None:
        """Tell of items that became part of a run."""

    def skipped(self, reason: str, place: Place, n: int = 1) -> None:
        """Tell of items that belong to the format but say nothing of what an agent did."""

    def bad(self, place: Place, reason: str) -> None:
        """Tell of an item that cannot be read; raises unless bad records are skipped."""


class Gatherer(Protocol):
    """Puts the records of some files together, run by run."""

    def take(self, data: bytes, place: Place) -> Iterable[Trace]:
        """Take the JSON of one record, and return the runs that are complete with it.

        Raises
        ------
        ValueError
            If the record is not well formed.
        """

    def finish(self) -> Iterator[Trace]:
        """Yield the runs that were not complete before the last record."""


class LogFormat(Protocol):
    """Reads a source in which a run is spread over several records, or over several files.

    Attributes
    ----------
    pooled
        Whether the records of one run may lie in any of the files read. If not, they lie in one file, or in
        files that have a key in common.
    """

    @property
    def name(self) -> str:
        """What to call it."""

    @property
    def description(self) -> str:
        """What it reads, in one line."""

    @property
    def pooled(self) -> bool:
        """Whether runs may be spread over any of the files."""

    def recognises(self, record: object) -> bool:
        """Return whether decoded JSON is a record of this format, and of no other."""

    def keys(self, path: Path, head: Iterable[object]) -> Iterator[str]:
        """Yield what a file has in common with others that tell of the same runs, from its first records."""

    def gather(self, account: Account) -> Gatherer:
        """Return what takes the records of one batch of files."""


class Part(msgspec.Struct):
    """A piece of a message's content. Sources differ in what they call the text."""

    type: str = "text"
    text: str | None = None
    content: Any = None


Content = str | list[Part | str] | None


def text_of(content: Content) -> str:
    """Return the text of a message, its parts on lines of their own; pictures and the like have none."""
    if isinstance(content, str):
        return content
    return "\n".join(text for part in content or () if (text := _text_of_part(part)))


def _text_of_part(part: Part | str) -> str:
    if isinstance(part, str):
        return part
    if part.text is not None:
        return part.text
    return part.content if part.type == "text" and isinstance(part.content, str) else ""


def proposed(name: str, arguments: object, call_id: str | None = None) -> ToolCall:
    """Return a call whose arguments are an object, JSON text of one, or JSON of such text; else they are malformed."""
    decoded = arguments
    for _ in range(2):
        if isinstance(decoded, str):
            try:
                decoded = msgspec.json.decode(decoded)
            except (ValueError, RecursionError):
                decoded = None
    if isinstance(decoded, dict):
        return ToolCall(name, decoded, id=call_id or "")
    raw = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
    return ToolCall(name, id=call_id or "", malformed=raw)


def stem(fallback_id: str) -> str:
    """Return the file name in a fallback id without line number and suffixes of format and compression."""
    name = fallback_id.rpartition(":")[0]
    for suffix in (".gz", ".xz", ".zst", ".json", ".jsonl", ".ndjson"):
        name = name.removesuffix(suffix)
    return name


class Transcript:
    """Turns a conversation, told in order, into steps.

    Attributes
    ----------
    prompt, messages
        What the user said first, and how many messages they sent.
    turn
        Index of the agent's latest message; -1 before the first.
    """

    def __init__(self) -> None:
        self.prompt = ""
        self.messages = 0
        self.turn = -1
        self._said: list[str] = []
        self._calls: list[tuple[ToolCall, int, str]] = []
        self._answers: dict[int, tuple[str, str | None]] = {}
        self._first_open = 0
        self._with_id: dict[str, int] = {}

    def __len__(self) -> int:
        """Return the number of calls told so far."""
        return len(self._calls)

    def user(self, text: str) -> None:
        """Tell what the user said."""
        self.prompt = self.prompt or text
        self.messages += 1
        self._said.append(text)

    def agent(self) -> None:
        """Tell that the agent began another message."""
        self.turn += 1
        self._first_open = len(self._calls)
        self._with_id.clear()

    def call(self, call: ToolCall, turn: int | None = None) -> int:
        """Tell a call, of the agent's latest message unless a turn is given, and return its index."""
        self._calls.append((call, max(self.turn, 0) if turn is None else turn, "\n".join(self._said)))
        self._said.clear()
        index = len(self._calls) - 1
        if call.id:
            self._with_id.setdefault(call.id, index)
        return index

    def unanswered(self, call_id: str | None) -> int | None:
        """Return the call of the latest message that a result answers: by id, else the first still open."""
        named = self._with_id.get(call_id or "")
        if named is not None and named not in self._answers:
            return named
        while self._first_open in self._answers:
            self._first_open += 1
        return self._first_open if self._first_open < len(self._calls) else None

    def answer(self, index: int, result: str, error: str | None = None) -> None:
        """Tell what came back for a call."""
        self._answers[index] = result, error

    def steps(self) -> tuple[Step, ...]:
        """Return every call told, with what came back."""
        steps = []
        for i, (call, turn, said) in enumerate(self._calls):
            result, error = self._answers.get(i, (None, None))
            steps.append(Step(call, result, error, turn, said))
        return tuple(steps)
