"""What pages and the interface read. Every question names the organisation, and every list has an end."""

from __future__ import annotations

import json
import re
from time import time
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from sqlalchemy import and_, func, or_, select, text

from safetydrift.service.database.schema import (
    alarms,
    approvals,
    audit,
    backtests,
    calls,
    messages,
    policies,
    reports,
    runs,
    tokens,
    workers,
)
from safetydrift.service.settings import DAY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection, Select

PAGE = 50
MAX_PAGE = 1000
CAP = 10_000
"""Beyond which counts at a glance are not counted."""
RUN_FILTERS = ("agent", "person", "framework", "category", "pipeline", "host", "origin")
_LISTED = tuple(one for one in runs.c)
_WORDS = re.compile(r"\w+")
_CHUNK = 500
_MATCH = text(
    "SELECT rowid FROM calls_text WHERE calls_text MATCH :asked AND rowid < :before ORDER BY rowid DESC LIMIT :most"
)


class RunFilter(Struct, frozen=True):
    """Which runs: exact words by column, and ``show`` (``live``, ``waiting``, ``refused``, ``all``)."""

    words: tuple[tuple[str, str], ...] = ()
    show: str = "all"
    since: float = 0.0


def run_list(
    connection: Connection,
    org: int,
    asked: RunFilter,
    before: tuple[float, int] | None = None,
    most: int = PAGE,
) -> list[dict[str, Any]]:
    """Return runs, the latest first; those before a place in that order, if one is given."""
    where = [runs.c.org == org]
    where += [runs.c[name] == value for name, value in asked.words if name in RUN_FILTERS]
    if asked.show == "waiting":
        where.append(runs.c.waiting > 0)
    elif asked.show == "refused":
        where.append(runs.c.refused > 0)
    if asked.since:
        where.append(runs.c.last >= asked.since)
    if asked.show == "live":
        where.append(runs.c.ended.is_(None))
    if before is not None:
        at, number = before
        where.append(or_(runs.c.last < at, and_(runs.c.last == at, runs.c.id < number)))
    order = (runs.c.last.desc(), runs.c.id.desc())
    return _all(connection, select(*_LISTED).where(*where).order_by(*order).limit(min(most, MAX_PAGE)))


def run_rows(connection: Connection, org: int, numbers: Sequence[int]) -> list[dict[str, Any]]:
    """Return runs by number."""
    found = []
    for at in range(0, len(numbers), 500):
        some = list(numbers[at : at + 500])
        found += _all(connection, select(*_LISTED).where(runs.c.org == org, runs.c.id.in_(some)))
    return found


def run(connection: Connection, org: int, number: int) -> dict[str, Any] | None:
    """Return a run."""
    return _one(connection, select(runs).where(runs.c.org == org, runs.c.id == number))


def run_of(connection: Connection, org: int, key: str) -> dict[str, Any] | None:
    """Return a run by its key."""
    return _one(connection, select(runs).where(runs.c.org == org, runs.c.key == key))


def parts(connection: Connection, org: int, key: str) -> list[dict[str, Any]]:
    """Return the runs that are parts of another one."""
    where = (runs.c.org == org) & (runs.c.parent == key)
    return _all(connection, select(*_LISTED).where(where).order_by(runs.c.id).limit(PAGE))


def run_calls(
    connection: Connection, org: int, number: int, before: int | None = None, most: int = 200
) -> list[dict[str, Any]]:
    """Return the calls of a run, the latest first."""
    where = [calls.c.org == org, calls.c.run_id == number]
    if before is not None:
        where.append(calls.c.number < before)
    statement = select(calls).where(*where).order_by(calls.c.number.desc()).limit(min(most, MAX_PAGE))
    return [_with_details(row) for row in _all(connection, statement)]


def run_messages(connection: Connection, org: int, number: int) -> list[dict[str, Any]]:
    """Return what the user said during a run."""
    where = (messages.c.org == org) & (messages.c.run_id == number)
    return _all(connection, select(messages).where(where).order_by(messages.c.id).limit(200))


