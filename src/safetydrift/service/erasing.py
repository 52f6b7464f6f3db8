"""Forgetting: by age, and on request. The bare decisions of erased runs stay, for the audit log has sealed them."""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, exists, func, select, update

from safetydrift.service import audit
from safetydrift.service.approvals import PENDING
from safetydrift.service.database.schema import approvals, calls, messages, organisations, run_states, runs
from safetydrift.service.settings import DAY

if TYPE_CHECKING:
    from safetydrift.service.lanes import Lane
    from safetydrift.service.settings import Retention

CHUNK = 2000
"""Rows per transaction: nobody waits long for the one writer of SQLite."""
_EMPTY_CALL = {"arguments": "", "result": "", "message": "", "details": "", "answered_by": ""}
_EMPTY_RUN = {"task": "", "person": "", "host": "", "last_message": ""}


def erase_run(lane: Lane, org: int, number: int, by: str) -> None:
    """Take the contents of a run out, for good.

    Raises
    ------
    LookupError
        If there is no such run.
    """
    where = (runs.c.org == org) & (runs.c.id == number)
    key = lane.execute(select(runs.c.key).where(where), {}).scalar()
    if key is None:
        raise LookupError(f"there is no run {number}")
    lane.guard(org).end(str(key))
    own = (calls.c.org == org) & (calls.c.run_id == number)
    lane.execute(update(calls).where(own).values(**_EMPTY_CALL), {})
    lane.execute(delete(messages).where(messages.c.org == org, messages.c.run_id == number), {})
    asked = (approvals.c.org == org) & (approvals.c.run_id == number)
    lane.execute(update(approvals).where(asked).values(question="", reason=""), {})
    now = {"key": f"erased-{number}", "ended": time()}
    lane.execute(update(runs).where(where).values(**_EMPTY_RUN, **now), {})
    lane.runs.pop((org, str(key)), None)
    audit.entry(lane, org, by, "run erased", str(number))


def erase_person(lane: Lane, org: int, person: str, by: str) -> None:
    """Take the contents of all runs of a person out, for good."""
    where = (runs.c.org == org) & (runs.c.person == person)
    for (number,) in lane.execute(select(runs.c.id).where(where), {}).all():
        erase_run(lane, org, int(number), by)


def forget(lane: Lane, org: int, retention: Retention) -> int:
    """Forget a chunk of what is older than it may be; return how many rows were changed."""
    changed = _contents(lane, org, retention.contents_days) if retention.contents_days else 0
    changed += _decisions(lane, org, retention.decisions_days) if retention.decisions_days else 0
    if retention.states_days:
        old = (run_states.c.org == org) & (run_states.c.touched < time() - retention.states_days * DAY)
        some = select(run_states.c.key).where(old).limit(CHUNK)
        where = (run_states.c.org == org) & run_states.c.key.in_(some)
        changed += int(lane.execute(delete(run_states).where(where), {}).rowcount)
    return changed


def _contents(lane: Lane, org: int, days: float) -> int:
    before = time() - days * DAY
    mine = organisations.c.id == org
    start = lane.execute(select(organisations.c.emptied_to).where(mine), {}).scalar_one()
    where = (calls.c.org == org) & (calls.c.id > start) & (calls.c.at < before)
    rows = lane.execute(select(calls.c.id).where(where).order_by(calls.c.id).limit(CHUNK), {}).scalars().all()
    if rows:
        own = (calls.c.org == org) & calls.c.id.in_(rows)
        values: dict[str, Any] = {"arguments": "", "result": "", "message": "", "details": ""}
        lane.execute(update(calls).where(own).values(**values), {})
        lane.execute(update(organisations).where(mine).values(emptied_to=rows[-1]), {})
    said = select(messages.c.id).where(messages.c.org == org, messages.c.at < before).limit(CHUNK)
    where = (messages.c.org == org) & messages.c.id.in_(said)
    gone = int(lane.execute(delete(messages).where(where), {}).rowcount)
    held = (runs.c.task != "") | (runs.c.last_message != "")
    tasks = (runs.c.org == org) & (runs.c.last < before) & held
    gone += int(lane.execute(update(runs).where(tasks).values(task="", last_message=""), {}).rowcount)
    asked = (approvals.c.org == org) & (approvals.c.created < before) & (approvals.c.question != "")
    over = asked & (approvals.c.status != PENDING)
    gone += int(lane.execute(update(approvals).where(over).values(question="", reason=""), {}).rowcount)
    return len(rows) + gone


def _decisions(lane: Lane, org: int, days: float) -> int:
    """Forget the oldest decisions, and runs of which none is left; the audit log keeps up to where."""
    old = (calls.c.org == org) & (calls.c.at < time() - days * DAY)
    oldest = select(calls.c.id).where(old).order_by(calls.c.id).limit(CHUNK).subquery()
    end = lane.execute(select(func.max(oldest.c.id)), {}).scalar()
    if end is None:
        return 0
    audit.entry(lane, org, "guard", audit.FORGOTTEN, f"-{end}", to=int(end))
    gone = int(lane.execute(delete(calls).where(calls.c.org == org, calls.c.id <= end), {}).rowcount)
    mine = exists().where(calls.c.org == org, calls.c.run_id == runs.c.id)
    empty = (runs.c.org == org) & (runs.c.last < time() - days * DAY) & ~mine
    lane.execute(delete(runs).where(empty), {})
    return gone
