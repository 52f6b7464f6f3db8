from math import isnan, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safetydrift.evaluation.metrics.calibration import (
    FLOOR,
    calibration,
    expected_calibration_error,
    reliability,
)
from safetydrift.evaluation.metrics.resampling import Resamples

forecasts = st.lists(st.tuples(st.floats(0, 1), st.booleans(), st.integers(0, 3)), min_size=1, max_size=40)


def _calibration(p, y, task=None, category=None, n_resamples=20):
    task = np.arange(len(p)) if task is None else task
    category = np.zeros(len(p), int) if category is None else category
    return calibration(
        np.array(p, float),
        np.array(y, bool),
        task,
        category,
        Resamples.draw(max(1, len(set(np.asarray(task).tolist()))), n_resamples=n_resamples),
    )


@given(forecasts)
def test_brier_score_and_log_loss_are_those_of_scikit_learn(drawn):
    metrics = pytest.importorskip("sklearn.metrics")
    p, y = np.array([f for f, _, _ in drawn]), np.array([o for _, o, _ in drawn])
    found = _calibration(p, y)
    assert found.brier.value == pytest.approx(metrics.brier_score_loss(y, p, pos_label=True))
    held = np.clip(p, FLOOR, 1 - FLOOR)
    assert found.log_loss.value == pytest.approx(metrics.log_loss(y, held, labels=[False, True]), abs=1e-9)


@given(forecasts)
def test_skill_is_against_the_base_rate(drawn):
    p, y = np.array([f for f, _, _ in drawn]), np.array([o for _, o, _ in drawn], float)
    found = _calibration(p, y)
    reference = np.mean((y - y.mean()) ** 2)
    if reference == 0:
        assert isnan(found.brier_skill.value)
    else:
        assert found.brier_skill.value == pytest.approx(1 - np.mean((p - y) ** 2) / reference)


@given(forecasts)
def test_figures_on_a_resample_are_those_of_its_runs_written_out(drawn):
    p, y = np.array([f for f, _, _ in drawn]), np.array([o for _, o, _ in drawn])
    task = np.array([t for _, _, t in drawn])
    resamples = Resamples.draw(4, np.random.default_rng(1), 5)
    found = calibration(p, y, task, task % 2, resamples)
    for at, weights in enumerate(resamples.weights[1:]):
        rows = np.repeat(np.arange(len(p)), weights[task].astype(int))
        if not rows.size:
            assert isnan(found.brier.draws[at])
            continue
        again = _calibration(p[rows], y[rows], category=task[rows] % 2, n_resamples=1)
        for name, figure in found.figures().items():
            assert figure.draws[at] == pytest.approx(again.figures()[name].value, abs=1e-7, nan_ok=True)


def test_always_saying_the_base_rate_has_no_skill_and_knowing_has_all():
    y = np.array([True, False, False, False] * 5)
    assert _calibration(np.full(20, 0.25), y).brier_skill.value == pytest.approx(0)
    assert _calibration(y.astype(float), y).brier_skill.value == 1


def test_knowing_the_category_has_no_skill_within_it():
    y = np.array([True, True, False, False, False, False])
    category = np.array([0, 0, 0, 1, 1, 1])
    rates = np.array([2 / 3] * 3 + [0.0] * 3)
    found = _calibration(rates, y, category=category)
    assert found.brier_skill.value > 0.4
    assert found.brier_skill_within_category.value == pytest.approx(0)


def test_a_certain_forecast_that_fails_costs_much_but_not_infinitely():
    assert _calibration([0.0], [True]).log_loss.value == pytest.approx(-log(FLOOR))


@given(forecasts, st.integers(1, 12))
def test_a_reliability_curve_loses_no_point_and_divides_no_equal_forecasts(drawn, bins):
    p, y = np.array([f for f, _, _ in drawn]), np.array([o for _, o, _ in drawn])
    curve = reliability(p, y, bins)
    assert 1 <= len(curve) <= bins
    assert sum(point.observed.total for point in curve) == len(p)
    assert sum(point.observed.hits for point in curve) == y.sum()
    means = [point.forecast for point in curve]
    assert means == sorted(means)
    assert len(curve) <= len(set(p.tolist()))
    total = sum(point.forecast * point.observed.total for point in curve)
    assert total == pytest.approx(p.sum())


def test_a_curve_has_bins_of_equally_many_points_where_forecasts_differ():
    p = np.linspace(0, 1, 100) ** 3
    curve = reliability(p, p > 0.5, 10)
    assert [point.observed.total for point in curve] == [10] * 10
    assert curve[0].forecast == pytest.approx(p[:10].mean())


def test_the_calibration_error_of_a_curve_known_by_hand():
    p = np.array([0.1] * 10 + [0.8] * 10)
    y = np.array([True] * 3 + [False] * 7 + [True] * 8 + [False] * 2)
    curve = reliability(p, y)
    assert [point.forecast for point in curve] == pytest.approx([0.1, 0.8])
    assert [point.observed.value for point in curve] == [0.3, 0.8]
    assert expected_calibration_error(curve) == pytest.approx(0.1)


def test_no_forecasts_have_no_curve():
    assert reliability(np.zeros(0), np.zeros(0, bool)) == ()
    assert isnan(expected_calibration_error(()))


def test_probabilities_that_are_true_are_calibrated():
    rng = np.random.default_rng(8)
    p = rng.random(20_000)
    found = _calibration(p, rng.random(20_000) < p, task=np.arange(20_000) // 100)
    assert found.ece < 0.02
    assert found.brier.value == pytest.approx(1 / 6, abs=0.005)  # E[p (1 - p)] of uniform p
    assert all(
        low <= point.forecast <= high
        for point in found.reliability
        for low, high in [point.observed.interval(0.9999)]
    )
