"""The guard for event loops: the same decisions, without blocking the loop where a store or a person is waited for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safetydrift.guard.asking import answered_async

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from safetydrift.guard.decision import Decision
    from safetydrift.guard.guard import Guard
    from safetydrift.monitor.verdict import Verdict
    from safetydrift.trace import ToolCall


class AsyncGuard:
    """The coroutines of a guard; each does what the method without the ``a`` does.

    A store in memory is asked at once, since it never waits; every other one in a thread.
    """

    __slots__ = ()

    async def asession(self: Guard, key: str, task: str = "", **options: str) -> None:  # type: ignore[misc]  # the only subclass
        """As `Guard.session`."""
        await off_loop(self, lambda: self.session(key, task, **options))

    async def ahear(self: Guard, key: str, text: str) -> None:  # type: ignore[misc]  # as above
        """As `Guard.hear`."""
        await off_loop(self, lambda: self.hear(key, text))

    async def aend(self: Guard, key: str) -> None:  # type: ignore[misc]  # as above
        """As `Guard.end`."""
        await off_loop(self, lambda: self.end(key))

    async def apropose(self: Guard, key: str, call: ToolCall, call_id: str = "") -> Decision:  # type: ignore[misc]  # as above
        """As `Guard.propose`; an approver with ``ask_async`` is awaited, another one is asked in a thread."""
        decision, call_id = await off_loop(self, lambda: self._propose(key, call, call_id))
        if decision.asks and self.approver is not None:
            question = await off_loop(self, lambda: self._question(key, call_id, call, decision))
            said = await answered_async(self.approver, question, self.policy.ask_timeout)
            decision = await off_loop(self, lambda: self._answered(key, call_id, said))
        given: Decision = decision
        return given

    async def aanswer(  # type: ignore[misc]  # as above
        self: Guard, key: str, call_id: str, approved: bool | None, by: str = ""
    ) -> Decision:
        """As `Guard.answer`."""
        decision: Decision = await off_loop(self, lambda: self.answer(key, call_id, approved, by))
        return decision

    async def aconfirm(  # type: ignore[misc]  # as above
        self: Guard,
        key: str,
        call_id: str,
        result: object = None,
        *,
        error: object = None,
        call: ToolCall | None = None,
    ) -> Verdict | None:
        """As `Guard.confirm`."""
        verdict: Verdict | None = await off_loop(
            self, lambda: self.confirm(key, call_id, result, error=error, call=call)
        )
        return verdict

    async def arelease(self: Guard, key: str, call_id: str) -> None:  # type: ignore[misc]  # as above
        """As `Guard.release`."""
        await off_loop(self, lambda: self.release(key, call_id))


async def off_loop(guard: Guard, function: Callable[[], Any]) -> Any:
    """Return what a function that uses a guard's store returns, without blocking the loop where the store may wait."""
    if not guard.store.waits:
        return function()
    import asyncio  # noqa: PLC0415  # only where a loop runs

    return await asyncio.to_thread(function)
