"""Questions to people, and what became of them.

A question is a row that outlives every process. It is answered once, whoever is quicker; a yes is for the call that was
shown, by the digest of its arguments, and is used once, by the agent that asks with the nonce of that call; what nobody
answers expires, and the policy says what that means. Every step is an entry of the audit chain.
"""

from __future__ import annotations

import json
from hashlib import sha256
from secrets import token_urlsafe
from time import time
from typing import TYPE_CHECKING, Any

import rfc8785
from msgspec.structs import replace
from sqlalchemy import insert, select, update

from safetydrift.guard.asking import MAX_SHOWN
from safetydrift.monitor.verdict import Intervention
from safetydrift.service import audit, outbox, view
from safetydrift.service.database.schema import approvals, calls, events, runs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from safetydrift.guard.decision import Decision
    from safetydrift.guard.guard import Guard
    from safetydrift.service.lanes import Lane
    from safetydrift.trace import ToolCall

PENDING, ALLOWED, DENIED = "pending", "allowed", "denied"
EXPIRED, CANCELLED, CONSUMED = "expired", "cancelled", "consumed"
HISTORY = 8
"""Calls of the run that a question shows."""


class NotPendingError(ValueError):
    """A question that was answered before, has expired, or is not the one that was shown.

    Attributes
    ----------
    status
        What it is now.
    """

    def __init__(self, status: str) -> None:
        self.status = status
        super().__init__(
            f"this question is {status} by now" if status != PENDING else "the question has changed"
        )


def canonical(value: Any) -> bytes:
    """Return data as RFC 8785 writes it; numbers that it does not have are written as text.

    Examples
    --------
    >>> canonical({"b": 1, "a": 2**60})
    b'{"a":"1152921504606846976","b":1}'
    """
    try:
        return rfc8785.dumps(value)
    except rfc8785.CanonicalizationError:
        return rfc8785.dumps(_as_texts(value))


