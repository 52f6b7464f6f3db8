from math import isnan, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safetydrift.evaluation.metrics import resampling
from safetydrift.evaluation.metrics.resampling import Estimate, Resamples, estimate, ratio


def test_the_first_row_is_the_runs_as_they_are_and_every_other_draws_as_many_tasks():
    resamples = Resamples.draw(12, np.random.default_rng(1), 50)
    assert resamples.weights.shape == (51, 12)
    assert (resamples.weights[0] == 1).all()
    assert (resamples.weights.sum(axis=1) == 12).all()
    assert resamples.n_resamples == 50


def test_resamples_come_from_the_generator():
    one, same, other = (Resamples.draw(9, np.random.default_rng(seed), 5).weights for seed in (1, 1, 2))
    assert (one == same).all()
    assert (one != other).any()
    assert (Resamples.draw(9, n_resamples=5).weights == Resamples.draw(9, n_resamples=5).weights).all()


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(-5, 5)), max_size=20), st.integers(0, 100))
def test_a_task_is_drawn_with_all_its_runs(values, seed):
    resamples = Resamples.draw(5, np.random.default_rng(seed), 4)
    task, value = np.array([t for t, _ in values], int), np.array([v for _, v in values], float)
    expected = [sum(weights[t] * v for t, v in values) for weights in resamples.weights]
    np.testing.assert_allclose(resamples.total(value, task), expected, atol=1e-9)


def test_many_tasks_are_drawn_several_together(monkeypatch):
    monkeypatch.setattr(resampling, "MAX_CLUSTERS", 10)
    resamples = Resamples.draw(35, np.random.default_rng(1), 20)
    assert resamples.n_clusters == 10
    assert sorted(np.bincount(resamples.cluster)) == [3] * 5 + [4] * 5
    totals = resamples.total(np.ones(35), np.arange(35))
    assert totals[0] == 35
    assert (totals[1:] >= 30).all()
    assert (totals[1:] <= 40).all()


def test_the_interval_of_a_mean_is_the_one_theory_gives():
    # 400 tasks of one run each: the standard error of the mean is known in closed form.
    values = np.random.default_rng(3).normal(size=400)
    resamples = Resamples.draw(400, np.random.default_rng(4), 4000)
    low, high = estimate(resamples.total(values, np.arange(400)) / 400).interval()
    error = values.std() / 20
    assert low == pytest.approx(values.mean() - 1.96 * error, abs=0.1 * error)
    assert high == pytest.approx(values.mean() + 1.96 * error, abs=0.1 * error)


def test_runs_that_are_copies_of_each_other_make_nothing_surer():
    values = np.random.default_rng(3).normal(size=50)
    resamples = Resamples.draw(50, np.random.default_rng(4), 200)
    once = resamples.total(values, np.arange(50)) / 50
    copied = resamples.total(np.repeat(values, 30), np.repeat(np.arange(50), 30)) / 1500
    np.testing.assert_allclose(once, copied)


def test_resamples_without_a_figure_are_counted_and_left_out_of_the_interval():
    figure = Estimate(0.5, np.array([nan, 0.2, 0.4, nan]))
    assert figure.undefined == 2
    assert figure.interval(0.999999) == pytest.approx((0.2, 0.4))
    assert figure.as_dict()["undefined_resamples"] == 2


def test_an_undefined_figure_has_no_interval():
    for figure in (Estimate(nan, np.array([0.1, 0.2])), Estimate(0.1, np.array([nan]))):
        assert all(map(isnan, figure.interval()))
        assert not figure.excludes_zero
    assert str(Estimate(nan, np.array([nan]))) == "\N{EN DASH}"


def test_a_difference_is_paired():
    shared = np.random.default_rng(0).normal(size=100)
    figure, reference = Estimate(0.7, 0.7 + shared), Estimate(0.6, 0.6 + shared)
    difference = figure.minus(reference)
    assert difference.value == pytest.approx(0.1)
    assert difference.interval() == pytest.approx((0.1, 0.1))
    assert difference.excludes_zero
    assert not figure.minus(figure).excludes_zero
    assert reference.minus(figure).excludes_zero


def test_nothing_of_nothing_is_undefined():
    assert np.isnan(ratio(np.zeros(2), np.array([0.0, 0.0]))).all()
    assert ratio(np.array([1.0]), np.array([4.0]))[0] == 0.25
