"""The interface for machines, under ``/api/v1``: what each operation takes, who may ask for it, and what it does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from functools import partial
from time import perf_counter, time
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct
from sqlalchemy import insert, select

from safetydrift.guard.decision_wire import as_plain
from safetydrift.service import access, approvals, audit, erasing, policies, queries
from safetydrift.service import backtest as backtesting
from safetydrift.service.access import ADMIN, AGENT, APPROVER, READER, Principal
from safetydrift.service.database.schema import reports, run_states
from safetydrift.service.runtime import Runtime
from safetydrift.service.wire import (
    AnswerApproval,
    AnswerCall,
    Decided,
    DecidePolicy,
    Done,
    Hear,
    NewPolicy,
    NewToken,
    OpenRun,
    Page,
    Propose,
    Release,
    Report,
    RunOnly,
    RunOpened,
    Settle,
    Settled,
    Token,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from safetydrift.service.deciding import Proposed
    from safetydrift.service.lanes import Lane

T = TypeVar("T")
LOOK_AGAIN = 1.0
"""Seconds after which an agent that waits for an answer looks by itself."""


class Asked(Struct, frozen=True):
    """A request: who asks, what for, and the parts of the address."""

    runtime: Runtime
    who: Principal
    body: Any
    path: Mapping[str, str]
    query: Mapping[str, str]

    @property
    def org(self) -> int:
        """The organisation."""
        return self.who.org

    async def in_lane(self, key: str, work: Callable[[Lane], T], deadline: float | None = None) -> T:
        """Return what some work yields in the lane of a run."""
        return await self.runtime.lanes.of(self.org, key).run(work, deadline)

    async def read(self, ask: Callable[[Connection], T]) -> T:
        """Return what a question to the database yields."""
        return await asyncio.to_thread(self.runtime.read, ask)

    def before(self) -> int | None:
        """Return the place in a list from which on it is asked for.

        Raises
        ------
        ValueError
            If it is none.
        """
        said = self.query.get("before", "")
        return int(said) if said else None


# -- runs and calls -------------------------------------------------------------------------------------------


async def open_run(asked: Asked) -> RunOpened:
    """Open a run."""
    body: OpenRun = asked.body
    point, org = asked.runtime.point, asked.org
    number = await asked.in_lane(body.run, lambda lane: point.open(lane, org, body, asked.who.name))
    return RunOpened(body.run, number, f"{asked.runtime.settings.url}/runs/{number}")


async def known(asked: Asked) -> Done:
    """Say whether the guard has the state of a run."""
    body: RunOnly = asked.body
    where = (run_states.c.org == asked.org) & (run_states.c.key == body.run)
    found = await asked.read(lambda c: c.execute(select(run_states.c.version).where(where)).first())
    return Done(found is not None)


async def hear(asked: Asked) -> Done:
    """Take note of what the user says."""
    body: Hear = asked.body
    await asked.in_lane(body.run, lambda lane: asked.runtime.point.hear(lane, asked.org, body))
    return Done()


async def quiet(asked: Asked) -> Done:
    """Take note that no call is under way."""
    body: RunOnly = asked.body
    await asked.in_lane(body.run, lambda lane: asked.runtime.point.quiet(lane, asked.org, body.run))
    return Done()


async def end(asked: Asked) -> Done:
    """Forget the state of a run."""
    body: RunOnly = asked.body
    await asked.in_lane(body.run, lambda lane: asked.runtime.point.end(lane, asked.org, body.run))
    return Done()


async def propose(asked: Asked) -> Decided:
    """Decide about a call; wait for a person's answer for a while, if that is asked for."""
    body: Propose = asked.body
    return decided(await judged(asked, body))


async def judged(asked: Asked, body: Propose) -> Proposed:
    """Return the decision about a call, after a while of waiting for a person."""
    point, org = asked.runtime.point, asked.org
    started, deadline = perf_counter(), time() + body.deadline_ms / 1000.0

    def work(lane: Lane) -> Proposed:
        return point.propose(lane, org, body)

    found = await asked.in_lane(body.run, work, deadline)
    if not found.decision.repeated:
        asked.runtime.metrics.decided(found.decision, perf_counter() - started)
    if found.decision.asks and found.approval is not None and body.wait_ms:
        await _answered(asked, str(found.approval["id"]), body.wait_ms / 1000.0)
        found = await asked.in_lane(body.run, work)
    return found


def decided(found: Proposed) -> Decided:
    """Return a decision as it is sent."""
    approval = None
    if found.approval is not None:
        names = ("id", "status", "expires", "presented_digest")
        approval = {name: found.approval[name] for name in names}
    return Decided(as_plain(found.decision), approval)


