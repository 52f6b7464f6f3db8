"""Connections to SQLite and PostgreSQL, and the way to the newest tables.

SQLite is written ahead (WAL) and has one writer at a time: every transaction that writes says so when it begins, so
that none finds out in the middle. With ``synchronous = NORMAL`` a killed process loses nothing that was answered; a
machine without power may lose the last moments, unless ``FULL`` is asked for. PostgreSQL waits for its disk by itself.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from safetydrift.errors import DatabaseError

if TYPE_CHECKING:
    from sqlalchemy import URL, Engine

LOCK_WAIT = 5.0
"""Seconds that a writer of SQLite waits for another one."""
CONNECT_WAIT = 3
STATEMENT_WAIT = 15_000
"""Milliseconds after which PostgreSQL gives a statement up."""
_WAL_PAGES = 40_000
"""Pages after which a writer moves the log into the file by itself, if nobody else has."""
_MIGRATION_LOCK = 0x5AFE_D21F


def database_url(given: str, folder: str) -> URL:
    """Return the address of the database; a file in the folder of the service if none is given.

    Raises
    ------
    DatabaseError
        If it is no address, or of a database that is not known.
    """
    try:
        url = make_url(given or f"sqlite:///{Path(folder).resolve() / 'service.sqlite'}")
    except ArgumentError as error:
        raise DatabaseError("the database is no address such as postgresql://user@host/name") from error
    kind = url.get_backend_name()
    if kind == "postgresql":
        return url.set(drivername="postgresql+psycopg")
    if kind == "sqlite" and url.database and url.database != ":memory:":
        return url
    raise DatabaseError(f"the database is PostgreSQL or a SQLite file, not {kind!r}")


def writer_engine(url: URL, *, durable: bool = False) -> Engine:
    """Return an engine for transactions that write.

    Parameters
    ----------
    durable
        Whether SQLite waits for the disk at every commit.
    """
    if url.get_backend_name() == "sqlite":
        _private(url)
        engine = create_engine(
            url, connect_args={"timeout": LOCK_WAIT, "check_same_thread": False}, pool_size=8, max_overflow=8
        )
        synchronous = "FULL" if durable else "NORMAL"
        _of_sqlite(engine, synchronous, "BEGIN IMMEDIATE", f"PRAGMA wal_autocheckpoint = {_WAL_PAGES}")
        return engine
    return create_engine(
        url, connect_args=_postgresql(), pool_size=16, max_overflow=16, pool_timeout=CONNECT_WAIT
    )


def reader_engine(url: URL) -> Engine:
    """Return an engine for pages and searches, which cannot write."""
    if url.get_backend_name() == "sqlite":
        engine = create_engine(
            url, connect_args={"timeout": LOCK_WAIT, "check_same_thread": False}, pool_size=8, max_overflow=8
        )
        _of_sqlite(engine, "NORMAL", "BEGIN", "PRAGMA query_only = ON", "PRAGMA mmap_size = 1073741824")
        return engine
    engine = create_engine(
        url,
        connect_args=_postgresql(),
        pool_size=4,
        max_overflow=8,
        pool_timeout=CONNECT_WAIT,
        pool_pre_ping=True,
    )

    @event.listens_for(engine, "begin")
    def _read_only(connection: Any) -> None:
        connection.exec_driver_sql("SET TRANSACTION READ ONLY")

    return engine


def migrate(engine: Engine) -> None:
    """Bring the tables to the newest version; several processes may try at once.

    Raises
    ------
    DatabaseError
        If the database cannot be reached, or holds tables of a later version.
    """
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
    try:
        with engine.connect() as connection, connection.begin():
            if engine.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
    except SQLAlchemyError as error:
        raise DatabaseError(f"the database cannot be used: {first_line(error)}") from error
    except CommandError as error:
        raise DatabaseError(f"the database is of another version: {error}") from error


def checkpoint(engine: Engine) -> None:
    """Move what SQLite has written ahead into its file, so that no decision waits for the disk to do it."""
    if engine.dialect.name == "sqlite":
        raw = engine.raw_connection()
        try:
            raw.cursor().execute("PRAGMA wal_checkpoint(PASSIVE)")
        finally:
            raw.close()


def first_line(error: BaseException) -> str:
    """Return what a database says is wrong, without the statement and its values."""
    cause = getattr(error, "orig", None) or error
    return str(cause).partition("\n")[0][:300]


def _private(url: URL) -> None:
    """Make the file for its owner only, before SQLite would make it."""
    path = Path(str(url.database))
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError as error:
        raise DatabaseError(f"{path}: cannot be opened: {error.strerror or error}") from error


def _postgresql() -> dict[str, Any]:
    return {
        "connect_timeout": CONNECT_WAIT,
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": 10_000,
        "options": f"-c statement_timeout={STATEMENT_WAIT} -c lock_timeout=5000 "
        "-c idle_in_transaction_session_timeout=30000",
        "application_name": "safetydrift",
    }


def _of_sqlite(engine: Engine, synchronous: str, begin: str, *more: str) -> None:
    @event.listens_for(engine, "connect")
    def _connected(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # transactions begin when we say so
        cursor = connection.cursor()
        for pragma in (
            "PRAGMA journal_mode = WAL",
            f"PRAGMA synchronous = {synchronous}",
            "PRAGMA foreign_keys = ON",
            "PRAGMA cache_size = -65536",
            "PRAGMA journal_size_limit = 67108864",
            *more,
        ):
            cursor.execute(pragma)
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begun(connection: Any) -> None:
        connection.exec_driver_sql(begin)
