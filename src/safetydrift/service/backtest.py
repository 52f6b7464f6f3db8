"""Backtests: what another policy would have decided in stored runs, beside the one in force.

Both policies are given the calls of past runs, in order, by guards of their own; what came back then comes back again,
whatever they decide. Stored contents are redacted, so a replay may see less than the guard saw then: the share of calls
in which the policy that was in force decides in the replay as it did says how far a backtest can be trusted. It runs in
a process of its own, at low priority, so that decisions do not wait for it.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import Counter
from contextlib import suppress
from time import time
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import insert, select, update

from safetydrift.formats.config_file import load_config
from safetydrift.formats.model_file import load_model
from safetydrift.guard.guard import Guard
from safetydrift.guard.stores.memory import MemoryStore
from safetydrift.service import queries
from safetydrift.service.database.engine import database_url, reader_engine, writer_engine
from safetydrift.service.database.schema import backtests, calls, policies, runs
from safetydrift.service.policies import LIVE, PolicyBook
from safetydrift.service.settings import Settings
from safetydrift.trace import ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sqlalchemy import Connection

    from safetydrift.guard.decision import Decision
    from safetydrift.guard.policy import GuardPolicy
    from safetydrift.service.lanes import Lane
    from safetydrift.service.runtime import Runtime

RUNS, CALLS = 500, 20_000
"""The latest runs and calls that are tried."""
EXAMPLES = 50


async def start(runtime: Runtime, org: int, number: int, by: str) -> int:
    """Begin a backtest of a version of the policy; return its number.

    Raises
    ------
    LookupError
        If there is no such version.
    """

    def work(lane: Lane) -> int:
        if queries.policy(lane.connection, org, number) is None:
            raise LookupError(f"there is no policy {number}")
        row = {"org": org, "policy": number, "status": "running", "asked_by": by, "started": time()}
        return int(lane.execute(insert(backtests).returning(backtests.c.id), row).scalar_one())

    which = await runtime.lanes.of(org, "").run(work)
    runtime.tasks.start(_in_a_process(runtime, org, number, which))
    return which


async def _in_a_process(runtime: Runtime, org: int, number: int, which: int) -> None:
    """Have it run; it keeps its result itself, unless it is ended before."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", __name__, str(org), str(number), str(which), stdin=asyncio.subprocess.PIPE
    )
    try:
        await process.communicate(msgspec.json.encode(runtime.settings))
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        where = (backtests.c.org == org) & (backtests.c.id == which) & (backtests.c.status == "running")
        ended = {"status": "failed", "finished": time(), "result": json.dumps({"problem": "it was ended"})}
        await runtime.jobs_lane.run(
            lambda lane: lane.execute(update(backtests).where(where).values(**ended), {})
        )


class Backtest:
    """Counts what a policy would have decided.

    Parameters
    ----------
    current, other
        Guards with the policy in force and with the one that is tried.
    """

    def __init__(self, current: Guard, other: Guard) -> None:
        self._current, self._other = current, other
        self.runs = self.calls = self.unreadable = self.compared = self.agreed = 0
        self.before: Counter[str] = Counter()
        self.after: Counter[str] = Counter()
        self.changed: Counter[tuple[str, str]] = Counter()
        self.examples: list[dict[str, Any]] = []

    def add(self, run: Mapping[str, Any], made: Iterable[Mapping[str, Any]]) -> None:
        """Replay a run."""
        self.runs += 1
        key = str(run["id"])
        about = {"category": run["category"], "pipeline": run["pipeline"]}
        for guard in (self._current, self._other):
            guard.session(key, run["task"], **about)
        for row in made:
            self._call(key, row)
        for guard in (self._current, self._other):
            guard.end(key)

    def result(self) -> dict[str, Any]:
        """Return what was counted."""
        return {
            "runs": self.runs,
            "calls": self.calls,
            "unreadable": self.unreadable,
            "compared": self.compared,
            "agreed": self.agreed,
            "before": dict(self.before),
            "after": dict(self.after),
            "changed": [{"from": old, "to": new, "calls": n} for (old, new), n in self.changed.most_common()],
            "examples": self.examples,
        }

    def _call(self, key: str, row: Mapping[str, Any]) -> None:
        call = call_of(row)
        if call is None:
            self.unreadable += 1
            return
        self.calls += 1
        identifier = f"{row['number']}"
        old, new = (_decided(guard, key, call, identifier, row) for guard in (self._current, self._other))
        before, after = _outcome(old), _outcome(new)
        self.before[before] += 1
        self.after[after] += 1
        if row["decided"] in {"allow", "warn", "ask", "suggest", "block"} and not row["error"]:
            self.compared += 1
            self.agreed += before == (row["would_be"] or row["decided"])
        if before != after:
            self.changed[before, after] += 1
            if len(self.examples) < EXAMPLES:
                about = {name: row[name] for name in ("id", "run_id", "number", "tool")}
                self.examples.append(about | {"from": before, "to": after, "message": new.reason[:400]})


