"""LangChain and LangGraph: real agents of the installed library with its own fake chat model."""

from __future__ import annotations

import asyncio
from typing import Annotated

import pytest

pytest.importorskip("langchain.agents", reason="needs the extra 'langchain'")
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from tests.integrations.adapters.conftest import noting

from safetydrift.integrations.langchain import GuardMiddleware

KEY = "run"


class Model(GenericFakeChatModel):
    def bind_tools(self, tools, **_):
        return self


def call(name, call_id, **args):
    return {"name": name, "args": args, "id": call_id, "type": "tool_call"}


def agent_of(tools, middleware, *turns, **more):
    said = [AIMessage(content="", tool_calls=list(turn)) for turn in turns]
    made = [
        StructuredTool.from_function(tool, name=name) for name, tool in tools.all().items() if name != "fail"
    ]
    model = Model(messages=iter([*said, AIMessage(content="Done.")]))
    return create_agent(model, tools=made, middleware=[middleware], **more)


def given(text="Look at it"):
    return {"messages": [("user", text)]}


def thread(name):
    return {"configurable": {"thread_id": name}}


def outputs(state):
    return {one.tool_call_id: one for one in state["messages"] if isinstance(one, ToolMessage)}


@pytest.mark.parametrize("asynchronous", [False, True])
def test_each_intervention_reaches_the_model(guard, tools, standing, asynchronous):
    turn = [call(name, name, text="x") for name in ("look", "drop", "pay", "post", "peek")]
    agent = agent_of(tools, GuardMiddleware(guard, KEY), turn)
    state = asyncio.run(agent.ainvoke(given())) if asynchronous else agent.invoke(given())
    said = outputs(state)
    assert {name: one.status for name, one in said.items()} == {
        "look": "success",
        "drop": "error",
        "pay": "error",
        "post": "error",
        "peek": "success",
    }
    assert "nothing is dropped" in said["drop"].content
    assert "Nobody answered" in said["pay"].content
    assert said["peek"].content.startswith("peek done")
    assert "look away" in said["peek"].content
    assert sorted(tools.made) == [("look", "x"), ("peek", "x")]
    assert state["messages"][-1].content == "Done."
    steps, under_way, statuses = standing(guard, KEY)
    assert (steps, under_way) == (2, [])
    assert statuses["look"] == "confirmed"


def test_a_tool_that_fails_is_taken_to_have_run(guard, standing):
    def fail(text: str) -> str:
        "Fail."
        raise OSError("the disk is on fire")

    for asynchronous in (False, True):
        key = f"{KEY}-{asynchronous}"
        model = Model(messages=iter([AIMessage(content="", tool_calls=[call("fail", "f", text="x")])]))
        agent = create_agent(
            model,
            tools=[StructuredTool.from_function(fail, coroutine=None)],
            middleware=[GuardMiddleware(guard, key)],
        )
        with pytest.raises(OSError, match="on fire"):
            asyncio.run(agent.ainvoke(given())) if asynchronous else agent.invoke(given())
        assert standing(guard, key) == (1, [], {"f": "confirmed"})


def test_parallel_calls_are_all_reserved_before_one_returns(guard, standing):
    both, seen = asyncio.Barrier(2), []

    async def look(text: str) -> str:
        "Look."
        await both.wait()
        seen.append(len(standing(guard, KEY)[1]))
        return text

    turn = [call("look", "a", text="1"), call("look", "b", text="2")]
    model = Model(messages=iter([AIMessage(content="", tool_calls=turn), AIMessage(content="Done.")]))
    tool = StructuredTool.from_function(coroutine=look, name="look")
    agent = create_agent(model, tools=[tool], middleware=[GuardMiddleware(guard, KEY)])
    asyncio.run(agent.ainvoke(given()))
    assert seen[0] == 2
    assert standing(guard, KEY)[:2] == (2, [])


def test_a_thread_is_a_run_and_later_words_are_heard(guard, tools, monkeypatch):
    heard = noting(monkeypatch, guard, "hear")
    agent = agent_of(tools, GuardMiddleware(guard), [call("look", "a")], checkpointer=InMemorySaver())
    agent.invoke(given("Look at the rent"), thread("t1"))
    saver, middleware = InMemorySaver(), GuardMiddleware(guard)
    for text, call_id in (("Look", "a"), ("Look at eve's", "b")):
        agent = agent_of(tools, middleware, [call("look", call_id)], checkpointer=saver)
        agent.invoke(given(text), thread("t2"))
    assert heard == [("t2", "Look at eve's")]
    assert guard.current("t1")[0].steps == 1
    assert guard.current("t2")[0].steps == 2


