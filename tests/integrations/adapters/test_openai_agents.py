"""OpenAI Agents SDK: real runs of the installed library with its own scripted model."""

from __future__ import annotations

import asyncio
import json

import pytest

agents = pytest.importorskip("agents", reason="needs the extra 'openai-agents'")
from agents import Agent, FunctionTool, RunConfig, Runner, function_tool
from agents.mcp import MCPServerStdio
from agents.testing import ScriptedModel, assistant_message, function_call
from tests.integrations.adapters.conftest import POLICY, noting

from safetydrift.guard import Approver, SQLiteStore
from safetydrift.guard.guard import Guard
from safetydrift.integrations.openai_agents import protect

KEY = "run"
agents.set_tracing_disabled(True)


def call(name, call_id, **args):
    return function_call(name, json.dumps(args), call_id=call_id)


def agent_of(tools, *turns, **more):
    model = ScriptedModel([*turns, [assistant_message("Done.")]])
    made = [function_tool(tool, name_override=name) for name, tool in tools.all().items()]
    return Agent(name="agent", model=model, tools=made, **more)


def run(agent, given="Look at it", **more):
    return asyncio.run(Runner.run(agent, given, **more))


def outputs(result):
    items = [item.raw_item for item in result.new_items if item.type == "tool_call_output_item"]
    return {item["call_id"]: item["output"] for item in items}


def test_each_intervention_reaches_the_model(guard, tools, standing):
    turn = [call(name, name, text="x") for name in ("look", "drop", "pay", "post", "peek", "fail")]
    agent = protect(agent_of(tools, turn), guard, KEY)
    result = run(agent)
    said = outputs(result)
    assert said["look"] == "look done"
    assert "nothing is dropped" in said["drop"]
    assert "Nobody answered" in said["pay"]
    assert "nothing is posted" in said["post"]
    assert said["peek"].startswith("peek done")
    assert "look away" in said["peek"]
    assert "An error occurred" in said["fail"]
    assert sorted(tools.made) == [("fail", "x"), ("look", "x"), ("peek", "x")]
    assert result.final_output == "Done."
    steps, under_way, statuses = standing(guard, KEY)
    assert (steps, under_way) == (3, [])
    assert statuses["drop"] == "refused"
    assert statuses["look"] == "confirmed"


def test_the_input_is_heard_as_the_task(guard, tools, monkeypatch):
    opened = noting(monkeypatch, guard, "session")
    run(protect(agent_of(tools, [call("look", "a")]), guard, KEY), "Look at the rent")
    assert opened == [(KEY, "Look at the rent")]


def test_parallel_calls_are_all_reserved_before_one_returns(guard, standing):
    both, seen = asyncio.Barrier(2), []

    async def look(text: str) -> str:
        await both.wait()
        seen.append(len(standing(guard, KEY)[1]))
        return text

    turn = [call("look", "a", text="1"), call("look", "b", text="2")]
    model = ScriptedModel([turn, [assistant_message("Done.")]])
    run(protect(Agent(name="agent", model=model, tools=[function_tool(look)]), guard, KEY))
    assert seen[0] == 2
    assert standing(guard, KEY)[:2] == (2, [])


def test_runs_are_told_apart_and_groups_held_together(guard, tools, monkeypatch):
    agent = agent_of(tools)
    proposals = noting(monkeypatch, guard, "_propose")
    protect(agent, guard)
    for config in (None, None, RunConfig(group_id="ours"), RunConfig(group_id="ours")):
        agent.model = ScriptedModel([[call("look", "a")], [call("look", "b")], [assistant_message("Done.")]])
        run(agent, run_config=config)
    agent.model = ScriptedModel([[call("look", "a")], [assistant_message("Done.")]])
    with guard.running("block"):
        run(agent)
    keys = [key for key, *_ in proposals]
    first, second = keys[0], keys[2]
    assert keys == [first, first, second, second, *["ours"] * 4, "block"]
    assert first != second


def test_agents_behind_the_agent_are_guarded_as_well(guard, tools):
    inner = agent_of(tools, [call("drop", "b")])
    inner.name = "inner"
    turn = [function_call("transfer_to_inner", "{}", call_id="h")]
    outer = Agent(name="outer", model=ScriptedModel([turn]), handoffs=[inner])
    inner.handoffs = [outer]
    result = run(protect(outer, guard, KEY))
    assert "nothing is dropped" in outputs(result)["b"]
    used = agent_of(tools, [call("drop", "d")])
    tool = used.as_tool("helper", "helps")
    turns = [
        [function_call("helper", json.dumps({"input": "go"}), call_id="t")],
        [assistant_message("Done.")],
    ]
    run(protect(Agent(name="outer", model=ScriptedModel(turns), tools=[tool]), guard, "other"))
    assert tools.made == []


