import json
import random
from math import log

import pytest
from tests.monitor.conftest import READ, SEND, SPACE, WRITE, run

from safetydrift.errors import ModelFileError
from safetydrift.monitor.drift import DriftAlarm
from safetydrift.monitor.fitting import fit_model
from safetydrift.states.trajectory import observe

EFFECTS = (READ, WRITE, SEND)


def made_runs(n, chance, weights, category="office"):
    """Runs of a world without memory: before every call one in four ends, and calls are drawn with the weights."""
    made = []
    for number in range(n):
        effects: list[int] = []
        while chance.random() < 0.75:
            effects += chance.choices(EFFECTS, weights)
        made.append(run(*effects, id=f"{category}-{number}", task=f"t{number}", category=category))
    return made


def record_all(alarm, runs):
    for one in runs:
        seen = observe(one, alarm.model.space, alarm.model.notion, alarm.model.unknown_onset)
        alarm.record(one.category, seen.states, completed=seen.end == "completed")
    return alarm


@pytest.fixture(scope="module")
def fitted(catalogue):
    chance = random.Random(1)  # noqa: S311  # made-up runs, no secret
    return fit_model(made_runs(400, chance, (5, 3, 2)), SPACE, catalogue, threshold=0.5)[0]


@pytest.fixture(scope="module")
def scarce(catalogue):
    """A model that knows its rows from few runs."""
    chance = random.Random(2)  # noqa: S311  # as above
    return fit_model(made_runs(12, chance, (5, 3, 2)), SPACE, catalogue, threshold=0.5)[0]


@pytest.mark.parametrize("concentration", [20.0, 1e6])
@pytest.mark.parametrize("which", ["fitted", "scarce"])
def test_while_nothing_changes_the_alarm_is_raised_no_more_often_than_stated(request, which, concentration):
    model, level, tries = request.getfixturevalue(which), 0.1, 60
    alarms = 0
    for seed in range(tries):
        chance = random.Random(seed)  # noqa: S311  # as above
        alarm = DriftAlarm(model, level, concentration)
        alarms += record_all(alarm, made_runs(150, chance, (5, 3, 2))).alarmed_at is not None
    assert alarms / tries <= level + 3 * (level * (1 - level) / tries) ** 0.5


def test_the_wagers_are_worth_one_on_average_when_the_null_is_true(fitted):
    """Every next row is drawn from the null's own predictions; then the mean of the evidence is one."""
    total, tries, chance = 0.0, 3000, random.Random(6)  # noqa: S311  # as above
    for _ in range(tries):
        alarm = DriftAlarm(fitted, 0.01, 5.0)
        for _ in range(4):
            row = alarm._row("office", fitted.row_of[SPACE.start])
            targets = list(row.expected)
            weights = [row.firmness * row.expected[one] + row.seen.get(one, 0.0) for one in targets]
            target = chance.choices(targets, weights)[0]
            gain = row.ratio(target)
            before = alarm.evidence
            alarm.runs += 1
            wagers = before - 1.0 / alarm.runs + 1.0 / (alarm.runs * (alarm.runs + 1))
            alarm._wagers = log(wagers * gain)
            row.learn(target)
        total += alarm.evidence
    assert total / tries == pytest.approx(1.0, abs=0.05)


def test_a_changed_world_is_noticed_and_the_change_is_named(fitted):
    chance = random.Random(3)  # noqa: S311  # as above
    alarm = record_all(DriftAlarm(fitted), made_runs(200, chance, (1, 1, 12)))
    assert alarm.alarmed_at is not None
    assert alarm.alarmed_at < 120
    loudest = alarm.drivers()[0]
    assert loudest.observed > loudest.expected
    assert "irreversible" in loudest.target or "network" in loudest.target
    assert "expected" in str(loudest)


def test_a_change_late_in_life_is_noticed_too(fitted):
    chance = random.Random(4)  # noqa: S311  # as above
    alarm = record_all(DriftAlarm(fitted), made_runs(600, chance, (5, 3, 2)))
    assert alarm.log_evidence < 0.0
    record_all(alarm, made_runs(200, chance, (1, 1, 12)))
    assert alarm.alarmed_at is not None
    assert 600 < alarm.alarmed_at <= 790


def test_what_was_never_seen_counts_against_the_model(fitted):
    strange = SPACE.encode({"data": "credentials"})
    alarm = DriftAlarm(fitted)
    for number in range(40):
        record_all(alarm, [run(strange, WRITE, id=f"s{number}")])
    assert alarm.alarmed_at is not None


def test_a_category_nobody_knows_is_judged_by_all_runs(fitted):
    alarm, twin = DriftAlarm(fitted), DriftAlarm(fitted)
    alarm.record("unheard of", (SPACE.start, SPACE.after(SPACE.start, READ)), completed=True)
    twin.record("", (SPACE.start, SPACE.after(SPACE.start, READ)), completed=True)
    assert alarm.evidence == twin.evidence


def test_repeating_itself_within_a_run_is_no_drift(fitted):
    after = SPACE.after(SPACE.start, READ)
    once, often = DriftAlarm(fitted), DriftAlarm(fitted)
    once.record("office", (SPACE.start, after, after))
    often.record("office", (SPACE.start, *(after,) * 50))
    assert once.evidence == often.evidence


def test_its_state_goes_on_where_it_stopped(fitted):
    runs = made_runs(60, random.Random(5), (1, 2, 6))  # noqa: S311  # as above
    whole = record_all(DriftAlarm(fitted), runs)
    first = record_all(DriftAlarm(fitted), runs[:30])
    again = DriftAlarm.from_state(fitted, json.loads(json.dumps(first.state())))
    record_all(again, runs[30:])
    assert again.log_evidence == pytest.approx(whole.log_evidence)
    assert (again.alarmed_at, again.runs) == (whole.alarmed_at, whole.runs)
    assert [str(one) for one in again.drivers()] == [str(one) for one in whole.drivers()]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 7}, "another version"),
        ({"model": "else"}, "another model"),
        ({"rows": [["", 0, [[0, -1.0]], []]]}, "cannot be read"),
        ({"rows": [["", 10**9, [[0, 1.0]], []]]}, "cannot be read"),
        ({"wagers": "many"}, "cannot be read"),
        ({"blame": None}, "cannot be read"),
        ({"level": 2.0}, "cannot be read"),
    ],
)
def test_a_state_that_is_none_is_refused(fitted, change, message):
    state = record_all(DriftAlarm(fitted), made_runs(3, random.Random(5), (1, 1, 1))).state()  # noqa: S311  # as above
    with pytest.raises(ModelFileError, match=message):
        DriftAlarm.from_state(fitted, {**state, **change})


@pytest.mark.parametrize("wrong", [{"level": 0.0}, {"level": 1.0}, {"concentration": 0.0}])
def test_levels_and_concentrations_out_of_range_are_refused(fitted, wrong):
    with pytest.raises(ValueError, match=r"lies between|is above"):
        DriftAlarm(fitted, **wrong)
