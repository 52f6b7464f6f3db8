"""A guarded agent loop beside the unguarded one, for every framework that is installed.

One run is a user's words, some turns of one tool call each, and an answer; the model is the framework's own fake, so
that what is timed is the framework and the guard. A real model takes seconds for what takes milliseconds here. The
guard has the shipped model, a state in memory and no log.
"""

from __future__ import annotations

import asyncio
import json
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from _timing import Timing, interleaved, options, report

from safetydrift.guard import Guard, GuardPolicy
from safetydrift.monitor.verdict import Intervention

if TYPE_CHECKING:
    from collections.abc import Callable

TITLE = "Guarded agent loops"
TURNS = 8
TASK = "What did I spend last month?"


def get_transactions(n: int) -> str:
    """Return the most recent transactions.

    :param n: how many
    """
    return f"nothing to speak of in the last {n}"


def policy() -> GuardPolicy:
    """Return a policy under which every call goes ahead: what is compared must do the same work."""
    return GuardPolicy(otherwise=Intervention.ALLOW)


def raw(guard: Guard) -> tuple[Callable[[], object], Callable[[], object]]:
    from safetydrift.integrations.raw import GuardedTools  # noqa: PLC0415  # as in a loop of one's own

    call = {"type": "tool_use", "id": "t", "name": "get_transactions", "input": {"n": 5}}
    turns: list[dict[str, Any]] = [
        {"role": "assistant", "content": [call | {"id": f"t{turn}"}]} for turn in range(TURNS)
    ]

    def plain() -> list[Any]:
        messages = []
        for turn in turns:
            blocks = [
                {"type": "tool_result", "tool_use_id": one["id"], "content": get_transactions(**one["input"])}
                for one in turn["content"]
            ]
            messages.append({"role": "user", "content": blocks})
        return messages

    def guarded() -> list[Any]:
        tools = GuardedTools(guard, {"get_transactions": get_transactions}, task=TASK)
        return [message for turn in turns for message in tools.answers(turn)]

    return plain, guarded


def openai_agents(guard: Guard) -> tuple[Callable[[], object], Callable[[], object]]:
    from agents import Agent, Runner, function_tool, set_tracing_disabled  # noqa: PLC0415  # may be missing
    from agents.testing import ScriptedModel, assistant_message, function_call  # noqa: PLC0415

    from safetydrift.integrations.openai_agents import protect  # noqa: PLC0415

    set_tracing_disabled(disabled=True)

    def run(protected: Callable[[Any], Any]) -> object:
        calls = [
            [function_call("get_transactions", json.dumps({"n": 5}), call_id=f"t{turn}")]
            for turn in range(TURNS)
        ]
        model = ScriptedModel([*calls, [assistant_message("Nothing.")]])
        agent = protected(Agent(name="agent", model=model, tools=[function_tool(get_transactions)]))
        return asyncio.run(Runner.run(agent, TASK, max_turns=TURNS + 2))

    return lambda: run(lambda agent: agent), lambda: run(lambda agent: protect(agent, guard))


def langchain(guard: Guard) -> tuple[Callable[[], object], Callable[[], object]]:
    from langchain.agents import create_agent  # noqa: PLC0415  # may be missing
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel  # noqa: PLC0415
    from langchain_core.messages import AIMessage  # noqa: PLC0415

    from safetydrift.integrations.langchain import GuardMiddleware  # noqa: PLC0415

    class Model(GenericFakeChatModel):
        def bind_tools(self, _tools: Any, **_: Any) -> Any:
            return self

    def run(middleware: list[Any]) -> object:
        calls = [
            {"name": "get_transactions", "args": {"n": 5}, "id": f"t{turn}", "type": "tool_call"}
            for turn in range(TURNS)
        ]
        said = [*[AIMessage(content="", tool_calls=[call]) for call in calls], AIMessage(content="Nothing.")]
        agent = create_agent(Model(messages=iter(said)), tools=[get_transactions], middleware=middleware)
        return agent.invoke({"messages": [("user", TASK)]}, {"recursion_limit": 4 * TURNS + 4})

    return lambda: run([]), lambda: run([GuardMiddleware(guard)])


def pydantic_ai(guard: Guard) -> tuple[Callable[[], object], Callable[[], object]]:
    from pydantic_ai import Agent  # noqa: PLC0415  # may be missing
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart  # noqa: PLC0415
    from pydantic_ai.models.function import FunctionModel  # noqa: PLC0415

    from safetydrift.integrations.pydantic_ai import GuardCapability  # noqa: PLC0415

    def run(capabilities: list[Any]) -> object:
        calls = [ToolCallPart("get_transactions", {"n": 5}, tool_call_id=f"t{turn}") for turn in range(TURNS)]
        said = iter([*[ModelResponse([call]) for call in calls], ModelResponse([TextPart("Nothing.")])])
        model = FunctionModel(lambda _messages, _info: next(said))
        agent = Agent(model, tools=[get_transactions], capabilities=capabilities)
        return asyncio.run(agent.run(TASK))

    return lambda: run([]), lambda: run([GuardCapability(guard)])


