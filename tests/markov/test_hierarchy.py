from itertools import pairwise
from math import lgamma

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safetydrift.errors import ChainError
from safetydrift.markov.hierarchy import (
    HIGHEST,
    LOWEST,
    fit_concentration,
    gradient,
    log_likelihood,
    nested_mean,
    posterior_mean,
)

MEANS = np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8], [0.98, 0.01, 0.01]])
COUNTS = np.array([[4, 0, 6], [0, 1, 20], [3, 0, 0]])


def simulated(concentration: float, rows: int, departures: int, seed: int):
    """Counts whose rows were drawn from a Dirichlet of known concentration."""
    rng = np.random.default_rng(seed)
    means = rng.dirichlet(np.ones(5), rows)
    truth = np.array([rng.dirichlet(concentration * mean) for mean in means])
    return np.array([rng.multinomial(departures, row) for row in truth]), means


@given(st.floats(0.05, 1e3))
def test_the_likelihood_is_the_product_of_polyas_urns(s):
    # Drawn one by one, the k-th of a colour has the odds (s m + k - 1) : (s + n - 1).
    by_hand = 0.0
    for counts, means in zip(COUNTS, MEANS, strict=True):
        for count, mean in zip(counts, means, strict=True):
            by_hand += sum(np.log(s * mean + k) for k in range(count))
        by_hand -= sum(np.log(s + n) for n in range(counts.sum()))
    assert log_likelihood(COUNTS, MEANS, s) == pytest.approx(by_hand, rel=1e-9)


@given(st.floats(0.05, 1e4))
def test_the_gradient_is_the_slope_of_the_likelihood(s):
    step = 1e-4 * s
    slope = (log_likelihood(COUNTS, MEANS, s + step) - log_likelihood(COUNTS, MEANS, s - step)) / (2 * step)
    assert gradient(COUNTS, MEANS, s) == pytest.approx(slope, rel=1e-4, abs=1e-9)


@pytest.mark.parametrize("concentration", [0.7, 5.0, 60.0])
def test_the_concentration_the_rows_were_drawn_with_is_found_again(concentration):
    counts, means = simulated(concentration, rows=800, departures=50, seed=3)
    assert fit_concentration(counts, means) == pytest.approx(concentration, rel=0.15)


@pytest.mark.parametrize("spread", [2.0, np.inf])
def test_no_concentration_on_a_fine_grid_fits_better(spread):
    counts, means = simulated(8.0, rows=12, departures=9, seed=4)
    found = fit_concentration(counts, means, spread=spread)

    def height(s):
        return log_likelihood(counts, means, s) - 0.5 * ((np.log(s) - np.log(10.0)) / spread) ** 2

    finest = max(height(s) for s in np.geomspace(LOWEST, HIGHEST, 4001))
    assert height(found) >= finest - 1e-9


def test_rows_exactly_as_expected_are_followed_without_limit_and_opposites_not_at_all():
    means = np.full((40, 2), 0.5)
    exact, opposite = np.full((40, 2), 500), np.tile([[1000, 0], [0, 1000]], (20, 1))
    assert fit_concentration(exact, means, spread=np.inf) > 0.9 * HIGHEST
    assert fit_concentration(opposite, means, spread=np.inf) < 1.1 * LOWEST


def test_without_counts_the_weak_prior_answers():
    assert fit_concentration(np.zeros((3, 2)), np.full((3, 2), 0.5)) == pytest.approx(10.0, rel=1e-6)
    assert fit_concentration(np.zeros((3, 2)), np.full((3, 2), 0.5), expected=3.0) == pytest.approx(3.0)


def test_the_limits_are_the_frequencies_and_the_prior():
    frequencies = COUNTS / COUNTS.sum(axis=1, keepdims=True)
    assert posterior_mean(COUNTS, MEANS, 1e-9) == pytest.approx(frequencies, abs=1e-9)
    assert posterior_mean(COUNTS, MEANS, 1e12) == pytest.approx(MEANS, abs=1e-9)


@given(st.lists(st.floats(0.1, 100.0), min_size=1, max_size=3))
def test_nested_rings_give_distributions_between_the_base_and_the_innermost(strengths):
    rings = [COUNTS * (k + 1) for k in range(len(strengths))]
    means = [nested_mean(rings[:k], MEANS, strengths[:k]) for k in range(len(strengths) + 1)]
    for mean in means:
        assert mean.sum(axis=1) == pytest.approx(1.0)
    frequencies = COUNTS / COUNTS.sum(axis=1, keepdims=True)
    distances = [np.abs(mean - frequencies).max() for mean in means]
    assert all(nearer <= farther + 1e-12 for farther, nearer in pairwise(distances))


def test_what_cannot_be_is_refused():
    with pytest.raises(ChainError, match="expected never to happen"):
        fit_concentration([[1, 1]], [[1.0, 0.0]])
    with pytest.raises(ChainError, match="shape"):
        log_likelihood([[1, 1]], [[0.5, 0.3, 0.2]], 1.0)


def test_the_urn_of_one_row_is_the_textbook_formula():
    # Beta-binomial: B(a + k, b + n - k)/B(a, b)
    a, b, k, n = 1.5, 3.5, 2, 7
    beta = lgamma(a + k) + lgamma(b + n - k) - lgamma(a + b + n) - (lgamma(a) + lgamma(b) - lgamma(a + b))
    assert log_likelihood([[k, n - k]], [[0.3, 0.7]], 5.0) == pytest.approx(beta)
