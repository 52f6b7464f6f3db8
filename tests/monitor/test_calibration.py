import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.monitor.conftest import SPACE, WRITE, run

from safetydrift.monitor.calibration import suggest_policy, threshold_for_budget
from safetydrift.monitor.fitting import fit_model
from safetydrift.states.trajectory import UnknownOnset

peaks_lists = st.lists(st.floats(0.0, 1.0), max_size=40)


@given(peaks_lists, st.floats(0.0, 1.0))
def test_never_more_alarms_than_the_budget_allows_unless_certainty_itself_alarms(peaks, budget):
    threshold = threshold_for_budget(peaks, budget)
    alarms = sum(peak >= threshold for peak in peaks)
    certain = sum(peak == 1.0 for peak in peaks)
    assert alarms <= max(budget * len(peaks), certain)


@given(st.lists(st.floats(0.0, 0.99), min_size=1, max_size=40), st.floats(0.0, 0.99))
def test_no_lower_threshold_would_keep_the_budget(peaks, budget):
    threshold = threshold_for_budget(peaks, budget)
    below = [peak for peak in peaks if peak < threshold]
    if below:
        lowered = max(below)
        assert sum(peak >= lowered for peak in peaks) > budget * len(peaks)


def test_without_runs_nothing_short_of_certainty_alarms():
    assert threshold_for_budget([], 0.1) == 1.0


def test_a_budget_that_is_no_share_is_refused():
    with pytest.raises(ValueError, match="between 0 and 1, got 2"):
        threshold_for_budget([0.5], 2)


def test_a_run_that_stands_where_nobody_stood_counts_as_a_certain_alarm(catalogue):
    seen = [run(WRITE, id=f"w{n}") for n in range(20)]
    model, _ = fit_model(seen, SPACE, catalogue, threshold=0.5)
    strange = [run(SPACE.encode({"data": "credentials"}), id=f"s{n}") for n in range(5)]
    policy = suggest_policy(model, [*seen, *strange], budget=0.1, unknown_onset=UnknownOnset.LAST_CALL)
    assert policy.threshold == 1.0
    assert suggest_policy(model, seen, budget=0.1, unknown_onset=UnknownOnset.LAST_CALL).threshold < 1.0
