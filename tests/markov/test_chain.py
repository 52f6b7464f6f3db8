from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from tests.markov.strategies import chains

from safetydrift.errors import ChainError, NotAbsorbingError
from safetydrift.markov import (
    AbsorbingChain,
    absorption,
    absorption_batch,
    communicating_classes,
    reachability,
    require_absorbing,
)
from safetydrift.markov.structure import trapped

ROW = [0.5, 0.3, 0.2]
ENDS = {"violated": [1], "completed": [2]}


def chain(first=ROW, absorbing=ENDS, **options):
    return AbsorbingChain([first, [0, 0, 0], [0, 0, 0]], absorbing, **options)


@given(chains())
def test_every_row_sums_to_one_or_is_unseen(found):
    totals = found.transitions.sum(axis=1)
    assert np.abs(totals[found.transient] - 1.0).max(initial=0.0) <= 1e-15 * found.n_states
    assert not totals[found.unseen].any()
    flat = found.Q.sum(axis=1) + found.R.sum(axis=1)
    assert np.abs(flat - 1.0).max(initial=0.0) <= 1e-15 * found.n_states


@given(chains())
def test_every_state_is_of_exactly_one_kind(found):
    kinds = [*found.transient, *found.unseen, *(s for states in found.absorbing.values() for s in states)]
    assert sorted(kinds) == list(range(found.n_states))


def test_absorbing_rows_become_rows_of_the_identity():
    assert np.array_equal(chain().transitions[1:], np.eye(3)[1:])
    assert chain().visited.all()


def test_classes_keep_the_order_given_and_unseen_comes_last():
    found = chain(absorbing={"completed": [2], "violated": [1]})
    assert found.class_names == ("completed", "violated", "unseen")
    assert found.R.tolist() == [[0.2, 0.3, 0.0]]
    assert found.class_index(None) == 0


def test_mass_into_an_unseen_state_is_its_own_column():
    found = AbsorbingChain(
        np.array([ROW, [0, 0, 0], [0, 0, 0]]), {"violated": [1]}, visited=[True, True, False]
    )
    assert found.unseen.tolist() == [2]
    assert found.R.tolist() == [[0.3, 0.2]]


def test_a_chain_is_read_only_and_stays_so_when_pickled():
    source = np.array([ROW, [0, 0, 0], [0, 0, 0]])
    found = AbsorbingChain(source, ENDS, names="abc")
    source[0, 0] = 9.0
    copy = pickle.loads(pickle.dumps(found))  # noqa: S301 - our own bytes
    assert copy.names == ("a", "b", "c")
    assert dict(copy.absorbing) == {"violated": (1,), "completed": (2,)}
    for value in (found, copy):
        assert value.transitions[0, 0] == 0.5
        with pytest.raises(ValueError, match="read-only"):
            value.transitions[0, 0] = 1.0
        with pytest.raises(TypeError):
            value.absorbing["violated"] = (0,)  # type: ignore[index]


def test_a_chain_says_what_it_is_made_of():
    assert repr(chain()) == "<AbsorbingChain of 3 states: 1 transient, 1 violated, 1 completed, 0 unseen>"


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (lambda: AbsorbingChain(np.zeros((2, 3)), {}), "square"),
        (lambda: chain([0.5, 0.3, 0.1]), "row of state 0 sums to 0.9"),
        (lambda: chain([0.5, 0.3, 0.2 + 1e-11]), "divide it by its sum"),
        (lambda: chain([1.5, -0.5, 0.0], names="abc"), "row of state a has a negative entry, -0.5"),
        (lambda: chain([np.nan, 0.5, 0.5]), "not finite"),
        (lambda: chain([np.inf, 0.5, 0.5]), "not finite"),
        (lambda: chain([0, 0, 0]), "row of state 0 is empty"),
        (lambda: chain(absorbing={"violated": [1], "completed": [1]}), "in both 'violated' and 'completed'"),
        (lambda: chain(absorbing={"violated": [3]}), r"state 3 of class 'violated' is outside 0 \.\. 2"),
        (lambda: chain(absorbing={"violated": [-1]}), "state -1"),
        (lambda: chain(absorbing={"violated": []}), "has no states"),
        (lambda: chain(absorbing={"unseen": [1]}), "choose another name"),
        (lambda: chain(absorbing={"violated": [0]}, names="abc"), "must not be left.*: a$"),
        (lambda: chain(names="ab"), "2 names were given for 3 states"),
        (lambda: chain(visited=[True]), "visited has shape"),
        (lambda: chain().class_index("lost"), "there is no class 'lost'; this chain has violated, completed"),
        (lambda: absorption_batch(np.eye(3), {"violated": [1]}), "shape"),
        (
            lambda: absorption_batch([[[0.5, 0.4], [0.0, 1.0]]], {"violated": [1]}),
            "row of state 0 sums to 0.9",
        ),
        (lambda: absorption_batch([[[0.5, 0.5], [1.0, 0.0]]], {"violated": [1]}), "must not be left"),
        (lambda: reachability(np.zeros((2, 3))), "square"),
    ],
)
def test_what_is_no_absorbing_chain_is_refused_by_name(attempt, message):
    with pytest.raises(ChainError, match=message):
        attempt()


TRAP = np.array([[0.5, 0.25, 0.0, 0.25], [0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])


@pytest.mark.parametrize("solve", [require_absorbing, absorption])
def test_states_that_cannot_be_absorbed_are_named(solve):
    with pytest.raises(NotAbsorbingError, match="reached from b, c;") as raised:
        solve(AbsorbingChain(TRAP, {"done": [3]}, names="abcd"))
    assert raised.value.states == (1, 2)


def test_the_trapped_states_can_be_asked_for_without_an_error():
    assert trapped(AbsorbingChain(TRAP, {"done": [3]})).tolist() == [1, 2]
    assert not trapped(chain()).size


def test_a_trap_in_one_chain_of_many_is_named():
    fine = TRAP.copy()
    fine[2] = [0, 0, 0, 1]
    with pytest.raises(NotAbsorbingError) as raised:
        absorption_batch(np.array([fine, TRAP]), {"done": [3]})
    assert raised.value.states == (1, 2)


def test_running_into_an_unseen_state_counts_as_absorption():
    require_absorbing(AbsorbingChain([[0, 1], [0, 0]], {}, visited=[True, False]))


def test_reachability_needs_as_many_steps_as_it_takes():
    line = np.diag(np.ones(32), 1)
    assert np.array_equal(reachability(line), np.triu(np.ones((33, 33), dtype=bool)))


def test_communicating_classes_partition_the_states():
    assert communicating_classes(TRAP) == ((0,), (1, 2), (3,))


@given(chains())
def test_states_communicate_exactly_when_each_reaches_the_other(found):
    reached = reachability(found.transitions)
    groups = communicating_classes(found.transitions)
    assert sorted(state for group in groups for state in group) == list(range(found.n_states))
    for group in groups:
        for state in range(found.n_states):
            assert (state in group) == (reached[group[0], state] and reached[state, group[0]])