def test_a_question_interrupts_the_run_and_its_answer_counts(model, tools, tmp_path):
    for approve in (True, False):
        guard = Guard(model, POLICY, SQLiteStore(tmp_path / f"{approve}.sqlite"))
        agent = protect(
            agent_of(tools, [call("pay", "p", text=str(approve)), call("look", "l", text="")]),
            guard,
            KEY,
            pauses=True,
        )
        result = run(agent)
        (asked,) = result.interruptions
        assert asked.call_id == "p"
        state = result.to_state()
        if approve:
            state.approve(asked)
        else:
            state.reject(asked)
        result = run(agent, state)
        assert result.final_output == "Done."
        guard.close()
    assert [text for name, text in tools.made if name == "pay"] == ["True"]


def test_an_approver_is_asked_without_an_interruption(guard, tools):
    guard.approver = Approver(lambda question, timeout: True)
    run(protect(agent_of(tools, [call("pay", "p", text="rent")]), guard, KEY))
    assert tools.made == [("pay", "rent")]


@pytest.mark.parametrize("arguments", ["{", "[1]", '{"text": 1, "text": 2}'])
def test_malformed_arguments_raise_nothing_of_ours(guard, tools, arguments):
    agent = agent_of(tools, [function_call("look", arguments, call_id="a")])
    result = run(protect(agent, guard, KEY))
    assert result.final_output == "Done."
    assert guard._sessions.read(KEY)[0].proposals == 1


def test_a_guard_that_fails_refuses(broken, tools):
    result = run(protect(agent_of(tools, [call("look", "a")]), broken, KEY))
    assert "could not judge" in outputs(result)["a"]
    assert tools.made == []


def test_a_run_that_cannot_be_opened_refuses(unopenable, tools):
    result = run(protect(agent_of(tools, [call("look", "a")]), unopenable))
    assert "could not judge" in outputs(result)["a"]
    assert tools.made == []


def test_attaching_twice_is_attaching_once(guard, tools):
    agent = protect(protect(agent_of(tools), guard), guard)
    tool = agent.tools[0]
    assert isinstance(tool, FunctionTool)
    assert len(tool.tool_input_guardrails or ()) == 1


def test_a_tool_without_guardrails_is_told_of(guard):
    agent = Agent(name="agent", tools=[agents.WebSearchTool()])
    with pytest.warns(RuntimeWarning, match="web_search"):
        protect(agent, guard)


def test_a_resumed_run_is_the_run_it_was(guard, tools, monkeypatch):
    opened = noting(monkeypatch, guard, "session")
    turn = [call("look", "l", text="x"), call("pay", "p", text="x")]
    agent = protect(agent_of(tools, turn), guard, pauses=True)
    paused = run(agent)
    state = paused.to_state()
    state.approve(paused.interruptions[0])
    run(agent, state)
    assert len(opened) == 1
    assert ("pay", "x") in tools.made


def test_handoff_objects_and_mcp_servers_are_guarded_as_well(guard, tools):
    inner = agent_of(tools, [call("drop", "b")])
    inner.name = "inner"
    server = MCPServerStdio({"command": "none"})
    turn = [function_call("transfer_to_inner", "{}", call_id="h")]
    outer = Agent(
        name="outer", model=ScriptedModel([turn]), handoffs=[agents.handoff(inner)], mcp_servers=[server]
    )
    protect(outer, guard, KEY)
    outer.mcp_servers = []  # nothing is started here
    assert "nothing is dropped" in outputs(run(outer))["b"]
    assert [rail.name for rail in server.tool_input_guardrails or ()] == ["safetydrift"]
    assert [rail.name for rail in server.tool_output_guardrails or ()] == ["safetydrift"]


def test_what_needed_approval_before_needs_it_still(guard, tools):
    agent = agent_of(tools, [call("look", "l", text="x")])
    agent.tools = [function_tool(tools.make("look"), name_override="look", needs_approval=True)]
    result = run(protect(agent, guard, pauses=True))
    assert [one.call_id for one in result.interruptions] == ["l"]
    assert tools.made == []
