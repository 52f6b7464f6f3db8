"""Loops of one's own around the Anthropic and OpenAI clients: every call of a response is judged before it is made.

Needs neither client. All calls of a response are proposed before the first of them is made, so that each is judged
as if those before it had been made.
"""

from __future__ import annotations

from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from safetydrift.guard.values import as_text
from safetydrift.integrations.common import Gate, text_of
from safetydrift.integrations.raw_messages import calls_in, packed, reply

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from safetydrift.guard.decision import Decision
    from safetydrift.guard.guard import Guard
    from safetydrift.integrations.raw_messages import Found


class GuardedTools:
    """The tools of a loop, behind a guard.

    Parameters
    ----------
    guard
        Who decides.
    tools
        Functions by name, called with the arguments as keywords; coroutine functions need `aanswers`. A tool whose
        calls carry free text instead of a table gets it as ``input``.
    key
        The run. If empty: that of the surrounding `Guard.running` block, or else one of its own.
    task
        What the user asked for; later words go to `hear`.
    about
        What else the run is opened with: ``category``, ``pipeline``, ``parent``.

    Examples
    --------
    >>> from safetydrift.guard import Guard
    >>> tools = GuardedTools(Guard.load(), {"read_inbox": lambda: "nothing new"}, task="What is new?")
    >>> call = {"type": "tool_use", "id": "t1", "name": "read_inbox", "input": {}}
    >>> tools.answers({"role": "assistant", "content": [call]})
    [{'role': 'user', 'content': [{'type': 'tool_result', 'tool_use_id': 't1', 'content': 'nothing new'}]}]
    """

    def __init__(
        self,
        guard: Guard,
        tools: Mapping[str, Callable[..., Any]],
        key: str = "",
        task: str = "",
        **about: str,
    ) -> None:
        self.guard, self.tools = guard, dict(tools)
        self.gate = Gate(guard, key, task, **about)
        guard.tools.update(self.tools)

    def hear(self, text: str) -> None:
        """Take note of what the user says.

        Raises
        ------
        LostStateError, SnapshotError, StoreError
            If the run cannot be opened, or its state not kept.
        """
        key = self.gate.key()
        self.gate.listen(key)
        self.guard.quiet(key)
        self.guard.hear(key, text)

    def judge(self, response: Any) -> list[tuple[Found, Decision]]:
        """Return the calls that wait to be made, each with the decision about it; what the provider made is recorded.

        For loops that make calls in a way of their own. They report with `report`.

        Raises
        ------
        TypeError
            If it is no response.
        """
        key = self._opened()
        judged = []
        for found in calls_in(response):
            if found.made:
                self.guard.confirm(key, found.call_id, found.result, call=found.call)
            else:
                judged.append((found, self.gate.propose(key, found.call, found.call_id)))
        return judged

    def answers(self, response: Any) -> list[dict[str, Any]]:
        """Make the calls of a response that may be made; return the messages or items that answer all of them.

        A tool's own error is told to the model. The list is empty where there is nothing to answer.

        Raises
        ------
        TypeError
            If it is no response.
        """
        replies = []
        for found, decision in self.judge(response):
            refused = self._refused(found, decision)
            replies.append((found, refused or self._made(found, decision)))
        return packed(replies)

    async def aanswers(self, response: Any) -> list[dict[str, Any]]:
        """As `answers`, for coroutine functions; the calls of a response are made at the same time."""
        from asyncio import gather  # noqa: PLC0415  # only where a loop runs

        key = self._opened()
        judged = []
        for found in calls_in(response):
            if found.made:
                await self.guard.aconfirm(key, found.call_id, found.result, call=found.call)
            else:
                judged.append((found, await self.gate.apropose(key, found.call, found.call_id)))

        async def answer(found: Found, decision: Decision) -> tuple[Found, dict[str, Any]]:
            return found, self._refused(found, decision) or await self._amade(found, decision)

        return packed(list(await gather(*[answer(found, decision) for found, decision in judged])))

    def report(
        self, found: Found, decision: Decision, result: object = None, error: object = None
    ) -> dict[str, Any]:
        """Record what came of a call that was allowed; return the reply to it, with the warning if there is one."""
        key, call_id = decision.key, decision.call_id
        if error is not None:
            self.guard.confirm(key, call_id, error=error, call=found.call)
            return reply(found, f"{type(error).__name__}: {error}", failed=True)
        content = _is_content(result)
        text = text_of(result) if content else "" if result is None else as_text(result)
        self.guard.confirm(key, call_id, text, call=found.call)
        told = self.gate.with_warning(key, call_id, text)
        return reply(found, result if content and told is text else told)

    def _opened(self) -> str:
        key = self.gate.key()
        self.gate.listen(key)
        return key

    def _refused(self, found: Found, decision: Decision) -> dict[str, Any] | None:
        """Return the reply to a call that is not made; None if it is to be made."""
        if not decision.allowed:
            return reply(found, decision.reason, failed=True)
        if found.call.name in self.tools and found.call.malformed is None:
            return None
        self.guard.release(decision.key, decision.call_id)
        why = "there is no such tool" if found.call.malformed is None else "the arguments cannot be decoded"
        return reply(found, f"{found.call.name}: {why}", failed=True)

    def _made(self, found: Found, decision: Decision) -> dict[str, Any]:
        try:
            result = self.tools[found.call.name](**found.call.args)
        except Exception as error:  # noqa: BLE001  # it is the tool's, and the model's to deal with
            return self.report(found, decision, error=error)
        except BaseException as error:
            self.report(found, decision, error=error)
            raise
        return self.report(found, decision, result)

    async def _amade(self, found: Found, decision: Decision) -> dict[str, Any]:
        try:
            result = self.tools[found.call.name](**found.call.args)
            result = await result if isawaitable(result) else result
        except Exception as error:  # noqa: BLE001  # as above
            return self.report(found, decision, error=error)
        except BaseException as error:  # cancelled, too: it may have done half of it
            self.report(found, decision, error=error)
            raise
        return self.report(found, decision, result)


def _is_content(result: object) -> bool:
    """Return whether a result is structured content in a provider's form, such as blocks with texts and images."""
    return (
        isinstance(result, list)
        and bool(result)
        and all(isinstance(one, dict) and "type" in one for one in result)
    )
