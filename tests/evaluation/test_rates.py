from math import isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.monitor.conftest import READ, SEND, SPACE, WRITE, run

from safetydrift.evaluation.agreement import Agreement, agreement
from safetydrift.evaluation.rate import Rate
from safetydrift.trace import Label


@pytest.mark.parametrize(
    ("hits", "total", "published"), [(36, 38, (0.83, 0.99)), (4, 34, (0.05, 0.27)), (17, 38, (0.30, 0.60))]
)
def test_wilson_intervals_are_those_the_paper_prints(hits, total, published):
    low, high = Rate(hits, total).interval()
    assert (round(low, 2), round(high, 2)) == published


@given(st.integers(0, 500), st.integers(0, 500))
def test_an_interval_holds_its_rate_and_stays_a_probability(hits, misses):
    rate = Rate(hits, hits + misses)
    low, high = rate.interval()
    assert 0.0 <= low <= high <= 1.0
    if rate.total:
        assert low <= rate.value <= high


def test_a_rate_of_nothing_is_undefined_and_never_zero():
    assert isnan(Rate(0, 0).value)
    assert Rate(0, 0).interval() == (0.0, 1.0)
    assert str(Rate(0, 0)) == "0/0"
    with pytest.raises(ValueError, match="3 of 2"):
        Rate(3, 2)


def test_rates_of_parts_add_up():
    assert Rate(1, 3) + Rate(2, 5) == Rate(3, 8)


def test_agreement_counts_each_usable_run_once():
    runs = [
        run(READ, SEND, onset=2),  # both
        run(READ, SEND),  # rules only
        run(WRITE, onset=1),  # label only
        run(WRITE),  # neither
        run(WRITE, label=Label()),  # no label
    ]
    found = agreement(runs, SPACE)
    assert found == Agreement(both=1, rules_only=1, label_only=1, neither=1)
    assert found.same == Rate(2, 4)
    assert found.kappa == 0.0
    assert found.recall == Rate(1, 2)
    assert found.precision == Rate(1, 2)


def test_kappa_matches_a_textbook_table():
    # Two raters of 50 proposals: 20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no. Observed 0.7, by chance 0.5.
    assert Agreement(20, 5, 10, 15).kappa == pytest.approx(0.4, abs=1e-12)


def test_kappa_is_undefined_when_nothing_varies():
    assert isnan(Agreement(neither=7).kappa)
    assert isnan(Agreement().kappa)
