"""Claude Agent SDK: the guard as callbacks for the hook events of Claude Code, inside the program that uses the SDK.

The events are those of the command hook, and so are the answers (`safetydrift.integrations.claude_code`). Every
callback is registered with ``on_failure="block"``: without it, a callback that fails lets the call through.
"""

from __future__ import annotations

from asyncio import to_thread
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from safetydrift.errors import MissingExtraError
from safetydrift.integrations.claude_code import ClaudeCodeHook, failed

try:
    from claude_agent_sdk import ClaudeAgentOptions, HookMatcher
except ModuleNotFoundError as error:
    raise MissingExtraError(
        "claude_agent_sdk", "claude-sdk", "the adapter for the Claude Agent SDK"
    ) from error

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from safetydrift.guard.guard import Guard

EVENTS = ("PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "SubagentStart")
MARGIN = 5.0
"""Seconds that a callback may take beyond what the guard's policy grants a decision."""


def guarded(
    options: ClaudeAgentOptions | None, guard: Guard, category: str = "", pipeline: str = ""
) -> ClaudeAgentOptions:
    """Return options in which a guard decides about every call; all other hooks stay.

    A run is a session of Claude Code, and a subagent a part of it, as for the command hook.

    Parameters
    ----------
    options
        What the agent is started with; None for the SDK's defaults.
    guard
        Who decides. A question that it has no approver for goes to ``can_use_tool``.
    category, pipeline
        What the model is told about the runs, if anything.
    """
    options = ClaudeAgentOptions() if options is None else options
    hooks: dict[Any, list[HookMatcher]] = {event: list(some) for event, some in (options.hooks or {}).items()}
    callback = callback_of(guard, category, pipeline)
    for event in EVENTS:
        hooks.setdefault(event, []).append(
            HookMatcher(hooks=[callback], timeout=_timeout(guard), on_failure="block")
        )
    return replace(options, hooks=hooks)


def callback_of(
    guard: Guard, category: str = "", pipeline: str = ""
) -> Callable[[Any, str | None, Any], Awaitable[dict[str, Any]]]:
    """Return the callback that answers events; one that it has nothing to say about gets an empty answer."""
    hook = ClaudeCodeHook(guard, category, pipeline)

    def answer(event: dict[str, Any]) -> dict[str, Any]:
        try:
            return hook.answer(event).said
        except Exception as problem:  # noqa: BLE001  # whatever it is, the policy says what becomes of the call
            return failed(event, problem, lambda: guard.policy.on_error.value).said

    async def callback(event: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        del context
        known = dict(event)
        if tool_use_id and "tool_use_id" not in known:
            known["tool_use_id"] = tool_use_id
        return await to_thread(answer, known)  # a person may be asked meanwhile

    return callback


def _timeout(guard: Guard) -> float:
    policy = guard.policy
    return policy.timeout + MARGIN + (0.0 if guard.approver is None else policy.ask_timeout)
