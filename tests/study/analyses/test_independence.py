from typing import Any

import numpy as np
import pytest
from tests.study.analyses.worlds import first_order

from safetydrift.study.analyses.independence import independence


def spread(tables) -> tuple[Any, Any, Any]:
    """Observations that give the tables, shape (contexts, rows, columns)."""
    tables = np.asarray(tables)
    cells = np.repeat(np.arange(tables.size), tables.ravel())
    context, row, column = np.unravel_index(cells, tables.shape)
    return context, row, column


def test_statistics_of_one_table_worked_out_by_hand():
    found = independence(*spread([[[10, 20], [30, 40]]]))
    # Expected 12, 18, 28, 42; every cell is off by 2.
    assert found.chi_squared == pytest.approx(4 / 12 + 4 / 18 + 4 / 28 + 4 / 42)
    g_squared = 2 * sum(n * np.log(n / e) for n, e in ((10, 12), (20, 18), (30, 28), (40, 42)))
    assert found.g_squared == pytest.approx(g_squared)
    assert (found.observations, found.degrees, found.small) == (100, 1, 0.0)


def test_statistics_of_several_tables_agree_with_scipy():
    stats = pytest.importorskip("scipy.stats")
    tables = np.random.default_rng(3).integers(1, 30, (4, 3, 5))
    found = independence(*spread(tables))
    for power, mine in (("log-likelihood", found.g_squared), ("pearson", found.chi_squared)):
        parts = [stats.chi2_contingency(table, lambda_=power, correction=False) for table in tables]
        assert mine == pytest.approx(sum(part.statistic for part in parts))
    assert found.degrees == sum(part.dof for part in parts) == 4 * 2 * 4
    assert found.p_value == pytest.approx(stats.chi2.sf(found.g_squared, 32))


def test_what_cannot_happen_costs_no_degrees_of_freedom():
    # The first context never leads to the last column; the second was seen after one level only.
    found = independence(*spread([[[5, 6, 0], [7, 8, 0]], [[9, 9, 9], [0, 0, 0]]]))
    assert found.degrees == 1
    alone = independence(*spread([[[5, 6], [7, 8]]]))
    assert found.g_squared == pytest.approx(alone.g_squared)
    assert found.p_value == pytest.approx(alone.p_value)


def test_nothing_to_test_is_no_finding():
    nothing = np.zeros(0, dtype=np.int64)
    found = independence(nothing, nothing, nothing)
    assert (found.observations, found.degrees, found.g_squared) == (0, 0, 0.0)
    assert np.isnan([found.p_value, found.small]).all()


def p_values(n_tests, length, seed):
    """The p-values of the test of first order on first-order chains."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n_tests):
        levels = [np.array(run.states) // 2 for run in first_order(rng, n_runs=4, length=length)]
        now, before, after = (
            np.concatenate([part[1 + shift : len(part) - 1 + shift] for part in levels])
            for shift in (0, -1, 1)
        )
        found.append(independence(now, before, after).p_value)
    return np.array(found)


def test_the_limit_keeps_its_level_on_long_first_order_chains():
    limit = p_values(n_tests=150, length=500, seed=8)
    assert 0.04 < (limit <= 0.1).mean() < 0.18
    assert 0.38 < (limit <= 0.5).mean() < 0.62
