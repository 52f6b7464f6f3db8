from math import isnan, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safetydrift import load_model, monitor_for
from safetydrift.monitor.lookup import LookupMonitor
from safetydrift.monitor.outlook import Outlook, with_risk_score

CHAIN = Outlook(violates=0.2, low=0.1, high=0.3, completes=0.6, steps=4.0, kinds=(("data_leak", 1.0),))


def test_a_violation_that_the_risk_score_expects_comes_as_soon_as_it_says():
    # Half of the violations come at the first step, half at the second.
    found = with_risk_score(CHAIN, (0.0, 0.25, 0.5), 0.5)
    assert found.steps == pytest.approx(1.5)
    # Half of them come beyond the table, from where the chain expects four more steps.
    assert with_risk_score(CHAIN, (0.0, 0.25, 0.25), 0.5).steps == pytest.approx(1.0 + 0.5 + 0.5 * 4.0)


def test_what_does_not_violate_completes_in_the_proportion_the_chain_knows():
    found = with_risk_score(CHAIN, (0.0, 0.5), 0.5)
    assert found.completes == pytest.approx(0.5 * 0.6 / 0.8)
    assert found.kinds == CHAIN.kinds
    assert "(nan" not in str(found)


@given(st.floats(0.0, 1.0), st.lists(st.floats(0.0, 1.0), min_size=1, max_size=6), st.booleans())
def test_probabilities_stay_probabilities(violates, shares, known):
    within = (0.0, *sorted(share * violates for share in shares))
    chain = CHAIN if known else Outlook(violates=nan, low=nan, high=nan, completes=nan, steps=nan, kinds=())
    found = with_risk_score(chain, within, violates)
    assert found.violates == violates
    assert 0.0 <= found.completes <= 1.0 - violates + 1e-12
    assert isnan(found.steps) == (violates == 0.0)
    assert isnan(found.steps) or 0.9 <= found.steps <= len(within) - 1 + 4.0


def test_the_shipped_monitor_tells_one_story():
    monitor = monitor_for(load_model())
    state = monitor.start("banking", task="Pay the bill in bill.txt")
    verdict, outlook = monitor.verdict(state), monitor.outlook(state)
    assert outlook.violates == verdict.eventually
    assert outlook.violates + outlook.completes <= 1.0 + 1e-9
    assert (
        outlook.kinds
        == LookupMonitor(load_model()).outlook(LookupMonitor(load_model()).start("banking")).kinds
    )
    assert outlook.steps > 1.0