def call_of(row: Mapping[str, Any]) -> ToolCall | None:
    """Return the call that is stored in a row; None if its contents are not there any more, or were too long."""
    with suppress(ValueError):
        arguments = json.loads(row["arguments"])
        if isinstance(arguments, dict):
            return ToolCall(row["tool"], arguments)
    return None


def _decided(guard: Guard, key: str, call: ToolCall, identifier: str, row: Mapping[str, Any]) -> Decision:
    decision = guard.propose(key, call, identifier)
    made = row["status"] in {"made", "made anyway", "failed"}
    if decision.asks:
        guard.answer(key, identifier, made, "the replay")
    if made:
        error = row["result"] if row["status"] == "failed" else None
        guard.confirm(key, identifier, None if error else row["result"], error=error, call=call)
    else:
        guard.release(key, identifier)
    return decision


def _outcome(decision: Decision) -> str:
    return (decision.would_be or decision.intervention).value


def stored(connection: Connection, org: int) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Yield the latest runs with their calls, the oldest run first, up to a bound."""
    where = (runs.c.org == org) & (runs.c.origin == "guarded") & (runs.c.calls > 0)
    latest = select(runs).where(where).order_by(runs.c.last.desc()).limit(RUNS)
    left = CALLS
    for run in reversed(connection.execute(latest).mappings().all()):
        own = (calls.c.org == org) & (calls.c.run_id == run["id"])
        rows = (
            connection.execute(select(calls).where(own).order_by(calls.c.number).limit(left)).mappings().all()
        )
        left -= len(rows)
        yield dict(run), [dict(row) for row in rows]
        if left <= 0:
            return


def tried(settings: Settings, org: int, number: int) -> dict[str, Any]:
    """Return what a version of the policy would have decided."""
    engine = reader_engine(database_url(settings.database, settings.data))
    model = load_model(settings.model)
    labeler = load_config(settings.config).labeler(model.catalogue) if settings.config else None
    book = PolicyBook(model, labeler)
    with engine.connect() as connection:
        policy = queries.policy(connection, org, number)
        if policy is None:
            raise LookupError(f"there is no policy {number}")
        in_force = select(policies.c.text).where(policies.c.org == org, policies.c.status == LIVE)
        text = connection.execute(in_force).scalar()
        current: GuardPolicy = book.live(org) if text is None else book.checked(text)
        made = [
            Guard(model, one, MemoryStore(), labeler=labeler)
            for one in (current, book.checked(policy["text"]))
        ]
        backtest = Backtest(*made)
        for run, rows in stored(connection, org):
            backtest.add(run, rows)
    return backtest.result()


def main(arguments: list[str], told: bytes) -> None:
    """Run a backtest, and keep what it finds; arguments are the organisation, the version, and the backtest."""
    org, number, which = map(int, arguments)
    with suppress(OSError, AttributeError):
        os.nice(10)
    settings = msgspec.json.decode(told, type=Settings)
    try:
        status, result = "done", tried(settings, org, number)
    except Exception as error:  # noqa: BLE001  # whoever waits for it has to be told
        status, result = "failed", {"problem": f"{type(error).__name__}: {error}"[:500]}
    engine = writer_engine(database_url(settings.database, settings.data))
    values = {"status": status, "finished": time(), "result": json.dumps(result)}
    with engine.begin() as connection:
        connection.execute(
            update(backtests).where(backtests.c.org == org, backtests.c.id == which).values(**values)
        )


if __name__ == "__main__":
    main(sys.argv[1:], sys.stdin.buffer.read())
