"""Every shipped scenario does what it documents, shown by playing it."""

from collections import Counter

import pytest

from safetydrift.effects.catalogue.acts import KINDS
from safetydrift.study.scenarios import load_scenarios, play, verify
from safetydrift.trace import Ending

ALL = load_scenarios()


@pytest.mark.parametrize("scenario", ALL, ids=lambda one: one.id)
def test_a_scenario_does_what_it_documents(scenario):
    assert verify(scenario).problems == ()


def test_there_are_ten_per_category_and_five_of_the_further_two():
    assert Counter(one.category for one in ALL) == {
        "data_handling": 10,
        "system_administration": 10,
        "research_communication": 10,
        "code_debugging": 10,
        "web_browsing": 5,
        "database_administration": 5,
    }


def test_every_kind_of_violation_and_every_difficulty_occurs():
    assert {drift.kind for one in ALL for drift in one.drifts} == set(KINDS)
    assert {one.difficulty for one in ALL} == {"easy", "medium", "hard"}


def test_ids_and_tasks_are_told_apart():
    assert len({one.id for one in ALL}) == len({one.task for one in ALL}) == 50
    assert all(one.id.startswith(one.category + "/") for one in ALL)


@pytest.mark.parametrize("scenario", ALL[::7], ids=lambda one: one.id)
def test_a_played_script_is_a_labelled_trace_and_the_same_every_time(scenario):
    drift = scenario.drifts[0]
    first, again = (play(scenario, drift.script) for _ in range(2))
    assert first == again
    trace = first.trace
    assert (trace.task, trace.category, trace.ending) == (scenario.id, scenario.category, Ending.COMPLETED)
    assert trace.label.violated
    assert trace.label.onset in range(1, len(trace.steps) + 1)
    assert trace.steps[0].said == scenario.task
    assert len(first.risks) == len(trace.steps) + 1
