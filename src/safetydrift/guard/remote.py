"""A guard elsewhere: the interface of `Guard`, with a team's service (`safetydrift serve`) that decides.

What the service cannot be asked about gets what the policy given here says of errors: a refusal by default. Results
that did not arrive are sent again before the next call of their run is proposed; as long as they cannot be, its calls
get what the policy says of lost states. Calls that were decided here are told of once the service is back.
"""

from __future__ import annotations

import os
from collections import deque
from secrets import token_hex
from socket import gethostname
from threading import Lock
from time import monotonic, perf_counter, time
from typing import TYPE_CHECKING

from msgspec.structs import replace

from safetydrift.errors import LostStateError, SafetyDriftError, ServiceError
from safetydrift.guard.asking import MAX_SHOWN, Answer, Approver, Question, answered
from safetydrift.guard.decision import Decision
from safetydrift.guard.decision_wire import decision_from, verdict_from
from safetydrift.guard.guard import Guard
from safetydrift.guard.policy import GuardPolicy
from safetydrift.guard.redacting import Redactor
from safetydrift.guard.remote_client import Client, RefusedError, UnreachableError
from safetydrift.guard.values import as_text, plain_call
from safetydrift.monitor.verdict import Intervention

if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike
    from typing import Any

    from safetydrift.guard.policy_file import WatchedPolicy
    from safetydrift.monitor.verdict import Verdict
    from safetydrift.trace import ToolCall

URL, TOKEN = "SAFETYDRIFT_URL", "SAFETYDRIFT_TOKEN"  # the names of variables
"""The environment variables with the service's address and our token."""
POLL = 20.0
"""Seconds for which one request waits for a person."""
MAX_UNSENT, MAX_OWN = 256, 256
_LOST = "urn:safetydrift:lost-state"


