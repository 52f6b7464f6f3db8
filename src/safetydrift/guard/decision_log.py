"""The decision log: JSON lines of which each one vouches for all before it.

Every record holds the SHA-256 digest over the digest of the record before it and its own content, so that a line
that was changed, taken out or put in is found by `verify`. What is cut off at the end cannot be found without the last
digest, and whoever can write the file can write a whole new chain: keep the last digest elsewhere. Several processes
may write to one file; each takes the file's lock, finds the end of the chain, and adds to it. A line that a killed
process left half written is kept, and sealed by the next writer with a record that says so.
"""

from __future__ import annotations

import json
import os
from _thread import allocate_lock
from fcntl import LOCK_EX, LOCK_UN, flock
from functools import lru_cache
from hashlib import sha256
from json.encoder import encode_basestring_ascii as _quoted
from math import isfinite
from time import monotonic, time
from typing import TYPE_CHECKING

from msgspec import Struct

from safetydrift.errors import DecisionLogError
from safetydrift.monitor.verdict import Intervention

if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import PathLike
    from typing import Any, BinaryIO, Self

    from safetydrift.guard.decision import Decision
    from safetydrift.guard.redacting import Redactor
    from safetydrift.monitor.session import TrajectoryState
    from safetydrift.trace import ToolCall

    PlainDecision = tuple[float, Decision, str, TrajectoryState, str]
    """When it was made, the decision, the tool, where the run stood, and the policy in force."""

LOG_FORMAT = "safetydrift.decisions/1"
START = "0" * 64
"""What the first record is chained to."""
MAX_LINE = 1 << 20
"""Bytes of a record."""
DEFAULT_BUFFER = 64
"""Decisions that are kept in memory at most; what stands in the way of a call is written at once."""
DEFAULT_DELAY = 1.0
"""Seconds after which a decision in memory is written with the next one."""
MAX_ARGUMENTS = 8192
_NEAR_END = 16 * 1024
"""Bytes in which the last record is looked for first."""


