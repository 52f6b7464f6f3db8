"""Sessions in a SQLite file: they outlive the process, and any number of processes may share them.

The file is written ahead (WAL) and synchronised at checkpoints: a killed process loses nothing that it was told was
kept, a machine without power at most the last moments. Whoever can read the file can read what is in a session: no
arguments and no results, but words of the task and digests of what was read. So it belongs to its owner alone.
"""

from __future__ import annotations

import os
import sqlite3
from _thread import allocate_lock
from contextlib import suppress
from time import time, time_ns
from typing import TYPE_CHECKING

from safetydrift.errors import StoreError
from safetydrift.guard.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike
    from typing import Any

    from safetydrift.states.space import StateSpace

DEFAULT_EXPIRY = 7 * 24 * 3600.0
DEFAULT_WAIT = 2.0
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS sessions "
    "(key TEXT PRIMARY KEY, version INTEGER NOT NULL, touched REAL NOT NULL, state BLOB NOT NULL) WITHOUT ROWID"
)
_READ = "SELECT state, version FROM sessions WHERE key = ? AND touched >= ?"
_INSERT = (
    "INSERT INTO sessions (key, version, touched, state) VALUES (?, ?, ?, ?) ON CONFLICT (key) DO UPDATE "
    "SET version = excluded.version, touched = excluded.touched, state = excluded.state WHERE sessions.touched < ?"
)
_UPDATE = "UPDATE sessions SET version = version + 1, touched = ?, state = ? WHERE key = ? AND version = ?"


_ABANDONED: list[sqlite3.Connection | None] = []


class SQLiteStore:
    """Keeps sessions in a file.

    Parameters
    ----------
    path
        The file; it is made, for its owner only, if it is not there. It has to lie on a disk of this machine.
    expiry
        Seconds after its last change at which a session is forgotten.
    wait
        Seconds to wait for another process that is writing.
    clock
        Seconds since the epoch; processes that share a file share it. A session that was changed in the future, as
        seen from here, is kept.

    Raises
    ------
    StoreError
        If the file cannot be opened, or is something else.
    """

    waits = True

    def __init__(
        self,
        path: str | PathLike[str],
        expiry: float = DEFAULT_EXPIRY,
        wait: float = DEFAULT_WAIT,
        clock: Callable[[], float] = time,
    ) -> None:
        self.path = os.fspath(path)
        self.expiry, self.wait = expiry, wait
        self._clock = clock
        self._model = ""
        self._space: StateSpace | None = None
        self._lock = allocate_lock()
        self._process = os.getpid()
        self._connection: sqlite3.Connection | None = self._open()

    def bind(self, model: str, space: StateSpace) -> None:
        """Take note of the model whose sessions are kept."""
        self._model, self._space = model, space

    def read(self, key: str) -> tuple[Session, int] | None:
        """Return a session and its version, None if there is none or it has expired."""
        assert self._space is not None, "a guard binds its store"  # noqa: S101
        rows, _ = self._run(_READ, (key, self._clock() - self.expiry))
        if not rows:
            return None
        state, version = rows[0]
        return Session.from_bytes(state, self._model, self._space), int(version)

    def write(self, key: str, session: Session, version: int) -> bool:
        """Keep a session, if its version is still the one that was read."""
        state, now = session.to_bytes(self._model), self._clock()
        if version == 0:
            # Not 1: a session that was removed and made again must not pass for the one before.
            _, changed = self._run(_INSERT, (key, time_ns(), now, state, now - self.expiry))
        else:
            _, changed = self._run(_UPDATE, (now, state, key, version))
        return changed == 1

    def remove(self, key: str) -> None:
        """Forget a session."""
        self._run("DELETE FROM sessions WHERE key = ?", (key,))

    def keys(self) -> list[str]:
        """Return the keys of the sessions that have not expired."""
        oldest = self._clock() - self.expiry
        rows, _ = self._run("SELECT key FROM sessions WHERE touched >= ? ORDER BY key", (oldest,))
        return [str(key) for (key,) in rows]

    def sweep(self) -> int:
        """Forget what has expired; return how much that was."""
        return self._run("DELETE FROM sessions WHERE touched < ?", (self._clock() - self.expiry,))[1]

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
            self._connection = None

    def _run(self, statement: str, values: tuple[Any, ...]) -> tuple[list[Any], int]:
        """Return the rows of a statement, and how many it changed."""
        with self._lock:
            try:
                if self._connection is None or self._process != os.getpid():
                    # A connection must not be used, or even closed, by a process that was forked off.
                    _ABANDONED.append(self._connection)
                    self._process, self._connection = os.getpid(), self._open()
                done = self._connection.execute(statement, values)
                return done.fetchall(), done.rowcount
            except sqlite3.Error as error:
                raise StoreError(f"{self.path}: {error}") from error

    def _open(self) -> sqlite3.Connection:
        try:
            # Made before SQLite would make it, so that nobody else can ever read it. A file that is there must not be
            # opened beside SQLite: closing it again would give up the locks that this process holds on it.
            with suppress(FileExistsError):
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            connection = sqlite3.connect(
                self.path, timeout=self.wait, isolation_level=None, check_same_thread=False
            )
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"{self.path}: cannot be opened: {error}") from error
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(_SCHEMA)
        except sqlite3.Error as error:
            connection.close()
            raise StoreError(f"{self.path}: cannot be used: {error}") from error
        return connection
