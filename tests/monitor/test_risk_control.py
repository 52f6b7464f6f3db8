import json
import random
from hashlib import sha256

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert
from msgspec.structs import replace
from tests.monitor.conftest import READ, SEND, SPACE, WRITE, run
from tests.monitor.test_risk_score import SPACE as FLOW
from tests.monitor.test_risk_score import made_run

from safetydrift.errors import CalibrationError, LeakageError, ModelFileError
from safetydrift.formats import load_model, save_model
from safetydrift.monitor.fitting import fit_model
from safetydrift.monitor.guarantee import COSTS, RECALL, Goal, Promise, promises_of, without_promise
from safetydrift.monitor.lookup import LookupMonitor
from safetydrift.monitor.maxima import NEVER, Maxima
from safetydrift.monitor.risk_control import (
    GRID,
    calibrate,
    fewest_tasks,
    kept_until,
    log_winnings,
    maxima_of,
    promise,
    shares,
)
from safetydrift.monitor.settings import FitSettings

BUDGET = Goal(limit=0.05, confidence=0.95)


def made_maxima(n_tasks=400, seed=1, per_task=4):
    """Tasks differ; violating runs peak higher."""
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(n_tasks), per_task)
    violated = rng.random(len(task)) < 0.3
    level = rng.normal(-2.0, 0.7, n_tasks)[task] + 3.0 * violated + rng.normal(0.0, 0.5, len(task))
    scores = 1.0 / (1.0 + np.exp(-level))
    return Maxima(scores, scores, violated, task)


@pytest.mark.parametrize("limit", [0.01, 0.05, 0.2])
def test_winnings_reach_the_level_no_more_often_than_it_says(limit):
    rng = np.random.default_rng(7)
    n, tries = 120, 2000
    coins = rng.binomial(1, limit, (n, tries)).astype(float)
    spread = rng.beta(limit * 2, (1 - limit) * 2, (n, tries))
    for losses in (coins, spread):
        rejected = (log_winnings(losses, limit) >= np.log(20)).mean()
        assert rejected <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / tries)


def test_shares_that_vary_little_prove_more_than_coins_of_the_same_mean():
    rng = np.random.default_rng(8)
    coins = rng.permutation(np.repeat([1.0, 0.0], [6, 194]))[:, None]
    assert log_winnings(np.full((200, 1), 0.03), 0.05) > log_winnings(coins, 0.05) + 1.0


@given(st.floats(0.005, 0.5), st.floats(0.5, 0.99))
def test_the_fewest_tasks_are_enough_and_one_less_is_not(limit, confidence):
    goal, fewest = Goal(limit=limit, confidence=confidence), fewest_tasks(limit, confidence)
    assert kept_until(np.zeros((fewest, 3)), limit, goal) == 2
    if fewest > 1:
        with pytest.raises(CalibrationError, match=f"needs at least {fewest:,} tasks"):
            kept_until(np.zeros((fewest - 1, 3)), limit, goal)


def test_a_stricter_budget_never_gives_a_lower_threshold():
    maxima = made_maxima()
    thresholds = [
        promise(
            maxima.current, maxima, Goal(limit=limit, confidence=0.95), subject="current", horizon=5
        ).threshold
        for limit in (0.02, 0.05, 0.1, 0.3)
    ]
    assert thresholds == sorted(thresholds, reverse=True)
    assert thresholds[0] > thresholds[-1]


def test_shares_are_those_of_counting_by_hand():
    scores, task = np.array([0.2, 0.9, 0.5, NEVER]), np.array([3, 3, 7, 7])
    found = shares(scores, task, np.array([True, True, True, True]))
    by_hand = [[np.mean(scores[task == one] >= threshold) for threshold in GRID] for one in (3, 7)]
    assert found.tolist() == by_hand


def test_the_budget_is_kept_on_new_tasks_as_often_as_promised():
    everything = made_maxima(20_000, seed=3)
    safe = ~everything.violated
    losses = shares(everything.current, everything.task, safe)
    truth, rng, broken, tries = losses.mean(axis=0), np.random.default_rng(5), 0, 400
    for _ in range(tries):
        place = kept_until(losses[rng.integers(0, len(losses), 150)], 0.05, BUDGET)
        broken += truth[place] > 0.05
    assert broken / tries <= 0.05
    assert truth[place] > 0.005  # and the budget is not left unused