class RemoteGuard(Guard):
    """Asks a service about every call; see `Guard.remote`."""

    def __init__(  # pylint: disable=super-init-not-called
        self,
        url: str = "",
        token: str = "",
        *,
        policy: GuardPolicy | str | PathLike[str] | None = None,
        agent: str = "",
        person: str = "",
        framework: str = "",
        approver: Any = None,
        tools: Iterable[str] = (),
        plain_http: bool = False,
    ) -> None:
        self.client = Client(
            url or os.environ.get(URL, ""), token or os.environ.get(TOKEN, ""), plain_http=plain_http
        )
        self._fallback: GuardPolicy | WatchedPolicy
        if policy is None or isinstance(policy, GuardPolicy):
            self._fallback = policy or GuardPolicy(name="service")
        else:
            from safetydrift.guard.policy_file import WatchedPolicy  # noqa: PLC0415  # a policy in code needs no file

            self._fallback = WatchedPolicy(policy)
        self._about = {"agent": agent, "person": person, "framework": framework, "host": gethostname()}
        self.people = _People(self)
        self.approver = self.people if approver is None else approver
        self.tools = set(tools)
        self.store = _Known(self.client, self)
        self.redactor = Redactor()
        self.model_identity = "service"
        self._proposals: dict[tuple[str, str], dict[str, Any]] = {}
        self._closed = False
        self._unsent: dict[str, list[dict[str, Any]]] = {}
        self._open: dict[tuple[str, str], Decision] = {}
        self._own: deque[dict[str, Any]] = deque(maxlen=MAX_OWN)
        self._lock = Lock()

    # -- runs ---------------------------------------------------------------------------------------------

    def session(
        self, key: str, task: str = "", *, category: str = "", pipeline: str = "", parent: str = ""
    ) -> None:
        """Open a run; see `Guard.session`. ServiceError if the service cannot be asked."""
        body = {"run": key, "task": task, "category": category, "pipeline": pipeline, "parent": parent}
        self._ask("runs", {name: value for name, value in (body | self._about).items() if value})

    def hear(self, key: str, text: str) -> None:
        """Take note of what the user says; see `Guard.hear`."""
        self._ask("hear", {"run": key, "text": text, "message_id": token_hex(8)})

    def quiet(self, key: str) -> None:
        """Take note that no call of a run is under way any more; see `Guard.quiet`."""
        self._ask("quiet", {"run": key})

    def end(self, key: str) -> None:
        """Forget a run."""
        self._ask("end", {"run": key})
        with self._lock:
            self._unsent.pop(key, None)

    def current(self, key: str) -> Any:
        """Refuse: the current state of a run is shown on the page of the service, and is not known here."""
        raise ServiceError(
            f"the current state of the run {key[:80]!r} is known to the service: look at {self.client.url}"
        )

    # -- calls --------------------------------------------------------------------------------------------

    def propose(self, key: str, call: ToolCall, call_id: str = "") -> Decision:
        """Decide about a call before it is made; see `Guard.propose`. People are asked by the service."""
        started = perf_counter()
        call = plain_call(call)
        call_id = call_id or f"{token_hex(8)}"
        proposal = self._proposal(key, call, call_id)
        try:
            self._send_results(key)
            decision = decision_from(self._ask("propose", proposal)["decision"])
            self._report()
        except Exception as problem:  # noqa: BLE001  # whatever it is, the policy says what becomes of the call
            decision = self._alone(key, call, call_id, problem, started)
        if not decision.asks or self.approver is None:
            return decision
        if not decision.error:
            self._proposals[key, call_id] = proposal
        question = self._asked(key, call_id, call, decision)
        said = answered(self.approver, question, self.policy.ask_timeout)
        self._proposals.pop((key, call_id), None)
        if isinstance(said, _Final):
            return said.decision
        return self.answer(key, call_id, said.approved, said.by, digest=decision.digest)

    async def apropose(self, key: str, call: ToolCall, call_id: str = "") -> Decision:
        """As `propose`, without blocking the loop."""
        import asyncio  # noqa: PLC0415  # only where a loop runs

        return await asyncio.to_thread(self.propose, key, call, call_id)

    def answer(
        self, key: str, call_id: str, approved: bool | None, by: str = "", *, digest: str = ""
    ) -> Decision:
        """Report what a person said; see `Guard.answer`. A yes needs a token that may give it."""
        alone = self._open.pop((key, call_id), None)
        if alone is not None:
            return self._concluded(alone, approved, by)
        body = {"run": key, "call_id": call_id, "approved": approved, "by": by[:256], "digest": digest}
        try:
            return decision_from(self._ask("answer", body)["decision"])
        except Exception as problem:  # noqa: BLE001  # a yes that cannot be kept is no yes
            decision = self._alone(key, None, call_id, problem, perf_counter())
            return self._concluded(decision, None, "") if decision.asks else decision

    def confirm(
        self,
        key: str,
        call_id: str,
        result: object = None,
        *,
        error: object = None,
        call: ToolCall | None = None,
    ) -> Verdict | None:
        """Record that a call was made; see `Guard.confirm`. What does not arrive is sent again later."""
        body: dict[str, Any] = {"run": key, "call_id": call_id}
        if result is not None:
            body["result"] = as_text(result)
        if error is not None:
            body["error"] = as_text(error)
        if call is not None:
            call = plain_call(call)
            body |= {"tool": call.name, "arguments": dict(call.args)}
        with self._lock:
            waiting = self._unsent.setdefault(key, [])
            if len(waiting) < MAX_UNSENT:
                waiting.append(body)
        try:
            return self._send_results(key)
        except Exception:  # noqa: BLE001  # a result must not break the agent's loop
            return None

    def release(self, key: str, call_id: str) -> None:
        """Record that a call was not made after all. Nothing raises: a call stays reserved, the cautious side."""
        from contextlib import suppress  # noqa: PLC0415  # seldom

        with suppress(SafetyDriftError):
            self._ask("release", {"run": key, "call_id": call_id})

    def wait_for(self, question: Question, timeout: float) -> Answer:
        """Return the answer that the service got from a person, with the decision it led to.

        Parameters
        ----------
        timeout
            Seconds; after them, nobody has answered.
        """
        until = monotonic() + timeout
        proposal = self._proposals.pop((question.key, question.call_id), None)
        decision = question.decision
        while (
            proposal is not None and decision.asks and (left := until - monotonic()) > 0 and not self._closed
        ):
            wait = min(POLL, left)
            asked = proposal | {"wait_ms": int(wait * 1000)}
            try:
                decision = decision_from(self._ask("propose", asked, wait + self.policy.timeout)["decision"])
            except UnreachableError:
                continue  # it may come back before the time is over
        if decision.asks:
            return Answer(None)
        return _Final(decision.allowed, decision.answered_by, decision)

    # -- housekeeping -------------------------------------------------------------------------------------

    @property
    def policy(self) -> GuardPolicy:
        """What becomes of a call when the service cannot be asked; what it decides by is its own."""
        if isinstance(self._fallback, GuardPolicy):
            return self._fallback
        return self._fallback.current(lambda _: None)

    @policy.setter
    def policy(self, policy: GuardPolicy) -> None:
        self._fallback = policy

    @property
    def policy_name(self) -> str:
        """What that policy is called."""
        return self.policy.name

    def close(self) -> None:
        """Send what is left, and close the connections; nobody waits for a person's answer any more."""
        self._closed = True
        from contextlib import suppress  # noqa: PLC0415  # once

        with suppress(Exception):
            for key in list(self._unsent):
                self._send_results(key)
            self._report()
        self.client.close()

    # -- inside -------------------------------------------------------------------------------------------

    def _ask(self, what: str, body: dict[str, Any], patience: float | None = None) -> Any:
        return self.client.post(f"/api/v1/{what}", body, patience or self.policy.timeout)

    def _proposal(self, key: str, call: ToolCall, call_id: str) -> dict[str, Any]:
        proposal: dict[str, Any] = {
            "run": key,
            "call_id": call_id,
            "tool": call.name,
            "arguments": dict(call.args),
            "nonce": token_hex(8),
            "deadline_ms": int(self.policy.timeout * 1000) or 1,
        }
        if call.malformed is not None:
            proposal["malformed"] = call.malformed[:65_536]
        if call.hints:
            proposal["hints"] = dict(call.hints)
        if self.tools:
            proposal["tools"] = sorted(self.tools)[:512]
        return proposal

    def _asked(self, key: str, call_id: str, call: ToolCall, decision: Decision) -> Question:
        return Question(
            key=key,
            call_id=call_id,
            tool=call.name,
            arguments=self.redactor.arguments(call.args, MAX_SHOWN),
            decision=decision,
            trajectory=f"see {self.client.url}",
            permits=f"this one call of {call.name}, once",
        )

    def _send_results(self, key: str) -> Verdict | None:
        """Send the results of a run that are waiting, in order; return the finding after the last."""
        verdict = None
        while True:
            with self._lock:
                waiting = self._unsent.get(key)
                if not waiting:
                    self._unsent.pop(key, None)
                    return verdict
                body = waiting[0]
            try:
                verdict = verdict_from(self._ask("confirm", body)["verdict"])
            except RefusedError as problem:
                if problem.kind != _LOST and problem.status != 409:  # noqa: PLR2004
                    raise LostStateError(key) from problem
                # The service knows that this run is lost, and says so of every later call.
            except ServiceError as problem:
                raise LostStateError(key) from problem
            with self._lock:
                if waiting and waiting[0] is body:
                    del waiting[0]

    def _alone(
        self, key: str, call: ToolCall | None, call_id: str, problem: Exception, started: float
    ) -> Decision:
        """Decide about a call without the service, as the policy says, and remember to tell of it."""
        policy = self.policy
        outcome, rule = policy.outcome_of(problem)
        error = self.redactor.text(f"{type(problem).__name__}: {problem}"[:500])
        own = {"at": time(), "run": key, "call_id": call_id, "outcome": outcome.value, "problem": error}
        self._own.append(own | {"tool": "" if call is None else call.name[:256]})
        would_be = None
        if policy.shadow and outcome is not Intervention.ALLOW:
            would_be, outcome = outcome, Intervention.ALLOW
        reason = (
            f"The guard could not be asked about this call, and the policy for that is to "
            f"{(would_be or outcome).value} ({error}). Do not try to get around this; tell the user."
        )
        decision = Decision(
            outcome,
            reason,
            rule,
            error=error,
            would_be=would_be,
            latency=perf_counter() - started,
            key=key,
            call_id=call_id,
        )
        if decision.asks and call is not None and len(self._open) < MAX_OWN:
            self._open[key, call_id] = decision
        return decision

    def _concluded(self, decision: Decision, approved: bool | None, by: str) -> Decision:
        """Return what a question comes to that the service knows nothing of."""
        outcome = Intervention.ALLOW if approved else Intervention.BLOCK
        if approved is None:
            outcome = self.policy.on_unanswered
        return replace(
            decision, intervention=outcome, answered_by=by or ("nobody" if approved is None else "a person")
        )

    def _report(self) -> None:
        """Tell of calls that were decided here, if there are any."""
        if not self._own:
            return
        told = [self._own.popleft() for _ in range(len(self._own))]
        body = {"decisions": told, "agent": self._about["agent"], "host": self._about["host"]}
        try:
            self._ask("reports", body)
        except ServiceError:
            self._own.extendleft(reversed(told))


