"""Decisions in bounded time, while the proxy goes on: a person who is being asked keeps nobody else waiting."""

from __future__ import annotations

from threading import Event, Lock, Thread

from safetydrift.guard.asking import Approver, answered
from safetydrift.guard.decision import Decision
from safetydrift.monitor.verdict import Intervention

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from safetydrift.guard.asking import Answer, Question
    from safetydrift.guard.guard import Guard
    from safetydrift.trace import ToolCall

GRACE = 1.0
"""Seconds beyond the policy's time limit, which the guard looks at by itself."""


class Deciding:
    """Proposes calls to a guard; each gets one decision, in time.

    Parameters
    ----------
    guard
        Who decides. Its approver, if it has one, is asked in a thread of its own.
    """

    def __init__(self, guard: Guard) -> None:
        self.guard = guard
        self._tickets: dict[tuple[str, str], _Ticket] = {}
        if guard.approver is not None:
            guard.approver = _Telling(guard.approver, self._tickets)

    @property
    def waits(self) -> bool:
        """Whether a decision may wait for something: a person, or a store beyond this process."""
        return self.guard.approver is not None or self.guard.store.waits

    def begin(self, key: str, call: ToolCall, call_id: str, done: Callable[[Decision], None]) -> None:
        """Propose a call; `done` is given the decision, once, and never one to ask.

        Returns when it was, or when a person is being asked; in that case it is called from another thread.
        """
        if not self.waits:
            done(self._final(key, call, call_id))  # bounded work: nothing is waited for
            return
        ticket = self._tickets[key, call_id] = _Ticket(done)
        Thread(target=self._work, args=(ticket, key, call, call_id), daemon=True).start()
        if not ticket.moved.wait(self.guard.policy.timeout + GRACE):
            self._tickets.pop((key, call_id), None)
            ticket.finish(self._too_late(key, call_id))

    def withdraw(self, key: str, call_id: str) -> None:
        """Take back a proposal that is not decided yet; its `done` is not called any more."""
        ticket = self._tickets.pop((key, call_id), None)
        if ticket is not None:
            ticket.finish(None)

    def _work(self, ticket: _Ticket, key: str, call: ToolCall, call_id: str) -> None:
        try:
            decision = self._final(key, call, call_id)
        except Exception as problem:  # noqa: BLE001  # a thread that ends without a word would leave a call hanging
            decision = self.unjudged(key, call_id, f"{type(problem).__name__}: {problem}"[:500])
        self._tickets.pop((key, call_id), None)
        if not ticket.finish(decision) and decision.allowed:
            self.guard.release(key, call_id)

    def _final(self, key: str, call: ToolCall, call_id: str) -> Decision:
        decision = self.guard.propose(key, call, call_id)
        return self.guard.answer(key, call_id, None) if decision.asks else decision

    def _too_late(self, key: str, call_id: str) -> Decision:
        policy = self.guard.policy
        limit = f"the decision took longer than the {policy.timeout} s that it may take"
        return self._failed(key, call_id, *policy.outcome_of(TimeoutError()), limit)

    def unjudged(self, key: str, call_id: str, problem: str) -> Decision:
        """Return, and record, the decision about a call that could not even be proposed."""
        return self._failed(key, call_id, self.guard.policy.on_error, "on_error", problem)

    def _failed(self, key: str, call_id: str, outcome: Intervention, rule: str, problem: str) -> Decision:
        opens = outcome is Intervention.ALLOW or self.guard.policy.shadow
        done = Intervention.ALLOW if opens else Intervention.BLOCK
        self.tell("not judged", key, call_id, f"{done.value} by {rule}: {problem}")
        return Decision(
            done,
            f"The guard could not judge this call ({problem}), so it was refused. "
            "Do not try to get around this; tell the user.",
            rule,
            error=problem,
            key=key,
            call_id=call_id,
        )

    def tell(self, what: str, key: str = "", call_id: str = "", detail: str = "") -> None:
        """Record something in the decision log, if there is one; that it cannot be is no error."""
        self.guard.recorder.event(what, key, call_id, detail)


class _Ticket:
    """A proposal that is being decided."""

    __slots__ = ("_done", "_lock", "moved")

    def __init__(self, done: Callable[[Decision], None]) -> None:
        self._done: Callable[[Decision], None] | None = done
        self._lock = Lock()
        self.moved = Event()
        """Decided, or before a person."""

    def finish(self, decision: Decision | None) -> bool:
        """Hand over the decision; False if there was one before."""
        with self._lock:
            done, self._done = self._done, None
        try:
            if done is not None and decision is not None:
                done(decision)
        finally:
            self.moved.set()
        return done is not None


class _Telling(Approver):
    """Asks with another approver, after saying that somebody is being asked."""

    def __init__(self, approver: Any, tickets: dict[tuple[str, str], _Ticket]) -> None:
        super().__init__()
        self._approver, self._tickets = approver, tickets

    def ask(self, question: Question, timeout: float) -> Answer:
        ticket = self._tickets.get((question.key, question.call_id))
        if ticket is not None:
            ticket.moved.set()
        return answered(self._approver, question, timeout)
