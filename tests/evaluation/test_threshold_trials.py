import numpy as np
import pytest
from tests.monitor.test_risk_control import made_maxima

from safetydrift.effects.labeler import Labeler
from safetydrift.evaluation.threshold_trials import Counted, simulate
from safetydrift.formats import load_catalogue, load_space
from safetydrift.formats.trajectories import TrajectoryReader
from safetydrift.monitor.score_fitting import fit_risk_score
from safetydrift.monitor.settings import FitSettings


def test_made_up_tasks_keep_the_budget_as_promised():
    maxima = made_maxima(300)
    found = simulate(Counted.of(maxima.current, maxima), 0.05, 0.5, 200)
    assert found["refused"] == 0
    assert found["exceeded_in_truth"] <= 0.05
    assert found["exceeded_on_held_out_tasks"] <= 0.05
    assert 0.0 < found["mean_held_out_rate"] < 0.05


def test_a_budget_out_of_reach_is_refused_in_every_split():
    maxima = made_maxima(60)
    found = simulate(Counted.of(maxima.current, maxima), 0.05, 0.5, 10)
    assert found["refused"] == 10
    assert np.isnan(found["mean_held_out_rate"])


@pytest.mark.long
def test_on_the_shipped_corpus_the_budget_is_kept_on_held_out_tasks():
    space = load_space("flow")
    runs = list(TrajectoryReader(["corpus"], space, Labeler(load_catalogue())))
    maxima = fit_risk_score(runs, space, FitSettings(risk_score=True), 5)[1]
    error = 2 * np.sqrt(0.05 * 0.95 / 1000)
    for scores in (maxima.current, maxima.proposal):
        for budget in (0.05, 0.1):
            found = simulate(Counted.of(scores, maxima), budget, 0.5, 1000)
            assert found["refused"] == 0
            assert found["exceeded_in_truth"] <= 0.05 + error
            assert found["exceeded_on_held_out_tasks"] <= 0.05 + error
