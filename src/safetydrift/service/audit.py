"""The audit log: who did what, in a chain that shows when somebody has changed it.

Each entry holds a digest over itself and the digest of the one before, per organisation. Decisions are too many to be
entries of their own; a batch of them is sealed by one entry with the digest over all of them. What retention takes away
is covered by the seals that stay. Whoever can write the database can write a new chain: keep the last digest elsewhere.
"""

from __future__ import annotations

import json
from hashlib import sha256
from itertools import takewhile
from time import time
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from sqlalchemy import insert, select, update

from safetydrift.service.database.schema import audit, calls, organisations

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Connection

    from safetydrift.service.lanes import Lane

SEAL = "decisions sealed"
FORGOTTEN = "decisions forgotten"
BATCH = 5000
SETTLED = 30.0
"""Seconds after which a decision is sealed: nobody is in the middle of writing one with a smaller number then."""
_SEALED = ("id", "run_id", "number", "call_id", "tool", "at", "decided", "rule", "probability", "policy")


class Verified(Struct, frozen=True):
    """What a look at the chain has found.

    Parameters
    ----------
    holds
        Whether everything fits.
    entries, sealed
        How many entries there are, and how many decisions were compared with their seal.
    last
        The digest of the last entry, to be kept elsewhere.
    problem
        What does not fit; empty if everything does.
    """

    holds: bool
    entries: int
    sealed: int
    last: str
    problem: str = ""


def entry(lane: Lane, org: int, actor: str, action: str, subject: str, **detail: Any) -> None:
    """Add an entry, in the transaction of a lane."""
    head = (
        update(organisations)
        .where(organisations.c.id == org)
        .values(audit_number=organisations.c.audit_number + 1)
        .returning(organisations.c.audit_number, organisations.c.audit_digest)
    )
    number, previous = lane.execute(head, {}).one()
    row = {
        "org": org,
        "number": int(number),
        "at": round(time(), 3),
        "actor": actor[:200],
        "action": action,
        "subject": subject[:200],
        "detail": json.dumps(detail, sort_keys=True, ensure_ascii=False),
        "previous": str(previous),
    }
    row["digest"] = _digest(row)
    lane.execute(insert(audit), row)
    lane.execute(
        update(organisations).where(organisations.c.id == org).values(audit_digest=row["digest"]), {}
    )


def seal(lane: Lane, org: int) -> int:
    """Seal the decisions that are not sealed yet; return how many they were."""
    start = int(
        lane.execute(select(organisations.c.sealed_to).where(organisations.c.id == org), {}).scalar_one()
    )
    statement = (
        select(*[calls.c[name] for name in _SEALED])
        .where(calls.c.org == org, calls.c.id > start)
        .order_by(calls.c.id)
        .limit(BATCH)
    )
    before = time() - SETTLED
    # Clocks of workers differ: one that is too young holds up those behind it, or its place would be sealed without it.
    rows = list(takewhile(lambda row: row.at < before, lane.execute(statement, {}).all()))
    if not rows:
        return 0
    end = int(rows[-1][0])
    lane.execute(update(organisations).where(organisations.c.id == org).values(sealed_to=end), {})
    detail = {"after": start, "to": end, "count": len(rows), "digest": _digest_of(rows)}
    entry(lane, org, "guard", SEAL, f"{start}-{end}", **detail)
    return len(rows)


def verify(connection: Connection, org: int) -> Verified:
    """Check every entry, and every seal whose decisions are still to be there."""
    previous, number, sealed = "", 0, 0

    def broken(problem: str) -> Verified:
        return Verified(holds=False, entries=number, sealed=sealed, last=previous, problem=problem)

    forgotten = _forgotten(connection, org)
    for row in connection.execute(
        select(audit).where(audit.c.org == org).order_by(audit.c.number)
    ).mappings():
        number += 1
        if row["number"] != number or row["previous"] != previous:
            return broken(f"entry {number} does not follow the one before")
        if row["digest"] != _digest(dict(row)):
            return broken(f"entry {number} was changed")
        previous = row["digest"]
        if row["action"] == SEAL:
            held = json.loads(row["detail"])
            if held["after"] >= forgotten:
                if not _as_sealed(connection, org, held):
                    return broken(
                        f"decisions {held['after'] + 1} to {held['to']} are not those that were sealed"
                    )
                sealed += held["count"]
    head = connection.execute(
        select(organisations.c.audit_number, organisations.c.audit_digest).where(organisations.c.id == org)
    ).one()
    if (head[0], head[1]) != (number, previous):
        return broken("the last entries are missing")
    return Verified(holds=True, entries=number, sealed=sealed, last=previous)


def _forgotten(connection: Connection, org: int) -> int:
    """Return up to which decision retention has taken them away, by its own entries."""
    statement = select(audit.c.detail).where(audit.c.org == org, audit.c.action == FORGOTTEN)
    return max([int(json.loads(detail)["to"]) for (detail,) in connection.execute(statement)], default=0)


def _as_sealed(connection: Connection, org: int, held: dict[str, Any]) -> bool:
    """Return whether the decisions of a seal are as they were, and came to what they were or a person said."""
    where = (calls.c.org == org) & (calls.c.id > held["after"]) & (calls.c.id <= held["to"])
    columns = [calls.c[name] for name in _SEALED]
    rows = connection.execute(select(*columns).where(where).order_by(calls.c.id)).all()
    changed = where & (calls.c.decided != "ask") & (calls.c.intervention != calls.c.decided)
    altered = connection.execute(select(calls.c.id).where(changed).limit(1)).first()
    return altered is None and len(rows) == held["count"] and _digest_of(rows) == held["digest"]


def _digest(row: dict[str, Any]) -> str:
    names = ("org", "number", "at", "actor", "action", "subject", "detail", "previous")
    return sha256(json.dumps([row[name] for name in names], ensure_ascii=False).encode()).hexdigest()


def _digest_of(rows: Iterable[Any]) -> str:
    whole = sha256()
    for row in rows:
        whole.update(json.dumps(list(row), ensure_ascii=False).encode())
    return whole.hexdigest()
