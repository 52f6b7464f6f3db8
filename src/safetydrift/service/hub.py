"""Live: what has happened, as the database says it, for pages and for agents that wait for an answer.

Every worker looks for new events a few times a second, whoever wrote them. Numbers are given out before they are
committed, so a number that is missing is waited for before those behind it are passed on: whoever has seen an event has
seen all before it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError

from safetydrift.service.database.schema import events

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from sqlalchemy import Engine

TICK = 0.2
"""Seconds between looks."""
GAP = 3.0
"""Seconds that a missing number is waited for: a transaction that takes longer was given up."""
KEPT = 20_000
BATCH = 5000


class Event(Struct, frozen=True, gc=False):
    """Something that has happened."""

    seq: int
    org: int
    kind: str
    run: int
    subject: str


class Hub:
    """The events of a worker.

    Parameters
    ----------
    engine
        For reading.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._kept: deque[Event] = deque(maxlen=KEPT)
        self._last = 0
        self._missing: dict[int, float] = {}
        self._waiting: set[asyncio.Event] = set()
        self._task: asyncio.Task[None] | None = None
        self._poke = asyncio.Event()
        self.stopping = asyncio.Event()
        self.problem = ""

    @property
    def last(self) -> int:
        """The number of the last event that was passed on."""
        return self._last

    async def start(self) -> None:
        """Begin to look."""
        with self._engine.connect() as connection:
            self._last = int(connection.execute(select(func.max(events.c.seq))).scalar() or 0)
        self._task = asyncio.create_task(self._look())

    async def stop(self) -> None:
        """Tell everybody who waits, and look no more."""
        self.leave()
        if self._task is not None:
            await self._task

    def leave(self) -> None:
        """Have everybody who waits stop waiting: the worker is to end."""
        self.stopping.set()
        self._poke.set()
        self._wake()

    def poke(self) -> None:
        """Look now: something has happened in this worker."""
        self._poke.set()

    async def changes(self, org: int, after: int, *, patience: float) -> AsyncGenerator[list[Event], None]:
        """Yield what happens in an organisation, as it comes; an empty list when nothing has for a while.

        Parameters
        ----------
        after
            The number of the last event that is known.
        patience
            Seconds between signs of life.
        """
        signal = asyncio.Event()
        first = not self._waiting
        self._waiting.add(signal)
        if first:
            self.poke()
        try:
            while not self.stopping.is_set():
                new = [event for event in self._since(after) if event.org == org]
                after = self._last
                if new:
                    yield new
                    continue
                signal.clear()
                try:
                    await asyncio.wait_for(signal.wait(), patience)
                except TimeoutError:
                    yield []
        finally:
            self._waiting.discard(signal)

    def knows(self, after: int) -> bool:
        """Return whether everything after an event is still at hand."""
        return after >= self._last or (bool(self._kept) and self._kept[0].seq <= after + 1)

    def _since(self, after: int) -> list[Event]:
        found: list[Event] = []
        for event in reversed(self._kept):
            if event.seq <= after:
                break
            found.append(event)
        return found[::-1]

    async def _look(self) -> None:
        while not self.stopping.is_set():
            try:
                new = await asyncio.to_thread(self._read if self._waiting else self._skip)
                self.problem = ""
            except SQLAlchemyError as error:
                new, self.problem = [], type(error).__name__
            if new:
                self._kept.extend(new)
                self._last = new[-1].seq
                self._wake()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._poke.wait(), TICK)
            self._poke.clear()
            await asyncio.sleep(TICK / 10)  # what comes together is read together

    def _read(self) -> list[Event]:
        columns = (events.c.seq, events.c.org, events.c.kind, events.c.run_id, events.c.subject)
        statement = select(*columns).where(events.c.seq > self._last).order_by(events.c.seq).limit(BATCH)
        with self._engine.connect() as connection:
            rows = [Event(*row) for row in connection.execute(statement)]
        return self._in_order(rows)

    def _skip(self) -> list[Event]:
        """Go on to the newest event: nobody watches."""
        with self._engine.connect() as connection:
            self._last = int(connection.execute(select(func.max(events.c.seq))).scalar() or 0)
        self._kept.clear()
        self._missing.clear()
        return []

    def _in_order(self, rows: list[Event]) -> list[Event]:
        """Return events up to the first number that is missing and may yet come."""
        now, expected = monotonic(), self._last + 1
        for at, row in enumerate(rows):
            if row.seq != expected and now - self._missing.setdefault(expected, now) < GAP:
                return rows[:at]
            expected = row.seq + 1
        self._missing.clear()
        return rows

    def _wake(self) -> None:
        for signal in self._waiting:
            signal.set()


def runs_of(changed: list[Event]) -> list[int]:
    """Return the runs that some events are about, each once."""
    return list(dict.fromkeys([event.run for event in changed if event.run]))


def as_data(event: Event) -> dict[str, Any]:
    """Return an event as it is sent to a page."""
    return {"seq": event.seq, "kind": event.kind, "run": event.run, "subject": event.subject}
