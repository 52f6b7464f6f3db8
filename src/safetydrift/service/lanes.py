"""Where decisions are made: threads, each with a connection and guards of its own.

A run always goes to the same lane of a process, so that its calls keep their order and two lanes never wait for each
other over it. All that one request changes is one transaction: the state of the run, the record of the decision, the
question to a person, the event for whoever watches. It is answered when that is committed, and not before.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from time import time, time_ns
from typing import TYPE_CHECKING, Any, TypeVar
from zlib import crc32

from sqlalchemy import bindparam, delete, insert, select, update
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from safetydrift.errors import DatabaseError, StoreError
from safetydrift.guard.session import Session
from safetydrift.service.database.engine import first_line
from safetydrift.service.database.schema import run_states

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import ClauseElement, Connection, Engine

    from safetydrift.guard.guard import Guard
    from safetydrift.states.space import StateSpace

    Maker = Callable[[int, "TransactionStore"], Guard]
    """Makes the guard of an organisation on a store."""
    _Compiled = tuple[str, "list[str] | None", dict[str, Any]]

T = TypeVar("T")
MAX_GUARDS = 64
"""Organisations whose guards a lane keeps; the one that was made first goes when there are more."""

_READ = select(run_states.c.state, run_states.c.version).where(
    run_states.c.org == bindparam("of"), run_states.c.key == bindparam("named")
)
_UPDATE = (
    update(run_states)
    .where(
        run_states.c.org == bindparam("of"),
        run_states.c.key == bindparam("named"),
        run_states.c.version == bindparam("before"),
    )
    .values(version=bindparam("after"), touched=bindparam("now"), state=bindparam("data"))
)


class TransactionStore:
    """A guard's store in the transaction of its lane.

    Parameters
    ----------
    lane
        The lane.
    org
        The organisation.
    """

    waits = True

    def __init__(self, lane: Lane, org: int) -> None:
        self._lane, self._org = lane, org
        self._model = ""
        self._space: StateSpace | None = None

    def bind(self, model: str, space: StateSpace) -> None:
        """Take note of the model whose sessions are kept."""
        self._model, self._space = model, space

    def read(self, key: str) -> tuple[Session, int] | None:
        """Return a session and its version, None if there is none."""
        assert self._space is not None, "a guard binds its store"  # noqa: S101
        rows, _ = self._lane.fast(_READ, {"of": self._org, "named": key})
        if not rows:
            return None
        data, version = rows[0]
        return Session.from_bytes(data, self._model, self._space), int(version)

    def write(self, key: str, session: Session, version: int) -> bool:
        """Keep a session, if its version is still the one that was read."""
        data, now = session.to_bytes(self._model), time()
        if version:
            known = {"of": self._org, "named": key, "before": version}
            return self._lane.fast(_UPDATE, known | {"after": version + 1, "now": now, "data": data})[1] == 1
        # Not 1: a session that was removed and made again must not pass for the one before.
        row = {"org": self._org, "key": key, "version": time_ns(), "touched": now, "state": data}
        with suppress(IntegrityError), self._lane.savepoint():
            self._lane.execute(insert(run_states), row)
            return True
        return False

    def remove(self, key: str) -> None:
        """Forget a session."""
        where = (run_states.c.org == self._org) & (run_states.c.key == key)
        self._lane.execute(delete(run_states).where(where), {})

    def keys(self) -> list[str]:
        """Return the keys of the sessions."""
        rows = self._lane.execute(select(run_states.c.key).where(run_states.c.org == self._org), {})
        return [str(key) for (key,) in rows]

    def sweep(self) -> int:
        """Do nothing: the service forgets by itself."""
        return 0

    def close(self) -> None:
        """Do nothing: the connection is the lane's."""


