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
from safetydrift.guard.session import CONFIRMED, MAX_RESERVED, OPEN, REFUSED, Given, Reservation
from safetydrift.monitor.session import TrajectoryState
from safetydrift.monitor.verdict import Intervention, Verdict
from safetydrift.states.effect import Effect
from safetydrift.states.trajectory import Move
from safetydrift.trace import Step, ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from safetydrift.guard.policy import GuardPolicy
    from safetydrift.guard.redacting import Redactor
    from safetydrift.guard.session import Session
    from safetydrift.monitor.lookup import LookupMonitor

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
    effect
        What the call was taken to do.
    verdict
        The finding about it.
    """

    found: Finding
    position: TrajectoryState
    effect: Effect
    verdict: Verdict


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
        monitor, space = self.monitor, self._space
        position = self.joined(session, under)
        effect = monitor.labeler.propose(call, position.history)
        index = space.effect_index(effect)
        verdict = monitor.foresee(
            position, Move(call.name, index, index, effect.kinds, sources=effect.sources)
        )
        standing = monitor.verdict(position).probability if policy.asks_standing else nan
        asked = Call(call.name, position.category, effect, verdict, standing)
        return Judgement(policy.decide(asked, monitor.policy, space), position, effect, verdict)

    def joined(self, session: Session, under: str = "") -> TrajectoryState:
        """Return where a run stands if every other call that is under way does what it was taken to do."""
        position = session.position
        for other, reservation in session.reserved.items():
            if other != under:
                effect = reservation.effect
                index = self._space.effect_index(effect)
                history = position.history
                move = Move(reservation.tool, index, index, effect.kinds, sources=effect.sources)
                position = self.monitor.follow(position, move)
                if position.history is not history:
                    position = replace(position, history=history)
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

    def reserve(self, session: Session, call: ToolCall, under: str, effect: Effect) -> None:
        """Reserve a call; if too many are under way, the oldest is taken for made: nobody said that it was not."""
        reserved = session.reserved
        reserved.pop(under, None)
        if len(reserved) >= MAX_RESERVED:
            oldest = next(iter(reserved))
            self.fold(session, reserved.pop(oldest), None, None)
            session.settle(oldest, CONFIRMED)
        reserved[under] = Reservation(call.name, replace(effect, reasons=(), destinations=()))

    def fold(
        self,
        session: Session,
        reservation: Reservation | None,
        result: str | None,
        error: str | None,
        call: ToolCall | None = None,
    ) -> Verdict:
        """Move a run on by a call that was made, and return the finding about where it stands then.

        A call that nobody proposed or described is taken for the worst.
        """
        effect = None
        if reservation is not None:
            effect = reservation.effect
            call = ToolCall(reservation.tool)
        elif call is None:
            call = ToolCall("", malformed="")
        before = session.position
        after, verdict = self.monitor.check(before, Step(call, result, error), effect)
        if after.past is not None and before.past is not None and len(after.past.tools) > MAX_TOOLS:
            after = replace(after, past=after.past._replace(tools=before.past.tools))
            verdict = self.monitor.verdict(after)
        session.position = after
        return verdict


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
