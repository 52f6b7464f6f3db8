"""The decision point: what a guard does, with everything that is recorded of it, in the transaction of a lane."""

from __future__ import annotations

import json
from time import time
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from sqlalchemy import bindparam, case, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import GenericFunction

from safetydrift.errors import ServiceError
from safetydrift.guard.decision import Decision
from safetydrift.monitor.verdict import Intervention
from safetydrift.service import approvals, view
from safetydrift.service.database.schema import calls, events, messages, runs
from safetydrift.trace import ToolCall

if TYPE_CHECKING:
    from sqlalchemy.sql.compiler import SQLCompiler

    from safetydrift.guard.guard import Guard
    from safetydrift.monitor.verdict import Verdict
    from safetydrift.service.lanes import Lane
    from safetydrift.service.policies import PolicyBook
    from safetydrift.service.settings import Settings
    from safetydrift.service.wire import Hear, OpenRun, Propose, Settle

MAX_ARGUMENTS = 4096
MAX_RESULT = 2000
MAX_TASK = 4000
COURSE = 96
"""Characters of the course of a run that are kept: two per call."""
MAX_RUNS = 16_384
TOOL = 300


class last_characters(GenericFunction[str]):  # noqa: N801  # the name of a function of SQL
    """The last characters of a text."""

    inherit_cache = True


@compiles(last_characters, "sqlite")
def _in_sqlite(element: Any, compiler: SQLCompiler, **options: Any) -> str:
    text, count = element.clauses
    return f"substr({compiler.process(text, **options)}, -({compiler.process(count, **options)}))"


@compiles(last_characters, "postgresql")
def _in_postgresql(element: Any, compiler: SQLCompiler, **options: Any) -> str:
    text, count = element.clauses
    return f"right({compiler.process(text, **options)}, {compiler.process(count, **options)})"


_FIND_RUN = select(runs.c.id).where(runs.c.org == bindparam("of"), runs.c.key == bindparam("named"))
_LATEST = (
    select(calls.c.id, calls.c.intervention, calls.c.status)
    .where(
        calls.c.org == bindparam("of"),
        calls.c.run_id == bindparam("run"),
        calls.c.call_id == bindparam("named"),
    )
    .order_by(calls.c.id.desc())
    .limit(1)
)
_HIGHEST = case((bindparam("likely") > runs.c.highest, bindparam("likely")), else_=runs.c.highest)
_COUNT = (
    update(runs)
    .where(runs.c.org == bindparam("of"), runs.c.id == bindparam("run"))
    .values(
        calls=runs.c.calls + 1,
        warned=runs.c.warned + bindparam("one_warned"),
        asked=runs.c.asked + bindparam("one_asked"),
        refused=runs.c.refused + bindparam("one_refused"),
        failed=runs.c.failed + bindparam("one_failed"),
        last=bindparam("now"),
        ended=None,
        probability=bindparam("known"),
        highest=_HIGHEST,
        state=bindparam("stands"),
        risk=bindparam("risky"),
        course=last_characters(runs.c.course + bindparam("step"), COURSE),
        last_tool=bindparam("named"),
        last_intervention=bindparam("done"),
        last_message=bindparam("said"),
    )
    .returning(runs.c.calls)
)
_SETTLED_CALL = (
    update(calls)
    .where(calls.c.org == bindparam("of"), calls.c.id == bindparam("row"))
    .values(status=bindparam("now_is"), result=bindparam("came_back"), settled=bindparam("now"))
)
_CALL_COLUMNS = tuple([one.name for one in calls.c if one.name not in {"id", "result", "settled"}])
_INSERT_CALL = insert(calls).values({name: bindparam(name) for name in _CALL_COLUMNS}).returning(calls.c.id)
_INSERT_EVENT = insert(events).values(
    {name: bindparam(name) for name in ("org", "at", "kind", "run_id", "subject")}
)
_SETTLED_RUN = (
    update(runs)
    .where(runs.c.org == bindparam("of"), runs.c.id == bindparam("run"))
    .values(
        last=bindparam("now"),
        probability=bindparam("known"),
        state=bindparam("stands"),
        risk=bindparam("risky"),
    )
)


MADE, OBSERVED = "made", "observed"
"""What is said to have been done about calls that were never proposed: by a guarded agent, and by one that is not."""
_UNASKED = {MADE: ("never proposed", "This call was made without being proposed first."), OBSERVED: ("", "")}


