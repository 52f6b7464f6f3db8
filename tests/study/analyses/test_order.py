import numpy as np
import pytest
from msgspec.structs import replace
from tests.study.analyses.worlds import coloured, first_order, rows_of, second_order, study

from safetydrift.study.analyses.order import CONSTRUCTIONS, HELD_OUT, RANDOM, order
from safetydrift.study.published import ORDERS
from safetydrift.trace import Ending

PAPER = CONSTRUCTIONS[False]


@pytest.fixture(scope="module")
def first():
    return order(study(first_order(np.random.default_rng(1), n_runs=200, length=30)))


@pytest.fixture(scope="module")
def second():
    return order(study(second_order(np.random.default_rng(2), n_runs=200, length=30)))


def of_orders(found, scope="all runs"):
    rows = rows_of(found["order-tests"])
    return [row for row in rows if row["ends"] == PAPER and row["scope"] == scope]


def predictions(found, split=HELD_OUT, ends=PAPER):
    return [row for row in rows_of(found["order"]) if (row["split"], row["ends"]) == (split, ends)]


def test_a_first_order_chain_is_told_as_one(first):
    rows = of_orders(first)
    assert [row["p"] > 0.01 for row in rows] == [True] * 3
    assert np.argmin([row["BIC"] for row in rows]) == 0


def test_a_second_order_chain_is_told_as_one(second):
    rows = of_orders(second)
    assert rows[0]["p"] < 1e-6
    assert rows[1]["p"] > 0.01
    assert np.argmin([row["BIC"] for row in rows]) == 1
    assert np.argmin([row["AIC"] for row in rows]) == 1


def test_the_true_order_foretells_as_well_as_can_be(second):
    rows = predictions(second)
    assert [row["accuracy"] for row in rows[1:]] == pytest.approx([14.4 / 17] * 2, abs=0.015)
    assert rows[0]["accuracy"] < 0.6
    # After a repetition it changes with 0.9 and after a change with 0.2: repetitions to changes are 8 : 9.
    entropy = (
        -(8 * (0.9 * np.log(0.9) + 0.1 * np.log(0.1)) + 9 * (0.2 * np.log(0.2) + 0.8 * np.log(0.8))) / 17
    )
    assert rows[1]["log loss"] == pytest.approx(entropy, abs=0.02)
    assert rows[1]["log loss"] <= rows[2]["log loss"] + 0.002 < rows[0]["log loss"]


def test_both_splits_stand_side_by_side_and_the_random_one_is_named(second):
    held_out, random = predictions(second), predictions(second, RANDOM)
    assert "paper" in RANDOM
    assert [row["steps"] for row in held_out] == [200 * 30] * 3
    assert [row["steps"] for row in random] == [40 * 30] * 3


def test_printed_figures_stand_beside_the_published_construction_only(second):
    assert [row["published accuracy"] for row in predictions(second)] == [
        ORDERS[k].accuracy for k in (1, 2, 3)
    ]
    other = predictions(second, ends=CONSTRUCTIONS[True])
    assert [row["published log loss"] for row in other] == [None] * 3


def test_completion_is_a_step_where_it_is_an_end_and_cut_off_runs_have_none():
    rng = np.random.default_rng(3)
    runs = first_order(rng, n_runs=40, length=10)
    cut = [replace(run, ending=Ending.CENSORED) for run in runs]
    for chosen, extra in ((runs, 40), (cut, 0)):
        found = order(study(chosen))
        assert predictions(found)[0]["steps"] == 400
        assert predictions(found, ends=CONSTRUCTIONS[True])[0]["steps"] == 400 + extra


def test_a_mixture_of_first_order_chains_is_told_by_its_categories():
    rng = np.random.default_rng(4)
    still = first_order(rng, 150, 25, ((0.9, 0.1), (0.9, 0.1)))
    wild = first_order(rng, 150, 25, ((0.1, 0.9), (0.1, 0.9)))
    runs = still + [replace(run, id=f"w{run.id}", category="there", task=f"w{run.task}") for run in wild]
    found = order(study(runs))
    assert of_orders(found)[0]["p"] < 1e-6
    assert of_orders(found, "within category")[0]["p"] > 0.01


def test_the_history_of_one_run_is_never_that_of_another():
    # Each run starts green and turns yellow once; the colour before the first belongs to nobody.
    runs = [coloured([1, 1], task=f"task {n}", id=str(n)) for n in range(20)]
    found = order(study(runs))
    assert [row["accuracy"] for row in predictions(found)] == [1.0] * 3
    assert [row["steps"] for row in of_orders(found)] == [20, 0, 0]


def test_the_same_seed_gives_the_same_tables(second):
    runs = second_order(np.random.default_rng(2), n_runs=200, length=30)
    assert order(study(runs)) == second
