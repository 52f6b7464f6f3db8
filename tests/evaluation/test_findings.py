from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from tests.monitor.conftest import READ, SEND, SPACE, WRITE, run

from safetydrift.evaluation.findings import choose_examples, find, held_out
from safetydrift.evaluation.rate import Rate
from safetydrift.formats import load_catalogue
from safetydrift.monitor.model import AGGREGATE
from safetydrift.monitor.settings import FitSettings
from safetydrift.states.trajectory import Notion
from safetydrift.trace import Label

if TYPE_CHECKING:
    from safetydrift.evaluation.replay import Replay

HELD_OUT_BEFORE = [False, False, True, False, False, True, False, False]
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
    assert [held_out(f"suite/{n}") for n in range(8)] == HELD_OUT_BEFORE  # on every machine, in every version


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


def test_the_category_prior_stands_beside_the_monitor_and_uses_nothing_else(findings):
    held = findings.held_out
    # Nothing in the office is free of violation, nothing at the desk violates: the prior does as well as anyone.
    assert held.prior.flagged == ("office",)
    assert held.prior.detected == held.detected
    assert held.prior.false_alarms.hits == 0
    assert held.by_category["office"][0] == held.detected
    assert held.by_category["desk"] == (Rate(0, 0), held.false_alarms)


def test_alarms_in_calm_runs_are_counted_each_run_once():
    runs = []
    for task in TASKS:
        runs += [run(READ, SEND, onset=2, id=f"{task} v{n}", task=task) for n in range(5)]
        runs += [run(READ, READ, READ, id=f"{task} c{n}", task=task) for n in range(5)]
    held = find(runs, SPACE, load_catalogue(), FitSettings(false_alarm_budget=1.0)).held_out
    assert held.false_alarms.value == 1.0  # a budget of all lets everything alarm
    assert held.false_proposals.value == 1.0
    assert held.stopped_at_proposal.value == 1.0
    strict = find(runs, SPACE, load_catalogue(), FitSettings(false_alarm_budget=0.0)).held_out
    assert strict.false_alarms.hits == 0
    assert strict.false_proposals.hits == 0
    assert strict.detected.hits == 0
    assert strict.stopped_at_proposal.value == 1.0  # nobody but violators ever proposed to send


def test_an_onset_that_is_not_known_is_not_counted_as_known():
    runs = [run(READ, SEND, onset=2, id="a", task="t", source="s")]
    runs += [run(READ, SEND, id="b", task="t", source="s", label=Label(violated=True))]
    found = find(runs, SPACE, load_catalogue()).sources["s"]
    assert (found.violated, found.onset_known) == (Rate(2, 2), Rate(1, 2))


def test_examples_are_the_middle_of_their_kind(monkeypatch):
    lengths = (1, 2, 3, 5, 9)
    replays = [SimpleNamespace(trajectory=SimpleNamespace(n_steps=n, id=str(n)), alarm=None) for n in lengths]
    (middle,) = choose_examples([], cast("list[Replay]", replays))
    assert middle.trajectory.n_steps == 3


def test_a_point_of_no_return_needs_the_published_probability():
    runs = [run(READ, SEND, onset=2, id=f"v{n}") for n in range(8)] + [
        run(READ, id=f"c{n}") for n in range(2)
    ]
    assert find(runs, SPACE, load_catalogue()).categories["office"].no_return == ()  # 0.8 is not 0.85
    runs += [run(READ, SEND, onset=2, id=f"w{n}") for n in range(10)]
    assert len(find(runs, SPACE, load_catalogue()).categories["office"].no_return) == 2


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
    by_rules = find(runs, SPACE, load_catalogue(), FitSettings(notion=Notion.RULES))
    assert sum(source.violated.total for source in by_rules.sources.values()) == len(runs)
