"""The guard for event loops: the same decisions, without blocking the loop where a store or a person is waited for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from safetydrift.guard.asking import answered_async

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from safetydrift.guard.asking import Answer, Question
    from safetydrift.guard.decision import Decision
    from safetydrift.guard.policy import GuardPolicy
    from safetydrift.guard.stores.protocol import Store
    from safetydrift.monitor.verdict import Verdict
    from safetydrift.trace import ToolCall


class AsyncGuard(ABC):
    """What a guard does, and the coroutine beside each of its methods that may wait: the same with an ``a`` before it.

    A store in memory is asked at once, since it never waits; every other one in a thread.

    Attributes
    ----------
    approver
        Who is asked; None if nobody is.
    store
        Where the state of runs is kept.
    tools
        Names of the tools the agent has.
    """

    approver: Any
    store: Store
    tools: set[str]

    @property
    @abstractmethod
    def policy(self) -> GuardPolicy:
        """The policy in force."""

    @abstractmethod
    def session(
        self, key: str, task: str = "", *, category: str = "", pipeline: str = "", parent: str = ""
    ) -> None:
        """Open a run."""

    @abstractmethod
    def hear(self, key: str, text: str) -> None:
        """Take note of what the user says during a run."""

    @abstractmethod
    def end(self, key: str) -> None:
        """Forget a run."""

    @abstractmethod
    def propose(self, key: str, call: ToolCall, call_id: str = "") -> Decision:
        """Decide about a call before it is made."""

    @abstractmethod
    def answer(
        self, key: str, call_id: str, approved: bool | None, by: str = "", *, digest: str = ""
    ) -> Decision:
        """Report what a person said about a call."""

    @abstractmethod
    def confirm(
        self,
        key: str,
        call_id: str,
        result: object = None,
        *,
        error: object = None,
        call: ToolCall | None = None,
    ) -> Verdict | None:
        """Record that a call was made, with what came back."""

    @abstractmethod
    def release(self, key: str, call_id: str) -> None:
        """Record that a call was not made after all."""

    @abstractmethod
    def _propose(self, key: str, call: ToolCall, call_id: str) -> Decision:
        """Decide about a call without asking anybody."""

    @abstractmethod
    def _question(self, call: ToolCall, decision: Decision) -> Question:
        """Return what a person is asked about a call."""

    @abstractmethod
    def _answered(self, key: str, call_id: str, answer: Answer, digest: str = "") -> Decision:
        """Make the decision final that waited for a person."""

    # -- the same for event loops -------------------------------------------------------------------------

    async def asession(self, key: str, task: str = "", **options: str) -> None:
        """As `session`."""
        await off_loop(self, lambda: self.session(key, task, **options))

    async def ahear(self, key: str, text: str) -> None:
        """As `hear`."""
        await off_loop(self, lambda: self.hear(key, text))

    async def aend(self, key: str) -> None:
        """As `end`."""
        await off_loop(self, lambda: self.end(key))

    async def apropose(self, key: str, call: ToolCall, call_id: str = "") -> Decision:
        """As `propose`; an approver with ``ask_async`` is awaited, another one is asked in a thread."""
        decision: Decision = await off_loop(self, lambda: self._propose(key, call, call_id))
        if decision.asks and self.approver is not None:
            question = await off_loop(self, lambda: self._question(call, decision))
            said = await answered_async(self.approver, question, self.policy.ask_timeout)
            made_up, digest = decision.call_id, decision.digest
            decision = await off_loop(self, lambda: self._answered(key, made_up, said, digest))
        return decision

    async def aanswer(
        self, key: str, call_id: str, approved: bool | None, by: str = "", *, digest: str = ""
    ) -> Decision:
        """As `answer`."""
        decision: Decision = await off_loop(
            self, lambda: self.answer(key, call_id, approved, by, digest=digest)
        )
        return decision

    async def aconfirm(
        self,
        key: str,
        call_id: str,
        result: object = None,
        *,
        error: object = None,
        call: ToolCall | None = None,
    ) -> Verdict | None:
        """As `confirm`."""
        verdict: Verdict | None = await off_loop(
            self, lambda: self.confirm(key, call_id, result, error=error, call=call)
        )
        return verdict

    async def arelease(self, key: str, call_id: str) -> None:
        """As `release`."""
        await off_loop(self, lambda: self.release(key, call_id))


async def off_loop(guard: AsyncGuard, function: Callable[[], Any]) -> Any:
    """Return what a function that uses a guard's store returns, without blocking the loop where the store may wait."""
    if not guard.store.waits:
        return function()
    import asyncio  # noqa: PLC0415  # only where a loop runs

    return await asyncio.to_thread(function)
