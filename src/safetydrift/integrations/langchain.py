"""LangChain and LangGraph: the guard as middleware around every tool call of an agent."""

from __future__ import annotations

from secrets import token_hex
from typing import TYPE_CHECKING, Annotated, Any, NotRequired

from safetydrift.errors import MissingExtraError
from safetydrift.guard.asynchronous import off_loop
from safetydrift.integrations.common import Gate, field, proposed, text_of, user_words

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState
    from langchain.agents.middleware.types import PrivateStateAttr
    from langchain_core.messages import ToolMessage
    from langgraph.errors import GraphBubbleUp
    from langgraph.types import interrupt
except ModuleNotFoundError as error:
    raise MissingExtraError("langchain", "langchain", "the adapter for LangChain") from error

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeAlias

    from langgraph.prebuilt.tool_node import ToolCallRequest
    from langgraph.types import Command

    from safetydrift.guard.decision import Decision
    from safetydrift.guard.guard import Guard
    from safetydrift.trace import ToolCall

    Result: TypeAlias = ToolMessage | Command[Any]


class GuardState(AgentState[Any]):
    """The state of a guarded agent, with a name for runs that have no other."""

    safetydrift_run: NotRequired[Annotated[str, PrivateStateAttr]]  # type: ignore[valid-type,unused-ignore]


class GuardMiddleware(AgentMiddleware[Any, Any, Any]):
    """Middleware for ``create_agent``; its two wrappers also fit a ``ToolNode``.

    Put it last in the list: it then sees the calls as the other middleware has left them.

    Parameters
    ----------
    guard
        Who decides.
    key
        The run. If empty: that of the surrounding `Guard.running` block, the ``thread_id`` of the configuration, its
        ``run_id``, or else one for each invocation of the agent.
    task
        What the user asked for, if the messages of the state do not say it.
    pauses
        Whether a question interrupts the graph. It needs a checkpointer, and is resumed with
        ``Command(resume=True)`` or ``Command(resume=False)``; several questions at once by interrupt id.
    about
        What else runs are opened with: ``category``, ``pipeline``, ``parent``.
    """

    state_schema = GuardState

    def __init__(
        self, guard: Guard, key: str = "", task: str = "", *, pauses: bool = False, **about: str
    ) -> None:
        super().__init__()
        self.gate, self.pauses = Gate(guard, key, task, **about), pauses

    def before_agent(self, state: Any, runtime: Any) -> dict[str, str] | None:
        """Name the run."""
        del runtime
        return None if state.get("safetydrift_run") else {"safetydrift_run": f"run-{token_hex(8)}"}

    async def abefore_agent(self, state: Any, runtime: Any) -> dict[str, str] | None:
        """As `before_agent`."""
        return self.before_agent(state, runtime)

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Result]
    ) -> Result:
        """Make a call if the guard allows it."""
        key, call, said = self._asked(request)
        gate = self.gate
        gate.listen(key, said)
        decision = gate.propose(key, call, call.id, final=False)
        if decision.asks:
            decision = gate.guard.answer(key, decision.call_id, self._agreed(decision, call))
        if not decision.allowed:
            return _refusal(decision, call)
        try:
            result = handler(request)
        except GraphBubbleUp:
            raise  # the tool itself waits for somebody: the call is still under way
        except BaseException as error:
            gate.guard.confirm(key, call.id, error=error, call=call)
            raise
        self._confirm(decision, call, result)
        return self._told(decision, result)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result:
        """As `wrap_tool_call`."""
        key, call, said = self._asked(request)
        gate = self.gate
        await gate.alisten(key, said)
        decision = await gate.apropose(key, call, call.id, final=False)
        if decision.asks:
            decision = await gate.guard.aanswer(key, decision.call_id, self._agreed(decision, call))
        if not decision.allowed:
            return _refusal(decision, call)
        try:
            result = await handler(request)
        except GraphBubbleUp:
            raise
        except BaseException as error:  # cancelled, too: it may have done half of it
            gate.guard.confirm(key, call.id, error=error, call=call)
            raise
        await off_loop(gate.guard, lambda: self._confirm(decision, call, result))
        return self._told(decision, result)

    def _asked(self, request: ToolCallRequest) -> tuple[str, ToolCall, list[str]]:
        said = request.tool_call
        settings = field(getattr(request.runtime, "config", None), "configurable") or {}
        native = settings.get("thread_id") or field(request.runtime.config, "run_id")
        native = native or field(request.state, "safetydrift_run") or ""
        if request.tool is not None:
            self.gate.guard.tools.add(request.tool.name)
        messages = request.state if isinstance(request.state, list) else field(request.state, "messages")
        call = proposed(said["name"], said["args"], said["id"])
        return self.gate.key(str(native)), call, user_words(messages or ())

    def _agreed(self, decision: Decision, call: ToolCall) -> bool | None:
        """Return what a person says, who is asked by interrupting the graph; None if nobody is."""
        if not self.pauses:
            return None
        question = {"tool": call.name, "args": dict(call.args), "call_id": call.id, "reason": decision.reason}
        return interrupt({"safetydrift": question}) is True

    def _confirm(self, decision: Decision, call: ToolCall, result: Result) -> None:
        guard, key, call_id = self.gate.guard, decision.key, decision.call_id
        if not isinstance(result, ToolMessage):
            guard.confirm(key, call_id, text_of(repr(result)), call=call)
        elif result.status == "error":
            guard.confirm(key, call_id, error=text_of(result.content), call=call)
        else:
            guard.confirm(key, call_id, text_of(result.content), call=call)

    def _told(self, decision: Decision, result: Result) -> Result:
        reason = self.gate.warning(decision.key, decision.call_id)
        if not reason or not isinstance(result, ToolMessage):
            return result
        note = f"[SafetyDrift: {reason}]"
        content = result.content
        told = (
            f"{content}\n\n{note}" if isinstance(content, str) else [*content, {"type": "text", "text": note}]
        )
        return result.model_copy(update={"content": told})


def _refusal(decision: Decision, call: ToolCall) -> ToolMessage:
    return ToolMessage(decision.reason, tool_call_id=call.id, name=call.name, status="error")
