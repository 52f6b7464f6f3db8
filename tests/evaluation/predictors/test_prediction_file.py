"""Prediction files are believed only as far as they fit the runs."""

import gzip
import json
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.evaluation.predictors.worlds import CATALOGUE, PAPER, made, world

from safetydrift.errors import PredictionFileError
from safetydrift.evaluation.cases import CaseSet
from safetydrift.evaluation.predictions import predictions
from safetydrift.evaluation.predictors.monitors import MonitorPredictor
from safetydrift.evaluation.predictors.prediction_file import MAX_LINE, PredictionFile
from safetydrift.evaluation.replay import replay

TWO = CaseSet([made(1, 2, id="a"), made(3, id="b", onset=1)])


def line(trace, step, p=0.25, **more):
    return {"trace": trace, "step": step, "p": {"1": p, "3": p, "5": p}, **more}


@pytest.fixture
def write(tmp_path):
    def write(*lines):
        path = tmp_path / "them.jsonl"
        path.write_text("\n".join(one if isinstance(one, str) else json.dumps(one) for one in lines))
        return path

    return write


def test_our_own_file_says_what_the_monitor_says(tmp_path):
    cases = world(2, few_effects=30)
    fitted = MonitorPredictor("monitor", PAPER, CATALOGUE).fit(world(1))
    path = tmp_path / "ours.jsonl.gz"
    with gzip.open(path, "wb") as file:
        for case in cases.cases:
            for one in predictions(replay(case.run, fitted.monitor)):
                file.write(msgspec.json.encode(one) + b"\n")
    read: Any = PredictionFile(path).score(cases)
    scores: Any = fitted.score(cases)
    assert read.name == "ours"
    assert read.covered.all()
    assert np.array_equal(read.within, np.round(scores.within, 6))
    assert np.array_equal(read.pending, np.round(scores.pending, 6))
    assert np.array_equal(read.alarm, scores.alarm)
    assert np.array_equal(read.pending_alarm, scores.pending_alarm)


def test_lines_may_come_in_any_order_and_need_little(write):
    path = write(line("a", 2, 0.3), line("b", 0, 0.9), line("a", 0, 0.1), line("else", 7), line("a", 1, 0.2))
    scores: Any = PredictionFile(path, "theirs").predictor.fit(TWO).score(TWO)
    assert scores.name == "theirs"
    assert scores.within[:, 0].tolist() == [0.1, 0.2, 0.3, 0.9]
    assert scores.alarm is None
    assert scores.pending is None
    assert scores.pending_alarm is None


def test_a_run_that_is_not_named_is_not_covered(write):
    scores: Any = PredictionFile(write(line("b", 0, alarm=True))).score(TWO)
    assert scores.covered.tolist() == [False, True]
    assert scores.within[:, 0].tolist() == [1.0, 1.0, 1.0, 0.25]
    assert scores.alarm.tolist() == [False, False, False, True]


def test_what_a_file_does_not_know_is_not_safe(write):
    assert PredictionFile(write(line("b", 0, 0.0, unseen=True))).score(TWO).within[3].tolist() == [1.0] * 3


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["{"], r":1: not a prediction"),
        ([line("b", 0), line("b", 0)], r":2: step 0 of run 'b' was predicted before, in line 1"),
        ([line("b", 0), line("b", 2)], r":2: there is no step 2 of run 'b', which has 1 calls"),
        ([line("a", 0), line("a", 2)], r"run 'a' has no prediction after 1 calls"),
        ([line("b", 0, 1.5)], r":1: not a prediction: Expected `float` <= 1"),
        ([line("b", -1)], r":1: not a prediction"),
        ([line("b", 2**40)], r":1: not a prediction"),
        ([{**line("b", 0), "p": {"1": 0, "3": 0}}], r"missing required field `5`"),
        ([line("a", 0, alarm=True), line("a", 1), line("a", 2)], r":2: no alarm, which other lines give"),
        (
            [line("a", 0, pending={"risk": 0.5}), line("a", 1), line("a", 2)],
            r":2: no risk of the proposed call",
        ),
        (["", line("b", 0), '"' + "x" * MAX_LINE], r":3: longer than"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_line(write, lines, message):
    with pytest.raises(PredictionFileError, match=message):
        PredictionFile(write(*lines)).score(TWO)


def test_two_runs_of_one_name_cannot_be_told_apart(write):
    same = CaseSet([made(1, id="a"), made(2, id="a")])
    with pytest.raises(PredictionFileError, match="several of the runs are called 'a'"):
        PredictionFile(write(line("a", 0), line("a", 1))).score(same)


def test_a_missing_file_is_an_error_of_ours(tmp_path):
    with pytest.raises(PredictionFileError, match="cannot be read"):
        PredictionFile(tmp_path / "none.jsonl")


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("bytes") / "file.jsonl"
    path.write_bytes(data)
    with suppress(PredictionFileError):
        PredictionFile(path).score(TWO)