class DecisionLog:
    """Appends records to a file.

    Parameters
    ----------
    path
        The file; it is made, for its owner only, if it is not there.
    buffer
        Records that may wait in memory. With 1, every decision is on its way to the disk before it is given: what a
        process per call needs. What waits is written by `flush`, `close`, the end of the interpreter, and any
        decision other than ALLOW; a killed process loses at most this many less one.
    delay
        Seconds that a record may wait while others come.
    arguments
        Whether the arguments of calls are written, with secrets taken out; by default only their digest is.
    sync
        Whether each write waits until the disk has it (fsync).

    Raises
    ------
    DecisionLogError
        If the file cannot be opened.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        buffer: int = DEFAULT_BUFFER,
        delay: float = DEFAULT_DELAY,
        arguments: bool = False,
        sync: bool = False,
    ) -> None:
        self.path = os.fspath(path)
        self.buffer, self.delay, self.arguments, self.sync = max(1, buffer), delay, arguments, sync
        self._waiting: list[dict[str, Any] | PlainDecision] = []
        self._since = 0.0
        self._lock = allocate_lock()
        try:
            self._file: int | None = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        except OSError as error:
            raise DecisionLogError(f"{self.path}: cannot be opened: {error.strerror or error}") from error
        from atexit import register  # noqa: PLC0415  # a log that nobody opens needs no exit

        register(self._at_exit)

    def decision(
        self,
        decision: Decision,
        call: ToolCall | None,
        position: TrajectoryState | None,
        policy: str,
        redactor: Redactor,
    ) -> None:
        """Record a decision; on its return it is written, or waits as the class says.

        Parameters
        ----------
        call, position
            What it is about and where the run stood; None for a person's answer.
        policy
            The name of the policy in force.
        redactor
            Takes secrets out of arguments.

        Raises
        ------
        DecisionLogError
            If it cannot be written; it is not kept for later then.
        """
        at_once = decision.intervention is not Intervention.ALLOW or decision.would_be is not None
        if at_once or self.arguments or call is None or position is None or not _says_no_more(decision):
            record = self._record(decision, call, position, policy, redactor)
            record["at"] = time()
            self._add(record, at_once=at_once)
        else:
            # Nothing of this can change any more, so that it need not be written out before it is flushed.
            plain = (time(), decision, call.name, position, policy)
            self._add(plain, at_once=False)

    def event(self, what: str, *, key: str = "", call_id: str = "", detail: str = "") -> None:
        """Record something that is no decision; it is written at once."""
        said = {"event": what, "key": key, "call_id": call_id, "detail": detail}
        record: dict[str, Any] = {name: value for name, value in said.items() if value}
        record["at"] = time()
        self._add(record, at_once=True)

    def flush(self) -> None:
        """Write what waits."""
        with self._lock:
            self._write()

    def close(self) -> None:
        """Write what waits, and let go of the file. A closed log takes nothing more."""
        with self._lock:
            if self._file is not None:
                try:
                    self._write()
                finally:
                    os.close(self._file)
                    self._file = None
        from atexit import unregister  # noqa: PLC0415  # as above

        unregister(self._at_exit)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- records ------------------------------------------------------------------------------------------

    def _record(
        self,
        decision: Decision,
        call: ToolCall | None,
        position: TrajectoryState | None,
        policy: str,
        redactor: Redactor,
    ) -> dict[str, Any]:
        verdict = decision.verdict
        record: dict[str, Any] = {
            "event": "answer" if decision.answered_by else "decision",
            "key": decision.key,
            "call_id": decision.call_id,
            "intervention": decision.intervention.value,
            "rule": decision.rule,
            "policy": policy,
            "latency": decision.latency,
        }
        if call is not None:
            record["tool"] = call.name
            if self.arguments:
                record["arguments"] = redactor.arguments(call.args, MAX_ARGUMENTS)
        if position is not None:
            record["state"], record["steps"] = position.state, position.steps
            record["category"] = position.category
        if verdict is not None:
            record["leads_to"] = verdict.state
            record["risk"] = verdict.risk
            record["probability"], record["threshold"] = decision.probability, decision.threshold
            record["low"], record["high"] = verdict.low, verdict.high
            record["horizon"], record["basis"] = verdict.horizon, verdict.basis.value
        for name in ("reason", "explanation", "alternative", "error", "answered_by"):
            if value := getattr(decision, name):
                record[name] = redactor.text(value) if name == "reason" else value
        if decision.harm:
            record["unauthorised"], record["harm"] = decision.unauthorised, decision.harm
        if decision.would_be is not None:
            record["shadow"] = decision.would_be.value
        return record

    def _add(self, record: dict[str, Any] | PlainDecision, *, at_once: bool) -> None:
        with self._lock:
            now = monotonic()
            if not self._waiting:
                self._since = now
            self._waiting.append(record)
            if at_once or len(self._waiting) >= self.buffer or now - self._since >= self.delay:
                self._write()

    def _write(self) -> None:
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        if self._file is None:
            raise DecisionLogError(f"{self.path}: the log is closed")
        try:
            flock(self._file, LOCK_EX)
            try:
                self._append(self._file, waiting)
            finally:
                flock(self._file, LOCK_UN)
        except OSError as error:
            raise DecisionLogError(f"{self.path}: cannot be written: {error.strerror or error}") from error

    def _append(self, file: int, waiting: list[dict[str, Any] | PlainDecision]) -> None:
        size = os.fstat(file).st_size
        number, digest, torn = _end_of_chain(file, size, self.path)
        lines = bytearray(b"\n" if torn else b"")
        if torn:
            waiting = [
                {"event": "sealed", "detail": f"{torn} bytes of a torn record", "at": time()},
                *waiting,
            ]
        if not number and not torn:
            waiting = [{"event": "begin", "format": LOG_FORMAT, "at": time()}, *waiting]
        for record in waiting:
            number += 1
            line, digest = _chained(record, number, digest)
            lines += line
        written = 0
        try:
            while written < len(lines):
                written += os.write(file, memoryview(lines)[written:])
            if self.sync:
                os.fsync(file)
        except OSError:
            # Nothing half written stays behind, if that can be helped.
            os.ftruncate(file, size)
            raise

    def _at_exit(self) -> None:
        from contextlib import suppress  # noqa: PLC0415  # once

        with suppress(DecisionLogError, OSError):
            self.close()


class Verification(Struct, frozen=True, gc=False):
    """What `verify` found.

    Parameters
    ----------
    records
        Records whose chain holds, from the first on.
    digest
        The digest of the last of them: kept elsewhere, it shows later that nothing was cut off.
    problems
        What is wrong, with the line, counted from 1.
    sealed
        Torn lines that a later writer sealed.
    torn
        Whether the last line is torn and not sealed yet: the file's last writer was killed.
    """

    records: int
    digest: str
    problems: tuple[tuple[int, str], ...]
    sealed: int
    torn: bool

    @property
    def holds(self) -> bool:
        """Whether nothing was changed, taken out or put in."""
        return not self.problems


def verify(path: str | PathLike[str]) -> Verification:
    """Check the chain of a decision log.

    Raises
    ------
    DecisionLogError
        If the file cannot be read.
    """
    records, digest, sealed, torn = 0, START, 0, 0
    problems: list[tuple[int, str]] = []
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            for number, line in _lines(file):
                record = _parsed(line)
                if record is None:
                    torn = number
                    continue
                problem = _problem(record, records, digest)
                if torn and record.get("event") != "sealed":
                    problems.append((torn, "no record, and not sealed"))
                elif torn:
                    sealed += 1
                torn = 0
                if problem:
                    problems.append((number, problem))
                records, digest = _count(record, records), str(record.get("digest"))
    except OSError as error:
        raise DecisionLogError(f"{path}: cannot be read: {error.strerror or error}") from error
    return Verification(records, digest, tuple(problems), sealed, bool(torn))


def records(path: str | PathLike[str]) -> Iterator[dict[str, Any]]:
    """Yield the records of a decision log; torn lines are passed over."""
    with open(path, "rb") as file:  # noqa: PTH123
        for _, line in _lines(file):
            record = _parsed(line)
            if record is not None:
                yield record


def _chained(record: dict[str, Any] | PlainDecision, number: int, before: str) -> tuple[bytes, str]:
    """Return a record as a line, and its digest."""
    if isinstance(record, tuple):
        body = _canonical_decision(record, number)
    else:
        body = _canonical({name: _plain(value) for name, value in record.items()} | {"n": number})
    digest = sha256(before.encode() + body).hexdigest()
    line = b'%s,"before":"%s","digest":"%s"}\n' % (body[:-1], before.encode(), digest.encode())
    if len(line) > MAX_LINE:
        raise DecisionLogError(f"a record of {len(line)} bytes, where {MAX_LINE} are the most")
    return line, digest


_encoded = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def _canonical(record: dict[str, Any]) -> bytes:
    """Return the one way to write a record: keys in order, no blanks, ASCII."""
    return _encoded(record).encode("ascii")


_PLAIN = (
    '{"at":%s,"basis":"%s","call_id":%s,"category":%s,"event":"decision","high":%s,"horizon":%d,'
    '"intervention":"allow","key":%s,"latency":%s,"leads_to":%d,"low":%s,"n":%d,"policy":%s,"probability":%s,'
    '"risk":%s,"rule":%s,"state":%d,"steps":%d,"threshold":%s,"tool":%s}'
)
"""How `_canonical` writes a call that goes ahead without a remark: by far the most of all records."""


def _canonical_decision(plain: PlainDecision, number: int) -> bytes:
    """Return what `_canonical` gives for the record of a call that goes ahead without a remark."""
    at, decision, tool, position, policy = plain
    verdict: Any = decision.verdict
    return (
        _PLAIN
        % (
            _number(at),
            verdict.basis.value,
            _text(decision.call_id),
            _text(position.category),
            _again(verdict.high),
            verdict.horizon,
            _text(decision.key),
            _number(decision.latency),
            verdict.state,
            _again(verdict.low),
            number,
            _text(policy),
            _again(decision.probability),
            _text(verdict.risk),
            _text(decision.rule),
            position.state,
            position.steps,
            _again(decision.threshold),
            _text(tool),
        )
    ).encode("ascii")


def _says_no_more(decision: Decision) -> bool:
    """Return whether `_PLAIN` has a place for everything that is to be recorded of a call that goes ahead."""
    return decision.verdict is not None and not (
        decision.reason
        or decision.explanation
        or decision.alternative
        or decision.error
        or decision.answered_by
    )


def _number(value: Any) -> str:
    if type(value) is not float:
        return _encoded(_plain(value))
    return repr(round(value, 9)) if isfinite(value) else "null"


def _again(value: Any) -> str:
    """Return what `_number` does for figures of verdicts and rules, which come again and again."""
    # 0.0 equals -0.0 and 1 equals True, but they are not written alike.
    return _written(value) if value and type(value) is float else _number(value)


_written = lru_cache(1024)(_number)


def _text(value: Any) -> str:
    return _quoted(value[:MAX_ARGUMENTS]) if type(value) is str else _encoded(_plain(value))


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 9) if isfinite(value) else None
    return value[:MAX_ARGUMENTS] if isinstance(value, str) else value


def _problem(record: dict[str, Any], records: int, digest: str) -> str:
    content = {name: value for name, value in record.items() if name not in {"before", "digest"}}
    if record.get("before") != digest:
        return "does not follow the record before it"
    if record.get("n") != records + 1:
        return f"is number {record.get('n')!r}, where {records + 1} should be"
    if sha256(digest.encode() + _canonical(content)).hexdigest() != record.get("digest"):
        return "was changed after it was written"
    return ""


def _count(record: dict[str, Any], records: int) -> int:
    number = record.get("n")
    return number if type(number) is int else records + 1


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield lines with their numbers; of a line without an end, no more than a record may have."""
    number = 0
    while line := file.readline(MAX_LINE + 1):
        number += 1
        yield number, line


