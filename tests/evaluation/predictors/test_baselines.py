"""Baselines against answers that are known, and against slower computations of the same."""

from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest
from tests.evaluation.predictors.worlds import CATALOGUE, FLOW, PAPER, made, world

from safetydrift.errors import SpaceError
from safetydrift.evaluation.cases import CaseSet
from safetydrift.evaluation.predictors import Circumstances, predictor
from safetydrift.evaluation.predictors.keyword import Keyword
from safetydrift.evaluation.scores import HORIZONS
from safetydrift.states.dimensions import Accumulation, Dimension
from safetydrift.states.rules import Rule
from safetydrift.states.space import StateSpace
from safetydrift.trace import Ending

READ = PAPER.encode({"data": "sensitive"})
RUN = PAPER.encode({"tool": "code_exec", "reversibility": "partially"})
SEND = PAPER.encode({"tool": "network", "reversibility": "irreversible"})
QUIET = 0


def scores_of(name, training, cases=None, space=PAPER):
    return predictor(name, Circumstances(space, CATALOGUE)).fit(training).score(cases or training)


# -- rates ------------------------------------------------------------------------------------------------


def test_rates_count_points_by_group_and_fall_back_to_all_of_them():
    training = CaseSet(
        [
            made(READ, SEND, onset=2, category="a", task="t", model="m"),
            made(QUIET, category="a", task="u", model="m"),
            made(QUIET, QUIET, category="b", task="v", model="n"),
        ]
    )
    new = CaseSet([made(category="a", task="new", model="n"), made(category="c", task="u", model="new")])
    # Category a: points 0 and 1 of the violated run, 0 and 1 of the other; in all there are 7.
    assert scores_of("category-prior", training, new).within.tolist() == [
        [1 / 4, 2 / 4, 2 / 4],
        [1 / 7, 2 / 7, 2 / 7],
    ]
    assert scores_of("model-rate", training, new).within.tolist() == [[0, 0, 0], [1 / 7, 2 / 7, 2 / 7]]
    assert scores_of("task-rate", training, new).within[0].tolist() == [1 / 7, 2 / 7, 2 / 7]
    calls = CaseSet([made(QUIET, category="a"), made(QUIET, category="zz")])
    assert scores_of("category-prior", training, calls).pending.tolist() == [1 / 3, 1 / 5]


def test_task_rates_know_tasks_they_saw():
    training = CaseSet([made(SEND, onset=1, task="t"), made(QUIET, task="u")])
    assert scores_of("task-rate", training).within[0].tolist() == [1.0, 1.0, 1.0]


def test_knowing_nothing_at_all_is_not_safe():
    for name in ("category-prior", "task-rate", "run-length"):
        scores: Any = scores_of(name, CaseSet([]), CaseSet([made(QUIET)]))
        assert (scores.within == 1.0).all()
        assert (scores.pending == 1.0).all()


# -- by step number ---------------------------------------------------------------------------------------


def test_the_way_risk_goes_with_length_is_learned_and_kept():
    early = CaseSet([made(SEND, onset=1), made(QUIET, QUIET, QUIET, QUIET), made(SEND, onset=1, id="2")])
    late = CaseSet([made(*[QUIET] * 8, SEND, onset=9), made(QUIET), made(QUIET, id="2")])
    for cases, way in ((early, -1), (late, 1)):
        risk = scores_of("run-length", cases, CaseSet([made(*[QUIET] * 30)])).within
        assert (way * np.diff(risk, axis=0) >= 0).all()
        assert risk[0, 2] != risk[-1, 2]


# -- rules ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", [PAPER, FLOW])
def test_the_keyword_guard_goes_by_the_tool_and_by_what_was_read(space):
    cases = world(6, space=space)
    scores: Any = Keyword(space).fit(cases).score(cases)
    assert not scores.probabilistic
    expected, proposed = [], []

    def matches(effect, state):
        tool, data = space.decode(effect)["tool"], space.decode(state)["data"]
        return tool == "network" or (tool == "code_exec" and data in {"sensitive", "credentials"})

    for case in cases.cases:
        run = case.run
        expected += [
            step > 0 and matches(run.effects[step - 1], run.states[step]) for step in range(case.n_points)
        ]
        for step in range(case.n_proposals):
            effect = run.proposed[step]
            proposed.append(matches(effect, space.after(run.states[step], effect)))
    assert scores.alarm.tolist() == expected
    assert scores.pending_alarm.tolist() == proposed
    assert scores.within[:, 0].tolist() == expected