class Lane:
    """One thread, one connection, and a guard per organisation.

    Parameters
    ----------
    engine
        For transactions that write.
    make
        Makes the guard of an organisation.

    Attributes
    ----------
    queued
        How much is waiting or being done.
    runs
        Numbers of runs by organisation and key, as far as they are known here.
    """

    def __init__(self, engine: Engine, make: Maker) -> None:
        self._engine, self._make = engine, make
        self._thread = ThreadPoolExecutor(1, "lane")
        self._guards: dict[int, Guard] = {}
        self._connection: Connection | None = None
        self._failure: Exception | None = None
        self._statements: list[ClauseElement] = []
        self._compiled: dict[int, _Compiled] = {}
        self._errors: type[Exception] = engine.dialect.loaded_dbapi.Error
        self.queued = 0
        self.runs: dict[tuple[int, str], int] = {}

    @property
    def connection(self) -> Connection:
        """The connection, within a transaction."""
        assert self._connection is not None, "only within a transaction"  # noqa: S101
        return self._connection

    def execute(self, statement: Any, values: dict[str, Any]) -> Any:
        """Return what a statement yields; what fails here fails the whole transaction.

        Raises
        ------
        StoreError
            If the database cannot do it.
        """
        try:
            return self.connection.execute(statement, values)
        except IntegrityError:
            raise
        except SQLAlchemyError as error:
            self._failure = error
            raise StoreError(first_line(error)) from error

    def fast(self, statement: ClauseElement, values: dict[str, Any]) -> tuple[list[Any], int]:
        """Return the rows of a statement that is always the same, and how many it changed.

        The statement is compiled once; what SQLAlchemy does for each execution costs more than the database does.

        Raises
        ------
        StoreError
            If the database cannot do it.
        """
        text, names, own = self._compiled.get(id(statement)) or self._compile(statement)
        whole = own | values
        given = whole if names is None else [whole[name] for name in names]
        try:
            cursor = self.connection.connection.cursor()
            try:
                cursor.execute(text, given)
                rows = cursor.fetchall() if cursor.description else []
                return list(rows), cursor.rowcount
            finally:
                cursor.close()
        except self._errors as error:
            self._failure = error
            raise StoreError(first_line(error)) from error

    def savepoint(self) -> Any:
        """Return a context within which a conflict does not end the transaction."""
        return self.connection.begin_nested()

    def guard(self, org: int) -> Guard:
        """Return the guard of an organisation."""
        found = self._guards.get(org)
        if found is None:
            if len(self._guards) >= MAX_GUARDS:
                del self._guards[next(iter(self._guards))]
            found = self._guards[org] = self._make(org, TransactionStore(self, org))
        return found

    async def run(self, work: Callable[[Lane], T], deadline: float | None = None) -> T:
        """Return what some work yields that is done in one transaction.

        Parameters
        ----------
        work
            Given this lane; nothing it does is kept unless all of it is.
        deadline
            Seconds since the epoch after which it is not begun any more, and not waited for.

        Raises
        ------
        DatabaseError
            If the database fails: nothing is kept.
        TimeoutError
            At the deadline. Work that had begun may still be done, and recorded.
        """
        self.queued += 1
        try:
            future = asyncio.get_running_loop().run_in_executor(self._thread, self._transact, work, deadline)
            if deadline is None:
                return await future
            return await asyncio.wait_for(asyncio.shield(future), max(0.0, deadline - time()))
        finally:
            self.queued -= 1

    def stop(self) -> None:
        """Finish what was begun, and let go of the connection; to stop twice is no error."""
        self._thread.shutdown(wait=True)
        self._disconnect()

    def _transact(self, work: Callable[[Lane], T], deadline: float | None) -> T:
        if deadline is not None and time() > deadline:
            raise TimeoutError("the deadline passed before the decision was begun")
        self._failure = None
        try:
            if self._connection is None:
                self._connection = self._engine.connect()
            with self._connection.begin():
                result = work(self)
                # A guard does not raise: what failed below it must not be committed, or answered.
                _raise(self._failure)
                return result
        except (SQLAlchemyError, StoreError, self._errors) as error:
            # What a guard remembers may rest on what was not kept.
            self._guards.clear()
            self.runs.clear()
            self._disconnect()
            raise DatabaseError(f"the database failed: {first_line(error)}") from error

    def _compile(self, statement: ClauseElement) -> _Compiled:
        """Return the text of a statement, the order of its values where they go by place, and its own values."""
        compiled: Any = statement.compile(dialect=self._engine.dialect)
        names = list(compiled.positiontup) if compiled.positional else None
        found = self._compiled[id(statement)] = (compiled.string, names, dict(compiled.params))
        self._statements.append(statement)  # what has gone could leave its number to another one
        return found

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(SQLAlchemyError):
                connection.invalidate()
                connection.close()


def _raise(failure: Exception | None) -> None:
    if failure is not None:
        raise failure


class Lanes:
    """The lanes of a process.

    Parameters
    ----------
    engine, make
        As for `Lane`.
    count
        How many.
    """

    def __init__(self, engine: Engine, make: Maker, count: int) -> None:
        self.all = [Lane(engine, make) for _ in range(count)]

    def of(self, org: int, key: str) -> Lane:
        """Return the lane of a run. Parts of a run go where the whole goes, if they share what stands before ``/``."""
        whole = key.partition("/")[0]
        return self.all[crc32(f"{org}\x1f{whole}".encode("utf-8", "replace")) % len(self.all)]

    @property
    def queued(self) -> int:
        """How much is waiting or being done."""
        return sum(lane.queued for lane in self.all)

    def stop(self) -> None:
        """Finish what was begun."""
        for lane in self.all:
            lane.stop()
