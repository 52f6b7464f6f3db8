"""Following decision logs while they grow, and what they say about each run.

A log may be rotated, cut off, or not be there yet, and its last line may be half written; none of that is an error
here. What stands in it is the words of others: every field is checked for being what it should be, and nothing is
kept without a bound.
"""

from __future__ import annotations

import json
import os
from collections import deque
from math import nan
from typing import TYPE_CHECKING

from safetydrift.guard.decision_log import MAX_LINE

if TYPE_CHECKING:
    from os import PathLike
    from typing import Any, BinaryIO, Self

MAX_BEFORE = 32 << 20
"""Bytes of what a log already holds that are read at first; older records are passed over."""
MAX_SESSIONS = 1000
"""Runs that are remembered; the one that has been silent longest is forgotten first."""
COURSE = 40
"""Probabilities that are remembered for a run."""
RECENT = 6
"""Calls, and alarms, that are remembered for a run."""
MAX_TEXT = 400
MAX_NUMBER = 1 << 60
_BLOCK = 8 << 20
_ALARMING = frozenset(("doubt", "made without being allowed", "not released"))


class Follower:
    """Reads what is new in a log, each time it is asked.

    Parameters
    ----------
    path
        The log. It may not be there yet.
    before
        Bytes of what it already holds that are read.
    """

    def __init__(self, path: str | PathLike[str], before: int = MAX_BEFORE) -> None:
        self.path = os.fspath(path)
        self._before = before
        self._file: BinaryIO | None = None
        self._rest = b""
        self._skipping = False

    @property
    def found(self) -> bool:
        """Whether there was a file so far."""
        return self._file is not None

    def new(self) -> list[dict[str, Any]]:
        """Return the records that were added since; lines that are none are passed over.

        Raises
        ------
        OSError
            If the file is there and cannot be read.
        """
        records: list[dict[str, Any]] = []
        if self._file is None and not self._open(self._before):
            return records
        self._drain(records)
        if self._replaced():
            # Whoever rotates a log may still have written to the old file; it was read to its end above.
            self.close()
            if self._open(None):
                self._drain(records)
        return records

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
        self._file, self._rest, self._skipping = None, b"", False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self, before: int | None) -> bool:
        try:
            self._file = open(self.path, "rb")  # noqa: PTH123, SIM115  # kept open, so that a rotated file is read out
        except FileNotFoundError:
            return False
        size = os.fstat(self._file.fileno()).st_size
        if before is not None and size > before:
            self._file.seek(size - before)
            self._skipping = True  # up to the begin of a line
        return True

    def _replaced(self) -> bool:
        """Return whether another file has taken this one's place."""
        assert self._file is not None  # noqa: S101
        mine = os.fstat(self._file.fileno())
        try:
            there = os.stat(self.path)  # noqa: PTH116
        except FileNotFoundError:
            return False  # about to be made again, perhaps
        return (there.st_dev, there.st_ino) != (mine.st_dev, mine.st_ino)

    def _drain(self, records: list[dict[str, Any]]) -> None:
        assert self._file is not None  # noqa: S101
        if os.fstat(self._file.fileno()).st_size < self._file.tell():  # it was cut off, and begins anew
            self._file.seek(0)
            self._rest, self._skipping = b"", False
        while block := self._file.read(_BLOCK):
            *lines, self._rest = (self._rest + block).split(b"\n")
            for line in lines:
                if not self._skipping and (record := _record(line)) is not None:
                    records.append(record)
                self._skipping = False
            if len(self._rest) > MAX_LINE:
                self._rest, self._skipping = b"", True


class Seen:
    """One call of a run, as the log tells of it.

    Attributes
    ----------
    call_id, tool, intervention
        Which call it was, and what was done about it: ``"allow"``, ``"warn"``, ``"ask"``, ``"suggest"``, ``"block"``.
    probability
        Of a violation within the horizon; nan where it is not known.
    shadow
        What would have been done, had the policy been in force; empty otherwise.
    """

    __slots__ = ("call_id", "intervention", "probability", "shadow", "tool")

    def __init__(self, record: dict[str, Any]) -> None:
        self.call_id, self.tool = _text(record, "call_id"), _text(record, "tool")
        self.intervention, self.shadow = _text(record, "intervention"), _text(record, "shadow")
        self.probability = _number(record, "probability")


