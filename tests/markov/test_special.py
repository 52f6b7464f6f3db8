from math import lgamma

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safetydrift.markov.special import beta_quantile, digamma, log_gamma

positive = st.floats(1e-6, 1e8)


@given(positive)
def test_log_gamma_is_that_of_the_standard_library(x):
    assert log_gamma([x])[0] == pytest.approx(lgamma(x), rel=1e-12, abs=1e-12)


@given(st.floats(0.01, 1e4))
def test_digamma_is_the_slope_of_log_gamma_and_keeps_its_recurrence(x):
    step = 1e-4 * x
    slope = (lgamma(x + step) - lgamma(x - step)) / (2 * step)
    assert digamma([x])[0] == pytest.approx(slope, rel=1e-5, abs=1e-6)
    assert digamma([x + 1.0])[0] - digamma([x])[0] == pytest.approx(1.0 / x, rel=1e-9, abs=1e-11)


@given(st.floats(0.5, 200.0), st.sampled_from([0.05, 0.25, 0.5, 0.95]))
def test_quantiles_are_those_of_the_closed_forms(a, level):
    power = beta_quantile(level, a, 1.0)[()]
    assert power == pytest.approx(level ** (1.0 / a), abs=1e-3)
    assert beta_quantile(1.0 - level, 1.0, a)[()] == pytest.approx(1.0 - power, abs=1e-3)
    assert beta_quantile(0.5, a, a)[()] == pytest.approx(0.5, abs=1e-3)


def test_quantiles_of_much_evidence_are_those_of_the_normal_distribution():
    a, b = 30_000.0, 70_000.0
    spread = (a * b / (a + b) ** 2 / (a + b + 1)) ** 0.5
    low, high = (beta_quantile(level, a, b)[()] for level in (0.05, 0.95))
    assert (high - low) / 2 == pytest.approx(1.6449 * spread, rel=1e-3)


def test_quantiles_keep_the_shape_of_what_is_given():
    assert beta_quantile(0.5, np.ones((2, 3)), [1.0, 2.0, 3.0]).shape == (2, 3)