async def _answered(asked: Asked, which: str, seconds: float) -> None:
    """Wait until a question is answered, or for some seconds."""
    until = time() + seconds
    hub = asked.runtime.hub

    def waits(connection: Connection) -> bool:
        row = queries.approval(connection, asked.org, which)
        return row is not None and row["status"] == approvals.PENDING

    async with aclosing(hub.changes(asked.org, hub.last, patience=LOOK_AGAIN)) as changes:
        if not await asked.read(waits):
            return
        async for new in changes:
            mine = not new or any(event.subject == which for event in new)
            if (mine and not await asked.read(waits)) or time() >= until:
                return


async def confirm(asked: Asked) -> Settled:
    """Record what came back from a call."""
    body: Settle = asked.body
    deadline = time() + body.deadline_ms / 1000.0
    point, org = asked.runtime.point, asked.org
    verdict = await asked.in_lane(body.run, lambda lane: point.settle(lane, org, body), deadline)
    return Settled(None if verdict is None else as_plain(verdict))


async def release(asked: Asked) -> Done:
    """Record that a call was not made."""
    body: Release = asked.body
    point, org = asked.runtime.point, asked.org
    await asked.in_lane(body.run, lambda lane: point.release(lane, org, body.run, body.call_id))
    return Done()


async def answer_call(asked: Asked) -> Decided:
    """Make a decision final on what a person said elsewhere; who reports a yes has to be one who may give it."""
    body: AnswerCall = asked.body
    if body.approved and APPROVER not in asked.who.may:
        raise access.DeniedError(
            403, "only an approver may report a yes; an agent may report a no, or nobody's answer"
        )
    point, org = asked.runtime.point, asked.org

    def work(lane: Lane) -> Any:
        by = f"{body.by} by way of {asked.who.name}" if body.by else asked.who.name
        told = {"by": by, "digest": body.digest}
        decision = point.answer(lane, org, body.run, body.call_id, body.approved, **told)
        row = queries.run_of(lane.connection, org, body.run)
        if row is not None:
            approvals.cancel(lane, org, int(row["id"]), body.call_id, "answered elsewhere")
        return decision

    return Decided(as_plain(await asked.in_lane(body.run, work)))


async def report(asked: Asked) -> Done:
    """Take note of calls that were decided while the service was away."""
    body: Report = asked.body

    def work(lane: Lane) -> None:
        for one in body.decisions:
            detail = f"{one.tool} in {one.run}: {one.problem}"[:1000]
            row = {"org": asked.org, "at": one.at, "agent": body.agent or asked.who.name, "host": body.host}
            lane.execute(insert(reports), row | {"outcome": one.outcome, "detail": detail})

    await asked.in_lane("", work)
    return Done()


async def list_runs(asked: Asked) -> Page:
    """List runs, the latest first."""
    words = tuple([(name, asked.query[name]) for name in queries.RUN_FILTERS if asked.query.get(name)])
    wanted = queries.RunFilter(words, asked.query.get("show", "all"))
    at, _, number = asked.query.get("before", "").partition("-")
    before = (float(at), int(number)) if number else None
    found = await asked.read(lambda c: queries.run_list(c, asked.org, wanted, before))
    more = f"{found[-1]['last']}-{found[-1]['id']}" if len(found) == queries.PAGE else None
    return Page(found, more)


async def show_run(asked: Asked) -> Page:
    """Show a run with its calls, the latest first."""
    number, before = int(asked.path["number"]), asked.before()
    row = await asked.read(lambda c: queries.run(c, asked.org, number))
    if row is None:
        raise LookupError(f"there is no run {number}")
    found = await asked.read(lambda c: queries.run_calls(c, asked.org, number, before))
    return Page([row, *found], str(found[-1]["number"]) if found else None)


async def erase_run(asked: Asked) -> Done:
    """Take what people and tools said out of a run for good; the bare decisions stay."""
    number = int(asked.path["number"])
    await asked.in_lane("", lambda lane: erasing.erase_run(lane, asked.org, number, asked.who.name))
    return Done()


async def erase_person(asked: Asked) -> Done:
    """Take what is kept of a person out of all runs for good."""
    who = asked.query.get("person", "")
    if not who:
        raise ValueError("say whose data is to go: ?person=")
    await asked.in_lane("", lambda lane: erasing.erase_person(lane, asked.org, who, asked.who.name))
    return Done()


async def find_calls(asked: Asked) -> Page:
    """Search calls by words, tool and what was done, the latest first."""
    query, before = asked.query, asked.before()
    done = [query["intervention"]] if query.get("intervention") else []
    ask = partial(queries.search, org=asked.org, words=query.get("q", ""), interventions=done)
    found = await asked.read(lambda c: ask(c, tool=query.get("tool", ""), before=before))
    return Page(found, str(found[-1]["id"]) if len(found) == queries.PAGE else None)


