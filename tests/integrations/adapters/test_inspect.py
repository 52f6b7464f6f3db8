"""Inspect AI: real evaluations of the installed library with its own mock model."""

from __future__ import annotations

import asyncio
import gc
import json

import pytest

pytest.importorskip("inspect_ai.approval", reason="needs the extra 'inspect'")
import inspect_ai.model
from inspect_ai import Task, eval  # noqa: A004
from inspect_ai.approval import Approval, ApprovalPolicy, approver, auto_approver
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageAssistant, ChatMessageTool, ChatMessageUser, ModelOutput, get_model
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import ToolCall, ToolCallError, tool
from tests.integrations.adapters.conftest import POLICY

from safetydrift.guard import SQLiteStore
from safetydrift.guard.guard import Guard
from safetydrift.integrations.common import Gate
from safetydrift.integrations.inspect import Approving, approver_of

KEY = "run"
pytestmark = pytest.mark.filterwarnings("ignore")  # what Inspect and its packages warn of is theirs


@pytest.fixture(autouse=True)
def offline(monkeypatch, tmp_path):
    """Count tokens without the table that Inspect would download, and write logs where they are not kept."""

    async def count(*_, **__):
        return 1

    monkeypatch.setattr(inspect_ai.model.ModelAPI, "count_tokens", count)
    monkeypatch.setattr(inspect_ai.model.ModelAPI, "count_text_tokens", count)
    monkeypatch.setenv("INSPECT_LOG_DIR", str(tmp_path / "logs"))
    monkeypatch.setenv("INSPECT_DISPLAY", "none")
    yield
    gc.collect()  # streams that Inspect leaves open warn when they are collected: here, where nobody minds


def tools_of(tools, *names):
    def made(name):
        @tool(name=name)
        def factory():
            plain = tools.make(name)

            async def execute(text: str):
                """Do something.

                Args:
                    text: With this.
                """
                return plain(text)

            return execute

        return factory()

    return [made(name) for name in names]


def run(tools, approvals, *turns):
    calls = [
        ModelOutput.for_tool_call("mockllm/model", name, {"text": "x"}, tool_call_id=call_id)
        for name, call_id in turns
    ]
    model = get_model(
        "mockllm/model", custom_outputs=[*calls, ModelOutput.from_content("mockllm/model", "Done.")]
    )
    task = Task(
        dataset=[Sample(input="Look at it", target="x")],
        solver=[use_tools(tools_of(tools, "look", "drop", "pay", "post", "peek")), generate()],
        approval=approvals,
    )
    (log,) = eval(task, model=model, display="none", log_samples=True)
    return log


def outputs(log):
    (sample,) = log.samples
    return {one.tool_call_id: one for one in sample.messages if one.role == "tool"}


TURNS = [("look", "a"), ("drop", "b"), ("post", "c"), ("peek", "d"), ("pay", "e"), ("look", "f")]


def test_each_intervention_is_an_approval(guard, tools, standing):
    log = run(tools, [ApprovalPolicy(approver_of(guard, KEY), "*")], *TURNS)
    assert log.status == "success", log.error
    said = outputs(log)
    assert {call_id for call_id, one in said.items() if one.error is not None} == {"b", "c", "e"}
    assert "nothing is dropped" in said["b"].error.message
    assert [name for name, _ in tools.made] == ["look", "peek", "look"]
    (sample,) = log.samples
    events = {one.call.id: one for one in sample.events if one.event == "approval"}
    assert "look away" in events["d"].explanation
    assert events["a"].metadata["intervention"] == "allow"
    steps, under_way, statuses = standing(guard, KEY)
    assert (steps, under_way) == (2, ["f"])  # what came of the last call, nobody asks about
    assert statuses["e"] == "refused"


def test_a_question_is_escalated_to_the_next_approver(guard, tools, standing):
    chain = [ApprovalPolicy(approver_of(guard, KEY), "*"), ApprovalPolicy(auto_approver(), "*")]
    run(tools, chain, ("pay", "a"), ("look", "b"))
    assert tools.made == [("pay", "x"), ("look", "x")]
    assert standing(guard, KEY) == (1, ["b"], {"a": "confirmed", "b": "open"})


def test_what_the_next_approver_rejects_was_not_made(guard, tools, standing):
    @approver(name="never")
    def never():
        async def approve(message, call, view, history):
            return Approval(decision="reject", explanation="no")

        return approve

    chain = [ApprovalPolicy(approver_of(guard, KEY), "*"), ApprovalPolicy(never(), "*")]
    run(tools, chain, ("pay", "a"), ("look", "b"))
    assert tools.made == [("look", "x")]
    assert standing(guard, KEY)[2]["a"] == "refused"


def test_the_approver_is_found_by_its_name(tools, tmp_path):
    policy = tmp_path / "policy.toml"
    policy.write_text('format = "safetydrift.policy/1"\n[[never]]\ntools = ["drop"]\nreason = "not here"\n')
    approvers = tmp_path / "approval.json"
    settings = {"name": "safetydrift/guard", "tools": "*", "policy": str(policy), "category": "workspace"}
    approvers.write_text(json.dumps({"approvers": [settings]}))
    log = run(tools, str(approvers), ("look", "a"), ("drop", "b"))
    assert tools.made == [("look", "x")]
    assert "not here" in outputs(log)["b"].error.message


def test_every_sample_is_a_run(guard, tools, monkeypatch):
    for _ in range(2):
        run(tools, [ApprovalPolicy(approver_of(guard), "*")], ("look", "a"))
    assert len(guard.store._sessions) == 2


def test_parallel_calls_and_files_as_stores(model, tmp_path, standing):
    guard = Guard(model, POLICY, SQLiteStore(tmp_path / "s.sqlite"))
    approving = Approving(Gate(guard, KEY))
    calls = [ToolCall(id=name, function="look", arguments={"text": name}) for name in "ab"]
    history = [ChatMessageUser(content="Look"), ChatMessageAssistant(content="", tool_calls=calls)]

    async def both():
        return await asyncio.gather(*[approving.approve(call, history) for call in calls])

    assert [one.decision for one in asyncio.run(both())] == ["approve", "approve"]
    assert standing(guard, KEY)[1] == ["a", "b"] or standing(guard, KEY)[1] == ["b", "a"]
    results = [
        ChatMessageTool(content="seen", tool_call_id="a"),
        ChatMessageTool(content="", tool_call_id="b", error=ToolCallError("unknown", "no")),
    ]
    later = ToolCall(id="c", function="look", arguments={"text": "c"})
    asyncio.run(approving.approve(later, [*history, *results]))
    assert standing(guard, KEY)[:2] == (2, ["c"])
    again = asyncio.run(approving.approve(later, [*history, *results]))
    assert again.decision == "approve"
    guard.close()


def test_malformed_arguments_raise_nothing(guard):
    odd = ToolCall(id="a", function="look", arguments={}, parse_error="no JSON")
    approval = asyncio.run(Approving(Gate(guard, KEY)).approve(odd, []))
    assert approval.decision in {"approve", "reject", "escalate"}
    assert guard._sessions.read(KEY)[0].proposals == 1


@pytest.mark.parametrize("which", ["broken", "unopenable"])
def test_a_guard_that_fails_refuses(request, tools, which):
    log = run(tools, [ApprovalPolicy(approver_of(request.getfixturevalue(which)), "*")], ("look", "a"))
    assert log.status == "success", log.error
    assert "could not judge" in outputs(log)["a"].error.message
    assert tools.made == []
