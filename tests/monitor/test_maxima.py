import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.monitor.conftest import SPACE, WRITE, run

from safetydrift.monitor.fitting import fit_model
from safetydrift.monitor.maxima import threshold_for
from safetydrift.monitor.policy import HIGHEST_THRESHOLD
from safetydrift.monitor.settings import FitSettings
from safetydrift.trace import Ending

FIGURES = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=40).map(np.array)


@given(FIGURES, st.floats(0.0, 1.0))
@example(np.array([1.0, 1.0, 0.2, 0.1]), 0.3)
def test_never_more_alarms_than_the_budget_allows(maxima, budget):
    threshold = threshold_for(maxima, budget)
    assert sum(maxima >= threshold) <= budget * len(maxima) + 1e-6
    assert 0.0 <= threshold <= HIGHEST_THRESHOLD


@given(FIGURES, st.floats(0.0, 0.99))
def test_no_lower_threshold_would_keep_the_budget(maxima, budget):
    threshold = threshold_for(maxima, budget)
    if threshold:
        assert sum(maxima >= threshold - 2e-6) > budget * len(maxima) - 1e-6


def test_a_share_that_floats_cannot_write_loses_no_run():
    maxima = np.arange(100) / 100
    assert sum(maxima >= threshold_for(maxima, 0.29)) == 29


def test_without_runs_nothing_short_of_certainty_alarms():
    assert threshold_for(np.array([]), 0.1) == 1.0


def test_a_budget_that_is_no_share_is_refused():
    with pytest.raises(ValueError, match="between 0 and 1, got 2"):
        threshold_for(np.array([0.5]), 2)


def test_a_model_says_where_the_unknown_alarms_more_than_its_budget(catalogue):
    seen = [run(WRITE, id=f"w{n}") for n in range(20)]
    nowhere = SPACE.encode({"data": "credentials"})
    strange = [run(nowhere, id=f"s{n}", ending=Ending.CENSORED) for n in range(5)]
    model, _ = fit_model([*seen, *strange], SPACE, catalogue, FitSettings(false_alarm_budget=0.1))
    assert model.policy.threshold == HIGHEST_THRESHOLD
    assert "20%" in model.provenance["threshold"]
    calm, _ = fit_model(seen, SPACE, catalogue, FitSettings(false_alarm_budget=0.1))
    assert calm.policy.threshold < 1.0
    assert "20%" not in calm.provenance["threshold"]