def test_runs_of_one_task_are_no_evidence_of_their_own():
    few = made_maxima(30, per_task=100)
    with pytest.raises(CalibrationError, match=r"needs at least 65 tasks with such runs.*there are 30"):
        promise(few.current, few, BUDGET, subject="current", horizon=5)


def test_what_alarms_always_cannot_be_calibrated_away():
    losses = np.full((200, 3), 0.5)
    with pytest.raises(CalibrationError, match=r"out of reach by the current threshold.*50\.0% go wrong"):
        kept_until(losses, 0.05, BUDGET, "current")


def test_a_wanted_recall_is_reached_with_the_highest_threshold_that_promises_it():
    maxima = made_maxima(800)
    goal = Goal(RECALL, limit=0.8, confidence=0.95)
    found = promise(maxima.current, maxima, goal, subject="current", horizon=5)
    assert found.recall is not None
    assert 0.8 < found.recall < 0.9
    caught = shares(maxima.current, maxima.task, maxima.violated).mean(axis=0)
    assert caught[found.threshold == GRID][0] == pytest.approx(found.recall, abs=1e-6)
    assert "at least 80 % of violating runs alarmed in time, confidence 95 %" in str(found)


def test_costs_choose_the_threshold_that_costs_least():
    maxima = made_maxima()
    goal = Goal(COSTS, miss=10.0, false_alarm=1.0)
    found = promise(maxima.current, maxima, goal, subject="current", horizon=5)

    def cost(threshold):
        alarmed = maxima.current >= threshold
        wrong = np.where(maxima.violated, 10.0 * ~alarmed, 1.0 * alarmed)
        return np.mean([wrong[maxima.task == task].mean() for task in np.unique(maxima.task)])

    assert found.cost == pytest.approx(cost(found.threshold))
    assert found.cost == pytest.approx(min(map(cost, GRID)))
    dearer = promise(
        maxima.current, maxima, Goal(COSTS, miss=1.0, false_alarm=10.0), subject="current", horizon=5
    )
    assert dearer.threshold > found.threshold
    assert "a miss costs 10 and a false alarm 1" in str(found)
    assert "no guarantee" in str(found)


@pytest.mark.parametrize(
    "wrong",
    [
        {"limit": 0.0, "confidence": 0.9},
        {"limit": 0.1, "confidence": 1.0},
        {"aim": COSTS, "miss": 0.0, "false_alarm": 1.0},
        {"aim": "luck"},
    ],
)
def test_a_goal_out_of_range_is_refused(wrong):
    with pytest.raises(ValueError, match=r"confidence lie between|costs are above|no threshold is chosen"):
        Goal(**wrong)


# -- with a model ---------------------------------------------------------------------------------------


def office_runs(first_task, n_tasks):
    runs = []
    for number in range(first_task, first_task + n_tasks):
        task = f"task-{number}"
        runs += [run(WRITE, id=f"w{number}", task=task), run(READ, id=f"r{number}", task=task)]
        if number % 4 == 0:
            runs.append(run(READ, SEND, onset=2, id=f"v{number}", task=task))
    return runs


@pytest.fixture(scope="module")
def model(catalogue):
    return fit_model(office_runs(0, 40), SPACE, catalogue, threshold=0.5)[0]


