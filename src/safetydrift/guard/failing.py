"""What becomes of a call that could not be judged: the policy says it, and the decision says so."""

from __future__ import annotations

from os import urandom
from time import perf_counter
from typing import TYPE_CHECKING

from safetydrift.errors import SafetyDriftError
from safetydrift.guard.decision import Decision
from safetydrift.guard.session import OPEN, REFUSED, Given
from safetydrift.monitor.verdict import Intervention

if TYPE_CHECKING:
    from safetydrift.guard.policy import GuardPolicy
    from safetydrift.guard.redacting import Redactor

_MAX_REMEMBERED = 4096
_MAX_SAID = 500


class Failures:
    """The decisions about calls that could not be judged, by run and call id.

    The same call asked about again gets the same answer, even if it could be judged by then.

    Parameters
    ----------
    redactor
        Takes secrets out of what is said.
    """

    __slots__ = ("_given", "_redactor")

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._given: dict[tuple[str, str], Given] = {}

    def __bool__(self) -> bool:
        return bool(self._given)

    def given(self, key: str, call_id: str) -> Given | None:
        """Return the answer to a call that could not be judged; None if it could."""
        return self._given.get((key, call_id))

    def remember(self, given: Given) -> None:
        """Remember an answer; the oldest is forgotten when there are too many."""
        if len(self._given) >= _MAX_REMEMBERED:
            self._given.pop(next(iter(self._given)), None)
        self._given[given.decision.key, given.decision.call_id] = given

    def settle(self, key: str, call_id: str) -> None:
        """Take note that a call was made, or was not: what is proposed under its id from now on is another one."""
        self._given.pop((key, call_id), None)

    def decide(  # noqa: PLR0917  # what is known of the call
        self, policy: GuardPolicy, key: str, call_id: str, digest: str, problem: BaseException, started: float
    ) -> Decision:
        """Return, and remember, the decision about a call whose judgement ended in an error.

        Parameters
        ----------
        call_id
            One is made up if it is empty, so that a person's answer finds the call.
        """
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
            call_id=call_id or f"unjudged-{urandom(8).hex()}",
            digest=digest,
        )
        self.remember(Given(decision, REFUSED if decision.refused else OPEN))
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
