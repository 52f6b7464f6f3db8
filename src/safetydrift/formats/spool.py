"""Spans waiting for the rest of their runs, which may lie in any file: kept in memory, and beyond that on disk.

On disk SQLite keeps them, in a database without a name: a temporary file that nobody else can open and that is gone
when the reading ends.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

import msgspec

from safetydrift.formats.history import Flat
from safetydrift.formats.spans import Span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from safetydrift.formats.format import Account

MAX_MEMORY = 32 << 20
MAX_RUN_BYTES = 256 << 20
_FLAT = "\x00flat"


class Spool:
    """Keeps spans by trace and session, and gives them back session by session."""

    def __init__(self) -> None:
        self._traces: dict[str, list[Span]] = {}
        self._sessions: dict[str, str] = {}
        self._size = 0
        self._disk: _Disk | None = None

    def add(self, span: Span, size: int) -> None:
        """Keep a span.

        Parameters
        ----------
        size
            How many bytes it had, about.
        """
        if self._disk is not None:
            self._disk.add(span)
            return
        self._traces.setdefault(span.trace, []).append(span)
        if span.session:
            self._sessions[span.trace] = max(span.session, self._sessions.get(span.trace, ""))
        self._size += size
        if self._size > MAX_MEMORY:
            self._disk = _Disk()
            for waiting in self._traces.values():
                for one in waiting:
                    self._disk.add(one)
            self._traces.clear()

    def sessions(self, account: Account) -> Iterator[tuple[str, list[Span]]]:
        """Yield every session with its spans; a trace without a session is one of its own.

        A session of more than `MAX_RUN_BYTES` is told of as bad.
        """
        if self._disk is not None:
            yield from self._disk.sessions(account)
            return
        groups: dict[str, list[Span]] = {}
        for trace, waiting in self._traces.items():
            groups.setdefault(self._sessions.get(trace, trace), []).extend(waiting)
        self._traces = {}
        while groups:
            name = next(iter(groups))
            yield name, groups.pop(name)


class _Disk:
    """The same in a temporary database."""

    def __init__(self) -> None:
        self._rows = sqlite3.connect("", isolation_level=None)
        for setting in ("journal_mode=OFF", "synchronous=OFF", "temp_store=FILE"):
            self._rows.execute(f"PRAGMA {setting}")
        self._rows.execute("CREATE TABLE kept (trace, session, span)")
        self._rows.execute("BEGIN")
        self._encode = msgspec.json.Encoder().encode
        self._decode = msgspec.json.Decoder(Span).decode

    def add(self, span: Span) -> None:
        """Keep a span."""
        inputs, outputs, tools = span.inputs, span.outputs, span.tools
        span.inputs, span.outputs, span.tools = _packed(inputs), _packed(outputs), _packed(tools)
        values = (_storable(span.trace), _storable(span.session) or None, self._encode(span))
        self._rows.execute("INSERT INTO kept VALUES (?, ?, ?)", values)
        span.inputs, span.outputs, span.tools = inputs, outputs, tools

    def sessions(self, account: Account) -> Iterator[tuple[str, list[Span]]]:
        """Yield every session with its spans."""
        run = self._rows.execute
        run("CREATE INDEX by_trace ON kept (trace)")
        run(
            "CREATE TABLE traces AS SELECT trace, COALESCE(MAX(session), trace) AS name, MIN(rowid) AS first, "
            "SUM(LENGTH(span)) AS size FROM kept GROUP BY trace"
        )
        run("CREATE INDEX by_name ON traces (name)")
        names = run("SELECT name, SUM(size), MIN(first) FROM traces GROUP BY name ORDER BY MIN(first)")
        for name, size, first in names.fetchall():
            if size > MAX_RUN_BYTES:
                (data,) = run("SELECT span FROM kept WHERE rowid = ?", (first,)).fetchone()
                if (place := self._decode(data).place) is not None:
                    account.bad(place, f"the spans of its run have more than {MAX_RUN_BYTES} bytes")
                continue
            rows = run(
                "SELECT span FROM kept WHERE trace IN (SELECT trace FROM traces WHERE name = ?) ORDER BY rowid",
                (name,),
            )
            yield name, [self._unpacked(row[0]) for row in rows]
        self._rows.close()

    def _unpacked(self, data: bytes) -> Span:
        span = self._decode(data)
        for name in ("inputs", "outputs", "tools"):
            value = getattr(span, name)
            if isinstance(value, dict) and value.keys() == {_FLAT}:
                setattr(span, name, Flat([(part, what) for part, what in value[_FLAT]]))
        return span


def _packed(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return {_FLAT: [list(pair) for pair in value]} if isinstance(value, Flat) else value


def _storable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
