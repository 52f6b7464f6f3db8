import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safetydrift.study.analyses.foresight import NextLevel, Ranking, conditional, dense, foretell


def test_how_much_a_rung_leans_can_be_chosen():
    context, target = np.zeros(4, dtype=int), np.array([0, 0, 0, 1])
    table = conditional([context], target, 2, np.ones(4, dtype=bool), strength=4.0)
    assert table[0] == pytest.approx([5 / 8, 3 / 8])


def test_every_rung_leans_on_the_one_above_by_one_observation():
    nothing, narrow = np.zeros(6, dtype=int), np.array([0, 0, 0, 1, 1, 2])
    target = np.array([0, 0, 1, 1, 1, 1])
    train = np.array([True, True, True, True, True, False])
    table = conditional([nothing, narrow], target, 2, train)
    broad = np.array([2 + 0.5, 3 + 0.5]) / 6
    assert table[0] == pytest.approx((np.array([2, 1]) + broad) / 4)
    assert table[1] == pytest.approx((np.array([0, 2]) + broad) / 3)
    assert table[2] == pytest.approx(broad)  # never seen in training: it answers as its broader context


@given(st.data())
def test_estimates_are_probabilities_and_never_zero(data):
    n = data.draw(st.integers(1, 30))
    narrow = np.array(data.draw(st.lists(st.integers(0, 5), min_size=n, max_size=n)))
    target = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    train = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    table = conditional([narrow // 2, narrow], target, 3, train)
    assert (table > 0).all()
    assert table.sum(axis=1) == pytest.approx(1.0)


def test_foretelling_counts_hits_and_surprise():
    context, target = np.array([0, 0, 0, 1, 0, 1]), np.array([0, 0, 1, 1, 1, 1])
    train = np.array([True, True, True, True, False, False])
    found = foretell([context], target, 2, train, ~train)
    # In context 0 the training steps say (2 + 1/2, 1 + 1/2) of 4, in context 1 (1/2, 3/2) of 2.
    assert (found.hits, found.total) == (1, 2)
    assert found.accuracy == 0.5
    assert found.log_loss == pytest.approx(-(np.log(1.5 / 4) + np.log(0.75)) / 2)
    twice = found + found
    assert twice.accuracy == found.accuracy
    assert twice.log_loss == pytest.approx(found.log_loss)


def test_nothing_foretold_is_undefined():
    assert np.isnan([NextLevel().accuracy, NextLevel().log_loss]).all()
    empty = np.zeros(0, dtype=int)
    assert foretell([empty], empty, 3, empty.astype(bool), empty.astype(bool)) == NextLevel()


def test_dense_numbers_keep_the_order():
    assert dense(np.array([7, 3, 7, 11])).tolist() == [1, 0, 1, 2]


def brute_force(score, outcome):
    pairs = [(a > b) + (a == b) / 2 for a in score[outcome] for b in score[~outcome]]
    return sum(pairs) / len(pairs) if pairs else np.nan


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.integers(0, 2)), min_size=1, max_size=25))
def test_ranking_agrees_with_counting_every_pair(rows):
    score, outcome, category = (np.array(part) for part in zip(*rows, strict=True))
    found = Ranking.of(score / 4, outcome, category, 3)
    assert found.auroc == pytest.approx(brute_force(score, outcome), nan_ok=True)
    each = [brute_force(score[category == c], outcome[category == c]) for c in range(3)]
    usable = [area for area in each if not np.isnan(area)]
    assert found.within_category == pytest.approx(np.mean(usable) if usable else np.nan, nan_ok=True)


def test_folds_are_never_compared_with_each_other():
    outcome, category = np.array([True, False]), np.zeros(2, dtype=int)
    low = Ranking.of(np.array([0.2, 0.1]), outcome, category, 1)
    high = Ranking.of(np.array([0.9, 0.8]), outcome, category, 1)
    assert (low + high).auroc == 1.0  # together the pair (0.2, 0.8) would be out of order
