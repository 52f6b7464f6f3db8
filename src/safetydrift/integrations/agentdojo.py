"""AgentDojo: the guard as a pipeline element that takes the place of ``ToolsExecutor``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from safetydrift.errors import MissingExtraError
from safetydrift.integrations.common import Gate, proposed

try:
    from agentdojo.agent_pipeline import BasePipelineElement, ToolsExecutor
    from agentdojo.functions_runtime import EmptyEnv
    from agentdojo.types import ChatToolResultMessage, text_content_block_from_string
except ModuleNotFoundError as error:
    raise MissingExtraError("agentdojo", "agentdojo", "the adapter for AgentDojo") from error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentdojo.functions_runtime import Env, FunctionCall, FunctionsRuntime
    from agentdojo.types import ChatMessage

    from safetydrift.guard.decision import Decision
    from safetydrift.guard.guard import Guard
    from safetydrift.trace import ToolCall


class GuardedToolsExecutor(BasePipelineElement):
    """Executes the calls of the last message that a guard allows; the others get its reason as their error.

    A run is what is done with one ``FunctionsRuntime``: AgentDojo makes one for each task, and keeps it when it asks
    the same pipeline again. Ids of calls are not relied on; some models repeat them.

    Parameters
    ----------
    guard
        Who decides.
    executor
        What executes calls; ``ToolsExecutor()`` if not given.
    category
        The suite.
    key, pipeline
        The run, if all calls are to belong to one; what the model is told about the agent.
    """

    name = "safetydrift"

    def __init__(
        self, guard: Guard, executor: Any = None, category: str = "", key: str = "", pipeline: str = ""
    ) -> None:
        self.executor = ToolsExecutor() if executor is None else executor
        self.gate = Gate(guard, key, category=category, pipeline=pipeline)

    def query(  # AgentDojo's
        self,
        query: str,
        runtime: FunctionsRuntime,
        env: Env = EmptyEnv(),  # noqa: B008  # as above
        messages: Sequence[ChatMessage] = (),
        extra_args: dict[str, Any] | None = None,
    ) -> tuple[str, FunctionsRuntime, Env, Sequence[ChatMessage], dict[str, Any]]:
        """Judge all calls of the last message, then execute those that are allowed, in order."""
        extra_args = {} if extra_args is None else extra_args
        last: Any = messages[-1] if messages else {"role": "", "tool_calls": None}
        calls = last["tool_calls"] if last["role"] == "assistant" else None
        if not calls:
            return query, runtime, env, messages, extra_args
        gate = self.gate
        key = gate.key(gate.key_of(runtime))
        gate.guard.tools.update(runtime.functions)
        gate.listen(key, [query])
        judged = []
        for call in calls:
            given = proposed(call.function, _plain(dict(call.args)))
            judged.append((call, given, gate.propose(key, given, "")))
        answers = []
        for call, given, decision in judged:
            if decision.allowed:
                before = [*messages[:-1], {**last, "tool_calls": [call]}]
                *_, after, extra_args = self.executor.query(query, runtime, env, before, extra_args)
                answers.append(self._settled(after[-1], given, decision))
            else:
                answers.append(_answer(call, decision.reason))
        return query, runtime, env, [*messages, *answers], extra_args

    def _settled(self, answer: Any, call: ToolCall, decision: Decision) -> Any:
        """Record what came of a call; return its message, with the warning if there is one."""
        key, call_id = decision.key, decision.call_id
        text = "\n".join(block["content"] or "" for block in answer["content"] or ())
        self.gate.guard.confirm(key, call_id, text, error=answer["error"], call=call)
        warning = self.gate.warning(key, call_id)
        if not warning:
            return answer
        note = text_content_block_from_string(f"[SafetyDrift: {warning}]")
        return {**answer, "content": [*(answer["content"] or ()), note]}


def _answer(call: FunctionCall, reason: str) -> ChatToolResultMessage:
    content = [text_content_block_from_string("")]
    return ChatToolResultMessage(
        role="tool", content=content, tool_call_id=call.id, tool_call=call, error=reason
    )


def _plain(value: Any) -> Any:
    """Return arguments without objects in them; a call inside a call becomes a table."""
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return _plain(value.model_dump()) if hasattr(value, "model_dump") else value
