"""The monitor with a hazard as a predictor: what every predictor promises, on the space it needs."""

import numpy as np
import pytest
from tests.evaluation.predictors.worlds import CATALOGUE, FLOW, PAPER, cut, world

from safetydrift.errors import SpaceMismatchError
from safetydrift.evaluation.cases import CaseSet
from safetydrift.evaluation.predictions import predictions
from safetydrift.evaluation.predictors import Circumstances, predictor
from safetydrift.evaluation.replay import replay

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
