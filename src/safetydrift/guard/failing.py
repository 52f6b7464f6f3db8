"""What becomes of a call that could not be judged: the policy says it, and the decision says so."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from safetydrift.errors import SafetyDriftError
from safetydrift.guard.decision import Decision
from safetydrift.monitor.verdict import Intervention

if TYPE_CHECKING:
    from safetydrift.guard.policy import GuardPolicy
    from safetydrift.guard.redacting import Redactor

_MAX_REMEMBERED = 4096
_MAX_SAID = 500


class Failures:
    """The decisions about calls that could not be judged, by run, call id and digest of the call.

    The same call asked about again gets the same answer, even if it could be judged by then.

    Parameters
    ----------
    redactor
        Takes secrets out of what is said.
    """

    __slots__ = ("_decisions", "_redactor")

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._decisions: dict[tuple[str, str, str], Decision] = {}

    def __bool__(self) -> bool:
        return bool(self._decisions)

    def before(self, key: str, call_id: str, digest: str) -> Decision | None:
        """Return the decision that was made about a call before, if it could not be judged then."""
        return self._decisions.get((key, call_id, digest))

    def last(self, key: str, call_id: str) -> tuple[str, Decision] | None:
        """Return the last decision under a call id, and the digest of its call."""
        for (its_key, its_id, digest), decision in reversed(self._decisions.items()):
            if (its_key, its_id) == (key, call_id):
                return digest, decision
        return None

    def keep(self, decision: Decision, digest: str) -> None:
        """Remember a decision; the oldest is forgotten when there are too many."""
        if decision.call_id:
            if len(self._decisions) >= _MAX_REMEMBERED:
                self._decisions.pop(next(iter(self._decisions)), None)
            self._decisions[decision.key, decision.call_id, digest] = decision

    def decide(  # noqa: PLR0917  # what is known of the call
        self, policy: GuardPolicy, key: str, call_id: str, digest: str, problem: BaseException, started: float
    ) -> Decision:
        """Return, and remember, the decision about a call whose judgement ended in an error."""
        outcome, rule = policy.outcome_of(problem)
        error = self._told(problem)
        would_be = None
        if policy.shadow and outcome is not Intervention.ALLOW:
            would_be, outcome = outcome, Intervention.ALLOW
        decision = Decision(
            outcome,
            f"The guard could not judge this call, and its policy for that is to {(would_be or outcome).value} "
            f"({error}). Do not try to get around this; tell the user.",
            rule,
            error=error,
            would_be=would_be,
            latency=perf_counter() - started,
            key=key,
            call_id=call_id,
        )
        self.keep(decision, digest)
        return decision

    def _told(self, problem: BaseException) -> str:
        try:
            return self._redactor.text(said(problem))
        except Exception:  # noqa: BLE001  # the scanner itself may be what is broken
            return type(problem).__name__


def said(problem: BaseException) -> str:
    """Return what an error says, and what one of ours rests on."""
    cause = problem.__cause__
    text = f"{type(problem).__name__}: {problem}"
    return (f"{text} ({cause})" if isinstance(cause, SafetyDriftError) else text)[:_MAX_SAID]
