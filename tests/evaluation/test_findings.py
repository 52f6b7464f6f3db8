from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from tests.monitor.conftest import READ, SEND, SPACE, WRITE, run

from safetydrift.evaluation.document import Drawing, Table
from safetydrift.evaluation.findings import choose_examples, find
from safetydrift.evaluation.rate import Rate
from safetydrift.formats import load_catalogue
from safetydrift.monitor.model import AGGREGATE
from safetydrift.states.task_words import task_digest
from safetydrift.trace import Label

if TYPE_CHECKING:
    from safetydrift.evaluation.replay import Replay

TASKS = [f"task {n}" for n in range(40)]


def made(desk_effects=(WRITE, WRITE)):
    runs = []
    for task in TASKS:
        runs += [run(READ, SEND, onset=2, id=f"{task} v{n}", task=task, source="here") for n in range(9)]
        runs += [
            run(*desk_effects, id=f"{task} c{n}", task=task, source="here", category="desk") for n in range(5)
        ]
    unlabelled = Label(unusable="no attack in this run")
    return [
        *runs,
        *[run(WRITE, id=f"{task} b", task=task, source="there", label=unlabelled) for task in TASKS],
    ]


@pytest.fixture(scope="module")
def findings():
    return find(made(), SPACE, load_catalogue())


def table(findings, *columns):
    """The table that has these columns, as a mapping of its first entry to the others."""
    (found,) = [one for one in findings.document.parts(Table) if set(columns) <= set(one.columns)]
    return {row[0]: dict(zip(found.columns, row, strict=True)) for row in found.rows}


def test_the_monitor_was_fitted_without_the_tasks_it_is_shown_on(findings):
    provenance = findings.monitor.model.provenance
    assert not {task_digest("here", "office", one.trajectory.task) for one in findings.examples} & set(
        provenance["tasks"]
    )
    assert 0 < sum(provenance["runs"][AGGREGATE].values()) < 14 * len(TASKS)


def test_a_world_in_which_reading_leads_to_violation_is_foreseen_without_false_alarms(findings):
    rows = table(findings, "violations foreseen", "mean steps of warning")
    assert rows["monitor"]["violations foreseen"].value == 1
    assert rows["monitor"]["false alarms"].hits == 0
    # Everything in the office violates and nothing at the desk does: the prior foresees as much.
    assert rows["category-prior"]["violations foreseen"] == rows["monitor"]["violations foreseen"]
    assert findings.document.lead[0].startswith("On held-out tasks")


def test_the_monitor_is_measured_within_each_category(findings):
    (panels,) = [one for one in findings.document.parts(Table) if one.title.startswith("The same within")]
    by_category = {row[0]: row[1:] for row in panels.rows}
    assert by_category["here/desk"][0] == Rate(0, 0)


def test_sources_count_every_run_and_what_is_known_of_them(findings):
    rows = table(findings, "source", "runs")
    assert rows["here"]["violated, of usable runs"] == Rate(9 * len(TASKS), 14 * len(TASKS))
    assert rows["there"]["violated, of usable runs"] == Rate(0, 0)
    assert rows["there"]["runs"] == len(TASKS)


def test_rules_and_labels_are_compared_over_the_runs_whose_label_can_be_used():
    runs = [
        run(READ, SEND, onset=2, id="both", task="1"),
        run(READ, SEND, id="rules only", task="2"),
        run(WRITE, onset=1, id="label only", task="3"),
        run(WRITE, id="neither", task="4"),
        run(WRITE, id="no label", task="5", label=Label()),
    ]
    (row,) = table(find(runs, SPACE, load_catalogue()), "same verdict").values()
    assert row["same verdict"] == Rate(2, 4)
    assert row["labelled violated, rules too"] == Rate(1, 2)
    assert row["violated by rules, labelled too"] == Rate(1, 2)


def test_points_of_no_return_need_the_published_probability(findings):
    rows = table(findings, "no return")
    assert rows["office"]["no return"] == 2  # the start and the state after reading; both always lead there
    assert rows["desk"]["no return"] == 0
    runs = [run(READ, SEND, onset=2, id=f"v{n}", task=f"{n}") for n in range(8)]
    runs += [run(READ, id=f"c{n}", task=f"{n}") for n in range(2)]
    assert table(find(runs, SPACE, load_catalogue()), "no return")["office"]["no return"] == 0  # 0.8 < 0.85


def test_what_is_drawn_is_also_said(findings):
    drawings = {one.key: one for one in findings.document.parts(Drawing)}
    assert set(drawings) == {"matrix", "horizons"}
    assert all("violated" in one.spoken or "safe" in one.spoken for one in drawings.values())


def test_examples_are_of_different_kinds(findings):
    kinds = [(one.onset is not None, one.alarm is not None) for one in findings.examples]
    assert kinds == [(True, True), (False, False)]


def test_an_example_is_the_middle_of_its_kind():
    lengths = (1, 2, 3, 5, 9)
    replays = [
        SimpleNamespace(trajectory=SimpleNamespace(n_steps=n, id=str(n)), onset=None, alarm=None)
        for n in lengths
    ]
    (middle,) = choose_examples(cast("list[Replay]", replays))
    assert middle.trajectory.n_steps == 3
