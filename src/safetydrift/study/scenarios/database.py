"""SQL for the sandbox: a real SQLite that lives in memory for one statement, and in between is bytes.

What would reach the host is refused by SQLite's own authorizer before a statement runs: attached files (and with them
``VACUUM INTO``), extensions, and pragmas other than those that describe tables. Chance and time are the sandbox's.
"""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

from safetydrift.study.scenarios.environment import Trouble

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MAX_ROWS = 200
MAX_BYTES = 1 << 22
_MAX_VALUE = 1 << 16
_MAX_STATEMENT = 20_000
_MAX_WORK = 2_000
"""Progress reports of a thousand virtual machine instructions each."""
_PRAGMAS = frozenset(("table_info", "table_list", "index_list", "foreign_key_list", "table_xinfo"))
_FORBIDDEN = frozenset((sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH))
_FUNCTIONS = frozenset(
    ("load_extension", "readfile", "writefile", "edit", "fts3_tokenizer", "randomblob", "zeroblob")
)
_TIMES = ("date", "time", "datetime", "julianday", "unixepoch")


def build(
    tables: Sequence[tuple[str, Sequence[str], Sequence[Sequence[Any]]]], statements: Sequence[str] = ()
) -> bytes:
    """Return the bytes of a database.

    Parameters
    ----------
    tables
        Of each its name, its columns as ``CREATE TABLE`` has them, and its rows.
    statements
        What to run afterwards: views, indices, triggers, grants of the scenario's own kind.

    Raises
    ------
    ValueError
        If SQLite refuses any of it.
    """
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            for name, columns, rows in tables:
                connection.execute(f'CREATE TABLE "{name}" ({", ".join(columns)})')
                if rows:
                    marks = ", ".join("?" * len(rows[0]))
                    connection.executemany(f'INSERT INTO "{name}" VALUES ({marks})', rows)  # noqa: S608  # our own data
            for statement in statements:
                connection.execute(statement)
            connection.commit()
        except sqlite3.Error as error:
            raise ValueError(f"the tables do not make a database: {error}") from error
        return connection.serialize()


def execute(
    database: bytes, statement: str, *, seed: int = 0, now: str = "2026-03-02 09:00:00"
) -> tuple[bytes, str, list[tuple[Any, ...]]]:
    """Run one statement.

    Returns
    -------
    tuple
        The database afterwards, what to tell the agent, and the rows as they are.

    Raises
    ------
    Trouble
        If the statement fails, is refused, or asks for more than the sandbox gives.
    """
    if len(statement) > _MAX_STATEMENT:
        raise Trouble("statement too long")
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        if database:
            connection.deserialize(database)
        _restrict(connection, seed, now)
        try:
            cursor = connection.execute(statement)
            rows = cursor.fetchmany(MAX_ROWS + 1)
            text = _told(cursor, rows)
            cursor.close()
            if connection.in_transaction:
                connection.commit()
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
            raise Trouble(f"SQL error: {error}") from error
        connection.set_authorizer(None)
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        return (
            connection.serialize() if pages else b"",
            text,
            rows,
        )  # SQLite cannot write down that there is nothing


def _restrict(connection: sqlite3.Connection, seed: int, now: str) -> None:
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute(f"PRAGMA max_page_count = {MAX_BYTES // 4096}")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    chance = random.Random(seed)  # noqa: S311  # repeatable on purpose
    connection.create_function("random", 0, lambda: chance.getrandbits(63))
    for name in _TIMES:
        connection.create_function(name, -1, _clock(name, now))
    connection.create_function("strftime", -1, _clock("strftime", now))
    for name, length in (("current_timestamp", 19), ("current_date", 10)):
        connection.create_function(name, 0, lambda length=length: now[:length])
    connection.create_function("current_time", 0, lambda: now[11:])
    work = iter(range(_MAX_WORK))
    connection.set_progress_handler(lambda: next(work, None) is None, 1_000)
    connection.set_authorizer(_authorize)


def _authorize(action: int, first: str | None, second: str | None, *_: object) -> int:
    if action in _FORBIDDEN:
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_PRAGMA and (first or "").lower() not in _PRAGMAS:
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _FUNCTIONS:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


def _clock(name: str, now: str) -> Callable[..., Any]:
    """Return one of SQLite's functions of time for which it is always the same moment."""
    first = 1 if name == "strftime" else 0

    def asked(*args: Any) -> Any:
        given = [now if isinstance(one, str) and one.lower() == "now" else one for one in args]
        given = given if len(given) > first else [*given, now]
        with closing(sqlite3.connect(":memory:")) as clock:
            return clock.execute(f"SELECT {name}({', '.join('?' * len(given))})", given).fetchone()[0]

    return asked


def _told(cursor: sqlite3.Cursor, rows: list[tuple[Any, ...]]) -> str:
    if cursor.description is None:
        changed = max(cursor.rowcount, 0)
        return f"{changed} row{'' if changed == 1 else 's'} affected"
    lines = [" | ".join(column[0] for column in cursor.description)]
    lines += [" | ".join("NULL" if value is None else str(value) for value in row) for row in rows[:MAX_ROWS]]
    if len(rows) > MAX_ROWS:
        lines.append(f"... more than {MAX_ROWS} rows; ask for fewer")
    return "\n".join(lines) if rows else f"{lines[0]}\n(no rows)"
