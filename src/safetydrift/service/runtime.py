"""Everything a worker holds: engines, policies, lanes, live events, figures. Made once, before the first request."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path
from secrets import token_hex
from time import time
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import func, insert, select

from safetydrift._version import __version__
from safetydrift.formats.config_file import load_config
from safetydrift.formats.model_file import load_model
from safetydrift.service import access
from safetydrift.service.access import Tokens
from safetydrift.service.database.engine import database_url, migrate, reader_engine, writer_engine
from safetydrift.service.database.schema import organisations, policies, tokens
from safetydrift.service.deciding import DecisionPoint
from safetydrift.service.hub import Hub
from safetydrift.service.lanes import Lane, Lanes
from safetydrift.service.limits import Limiter
from safetydrift.service.metrics import Metrics
from safetydrift.service.policies import LIVE, PolicyBook
from safetydrift.service.settings import DEFAULT_ORGANISATION

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from sqlalchemy import Connection, Engine

    from safetydrift.service.settings import Settings

T = TypeVar("T")
LANES = {"sqlite": 1, "postgresql": 4}
"""SQLite has one writer; PostgreSQL waits for its disk while others go on."""


class Tasks:
    """Work that goes on after the request that asked for it."""

    def __init__(self) -> None:
        self._begun: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin something."""
        task = asyncio.create_task(work)
        self._begun.add(task)
        task.add_done_callback(self._begun.discard)

    async def stop(self) -> None:
        """End what is not done yet."""
        for task in self._begun:
            task.cancel()
        await asyncio.gather(*self._begun, return_exceptions=True)


class Runtime:
    """A worker.

    Parameters
    ----------
    settings
        Of the service.

    Raises
    ------
    SafetyDriftError
        If a file cannot be read, or the database cannot be used: a guard that cannot work does not start.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.id = f"{socket.gethostname()}-{os.getpid()}-{token_hex(3)}"
        self.version, self.started = __version__, time()
        url = database_url(settings.database, settings.data)
        self.writer: Engine = writer_engine(url, durable=settings.durable)
        self.reader: Engine = reader_engine(url)
        migrate(self.writer)
        model = load_model(settings.model)
        labeler = load_config(settings.config).labeler(model.catalogue) if settings.config else None
        telemetry = _telemetry() if settings.telemetry else None
        self.book = PolicyBook(model, labeler, telemetry)
        count = settings.lanes or LANES[self.writer.dialect.name]
        self.lanes = Lanes(self.writer, self.book.make, count)
        self.jobs_lane = Lane(self.writer, self.book.make)
        self.point = DecisionPoint(settings, self.book)
        self.tokens = Tokens(self.reader)
        self.hub = Hub(self.reader)
        self.limiter = Limiter(settings.limits)
        self.metrics = Metrics()
        self.metrics.info.labels(__version__).set(1)
        self.tasks = Tasks()
        self.streams = 0

    def read(self, ask: Callable[[Connection], T]) -> T:
        """Return what a question to the database yields; for threads, not for the loop."""
        with self.reader.connect() as connection:
            return ask(connection)

    def close(self) -> None:
        """Finish what was begun, and let go of the database."""
        self.lanes.stop()
        self.jobs_lane.stop()
        self.writer.dispose()
        self.reader.dispose()


def _telemetry() -> Any:
    from safetydrift.guard.telemetry import Telemetry  # noqa: PLC0415  # an extra

    return Telemetry()


def first_start(runtime: Runtime, lane: Lane, names: tuple[str, ...]) -> str:
    """Make the organisations, with the first policy and the first token; return that token, empty if there is one."""
    secret = ""
    for name in names:
        org = access.organisation(lane, name)
        has = lane.execute(
            select(func.count()).select_from(policies).where(policies.c.org == org), {}
        ).scalar_one()
        if runtime.settings.policy and not has:
            text = Path(runtime.settings.policy).read_text("utf-8")
            policy = runtime.book.checked(text)
            row: dict[str, Any] = {"org": org, "number": 1, "name": policy.name, "text": text, "status": LIVE}
            lane.execute(insert(policies), row | {"created": time(), "created_by": "the command line"})
        known = lane.execute(
            select(func.count()).select_from(tokens).where(tokens.c.org == org), {}
        ).scalar_one()
        if not known and name == DEFAULT_ORGANISATION:
            _, secret = access.new_token(lane, org, "first", (access.ADMIN, access.AGENT), "the command line")
    return secret


def organisation_names(connection: Connection) -> dict[int, str]:
    """Return the organisations by number."""
    rows = connection.execute(select(organisations.c.id, organisations.c.name).order_by(organisations.c.id))
    return {int(number): str(name) for number, name in rows}