def _parsed(line: bytes) -> dict[str, Any] | None:
    """Return a record; None for what is none, a line without its end included."""
    if not line.endswith(b"\n"):
        return None
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and "digest" in record else None


def _end_of_chain(file: int, size: int, path: str) -> tuple[int, str, int]:
    """Return number and digest of the last record, and the bytes of a torn line behind it."""
    end, torn = size, 0
    while end > 0:
        block, whole = _ending(file, end)
        if not block.endswith(b"\n"):
            cut = block.rfind(b"\n") + 1
            torn += len(block) - cut
            end -= len(block) - cut
            if not cut and not whole:
                raise DecisionLogError(f"{path}: no decision log: a line of more than {MAX_LINE} bytes")
            continue
        record = _parsed(block[block.rfind(b"\n", 0, -1) + 1 :])
        if record is None or type(record.get("n")) is not int:
            raise DecisionLogError(f"{path}: its last line is no record of a decision log")
        return int(record["n"]), str(record["digest"]), torn
    return 0, START, torn


def _ending(file: int, end: int) -> tuple[bytes, bool]:
    """Return what a file holds before a place, from the begin of a line on; whether that is all of it."""
    for size in (_NEAR_END, 2 * MAX_LINE):
        start = max(0, end - size)
        block = os.pread(file, end - start, start)
        if not start or block.count(b"\n", 0, -1):
            break
    return block, not start
