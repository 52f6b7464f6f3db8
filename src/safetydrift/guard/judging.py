"""Judging a call on a session, and moving the session on: everything between the state and the decision."""

from __future__ import annotations

from math import nan
from time import perf_counter
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from safetydrift.authority.score import CLEAR
from safetydrift.guard.decision import Decision
from safetydrift.guard.messages import ADVICE_TO_ASK, in_brief, told
from safetydrift.guard.policy import STRICTNESS, Call, Finding
from safetydrift.guard.redacting import Redactor
from safetydrift.guard.safer import safer_tool
from safetydrift.guard.session import CONFIRMED, MAX_RESERVED, OPEN, REFUSED, RELEASED, Given, Reserved
from safetydrift.monitor.session import Pending, TrajectoryState
from safetydrift.monitor.verdict import Intervention, Verdict
from safetydrift.trace import ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from safetydrift.authority.score import Assessment
    from safetydrift.guard.policy import GuardPolicy
    from safetydrift.guard.session import Session
    from safetydrift.monitor.lookup import LookupMonitor
    from safetydrift.states.effect import Effect

_PLAINLY = Redactor()
"""What people and models are told names whom and what it is about; only secrets are taken out."""
MAX_TOOLS = 512
"""Names of tools that a run is remembered to have used; there is no reason to have more."""


class Judgement(Struct, frozen=True, gc=False):
    """What one session makes of a call.

    Parameters
    ----------
    found
        What the policy says.
    position
        Where the run stands, calls under way included.
    pending
        What was read of the call.
    verdict
        The finding about it.
    """

    found: Finding
    position: TrajectoryState
    pending: Pending
    verdict: Verdict

    @property
    def assessment(self) -> Assessment:
        """How probable it is that the call is unauthorised harm."""
        return self.pending.assessment or CLEAR

    @property
    def effect(self) -> Effect:
        """What the call was taken to do."""
        return self.pending.proposal.effect


