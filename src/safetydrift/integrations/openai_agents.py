"""OpenAI Agents SDK: the guard as guardrails of function tools, and of the tools of MCP servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from warnings import warn

from safetydrift.errors import MissingExtraError
from safetydrift.guard.values import as_text
from safetydrift.integrations.common import Gate, field, proposed, text_of, user_words
from safetydrift.trace import ToolCall

try:
    from agents import FunctionTool, ToolGuardrailFunctionOutput, ToolInputGuardrail, ToolOutputGuardrail
except ModuleNotFoundError as error:
    raise MissingExtraError("agents", "openai-agents", "the adapter for the OpenAI Agents SDK") from error

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents import Agent, RunContextWrapper, ToolInputGuardrailData, ToolOutputGuardrailData
    from agents.tool_context import ToolContext

    from safetydrift.guard.guard import Guard

_NAME = "safetydrift"
_MAX_PAUSED = 4096


def protect(
    agent: Agent[Any], guard: Guard, key: str = "", task: str = "", *, pauses: bool = False, **about: str
) -> Agent[Any]:
    """Put a guard into an agent, and into all that it hands over to or uses as tools; return the agent.

    Its own tools are changed, so that no unguarded copy remains. Call it again when tools are added. A tool that has no
    guardrails is a ``RuntimeWarning``.

    Parameters
    ----------
    agent
        The agent.
    guard
        Who decides.
    key
        The run. If empty: that of the surrounding `Guard.running` block, the ``group_id`` of the run's configuration,
        or one for each run of the agent.
    task
        What the user asked for, if the input of the run does not say it.
    pauses
        Whether a question interrupts the run, to be approved or rejected through its state.
    about
        What else runs are opened with: ``category``, ``pipeline``, ``parent``.
    """
    rails = Guardrails(Gate(guard, key, task, **about), pauses=pauses)
    waiting, seen = [agent], set()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        for tool in one.tools:
            if isinstance(tool, FunctionTool):
                guard.tools.add(tool.name)
                rails.attach(tool)
                inner = getattr(tool, "_agent_instance", None)
                waiting += [] if inner is None else [inner]
            else:
                what = f"{tool.name!r} of {one.name!r} is no function tool: the guard does not see its calls"
                warn(what, RuntimeWarning, stacklevel=2)
        for server in one.mcp_servers:
            rails.attach(server)
        for other in one.handoffs:
            target = other if hasattr(other, "handoffs") else _target(other)
            waiting += [] if target is None else [target]
    return agent


def _target(handoff: Any) -> Any:
    reference = getattr(handoff, "_agent_ref", None)
    return None if reference is None else reference()


class Guardrails:
    """The guardrails of one gate; `protect` attaches them.

    Parameters
    ----------
    gate
        The guard, and which run a call belongs to.
    pauses
        See `protect`.
    """

    def __init__(self, gate: Gate, *, pauses: bool = False) -> None:
        self.gate, self.pauses = gate, pauses
        self._paused: dict[tuple[str, str], str] = {}
        self.before: ToolInputGuardrail[Any] = ToolInputGuardrail(self._before, _NAME)
        self.after: ToolOutputGuardrail[Any] = ToolOutputGuardrail(self._after, _NAME)

    def attach(self, holder: Any) -> None:
        """Attach to a function tool or an MCP server, behind the guardrails that are there."""
        if any(self._is_mine(rail) for rail in holder.tool_input_guardrails or ()):
            return
        holder.tool_input_guardrails = [*(holder.tool_input_guardrails or ()), self.before]
        holder.tool_output_guardrails = [*(holder.tool_output_guardrails or ()), self.after]
        if self.pauses and isinstance(holder, FunctionTool):
            holder.needs_approval = self._approval(holder.name, holder.needs_approval)

    def _is_mine(self, rail: ToolInputGuardrail[Any]) -> bool:
        owner = getattr(rail.guardrail_function, "__self__", None)
        return isinstance(owner, Guardrails) and owner.gate.guard is self.gate.guard

    def _key(self, context: RunContextWrapper[Any]) -> str:
        group = field(getattr(context, "run_config", None), "group_id")
        return self.gate.key(group or self.gate.key_of(context.usage, lambda: self._resumed(context)))

    def _resumed(self, context: RunContextWrapper[Any]) -> str:
        """Return the run that a context goes on with: one that paused for one of its calls, on the same words."""
        words = "\n".join(user_words(context.turn_input)[:1])
        for call_id in getattr(context, "_tool_invocations", ()):
            key = self._paused.pop((call_id, words), "")
            if key:
                return key
        return ""

    def _pause(self, context: RunContextWrapper[Any], key: str, call_id: str) -> None:
        if len(self._paused) >= _MAX_PAUSED:
            self._paused.pop(next(iter(self._paused)))
        self._paused[call_id, "\n".join(user_words(context.turn_input)[:1])] = key

    async def _before(self, data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
        context, gate = data.context, self.gate
        key, call = self._key(context), _call(context)
        await gate.alisten(key, user_words(context.turn_input))
        decision = await gate.apropose(key, call, call.id, final=False)
        if decision.asks:
            agreed = context.is_tool_approved(context.qualified_tool_name, call.id) if self.pauses else None
            decision = await gate.guard.aanswer(key, decision.call_id, agreed)
        if decision.allowed:
            return ToolGuardrailFunctionOutput.allow(decision)
        return ToolGuardrailFunctionOutput.reject_content(decision.reason, decision)

    async def _after(self, data: ToolOutputGuardrailData) -> ToolGuardrailFunctionOutput:
        context, gate = data.context, self.gate
        key, call = self._key(context), _call(context)
        await gate.guard.aconfirm(key, call.id, text_of(data.output), call=call)
        told = as_text(data.output)
        warned = gate.with_warning(key, call.id, told)
        if warned is told:
            return ToolGuardrailFunctionOutput.allow()
        return ToolGuardrailFunctionOutput.reject_content(warned)

    def _approval(self, name: str, before: Any) -> Callable[..., Any]:
        """Return what says whether a call needs approval: what said it before, or the guard."""

        async def needed(context: RunContextWrapper[Any], params: dict[str, Any], call_id: str) -> bool:
            said = before(context, params, call_id) if callable(before) else before
            if said if isinstance(said, bool) else await said:
                return True
            gate, key = self.gate, self._key(context)
            await gate.alisten(key, user_words(context.turn_input))
            decision = await gate.apropose(key, ToolCall(name, params, id=call_id), call_id, final=False)
            if decision.asks:
                self._pause(context, key, call_id)
            return decision.asks

        return needed


def _call(context: ToolContext[Any]) -> ToolCall:
    return proposed(context.qualified_tool_name, context.tool_arguments, context.tool_call_id)