def test_thresholds_and_their_promise_survive_the_model_file(model, tmp_path):
    calibrated = calibrate(model, office_runs(1000, 100), Goal(limit=0.1, confidence=0.9))
    save_model(calibrated, tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    promises = promises_of(again.provenance)
    assert again.policy == calibrated.policy
    assert promises["current"].threshold == again.policy.threshold
    assert promises["proposal"].threshold == again.policy.pending_threshold
    assert str(promises["current"]) == (
        "at most 10 % of non-violating runs alarmed, confidence 90 %, calibrated on 100 tasks (200 runs)"
    )
    assert again.provenance["calibration"]["current"]["statement"] == str(promises["current"])


def test_the_calibrated_monitor_alarms_as_often_as_the_promise_says(model):
    calibrated = calibrate(model, office_runs(1000, 100), Goal(limit=0.1, confidence=0.9))
    maxima = maxima_of(model, office_runs(1000, 100))
    found = promises_of(calibrated.provenance)["current"]
    safe = ~maxima.violated
    assert np.mean(maxima.current[safe] >= calibrated.policy.threshold) == pytest.approx(found.false_alarms)


def test_tasks_the_model_was_fitted_on_are_refused(model):
    with pytest.raises(LeakageError, match=r"share the task.*task-39"):
        calibrate(model, office_runs(39, 100), BUDGET)


def test_a_model_that_does_not_say_its_tasks_is_refused(model):
    silent = replace(model, provenance={})
    with pytest.raises(CalibrationError, match="does not say on which tasks"):
        calibrate(silent, office_runs(1000, 100), BUDGET)


def test_runs_that_cannot_be_used_are_none(model):
    unlabelled = [run(WRITE, task="new", label=type(office_runs(0, 1)[0].label)())]
    with pytest.raises(CalibrationError, match="none of the runs can be used"):
        calibrate(model, unlabelled, BUDGET)


def test_a_state_nobody_knows_alarms_at_every_threshold_or_at_none(model):
    strange = [run(SPACE.encode({"data": "credentials"}), id="s", task="new")]
    assert maxima_of(model, strange).current[0] > 1.0
    trusting = replace(model, policy=replace(model.policy, alarm_unseen=False))
    assert maxima_of(trusting, strange).current[0] < 1.0


def test_the_explanation_of_a_verdict_says_what_its_threshold_promises(model):
    calibrated = calibrate(model, office_runs(1000, 100), Goal(limit=0.1, confidence=0.9))
    monitor = LookupMonitor(calibrated)
    state = monitor.start("office")
    assert "at most 10 % of non-violating runs" in monitor.explain(state, monitor.verdict(state))
    other = LookupMonitor(calibrated, replace(calibrated.policy, threshold=0.01))
    assert "at most 10 %" not in other.explain(state, other.verdict(state))


def test_a_promise_of_another_version_or_malformed_is_refused(model, tmp_path):
    calibrated = calibrate(model, office_runs(1000, 100), Goal(limit=0.1, confidence=0.9))
    path = tmp_path / "model.json"
    changes: tuple[dict[str, object], ...] = (
        {"version": 1},
        {"current": {}},
        {"current": {**calibrated.provenance["calibration"]["current"], "threshold": 2.0}},
        {"current": {**calibrated.provenance["calibration"]["current"], "tasks": -1}},
        {"current": {**calibrated.provenance["calibration"]["current"], "goal": {"limit": "most"}}},
    )
    for change in changes:
        save_model(calibrated, path)
        body = json.loads(path.read_bytes().split(b"\n")[1])
        body["provenance"]["calibration"].update(change)
        line = json.dumps(body).encode()
        header = {"format": "safetydrift.model/3", "sha256": sha256(line).hexdigest()}
        path.write_bytes(json.dumps(header).encode() + b"\n" + line + b"\n")
        with pytest.raises(ModelFileError, match="promises about its thresholds"):
            load_model(path)


def test_a_promise_that_no_longer_holds_is_dropped_and_its_history_kept(model):
    calibrated = calibrate(model, office_runs(1000, 100), Goal(limit=0.1, confidence=0.9))
    later = without_promise(without_promise(calibrated.provenance))
    assert promises_of(later) == {}
    assert later["threshold"].startswith("before the update: current: at most 10 %")
    assert without_promise({"safetydrift": "1"}) == {"safetydrift": "1"}


def test_a_promise_is_plain_data_and_back():
    whole = Promise(BUDGET, "current", horizon=5, threshold=0.5, tasks=3, runs=9, cross_fitted=True)
    assert convert(whole.definition(), Promise) == whole
    assert "each scored by a risk score fitted on other tasks" in str(whole)


def test_while_fitting_a_guarantee_needs_a_risk_score(catalogue):
    with pytest.raises(CalibrationError, match="needs a risk score"):
        fit_model(office_runs(0, 4), SPACE, catalogue, goal=BUDGET)


def test_a_risk_score_gives_thresholds_with_a_promise_while_it_is_fitted(catalogue):
    chance = random.Random(4)  # noqa: S311  # made-up runs, no secret
    runs = [made_run(number, chance) for number in range(120)]
    goal, settings = Goal(limit=0.3, confidence=0.9), FitSettings(risk_score=True)
    fitted, _ = fit_model(runs, FLOW, catalogue, settings, goal=goal)
    promises = promises_of(fitted.provenance)
    assert promises["current"].threshold == fitted.policy.threshold
    assert promises["current"].tasks == 40
    assert "each scored by a risk score fitted on other tasks" in str(promises["proposal"])
    with pytest.raises(CalibrationError, match="no threshold"):
        fit_model(runs, FLOW, catalogue, settings, goal=goal, threshold=0.5)
