"""Kappa beside published figures, and beside computations that share nothing with ours."""

from math import isnan, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safetydrift.evaluation.agreement import Agreement
from safetydrift.study.review.kappa import Weights, cohen_kappa

DIAGNOSES = [[75, 1, 4], [5, 4, 1], [0, 0, 10]]
"""Two raters diagnose 100 patients: a worked example of Fleiss, Levin and Paik's book on rates and proportions."""
SPOUSES = [[7, 7, 2, 3], [2, 8, 3, 7], [1, 5, 4, 9], [2, 8, 9, 14]]
"""Husbands and wives on one question with four ordered answers (Hout, Duncan and Sobel 1987; Agresti's textbook)."""
PROPOSALS = [[20, 5], [10, 15]]


def by_the_book(table, credit):
    """Value of kappa, written out with loops from its definition."""
    n, levels = sum(map(sum, table)), range(len(table))
    rows = [sum(row) for row in table]
    columns = [sum(row[j] for row in table) for j in levels]
    observed = sum(credit(i, j) * table[i][j] / n for i in levels for j in levels)
    chance = sum(credit(i, j) * rows[i] * columns[j] / n**2 for i in levels for j in levels)
    return (observed - chance) / (1 - chance)


def by_small_changes(table, credit):
    """Standard error by the delta method, with the slope in each cell found by changing it a little."""
    n, nudge = sum(map(sum, table)), 1e-5
    slopes, shares = [], []
    for i, row in enumerate(table):
        for j, count in enumerate(row):
            higher, lower = (
                [
                    [c + sign * nudge * n * ((i, j) == (k, m)) for m, c in enumerate(r)]
                    for k, r in enumerate(table)
                ]
                for sign in (1, -1)
            )
            slopes.append((by_the_book(higher, credit) - by_the_book(lower, credit)) / (2 * nudge))
            shares.append(count / n)
    mean = sum(share * slope for share, slope in zip(shares, slopes, strict=True))
    square = sum(share * slope**2 for share, slope in zip(shares, slopes, strict=True))
    return sqrt((square - mean**2) / n)


def equal(i, j):
    return float(i == j)


def quadratic(i, j):
    return 1 - (i - j) ** 2 / 9


def kappa(table, weights=Weights.EQUAL, **options):
    return cohen_kappa(np.array(table, dtype=np.int64), weights, **options)


@pytest.mark.parametrize(
    ("table", "value", "error"),
    [
        (PROPOSALS, 0.4, 0.127),  # observed 0.7, by chance 0.5
        (DIAGNOSES, 0.676, 0.0877),  # observed 0.89, by chance 0.66
        (SPOUSES, 0.1293, 0.0686),  # as printed for these data by common packages of statistics
    ],
)
def test_kappa_and_its_error_are_those_of_textbooks(table, value, error):
    found = kappa(table)
    assert found.value == pytest.approx(value, abs=5e-4)
    assert found.error == pytest.approx(error, abs=5e-5)
    assert found.analytic == pytest.approx(
        (found.value - 1.96 * found.error, found.value + 1.96 * found.error), abs=1e-4
    )


def test_weighted_kappa_of_a_table_worked_out_by_hand():
    # Observed cost (2 * 1 + 1 * 4) / 10 = 0.6; by chance (1*4*3 + 4*4*2 + 1*3*5 + 1*3*2 + 4*3*5 + 1*3*3) / 100 = 1.34.
    found = kappa([[3, 1, 0], [1, 2, 0], [1, 0, 2]], Weights.QUADRATIC)
    assert found.value == pytest.approx(1 - 0.6 / 1.34, abs=1e-12)


@pytest.mark.parametrize(("weights", "credit"), [(Weights.EQUAL, equal), (Weights.QUADRATIC, quadratic)])
@pytest.mark.parametrize("table", [SPOUSES, [[30, 2, 0, 1], [3, 9, 4, 0], [0, 1, 12, 2], [1, 0, 0, 5]]])
def test_the_error_is_what_small_changes_say(table, weights, credit):
    found = kappa(table, weights)
    assert found.value == pytest.approx(by_the_book(table, credit), abs=1e-12)
    assert found.error == pytest.approx(by_small_changes(table, credit), rel=1e-5)


def test_bootstrap_and_large_sample_intervals_meet_on_many_calls():
    many = np.array(SPOUSES) * 40
    for weights in Weights:
        found = kappa(many, weights)
        assert found.bootstrap == pytest.approx(found.analytic, abs=0.004)


def test_the_bootstrap_depends_on_its_seed_alone():
    assert kappa(SPOUSES, seed=5).bootstrap == kappa(SPOUSES, seed=5).bootstrap
    assert kappa(SPOUSES, seed=5).bootstrap != kappa(SPOUSES, seed=6).bootstrap


@pytest.mark.parametrize(
    ("table", "value", "words"),
    [
        ([[0, 0], [0, 0]], None, "no call was judged"),
        ([[7, 0], [0, 0]], None, "one and the same level"),
        ([[7, 0], [0, 3]], 1.0, "every call agrees"),
        ([[7, 3], [0, 0]], 0.0, "the same level throughout"),
    ],
)
def test_what_cannot_be_said_is_not_said_and_the_reason_is_given(table, value, words):
    for weights in Weights:
        found = kappa(table, weights)
        assert isnan(found.value) if value is None else found.value == value
        assert found.analytic is None
        assert found.bootstrap is None
        assert isnan(found.error)
        assert words in found.reason


tables = st.integers(2, 5).flatmap(
    lambda n: st.lists(st.lists(st.integers(0, 30), min_size=n, max_size=n), min_size=n, max_size=n)
)


@given(tables)
def test_kappa_has_no_favourite_judge_and_stays_in_its_bounds(table):
    for weights in Weights:
        one, other = kappa(table, weights), kappa(np.array(table).T, weights)
        assert one.value == pytest.approx(other.value, abs=1e-12, nan_ok=True)
        assert one.error == pytest.approx(other.error, abs=1e-9, nan_ok=True)
        assert isnan(one.value) or -1.0 <= one.value <= 1.0
        if one.analytic is not None:
            assert -1.0 <= one.analytic[0] <= one.value <= one.analytic[1] <= 1.0


@given(st.lists(st.integers(0, 40), min_size=4, max_size=4))
def test_two_levels_give_the_kappa_that_runs_are_compared_with(counts):
    both, first, second, neither = counts
    known = Agreement(both, first, second, neither).kappa
    for weights in Weights:
        assert kappa([[both, first], [second, neither]], weights).value == pytest.approx(
            known, abs=1e-9, nan_ok=True
        )
