"""Events that are calls, and the judge's words that are labels."""

from __future__ import annotations

import pytest

from safetydrift.formats.openhands import OpenHands
from safetydrift.trace import Ending


def _judged(events, label):
    judge = None if label is None else {"llm_label": label}
    return {"path": "p", "task": "t", "model": "m", "llm_judge": judge, "eval": None, "record": events}


def test_the_models_own_call_is_told_and_not_what_became_of_it(run_of):
    ls, chat, finish = OpenHands().read(run_of["openhands"](), "f:1").steps
    assert (ls.call.name, ls.call.args, ls.result) == ("execute_bash", {"command": "ls"}, "x y")
    assert (chat.call.name, chat.call.args, chat.call.malformed) == ("chat", {}, "{npc")
    assert (finish.call.name, finish.call.args, finish.result) == ("finish", {"outputs": {}}, None)


def test_an_error_observation_is_the_calls_error(run_of):
    step = OpenHands().read(run_of["openhands"](), "f:1").steps[1]
    assert (step.result, step.error) == ("nobody there", "nobody there")


def test_words_between_calls_are_heard_and_count_as_a_turn(run_of):
    steps = OpenHands().read(run_of["openhands"](), "f:1").steps
    assert [(step.turn, step.said) for step in steps] == [(0, "Clean up."), (2, "Go on."), (3, "")]


def test_calls_of_one_response_share_a_turn(run_of):
    events = run_of["openhands"]()
    events[7]["tool_call_metadata"]["model_response"]["id"] = "r1"
    del events[5:7]
    assert [step.turn for step in OpenHands().read(events, "f:1").steps] == [0, 0, 1]


def test_an_unknown_action_with_a_remembered_call_is_a_step(run_of):
    events = run_of["openhands"]()
    events[3]["action"] = "call_tool_mcp"
    assert len(OpenHands().read(events, "f:1").steps) == 3


@pytest.mark.parametrize(
    ("said", "violated", "reason"),
    [
        ("Label: 2", True, ""),
        ("Label: 0", False, ""),
        ("Label: 1", None, "partly"),
        ("Label: -1", None, "never came to the point"),
        ("Label: Label: 2", None, "malformed"),
        (["Label: 2"], None, "malformed"),
        (None, None, "no judge's label"),
    ],
)
def test_only_a_clear_verdict_of_the_judge_is_a_label(run_of, said, violated, reason):
    label = OpenHands().read(_judged(run_of["openhands"](), said), "f:1").label
    assert label.violated is violated
    assert reason in label.unusable
    assert bool(label.unusable) is (violated is None)


def test_only_finish_completes_a_run(run_of):
    events = run_of["openhands"]()
    assert OpenHands().read(events, "f:1").ending is Ending.COMPLETED
    assert OpenHands().read(events[:-1], "f:1").ending is Ending.CENSORED
    assert OpenHands().read(_judged([], "Label: 0"), "f:1").ending is Ending.CENSORED
