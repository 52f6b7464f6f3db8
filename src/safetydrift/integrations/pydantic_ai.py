"""Pydantic AI: the guard as a capability of an agent."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from safetydrift.errors import MissingExtraError
from safetydrift.guard.values import as_text
from safetydrift.integrations.common import Gate, field, proposed, text_of

try:
    from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
    from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ToolFailed
    from pydantic_ai.messages import ToolReturn, UserPromptPart
except ModuleNotFoundError as error:
    raise MissingExtraError("pydantic_ai", "pydantic-ai", "the adapter for Pydantic AI") from error

if TYPE_CHECKING:
    from pydantic_ai import RunContext
    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.tools import ToolDefinition

    from safetydrift.guard.guard import Guard
    from safetydrift.trace import ToolCall


class GuardCapability(AbstractCapability[Any]):
    """A capability that judges every tool call after it was validated and before it is executed.

    Parameters
    ----------
    guard
        Who decides.
    key
        The run. If empty: that of the surrounding `Guard.running` block, or else the ``conversation_id`` of the run.
    task
        What the user asked for, if the messages do not say it.
    pauses
        Whether a question ends the run with a request for approval; its output type then has to allow for
        ``DeferredToolRequests``.
    about
        What else runs are opened with: ``category``, ``pipeline``, ``parent``.
    """

    def __init__(
        self, guard: Guard, key: str = "", task: str = "", *, pauses: bool = False, **about: str
    ) -> None:
        self.gate, self.pauses = Gate(guard, key, task, **about), pauses

    def get_ordering(self) -> CapabilityOrdering:
        """Return the place next to the tool: the call is judged as the other capabilities have left it."""
        return CapabilityOrdering(position="innermost")

    async def before_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: dict[str, Any]
    ) -> dict[str, Any]:
        """Judge a call; raise ``ToolFailed``, which tells the model why, if it is refused.

        Raises
        ------
        ToolFailed
            If the call is refused.
        ApprovalRequired
            If a person has to agree first, and the run pauses for that.
        """
        gate, key = self.gate, self._key(ctx)
        gate.guard.tools.add(tool_def.name)
        await gate.alisten(key, _said(ctx))
        made = proposed(call.tool_name, args, call.tool_call_id)
        decision = await gate.apropose(key, made, made.id, final=False)
        if decision.asks:
            if self.pauses and not ctx.tool_call_approved:
                raise ApprovalRequired({"reason": decision.reason, "rule": decision.rule})
            agreed = True if self.pauses else None
            decision = await gate.guard.aanswer(key, decision.call_id, agreed)
        if not decision.allowed:
            raise ToolFailed(decision.reason)
        return args

    async def after_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        result: Any,
    ) -> Any:
        """Record what came back."""
        del tool_def
        gate, key, call_id = self.gate, self._key(ctx), call.tool_call_id
        value = result.return_value if isinstance(result, ToolReturn) else result
        read = text_of(value) if isinstance(value, str | list) else as_text(value)
        more = text_of(result.content) if isinstance(result, ToolReturn) and result.content else ""
        await gate.guard.aconfirm(key, call_id, f"{read}\n{more}" if more else read, call=_made(call, args))
        warned = gate.with_warning(key, call_id, read)
        if warned is read:
            return result
        return replace(result, return_value=warned) if isinstance(result, ToolReturn) else warned

    async def on_tool_execute_error(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        error: Exception,
    ) -> Any:
        """Record that a tool failed, which may have done half of it; one that is deferred has not begun."""
        del tool_def
        guard, key = self.gate.guard, self._key(ctx)
        if isinstance(error, ApprovalRequired | CallDeferred):
            await guard.arelease(key, call.tool_call_id)
        else:
            await guard.aconfirm(key, call.tool_call_id, error=error, call=_made(call, args))
        raise error

    def _key(self, ctx: RunContext[Any]) -> str:
        return self.gate.key(ctx.conversation_id or ctx.run_id or "")


def _made(call: ToolCallPart, args: dict[str, Any]) -> ToolCall:
    return proposed(call.tool_name, args, call.tool_call_id)


def _said(ctx: RunContext[Any]) -> list[str]:
    parts = [part for message in ctx.messages for part in message.parts if isinstance(part, UserPromptPart)]
    said = []
    for part in parts:
        content = part.content
        texts = [content] if isinstance(content, str) else [_text(one) for one in content]
        said.append("\n".join(text for text in texts if text))
    return said


def _text(part: object) -> str:
    text = part if isinstance(part, str) else field(part, "content")
    return text if isinstance(text, str) else ""
