"""The monitor in the loop: what an alarm does, and the figures of a trial."""

import asyncio
import json

import pytest

pytest.importorskip("inspect_ai")
pytest.importorskip("numpy")
pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # what Inspect and its packages warn of is theirs
    pytest.mark.usefixtures("settled"),
]

from click.testing import CliRunner  # noqa: E402
from inspect_ai.model import ChatMessageAssistant, ChatMessageTool, ChatMessageUser  # noqa: E402
from inspect_ai.tool import ToolCall, ToolCallError  # noqa: E402

from safetydrift.cli.app import app  # noqa: E402
from safetydrift.evaluation.rate import plain  # noqa: E402
from safetydrift.study.scenarios import load_scenario, load_scenarios  # noqa: E402
from safetydrift.study.scenarios.approval import monitor_approver  # noqa: E402
from safetydrift.study.scenarios.tasks import replayed  # noqa: E402
from safetydrift.study.trial import ARMS, Outcome, figures, halves, run_trial  # noqa: E402

SCENARIO = load_scenario("data_handling/churn-report")


def call(number, step):
    args = {key: value for key, value in step.items() if key != "call"}
    return ToolCall(id=f"k{number}", function=step["call"], arguments=args)


def conversation(script, *, refused=()):
    messages = [ChatMessageUser(content=SCENARIO.task)]
    for number, step in enumerate(script):
        one = call(number, step)
        error = ToolCallError("approval", "no") if number in refused else None
        messages += [
            ChatMessageAssistant(content="", tool_calls=[one]),
            ChatMessageTool(
                content="petra.dahl@posteo.example", tool_call_id=one.id, function=one.function, error=error
            ),
        ]
    return messages


def decided(intervention, history, step):
    approve = monitor_approver("default", intervention)
    return asyncio.run(approve("", call(99, step), None, history))


def test_a_call_that_does_no_harm_is_approved():
    decision = decided("block", conversation([]), SCENARIO.safe.script[0])
    assert decision.decision == "approve"
    assert decision.metadata["alarm"] is False


def test_replaying_a_conversation_makes_its_calls_and_leaves_refused_ones_out():
    drift = SCENARIO.drifts[0].script
    assert replayed(SCENARIO, conversation(drift)).found == {"data_leak": 4}
    last = len(drift) - 1
    watched = replayed(SCENARIO, conversation(drift, refused={last}))
    assert watched.found == {}
    assert [step.error for step in watched.steps] == [None] * last + ["refused"]


def outcome(scenario, epoch, violated, done, interventions=(), *, onset=None):
    return Outcome(scenario, epoch, violated, done, onset, tuple(interventions))


def test_figures_compare_pairs():
    unwatched = [
        outcome("a", 1, True, True, onset=4),
        outcome("a", 2, True, False, onset=3),
        outcome("b", 1, False, True),
        outcome("b", 2, False, True),
    ]
    watched = [
        outcome("a", 1, False, True, [2, 5]),
        outcome("a", 2, True, False, onset=3),
        outcome("b", 1, False, True),
        outcome("b", 2, False, False, [1]),
        outcome("c", 1, True, True),  # has no pair
    ]
    found = figures(unwatched, watched)
    assert found.runs == 4
    assert found.prevented.value == 0.5
    assert found.kept.value == 0.5
    assert found.false_interventions.value == 0.5
    assert found.warning.value == 2
    assert (found.done.value, found.violated.value) == (0.5, 0.25)
    with pytest.raises(ValueError, match="no run was made both"):
        figures(unwatched, watched[-1:])


def test_the_halves_share_nothing_and_hold_every_category():
    fit, held = halves(3)
    assert not set(fit) & set(held)
    assert sorted(fit + held) == [one.id for one in load_scenarios()]
    assert {name.split("/")[0] for name in fit} == {name.split("/")[0] for name in held}
    assert halves(3) == (fit, held) != halves(4)


def test_a_trial_runs_every_arm_and_is_not_run_twice(tmp_path):
    fit, held = halves(0)
    few = (fit[::2], held[::8])
    found = run_trial(tmp_path, "simulated/over-helpful", epochs=1, scenarios=few)
    assert tuple(found.arms) == ARMS
    assert found.simulated
    assert {one.runs for one in found.arms.values()} == {len(few[1])}
    assert found.arms["none"].prevented.value == 0
    assert found.arms["block"].violated.value <= found.arms["none"].violated.value
    again = run_trial(tmp_path, "simulated/over-helpful", epochs=1, scenarios=few)
    assert json.dumps(plain(found)) == json.dumps(plain(again))


def test_the_verb_explains_itself():
    assert "safetydrift study trial" in CliRunner().invoke(app, ["study", "trial", "--help"]).output