def search(
    connection: Connection,
    org: int,
    words: str,
    *,
    interventions: Sequence[str] = (),
    tool: str = "",
    before: int | None = None,
    most: int = PAGE,
) -> list[dict[str, Any]]:
    """Return calls in whose tool, arguments or message all of some words stand, the latest first."""
    most = min(most, MAX_PAGE)
    where = [calls.c.org == org]
    if interventions:
        where.append(calls.c.intervention.in_(list(interventions)))
    if tool:
        where.append(calls.c.tool == tool)
    own_run = and_(runs.c.id == calls.c.run_id, runs.c.org == org)
    statement = select(calls, runs.c.agent, runs.c.person, runs.c.key).join(runs, own_run).where(*where)
    asked = " ".join(_WORDS.findall(words)[:16])
    if asked and connection.dialect.name == "sqlite":
        return _matched(connection, statement, org, asked, before=before, most=most)
    if asked:
        statement = statement.where(
            text("calls.words @@ plainto_tsquery('simple', :asked)").bindparams(asked=asked)
        )
    if before is not None:
        statement = statement.where(calls.c.id < before)
    # Numbers are given out in the order of time, by which there is an index with every filter.
    order = (calls.c.id.desc(),) if asked else (calls.c.at.desc(), calls.c.id.desc())
    return [_with_details(row) for row in _all(connection, statement.order_by(*order).limit(most))]


def _matched(
    connection: Connection, statement: Select[Any], org: int, asked: str, *, before: int | None, most: int
) -> list[dict[str, Any]]:
    """Return calls that the full-text index of SQLite finds, as many as hold for the rest of a statement, too."""
    match = _expression(org, asked)
    found: list[dict[str, Any]] = []
    last = before or 1 << 62
    while len(found) < most:
        rows = [
            int(row[0])
            for row in connection.execute(_MATCH, {"asked": match, "before": last, "most": _CHUNK})
        ]
        if not rows:
            break
        more = statement.where(calls.c.id.in_(rows)).order_by(calls.c.id.desc()).limit(most - len(found))
        found += _all(connection, more)
        last = rows[-1]
    return [_with_details(row) for row in found]


def _expression(org: int, asked: str) -> str:
    quoted = " AND ".join([f'"{word}"' for word in asked.split()])
    return f'org : "{org}" AND {{tool arguments message}} : ({quoted})'


def approval_list(
    connection: Connection,
    org: int,
    status: Sequence[str] = ("pending",),
    most: int = PAGE,
    *,
    run: int | None = None,
) -> list[dict[str, Any]]:
    """Return questions; those that wait in the order in which they expire, others the latest first."""
    order = approvals.c.expires if list(status) == ["pending"] else approvals.c.created.desc()
    statement = select(approvals).where(approvals.c.org == org, approvals.c.status.in_(list(status)))
    if run is not None:
        statement = statement.where(approvals.c.run_id == run)
    return _all(connection, statement.order_by(order).limit(min(most, MAX_PAGE)))


def approval(connection: Connection, org: int, which: str) -> dict[str, Any] | None:
    """Return a question."""
    return _one(connection, select(approvals).where(approvals.c.org == org, approvals.c.id == which))


def pending(connection: Connection, org: int) -> int:
    """Return how many questions wait."""
    statement = select(func.count()).select_from(approvals)
    where = (approvals.c.org == org) & (approvals.c.status == "pending")
    return int(connection.execute(statement.where(where)).scalar_one())


def figures(connection: Connection, org: int, live: float) -> list[tuple[str, str, str]]:
    """Return what is to be seen at a glance: a word, a number, and where there is more; large counts are cut off."""
    now = time()
    lively = select(runs.c.id).where(runs.c.org == org, runs.c.last >= now - live, runs.c.ended.is_(None))
    refused = select(calls.c.id).where(
        calls.c.org == org, calls.c.intervention.in_(("block", "suggest")), calls.c.at >= now - DAY
    )
    made = select(calls.c.id).where(calls.c.org == org, calls.c.at >= now - 60)
    return [
        ("live runs", _capped(connection, lively), "/runs?show=live"),
        ("waiting", str(pending(connection, org)), "/approvals"),
        ("refused today", _capped(connection, refused), "/decisions?intervention=block"),
        ("calls in the last minute", _capped(connection, made), "/decisions"),
    ]


def known_names(connection: Connection, org: int) -> dict[str, list[str]]:
    """Return agents, people and hosts of the latest runs, for lists to choose from."""
    columns = (runs.c.agent, runs.c.person, runs.c.host)
    rows = connection.execute(
        select(*columns).where(runs.c.org == org).order_by(runs.c.last.desc()).limit(500)
    ).all()
    names = ("agent", "person", "host")
    return {name: sorted({row[at] for row in rows if row[at]})[:100] for at, name in enumerate(names)}