# -- questions ------------------------------------------------------------------------------------------------


async def list_approvals(asked: Asked) -> Page:
    """List questions: those that wait, or others by ``?status=``."""
    status = asked.query.get("status", approvals.PENDING).split(",")
    found = await asked.read(lambda c: queries.approval_list(c, asked.org, status))
    return Page([approvals.shown(row) for row in found])


async def show_approval(asked: Asked) -> Page:
    """Show a question."""
    row = await asked.read(lambda c: queries.approval(c, asked.org, asked.path["which"]))
    if row is None:
        raise LookupError("there is no such question")
    return Page([approvals.shown(row)])


async def answer_approval(asked: Asked) -> Page:
    """Answer a question; the first answer counts."""
    body: AnswerApproval = asked.body
    said = {"approved": body.approved, "presented": body.presented, "reason": body.reason}
    row = await answer_question(asked.runtime, asked.org, asked.path["which"], said, asked.who.name)
    return Page([approvals.shown(row)])


async def answer_question(
    runtime: Runtime, org: int, which: str, said: Mapping[str, Any], by: str
) -> dict[str, Any]:
    """Record a person's answer, and make a no final at once; a yes waits for the agent to use it.

    Raises
    ------
    LookupError, NotPendingError
        As `approvals.answer`.
    """
    row = await asyncio.to_thread(runtime.read, lambda c: queries.approval(c, org, which))
    if row is None:
        raise LookupError("there is no such question")
    run = await asyncio.to_thread(runtime.read, lambda c: queries.run(c, org, int(row["run_id"])))
    key = "" if run is None else str(run["key"])

    def work(lane: Lane) -> dict[str, Any]:
        answered = approvals.answer(lane, org, which, said, by, holds=runtime.settings.asking.yes_holds)
        if answered["status"] == approvals.DENIED:
            runtime.point.answer(lane, org, key, str(row["call_id"]), approved=False, by=by)
        return answered

    answered = await runtime.lanes.of(org, key).run(work)
    runtime.hub.poke()
    return answered


# -- policies, tokens, the audit log --------------------------------------------------------------------------


async def list_policies(asked: Asked) -> Page:
    """List versions of the policy, the latest first."""
    return Page(await asked.read(lambda c: queries.policy_list(c, asked.org)))


async def new_policy(asked: Asked) -> Page:
    """Put up a version of the policy."""
    body: NewPolicy = asked.body
    book = asked.runtime.book
    row = await asked.in_lane(
        "", lambda lane: policies.put_up(lane, asked.org, book, body.text, asked.who.name, note=body.note)
    )
    return Page([row])


async def decide_policy(asked: Asked) -> Page:
    """Put a version in force, beside the one in force, or turn it down."""
    body: DecidePolicy = asked.body
    number, four_eyes = int(asked.path["number"]), asked.runtime.settings.four_eyes
    row = await asked.in_lane(
        "",
        lambda lane: policies.decide(
            lane, asked.org, number, body.action, asked.who.name, four_eyes=four_eyes
        ),
    )
    asked.runtime.book.look_again()
    return Page([row])


async def backtest(asked: Asked) -> Page:
    """Try a version of the policy on stored runs; the result comes when the version is asked for again."""
    number = int(asked.path["number"])
    await backtesting.start(asked.runtime, asked.org, number, asked.who.name)
    return Page(await asked.read(lambda c: queries.backtest_list(c, asked.org, number)))


async def show_policy(asked: Asked) -> Page:
    """Show a version of the policy, and the backtests of it."""
    number = int(asked.path["number"])
    row = await asked.read(lambda c: queries.policy(c, asked.org, number))
    if row is None:
        raise LookupError(f"there is no policy {number}")
    return Page([row, *await asked.read(lambda c: queries.backtest_list(c, asked.org, number))])


async def list_agents(asked: Asked) -> Page:
    """List agents with their rates of the last days (``?days=``, 7 if not given)."""
    since = time() - float(asked.query.get("days", "7")) * 86_400.0
    return Page(await asked.read(lambda c: queries.agents(c, asked.org, since)))


async def list_tokens(asked: Asked) -> Page:
    """List tokens, without what they are."""
    return Page(await asked.read(lambda c: queries.token_list(c, asked.org)))


async def make_token(asked: Asked) -> Token:
    """Make a token, which is shown this once."""
    body: NewToken = asked.body
    number, secret = await asked.in_lane(
        "",
        lambda lane: access.new_token(
            lane, asked.org, body.name, body.scopes, asked.who.name, days=body.days
        ),
    )
    return Token(number, body.name, secret)


