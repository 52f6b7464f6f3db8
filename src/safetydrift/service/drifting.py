"""The drift alarm of each agent: whether its runs still go on as the model says."""

from __future__ import annotations

import json
from contextlib import suppress
from time import time
from typing import TYPE_CHECKING

from sqlalchemy import insert, select, update

from safetydrift.monitor.drift import DriftAlarm
from safetydrift.service.database.schema import alarms, calls, events, runs

if TYPE_CHECKING:
    from typing import Any

    from safetydrift.monitor.model import Model
    from safetydrift.service.lanes import Lane

SILENT = 600.0
"""Seconds of silence after which a run that nobody has ended counts as over."""
RUNS = 50


def take(lane: Lane, org: int) -> bool:
    """Take in some runs that are over; return whether there are more."""
    model = lane.guard(org).monitor.model
    rows = lane.execute(select(alarms).where(alarms.c.org == org), {}).mappings().all()
    taken = {str(row["agent"]): dict(row) for row in rows}
    agents = (
        lane.execute(select(runs.c.agent).where(runs.c.org == org).distinct().limit(200), {}).scalars().all()
    )
    return any(_taken(lane, org, str(agent), taken.get(str(agent)), model) for agent in agents)


def _taken(lane: Lane, org: int, agent: str, row: dict[str, Any] | None, model: Model) -> bool:
    after = 0 if row is None else int(row["taken_to"])
    over = runs.c.ended.is_not(None) | (runs.c.last < time() - SILENT)
    where = (
        (runs.c.org == org)
        & (runs.c.agent == agent)
        & (runs.c.id > after)
        & over
        & (runs.c.origin == "guarded")
    )
    found = lane.execute(
        select(runs.c.id, runs.c.category, runs.c.ended).where(where).order_by(runs.c.id).limit(RUNS), {}
    ).all()
    if not found:
        return False
    alarm = _restored(row, model)
    before = alarm.alarmed_at is not None
    for number, category, ended in found:
        own = (calls.c.org == org) & (calls.c.run_id == number) & calls.c.state.is_not(None)
        states = (
            lane.execute(select(calls.c.state).where(own).order_by(calls.c.number).limit(1000), {})
            .scalars()
            .all()
        )
        if states:
            alarm.record(str(category), [0, *map(int, states)], completed=ended is not None)
    values: dict[str, Any] = {
        "at": time(),
        "taken_to": int(found[-1][0]),
        "alarmed": alarm.alarmed_at is not None,
        "state": json.dumps(alarm.state()),
    }
    if row is None:
        lane.execute(insert(alarms), {"org": org, "agent": agent} | values)
    else:
        lane.execute(update(alarms).where(alarms.c.org == org, alarms.c.agent == agent).values(**values), {})
    if values["alarmed"] and not before:
        lane.execute(insert(events), {"org": org, "at": time(), "kind": "drift", "subject": agent[:200]})
    return len(found) == RUNS


def _restored(row: dict[str, Any] | None, model: Model) -> DriftAlarm:
    """Return the alarm as it was; a new one where the model is another."""
    if row is not None and row["state"]:
        with suppress(ValueError):
            return DriftAlarm.from_state(model, json.loads(row["state"]))
    return DriftAlarm(model)