class Proposed(Struct, frozen=True):
    """A decision, the row of its call (0 if there is none), and the question it waits for."""

    decision: Decision
    run: int
    row: int = 0
    approval: dict[str, Any] | None = None


class DecisionPoint:
    """Does what agents ask for.

    Parameters
    ----------
    settings
        Of the service.
    book
        The policies in force.
    """

    def __init__(self, settings: Settings, book: PolicyBook) -> None:
        self._settings, self._book = settings, book

    # -- runs ---------------------------------------------------------------------------------------------

    def open(self, lane: Lane, org: int, asked: OpenRun, agent: str) -> int:
        """Open a run, or go on with it; return its number."""
        guard = self._guard(lane, org)
        guard.session(
            asked.run, asked.task, category=asked.category, pipeline=asked.pipeline, parent=asked.parent
        )
        about = {name: getattr(asked, name) for name in ("parent", "host", "person", "framework")}
        about |= {name: getattr(asked, name) for name in ("category", "pipeline")}
        about |= {"agent": asked.agent or agent, "task": self._kept(guard, asked.task[:MAX_TASK])}
        number = self._run(lane, org, asked.run, **about)
        told(lane, org, "run", number)
        return number

    def hear(self, lane: Lane, org: int, asked: Hear) -> None:
        """Take note of what the user says; once, however often it comes."""
        guard = self._guard(lane, org)
        number = self._run(lane, org, asked.run)
        text = self._kept(guard, asked.text[:MAX_TASK])
        row = {"org": org, "run_id": number, "message_id": asked.message_id, "at": time(), "text": text}
        if asked.message_id:
            try:
                with lane.savepoint():
                    lane.execute(insert(messages), row)
            except IntegrityError:
                return
        guard.hear(asked.run, asked.text)
        told(lane, org, "run", number)

    def quiet(self, lane: Lane, org: int, key: str) -> None:
        """Take note that no call of a run is under way any more."""
        self._guard(lane, org).quiet(key)

    def end(self, lane: Lane, org: int, key: str) -> None:
        """Forget the state of a run; what was recorded of it stays."""
        self._guard(lane, org).end(key)
        number = self._run(lane, org, key)
        statement = update(runs).where(runs.c.org == org, runs.c.id == number).values(ended=time())
        lane.execute(statement, {})
        approvals.cancel(lane, org, number, "", "the run was ended")
        told(lane, org, "run", number)

    # -- calls --------------------------------------------------------------------------------------------

    def propose(self, lane: Lane, org: int, asked: Propose) -> Proposed:
        """Decide about a call, record it, and put the question where a person has to agree."""
        guard = self._guard(lane, org)
        guard.tools = set(asked.tools) or guard.tools
        call = ToolCall(asked.tool, asked.arguments, asked.call_id, asked.malformed, asked.hints)
        candidate = self._book.candidate(lane, org, asked.run, call, asked.call_id)
        decision = guard.propose(asked.run, call, asked.call_id)
        number = self._run(lane, org, asked.run)
        if decision.repeated:
            found = self._latest(lane, org, number, decision.call_id)
            row = 0 if found is None else found[0]
        else:
            row = self._recorded(lane, org, number, decision, call, candidate=candidate)
        if decision.asks:
            return self._asked(lane, org, Proposed(decision, number, row), call, asked.nonce)
        if decision.repeated and decision.answered_by and decision.allowed:
            decision = approvals.once(lane, org, number, decision, asked.nonce)
        return Proposed(decision, number, row)

    def knows(self, lane: Lane, org: int, number: int, call_id: str) -> bool:
        """Return whether a call of a run is recorded."""
        return self._latest(lane, org, number, call_id) is not None

    def settle(self, lane: Lane, org: int, asked: Settle, done: str = MADE) -> Verdict | None:
        """Record what came back from a call; `done` is what was done about one that was never proposed."""
        guard = self._guard(lane, org)
        call = ToolCall(asked.tool, asked.arguments, asked.call_id) if asked.tool else None
        verdict = guard.confirm(asked.run, asked.call_id, asked.result, error=asked.error, call=call)
        if verdict is None:
            raise ServiceError(f"the result of call {asked.call_id[:80]!r} could not be recorded")
        number = self._run(lane, org, asked.run)
        found = self._latest(lane, org, number, asked.call_id)
        row = self._unasked(lane, org, number, asked, (done, verdict)) if found is None else found[0]
        text = asked.result if asked.error is None else asked.error
        kept = self._kept(guard, (text or "")[:MAX_RESULT])
        status = "made" if asked.error is None else "failed"
        if found is not None and found[1] in view.REFUSED:
            status = "made anyway"
        lane.fast(_SETTLED_CALL, {"of": org, "row": row, "now_is": status, "came_back": kept, "now": time()})
        if found is not None and found[1] == Intervention.ASK.value:
            approvals.cancel(lane, org, number, asked.call_id, "the call was made: somebody agreed elsewhere")
        known = {"known": view.finite(verdict.probability), "stands": verdict.state, "risky": verdict.risk}
        lane.fast(_SETTLED_RUN, {"of": org, "run": number, "now": time()} | known)
        told(lane, org, "run", number)
        return verdict

    def release(self, lane: Lane, org: int, key: str, call_id: str) -> None:
        """Record that a call was not made after all."""
        self._guard(lane, org).release(key, call_id)
        number = self._run(lane, org, key)
        found = self._latest(lane, org, number, call_id)
        if found is not None:
            settled = {"of": org, "row": found[0], "now_is": "released", "came_back": "", "now": time()}
            lane.fast(_SETTLED_CALL, settled)
        approvals.cancel(lane, org, number, call_id, "the agent took the call back")
        told(lane, org, "run", number)

    def answer(
        self,
        lane: Lane,
        org: int,
        key: str,
        call_id: str,
        approved: bool | None,
        *,
        by: str,
        digest: str = "",
    ) -> Decision:
        """Make the decision final that waits for a person, on what that person said."""
        guard = self._guard(lane, org)
        decision = guard.answer(key, call_id, approved, by, digest=digest)
        number = self._run(lane, org, key)
        if not decision.repeated:
            self._finally(lane, org, number, decision)
        return decision

    # -- inside -------------------------------------------------------------------------------------------

    def _guard(self, lane: Lane, org: int) -> Guard:
        self._book.refresh(lane, org)
        guard = lane.guard(org)
        _ = (
            guard.policy
        )  # reading it has the guard follow: an answer may be the first thing that this one is asked
        return guard

    def _kept(self, guard: Guard, text: str) -> str:
        return guard.redactor.text(text) if text and self._settings.retention.contents else ""

    def _run(self, lane: Lane, org: int, key: str, **about: str) -> int:
        """Return the number of a run; it is made if it is not there."""
        found = lane.runs.get((org, key))
        if found is None:
            rows, _ = lane.fast(_FIND_RUN, {"of": org, "named": key})
            found = int(rows[0][0]) if rows else None
        if found is None:
            now = time()
            made = insert(runs).returning(runs.c.id)
            found = int(
                lane.execute(made, {"org": org, "key": key, "opened": now, "last": now} | about).scalar_one()
            )
        elif any(about.values()):
            told_now = {name: value for name, value in about.items() if value and name != "task"}
            if told_now:
                lane.execute(update(runs).where(runs.c.org == org, runs.c.id == found).values(**told_now), {})
        if len(lane.runs) >= MAX_RUNS:
            del lane.runs[next(iter(lane.runs))]
        lane.runs[org, key] = found
        return found

    def _latest(self, lane: Lane, org: int, number: int, call_id: str) -> tuple[int, str, str] | None:
        rows, _ = lane.fast(_LATEST, {"of": org, "run": number, "named": call_id})
        return (int(rows[0][0]), str(rows[0][1]), str(rows[0][2])) if rows else None

    def _recorded(
        self, lane: Lane, org: int, number: int, decision: Decision, call: ToolCall, *, candidate: str
    ) -> int:
        """Write a decision down; return the row of the call."""
        redactor = lane.guard(org).redactor
        seen = view.record(decision)
        likely, done = seen["probability"], decision.intervention
        counted = {
            "of": org,
            "run": number,
            "one_warned": int(done is Intervention.WARN),
            "one_asked": int(decision.asks),
            "one_refused": int(decision.refused),
            "one_failed": int(bool(decision.error)),
            "now": time(),
            "known": likely,
            "likely": likely or 0.0,
            "stands": seen["state"],
            "risky": seen["risk"],
            "step": view.course(likely),
            "named": call.name[:TOOL],
            "done": done.value,
            "said": seen["message"][:400],
        }
        order = lane.fast(_COUNT, counted)[0][0][0]
        contents = self._settings.retention.contents
        more = view.details(decision)
        row = seen | {
            "org": org,
            "run_id": number,
            "number": order,
            "call_id": decision.call_id,
            "tool": call.name[:TOOL],
            "arguments": redactor.arguments(call.args, MAX_ARGUMENTS) if contents else "",
            "at": counted["now"],
            "candidate": candidate,
            "details": json.dumps(more, ensure_ascii=False) if more else "",
            "policy": self._book.number(org),
            "status": "refused" if decision.refused else "open",
        }
        made = int(lane.fast(_INSERT_CALL, row)[0][0][0])
        told(lane, org, "run", number, str(made))
        return made

    def _asked(self, lane: Lane, org: int, found: Proposed, call: ToolCall, nonce: str) -> Proposed:
        """Put the question, or find what was answered, and use a yes."""
        decision, guard = found.decision, lane.guard(org)
        asked = approvals.question_of(lane, org, call, decision, run=found.run, row=found.row, guard=guard)
        seconds, fresh = guard.policy.ask_timeout, not decision.repeated
        approval = approvals.found_or_put(lane, org, asked, found.row, seconds=seconds, fresh=fresh)
        if approval["status"] == approvals.ALLOWED:
            used = approvals.consume(lane, org, approval, asked["action_digest"], nonce)
            by = str(approval["answered_by"])
            told = {"by": by, "digest": decision.digest}
            decision = self.answer(lane, org, decision.key, decision.call_id, used or None, **told)
        return Proposed(decision, found.run, found.row, approval)

    def _finally(self, lane: Lane, org: int, number: int, decision: Decision) -> None:
        """Write down what became of a call about which a person was asked."""
        found = self._latest(lane, org, number, decision.call_id)
        seen = view.record(decision)
        if found is not None:
            own = {name: seen[name] for name in ("intervention", "answered_by", "message", "error")}
            own |= {"status": "refused" if decision.refused else "open"}
            lane.execute(update(calls).where(calls.c.org == org, calls.c.id == found[0]).values(**own), {})
        counted = {
            "last_intervention": seen["intervention"],
            "last_message": seen["message"][:400],
            "last": time(),
        }
        if decision.refused:
            counted["refused"] = runs.c.refused + 1
        lane.execute(update(runs).where(runs.c.org == org, runs.c.id == number).values(**counted), {})
        told(lane, org, "run", number)

    def _unasked(self, lane: Lane, org: int, number: int, asked: Settle, seen: tuple[str, Verdict]) -> int:
        """Write down a call that was made and never proposed."""
        (done, verdict), redactor = seen, lane.guard(org).redactor
        likely = view.finite(verdict.probability)
        rule, message = _UNASKED[done]
        counted = {
            "of": org,
            "run": number,
            **dict.fromkeys(("one_warned", "one_asked", "one_refused", "one_failed"), 0),
            "now": time(),
            "known": likely,
            "likely": likely or 0.0,
            "stands": verdict.state,
            "risky": verdict.risk,
            "step": view.course(likely),
            "named": asked.tool[:TOOL],
            "done": done,
            "said": message,
        }
        order = lane.fast(_COUNT, counted)[0][0][0]
        row = {
            "org": org,
            "run_id": number,
            "number": order,
            "call_id": asked.call_id,
            "tool": asked.tool[:TOOL],
            "arguments": redactor.arguments(asked.arguments, MAX_ARGUMENTS)
            if self._settings.retention.contents
            else "",
            "at": counted["now"],
            "decided": done,
            "intervention": done,
            "rule": rule,
            "message": message,
            "probability": likely,
            "state": verdict.state,
            "risk": verdict.risk,
            "policy": self._book.number(org),
        }
        return int(lane.execute(insert(calls).returning(calls.c.id), row).scalar_one())


def told(lane: Lane, org: int, kind: str, run: int = 0, subject: str = "") -> None:
    """Tell whoever watches that something has changed."""
    row = {"org": org, "at": time(), "kind": kind, "run_id": run, "subject": subject}
    lane.fast(_INSERT_EVENT, row)
