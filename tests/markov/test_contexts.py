"""Contexts that back off: against counting by hand, and on processes whose order is known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safetydrift.errors import ChainError
from safetydrift.markov.contexts import (
    TRIED,
    UNKNOWN,
    ContextCounts,
    held_out_concentrations,
    log_loss,
)
from safetydrift.markov.hierarchy import nested_mean

LETTERS = 3


def levels(states, *moves):
    """Keys of contexts that are a state and so many moves."""
    key, found = np.asarray(states), [np.asarray(states)]
    for move in moves:
        key = key * 10 + np.asarray(move)
        found.append(key)
    return np.array(found)


def drawn(seed, n=400, depth=2):
    """Contexts and what followed them, drawn without any pattern."""
    rng = np.random.default_rng(seed)
    keys = levels(*rng.integers(0, 3, size=(depth + 1, n)))
    return keys, rng.integers(0, LETTERS, size=n)


def second_order(rng, n_runs, length):
    """Runs of a process whose next letter depends on the last two, and little on the last one alone."""
    runs = []
    for _ in range(n_runs):
        run = [0, 0]
        for _ in range(length):
            wanted = (run[-1] + run[-2] + 1) % LETTERS
            run.append(wanted if rng.random() < 0.8 else int(rng.integers(LETTERS)))
        runs.append(run)
    return runs


def transitions(runs):
    """Keys of the last letter and the one before it, what followed, and the run of each."""
    rows = [
        (run[place], run[place - 1], run[place + 1], number)
        for number, run in enumerate(runs)
        for place in range(1, len(run) - 1)
    ]
    last, before, following, number = np.array(rows).T
    return levels(last, before), following, number


def test_counts_of_every_ring_are_those_of_a_walk_through_the_data():
    keys, followed = drawn(1)
    rings = ContextCounts(keys, followed, LETTERS).rings(keys)
    for place in range(0, keys.shape[1], 7):
        for level in range(3):
            shared = keys[level] == keys[level, place]
            further = keys[level + 1] == keys[level + 1, place] if level < 2 else np.zeros_like(shared)
            by_hand = np.bincount(followed[shared & ~further], minlength=LETTERS)
            assert rings[level, place].tolist() == by_hand.tolist()


def test_every_count_stands_in_one_ring():
    keys, followed = drawn(2)
    counts = ContextCounts(keys, followed, LETTERS)
    whole = ContextCounts(keys[:1], followed, LETTERS)
    assert np.array_equal(counts.rings(keys).sum(axis=0), whole.rings(keys[:1])[0])


@settings(max_examples=30)
@given(st.integers(0, 50), st.lists(st.floats(0.01, 1e5), min_size=3, max_size=3))
def test_probabilities_of_what_may_follow_sum_to_one(seed, strengths):
    keys, followed = drawn(seed, n=60)
    counts = ContextCounts(keys, followed, LETTERS)
    asked = np.concatenate([keys, drawn(seed + 1, n=20)[0], np.full((3, 1), UNKNOWN)], axis=1)
    expected = counts.expected(asked, strengths)
    assert expected.sum(axis=1) == pytest.approx(np.ones(asked.shape[1]))
    assert (expected > 0.0).all()


def test_a_context_never_seen_goes_on_as_its_shorter_part_does():
    keys, followed = drawn(3)
    strengths = [5.0, 9.0, 2.0]
    counts, shorter = (ContextCounts(keys[:depth], followed, LETTERS) for depth in (3, 2))
    strange = keys.copy()
    strange[2] = 9_999
    assert not np.allclose(counts.expected(keys, strengths), shorter.expected(keys[:2], strengths[:2]))
    for unseen in (strange, np.vstack([keys[:2], np.full(keys.shape[1], UNKNOWN)])):
        backed_off = counts.expected(unseen, strengths)
        assert backed_off == pytest.approx(shorter.expected(keys[:2], strengths[:2]))
    nothing = counts.expected(np.full((3, 1), UNKNOWN), strengths)
    assert nothing[0] == pytest.approx(counts.base)


def test_one_outcome_alone_is_as_likely_as_among_all():
    keys, followed = drawn(4)
    counts = ContextCounts(keys, followed, LETTERS)
    strengths = [3.0, 8.0, 100.0]
    among = counts.expected(keys, strengths)[np.arange(len(followed)), followed]
    assert counts.expected_of(keys, followed, strengths) == pytest.approx(among)
    assert log_loss(counts, strengths, keys, followed) == pytest.approx(-np.log(among).mean())


def test_no_concentration_tried_foretells_what_was_left_out_better():
    runs = second_order(np.random.default_rng(5), 40, 6)
    keys, followed, run = transitions(runs)
    chosen = held_out_concentrations(keys, followed, LETTERS, run)

    def left_out(strengths):
        lost = 0.0
        for part in range(5):
            tried = run % 5 == part
            counts = ContextCounts(keys[:, ~tried], followed[~tried], LETTERS)
            lost += tried.sum() * log_loss(counts, strengths, keys[:, tried], followed[tried])
        return lost

    losses = [left_out([chosen[0], float(other)]) for other in TRIED]
    assert left_out(chosen) == pytest.approx(min(losses), rel=1e-12)
    assert max(losses) > min(losses) + 1.0


def test_memory_pays_on_a_process_of_the_second_order():
    rng = np.random.default_rng(6)
    keys, followed, run = transitions(second_order(rng, 200, 12))
    new_keys, new_followed, _ = transitions(second_order(rng, 200, 12))
    losses = []
    for depth in (1, 2):
        strengths = held_out_concentrations(keys[:depth], followed, LETTERS, run)
        counts = ContextCounts(keys[:depth], followed, LETTERS)
        losses.append(log_loss(counts, strengths, new_keys[:depth], new_followed))
    ceiling = -(13 / 15 * np.log(13 / 15) + 2 / 15 * np.log(1 / 15))
    assert losses[1] < losses[0] - 0.2
    assert losses[1] == pytest.approx(ceiling, abs=0.05)


def test_memory_costs_next_to_nothing_on_a_process_of_the_first_order():
    rng = np.random.default_rng(7)
    table = rng.dirichlet(np.ones(LETTERS), LETTERS)

    def runs():
        for _ in range(100):
            run = [0]
            for _ in range(12):
                run.append(int(rng.choice(LETTERS, p=table[run[-1]])))
            yield run

    keys, followed, run = transitions(list(runs()))
    new_keys, new_followed, _ = transitions(list(runs()))
    losses = []
    for depth in (1, 2):
        strengths = held_out_concentrations(keys[:depth], followed, LETTERS, run)
        counts = ContextCounts(keys[:depth], followed, LETTERS)
        losses.append(log_loss(counts, strengths, new_keys[:depth], new_followed))
    assert losses[1] == pytest.approx(losses[0], abs=0.005)


def test_counts_that_come_in_groups_are_followed_less_than_draws_by_themselves():
    # Thirty tasks, each repeated twenty times: what a context led to once, it led to twenty times.
    rng = np.random.default_rng(8)
    table = rng.dirichlet(np.full(LETTERS, 3.0))
    state = rng.integers(0, 4, size=600 // 20).repeat(20)
    move = rng.integers(0, 3, size=600 // 20).repeat(20)
    followed = rng.choice(LETTERS, size=600 // 20, p=table).repeat(20)
    keys, task = levels(state, move), np.arange(30).repeat(20)
    alone = ContextCounts(keys, followed, LETTERS).empirical_concentrations()
    apart = held_out_concentrations(keys, followed, LETTERS, task)
    assert all(one > 5 * other for one, other in zip(apart, alone, strict=True))


def test_one_group_leaves_nothing_to_hold_out():
    keys, followed = drawn(9)
    one = held_out_concentrations(keys, followed, LETTERS, np.zeros(len(followed)))
    assert one == ContextCounts(keys, followed, LETTERS).empirical_concentrations()


def test_nothing_counted_is_nothing_expected():
    counts = ContextCounts(np.empty((2, 0)), np.empty(0), 4)
    assert counts.expected([[3], [30]], [1.0, 1.0]).tolist() == [[0.25] * 4]
    assert counts.rings([[UNKNOWN], [UNKNOWN]]).tolist() == np.zeros((2, 1, 4)).tolist()


def test_an_expected_row_is_the_nested_mean_of_its_rings():
    counts = ContextCounts([[0, 0, 0, 1], [0, 0, 1, 2]], [0, 0, 1, 1], 2)
    by_hand = nested_mean([[[0, 1]], [[2, 0]]], [counts.base], [4.0, 2.0])
    assert counts.expected([[0], [0]], [4.0, 2.0]).tolist() == by_hand.tolist()


@pytest.mark.parametrize(
    ("keys", "followed"),
    [([0, 1], [0, 1]), ([[0, 1]], [0]), ([[0, 1]], [0, 2]), ([[0, 1]], [0, -1]), ([[0, -1]], [0, 1])],
)
def test_what_cannot_be_counted_is_refused(keys, followed):
    with pytest.raises(ChainError):
        ContextCounts(keys, followed, 2)
