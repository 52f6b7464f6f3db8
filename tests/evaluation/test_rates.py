from dataclasses import dataclass
from math import isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safetydrift.evaluation.rate import Rate, plain
from safetydrift.states.trajectory import Notion


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


def test_results_become_plain_data_by_the_names_of_their_fields():
    @dataclass
    class Found:
        rates: dict[float, Rate]
        notion: Notion
        names: frozenset[str]
        pair: tuple[int, float]

    told = plain(Found({0.05: Rate(1, 2)}, Notion.LABEL, frozenset("ba"), (1, 0.5)))
    assert told["rates"]["0.05"]["hits"] == 1
    assert (told["notion"], told["names"], told["pair"]) == ("label", ["a", "b"], [1, 0.5])
