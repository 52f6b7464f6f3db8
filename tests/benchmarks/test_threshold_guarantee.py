"""What calibration promises is kept, on tasks that thresholds were not chosen on."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.monitor.test_risk_control import made_maxima

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def guarantee():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        yield importlib.import_module("threshold_guarantee")
        sys.modules.pop("threshold_guarantee", None)


def test_made_up_tasks_keep_the_budget_as_promised(guarantee):
    maxima = made_maxima(300)
    found = guarantee.simulate(guarantee.Counted.of(maxima.current, maxima), 0.05, 0.5, 200)
    assert found["refused"] == 0
    assert found["exceeded_in_truth"] <= 0.05
    assert found["exceeded_on_held_out_tasks"] <= 0.05
    assert 0.0 < found["mean_held_out_rate"] < 0.05


def test_a_budget_out_of_reach_is_refused_in_every_split(guarantee):
    maxima = made_maxima(60)
    found = guarantee.simulate(guarantee.Counted.of(maxima.current, maxima), 0.05, 0.5, 10)
    assert found["refused"] == 10
    assert np.isnan(found["mean_held_out_rate"])


@pytest.mark.long
def test_on_the_shipped_corpus_the_budget_is_kept_on_held_out_tasks(guarantee):
    maxima = guarantee.out_of_fold()
    error = 2 * np.sqrt(0.05 * 0.95 / 1000)
    for scores in (maxima.current, maxima.proposal):
        for budget in (0.05, 0.1):
            found = guarantee.simulate(guarantee.Counted.of(scores, maxima), budget, 0.5, 1000)
            assert found["refused"] == 0
            assert found["exceeded_in_truth"] <= 0.05 + error
            assert found["exceeded_on_held_out_tasks"] <= 0.05 + error
