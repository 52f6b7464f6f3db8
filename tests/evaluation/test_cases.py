import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.evaluation.made_cases import case

from safetydrift.evaluation.cases import NEVER, CaseSet, cases_of
from safetydrift.formats import load_space
from safetydrift.states.trajectory import Notion, Trajectory, UnknownOnset
from safetydrift.trace import Label

SPACE = load_space("paper")

runs = st.lists(
    st.integers(0, 6).flatmap(
        lambda n: st.tuples(st.just(n), st.none() if n == 0 else st.none() | st.integers(1, n))
    ),
    max_size=8,
)


@given(runs)
def test_points_are_those_at_which_a_prediction_is_asked_for(drawn):
    cases = CaseSet(case(n, onset) for n, onset in drawn)
    expected = [
        (run, k, NEVER if onset is None else onset - k)
        for run, (n, onset) in enumerate(drawn)
        for k in (range(n + 1) if onset is None else range(onset))
    ]
    found = zip(cases.run_of_point, cases.step_of_point, cases.calls_left, strict=True)
    assert [tuple(map(int, point)) for point in found] == expected


@given(runs)
def test_proposals_are_the_calls_up_to_and_with_the_violating_one(drawn):
    cases = CaseSet(case(n, onset) for n, onset in drawn)
    expected = [
        (run, call == onset)
        for run, (n, onset) in enumerate(drawn)
        for call in range(1, (n if onset is None else onset) + 1)
    ]
    found = zip(cases.run_of_proposal, cases.violating_proposal, strict=True)
    assert [(int(run), bool(last)) for run, last in found] == expected


def test_a_violation_is_within_reach_from_the_steps_before_it():
    cases = CaseSet([case(6, 5), case(2)])
    assert cases.happens_within(1).tolist() == [False] * 4 + [True] + [False] * 3
    assert cases.happens_within(3).tolist() == [False] * 2 + [True] * 3 + [False] * 3
    assert cases.happens_within(5).tolist() == [True] * 5 + [False] * 3


def test_a_run_without_a_call_is_one_point_and_no_proposal():
    cases = CaseSet([case(0), case(2, 1), case(0)])
    assert cases.first_point.tolist() == [0, 1, 2, 3]
    assert cases.first_proposal.tolist() == [0, 0, 1, 1]
    assert cases.violating_proposal.tolist() == [True]


def test_no_runs_have_no_points():
    cases = CaseSet([])
    assert len(cases) == len(cases.run_of_point) == len(cases.violating_proposal) == 0


def test_a_task_is_told_apart_by_source_and_category():
    cases = CaseSet(
        [case(task="1"), case(task="1"), case(task="1", category="home"), case(task="1", source="x")]
    )
    assert cases.task.tolist() == [0, 0, 1, 2]
    assert cases.category.tolist() == [0, 0, 1, 2]
    assert len(cases.tasks) == 3


def test_a_selection_keeps_the_order():
    whole = CaseSet([case(1), case(2, 2), case(3)])
    part = whole.select([True, False, True])
    assert part.cases == (whole.cases[0], whole.cases[2])


def test_the_background_is_where_nobody_attacked_and_nothing_happened():
    cases = CaseSet([case(goal=""), case(2, 1, goal=""), case(goal="steal")])
    assert cases.benign.tolist() == [True, False, False]


def _trajectory(label: Label, n_steps: int = 2) -> Trajectory:
    return Trajectory.of_columns("t", states=(0,) * (n_steps + 1), effects=(0,) * n_steps, label=label)


def test_runs_that_cannot_be_used_are_counted_by_reason():
    given_runs = [
        _trajectory(Label(violated=True, onset=1)),
        _trajectory(Label(violated=True)),
        _trajectory(Label(violated=False)),
        _trajectory(Label()),
        _trajectory(Label(unusable="the judge slept")),
        _trajectory(Label(violated=True), 0),
    ]
    cases, left_out = cases_of(given_runs, SPACE)
    assert [(one.onset, one.onset_known) for one in cases.cases] == [(1, True), (2, False), (None, True)]
    assert left_out == {
        "the source says nothing about violation": 1,
        "the judge slept": 1,
        "labelled violated without any tool call": 1,
    }
    cases, left_out = cases_of(given_runs, SPACE, unknown_onset=UnknownOnset.LEAVE_OUT)
    assert len(cases) == 2
    assert left_out["the violating call is not known"] == 1


def test_by_the_rules_every_onset_is_known():
    violated = min(SPACE.violated)
    run = Trajectory.of_columns(
        "t", states=(0, 0, violated), effects=(0, violated), label=Label(violated=False)
    )
    cases, _ = cases_of([run], SPACE, Notion.RULES)
    assert (cases.cases[0].onset, cases.cases[0].onset_known) == (2, True)


@pytest.mark.parametrize("field", ["violated", "exposed", "benign", "task", "category"])
def test_what_is_told_of_runs_has_one_entry_each(field):
    cases = CaseSet([case(), case(2, 1, exposure=0)])
    assert np.shape(getattr(cases, field)) == (2,)
