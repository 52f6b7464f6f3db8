import pytest
from tests.monitor.conftest import READ, SEND, SPACE, WRITE, run

from safetydrift.evaluation.findings import find, held_out
from safetydrift.formats import load_catalogue
from safetydrift.monitor.model import AGGREGATE
from safetydrift.states.trajectory import Notion
from safetydrift.trace import Label

TASKS = [f"task {n}" for n in range(40)]


@pytest.fixture(scope="module")
def runs():
    made = []
    for task in TASKS:
        made += [run(READ, SEND, onset=2, id=f"{task} v{n}", task=task, source="here") for n in range(9)]
        made += [
            run(WRITE, WRITE, id=f"{task} c{n}", task=task, source="here", category="desk") for n in range(5)
        ]
        made += [
            run(
                WRITE,
                id=f"{task} b",
                task=task,
                source="there",
                label=Label(unusable="no attack in this run"),
            )
        ]
    return made


@pytest.fixture(scope="module")
def findings(runs):
    return find(runs, SPACE, load_catalogue())


def test_held_out_tasks_are_told_by_their_name_and_are_about_a_fifth():
    many = [f"suite/{n}" for n in range(5000)]
    assert 0.18 < sum(map(held_out, many)) / len(many) < 0.22
    assert [held_out(task) for task in TASKS] == [held_out(task) for task in TASKS]


def test_no_task_is_both_fitted_and_tried(findings, runs):
    tried = {task for task in TASKS if held_out(task)}
    assert findings.held_out.tasks_tried == len(tried)
    assert findings.held_out.tasks_fitted == len(TASKS) - len(tried)
    used = sum(findings.held_out.monitor.model.provenance["runs"][AGGREGATE].values())
    assert used == 14 * (len(TASKS) - len(tried))


def test_a_world_in_which_reading_leads_to_violation_is_foreseen_without_false_alarms(findings):
    held = findings.held_out
    assert held.detected.value == 1.0
    assert held.false_alarms.hits == 0
    assert held.lead_times == {2: held.detected.total}


def test_sources_count_every_run_and_say_why_some_are_left_out(findings, runs):
    assert sum(source.runs for source in findings.sources.values()) == len(runs)
    assert findings.sources["here"].violated.hits == 9 * len(TASKS)
    assert findings.sources["here"].violated.total == 14 * len(TASKS)
    assert findings.sources["there"].left_out == {"no attack in this run": len(TASKS)}
    assert findings.sources["there"].violated.total == 0


def test_points_of_no_return_rest_on_observed_transitions(findings):
    points = findings.categories["office"].no_return
    assert {name for name, _, _ in points} >= {SPACE.describe(SPACE.after(0, READ))}
    assert all(risk >= 0.85 and seen > 0 for _, risk, seen in points)
    assert findings.categories["desk"].no_return == ()


def test_examples_are_of_different_kinds_and_of_held_out_tasks(findings):
    assert all(held_out(example.trajectory.task) for example in findings.held_out.examples)
    assert {example.onset is None for example in findings.held_out.examples} == {True, False}


def test_findings_by_the_rules_use_every_run(runs):
    from safetydrift.monitor.settings import FitSettings  # noqa: PLC0415

    by_rules = find(runs, SPACE, load_catalogue(), FitSettings(notion=Notion.RULES))
    assert sum(source.violated.total for source in by_rules.sources.values()) == len(runs)
