"""Features against a walk by hand, and classifiers that learn what is there."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from tests.evaluation.predictors.worlds import FLOW, PAPER, made, world

from safetydrift.effects.catalogue.acts import KINDS
from safetydrift.evaluation.cases import CaseSet
from safetydrift.evaluation.predictors.features import MOST_TOOLS, Features
from safetydrift.evaluation.predictors.learned import (
    Boosting,
    LearnedPredictor,
    LogisticHazard,
    training_weights,
)
from safetydrift.evaluation.scores import HORIZONS
from safetydrift.states.dimensions import Accumulation
from safetydrift.states.task_words import WORD_BINS


def numbers_by_hand(run, step, space):
    """The counts of a point, by walking to it."""

    def ago(happened):
        return next((back for back in range(step) if happened(step - back)), step)

    def raised(call):
        return any(
            after > before and dimension.accumulation is Accumulation.HIGHEST
            for dimension, before, after in zip(
                space.dimensions,
                space.digits(run.states[call - 1]),
                space.digits(run.states[call]),
                strict=True,
            )
        )

    numbers = [
        step,
        ago(lambda call: run.states[call] != run.states[call - 1]),
        ago(raised),
        sum(bool(run.moves[call].injected) for call in range(step)),
        ago(lambda call: bool(run.moves[call - 1].injected)),
    ]
    for place, dimension in enumerate(space.dimensions):
        levels = [space.digits(effect)[place] for effect in run.effects[:step]]
        numbers += [levels.count(level) for level in range(1, len(dimension.levels))]
    for kind in KINDS:
        numbers.append(int(step > 0 and kind in run.moves[step - 1].kinds))
        numbers.append(sum(kind in move.kinds for move in run.moves[:step]))
    return numbers


@pytest.mark.parametrize("space", [PAPER, FLOW])
def test_counts_are_those_of_a_walk(space):
    cases = world(1, n=40, space=space)
    table = Features.of(cases, space).points(cases)
    expected = [
        numbers_by_hand(case.run, step, space) for case in cases.cases for step in range(case.n_points)
    ]
    assert table.numbers.tolist() == expected


def test_codes_name_state_latest_effect_risk_tools_and_kind_of_run():
    cases = CaseSet([made(13, 2, tools=("a", "b"), category="x"), made(7, tools=("b",), category="y")])
    features = Features.of(cases, PAPER)
    assert features.tools == ("b", "a")
    table = features.points(cases)
    state = PAPER.after(13, 2)
    digits = [
        one for pair in zip(PAPER.digits(state), np.add(PAPER.digits(2), 1), strict=True) for one in pair
    ]
    assert table.codes[2].tolist() == [*digits, PAPER.risk_of[state], 2, 3, 0, 1]
    assert table.codes[3].tolist() == [0] * 6 + [0, 0, 0, 0, 2]
    strange = features.points(CaseSet([made(1, tools=("new",), category="z")]))
    assert strange.codes[1, -4:].tolist() == [1, 0, 0, 0]
    assert (table.codes < np.array(table.sizes)).all()


def test_a_proposal_adds_the_proposed_call_and_not_what_came_of_it():
    case = made(13, 2, proposed=(13, 5), tools=("a", "b"))
    features = Features.of(CaseSet([case]), PAPER)
    other = made(13, 9, proposed=(13, 5), tools=("a", "b"))
    one, two = features.proposals(CaseSet([case])), features.proposals(CaseSet([other]))
    assert np.array_equal(one.codes, two.codes)
    after = PAPER.after(13, 5)
    assert one.codes[1, -8:].tolist() == [
        *PAPER.digits(5),
        *PAPER.digits(after),
        PAPER.risk_of[after],
        features.tools.index("b") + 2,
    ]


def test_words_of_the_task_and_of_orders_so_far_are_columns():
    case = made(1, 1, words=(3, 7), injected=((9,), (3,)))
    matrix = Features.of(CaseSet([case]), PAPER).points(CaseSet([case])).sparse()
    last = matrix[:, -2 * WORD_BINS :].toarray() > 0
    assert [np.flatnonzero(row).tolist() for row in last] == [
        [3, 7],
        [3, 7, WORD_BINS + 9],
        [3, 7, WORD_BINS + 3, WORD_BINS + 9],
    ]


def test_equal_rows_are_one_and_each_row_finds_its_own():
    cases = CaseSet([*world(1).cases, *world(1).cases])
    table = Features.of(cases, PAPER).points(cases)
    distinct, which = table.distinct()
    assert len(distinct) <= len(table) // 2
    back = distinct.take(which)
    for one, two in ((back.numbers, table.numbers), (back.codes, table.codes), (back.texts, table.texts)):
        assert np.array_equal(one, two)


def test_only_the_most_frequent_tools_are_told_apart():
    many = made(*[0] * (MOST_TOOLS + 50), tools=tuple(f"t{n}" for n in range(MOST_TOOLS + 50)))
    assert len(Features.of(CaseSet([many]), PAPER).tools) == MOST_TOOLS


def test_runs_left_out_are_stood_for_and_none_of_them_is_violated():
    cases = world(1, n=400)
    kept, weight = training_weights(cases, most_points=1200)
    assert kept[cases.violated].all()
    assert (weight[cases.violated] == 1.0).all()
    points = np.diff(cases.first_point)
    assert points[kept].sum() == pytest.approx(1200, rel=0.15)
    assert (points * weight)[kept & ~cases.violated].sum() == pytest.approx(
        points[~cases.violated].sum(), rel=0.25
    )
    turned = CaseSet(reversed(cases.cases))
    assert np.array_equal(training_weights(turned, 1200)[0], kept[::-1])
    assert training_weights(cases, 10**6)[0].all()


@pytest.mark.parametrize("make", [LogisticHazard, Boosting])
def test_what_can_be_learned_is(make):
    risky, safe = 5, 7
    training = CaseSet(
        [made(risky, safe, onset=2, id=f"v{n}") for n in range(60)]
        + [made(safe, safe, id=f"c{n}") for n in range(60)]
    )
    scores = make(PAPER).fit(training).score(CaseSet([made(risky), made(safe)]))
    start, after_risky, _, after_safe = scores.within[:, 0]
    assert after_risky > 0.8
    assert after_safe < 0.2
    assert start < 0.2
    assert scores.within[0, 1] == pytest.approx(0.5, abs=0.1)


class Exact(LearnedPredictor):
    """A regression whose penalty is that of the library, so that only the adding up of rows is tried."""

    def inputs(self, table):
        return table.dense()

    def learn(self, inputs, happened, weight, _table):
        return LogisticRegression(tol=1e-9, max_iter=20_000).fit(inputs, happened, weight)


def test_adding_up_equal_rows_changes_nothing_that_is_learned():
    cases = CaseSet([*world(1, n=60).cases, *world(1, n=60).cases])
    exact = Exact(PAPER, "exact").fit(cases).score(cases)
    read = Features.of(cases, PAPER).points(cases).dense()
    single = LogisticRegression(tol=1e-9, max_iter=20_000).fit(read, cases.happens_within(HORIZONS[0]))
    assert np.allclose(exact.within[:, 0], single.predict_proba(read)[:, 1], atol=1e-3)


@pytest.mark.parametrize("make", [LogisticHazard, Boosting])
def test_where_one_outcome_is_all_there_is_it_is_what_is_foretold(make):
    safe = CaseSet([made(1, 2), made(2, 1)])
    assert not make(PAPER).fit(safe).score(safe).within.any()
    assert (make(PAPER).fit(CaseSet([])).score(safe).within == 1.0).all()


@pytest.mark.parametrize("make", [LogisticHazard, Boosting])
def test_the_kind_of_run_can_be_withheld(make):
    training = CaseSet(
        [made(1, 1, onset=2, category="bad", id=f"v{n}", words=(n,)) for n in range(60)]
        + [made(1, 1, category="good", id=f"c{n}", words=(n,)) for n in range(60)]
    )
    blind = make(PAPER, with_kind=False).fit(training).score(training).within
    assert blind[0].tolist() == blind[-3].tolist()
    knowing = make(PAPER).fit(training).score(training).within
    assert knowing[0, 1] > knowing[-3, 1] + 0.5