def _as_texts(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _as_texts(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_texts(item) for item in value]
    if isinstance(value, float) or (isinstance(value, int) and abs(value) >= 2**53):
        return str(value)
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return value


def action_digest(call: ToolCall) -> str:
    """Return the digest by which a yes is bound to a call."""
    whole = {"tool": call.name, "arguments": dict(call.args), "malformed": call.malformed}
    return sha256(canonical(whole)).hexdigest()


def question_of(
    lane: Lane, org: int, call: ToolCall, decision: Decision, *, run: int, row: int, guard: Guard
) -> dict[str, Any]:
    """Return what a person is asked, as plain data."""
    found = lane.execute(
        select(runs.c.agent, runs.c.person, runs.c.host, runs.c.task, runs.c.framework).where(
            runs.c.org == org, runs.c.id == run
        ),
        {},
    )
    before = lane.execute(
        select(calls.c.number, calls.c.tool, calls.c.intervention, calls.c.risk)
        .where(calls.c.org == org, calls.c.run_id == run, calls.c.id < row)
        .order_by(calls.c.id.desc())
        .limit(HISTORY),
        {},
    ).all()
    about = found.mappings().one()
    return {
        "run": {"id": run, "key": decision.key} | dict(about),
        "call_id": decision.call_id,
        "tool": call.name[:300],
        "arguments": guard.redactor.arguments(call.args, MAX_SHOWN),
        "message": view.message(decision),
        "probability": view.finite(decision.probability),
        "threshold": view.finite(decision.threshold),
        "low": None if decision.verdict is None else view.finite(decision.verdict.low),
        "high": None if decision.verdict is None else view.finite(decision.verdict.high),
        "rule": decision.rule,
        "details": view.details(decision),
        "history": [list(one) for one in reversed(before)],
        "permits": f"this one call of {call.name[:300]}, once",
        "action_digest": action_digest(call),
    }


def found_or_put(
    lane: Lane, org: int, asked: dict[str, Any], row: int, *, seconds: float, fresh: bool
) -> dict[str, Any]:
    """Return the question about a call, as it stands; one is put if there is none about these very arguments.

    Parameters
    ----------
    seconds
        The time for an answer.
    fresh
        Whether the call was judged just now: what was asked before under its id is about another call.
    """
    number, call_id = int(asked["run"]["id"]), str(asked["call_id"])
    found = None if fresh else latest(lane, org, number, call_id)
    if found is not None and found["action_digest"] == asked["action_digest"]:
        return found
    cancel(lane, org, number, call_id, "the call was changed")
    now = time()
    question = canonical(asked).decode()
    made = {
        "id": token_urlsafe(15),
        "org": org,
        "run_id": number,
        "call_row": row,
        "call_id": call_id,
        "tool": asked["tool"],
        "action_digest": asked["action_digest"],
        "presented_digest": sha256(question.encode()).hexdigest(),
        "question": question,
        "status": PENDING,
        "created": now,
        "expires": now + seconds,
    }
    lane.execute(insert(approvals), made)
    lane.execute(
        update(runs).where(runs.c.org == org, runs.c.id == number).values(waiting=runs.c.waiting + 1), {}
    )
    audit.entry(lane, org, "guard", "question put", made["id"], digest=made["presented_digest"])
    outbox.question(lane, org, made["id"])
    _told(lane, org, number, made["id"])
    return made | {"answered_by": ""}


def latest(lane: Lane, org: int, number: int, call_id: str) -> dict[str, Any] | None:
    """Return the last question about a call; None if there was none."""
    statement = (
        select(approvals)
        .where(approvals.c.org == org, approvals.c.run_id == number, approvals.c.call_id == call_id)
        .order_by(approvals.c.created.desc())
        .limit(1)
    )
    row = lane.execute(statement, {}).mappings().first()
    return None if row is None else dict(row)


def answer(
    lane: Lane, org: int, which: str, said: Mapping[str, Any], by: str, *, holds: float
) -> dict[str, Any]:
    """Record what a person says to a question; the first one decides.

    Parameters
    ----------
    said
        ``approved``, ``presented`` (the digest of what was shown) and ``reason``.
    holds
        Seconds for which a yes waits to be used.

    Raises
    ------
    LookupError
        If there is no such question.
    NotPendingError
        If it waits for no answer any more, or is not what was shown.
    """
    now = time()
    approved = bool(said["approved"])
    values = {
        "status": ALLOWED if approved else DENIED,
        "answered": now,
        "answered_by": by,
        "reason": str(said.get("reason", ""))[:2000],
        "valid_until": now + holds,
    }
    changed = lane.execute(
        update(approvals)
        .where(
            approvals.c.org == org,
            approvals.c.id == which,
            approvals.c.status == PENDING,
            approvals.c.expires > now,
            approvals.c.presented_digest == said["presented"],
        )
        .values(**values)
        .returning(approvals),
        {},
    ).mappings()
    row = changed.first()
    if row is None:
        there = _status(lane, org, which)
        raise NotPendingError(there)
    _settled(lane, org, int(row["run_id"]))
    said_so = f"question {values['status']}"
    audit.entry(lane, org, by, said_so, which, call=row["action_digest"], reason=values["reason"])
    outbox.answered(lane, org, which)
    _told(lane, org, int(row["run_id"]), which)
    return dict(row)


def consume(lane: Lane, org: int, approval: Mapping[str, Any], digest: str, nonce: str) -> bool:
    """Use a yes, once; return whether it could be used."""
    now = time()
    changed = lane.execute(
        update(approvals)
        .where(
            approvals.c.org == org,
            approvals.c.id == approval["id"],
            approvals.c.status == ALLOWED,
            approvals.c.action_digest == digest,
            approvals.c.valid_until > now,
        )
        .values(status=CONSUMED, consumed=now, nonce=nonce),
        {},
    )
    used = bool(changed.rowcount == 1)
    if not used:
        lane.execute(
            update(approvals)
            .where(approvals.c.org == org, approvals.c.id == approval["id"], approvals.c.status == ALLOWED)
            .values(status=EXPIRED),
            {},
        )
    action = "answer used" if used else "answer came too late"
    audit.entry(lane, org, "agent", action, str(approval["id"]), call=digest)
    return used


def once(lane: Lane, org: int, number: int, decision: Decision, nonce: str) -> Decision:
    """Return the decision that a yes led to for the one that used it, and a refusal for everybody else."""
    found = latest(lane, org, number, decision.call_id)
    if found is None or found["status"] != CONSUMED or (nonce and found["nonce"] == nonce):
        return decision
    reason = (
        "The yes to this call was used already; propose the call under a new id, and a person is asked again."
    )
    return replace(decision, intervention=Intervention.BLOCK, reason=reason, rule="a yes holds once")


def cancel(lane: Lane, org: int, number: int, call_id: str, why: str) -> None:
    """Withdraw the open questions about a call, or about a whole run if no call is named."""
    where = [approvals.c.org == org, approvals.c.run_id == number, approvals.c.status.in_((PENDING, ALLOWED))]
    if call_id:
        where.append(approvals.c.call_id == call_id)
    waiting = lane.execute(select(approvals.c.id, approvals.c.status).where(*where), {}).all()
    if not waiting:
        return
    lane.execute(update(approvals).where(*where).values(status=CANCELLED, reason=why), {})
    for which, status in waiting:
        if status == PENDING:
            _settled(lane, org, number)
        audit.entry(lane, org, "agent", "question withdrawn", str(which), why=why)
        outbox.answered(lane, org, str(which))
        _told(lane, org, number, str(which))


def expire(lane: Lane, org: int, which: str) -> dict[str, Any] | None:
    """Note that nobody has answered in time; return the question, None if somebody has."""
    changed = lane.execute(
        update(approvals)
        .where(
            approvals.c.org == org,
            approvals.c.id == which,
            approvals.c.status == PENDING,
            approvals.c.expires <= time(),
        )
        .values(status=EXPIRED)
        .returning(approvals),
        {},
    ).mappings()
    row = changed.first()
    if row is None:
        return None
    _settled(lane, org, int(row["run_id"]))
    audit.entry(lane, org, "guard", "question expired", which, call=row["action_digest"])
    _told(lane, org, int(row["run_id"]), which)
    return dict(row)


def shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a question as the interface and the page give it."""
    names: Sequence[str] = (
        "id",
        "tool",
        "call_id",
        "status",
        "created",
        "expires",
        "answered",
        "answered_by",
        "reason",
        "presented_digest",
    )
    said = {name: row.get(name) for name in names}
    return said | {"run": row.get("run_id"), "question": json.loads(row["question"] or "{}")}


def _status(lane: Lane, org: int, which: str) -> str:
    row = lane.execute(
        select(approvals.c.status, approvals.c.expires).where(
            approvals.c.org == org, approvals.c.id == which
        ),
        {},
    ).first()
    if row is None:
        raise LookupError(which)
    return EXPIRED if row[0] == PENDING and row[1] <= time() else str(row[0])


def _settled(lane: Lane, org: int, number: int) -> None:
    lane.execute(
        update(runs).where(runs.c.org == org, runs.c.id == number).values(waiting=runs.c.waiting - 1), {}
    )


def _told(lane: Lane, org: int, number: int, which: str) -> None:
    row = {"org": org, "at": time(), "kind": "approval", "run_id": number, "subject": which}
    lane.execute(insert(events), row)
