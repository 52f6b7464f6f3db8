"""A chain whose rows are contexts, against following every path of the process that it stands for."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safetydrift.errors import ChainError
from safetydrift.markov.absorption import absorption
from safetydrift.markov.chain import UNSEEN
from safetydrift.markov.horizon import horizon_table
from safetydrift.markov.memory import BEFORE, FORGOTTEN, ContextRows

MOVES = np.array([0, 1])
ENDS = ("violated", "completed")


def after(state, move):
    """The state that follows: the highest move so far."""
    return np.maximum(state, move)


def everything(depth):
    """All contexts of two states, with all their moves."""
    return np.array(list(product([0, 1], *[(BEFORE, 0, 1)] * depth)))


def chances(seed, rows):
    """Made-up probabilities of moves and ends, by row."""
    drawn = np.random.default_rng(seed).dirichlet(np.ones(4), len(rows))
    return drawn[:, :2], drawn[:, 2:]


def chain_of(rows, seed):
    goes_on, ends = chances(seed, rows)
    states = after(rows.contexts[:, :1], MOVES)
    return rows.chain(goes_on, ends, rows.successors(MOVES, states), ENDS)


def by_paths(rows, seed, context, horizon):
    """Add up the paths to a violation, each remembered as a whole and looked up by its longest context kept."""
    goes_on, ends = chances(seed, rows)
    kept = {tuple(one): place for place, one in enumerate(rows.contexts.tolist())}

    def row_of(state, past):
        for length in range(rows.depth, -1, -1):
            row = kept.get((state, *past[:length], *[FORGOTTEN] * (rows.depth - length)))
            if row is not None:
                return row
        raise AssertionError("a state without a row")

    def walk(state, past, left):
        if not left:
            return 0.0
        row = row_of(state, past)
        return ends[row, 0] + sum(
            goes_on[row, move] * walk(max(state, move), (move, *past)[: rows.depth], left - 1)
            for move in (0, 1)
        )

    return walk(context[0], tuple(context[1:]), horizon)


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_the_chain_says_what_following_every_path_says(depth):
    rows = ContextRows(everything(depth))
    table = horizon_table(chain_of(rows, depth), 6)
    starts = everything(depth)
    for horizon in (1, 2, 5, 6):
        within = table.within(horizon)[rows.find(starts)]
        by_hand = [by_paths(rows, depth, start, horizon) for start in starts.tolist()]
        assert within == pytest.approx(np.array(by_hand))


@settings(max_examples=25)
@given(st.integers(0, 1000))
def test_a_pruned_chain_says_so_as_well_when_short_contexts_are_whole(seed):
    # All contexts of one move are kept and some of two: a row always knows what the next one has to look at.
    rng = np.random.default_rng(seed)
    whole = everything(2)
    short = whole.copy()
    short[:, 2] = FORGOTTEN
    rows = ContextRows(np.concatenate([short, whole[rng.random(len(whole)) < 0.3]]))
    table = horizon_table(chain_of(rows, seed), 4)
    for start in whole.tolist():
        expected = by_paths(rows, seed, start, 4)
        assert table.within(4)[rows.find([start])][0] == pytest.approx(expected)


def test_absorption_and_horizons_agree_in_the_long_run():
    chain = chain_of(ContextRows(everything(2)), 3)
    ends, table = absorption(chain), horizon_table(chain, 400)
    for name in ENDS:
        assert ends.probability(name) == pytest.approx(table.within(400, name))
    assert table.within(400, UNSEEN)[chain.transient] == pytest.approx(0.0)


def test_rows_are_the_contexts_and_their_shorter_parts_once_each():
    rows = ContextRows([[4, 1, 0], [4, 1, BEFORE], [4, BEFORE, BEFORE], [4, 1, 0], [2, FORGOTTEN, FORGOTTEN]])
    assert [tuple(one) for one in rows.contexts.tolist()] == [
        (2, FORGOTTEN, FORGOTTEN),
        (4, FORGOTTEN, FORGOTTEN),
        (4, BEFORE, FORGOTTEN),
        (4, 1, FORGOTTEN),
        (4, BEFORE, BEFORE),
        (4, 1, BEFORE),
        (4, 1, 0),
    ]
    assert len(rows) == rows.unknown == 7
    assert rows.find(rows.contexts).tolist() == list(range(7))


def test_the_longest_part_kept_is_found():
    rows = ContextRows([[4, 1, 0], [2, FORGOTTEN, FORGOTTEN]])
    asked = [[4, 1, 0], [4, 1, 1], [4, 0, 0], [4, 7, 0], [4, FORGOTTEN, 0], [2, 1, 0], [3, 1, 0], [900, 1, 0]]
    found = [rows.contexts[row].tolist() if row < len(rows) else None for row in rows.find(asked)]
    nothing = [FORGOTTEN, FORGOTTEN]
    assert found == [
        [4, 1, 0],
        [4, 1, FORGOTTEN],
        [4, *nothing],
        [4, *nothing],
        [4, *nothing],
        [2, *nothing],
        None,
        None,
    ]


def test_a_move_is_remembered_and_the_oldest_is_dropped():
    rows = ContextRows([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    here = int(rows.find([[0, 1, 0]])[0])
    following = rows.successors([0, 1], np.zeros((len(rows), 2)))[here]
    assert rows.contexts[following].tolist() == [[0, 0, 1], [0, 1, FORGOTTEN]]


def test_what_leads_to_a_state_without_a_row_is_unseen():
    rows = ContextRows([[0, 0]])
    states = np.full((len(rows), 1), 5)
    chain = rows.chain(np.full((2, 1), 0.75), [[0.25, 0.0]] * 2, rows.successors([0], states), ENDS)
    table = horizon_table(chain, 3)
    assert table.within(3)[:2].tolist() == [0.25, 0.25]
    assert table.within(3, UNSEEN)[:2].tolist() == [0.75, 0.75]
    assert chain.unseen.tolist() == [rows.unknown]


def test_no_contexts_make_a_chain_that_knows_nothing():
    rows = ContextRows(np.empty((0, 3)))
    assert rows.find([[1, 2, 3]]).tolist() == [rows.unknown] == [0]
    chain = rows.chain(np.empty((0, 1)), np.empty((0, 2)), rows.successors([0], np.empty((0, 1))), ENDS)
    assert chain.unseen.tolist() == [0]


def test_rows_that_do_not_sum_to_one_are_refused():
    rows = ContextRows([[0]])
    with pytest.raises(ChainError, match="sum to one"):
        rows.chain([[0.5]], [[0.25, 0.0]], rows.successors([0], [[0]]), ENDS)


@pytest.mark.parametrize("contexts", [[1, 2], np.empty((3, 0)), [[1, *[4_000_000_000] * 3]]])
def test_contexts_that_cannot_be_numbered_are_refused(contexts):
    with pytest.raises(ChainError):
        ContextRows(contexts)
