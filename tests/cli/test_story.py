"""The demo tells what happens: what the guard decides is asked of it, and nothing is written down beforehand."""

from pathlib import Path

from safetydrift.cli.story import STEPS, TASK, play
from safetydrift.guard import Approver, Guard, GuardPolicy, Rule
from safetydrift.monitor.verdict import Intervention

README = Path(__file__).parents[2] / "README.md"


def test_a_played_run_ends_at_the_call_that_is_not_let_through():
    forbids = GuardPolicy(never=(Rule(Intervention.BLOCK, tools=("write_*",), reason="read only"),))
    played = list(play(Guard.load(policy=forbids), "run", TASK))
    assert [decision.allowed for _, decision in played] == [True, False]
    assert played[-1][0].call.name == "write_file"


def test_a_person_who_agrees_lets_a_played_run_go_on():
    asks = GuardPolicy(when=(Rule(Intervention.ASK, reason="everything is asked about"),))
    guard = Guard.load(policy=asks, approver=Approver(lambda question, timeout: True))
    assert [step for step, _ in play(guard, "run", TASK)] == list(STEPS)


def test_the_example_of_the_readme_is_the_one_that_is_played():
    text = README.read_text("utf-8")
    assert TASK in text
    for step in STEPS:
        assert f'"{step.call.name}"' in text
        for value in step.call.args.values():
            for one in value if isinstance(value, list) else [value]:
                assert str(one) in text, one
