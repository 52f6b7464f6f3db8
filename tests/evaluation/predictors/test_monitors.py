"""Our own monitors as predictors: what they say is what replaying says, in every variant."""

from typing import Any

import numpy as np
import pytest
from tests.evaluation.predictors.worlds import CATALOGUE, FLOW, PAPER, cut, made, world

from safetydrift.errors import HorizonError, SpaceMismatchError
from safetydrift.evaluation.cases import CaseSet
from safetydrift.evaluation.predictions import predictions
from safetydrift.evaluation.predictors import Circumstances, predictor
from safetydrift.evaluation.predictors.monitors import MonitorPredictor, MonitorScores
from safetydrift.evaluation.predictors.walks import join, projected
from safetydrift.evaluation.replay import replay
from safetydrift.evaluation.scores import HORIZONS
from safetydrift.monitor.fitting import fit_model
from safetydrift.monitor.lookup import LookupMonitor
from safetydrift.monitor.policy import Policy
from safetydrift.monitor.settings import Estimator, FitSettings, Granularity
from safetydrift.states.trajectory import Notion


def by_replay(cases, monitor):
    """What replaying says, run by run, in the order of `Scores`."""
    within, alarm, pending, pending_alarm = [], [], [], []
    for case in cases.cases:
        replayed = replay(case.run, monitor)
        lines: list[Any] = list(predictions(replayed))
        for line, verdict in zip(lines[: case.n_points], replayed.current, strict=False):
            curve = [1.0] * 3 if line.unseen else [verdict.within[horizon] for horizon in HORIZONS]
            assert [round(one, 6) for one in curve] == list(line.p.values())
            within.append(curve)
            alarm.append(line.alarm)
        for line in lines[: case.n_proposals]:
            pending.append(line.pending.risk)
            pending_alarm.append(line.pending.alarm)
    return np.array(within), np.array(alarm), np.array(pending), np.array(pending_alarm)


@pytest.mark.parametrize("notion", Notion)
@pytest.mark.parametrize("granularity", Granularity)
@pytest.mark.parametrize("estimator", [Estimator.SHRUNK, Estimator.PUBLISHED])
def test_scores_are_what_replay_and_prediction_files_say(notion, granularity, estimator):
    settings = FitSettings(notion=notion, granularity=granularity, estimator=estimator)
    fitted = MonitorPredictor("monitor", PAPER, CATALOGUE, settings, horizon=3).fit(world(1))
    cases = world(2, few_effects=30)
    scores: Any = fitted.score(cases)
    within, alarm, pending, pending_alarm = by_replay(cases, fitted.monitor)
    assert np.array_equal(scores.within, within)
    assert np.array_equal(scores.alarm, alarm)
    assert scores.pending == pytest.approx(pending, abs=1e-6)  # prediction files round
    assert np.array_equal(scores.pending_alarm, pending_alarm)


def test_runs_of_a_finer_space_are_read_in_the_models_own():
    cases = world(1, space=FLOW)
    in_paper = projected(cases, FLOW, PAPER)
    assert np.array_equal(in_paper.calls_left, cases.calls_left)
    through: Any = MonitorPredictor("a", PAPER, CATALOGUE, recorded=FLOW).fit(cases).score(cases)
    directly: Any = MonitorPredictor("a", PAPER, CATALOGUE).fit(in_paper).score(in_paper)
    assert np.array_equal(through.within, directly.within)
    assert np.array_equal(through.pending, directly.pending)
    with pytest.raises(SpaceMismatchError, match="without the dimension 'untrusted'"):
        projected(in_paper, PAPER, FLOW)


def test_a_policy_that_tolerates_the_unknown_keeps_its_silence_and_the_risk_stays_one():
    model, _ = fit_model([case.run for case in world(1).cases], PAPER, CATALOGUE)
    monitor = LookupMonitor(model, Policy(threshold=1.0, alarm_unseen=False))
    never_seen = next(
        state for state, verdict in enumerate(monitor.current_verdicts("")) if verdict.basis.value == "unseen"
    )
    scores: Any = MonitorScores("m", monitor).score(CaseSet([made(never_seen)]))
    assert scores.within[1].tolist() == [1.0, 1.0, 1.0]
    assert not scores.alarm[1]


def test_without_categories_all_runs_share_one_chain():
    fitted = MonitorPredictor("m", PAPER, CATALOGUE, by_category=False).fit(world(1))
    assert set(fitted.monitor.model.tables) == {""}


def test_tables_that_end_too_soon_are_refused():
    settings = FitSettings(max_horizon=3)
    with pytest.raises(HorizonError, match="up to 5 steps, the model's tables end at 3"):
        MonitorPredictor("m", PAPER, CATALOGUE, settings, horizon=3).fit(world(1))


@pytest.mark.parametrize("space", [PAPER, FLOW])
def test_states_join_in_bulk_as_they_do_one_by_one(space):
    rng = np.random.default_rng(0)
    states, effects = rng.integers(0, space.n_states, size=(2, 40))
    one_by_one = [space.after(int(state), int(effect)) for state, effect in zip(states, effects, strict=True)]
    assert join(space, states, effects).tolist() == one_by_one


# -- the shipped method: a chain with a risk score ----------------------------------------------------------

HERE = Circumstances(FLOW, CATALOGUE)
TRAINING, TEST = world(1, space=FLOW), world(2, n=60, space=FLOW, few_effects=20)


@pytest.fixture(scope="module")
def fitted():
    return predictor("foresight", HERE).fit(TRAINING)


def test_scores_are_what_prediction_files_say(fitted):
    scores = fitted.score(TEST)
    for number, case in enumerate(TEST.cases):
        lines = list(predictions(replay(case.run, fitted.monitor)))[: case.n_points]
        points = slice(TEST.first_point[number], TEST.first_point[number + 1])
        assert np.allclose(scores.within[points], [[*line.p.values()] for line in lines], atol=1e-6)
        assert [line.alarm for line in lines] == scores.alarm[points].tolist()
        proposals = slice(TEST.first_proposal[number], TEST.first_proposal[number + 1])
        said = [line.pending for line in lines if line.pending is not None]
        assert np.allclose(scores.pending[proposals], [one.risk for one in said], atol=1e-6)


def test_a_score_never_depends_on_what_comes_later(fitted):
    whole = fitted.score(TEST)
    for number, case in enumerate(TEST.cases):
        for calls in range(case.n_points):
            known = fitted.score(CaseSet([cut(case, calls, FLOW)]))
            first = TEST.first_point[number]
            assert np.array_equal(known.within, whole.within[first : first + calls + 1])


def test_the_same_cases_give_the_same_predictor(fitted):
    again = predictor("foresight", HERE).fit(TRAINING)
    assert np.array_equal(again.score(TEST).within, fitted.score(TEST).within)


def test_a_space_that_knows_too_little_is_refused():
    with pytest.raises(SpaceMismatchError, match="space 'flow' has it"):
        predictor("foresight", Circumstances(PAPER, CATALOGUE)).fit(world(1))
