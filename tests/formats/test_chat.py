"""Messages of two APIs and the service desk that uses them."""

from __future__ import annotations

import pytest

from safetydrift.formats.chat import Chat
from safetydrift.formats.tau_bench import TauBench
from safetydrift.trace import Ending


def test_openai_calls_meet_their_results(run_of):
    first, second, sketch, old = Chat().read(run_of["openai"](), "f:1").steps
    assert (first.call.args, first.result) == ({"at": 1}, "first")
    assert (second.call.args, second.call.malformed, second.result) == ({}, "[2]", "second")
    assert (sketch.call.name, sketch.call.args, sketch.result) == ("sketch", {"input": "a cat"}, None)
    assert (old.call.name, old.result, old.said, old.turn) == ("old", "fine", "Hurry.\nPlease.", 1)


def test_anthropic_calls_meet_their_results(run_of):
    failed, open_ = Chat().read(run_of["anthropic"](), "f:1").steps
    assert (failed.call.args, failed.result, failed.error) == ({"path": "a"}, "missing", "missing")
    assert (open_.call.id, open_.result, open_.said) == ("t2", None, "Then b.")


def test_only_a_last_word_without_calls_completes(run_of):
    assert Chat().read(run_of["openai"](), "f:1").ending is Ending.COMPLETED
    assert Chat().read(run_of["anthropic"](), "f:1").ending is Ending.CENSORED


def test_fields_beside_the_messages_are_taken_over(run_of):
    record = {
        "messages": run_of["openai"](),
        "id": 4,
        "task": "t",
        "category": "c",
        "model": "m",
        "source": "s",
    }
    trace = Chat().read(record, "f:1")
    assert (trace.id, trace.task, trace.category, trace.model, trace.source) == ("4", "t", "c", "m", "s")


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"role": "tool", "content": "x", "tool_call_id": "?"}, "belongs to no call"),
        ({"role": "narrator", "content": "x"}, "unknown role 'narrator'"),
        ({"role": "assistant", "content": [{"type": "tool_use", "id": "1"}]}, "has no name"),
        ({"role": "assistant", "tool_calls": [{"id": "1"}]}, "neither a function nor a custom tool"),
        ({"role": "assistant", "content": {"text": "x"}}, r"content"),
    ],
)
def test_what_cannot_become_a_step_is_a_reason(message, reason):
    with pytest.raises(ValueError, match=reason):
        Chat().read([{"role": "user", "content": "x"}, message], "f:1")


def test_a_desk_run_is_named_after_its_file_task_and_trial(run_of):
    trace = TauBench().read(run_of["tau_bench"](), "model-4.1-airline.json.xz:1.5")
    assert trace.id == "model-4.1-airline/task_7/trial_2"
    assert (trace.category, trace.task, trace.model) == ("airline", "airline/task_7", "model-4.1")
    assert TauBench().read(run_of["tau_bench"](), "x.json:1").category == "tau_bench"


def test_a_reward_is_not_a_safety_label(run_of):
    label = TauBench().read(run_of["tau_bench"](reward=1.0), "f:1").label
    assert (label.violated, label.unusable) == (None, "task reward only, no safety label")


def test_goodbye_and_hand_over_complete_and_the_turn_limit_does_not(run_of):
    run = run_of["tau_bench"]()
    assert TauBench().read(run, "f:1").ending is Ending.COMPLETED
    assert TauBench().read(run | {"traj": run["traj"][:-1]}, "f:1").ending is Ending.CENSORED
    assert TauBench().read(run | {"traj": run["traj"][:4]}, "f:1").ending is Ending.CENSORED
    run["traj"][2]["tool_calls"][0]["function"]["name"] = "transfer_to_human_agents"
    assert TauBench().read(run | {"traj": run["traj"][:4]}, "f:1").ending is Ending.COMPLETED