@pytest.mark.parametrize("asynchronous", [False, True])
def test_an_invocation_without_a_thread_is_a_run(guard, tools, monkeypatch, asynchronous):
    opened, middleware = noting(monkeypatch, guard, "session"), GuardMiddleware(guard)
    for text in ("Look at the rent", "Look at eve's"):
        agent = agent_of(tools, middleware, [call("look", "a")], [call("look", "b")])
        state = asyncio.run(agent.ainvoke(given(text))) if asynchronous else agent.invoke(given(text))
        assert "safetydrift_run" not in state
    assert [text for _, text in opened] == ["Look at the rent", "Look at eve's"]


@pytest.mark.parametrize("approve", [True, False])
def test_a_question_interrupts_the_graph_and_its_answer_counts(guard, tools, approve):
    middleware = GuardMiddleware(guard, pauses=True)
    agent = agent_of(
        tools, middleware, [call("pay", "p", text="x"), call("look", "l")], checkpointer=InMemorySaver()
    )
    state = agent.invoke(given(), thread("t"))
    (asked,) = state["__interrupt__"]
    assert asked.value["safetydrift"]["tool"] == "pay"
    state = agent.invoke(Command(resume=approve), thread("t"))
    assert state["messages"][-1].content == "Done."
    assert [name for name, _ in tools.made if name == "pay"] == (["pay"] if approve else [])
    assert (outputs(state)["p"].status == "success") is approve
    assert guard.current("t")[0].steps == 1 + approve


def test_a_tool_that_waits_for_somebody_is_under_way_and_made_once(guard, standing):
    def look(text: str) -> str:
        "Ask."
        return str(interrupt("which one?"))

    turn = [call("look", "a", text="1")]
    model = Model(messages=iter([AIMessage(content="", tool_calls=turn), AIMessage(content="Done.")]))
    agent = create_agent(
        model,
        tools=[StructuredTool.from_function(look)],
        middleware=[GuardMiddleware(guard)],
        checkpointer=InMemorySaver(),
    )
    agent.invoke(given(), thread("t"))
    assert standing(guard, "t") == (0, ["a"], {"a": "open"})
    state = agent.invoke(Command(resume="this one"), thread("t"))
    assert outputs(state)["a"].content == "this one"
    assert standing(guard, "t") == (1, [], {"a": "confirmed"})


def test_arguments_of_the_wrong_type_raise_nothing_of_ours(guard, tools):
    agent = agent_of(tools, GuardMiddleware(guard, KEY), [call("look", "a", text={"not": "a text"})])
    agent.invoke(given())
    assert guard._sessions.read(KEY)[0].proposals == 1


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("which", ["broken", "unopenable"])
def test_a_guard_that_fails_refuses(request, tools, which, asynchronous):
    agent = agent_of(tools, GuardMiddleware(request.getfixturevalue(which)), [call("look", "a", text="x")])
    state = asyncio.run(agent.ainvoke(given())) if asynchronous else agent.invoke(given())
    assert "could not judge" in outputs(state)["a"].content
    assert tools.made == []


def test_results_that_are_no_text_are_recorded_and_warned_about(guard, standing):
    def look(text: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command:  # type: ignore[type-arg,unused-ignore]
        "Look."
        return Command(update={"messages": [ToolMessage("moved on", tool_call_id=tool_call_id)]})

    def peek(text: str) -> list[dict[str, str]]:
        "Peek."
        return [{"type": "text", "text": "seen"}]

    turn = [call("look", "a", text="1"), call("peek", "b", text="2")]
    model = Model(messages=iter([AIMessage(content="", tool_calls=turn), AIMessage(content="Done.")]))
    made = [StructuredTool.from_function(look), StructuredTool.from_function(peek)]
    state = create_agent(model, tools=made, middleware=[GuardMiddleware(guard, KEY)]).invoke(given())
    assert outputs(state)["a"].content == "moved on"
    assert "look away" in outputs(state)["b"].content[-1]["text"]
    assert standing(guard, KEY)[:2] == (2, [])