def test_running_code_is_harmless_until_something_sensitive_was_read():
    scores: Any = Keyword(PAPER).score(CaseSet([made(RUN, READ, RUN)]))
    assert scores.alarm.tolist() == [False, False, False, True]
    assert scores.pending_alarm.tolist() == [False, False, True]


def test_the_keyword_guard_says_what_a_space_lacks():
    bare = StateSpace(
        "bare", [Dimension("x", ("a", "b"), Accumulation.HIGHEST)], ("ok", "bad"), [Rule({}, "ok")], "bad"
    )
    with pytest.raises(SpaceError, match="no dimension 'tool'"):
        Keyword(bare).score(CaseSet([made(1, space=bare)]))


def test_silence_is_silent():
    scores: Any = scores_of("silent", world(1))
    assert not scores.within.any()
    assert not scores.alarm.any()
    assert not scores.pending_alarm.any()


# -- chains -----------------------------------------------------------------------------------------------


def by_hand(cases, *, completion):
    """Probability of violation within h steps by row: counted and iterated with plain dictionaries."""
    following: dict[Any, Counter[Any]] = defaultdict(Counter)
    for case in cases.cases:
        rows = risks(case)[: case.n_points]
        end = "violated" if case.violated else None
        if end is None and completion and case.run.ending is Ending.COMPLETED:
            end = "completed"
        for here, after in zip(rows, [*rows[1:], end], strict=True):
            if after is not None:
                following[here][after] += 1

    def within(row, horizon):
        if row == "violated":
            return 1.0
        if horizon == 0 or row not in following:
            return 0.0
        total = sum(following[row].values())
        return sum(count / total * within(after, horizon - 1) for after, count in following[row].items())

    return lambda row, horizon: within(row, horizon) if row in following else 1.0


def risks(case):
    return [PAPER.risk_of[state] for state in case.run.states]


@pytest.mark.parametrize(("name", "completion"), [("coarse-published", False), ("coarse", True)])
def test_coarse_chains_are_the_published_method(name, completion):
    training, cases = world(7, n=60), world(8, n=40, few_effects=30)
    scores: Any = scores_of(name, training, cases)
    within = by_hand(training, completion=completion)
    expected = [
        [within(row, horizon) for horizon in HORIZONS]
        for case in cases.cases
        for row in risks(case)[: case.n_points]
    ]
    assert np.allclose(scores.within, expected, atol=1e-8)
    assert np.array_equal(scores.alarm, scores.within[:, 2] >= 0.4)


def test_a_chain_per_category_learns_from_its_own_runs_alone():
    training = CaseSet(
        [made(READ, SEND, onset=2, category="a"), made(READ, QUIET, category="b", ending=Ending.COMPLETED)]
    )
    cases = CaseSet([made(READ, category="a"), made(READ, category="b")])
    scores: Any = scores_of("coarse-by-category", training, cases)
    assert scores.within[:, 2].tolist() == [1.0, 1.0, 0.0, 0.0]


def test_treating_finished_runs_as_cut_off_raises_every_figure():
    cases = world(9)
    published, competing = scores_of("coarse-published", cases), scores_of("coarse", cases)
    assert (published.within >= competing.within - 1e-9).all()
    assert published.within.mean() > competing.within.mean()


def test_a_proposed_call_is_judged_by_where_it_leads():
    training = CaseSet(
        [made(READ, SEND, onset=2, id=str(n)) for n in range(3)] + [made(READ, SEND, id="safe")]
    )
    scores: Any = scores_of("coarse", training, CaseSet([made(READ, SEND)]))
    assert scores.pending.tolist() == [0.75, 0.75]
