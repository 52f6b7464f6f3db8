import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.monitor.conftest import READ, SEND, SPACE, WRITE, run

from safetydrift.errors import HorizonError
from safetydrift.evaluation.predictions import predictions
from safetydrift.evaluation.replay import replay
from safetydrift.formats import load_catalogue
from safetydrift.monitor.fitting import fit_model
from safetydrift.monitor.lookup import LookupMonitor
from safetydrift.monitor.settings import FitSettings
from safetydrift.trace import Label


@pytest.fixture(scope="module")
def monitor():
    runs = [run(READ, SEND, onset=2, id=f"v{n}") for n in range(3)] + [
        run(READ, SEND, id="safe"),
        run(WRITE, id="w"),
    ]
    model, _ = fit_model(runs, SPACE, load_catalogue(), FitSettings(strength=0.0), threshold=0.7)
    return LookupMonitor(model)


def test_an_alarm_counts_only_strictly_before_the_violating_call(monitor):
    foreseen = replay(run(WRITE, READ, SEND, onset=3), monitor)
    assert foreseen.onset == 3
    alarmed = [verdict.alarm for verdict in foreseen.current]
    assert foreseen.alarm == alarmed[:3].index(True)
    assert foreseen.lead_time == 3 - foreseen.alarm
    # Violated by its very first call: nothing came before but the start, which does not alarm.
    at_once = replay(run(READ, SEND, onset=1), monitor)
    assert not at_once.current[0].alarm
    assert at_once.alarm is None
    assert at_once.lead_time is None


def test_the_start_speaks_before_any_call_and_the_last_verdict_after_all(monitor):
    replayed = replay(run(READ, WRITE), monitor)
    assert [position.steps for position in replayed.positions] == [0, 1, 2]
    assert len(replayed.current) == 3
    assert len(replayed.pending) == 2


def test_a_run_without_a_violation_has_no_lead_time_whatever_alarmed(monitor):
    replayed = replay(run(READ, SEND), monitor)
    assert replayed.onset is None
    assert replayed.lead_time is None
    assert not replayed.stopped_at_proposal


def test_a_proposal_that_alarms_is_stopped_at_the_last_moment(monitor):
    replayed = replay(run(READ, SEND, onset=2), monitor)
    assert replayed.pending[1].probability == 0.75
    assert replayed.stopped_at_proposal


@given(st.lists(st.integers(0, 59), max_size=6), st.integers(0, 59))
def test_a_prediction_never_depends_on_what_comes_later(monitor, effects, last):
    whole = list(predictions(replay(run(*effects, last), monitor)))
    prefix = list(predictions(replay(run(*effects), monitor)))
    for line, same in zip(whole, prefix, strict=False):
        assert (line.step, line.p, line.p_end, line.alarm, line.unseen) == (
            same.step,
            same.p,
            same.p_end,
            same.alarm,
            same.unseen,
        )
    assert [line.pending for line in whole[:-2]] == [line.pending for line in prefix[:-1]]


@given(st.lists(st.integers(0, 59), max_size=6))
def test_prediction_lines_keep_their_promise(monitor, effects):
    lines = [
        msgspec.json.decode(msgspec.json.encode(line)) for line in predictions(replay(run(*effects), monitor))
    ]
    assert [line["step"] for line in lines] == list(range(len(effects) + 1))
    for line in lines:
        assert set(line["p"]) == {"1", "3", "5"}
        assert 0.0 <= line["p"]["1"] <= line["p"]["3"] <= line["p"]["5"] <= 1.0
        assert 0.0 <= line["p_end"] <= 1.0
        assert isinstance(line["alarm"], bool)
        assert isinstance(line["unseen"], bool)
    assert all(set(line["pending"]) == {"risk", "alarm"} for line in lines[:-1])
    assert "pending" not in lines[-1]


def test_unknown_never_looks_safe_in_a_prediction_file(monitor):
    never_left = SPACE.encode({"data": "credentials"})
    *_, last = predictions(replay(run(never_left), monitor))
    assert last.unseen
    assert last.alarm
    assert last.p == {"1": 1.0, "3": 1.0, "5": 1.0}
    assert last.p_end == 1.0


def test_a_prediction_file_is_not_written_from_tables_that_end_too_soon():
    settings = FitSettings(max_horizon=3)
    model, _ = fit_model([run(READ, SEND, onset=2), run(WRITE)], SPACE, load_catalogue(), settings, horizon=3)
    with pytest.raises(HorizonError, match="up to 5 steps, the model's tables end at 3; fit it with"):
        list(predictions(replay(run(READ), LookupMonitor(model))))


def test_the_chance_that_the_run_ends_violated_is_written_as_such(monitor):
    start, after_read, _ = predictions(replay(run(READ, SEND), monitor))
    assert (start.p_end, after_read.p_end) == (0.6, 0.75)


def test_a_run_that_cannot_be_judged_says_why_and_still_shows_its_alarms(monitor):
    replayed = replay(run(READ, SEND, label=Label()), monitor)
    assert "says nothing" in replayed.left_out
    assert replayed.onset is None
    assert (replayed.alarm, replayed.proposal_alarm) == (1, 1)
