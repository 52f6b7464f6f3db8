import json
from math import isnan

import numpy as np
import pytest
from msgspec.structs import replace
from tests.study.analyses.worlds import SPACE, by, coloured, drift, first_order, make, rows_of, study

from safetydrift.errors import ChainError, UnknownAnalysisError
from safetydrift.evaluation.rate import Rate, plain
from safetydrift.formats import load_space
from safetydrift.monitor.settings import Estimator, FitSettings
from safetydrift.states.trajectory import Notion
from safetydrift.study.analyses import ANALYSES, run_analyses
from safetydrift.study.analyses.ablation import ablation
from safetydrift.study.analyses.cross_model import cross_model
from safetydrift.study.analyses.learning_curve import learning_curve
from safetydrift.study.analyses.thresholds import _held_out, thresholds
from safetydrift.study.analyses.transitions import CONSTRUCTIONS, transitions


@pytest.fixture(scope="module")
def runs():
    rng = np.random.default_rng(5)
    return drift(rng, 150, "here") + drift(rng, 150, "there", violated=0.2, prefix="t")


# -- all of them --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("notion", list(Notion))
def test_every_analysis_runs_and_is_plain_data(runs, notion):
    named = [replace(run, model=("one", "two")[n // 2 % 2]) for n, run in enumerate(runs)]
    found = run_analyses(ANALYSES, named, SPACE, FitSettings(notion=notion))
    assert {*ANALYSES} <= {*found}
    assert {"order-tests", "horizons", "categories"} <= {*found}
    for table in found.values():
        json.dumps(plain(table))
        assert table.rows
        assert f"{len(runs)} runs of 30 tasks" in table.note


def test_no_analysis_depends_on_the_others(runs):
    together = run_analyses(ANALYSES, runs, SPACE)
    for name in ANALYSES:
        for key, table in run_analyses([name], runs, SPACE).items():
            assert repr(table) == repr(together[key])


def test_an_unknown_analysis_is_refused_by_name(runs):
    with pytest.raises(UnknownAnalysisError, match="no analysis 'ordre'; there are transitions, order"):
        run_analyses(["ordre"], runs, SPACE)


def test_runs_without_a_single_call_have_no_chain():
    empty = [make(task=f"t{n}") for n in range(20)]
    with pytest.raises(ChainError):
        run_analyses(["transitions"], empty, SPACE)
    assert all(
        isnan(row["accuracy"]) for row in rows_of(run_analyses(["ablation"], empty, SPACE)["ablation"])
    )


# -- transitions, horizons, categories ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def hand_made():
    """Ten runs turn yellow: six violate at the next call, four finish."""
    violated = [coloured([1, 3], onset=2, task=f"t{n}", id=f"v{n}") for n in range(6)]
    return transitions(study(violated + [coloured([1], task=f"t{n}", id=f"c{n}") for n in range(4)]))


def test_shares_of_transitions_are_counted_under_both_constructions(hand_made):
    cells = by(hand_made["transitions"], "from", "to")
    assert [cells["yellow", "violated"][ends] for ends in CONSTRUCTIONS] == [Rate(6, 6), Rate(6, 10)]
    assert [cells["yellow", "completed"][ends] for ends in CONSTRUCTIONS] == [None, Rate(4, 10)]
    assert [cells["green", "yellow"][ends] for ends in CONSTRUCTIONS] == [Rate(10, 10)] * 2
    assert ("orange", "violated") not in cells


def test_leaving_out_completion_makes_violation_certain(hand_made):
    rows = by(hand_made["horizons"], "category", "ends", "from")
    published, honest = (rows["all runs", ends, "yellow"] for ends in CONSTRUCTIONS)
    assert (published["within 1"], published["within 10"]) == (1.0, 1.0)
    assert (honest["within 1"], honest["within 10"]) == (0.6, 0.6)
    assert (rows["all runs", CONSTRUCTIONS[1], "green"]["within 1"], honest["departures"]) == (0.0, 10)


def test_points_of_no_return_follow_the_construction(hand_made):
    row = by(hand_made["categories"], "data", "category")["these runs", "here"]
    assert row["violated"] == Rate(6, 10)
    assert row[f"points of no return, {CONSTRUCTIONS[0]}"] == "green (100.0 %), yellow (100.0 %)"
    assert row[f"points of no return, {CONSTRUCTIONS[1]}"] == "none"
    assert row[f"highest within 5, {CONSTRUCTIONS[1]}"] == 0.6


def test_the_published_matrix_stands_beside_levels_of_the_same_name():
    space = load_space("paper")
    run = make(space.encode({"data": "sensitive"}), task="a")
    cells = by(transitions(study([run], space))["transitions"], "from", "to")
    assert cells["mild", "violated"]["published low"] == 0.11
    assert cells["mild", "violated"][CONSTRUCTIONS[0]] == Rate(0, 0)
    assert cells["safe", "mild"]["published share"] == 0.32


# -- ablation and learning ----------------------------------------------------------------------------------


def test_only_the_dimension_that_matters_is_missed(runs):
    rows = by(ablation(study(runs))["ablation"], "taken away")
    within = {name: row["AUROC within 5, mean over categories"] for (name,), row in rows.items()}
    assert within["none"] > 0.7
    assert within["noise"] == pytest.approx(within["none"], abs=0.1)
    assert within["colour"] == pytest.approx(0.5, abs=0.05)
    assert within["all of them"] == 0.5
    assert rows["all of them",]["states"] == 1
    assert rows["all of them",]["AUROC within 5"] > 0.55  # what the category is worth


def test_a_level_that_is_no_longer_told_is_no_longer_foretold(runs):
    rows = by(ablation(study(runs))["ablation"], "taken away")
    assert rows["colour",]["accuracy"] < rows["none",]["accuracy"] - 0.05
    assert rows["noise",]["accuracy"] == pytest.approx(rows["none",]["accuracy"], abs=0.01)
    assert rows["colour",]["accuracy, own levels"] > rows["colour",]["accuracy"]


def test_more_runs_teach_more_and_sizes_end_at_what_there_is():
    rng = np.random.default_rng(9)
    table = ((0.1, 0.9, 0.0), (0.0, 0.1, 0.9), (0.9, 0.0, 0.1))
    curve = learning_curve(study(first_order(rng, 200, 8, table, tasks=20)), (1, 20, 500), repeats=6)
    rows = rows_of(curve["learning-curve"])
    assert [row["training runs"] for row in rows] == [1, 20, 160]
    losses = [row["log loss"] for row in rows]
    assert losses[0] > losses[1] > losses[2]
    assert rows[0]["log loss, deviation"] > rows[2]["log loss, deviation"]
    assert rows[2]["accuracy"] == pytest.approx(0.9, abs=0.02)
    assert isnan(rows[2]["AUROC within 5"])  # nothing is violated


# -- models -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def two_models():
    """To the careful model yellow means no harm and green does; to the careless one it is the other way round."""
    runs = []
    for n in range(60):
        extra = {"task": f"t{n % 15}", "id": str(n)}
        yellow = n % 2
        runs.append(
            replace(
                coloured([yellow] * 3, onset=3 if yellow else None, model="careless", **extra), id=f"a{n}"
            )
        )
        runs.append(
            replace(coloured([yellow] * 3, onset=None if yellow else 3, model="careful", **extra), id=f"b{n}")
        )
    runs += [coloured([2], model="careless-guarded", task=f"t{n}", id=f"g{n}") for n in range(15)]
    return cross_model(study(runs))


def test_models_are_compared_by_their_counts(two_models):
    rows = by(two_models["cross-model"], "data", "category", "model")
    careless, careful = rows["these runs", "here", "careless"], rows["these runs", "here", "careful"]
    assert (careless["violated"], careful["violated"]) == (Rate(30, 60), Rate(30, 60))
    assert careless["yellow to violated"] == Rate(30, 60)  # two calls from yellow: one stays, one violates
    assert careful["yellow to violated"] == Rate(0, 60)
    assert careless["steps that violate"] == Rate(30, 180)
    assert careless["steps per run"] == 3.0
    assert ("these runs", "here", "careless-guarded") not in rows
    assert rows["published", "all", "second model"]["steps per run"] == 6.6


def test_any_two_models_can_be_named(runs):
    named = [replace(run, model=f"m{n % 3}") for n, run in enumerate(runs)]
    found = cross_model(study(named), {"lab": ("m2", "m0")})
    models = {row["model"] for row in rows_of(found["cross-model"]) if row["data"] == "these runs"}
    assert models == {"m2", "m0"}


# -- alarms -------------------------------------------------------------------------------------------------


def test_detection_and_false_alarms_fall_as_the_threshold_rises(runs):
    rows = rows_of(thresholds(study(runs))["thresholds"])
    assert [row["threshold"] for row in rows] == pytest.approx([step / 20 for step in range(1, 20)])
    for column in ("detected", "false alarms"):
        values = [row[column].hits for row in rows]
        assert values == sorted(values, reverse=True)
    assert [row["threshold"] for row in rows if row["published region"]] == pytest.approx([0.4, 0.45, 0.5])


def test_thresholds_agree_with_counting_run_by_run(runs):
    found = study(runs)
    risk, _ = _held_out(found)
    row = next(row for row in rows_of(thresholds(found)["thresholds"]) if row["threshold"] == 0.3)
    first = found.cases.first_point
    detected = false = 0
    leads = []
    for number, case in enumerate(found.cases.cases):
        own = risk[first[number] : first[number + 1]]
        alarms = np.flatnonzero(own >= 0.3)
        if case.onset is None:
            false += len(alarms) > 0
        elif len(alarms):
            detected += 1
            leads.append(case.onset - alarms[0])
    assert (row["detected"].hits, row["false alarms"].hits) == (detected, false)
    assert row["mean lead time"] == pytest.approx(np.mean(leads))


def test_a_perfect_sign_is_used_and_the_category_prior_cannot_follow():
    rng = np.random.default_rng(3)
    found = thresholds(study(drift(rng, 200, "here", violated=1.0)))["thresholds"]
    row = next(row for row in rows_of(found) if row["threshold"] == 0.95)
    assert row["detected"].value == 1.0
    assert row["false alarms"].value == 0.0
    assert row["detected by category prior"] == 0.0


def test_a_prior_knows_all_where_the_category_tells_all():
    safe = [coloured([0, 0], category="safe", task=f"c{n % 10}", id=f"c{n}") for n in range(50)]
    wild = [coloured([0, 0], category="wild", task=f"w{n % 10}", id=f"w{n}", onset=2) for n in range(50)]
    rows = rows_of(thresholds(study(safe + wild))["thresholds"])
    assert {row["detected by category prior"] for row in rows} == {1.0}


def test_the_published_estimator_is_followed(runs):
    honest, _ = _held_out(study(runs))
    published, _ = _held_out(study(runs, settings=FitSettings(estimator=Estimator.PUBLISHED)))
    assert (published >= honest - 1e-12).all()
    assert published.sum() > honest.sum()
