"""A language model as monitor: scored from the file that holds what it said."""

import json
from typing import Any

import pytest
from tests.evaluation.predictors.worlds import made

from safetydrift.errors import PredictionFileError
from safetydrift.evaluation.cases import CaseSet
from safetydrift.evaluation.predictors.judged import MAX_LINE, JudgementFile

HEADER = {
    "format": "safetydrift.judgements/1",
    "model": "openai-compatible:stand-in",
    "prompt": "0" * 16,
    "window": 1,
}


def judgement(trace, step, risk=0.5, *, unsafe=False):
    return {"digest": "0" * 64, "trace": trace, "step": step, "risk": risk, "unsafe": unsafe, "usage": [1, 1]}


@pytest.fixture
def write(tmp_path):
    def write(*lines, header=HEADER, end="\n"):
        path = tmp_path / "said.jsonl"
        texts = [one if isinstance(one, str) else json.dumps(one) for one in (header, *lines)]
        path.write_text("\n".join(texts) + end)
        return path

    return write


# -- scoring ----------------------------------------------------------------------------------------------


def test_a_point_has_the_risk_of_the_latest_call(write):
    cases = CaseSet([made(1, 2, id="a"), made(1, 2, 3, id="b", onset=2), made(1, id="unknown")])
    path = write(judgement("a", 1, 0.2), judgement("a", 2, 0.3), judgement("b", 1, 0.9, unsafe=True))
    scores: Any = JudgementFile(path).predictor.fit(cases).score(cases)
    assert scores.name == "judge, per step"
    assert scores.within[:, 2].tolist() == [0.0, 0.2, 0.3, 0.0, 0.9, 1.0, 1.0]
    assert scores.alarm.tolist() == [False, False, False, False, True, False, False]
    assert scores.covered.tolist() == [True, True, False]
    assert scores.pending is None
    assert not scores.probabilistic


def test_a_run_judged_in_part_is_not_covered(write):
    scores: Any = JudgementFile(write(judgement("a", 2))).score(CaseSet([made(1, 2, id="a")]))
    assert scores.covered.tolist() == [False]
    assert scores.within.tolist() == [[1.0] * 3] * 3


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["{", judgement("a", 1)], ":2: not a judgement"),
        ([judgement("a", 1, 1.5), judgement("a", 2)], ":2: not a judgement: Expected `float` <= 1"),
        ([judgement("a", 0), judgement("a", 1)], ":2: not a judgement"),
        ([judgement("a", 1), judgement("a", 1)], ":3: step 1 of run 'a' was judged before"),
        (["x" * (MAX_LINE + 5), judgement("a", 1)], ":2: "),
    ],
)
def test_a_line_that_is_no_judgement_is_refused(write, lines, message):
    with pytest.raises(PredictionFileError, match=message):
        JudgementFile(write(*lines))


def test_another_file_is_refused(write, tmp_path):
    with pytest.raises(PredictionFileError, match=":1: not a judgement"):
        JudgementFile(write(header={"format": "x"}))
    with pytest.raises(PredictionFileError, match="not a judgement: Invalid enum"):
        JudgementFile(write(header={**HEADER, "format": "safetydrift.judgements/9"}))
    with pytest.raises(PredictionFileError, match="cannot be read"):
        JudgementFile(tmp_path / "none")
    with pytest.raises(PredictionFileError, match="Is a directory"):
        JudgementFile(tmp_path)


@pytest.mark.parametrize("end", ['{"digest": "cut of', '{"digest": "cut of\n'])
def test_a_last_line_that_was_not_finished_is_passed_over(write, end):
    path = write(judgement("a", 1, 0.2), end=f"\n{end}")
    assert JudgementFile(path).judgements.keys() == {("a", 1)}


def test_a_file_of_nothing_is_refused(write, tmp_path):
    (tmp_path / "empty").write_text("")
    with pytest.raises(PredictionFileError, match="not a file of recorded judgements"):
        JudgementFile(tmp_path / "empty")
