"""Pydantic AI: real runs of the installed library with its own function model."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("pydantic_ai.capabilities", reason="needs the extra 'pydantic-ai'")
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, Tool, ToolReturn
from pydantic_ai.messages import ModelResponse, RetryPromptPart, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel
from tests.integrations.adapters.conftest import noting

from safetydrift.integrations.pydantic_ai import GuardCapability

KEY = "run"


def call(name, call_id, args=None, **more):
    return ToolCallPart(name, args if args is not None else more, tool_call_id=call_id)


def agent_of(tools, capability, *turns, made=None, **more):
    said = iter([*[ModelResponse(list(turn)) for turn in turns], *[ModelResponse([TextPart("Done.")])] * 3])
    given = [Tool(tool, name=name) for name, tool in tools.all().items()] if made is None else made
    return Agent(
        FunctionModel(lambda messages, info: next(said)), tools=given, capabilities=[capability], **more
    )


def run(agent, *given, **more):
    return asyncio.run(agent.run(*given, **more))


def outputs(result):
    parts = [part for message in result.all_messages() for part in message.parts]
    return {part.tool_call_id: part for part in parts if isinstance(part, ToolReturnPart | RetryPromptPart)}


def test_each_intervention_reaches_the_model(guard, tools, standing):
    turn = [call(name, name, text="x") for name in ("look", "drop", "pay", "post", "peek")]
    result = run(agent_of(tools, GuardCapability(guard, KEY), turn), "Look at it")
    said = outputs(result)
    assert {name: part.outcome for name, part in said.items()} == {
        "look": "success",
        "drop": "failed",
        "pay": "failed",
        "post": "failed",
        "peek": "success",
    }
    assert "nothing is dropped" in said["drop"].content
    assert "Nobody answered" in said["pay"].content
    assert said["peek"].content.startswith("peek done")
    assert "look away" in said["peek"].content
    assert sorted(tools.made) == [("look", "x"), ("peek", "x")]
    assert result.output == "Done."
    steps, under_way, statuses = standing(guard, KEY)
    assert (steps, under_way) == (2, [])
    assert statuses["look"] == "confirmed"


def test_a_tool_that_fails_is_taken_to_have_run(guard, tools, standing):
    with pytest.raises(OSError, match="on fire"):
        run(agent_of(tools, GuardCapability(guard, KEY), [call("fail", "f", text="x")]), "Look")
    assert standing(guard, KEY) == (1, [], {"f": "confirmed"})


def test_parallel_calls_are_all_reserved_before_one_returns(guard, tools, standing):
    both, seen = asyncio.Barrier(2), []

    async def look(text: str) -> ToolReturn:
        await both.wait()
        seen.append(len(standing(guard, KEY)[1]))
        return ToolReturn(text, content="more")

    turn = [call("look", "a", text="1"), call("look", "b", text="2")]
    agent = agent_of(tools, GuardCapability(guard, KEY), turn, made=[look])
    run(agent, "Look")
    assert seen[0] == 2
    assert standing(guard, KEY)[:2] == (2, [])


def test_a_conversation_is_a_run_and_later_words_are_heard(guard, tools, monkeypatch):
    heard, opened = noting(monkeypatch, guard, "hear"), noting(monkeypatch, guard, "session")
    agent = agent_of(
        tools, GuardCapability(guard), [call("look", "a")], [TextPart("There.")], [call("look", "b")]
    )
    first = run(agent, "Look at the rent")
    run(agent, "And at eve's", message_history=first.all_messages())
    assert [text for _, text in opened] == ["Look at the rent"]
    assert [text for _, text in heard] == ["And at eve's"]


@pytest.mark.parametrize("approve", [True, False])
def test_a_question_pauses_the_run_and_its_answer_counts(guard, tools, approve):
    capability = GuardCapability(guard, KEY, pauses=True)
    agent = agent_of(
        tools,
        capability,
        [call("pay", "p", text="x"), call("look", "l")],
        output_type=[str, DeferredToolRequests],
    )
    paused = run(agent, "Pay")
    assert [one.tool_call_id for one in paused.output.approvals] == ["p"]
    assert "money is asked about" in paused.output.metadata["p"]["reason"]
    answers = DeferredToolResults(approvals={"p": approve})
    result = run(agent, message_history=paused.all_messages(), deferred_tool_results=answers)
    assert result.output == "Done."
    assert [name for name, _ in tools.made if name == "pay"] == (["pay"] if approve else [])


@pytest.mark.parametrize("arguments", ["{", "[1]", '{"text": {"not": "a text"}}'])
def test_malformed_arguments_raise_nothing_of_ours(guard, tools, arguments):
    agent = agent_of(tools, GuardCapability(guard, KEY), [call("look", "a", arguments)])
    assert run(agent, "Look").output == "Done."
    assert tools.made == []


@pytest.mark.parametrize("which", ["broken", "unopenable"])
def test_a_guard_that_fails_refuses(request, tools, which):
    capability = GuardCapability(request.getfixturevalue(which))
    result = run(agent_of(tools, capability, [call("look", "a", text="x")]), "Look")
    assert "could not judge" in outputs(result)["a"].content
    assert tools.made == []