async def revoke_token(asked: Asked) -> Done:
    """Take a token back; within seconds it holds no more."""
    number = int(asked.path["number"])
    await asked.in_lane("", lambda lane: access.revoke(lane, asked.org, number, asked.who.name))
    asked.runtime.tokens.forget()
    return Done()


async def list_audit(asked: Asked) -> Page:
    """List entries of the audit log, the latest first."""
    before = asked.before()
    found = await asked.read(lambda c: queries.audit_list(c, asked.org, before))
    return Page(found, str(found[-1]["number"]) if len(found) == queries.PAGE else None)


async def verify_audit(asked: Asked) -> Page:
    """Check the chain of the audit log, and the decisions that it seals."""
    found = await asked.read(lambda c: audit.verify(c, asked.org))
    return Page([{name: getattr(found, name) for name in found.__struct_fields__}])


async def whoami(asked: Asked) -> Page:
    """Say who asks, and what they may."""
    return Page([{"name": asked.who.name, "may": sorted(asked.who.may), "version": asked.runtime.version}])


class Operation(Struct, frozen=True):
    """One operation.

    Parameters
    ----------
    method, path
        Where it is; parts of the path in braces.
    right
        Who may ask.
    handle
        What it does; the first line of its docstring is its summary.
    takes, gives
        What is sent, and what comes back.
    query
        Names that may stand in the query.
    """

    method: str
    path: str
    right: str
    handle: Callable[[Asked], Awaitable[Struct]]
    gives: type[Struct]
    takes: type[Struct] | None = None
    query: tuple[str, ...] = ()


OPERATIONS = (
    Operation("POST", "/api/v1/runs", AGENT, open_run, RunOpened, OpenRun),
    Operation("POST", "/api/v1/known", AGENT, known, Done, RunOnly),
    Operation("POST", "/api/v1/hear", AGENT, hear, Done, Hear),
    Operation("POST", "/api/v1/quiet", AGENT, quiet, Done, RunOnly),
    Operation("POST", "/api/v1/end", AGENT, end, Done, RunOnly),
    Operation("POST", "/api/v1/propose", AGENT, propose, Decided, Propose),
    Operation("POST", "/api/v1/confirm", AGENT, confirm, Settled, Settle),
    Operation("POST", "/api/v1/release", AGENT, release, Done, Release),
    Operation("POST", "/api/v1/answer", AGENT, answer_call, Decided, AnswerCall),
    Operation("POST", "/api/v1/reports", AGENT, report, Done, Report),
    Operation("GET", "/api/v1/runs", READER, list_runs, Page, query=("before", "show", *queries.RUN_FILTERS)),
    Operation("GET", "/api/v1/runs/{number}", READER, show_run, Page, query=("before",)),
    Operation("DELETE", "/api/v1/runs/{number}", ADMIN, erase_run, Done),
    Operation("DELETE", "/api/v1/people", ADMIN, erase_person, Done, query=("person",)),
    Operation(
        "GET", "/api/v1/calls", READER, find_calls, Page, query=("q", "tool", "intervention", "before")
    ),
    Operation("GET", "/api/v1/approvals", READER, list_approvals, Page, query=("status",)),
    Operation("GET", "/api/v1/approvals/{which}", READER, show_approval, Page),
    Operation("POST", "/api/v1/approvals/{which}/answer", APPROVER, answer_approval, Page, AnswerApproval),
    Operation("GET", "/api/v1/policies", READER, list_policies, Page),
    Operation("POST", "/api/v1/policies", ADMIN, new_policy, Page, NewPolicy),
    Operation("GET", "/api/v1/policies/{number}", READER, show_policy, Page),
    Operation("POST", "/api/v1/policies/{number}/decision", ADMIN, decide_policy, Page, DecidePolicy),
    Operation("POST", "/api/v1/policies/{number}/backtest", ADMIN, backtest, Page),
    Operation("GET", "/api/v1/agents", READER, list_agents, Page, query=("days",)),
    Operation("GET", "/api/v1/tokens", ADMIN, list_tokens, Page),
    Operation("POST", "/api/v1/tokens", ADMIN, make_token, Token, NewToken),
    Operation("DELETE", "/api/v1/tokens/{number}", ADMIN, revoke_token, Done),
    Operation("GET", "/api/v1/audit", ADMIN, list_audit, Page, query=("before",)),
    Operation("GET", "/api/v1/audit/verify", ADMIN, verify_audit, Page),
    Operation("GET", "/api/v1/whoami", READER, whoami, Page),
)