def agentdojo(guard: Guard) -> tuple[Callable[[], object], Callable[[], object]]:
    from agentdojo.agent_pipeline import ToolsExecutor  # noqa: PLC0415  # may be missing
    from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime, make_function  # noqa: PLC0415
    from agentdojo.types import ChatAssistantMessage  # noqa: PLC0415

    from safetydrift.integrations.agentdojo import GuardedToolsExecutor  # noqa: PLC0415

    function = make_function(get_transactions)

    def run(executor: Any) -> object:
        runtime, messages = FunctionsRuntime([function]), list[Any]()
        for _ in range(TURNS):
            call = FunctionCall(function="get_transactions", args={"n": 5})
            messages = [*messages, ChatAssistantMessage(role="assistant", content=None, tool_calls=[call])]
            *_, found, _ = executor.query(TASK, runtime, messages=messages)
            messages = list(found)
        return messages

    return lambda: run(ToolsExecutor()), lambda: run(GuardedToolsExecutor(guard))


FRAMEWORKS = {
    "raw loop": ("json", raw),
    "OpenAI Agents SDK": ("agents", openai_agents),
    "LangChain": ("langchain", langchain),
    "Pydantic AI": ("pydantic_ai", pydantic_ai),
    "AgentDojo": ("agentdojo", agentdojo),
}


def approvals(guard: Guard, rounds: int) -> list[float]:
    """Return how long an approval of Inspect's takes, in seconds; its loop is timed by its own log, not here."""
    from inspect_ai.model import ChatMessageUser  # noqa: PLC0415  # may be missing
    from inspect_ai.tool import ToolCall  # noqa: PLC0415

    from safetydrift.integrations.common import Gate  # noqa: PLC0415
    from safetydrift.integrations.inspect import Approving  # noqa: PLC0415

    approving, history = Approving(Gate(guard)), [ChatMessageUser(content=TASK)]

    async def ask() -> list[float]:
        taken = []
        for number in range(rounds):
            call = ToolCall(id=f"t{number}", function="get_transactions", arguments={"n": 5})
            started = time.perf_counter()
            await approving.approve(call, history)
            taken.append(time.perf_counter() - started)
        return taken

    return asyncio.run(ask())


def events(guard: Guard, rounds: int) -> list[float]:
    """Return how long the callback for the Claude Agent SDK takes for a call and its result, in seconds."""
    from safetydrift.integrations.claude_sdk import callback_of  # noqa: PLC0415

    callback = callback_of(guard)
    common = {"session_id": "s", "tool_name": "get_transactions", "tool_input": {"n": 5}}

    async def ask() -> list[float]:
        await callback({"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": TASK}, None, None)
        taken = []
        for number in range(rounds):
            started = time.perf_counter()
            call = common | {"tool_use_id": f"t{number}"}
            await callback(call | {"hook_event_name": "PreToolUse"}, None, None)
            await callback(call | {"hook_event_name": "PostToolUse", "tool_response": "nothing"}, None, None)
            taken.append(time.perf_counter() - started)
        return taken

    return asyncio.run(ask())


def main() -> None:
    quick = options(TITLE).quick
    rounds = 9 if quick else 31
    timings: dict[str, Timing] = {}
    ratios: dict[str, tuple[float, str]] = {}
    guard = Guard.load(policy=policy())
    for name, (package, make) in FRAMEWORKS.items():
        if find_spec(package) is None:
            print(f"{name}: not installed")
            continue
        plain, guarded = make(guard)
        found = interleaved({"unguarded": plain, "guarded": guarded}, rounds)
        timings |= {f"{name}, {how}, {TURNS} calls": timing for how, timing in found.items()}
        added = (found["guarded"].median - found["unguarded"].median) / TURNS
        ratios[f"{name}: guarded / unguarded loop"] = (
            found["guarded"].median / found["unguarded"].median,
            "none",
        )
        ratios[f"{name}: added by the guard per call, us"] = 1e6 * added, "none"
    if find_spec("inspect_ai") is not None:
        timings["Inspect, one approval"] = Timing.of(approvals(guard, 20 * rounds))
    if find_spec("claude_agent_sdk") is not None:
        timings["Claude Agent SDK, one call and its result"] = Timing.of(events(guard, 20 * rounds))
    report(TITLE, timings, ratios)


if __name__ == "__main__":
    main()
