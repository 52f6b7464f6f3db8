from math import comb, erfc, exp, factorial, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.study.analyses.worlds import first_order

from safetydrift.study.analyses.independence import chi_squared_tail, draw_tables, independence


def spread(tables) -> tuple[Any, Any, Any]:
    """Observations that give the tables, shape (contexts, rows, columns)."""
    tables = np.asarray(tables)
    cells = np.repeat(np.arange(tables.size), tables.ravel())
    context, row, column = np.unravel_index(cells, tables.shape)
    return context, row, column


@given(st.floats(0.0, 900.0))
def test_the_tail_of_two_degrees_is_exponential(x):
    assert chi_squared_tail(x, 2) == pytest.approx(exp(-x / 2), rel=1e-10)


@given(st.floats(0.0, 900.0))
def test_the_tail_of_one_degree_is_the_normal_one(x):
    assert chi_squared_tail(x, 1) == pytest.approx(erfc(sqrt(x / 2)), rel=1e-9, abs=1e-300)


@given(st.floats(0.0, 300.0), st.integers(1, 40))
def test_the_tail_of_even_degrees_is_a_poisson_sum(x, half):
    poisson = sum(exp(-x / 2) * (x / 2) ** k / factorial(k) for k in range(half))
    assert chi_squared_tail(x, 2 * half) == pytest.approx(poisson, rel=1e-9, abs=1e-13)


def test_the_tail_at_its_ends():
    assert chi_squared_tail(0.0, 3) == 1.0
    assert chi_squared_tail(float("inf"), 3) == 0.0
    assert chi_squared_tail(1e6, 50) == 0.0


@pytest.mark.parametrize("degrees", [1, 2, 3, 7, 40, 417, 2000])
def test_the_tail_agrees_with_scipy(degrees):
    stats = pytest.importorskip("scipy.stats")
    for x in (0.1, degrees / 2, degrees, degrees + 1.9, degrees + 2.1, 1.5 * degrees, 5 * degrees):
        assert chi_squared_tail(x, degrees) == pytest.approx(
            float(stats.chi2.sf(x, degrees)), rel=1e-9, abs=1e-13
        )


def test_statistics_of_one_table_worked_out_by_hand():
    found = independence(*spread([[[10, 20], [30, 40]]]))
    # Expected 12, 18, 28, 42; every cell is off by 2.
    assert found.chi_squared == pytest.approx(4 / 12 + 4 / 18 + 4 / 28 + 4 / 42)
    g_squared = 2 * sum(n * np.log(n / e) for n, e in ((10, 12), (20, 18), (30, 28), (40, 42)))
    assert found.g_squared == pytest.approx(g_squared)
    assert (found.observations, found.degrees, found.small) == (100, 1, 0.0)
    assert np.isnan(found.p_drawn)


def test_statistics_of_several_tables_agree_with_scipy():
    stats = pytest.importorskip("scipy.stats")
    tables = np.random.default_rng(3).integers(1, 30, (4, 3, 5))
    found = independence(*spread(tables))
    for power, mine in (("log-likelihood", found.g_squared), ("pearson", found.chi_squared)):
        parts = [stats.chi2_contingency(table, lambda_=power, correction=False) for table in tables]
        assert mine == pytest.approx(sum(part.statistic for part in parts))
    assert found.degrees == sum(part.dof for part in parts) == 4 * 2 * 4


def test_what_cannot_happen_costs_no_degrees_of_freedom():
    # The first context never leads to the last column; the second was seen after one level only.
    found = independence(*spread([[[5, 6, 0], [7, 8, 0]], [[9, 9, 9], [0, 0, 0]]]))
    assert found.degrees == 1
    alone = independence(*spread([[[5, 6], [7, 8]]]))
    assert found.g_squared == pytest.approx(alone.g_squared)
    assert found.p_value == pytest.approx(alone.p_value)


def test_nothing_to_test_is_no_finding():
    nothing = np.zeros(0, dtype=np.int64)
    found = independence(nothing, nothing, nothing, np.random.default_rng(1))
    assert (found.observations, found.degrees, found.g_squared) == (0, 0, 0.0)
    assert np.isnan([found.p_value, found.p_drawn, found.small]).all()


def test_drawn_tables_keep_their_margins():
    rows, columns = np.array([[4, 0, 9], [2, 5, 1]]), np.array([[6, 7], [8, 0]])
    drawn = draw_tables(rows, columns, 50, np.random.default_rng(2))
    assert drawn.shape == (50, 2, 3, 2)
    assert (drawn >= 0).all()
    assert (drawn.sum(axis=3) == rows).all()
    assert (drawn.sum(axis=2) == columns).all()


def test_drawn_tables_follow_the_hypergeometric_distribution():
    drawn = draw_tables(np.array([[5, 7]]), np.array([[4, 8]]), 20_000, np.random.default_rng(2))[:, 0, 0, 0]
    for k in range(5):
        exact = comb(4, k) * comb(8, 5 - k) / comb(12, 5)
        assert (drawn == k).mean() == pytest.approx(exact, abs=0.015)


def test_the_drawn_p_value_of_a_tiny_table_is_the_exact_one():
    table = np.array([[4, 1], [0, 4]])

    def g_squared(k):
        return independence(*spread([[[k, 5 - k], [4 - k, k]]])).g_squared

    chances = {k: comb(4, k) * comb(5, 5 - k) / comb(9, 5) for k in range(5)}
    exact = sum(chance for k, chance in chances.items() if g_squared(k) >= g_squared(4) - 1e-9)
    found = independence(*spread([table]), np.random.default_rng(5), draws=20_000)
    assert found.p_drawn == pytest.approx(exact, abs=0.01)
    assert found.small == 1.0


def p_values(n_tests, length, draws, seed):
    """Both p-values of the test of first order on first-order chains."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n_tests):
        levels = [np.array(run.states) // 2 for run in first_order(rng, n_runs=4, length=length)]
        now, before, after = (
            np.concatenate([part[1 + shift : len(part) - 1 + shift] for part in levels])
            for shift in (0, -1, 1)
        )
        result = independence(now, before, after, rng, draws)
        found.append((result.p_drawn, result.p_value))
    return np.array(found).T


def test_the_drawn_p_value_keeps_its_level_on_short_first_order_chains():
    drawn, _ = p_values(n_tests=250, length=50, draws=99, seed=7)
    assert 0.05 < (drawn <= 0.1).mean() < 0.16
    assert 0.40 < (drawn <= 0.5).mean() < 0.60


def test_the_limit_keeps_its_level_on_long_first_order_chains():
    _, limit = p_values(n_tests=150, length=500, draws=1, seed=8)
    assert 0.04 < (limit <= 0.1).mean() < 0.18
    assert 0.38 < (limit <= 0.5).mean() < 0.62