class Watched:
    """What the log says about one run.

    Attributes
    ----------
    key, category
        Its name and its kind of task.
    state, risk
        The number of the state that its last call leads to (None if that is not known), and what the rules of the
        state space say of it.
    calls
        How many calls were proposed.
    outcomes
        How many of them had each intervention; those that a person was asked about, with the answer.
    course
        The last probabilities, each of one proposal; nan where it is not known.
    threshold
        What the last one was compared with.
    recent
        The last calls.
    alarms
        The last alarms, in words, with their times (seconds since 1970).
    at
        When it was last heard of.
    """

    __slots__ = (
        "alarms",
        "at",
        "calls",
        "category",
        "course",
        "key",
        "outcomes",
        "recent",
        "risk",
        "state",
        "threshold",
    )

    def __init__(self, key: str) -> None:
        self.key, self.category, self.risk = key, "", ""
        self.state: int | None = None
        self.calls, self.at, self.threshold = 0, nan, nan
        self.outcomes: dict[str, int] = {}
        self.course: deque[float] = deque(maxlen=COURSE)
        self.recent: deque[Seen] = deque(maxlen=RECENT)
        self.alarms: deque[tuple[float, str]] = deque(maxlen=RECENT)

    @property
    def probability(self) -> float:
        """The last one that is known; nan if none is."""
        return next((one for one in reversed(self.course) if one == one), nan)  # noqa: PLR0124  # nan is not itself

    def decided(self, record: dict[str, Any]) -> None:
        """Take note of a decision."""
        seen = Seen(record)
        self.calls += 1
        self._count(seen.intervention, 1)
        self.recent.append(seen)
        self.course.append(seen.probability)
        self.category = _text(record, "category") or self.category
        state, risk = record.get("leads_to"), _text(record, "risk")
        if risk and type(state) is int and abs(state) < MAX_NUMBER:
            self.state, self.risk = state, risk
        self.threshold = _number(record, "threshold")
        self._alarmed(record, seen)

    def answered(self, record: dict[str, Any]) -> None:
        """Take note of what a person said about a call."""
        final = Seen(record)
        for seen in reversed(self.recent):
            if seen.call_id == final.call_id:
                self._count(seen.intervention, -1)
                seen.intervention = final.intervention
                break
        self._count(final.intervention, 1)
        by = _text(record, "answered_by")
        self.alarms.append((self.at, f"{final.intervention} {final.call_id}: answered by {by}"))

    def alarm(self, record: dict[str, Any]) -> None:
        """Take note of something that went wrong."""
        words = (_text(record, "event"), _text(record, "call_id"), _text(record, "detail"))
        self.alarms.append((self.at, " ".join(filter(None, words))))

    def as_plain(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "key": self.key,
            "category": self.category,
            "state": self.state,
            "risk": self.risk,
            "calls": self.calls,
            "outcomes": dict(self.outcomes),
            "probability": self.probability,
            "threshold": self.threshold,
            "course": list(self.course),
            "recent": [{name: getattr(seen, name) for name in Seen.__slots__} for seen in self.recent],
            "alarms": [{"at": at, "alarm": words} for at, words in self.alarms],
            "at": self.at,
        }

    def _alarmed(self, record: dict[str, Any], seen: Seen) -> None:
        error = _text(record, "error")
        if seen.intervention == "allow" and not seen.shadow and not error:
            return
        done = f"{seen.intervention} (would {seen.shadow})" if seen.shadow else seen.intervention
        why = error or _text(record, "reason") or _text(record, "rule")
        self.alarms.append((self.at, f"{done} {seen.tool}: {why}"))

    def _count(self, intervention: str, number: int) -> None:
        if intervention in self.outcomes or len(self.outcomes) < RECENT:
            self.outcomes[intervention] = max(0, self.outcomes.get(intervention, 0) + number)


class Sessions:
    """The runs that a log tells of, the one that was heard of last at the end."""

    def __init__(self) -> None:
        self._runs: dict[str, Watched] = {}
        self.records = 0

    def take(self, record: dict[str, Any]) -> None:
        """Take note of a record."""
        self.records += 1
        key, event = _text(record, "key"), _text(record, "event")
        if not key or event not in {"decision", "answer", *_ALARMING}:
            return
        run = self._runs.pop(key, None) or Watched(key)
        if len(self._runs) >= MAX_SESSIONS:
            self._runs.pop(next(iter(self._runs)))
        self._runs[key] = run
        run.at = _number(record, "at")
        if event == "decision":
            run.decided(record)
        elif event == "answer":
            run.answered(record)
        else:
            run.alarm(record)

    def latest(self, number: int | None = None) -> list[Watched]:
        """Return runs, the one that was heard of last first."""
        runs = list(reversed(self._runs.values()))
        return runs if number is None else runs[:number]

    def __len__(self) -> int:
        return len(self._runs)


def _record(line: bytes) -> dict[str, Any] | None:
    if not line or len(line) > MAX_LINE:
        return None
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _text(record: dict[str, Any], name: str) -> str:
    value = record.get(name)
    return value[:MAX_TEXT] if isinstance(value, str) else ""


def _number(record: dict[str, Any], name: str) -> float:
    """Return a number; nan for what is none, and for integers that no float can hold."""
    value = record.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return nan
    return float(value) if abs(value) < MAX_NUMBER else nan
