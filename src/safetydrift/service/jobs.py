"""What has to be done whether anybody asks or not: signs of life, and, by one worker at a time, everything with a date.

Which worker that is, is settled by a lease in the database: it is renewed all the time, and goes to another worker when
the one that had it was killed. Work is done in small transactions; one that fails is done again at the next turn.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
from contextlib import suppress
from logging import getLogger
from time import monotonic, time
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from safetydrift.errors import SafetyDriftError
from safetydrift.service import approvals, audit, delivering, drifting, erasing, outbox, siem
from safetydrift.service.database.engine import checkpoint
from safetydrift.service.database.schema import (
    approvals as questions,
)
from safetydrift.service.database.schema import events, leases, runs, visits, workers
from safetydrift.service.database.schema import outbox as waiting
from safetydrift.service.demo import Demo
from safetydrift.service.runtime import organisation_names
from safetydrift.service.settings import DAY

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from safetydrift.service.lanes import Lane
    from safetydrift.service.runtime import Runtime

LEASE = "jobs"
HOLD = 15.0
"""Seconds for which a lease is good."""
BEAT = 5.0
PATIENCE = 10.0
AT_ONCE = 100
MOST = 10_000
_LOG = getLogger("safetydrift.service")


class Jobs:
    """The jobs of a worker.

    Parameters
    ----------
    runtime
        The worker.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._tasks: list[asyncio.Task[None]] = []
        self._due: dict[str, float] = {}
        self._stopping = asyncio.Event()
        self._delivery = delivering.Delivery(runtime)
        self._forwarding = siem.Forwarding(runtime)
        self._demo: Demo | None = None
        self.leads = False

    def start(self) -> None:
        """Begin."""
        self._tasks = [asyncio.create_task(self._turns()), asyncio.create_task(self._beats())]

    async def stop(self) -> None:
        """End, and leave the lease to the next one."""
        self._stopping.set()
        if self._tasks:
            _, left = await asyncio.wait(self._tasks, timeout=PATIENCE)
            for task in left:
                task.cancel()
        if self.leads:
            with suppress(SafetyDriftError):
                await self._in_lane(
                    lambda lane: lane.execute(delete(leases).where(leases.c.holder == self._runtime.id), {})
                )
        await self._delivery.close()

    async def turn(self) -> None:
        """Do everything that is due, if this worker holds the lease."""
        self.leads = await self._in_lane(self._leased)
        if not self.leads:
            return
        names = await asyncio.to_thread(self._runtime.read, organisation_names)
        await self._one_by_one(_overdue, self._expire)
        await self._one_by_one(_unused, self._give_up)
        if self._runtime.settings.asking.escalate_after < 1.0:
            await self._one_by_one(self._slow, self._escalate)
        await self._delivery.turn()
        await self._forwarding.turn()
        if self._runtime.settings.demo and names and self._is_due("demo", 1.5):
            demo = self._demo = self._demo or Demo(self._runtime, next(iter(names)))
            await self._in_lane(demo.turn)
        for name, every, work in (
            ("seal", 10.0, audit.seal),
            ("retention", 60.0, self._forget),
            ("drift", 30.0, drifting.take),
        ):
            if self._is_due(name, every):
                for org in names:
                    await self._to_the_end(org, work)
        if self._is_due("checkpoint", 2.0):
            await asyncio.to_thread(checkpoint, self._runtime.writer)
        if self._is_due("sweep", 60.0):
            await self._in_lane(_sweep)

    # -- inside -------------------------------------------------------------------------------------------

    async def _turns(self) -> None:
        await self._again(self.turn, 1.0)

    async def _beats(self) -> None:
        await self._again(self._beat, BEAT)

    async def _again(self, work: Callable[[], Awaitable[None]], every: float) -> None:
        while not self._stopping.is_set():
            try:
                await work()
            except Exception as error:  # noqa: BLE001  # it is tried again; decisions do not depend on it
                self._runtime.metrics.errors.labels("jobs").inc()
                _LOG.warning("jobs: %s: %s", type(error).__name__, error)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), every)

    async def _in_lane(self, work: Callable[[Lane], Any]) -> Any:
        return await self._runtime.jobs_lane.run(work)

    def _is_due(self, name: str, every: float) -> bool:
        now = monotonic()
        if now < self._due.get(name, 0.0):
            return False
        self._due[name] = now + every
        return True

    def _leased(self, lane: Lane) -> bool:
        now = time()
        free = (leases.c.name == LEASE) & ((leases.c.holder == self._runtime.id) | (leases.c.until < now))
        values = {"holder": self._runtime.id, "until": now + HOLD}
        if lane.execute(update(leases).where(free).values(**values), {}).rowcount == 1:
            return True
        if lane.execute(select(leases.c.name).where(leases.c.name == LEASE), {}).first() is not None:
            return False
        with suppress(IntegrityError), lane.savepoint():
            lane.execute(insert(leases), {"name": LEASE} | values)
            return True
        return False

    async def _to_the_end(self, org: int, work: Callable[[Lane, int], int]) -> None:
        """Do work in small transactions until there is none left."""
        for _ in range(MOST):
            if not await self._in_lane(lambda lane: work(lane, org)):
                return
            await asyncio.sleep(0.05)

    async def _one_by_one(
        self, ask: Callable[[Lane], Iterable[tuple[int, str]]], work: Callable[[Lane, int, str], None]
    ) -> None:
        for org, which in await self._in_lane(ask):
            await self._in_lane(lambda lane, org=org, which=which: work(lane, org, which))  # type: ignore[misc]  # as above
            self._runtime.hub.poke()

    def _expire(self, lane: Lane, org: int, which: str) -> None:
        row = approvals.expire(lane, org, which)
        if row is not None:
            outbox.answered(lane, org, which)
            self._runtime.point.answer(lane, org, _key(lane, org, row), row["call_id"], None, by="nobody")

    def _give_up(self, lane: Lane, org: int, which: str) -> None:
        """Let a yes go that no agent has used in time."""
        where = (
            (questions.c.org == org) & (questions.c.id == which) & (questions.c.status == approvals.ALLOWED)
        )
        row = lane.execute(select(questions).where(where), {}).mappings().first()
        if row is None:
            return
        lane.execute(update(questions).where(where).values(status=approvals.EXPIRED), {})
        audit.entry(lane, org, "guard", "answer not used in time", which, call=row["action_digest"])
        key, by = _key(lane, org, dict(row)), "nobody: the yes was not used in time"
        self._runtime.point.answer(lane, org, key, str(row["call_id"]), approved=False, by=by)

    def _slow(self, lane: Lane) -> list[tuple[int, str]]:
        share = self._runtime.settings.asking.escalate_after
        late = questions.c.created + share * (questions.c.expires - questions.c.created)
        where = (questions.c.status == approvals.PENDING) & questions.c.escalated.is_(None) & (late <= time())
        return _named(lane, where)

    def _escalate(self, lane: Lane, org: int, which: str) -> None:
        where = (
            (questions.c.org == org) & (questions.c.id == which) & (questions.c.status == approvals.PENDING)
        )
        lane.execute(update(questions).where(where).values(escalated=time()), {})
        audit.entry(lane, org, "guard", "question escalated", which)
        outbox.question(lane, org, which)

    def _forget(self, lane: Lane, org: int) -> bool:
        return erasing.forget(lane, org, self._runtime.settings.retention) >= erasing.CHUNK

    async def _beat(self) -> None:
        runtime = self._runtime
        figures = {"queued": runtime.lanes.queued, "streams": runtime.streams, "leads": self.leads}
        row = {
            "id": runtime.id,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "version": runtime.version,
            "started": runtime.started,
            "seen": time(),
            "figures": json.dumps(figures),
        }

        def beat(lane: Lane) -> int:
            seen = {"seen": row["seen"], "figures": row["figures"]}
            own = workers.c.id == runtime.id
            if lane.execute(update(workers).where(own).values(**seen), {}).rowcount == 0:
                lane.execute(insert(workers), row)
            statement = (
                select(func.count()).select_from(questions).where(questions.c.status == approvals.PENDING)
            )
            return int(lane.execute(statement, {}).scalar_one())

        runtime.metrics.pending.set(await self._in_lane(beat))


def _overdue(lane: Lane) -> list[tuple[int, str]]:
    where = (questions.c.status == approvals.PENDING) & (questions.c.expires <= time())
    return _named(lane, where)


def _unused(lane: Lane) -> list[tuple[int, str]]:
    where = (questions.c.status == approvals.ALLOWED) & (questions.c.valid_until <= time())
    return _named(lane, where)


def _named(lane: Lane, where: Any) -> list[tuple[int, str]]:
    rows = lane.execute(select(questions.c.org, questions.c.id).where(where).limit(AT_ONCE), {})
    return [(int(org), str(which)) for org, which in rows]


def _key(lane: Lane, org: int, row: dict[str, Any]) -> str:
    statement = select(runs.c.key).where(runs.c.org == org, runs.c.id == row["run_id"])
    return str(lane.execute(statement, {}).scalar() or "")


def _sweep(lane: Lane) -> None:
    """Forget what only served for a while."""
    now = time()
    lane.execute(delete(events).where(events.c.at < now - DAY), {})
    lane.execute(delete(visits).where(visits.c.expires < now), {})
    lane.execute(delete(workers).where(workers.c.seen < now - DAY), {})
    lane.execute(delete(waiting).where(waiting.c.delivered < now - DAY), {})
