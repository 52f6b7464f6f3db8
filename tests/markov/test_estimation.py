from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.markov.strategies import counts

from safetydrift.errors import ChainError
from safetydrift.markov import (
    TransitionCounts,
    dirichlet,
    maximum_likelihood,
    row_intervals,
    shrunk,
    wilson_interval,
)

N = 6
ABSORBING = {"violated": [N - 2], "completed": [N - 1]}
UNIFORM = np.full((N, N), 1.0 / N)


@given(counts(N).filter(lambda found: found.total > 0))
def test_a_row_never_departed_from_is_unseen_and_never_uniform(found):
    chain = maximum_likelihood(found, ABSORBING)
    empty = found.departures[: N - 2] == 0
    assert chain.visited[: N - 2].tolist() == (~empty).tolist()
    assert chain.unseen.tolist() == np.flatnonzero(empty).tolist()
    assert not chain.transitions[chain.unseen].any()


@given(counts(N).filter(lambda found: found.total > 0))
def test_frequencies_are_the_estimate(found):
    chain = maximum_likelihood(found, ABSORBING)
    for state in chain.transient:
        assert chain.transitions[state] == pytest.approx(
            found.matrix[state] / found.departures[state], rel=1e-15
        )


@given(counts(N).filter(lambda found: found.total > 0))
def test_shrinking_with_no_strength_is_maximum_likelihood(found):
    still = shrunk(found, ABSORBING, towards=UNIFORM, strength=0.0)
    assert np.array_equal(still.transitions, maximum_likelihood(found, ABSORBING).transitions)


@given(counts(N))
def test_shrinking_with_great_strength_is_the_prior(found):
    chain = shrunk(found, ABSORBING, towards=UNIFORM, strength=1e12)
    # At most 54 observations against 1e12 pseudo-counts move a probability by less than 54e-12.
    assert np.abs(chain.transitions[: N - 2] - 1.0 / N).max() < 54e-12


@given(counts(N), st.floats(0.1, 100.0))
def test_a_prior_does_not_make_an_unvisited_row_visited(found, strength):
    chain = shrunk(found, ABSORBING, towards=UNIFORM, strength=strength)
    assert chain.visited[: N - 2].tolist() == (found.departures[: N - 2] > 0).tolist()
    assert not chain.unseen.size


@given(counts(N), st.floats(0.0, 10.0))
def test_structural_zeros_stay_zero(found, concentration):
    support = found.matrix > 0
    support[:, -1] = True
    chain = dirichlet(found, ABSORBING, support=support, concentration=concentration)
    assert not chain.transitions[: N - 2][~support[: N - 2]].any()


def test_where_the_prior_knows_nothing_either_the_state_stays_unseen():
    towards = np.zeros((3, 3))
    towards[0] = [0.5, 0.5, 0.0]
    chain = shrunk(
        TransitionCounts(np.zeros((3, 3), dtype=int)), {"done": [2]}, towards=towards, strength=5.0
    )
    assert chain.unseen.tolist() == [1]
    assert chain.transitions[0].tolist() == [0.5, 0.5, 0.0]
    assert chain.visited.tolist() == [False, False, True]


def test_the_posterior_mean_on_the_support_is_the_hand_computed_one():
    found = TransitionCounts([[3, 0, 1], [0, 0, 0], [0, 0, 0]])
    support = [[1, 1, 1], [0, 1, 1], [0, 0, 1]]
    chain = dirichlet(found, {"done": [2]}, support=support, concentration=1.0)
    assert chain.transitions.tolist() == [[4 / 7, 1 / 7, 2 / 7], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]]


def test_movement_inside_an_absorbing_class_is_no_departure_from_it():
    found = TransitionCounts([[0, 1, 0], [0, 2, 3], [0, 0, 0]])
    chain = maximum_likelihood(found, {"violated": [1, 2]})
    assert np.array_equal(chain.transitions[1:], np.eye(3)[1:])


def test_published_intervals_are_reproduced():
    # Detection 36 of 38 and false positives 4 of 34: [83, 99] and [5, 27] per cent in the paper.
    found = wilson_interval([36, 4], [38, 34])
    assert found.low.round(2).tolist() == [0.83, 0.05]
    assert found.high.round(2).tolist() == [0.99, 0.27]


@given(st.integers(1, 10**6), st.data())
def test_wilson_bounds_are_the_roots_of_the_score_equation(total, data):
    hits = data.draw(st.integers(0, total))
    found = wilson_interval(hits, total)
    assert 0.0 <= found.low <= found.value <= found.high <= 1.0
    z2 = 1.959963984540054**2
    for bound in (float(found.low), float(found.high)):
        left = (hits / total - bound) ** 2
        right = z2 / total * bound * (1.0 - bound)
        # The two sides are at most z²/n; their difference keeps twelve digits of that.
        assert abs(left - right) <= 1e-12 * z2 / total + 1e-15


def test_nothing_tried_is_undefined_and_could_be_anything():
    found = wilson_interval([0, 0, 5], [0, 5, 5])
    assert np.isnan(found.value[0])
    assert (found.low[0], found.high[0]) == (0.0, 1.0)
    assert found.low[1] == 0.0
    assert found.high[2] == 1.0


def test_more_confidence_is_a_wider_interval():
    narrow, wide = wilson_interval(3, 10, 0.8), wilson_interval(3, 10, 0.99)
    assert wide.low < narrow.low < narrow.high < wide.high


def test_row_intervals_divide_by_departures():
    found = row_intervals(TransitionCounts([[3, 1], [0, 0]]))
    assert found.value[0].tolist() == [0.75, 0.25]
    assert np.isnan(found.value[1]).all()
    assert found.low[0, 0] == wilson_interval(3, 4).low


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (lambda c: maximum_likelihood(TransitionCounts(0 * c.matrix), {"x": [1]}), "no transitions"),
        (lambda c: maximum_likelihood(c, {"x": [0]}), "state 0 of the absorbing class 'x' was left 1 times"),
        (lambda c: shrunk(c, {"x": [1]}, towards=np.eye(3), strength=1), "shape"),
        (lambda c: shrunk(c, {"x": [1]}, towards=[[0.5, 0.4], [0.0, 1.0]], strength=1), "sums to 0.9"),
        (lambda c: shrunk(c, {"x": [1]}, towards=np.eye(2), strength=-1), "pseudo-counts"),
        (lambda c: shrunk(c, {"x": [1]}, towards=np.eye(2), strength=np.inf), "pseudo-counts"),
        (lambda c: dirichlet(c, {"x": [1]}, support=np.eye(3), concentration=1), "shape"),
        (lambda c: dirichlet(c, {"x": [1]}, support=np.eye(2), concentration=1), "from state 0 to 1"),
        (lambda c: dirichlet(c, {"x": [1]}, support=np.ones((2, 2)), concentration=np.nan), "pseudo-counts"),
        (lambda _: wilson_interval(3, 2), "hits <= total"),
        (lambda _: wilson_interval(1, 2, confidence=95), "between 0 and 1"),
    ],
)
def test_estimates_that_make_no_sense_are_refused(attempt, message):
    with pytest.raises(ChainError, match=message):
        attempt(TransitionCounts([[1, 1], [0, 0]]))