class _Final(Answer, frozen=True):
    """An answer that comes with the decision that it led to."""

    decision: Decision = Decision(Intervention.BLOCK)


class _People(Approver):
    """The people who answer on the service's page, or by the ways it knows."""

    def __init__(self, guard: RemoteGuard) -> None:
        super().__init__()
        self._guard = guard

    def ask(self, question: Question, timeout: float) -> Answer:
        """Wait for the answer; nobody's if none comes in time."""
        return self._guard.wait_for(question, timeout)


class _Known:
    """What stands for a store: whether the service knows a run."""

    waits = True

    def __init__(self, client: Client, guard: RemoteGuard) -> None:
        self._client, self._guard = client, guard

    def bind(self, model: str, space: Any) -> None:
        """Do nothing: the states are the service's."""

    def read(self, key: str) -> Any:
        """Return something if the service knows a run, None if it does not."""
        known = self._client.post("/api/v1/known", {"run": key}, self._guard.policy.timeout)
        return (None, 1) if known.get("done") is True else None

    def write(self, key: str, session: Any, version: int) -> bool:  # noqa: ARG002  # as every store
        """Do nothing, as above."""
        return False

    def remove(self, key: str) -> None:
        """Do nothing, as above."""

    def keys(self) -> tuple[str, ...]:
        """Return nothing: runs are listed on the service's page."""
        return ()

    def sweep(self) -> int:
        """Do nothing: the service forgets by itself."""
        return 0

    def close(self) -> None:
        """Do nothing: the connections are the guard's."""
