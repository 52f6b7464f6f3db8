"""Closed forms first, then what holds for every chain.

The elimination is held to 1e-13 relative per entry, a few hundred roundings of 1e-16. Where another figure
stands, the reason is beside it.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.markov.strategies import chains

from safetydrift.errors import ChainError
from safetydrift.markov import AbsorbingChain, absorption, absorption_batch
from safetydrift.markov.reference_chains import birth_death, gamblers_ruin, geometric, published_chain, stiff

ENTRYWISE = 1e-13
REFERENCES = {
    "fair ruin": gamblers_ruin(0.5, 20),
    "unfair ruin": gamblers_ruin(0.48, 20),
    "hopeless ruin": gamblers_ruin(0.05, 20),
    "geometric": geometric(0.03),
    "rarely left": geometric(1e-12),
    "hardly ever left": geometric(1e-15),
    "never left but for rounding": geometric(1e-18),
    "back and forth": stiff(0.2),
    "stiff": stiff(1e-12),
    "stiffer": stiff(1e-15),
    "beyond the precision": stiff(1e-20),
    "birth and death": birth_death([0.3, 0.2, 0.5], [0.0, 0.4, 0.1]),
    "climb against a slope": birth_death([1e-4] * 6, [0.0] + [0.9] * 5),
}
STIFF = {"rarely left", "hardly ever left", "stiff", "stiffer"}


@pytest.mark.parametrize("name", REFERENCES)
def test_every_entry_agrees_with_the_closed_form(name):
    reference = REFERENCES[name]
    found = absorption(reference.chain)
    assert found.probabilities[:, :-1] == pytest.approx(reference.probabilities, rel=ENTRYWISE)
    assert found.expected_steps == pytest.approx(reference.expected_steps, rel=ENTRYWISE)
    known = ~np.isnan(reference.variance_of_steps)
    assert found.variance_of_steps[known] == pytest.approx(reference.variance_of_steps[known], rel=ENTRYWISE)


@pytest.mark.parametrize("name", sorted(STIFF))
def test_plain_lapack_loses_what_elimination_keeps(name):
    reference = REFERENCES[name]
    moves = reference.chain.Q
    lapack = np.linalg.solve(np.eye(len(moves)) - moves, np.ones(len(moves)))
    ours = absorption(reference.chain).expected_steps
    lost = np.abs(lapack / reference.expected_steps - 1.0).max()
    assert lost > 1e-6
    assert np.abs(ours / reference.expected_steps - 1.0).max() < ENTRYWISE < lost


def test_small_probabilities_keep_their_digits():
    # From a stake of 1 the win has probability 1e-25; an absolute error of 1e-16 would hide it altogether.
    reference = gamblers_ruin(0.05, 20)
    assert reference.probabilities[0, 0] < 1e-24
    assert absorption(reference.chain).probabilities[0, 0] == pytest.approx(
        reference.probabilities[0, 0], rel=ENTRYWISE, abs=0.0
    )


HAND = AbsorbingChain(
    [[0.5, 0.25, 0.25, 0.0], [0.25, 0.25, 0.25, 0.25], [0.0] * 4, [0.0] * 4],
    {"violated": [2], "completed": [3]},
)


def test_a_chain_solved_by_hand():
    # x = 1/2 x + 1/4 y + 1/4 and y = 1/4 x + 1/4 y + 1/4 give x = 4/5, y = 3/5; likewise t = (16/5, 12/5).
    found = absorption(HAND)
    assert found.probability("violated") == pytest.approx([0.8, 0.6, 1.0, 0.0], rel=1e-15)
    assert found.expected_steps == pytest.approx([3.2, 2.4], rel=1e-15)
    assert found.fundamental() == pytest.approx(np.array([[2.4, 0.8], [0.8, 1.6]]), rel=1e-15)
    # (N b)_x = 2.4 * 0.8 + 0.8 * 0.6 = 2.4, over 0.8.
    assert found.expected_steps_given("violated")[0] == pytest.approx(3.0, rel=1e-15)


def exact(chain):
    """Solve (I - Q) X = [R, 1] in fractions of the stored floats; the diagonal is what a row leaves to it."""
    n = len(chain.transient)
    moves = [[Fraction(float(value)) for value in row] for row in chain.Q]
    right = [[Fraction(float(value)) for value in row] + [Fraction(1)] for row in chain.R]
    for i in range(n):
        left = sum(right[i][:-1]) + sum(moves[i][j] for j in range(n) if j != i)
        moves[i][i] = Fraction(1) - left
    system = [[(i == j) - moves[i][j] for j in range(n)] + right[i] for i in range(n)]
    for i in range(n):
        pivot = next(k for k in range(i, n) if system[k][i])
        system[i], system[pivot] = system[pivot], system[i]
        system[i] = [value / system[i][i] for value in system[i]]
        for k in range(n):
            if k != i:
                system[k] = [a - system[k][i] * b for a, b in zip(system[k], system[i], strict=True)]
    return np.array([[float(value) for value in row[n:]] for row in system]).reshape(
        n, len(chain.class_names) + 1
    )


@given(chains())
def test_every_entry_agrees_with_exact_fractions(chain):
    found = absorption(chain)
    expected = exact(chain)
    assert found.probabilities == pytest.approx(expected[:, :-1], rel=ENTRYWISE, abs=0.0)
    assert found.expected_steps == pytest.approx(expected[:, -1], rel=ENTRYWISE, abs=0.0)


@given(chains())
def test_class_probabilities_and_unseen_sum_to_one(chain):
    totals = absorption(chain).probabilities.sum(axis=1)
    assert np.abs(totals - 1.0).max(initial=0.0) < 1e-14


@given(chains(), st.randoms(use_true_random=False))
def test_permuting_states_permutes_answers(chain, random):
    order = list(range(chain.n_states))
    random.shuffle(order)
    renamed = {name: [order.index(state) for state in states] for name, states in chain.absorbing.items()}
    permuted = AbsorbingChain(chain.transitions[np.ix_(order, order)], renamed, visited=chain.visited[order])
    for name in chain.class_names:
        assert absorption(permuted).probability(name) == pytest.approx(
            absorption(chain).probability(name)[order], rel=ENTRYWISE, abs=0.0
        )


@given(chains())
def test_variance_is_the_classical_formula(chain):
    found = absorption(chain)
    t = found.expected_steps
    classical = 2.0 * found.fundamental() @ t - t - t**2
    # The classical formula subtracts terms of the order of t², which is what its digits are lost against.
    assert np.abs(found.variance_of_steps - classical).max(initial=0.0) <= 1e-13 * t.max(initial=1.0) ** 2


@given(chains())
def test_conditional_steps_average_to_the_expected_steps(chain):
    found = absorption(chain)
    parts = [
        np.nan_to_num(found.expected_steps_given(name)) * found.probabilities[:, column]
        for column, name in enumerate(chain.class_names)
    ]
    assert sum(parts) == pytest.approx(found.expected_steps, rel=ENTRYWISE)


def test_steps_given_a_class_that_cannot_be_reached_are_undefined():
    assert np.isnan(absorption(geometric(0.5).chain).expected_steps_given("unseen")).all()


def test_simulated_runs_agree():
    rng = np.random.default_rng(20)
    runs = 200_000
    state = np.zeros(runs, dtype=int)
    steps = np.zeros(runs)
    ladder = HAND.transitions.cumsum(axis=1)
    while (inside := state < 2).any():
        steps += inside
        state[inside] = (rng.random(inside.sum())[:, None] > ladder[state[inside]]).sum(axis=1)
    found = absorption(HAND)
    p, t, v = found.probabilities[0, 0], found.expected_steps[0], found.variance_of_steps[0]
    # Four standard errors: with the seed fixed this either always holds or never does.
    assert abs((state == 2).mean() - p) < 4.0 * np.sqrt(p * (1.0 - p) / runs)
    assert abs(steps.mean() - t) < 4.0 * np.sqrt(v / runs)
    assert steps.var() == pytest.approx(v, rel=0.03)


@given(st.lists(chains(max_transient=4), min_size=1, max_size=3), st.sampled_from([0.0, 1e-12]))
def test_a_batch_gives_each_chain_its_own_answer(members, tolerance):
    for chain in members:
        stack = np.array([chain.transitions] * 40)
        stack[1::2, chain.transient] = 0.0  # every second chain: nothing seen at all
        found = absorption_batch(stack, chain.absorbing, tolerance=tolerance)
        alone = absorption(chain)
        for column, name in enumerate(chain.class_names):
            # Below 1e-12 LAPACK is accepted, with an absolute error of that order.
            assert found.probabilities[0, :, column] == pytest.approx(
                alone.probability(name), rel=ENTRYWISE, abs=tolerance
            )
        assert found.expected_steps[38, chain.transient] == pytest.approx(alone.expected_steps, rel=1e-12)
        assert not found.expected_steps[0, chain.unseen].any()
        assert (found.probabilities[1, chain.classes.open, -1] == 1.0).all()
        assert not found.expected_steps[1].any()


@pytest.mark.parametrize("name", sorted(STIFF | {"never left but for rounding", "beyond the precision"}))
def test_a_stiff_chain_in_a_batch_is_solved_by_elimination(name):
    reference = REFERENCES[name]
    easy = (geometric if "left" in name else stiff)(0.5).chain
    found = absorption_batch([easy.transitions, reference.chain.transitions], reference.chain.absorbing)
    assert found.eliminated[1]
    assert found.expected_steps[1, reference.chain.transient] == pytest.approx(
        reference.expected_steps, rel=ENTRYWISE
    )


def test_a_well_behaved_batch_keeps_the_lapack_solution():
    chain = gamblers_ruin(0.5, 20).chain
    assert not absorption_batch(chain.transitions[None], chain.absorbing).eliminated.any()


def test_an_expectation_beyond_floating_point_is_an_error_and_no_infinity():
    slope = np.diag(np.full(3, 1e-150), 1) + np.diag([1.0, 1.0, 0.0], -1) + np.diag([1.0, 0.0, 0.0, 0.0])
    with pytest.raises(ChainError, match="more steps than a float can count"):
        absorption(AbsorbingChain(slope, {"top": [3]}))
    with pytest.raises(ChainError, match="more steps than a float can count"):
        _ = absorption(AbsorbingChain([[1.0, 1e-200], [0.0, 1.0]], {"out": [1]})).variance_of_steps


def test_a_chain_without_transient_states_has_nothing_to_report():
    found = absorption(AbsorbingChain(np.eye(2), {"done": [0, 1]}))
    assert found.probabilities.shape == (0, 2)
    assert found.variance_of_steps.shape == (0,)
    assert found.probability("done").tolist() == [1.0, 1.0]


def test_results_are_read_only():
    found = absorption(HAND)
    with pytest.raises(ValueError, match="read-only"):
        found.probabilities[0, 0] = 0.0


def test_long_results_show_their_first_states_and_count_the_rest():
    shown = repr(absorption(gamblers_ruin(0.5, 20).chain)).splitlines()
    assert len(shown) == 14
    assert shown[-1] == "... and 7 more"


def test_the_published_chain_is_always_violated_in_the_end():
    assert absorption(published_chain().chain).probability() == pytest.approx(np.ones(5), rel=1e-15)


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: geometric(0.0),
        lambda: gamblers_ruin(1.0, 5),
        lambda: birth_death([0.5, 0.5], [0.1, 0.1]),
        lambda: birth_death([0.5], [0.0, 0.1]),
    ],
)
def test_reference_chains_refuse_what_they_have_no_formula_for(attempt):
    with pytest.raises(ChainError):
        attempt()
