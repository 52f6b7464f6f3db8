"""Inspect AI: the guard as an approver, found by the name ``safetydrift/guard``.

What came of earlier calls is read from the conversation, which an approver is given with every call.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from safetydrift.errors import MissingExtraError
from safetydrift.integrations.common import Gate, proposed, user_words

try:
    from inspect_ai.approval import Approval, approver
    from inspect_ai.model import ChatMessage, ChatMessageTool
    from inspect_ai.solver._task_state import sample_state
    from inspect_ai.tool import ToolCall as InspectCall  # noqa: TC002  # Inspect reads these annotations
    from inspect_ai.tool import ToolCallView  # noqa: TC002  # as above
except ModuleNotFoundError as error:
    raise MissingExtraError("inspect_ai", "inspect", "the adapter for Inspect") from error

if TYPE_CHECKING:
    from inspect_ai.approval import Approver

    from safetydrift.guard.decision import Decision
    from safetydrift.guard.guard import Guard
    from safetydrift.trace import ToolCall

_MAX_RUNS = 4096


@approver(name="guard")
def guard_approver(  # noqa: PLR0917  # Inspect gives them by name
    model: str = "default",
    policy: str = "",
    store: str = "",
    log: str = "",
    config: str = "",
    category: str = "",
    pipeline: str = "",
) -> Approver:
    """Ask a guard before every call; for ``--approval`` and for files of approval policies.

    Parameters
    ----------
    model, policy, store, log, config
        Files of the guard, as for `Guard.load`.
    category, pipeline
        What the model is told about the runs.
    """
    guard = _loaded(model, policy, store, log, config)
    return Approving(Gate(guard, category=category, pipeline=pipeline)).approver()


@approver(name="this_guard")
def approver_of(
    guard: Guard, key: str = "", task: str = "", category: str = "", pipeline: str = ""
) -> Approver:
    """Ask a guard that is there before every call.

    Parameters
    ----------
    guard
        Who decides. A question that it has no approver for is escalated to the next one, such as Inspect's ``human``.
    key
        The run. If empty: that of the surrounding `Guard.running` block, or else the sample's ``uuid``.
    task
        What the user asked for, if the conversation does not say it.
    category, pipeline
        What the model is told about the runs.
    """
    return Approving(Gate(guard, key, task, category=category, pipeline=pipeline)).approver()


@lru_cache(8)
def _loaded(model: str, policy: str, store: str, log: str, config: str) -> Guard:
    from safetydrift.guard.guard import Guard  # noqa: PLC0415  # a guard may be given

    return Guard.load(model, policy or None, store or None, log=log or None, config=config or None)


class Approving:
    """The approver of one gate."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self._open: dict[str, dict[str, tuple[ToolCall, Decision]]] = {}

    def approver(self) -> Approver:
        """Return what Inspect calls."""

        async def approve(
            message: str, call: InspectCall, view: ToolCallView, history: list[ChatMessage]
        ) -> Approval:
            del message, view
            return await self.approve(call, history)

        return approve

    async def approve(self, call: InspectCall, history: list[ChatMessage]) -> Approval:
        """Return the approval of a call, after taking note of what came back since the last one."""
        state, gate = sample_state(), self.gate
        key = gate.key("" if state is None else state.uuid)
        await gate.alisten(key, user_words(history))
        await self._settle(key, history)
        arguments = call.arguments if call.parse_error is None else f"{call.arguments} ({call.parse_error})"
        given = proposed(call.function, arguments, call.id)
        decision = await gate.apropose(key, given, call.id, final=False)
        if not decision.refused:
            if key not in self._open and len(self._open) >= _MAX_RUNS:
                self._open.pop(next(iter(self._open)))
            self._open.setdefault(key, {})[decision.call_id] = given, decision
        return _approval(decision)

    async def _settle(self, key: str, history: list[ChatMessage]) -> None:
        """Confirm the calls whose results stand in the conversation."""
        waiting, guard = self._open.get(key), self.gate.guard
        if not waiting:
            return
        for answer in history:
            if not isinstance(answer, ChatMessageTool) or answer.tool_call_id not in waiting:
                continue
            call_id = str(answer.tool_call_id)
            call, decision = waiting.pop(call_id)
            refused = answer.error is not None and answer.error.type == "approval"
            if decision.asks:
                await guard.aanswer(key, call_id, not refused, "the next approver")
            elif refused:
                await guard.arelease(key, call_id)
            if not refused:
                error = None if answer.error is None else answer.error.message
                await guard.aconfirm(key, call_id, None if error else answer.text, error=error, call=call)


def _approval(decision: Decision) -> Approval:
    probability = decision.probability
    facts: dict[str, Any] = {
        "intervention": decision.intervention.value,
        "rule": decision.rule,
        "probability": probability if probability == probability else None,  # noqa: PLR0124  # nan is no JSON
    }
    done = "approve" if decision.allowed else "escalate" if decision.asks else "reject"
    return Approval(decision=done, explanation=decision.reason or None, metadata=facts)
