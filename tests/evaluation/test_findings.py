import pytest

from safetydrift.evaluation.cases import Case
from safetydrift.evaluation.document import Drawing, Table
from safetydrift.evaluation.findings import PUBLISHED, SCORE, drawn, find, middle
from safetydrift.evaluation.rate import Rate
from safetydrift.formats import load_catalogue, load_space
from safetydrift.monitor.model import AGGREGATE
from safetydrift.states.task_words import task_digest
from safetydrift.states.trajectory import Trajectory, fold
from safetydrift.trace import Ending, Label

SPACE, PAPER = load_space("flow"), load_space("paper")
READ = SPACE.encode({"data": "sensitive"})
WRITE = SPACE.encode({"tool": "file_write", "reversibility": "partially"})
SEND = SPACE.encode({"tool": "network", "reversibility": "irreversible"})
TASKS = [f"task {n}" for n in range(40)]


def run(*effects, onset=None, category="office", label=None, **extra):
    """A labelled run; violated exactly when it has an onset."""
    return Trajectory.of_columns(
        extra.pop("id", f"run-{category}-{effects}"),
        effects=effects,
        states=fold(SPACE, effects),
        category=category,
        ending=Ending.COMPLETED,
        label=label or Label(onset is not None, onset=onset),
        tools=("tool",) * len(effects),
        **extra,
    )


def made():
    runs = []
    for task in TASKS:
        runs += [run(READ, SEND, onset=2, id=f"{task} v{n}", task=task, source="here") for n in range(9)]
        runs += [
            run(WRITE, WRITE, id=f"{task} c{n}", task=task, source="here", category="desk") for n in range(5)
        ]
    unlabelled = Label(unusable="no attack in this run")
    return [
        *runs,
        *[run(WRITE, id=f"{task} b", task=task, source="there", label=unlabelled) for task in TASKS],
    ]


def found_in(runs):
    return find(runs, SPACE, PAPER, load_catalogue())


@pytest.fixture(scope="module")
def findings():
    return found_in(made())


def tables(findings):
    return [findings.opening] + [
        part for section in findings.tables for part in section.parts if isinstance(part, Table)
    ]


def table(findings, *columns):
    """The table that has these columns, as a mapping of its first entry to the others."""
    (found,) = [one for one in tables(findings) if set(columns) <= set(one.columns)]
    return {row[0]: dict(zip(found.columns, row, strict=True)) for row in found.rows}


def test_the_risk_score_was_fitted_without_the_tasks_it_is_tried_on(findings):
    provenance = findings.monitor.model.provenance
    tried = {task_digest(*case.task) for case in findings.tried.cases}
    assert tried
    assert not tried & set(provenance["tasks"])
    assert sum(provenance["runs"][AGGREGATE].values()) == findings.fitted_on == 14 * 40 - len(findings.tried)


def test_a_world_in_which_reading_leads_to_violation_is_foreseen_without_false_alarms(findings):
    rows = table(findings, "measure", SCORE)
    assert rows["violations foreseen"][SCORE].value == 1
    assert rows["false alarms"][SCORE].hits == 0
    # Everything in the office violates and nothing at the desk does: the prior foresees as much.
    assert rows["violations foreseen"]["category alone"] == rows["violations foreseen"][SCORE]
    assert findings.measured(PUBLISHED).runs.at_budget[0.05].detected.total == findings.compared.violated.hits


def test_the_predictors_are_measured_within_each_category(findings):
    (panels,) = [one for one in tables(findings) if one.title.startswith("The same within")]
    by_category = {row[0]: row[1:] for row in panels.rows}
    assert by_category["here/desk"][2] == Rate(0, 0)


def test_what_is_drawn_for_the_first_look_does_not_depend_on_the_order_of_the_runs(findings):
    cases = findings.tried
    some = drawn(cases, len(cases) // 2)
    backwards = drawn(cases.select([True] * len(cases)), len(cases) // 2)
    assert 0 < len(some) < len(cases)
    assert {case.run.id for case in some.cases} == {case.run.id for case in backwards.cases}
    assert len(drawn(cases, 10 * len(cases))) == len(cases)


def test_sources_count_every_run_and_what_is_known_of_them(findings):
    rows = table(findings, "source", "runs")
    assert rows["here"]["violated, of usable runs"] == Rate(9 * len(TASKS), 14 * len(TASKS))
    assert rows["there"]["violated, of usable runs"] == Rate(0, 0)
    assert rows["there"]["runs"] == len(TASKS)


def test_rules_and_labels_are_compared_over_the_runs_whose_label_can_be_used():
    runs = []
    for n in range(20):
        runs += [
            run(READ, SEND, onset=2, id=f"both {n}", task=f"{n}"),
            run(READ, SEND, id=f"rules only {n}", task=f"{n}"),
            run(WRITE, onset=1, id=f"label only {n}", task=f"{n}"),
            run(WRITE, id=f"neither {n}", task=f"{n}"),
            run(WRITE, id=f"no label {n}", task=f"{n}", label=Label()),
        ]
    (row,) = table(found_in(runs), "same verdict").values()
    assert row["same verdict"] == Rate(40, 80)
    assert row["labelled violated, rules too"] == Rate(20, 40)
    assert row["violated by rules, labelled too"] == Rate(20, 40)


def test_points_of_no_return_need_the_published_probability(findings):
    rows = table(findings, "no return")
    assert rows["office"]["no return"] == 2  # the start and the state after reading; both always lead there
    assert rows["desk"]["no return"] == 0
    runs = [run(READ, SEND, onset=2, id=f"v{n}", task=f"{n % 40}") for n in range(80)]
    runs += [run(READ, id=f"c{n}", task=f"{n}") for n in range(20)]
    assert table(found_in(runs), "no return")["office"]["no return"] == 0  # 0.8 < 0.85


def test_what_is_drawn_is_also_said(findings):
    drawings = {
        one.key: one
        for one in (
            part for section in findings.tables for part in section.parts if isinstance(part, Drawing)
        )
    }
    assert set(drawings) == {"matrix", "horizons"}
    assert all("violated" in one.spoken or "safe" in one.spoken for one in drawings.values())


def test_an_example_is_the_middle_of_its_kind():
    cases = [Case(run(*[WRITE] * n, id=str(n)), None) for n in (9, 1, 3, 2, 5)]
    chosen = middle(cases)
    assert chosen is not None
    assert chosen.run.n_steps == 3
    assert middle([]) is None
