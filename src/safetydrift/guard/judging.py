"""Judging a call on a session, and moving the session on: everything between the state and the decision."""

from __future__ import annotations

from math import isnan, nan
from time import perf_counter
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from safetydrift.guard.decision import Decision
from safetydrift.guard.policy import STRICTNESS, Call, Finding
from safetydrift.guard.safer import safer_tool
from safetydrift.guard.session import CONFIRMED, MAX_RESERVED, OPEN, REFUSED, Given
from safetydrift.monitor.session import Pending, TrajectoryState
from safetydrift.monitor.verdict import Intervention, Verdict
from safetydrift.trace import ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from safetydrift.guard.policy import GuardPolicy
    from safetydrift.guard.redacting import Redactor
    from safetydrift.guard.session import Session
    from safetydrift.monitor.lookup import LookupMonitor
    from safetydrift.states.effect import Effect

MAX_TOOLS = 512
"""Names of tools that a run is remembered to have used; there is no reason to have more."""
SHOWN_REASONS = 3

_ADVICE = {
    Intervention.WARN: "Go on with care, and only with what the user asked for.",
    Intervention.ASK: "A person has to agree first.",
    Intervention.SUGGEST: "This call was refused; take the safer step, or tell the user why you cannot go on.",
    Intervention.BLOCK: "This call was refused. Do not try another way to the same end; tell the user.",
}


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
    """

    __slots__ = ("_redactor", "_space", "monitor")

    def __init__(self, monitor: LookupMonitor, redactor: Redactor) -> None:
        self.monitor = monitor
        self._redactor = redactor
        self._space = monitor.model.space

    def judge(self, session: Session, call: ToolCall, under: str, policy: GuardPolicy) -> Judgement:
        """Judge a call on where one run stands.

        Parameters
        ----------
        under
            The name under which this very call may be reserved already.
        """
        monitor = self.monitor
        position = self.joined(session, under)
        pending = monitor.read_call(position, call)
        verdict = monitor.foresee(position, pending.move)
        standing = monitor.verdict(position).probability if policy.asks_standing else nan
        asked = Call(call.name, position.category, pending.proposal.effect, verdict, standing)
        return Judgement(policy.decide(asked, monitor.policy, self._space), position, pending, verdict)

    def joined(self, session: Session, under: str = "") -> TrajectoryState:
        """Return where a run stands if every other call that is under way does what it was taken to do."""
        position = session.position
        for other, pending in session.reserved.items():
            if other != under:
                position = self.monitor.follow(position, pending.move)
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
    ) -> Decision:
        """Return the decision that the strictest judgement makes.

        Parameters
        ----------
        tools
            Names of the tools at hand.
        started
            When the decision was begun (`time.perf_counter`).
        key, call_id
            Whose call it is.
        """
        strictest = judgements[0]
        for other in judgements[1:]:
            if STRICTNESS[other.found.intervention] > STRICTNESS[strictest.found.intervention]:
                strictest = other
        found, verdict = strictest.found, strictest.verdict
        intervention, would_be = found.intervention, None
        reason = explanation = alternative = ""
        if intervention is not Intervention.ALLOW:
            position, effect = strictest.position, strictest.effect
            explained = self.monitor.explain(position, verdict, effect)
            explanation = self._redactor.text("; ".join([explained, *effect.reasons]))
            alternative = safer_tool(self.monitor, position, call.name, tools, policy)
            reason = self._redactor.text(_reason(call, strictest, alternative))
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
        )

    def reserve(self, session: Session, under: str, pending: Pending) -> None:
        """Reserve a call; if too many are under way, the oldest is taken for made: nobody said that it was not."""
        reserved = session.reserved
        reserved.pop(under, None)
        if len(reserved) >= MAX_RESERVED:
            oldest = next(iter(reserved))
            self.advance(session, reserved.pop(oldest), None, None)
            session.settle(oldest, CONFIRMED)
        reserved[under] = pending.kept()

    def advance(self, session: Session, pending: Pending, result: str | None, error: str | None) -> Verdict:
        """Move a run on by a call that was made, and return the finding about where it stands then."""
        before = session.position
        after = self.monitor.read_result(before, pending, result, error)
        if after.past is not None and before.past is not None and len(after.past.tools) > MAX_TOOLS:
            after = replace(after, past=after.past._replace(tools=before.past.tools))
        session.position = after
        return self.monitor.verdict(after)

    def unexpected(self, session: Session, call: ToolCall | None) -> Pending:
        """Return the reading of a call that nobody proposed; one that nobody describes is taken for the worst."""
        return self.monitor.read_call(session.position, call or ToolCall("", malformed=""))


def on_the_same_task(begun: TrajectoryState, whole: Session) -> TrajectoryState:
    """Return the beginning of a run that is a part of another one and works on the same task."""
    there = whole.position
    if begun.history is not None and there.history is not None:
        heard = replace(there.history, own=(), foreign=(), instructed=(), sensitive=())
        begun = replace(begun, history=heard)
    if begun.past is not None and there.past is not None:
        begun = replace(begun, past=begun.past._replace(task_words=there.past.task_words))
    return begun


def answer_of(decision: Decision, digest: str) -> Given:
    """Return what is remembered of a decision that was just made."""
    return Given(digest, decision.kept(), REFUSED if decision.refused else OPEN)


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
        reason = f"A person was asked and said no. Do not try to get around this. {decision.reason}"
    return replace(decision, intervention=outcome, reason=reason.strip(), answered_by=by, repeated=False)


def _reason(call: ToolCall, judged: Judgement, alternative: str) -> str:
    """Say why, in words that the model can act on."""
    found, effect = judged.found, judged.effect
    limit = "" if isnan(found.threshold) else f"; the limit is {found.threshold:.2f}"
    parts = [f"{found.reason}."] if found.reason else []
    parts.append(f"With this call: {judged.verdict}{limit}.")
    if effect.kinds:
        parts.append(f"It could complete: {', '.join(effect.kinds)}.")
    if effect.reasons:
        parts.append(f"{call.name}: {'; '.join(effect.reasons[:SHOWN_REASONS])}.")
    if alternative:
        parts.append(f"Safer here: {alternative}.")
    parts.append(_ADVICE[found.intervention])
    return " ".join(parts)