class Judging:
    """Judges with one monitor.

    Parameters
    ----------
    monitor
        What follows the runs.
    redactor
        Takes secrets out of what is said.
    guard
        The number of the guard that judges: results of calls that another one let through are not waited for here.
    """

    __slots__ = ("_guard", "_redactor", "_space", "monitor")

    def __init__(self, monitor: LookupMonitor, redactor: Redactor, guard: int) -> None:
        self.monitor = monitor
        self._redactor = redactor
        self._guard = guard
        self._space = monitor.model.space

    def judge(self, session: Session, call: ToolCall, under: str, policy: GuardPolicy) -> Judgement:
        """Judge a call on where one run stands.

        Parameters
        ----------
        under
            The name under which this very call may be reserved already.
        """
        monitor = self.monitor
        position = self.joined(session, under) if session.reserved else session.position
        pending = monitor.read_call(position, call)
        verdict = monitor.foresee(position, pending.move)
        current = monitor.verdict(position).probability if policy.asks_current else nan
        asked = Call(
            call.name,
            position.category,
            pending.proposal.effect,
            verdict,
            current,
            pending.assessment or CLEAR,
        )
        return Judgement(policy.decide(asked, monitor.policy, self._space), position, pending, verdict)

    def joined(self, session: Session, under: str = "") -> TrajectoryState:
        """Return where a run stands if every other call that is under way does what it was taken to do.

        A call that another guard let through may have come back long ago, and its result been lost with that guard: it
        counts as content that nobody could read.
        """
        position = session.position
        for other, reserved in session.reserved.items():
            if other == under:
                continue
            given = session.answers.get(other)
            if reserved.guard == self._guard or (given is not None and given.decision.asks):
                position = self.monitor.follow(position, reserved.pending.move)
            else:
                position = self.monitor.follow_unread(position, reserved.pending)
        return position

    def decide(  # noqa: PLR0917  # a decision holds all of it, and copying one costs more than making it
        self,
        judgements: Sequence[Judgement],
        call: ToolCall,
        policy: GuardPolicy,
        tools: Iterable[str],
        started: float,
        key: str,
        call_id: str,
        digest: str,
    ) -> Decision:
        """Return the decision that the strictest judgement makes.

        Parameters
        ----------
        tools
            Names of the tools at hand.
        started
            When the decision was begun (`time.perf_counter`).
        key, call_id, digest
            Whose call it is, and which.
        """
        strictest = judgements[0]
        for other in judgements[1:]:
            if STRICTNESS[other.found.intervention] > STRICTNESS[strictest.found.intervention]:
                strictest = other
        found, verdict = strictest.found, strictest.verdict
        intervention, would_be = found.intervention, None
        reason = explanation = alternative = brief = ""
        if intervention is not Intervention.ALLOW:
            position, effect = strictest.position, strictest.effect
            explained = self.monitor.explain(position, verdict, effect)
            explanation = self._redactor.text("; ".join([explained, *effect.reasons]))
            if not found.by_authority:  # another tool for the same end would be as unauthorised
                alternative = safer_tool(self.monitor, position, call.name, tools, policy)
            reason = _PLAINLY.text(told(call, found, effect, strictest.assessment, alternative))
            brief = in_brief(found, strictest.assessment)
            if policy.shadow:
                would_be, intervention = intervention, Intervention.ALLOW
        return Decision(
            intervention,
            reason,
            found.rule,
            probability=verdict.probability,
            threshold=found.threshold,
            explanation=explanation,
            alternative=alternative,
            would_be=would_be,
            verdict=verdict,
            latency=perf_counter() - started,
            key=key,
            call_id=call_id,
            digest=digest,
            brief=brief,
            unauthorised=strictest.assessment.probability,
            harm="" if strictest.assessment.concern is None else strictest.assessment.concern.harm,
        )

    def reserve(self, session: Session, under: str, pending: Pending) -> None:
        """Reserve a call; if too many are under way, the oldest is taken for made: nobody said that it was not."""
        reserved = session.reserved
        reserved.pop(under, None)
        if len(reserved) >= MAX_RESERVED:
            oldest = next(iter(reserved))
            session.position = self.monitor.follow_unread(session.position, reserved.pop(oldest).pending)
            session.settle(oldest, CONFIRMED)
        reserved[under] = Reserved(pending, self._guard)

    def advance(self, session: Session, pending: Pending, result: str | None, error: str | None) -> Verdict:
        """Move a run on by a call that was made, and return the finding about where it stands then."""
        before = session.position
        after = self.monitor.read_result(before, pending, result, error)
        if after.facts is not None and before.facts is not None and len(after.facts.tools) > MAX_TOOLS:
            after = replace(after, facts=replace(after.facts, tools=before.facts.tools))
        session.position = after
        return self.monitor.verdict(after)

    def settle_without(self, session: Session, call_id: str) -> None:
        """Settle a call about whose result nobody said anything: taken for made, if it was allowed."""
        reserved, given = session.reserved.pop(call_id), session.answers.get(call_id)
        if given is not None and given.decision.asks:
            session.settle(call_id, RELEASED)
            return
        if reserved.guard == self._guard:
            self.advance(session, reserved.pending, None, None)
        else:
            session.position = self.monitor.follow_unread(session.position, reserved.pending)
        session.settle(call_id, CONFIRMED)

    def unexpected(self, session: Session, call: ToolCall | None, given: Given | None) -> Pending:
        """Return the reading of a call that came back though nobody waits for it.

        Parameters
        ----------
        call
            The call, if whoever tells of it says so; without it, one that was made before has only more content, and
            any other is taken for the worst.
        given
            What was answered under its id.
        """
        if call is None and given is not None and given.status == CONFIRMED:
            return self.monitor.read_more(given.tool)
        return self.monitor.read_call(session.position, call or ToolCall("", malformed=""))


def on_the_same_task(begun: TrajectoryState, whole: Session) -> TrajectoryState:
    """Return the beginning of a run that is a part of another one and works on the same task."""
    there = whole.position
    if begun.history is not None and there.history is not None:
        heard = replace(there.history, own=(), foreign=(), instructed=(), sensitive=(), unread=False)
        begun = replace(begun, history=heard)
    if there.ledger is not None:
        begun = replace(begun, ledger=there.ledger.inherited())
    if begun.facts is not None and there.facts is not None:
        begun = replace(begun, facts=replace(begun.facts, task_words=there.facts.task_words))
    return begun


def answer_of(decision: Decision, tool: str, before: Given | None = None) -> Given:
    """Return what is remembered of a decision that was just made.

    Parameters
    ----------
    tool
        The tool's name.
    before
        What was answered under the same id before, perhaps to another call.
    """
    status = REFUSED if decision.refused else OPEN
    stored = decision if decision.plain else decision.stored()
    if before is None or before.status != OPEN or before.decision.digest == decision.digest:
        return Given(stored, status, tool)
    return Given(stored, status, tool, replaced=before.replaced or before.decision.asks)


def after_asking(decision: Decision, outcome: Intervention, approved: bool | None, by: str) -> Decision:
    """Return the final decision after a person was asked.

    Parameters
    ----------
    outcome
        ALLOW or BLOCK.
    approved
        What the person said; None if nobody answered.
    """
    if outcome is Intervention.ALLOW:
        reason = ""
    elif approved is None:
        reason = f"Nobody answered when asked about this call, so it is refused. {decision.reason}"
    else:
        why = decision.reason.partition(ADVICE_TO_ASK)[0]
        reason = f"A person was asked and said no. Do not try to get around this. {why}"
    return replace(decision, intervention=outcome, reason=reason.strip(), answered_by=by, repeated=False)