def _capped(connection: Connection, statement: Select[Any]) -> str:
    found = connection.execute(select(func.count()).select_from(statement.limit(CAP).subquery())).scalar_one()
    return f"{found:,}" if found < CAP else f"{CAP:,}+"


def policy_list(connection: Connection, org: int, most: int = PAGE) -> list[dict[str, Any]]:
    """Return versions of the policy, the latest first."""
    statement = select(policies).where(policies.c.org == org)
    return _all(connection, statement.order_by(policies.c.number.desc()).limit(most))


def policy(connection: Connection, org: int, number: int) -> dict[str, Any] | None:
    """Return one version of the policy."""
    return _one(connection, select(policies).where(policies.c.org == org, policies.c.number == number))


def backtest_list(connection: Connection, org: int, number: int) -> list[dict[str, Any]]:
    """Return backtests of one version of the policy, the latest first."""
    statement = select(backtests).where(backtests.c.org == org, backtests.c.policy == number)
    rows = _all(connection, statement.order_by(backtests.c.id.desc()).limit(5))
    return [row | {"result": json.loads(row["result"]) if row["result"] else None} for row in rows]


def differences(connection: Connection, org: int, since: float) -> list[dict[str, Any]]:
    """Return what the policy that runs beside would have done otherwise: counts by what was done and what would be."""
    done = func.coalesce(func.nullif(calls.c.would_be, ""), calls.c.decided)
    statement = (
        select(done.label("done"), calls.c.candidate, func.count().label("count"))
        .where(calls.c.org == org, calls.c.at >= since, calls.c.candidate != "")
        .group_by(done, calls.c.candidate)
    )
    return _all(connection, statement)


def agents(connection: Connection, org: int, since: float) -> list[dict[str, Any]]:
    """Return each agent with its pipeline: how many runs and calls, and what was done about them."""
    sums = [func.sum(runs.c[name]).label(name) for name in ("calls", "warned", "asked", "refused", "failed")]
    statement = (
        select(
            runs.c.agent,
            runs.c.pipeline,
            func.count().label("runs"),
            func.max(runs.c.last).label("last"),
            func.avg(runs.c.highest).label("highest"),
            *sums,
        )
        .where(runs.c.org == org, runs.c.last >= since)
        .group_by(runs.c.agent, runs.c.pipeline)
        .order_by(func.max(runs.c.last).desc())
        .limit(200)
    )
    return _all(connection, statement)


def agent_alarms(connection: Connection, org: int) -> dict[str, dict[str, Any]]:
    """Return the drift alarms by agent."""
    return {row["agent"]: row for row in _all(connection, select(alarms).where(alarms.c.org == org))}


def token_list(connection: Connection, org: int) -> list[dict[str, Any]]:
    """Return tokens, without what they are."""
    columns = [one for one in tokens.c if one.name != "digest"]
    return _all(
        connection, select(*columns).where(tokens.c.org == org).order_by(tokens.c.id.desc()).limit(500)
    )


def audit_list(
    connection: Connection, org: int, before: int | None = None, most: int = PAGE
) -> list[dict[str, Any]]:
    """Return entries of the audit log, the latest first."""
    where = [audit.c.org == org]
    if before is not None:
        where.append(audit.c.number < before)
    return _all(
        connection, select(audit).where(*where).order_by(audit.c.number.desc()).limit(min(most, MAX_PAGE))
    )


def report_list(connection: Connection, org: int) -> list[dict[str, Any]]:
    """Return what agents decided by themselves, the latest first."""
    statement = select(reports).where(reports.c.org == org).order_by(reports.c.at.desc()).limit(PAGE)
    return _all(connection, statement)


def worker_list(connection: Connection) -> list[dict[str, Any]]:
    """Return the workers that were heard of."""
    rows = _all(connection, select(workers).order_by(workers.c.started.desc()).limit(64))
    return [row | {"figures": json.loads(row["figures"] or "{}")} for row in rows]


def _with_details(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"details": json.loads(row["details"]) if row["details"] else {}}


def _all(connection: Connection, statement: Select[Any]) -> list[dict[str, Any]]:
    return [dict(row) for row in connection.execute(statement).mappings()]


def _one(connection: Connection, statement: Select[Any]) -> dict[str, Any] | None:
    row = connection.execute(statement).mappings().first()
    return None if row is None else dict(row)
