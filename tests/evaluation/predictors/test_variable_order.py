"""The chain of variable order, on runs whose future depends on more than where they stand."""

import numpy as np
import pytest
from tests.evaluation.predictors.worlds import PAPER, made, world

from safetydrift.evaluation.cases import CaseSet
from safetydrift.evaluation.predictors.variable_order import VariableOrder
from safetydrift.evaluation.scores import HORIZONS
from safetydrift.markov.memory import FORGOTTEN
from safetydrift.trace import Ending

READ, RUN, QUIET = PAPER.encode({"data": "sensitive"}), PAPER.encode({"tool": "code_exec"}), 0
SEND = PAPER.encode({"tool": "network", "reversibility": "irreversible"})


def scored(training, cases, depth=2):
    """The scores of a chain, of whose proposals every one has one."""
    scores = VariableOrder(PAPER, depth).fit(training).score(cases)
    assert scores.pending is not None
    return scores.within, scores.pending


def two_ways(n_tasks=12, **extra):
    """Reading and then running goes wrong at the call after next; running and then reading never does."""
    cases = []
    for number in range(n_tasks):
        fixed = {"task": f"task{number}", **extra}
        cases += [
            made(READ, RUN, QUIET, SEND, onset=4, id=f"a{number}", **fixed),
            made(RUN, READ, QUIET, SEND, id=f"b{number}", **fixed),
        ]
    return CaseSet(cases)


def after_three(depth, training, **fixed):
    """What is foreseen of both ways after three calls, where the states are the same."""
    ways = CaseSet([made(READ, RUN, QUIET, **fixed), made(RUN, READ, QUIET, **fixed)])
    assert ways.cases[0].run.states[-1] == ways.cases[1].run.states[-1]
    scores = VariableOrder(PAPER, depth).fit(training).score(ways)
    last = ways.first_point[1:] - 1
    return scores.within[last]


def test_without_any_runs_nothing_is_safe():
    within, pending = scored(CaseSet([]), two_ways(1))
    assert (within == 1.0).all()
    assert (pending == 1.0).all()


def test_two_calls_are_remembered_and_a_third_is_not():
    training = two_ways()
    wrong, well = after_three(2, training)
    assert (wrong > 0.8).all()
    assert (well < 0.1).all()
    for depth in (0, 1):
        wrong, well = after_three(depth, training)
        assert wrong == pytest.approx(well)
        assert 0.1 < wrong[0] < 0.7


def test_what_is_foreseen_within_more_calls_looks_along_the_remembered_ones():
    scores = VariableOrder(PAPER).fit(two_ways()).score(two_ways(1))
    within_one, within_three = scores.within[:4, 0], scores.within[:4, HORIZONS.index(3)]
    # After the first call of the run that goes wrong the violation is three calls away.
    assert within_one[1] < 0.1
    assert within_three[1] > 0.7
    assert scores.within[5, HORIZONS.index(3)] < 0.2


def test_a_category_of_which_nothing_is_known_has_the_chain_without_memory():
    wrong, well = after_three(2, two_ways(), category="elsewhere")
    assert wrong == pytest.approx(well)
    bare, _ = after_three(0, two_ways(), category="elsewhere")
    assert wrong == pytest.approx(bare)


def test_in_a_state_that_no_run_went_on_from_a_run_does_what_runs_do_in_general():
    training = two_ways()
    strange = CaseSet([made(PAPER.encode({"data": "credentials"}), QUIET)])
    within = VariableOrder(PAPER).fit(training).score(strange).within
    went_on = sum(case.n_points for case in training.cases)
    violated, ended = int(training.violated.sum()), len(training)
    share = (violated + 0.5) / (went_on + 1.5)
    again = (went_on - ended + 0.5) / (went_on + 1.5)
    for point in (1, 2):
        assert within[point, 0] == pytest.approx(share)
        assert within[point, 1] == pytest.approx(share * (1 + again + again**2))


def test_two_calls_that_one_task_showed_have_no_row_of_their_own():
    for n_tasks, kept in ((1, False), (2, True)):
        fitted = VariableOrder(PAPER).fit(two_ways(n_tasks))
        (table,) = (table for name, table in fitted.tables.items() if name)
        long = table.rows.contexts[:, 2] != FORGOTTEN
        assert long.any() == kept
        assert (table.rows.contexts[:, 1] != FORGOTTEN).any()
        bare = fitted.tables[None].rows.contexts
        assert (bare[:, 1:] == FORGOTTEN).all()


def test_a_proposal_that_was_the_violation_before_is_the_risky_one():
    asked = CaseSet(
        [made(READ, RUN, QUIET, SEND), made(RUN, READ, QUIET, SEND), made(READ, RUN, QUIET, READ)]
    )
    _, pending = scored(two_ways(), asked)
    wrong, well, other = pending[asked.first_proposal[1:] - 1]
    assert wrong > 0.8
    assert well < 0.2
    assert other < wrong


def test_runs_that_were_cut_off_tell_nothing_of_how_they_would_have_ended():
    done, cut = (
        CaseSet([made(QUIET, QUIET, task=f"t{number}", ending=ending) for number in range(5)])
        for ending in (Ending.COMPLETED, Ending.CENSORED)
    )
    sends = CaseSet([made(QUIET, SEND, onset=2, task="sent")])
    here = CaseSet([made(QUIET)])
    finished, unfinished = (
        VariableOrder(PAPER).fit(CaseSet([*runs.cases, *sends.cases])).score(here).within[1, 2]
        for runs in (done, cut)
    )
    assert unfinished > finished


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_every_depth_foresees_probabilities_that_grow(depth):
    within, pending = scored(world(4), world(5), depth)
    assert ((within >= 0.0) & (within <= 1.0)).all()
    assert (np.diff(within, axis=1) >= 0.0).all()
    assert ((pending >= 0.0) & (pending <= 1.0)).all()


def test_memory_foretells_held_out_tasks_better_where_order_matters():
    training, test = two_ways(), two_ways(3)
    losses = []
    for depth in (0, 2):
        scores = VariableOrder(PAPER, depth).fit(training).score(test)
        happens = test.happens_within(5)
        losses.append(-np.log(np.where(happens, scores.within[:, 2], 1.0 - scores.within[:, 2])).mean())
    assert losses[1] < 0.7 * losses[0]


def test_what_may_come_next_adds_up_to_one():
    fitted = VariableOrder(PAPER).fit(two_ways())
    never = PAPER.encode({"data": "credentials"})
    goes_on = [made(READ, RUN, effect) for effect in (READ, RUN, QUIET, SEND, never)]
    ends = [made(READ, RUN, SEND, onset=3), made(READ, RUN)]
    chances = [np.exp(-fitted.surprise(CaseSet([case]))[2]) for case in [*goes_on, *ends]]
    assert sum(chances) == pytest.approx(1.0)
    assert chances[2] > 0.8


def test_a_run_that_was_cut_off_surprises_nobody_at_its_end():
    fitted = VariableOrder(PAPER).fit(two_ways())
    surprise = fitted.surprise(CaseSet([made(READ, ending=Ending.CENSORED), made(READ)]))
    assert np.isnan(surprise).tolist() == [False, True, False, False]
    assert surprise[0] == surprise[2]


def test_memory_is_less_surprised_where_order_matters():
    test = two_ways(3)
    without, with_memory = (
        np.nanmean(VariableOrder(PAPER, depth).fit(two_ways()).surprise(test)) for depth in (0, 2)
    )
    assert with_memory < 0.7 * without
