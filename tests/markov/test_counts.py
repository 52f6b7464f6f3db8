from __future__ import annotations

import pickle
from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.markov.strategies import counts, sequences

from safetydrift.errors import ChainError
from safetydrift.markov import TransitionCounts, count_flat, count_groups, count_transitions
from safetydrift.markov import counts as counts_module

N = 5


def flat(runs) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.cumsum([0, *map(len, runs)])
    return np.array([state for run in runs for state in run], dtype=np.uint8), offsets


def by_hand(runs, n_states):
    matrix = np.zeros((n_states, n_states), dtype=int)
    for run in runs:
        for source, target in pairwise(run):
            matrix[source, target] += 1
    return TransitionCounts(matrix)


@given(sequences(N))
def test_counting_agrees_with_walking_each_run(runs):
    assert count_transitions(runs, N) == by_hand(runs, N)


@given(sequences(N))
def test_flat_counting_never_counts_across_a_boundary(runs):
    assert count_flat(*flat(runs), n_states=N) == by_hand(runs, N)


@pytest.mark.parametrize("chunk", [12, 13, 17, 29])
@given(runs=sequences(2, max_runs=30), data=st.data())
def test_groups_are_kept_apart_wherever_chunks_begin(chunk, runs, data):
    groups = data.draw(st.lists(st.integers(0, 2), min_size=len(runs), max_size=len(runs)))
    with patch.object(counts_module, "CHUNK_TRANSITIONS", chunk):
        found = count_groups(*flat(runs), groups=np.array(groups, dtype=int), n_states=2, n_groups=3)
    for group in range(3):
        members = [run for run, label in zip(runs, groups, strict=True) if label == group]
        assert found[group] == by_hand(members, 2)


def test_flat_counting_agrees_across_many_chunks():
    rng = np.random.default_rng(3)
    states = rng.integers(0, 60, 200_000, dtype=np.uint8)
    offsets = np.concatenate([[0], np.sort(rng.integers(0, len(states), 20_000)), [len(states)]])
    inside = np.ones(len(states), dtype=bool)
    inside[offsets[1:][offsets[1:] > 0] - 1] = False
    expected = np.zeros((60, 60), dtype=int)
    np.add.at(expected, (states[:-1][inside[:-1]], states[1:][inside[:-1]]), 1)
    assert np.array_equal(count_flat(states, offsets, 60).matrix, expected)


@given(sequences(N), sequences(N), sequences(N))
def test_counts_of_joined_corpora_add_in_any_order(first, second, third):
    a, b, c = (count_transitions(runs, N) for runs in (first, second, third))
    assert a + b == b + a == count_transitions(first + second, N)
    assert (a + b) + c == a + (b + c)


@given(sequences(N), st.lists(st.integers(0, 2), min_size=N, max_size=N))
def test_lumping_counts_equals_counting_lumped_runs(runs, mapping):
    lumped = [[mapping[state] for state in run] for run in runs]
    assert count_transitions(runs, N).lump(mapping, 3) == count_transitions(lumped, 3)


@given(counts(N))
def test_departures_and_arrivals_sum_to_the_total(found):
    assert found.departures.sum() == found.arrivals.sum() == found.total


def test_a_final_visit_is_an_arrival_and_no_departure():
    found = count_transitions([[0, 1]], 2)
    assert found.departures.tolist() == [1, 0]
    assert found.arrivals.tolist() == [0, 1]


def test_counts_are_read_only_and_stay_so_when_pickled():
    source = np.array([[1, 2], [3, 4]])
    found = TransitionCounts(source)
    source[0, 0] = 99
    again = pickle.loads(pickle.dumps(found))  # noqa: S301 - our own bytes
    for value in (found, again):
        assert value.matrix[0, 0] == 1
        with pytest.raises(ValueError, match="read-only"):
            value.matrix[0, 0] = 5
    assert len({found, again}) == 1


def test_counts_differ_from_other_things_and_show_their_size():
    found = TransitionCounts(np.eye(2, dtype=int))
    assert found != "counts"
    assert repr(found) == "<TransitionCounts of 2 transitions between 2 states>"
    with pytest.raises(TypeError):
        found + 1  # type: ignore[operator]


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.zeros((2, 3), dtype=int), "square"),
        (np.zeros((2, 2)), "integers"),
        (np.array([[0, -1], [0, 0]]), "from state 0 to state 1 is negative"),
    ],
)
def test_what_is_no_count_matrix_is_refused(matrix, message):
    with pytest.raises(ChainError, match=message):
        TransitionCounts(matrix)


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (lambda: count_transitions([[0, 3]], 3), r"state 3 is outside 0 \.\. 2"),
        (lambda: count_transitions([[0, -1]], 3), "state -1 is outside"),
        (lambda: count_transitions([np.array([0.0, 1.0])], 3), "integers, not float64"),
        (lambda: count_transitions([[True, False]], 3), "integers, not bool"),
        (lambda: count_transitions([np.array([[0, 1]])], 3), "one-dimensional"),
        (lambda: count_flat([0, 1], [0, 1], 2), "rise from 0 to the number of states, 2"),
        (lambda: count_flat([0, 1], [1, 2], 2), "rise from 0"),
        (lambda: count_flat([0, 1], [0, 2, 1, 2], 2), "rise from 0"),
        (lambda: count_flat([0, 1], [0.0, 2.0], 2), "array of integers"),
        (lambda: count_groups([0, 1], [0, 2], [0, 1], 2, 2), "2 groups for 1 sequences"),
        (lambda: count_groups([0, 1], [0, 2], [2], 2, 2), r"group 2 is outside 0 \.\. 1"),
        (lambda: by_hand([], 2) + by_hand([], 3), "2 and 3 states cannot be added"),
        (lambda: by_hand([], 3).lump([0, 1], 2), "covers 2 states of 3"),
        (lambda: by_hand([], 2).lump([0, 2], 2), "state 2 is outside"),
    ],
)
def test_input_that_cannot_be_counted_is_refused_by_name(attempt, message):
    with pytest.raises(ChainError, match=message):
        attempt()
