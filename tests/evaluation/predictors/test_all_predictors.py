"""What every predictor promises."""

import numpy as np
import pytest
from tests.evaluation.predictors.worlds import CATALOGUE, FLOW, PAPER, cut, made, world

from safetydrift.evaluation.cases import CaseSet
from safetydrift.evaluation.predictors import PREDICTORS, Circumstances, predictor
from safetydrift.evaluation.scores import HORIZONS
from safetydrift.states.trajectory import Notion

HERE = Circumstances(PAPER, CATALOGUE)
TRAINING, TEST = world(1), world(2, few_effects=20)


@pytest.fixture(scope="module", params=sorted(set(PREDICTORS) - {"foresight"}))
def name(request):
    return request.param


@pytest.fixture(scope="module")
def fitted(name):
    return predictor(name, HERE).fit(TRAINING)


def same(one, other):
    """Return whether two scores say the same about everything."""
    parts = ("within", "pending", "alarm", "pending_alarm")
    return all(
        (getattr(one, part) is None and getattr(other, part) is None)
        or np.array_equal(getattr(one, part), getattr(other, part))
        for part in parts
    )


def test_scores_fit_the_cases_and_never_know_nothing(name, fitted):
    scores = fitted.score(TEST)
    n_points, n_proposals = int(TEST.first_point[-1]), int(TEST.first_proposal[-1])
    assert scores.name == name == predictor(name, HERE).name
    assert scores.within.shape == (n_points, len(HORIZONS))
    assert ((scores.within >= 0) & (scores.within <= 1)).all()
    assert (np.diff(scores.within, axis=1) >= 0).all()
    assert scores.pending is not None
    assert scores.pending.shape == (n_proposals,)
    assert ((scores.pending >= 0) & (scores.pending <= 1)).all()
    assert scores.alarm is None or scores.alarm.shape == (n_points,)
    assert scores.pending_alarm is None or scores.pending_alarm.shape == (n_proposals,)
    assert scores.covered is None


def test_a_score_never_depends_on_what_comes_later(fitted):
    whole = fitted.score(TEST)
    places = [(number, calls) for number, case in enumerate(TEST.cases) for calls in range(case.n_points)]
    prefixes = CaseSet([cut(TEST.cases[number], calls, PAPER) for number, calls in places])
    scores = fitted.score(prefixes)
    for place, (number, calls) in enumerate(places):
        mine = slice(prefixes.first_point[place], prefixes.first_point[place + 1])
        points = slice(TEST.first_point[number], TEST.first_point[number] + calls + 1)
        assert np.allclose(scores.within[mine], whole.within[points], rtol=1e-6, atol=1e-9)
        assert whole.alarm is None or np.array_equal(scores.alarm[mine], whole.alarm[points])
        mine = slice(prefixes.first_proposal[place], prefixes.first_proposal[place + 1])
        proposals = slice(TEST.first_proposal[number], TEST.first_proposal[number] + calls)
        assert np.allclose(scores.pending[mine], whole.pending[proposals], rtol=1e-6, atol=1e-9)
        assert whole.alarm is None or np.array_equal(
            scores.pending_alarm[mine], whole.pending_alarm[proposals]
        )


def test_the_same_cases_give_the_same_predictor(name, fitted):
    again = predictor(name, HERE).fit(TRAINING)
    assert same(fitted.score(TEST), again.score(TEST))


def test_runs_of_unknown_category_task_model_and_tool_are_scored(fitted):
    effects = TRAINING.cases[3].run.effects or (1,)
    strange = made(
        *effects, category="new", task="new", model="new", source="new", tools=("new",) * len(effects)
    )
    nameless = made(*effects, category="", tools=())
    scores = fitted.score(CaseSet([strange, nameless]))
    assert np.isfinite(scores.within).all()
    assert np.isfinite(scores.pending).all()


def test_no_cases_have_no_scores(fitted):
    scores = fitted.score(CaseSet([]))
    assert scores.within.shape == (0, 3)
    assert scores.pending.shape == (0,)


SLOW_ON_MANY_STATES = {"monitor", "monitor-without-categories"}


@pytest.mark.parametrize("name", sorted(set(PREDICTORS) - SLOW_ON_MANY_STATES))
def test_every_predictor_works_on_the_finer_space_and_under_the_rules(name):
    given = Circumstances(FLOW, CATALOGUE, PAPER, Notion.RULES)
    cases = world(3, space=given.space)
    scores = predictor(name, given).fit(cases).score(cases)
    assert ((scores.within >= 0) & (scores.within <= 1)).all()


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"no predictor 'oracle'; there are: monitor, "):
        predictor("oracle", HERE)
