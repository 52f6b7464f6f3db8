from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.markov.strategies import chains

from safetydrift.errors import ChainError, HorizonError
from safetydrift.markov import (
    AbsorbingChain,
    TransitionCounts,
    absorption,
    bootstrap_horizons,
    horizon_batch,
    horizon_table,
    maximum_likelihood,
)
from safetydrift.markov.reference_chains import geometric, published_chain

PUBLISHED = published_chain().chain


def test_the_published_chain_within_5_steps_by_exact_fractions():
    matrix = [[Fraction(str(round(value, 2))) for value in row] for row in PUBLISHED.transitions.tolist()]
    column = [Fraction(int(state == 4)) for state in range(5)]
    for _ in range(5):
        column = [sum((p * v for p, v in zip(row, column, strict=True)), Fraction(0)) for row in matrix]
    assert [round(float(value), 3) for value in (column[1], column[3])] == [0.454, 0.304]
    assert horizon_table(PUBLISHED).within(5) == pytest.approx([float(v) for v in column], rel=1e-14)


def test_the_geometric_chain_is_left_within_h_steps_as_the_formula_says():
    table = horizon_table(geometric(0.3).chain, 10)
    expected = [1.0 - 0.7**h for h in range(11)]
    assert table.probability()[:, 0] == pytest.approx(expected, rel=1e-14)


@given(chains(), st.integers(0, 12))
def test_each_horizon_follows_from_the_one_before(chain, max_horizon):
    table = horizon_table(chain, max_horizon)
    closed = chain.transitions.copy()
    closed[chain.unseen, chain.unseen] = 1.0
    for name, inside in zip(chain.class_names, chain.membership.T, strict=True):
        found = table.probability(name)
        assert np.array_equal(found[0], inside)
        for h in range(max_horizon):
            assert found[h + 1] == pytest.approx(closed @ found[h], rel=1e-14, abs=0.0)


@given(chains())
def test_probabilities_grow_with_the_horizon_without_exception(chain):
    table = horizon_table(chain, 60)
    assert (np.diff(table.probabilities, axis=1) >= 0.0).all()
    assert (table.probabilities <= 1.0).all()
    assert (table.probabilities.sum(axis=0) <= 1.0 + 1e-14 * 60).all()


@given(chains())
def test_a_long_horizon_tends_to_the_absorption_probability(chain):
    ends = absorption(chain)
    slowest = ends.expected_steps.max(initial=1.0)
    assume(slowest < 20)
    # By Markov's inequality half of the mass at most is left after 2 t steps, so 80 t leave less than 1e-12.
    horizon = int(80 * np.ceil(slowest))
    table = horizon_table(chain, horizon)
    for name in chain.class_names:
        assert np.abs(table.within(horizon, name) - ends.probability(name)).max() < 2e-12


@given(chains())
def test_bounds_enclose_whatever_the_unseen_states_turn_out_to_do(chain):
    lower, upper = horizon_table(chain, 5).bounds(5)
    for fate in ("violated", "completed"):
        matrix = chain.transitions.copy()
        matrix[chain.unseen] = 0.0
        matrix[chain.unseen, chain.absorbing[fate][0]] = 1.0
        actual = horizon_table(AbsorbingChain(matrix, chain.absorbing), 5).within(5)
        assert (lower <= actual + 1e-15).all()
        assert (actual <= upper + 1e-15).all()


@given(chains())
def test_a_stack_of_chains_gives_each_its_own_table(chain):
    stack = np.array([chain.transitions] * 40)
    stack[1::2, chain.transient] = 0.0
    found = horizon_batch(stack, chain.absorbing, 4)
    assert found[38] == pytest.approx(horizon_table(chain, 4).probabilities, rel=1e-14, abs=0.0)
    assert (found[39, -1][:, chain.classes.open] == 1.0).all()


def test_a_stack_in_which_everything_was_seen_has_no_unseen_mass():
    found = horizon_batch(PUBLISHED.transitions[None], PUBLISHED.absorbing, 10)
    assert found[0, 0] == pytest.approx(horizon_table(PUBLISHED).probability(), rel=1e-14, abs=0.0)
    assert not found[0, 1].any()


def test_points_of_no_return_are_the_states_at_or_above_the_probability():
    table = horizon_table(PUBLISHED)
    assert table.points_of_no_return(5, 0.45) == (1,)
    assert table.points_of_no_return(5, float(table.within(5)[3])) == (1, 2, 3)
    assert table.points_of_no_return() == ()


def test_a_horizon_beyond_the_table_says_how_to_build_a_longer_one():
    table = horizon_table(PUBLISHED, 10)
    with pytest.raises(HorizonError, match=r"horizon 12 exceeds .* 10; build it with max_horizon>=12"):
        table.within(12)
    with pytest.raises(HorizonError, match="0 or more, not -1"):
        table.within(-1)
    with pytest.raises(HorizonError):
        horizon_table(PUBLISHED, -1)
    with pytest.raises(ChainError, match="no class 'completed'"):
        table.within(5, "completed")


def test_a_table_prints_a_table_and_refuses_writing():
    table = horizon_table(PUBLISHED)
    safe = "  ".join(f"{table.within(h)[0]:.3f}" for h in (1, 2, 5, 10))
    assert repr(table).splitlines()[:2] == [
        "violated within      1      2      5     10",
        f"safe             {safe}",
    ]
    with pytest.raises(ValueError, match="read-only"):
        table.within(5)[0] = 0.0


COUNTS = TransitionCounts([[50, 20, 10, 0], [0, 30, 5, 5], [0, 0, 0, 0], [0, 0, 0, 0]])
NOTHING = TransitionCounts(0 * COUNTS.matrix)
ENDS = {"violated": [2], "completed": [3]}


def test_bootstrap_medians_are_near_the_estimate_and_quantiles_ordered():
    many = TransitionCounts(100 * COUNTS.matrix)
    found = bootstrap_horizons(many, ENDS, 4000, 5, np.random.default_rng(1))
    estimate = horizon_table(maximum_likelihood(many, ENDS), 5).within(5)
    low, middle, high = found.within(5)
    assert (low <= middle).all()
    assert (middle <= high).all()
    # A median of 4000 draws of spread 0.005 has a standard error of 0.0001.
    assert np.abs(middle - estimate).max() < 0.0005
    assert (low[:2] < estimate[:2]).all()
    assert (estimate[:2] < high[:2]).all()


def test_one_step_draws_follow_the_beta_distribution():
    # The cell is Beta(10, 70) with variance (1/8)(7/8)/81, and nearly normal: one standard deviation lies
    # between the 16th percentile and the median. 40 000 draws place a quantile to about 0.0003.
    found = bootstrap_horizons(
        COUNTS, ENDS, 40_000, 1, np.random.default_rng(2), levels=[0.1587, 0.5, 0.8413]
    )
    low, middle, high = found.within(1)[:, 0]
    spread = np.sqrt(0.125 * 0.875 / 81)
    assert (high - low) / 2 == pytest.approx(spread, rel=0.02)
    assert middle == pytest.approx(9.6667 / 79.3333, abs=0.001)  # (a - 1/3)/(a + b - 2/3)


def test_structural_zeros_stay_zero_in_every_draw():
    found = bootstrap_horizons(COUNTS, ENDS, 500, 1, np.random.default_rng(3), levels=[1.0])
    assert found.within(1, "completed")[0, 0] == 0.0
    assert found.within(1, "completed")[0, 1] > 0.0


def test_an_unseen_row_is_unseen_in_every_draw_and_a_prior_makes_it_known():
    counts = TransitionCounts([[1, 1, 1], [0, 0, 0], [0, 0, 0]])
    rng = np.random.default_rng(4)
    found = bootstrap_horizons(counts, {"violated": [2]}, 50, 3, rng)
    assert found.within(0, "unseen")[:, 1].tolist() == [1.0, 1.0, 1.0]
    assert (found.within(1, "unseen")[:, 0] > 0.0).all()
    known = bootstrap_horizons(counts, {"violated": [2]}, 50, 3, rng, pseudo_counts=np.ones((3, 3)))
    assert not known.within(3, "unseen").any()


def test_draws_depend_on_the_generator_alone():
    first, again, other = (
        bootstrap_horizons(COUNTS, ENDS, 600, 3, np.random.default_rng(seed)).values for seed in (5, 5, 6)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=4))
def test_quantiles_are_numpys(levels):
    # All draws of this chain are one number per draw, so the quantiles can be taken by numpy as well.
    found = bootstrap_horizons(COUNTS, ENDS, 90, 1, np.random.default_rng(7), levels=levels)
    every = bootstrap_horizons(COUNTS, ENDS, 90, 1, np.random.default_rng(7), levels=np.linspace(0, 1, 90))
    assert found.within(1)[:, 0] == pytest.approx(np.quantile(every.within(1)[:, 0], levels), rel=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"draws": 0}, "at least one draw"),
        ({"levels": [1.5]}, "between 0 and 1"),
        ({"pseudo_counts": np.ones((2, 2))}, "shape"),
        ({"pseudo_counts": np.full((4, 4), -1.0)}, "not negative"),
        (
            {"counts": TransitionCounts(0 * COUNTS.matrix), "pseudo_counts": np.full((4, 4), 1e-3)},
            "below 0.1",
        ),
    ],
)
def test_a_bootstrap_that_makes_no_sense_is_refused(change, message):
    arguments = {"counts": COUNTS, "absorbing": ENDS, "draws": 5, "max_horizon": 2}
    with pytest.raises(ChainError, match=message):
        bootstrap_horizons(**(arguments | change | {"rng": np.random.default_rng(0)}))


def test_quantiles_refuse_an_unknown_class():
    found = bootstrap_horizons(COUNTS, ENDS, 5, 2, np.random.default_rng(0))
    with pytest.raises(ChainError, match="no class 'lost'"):
        found.within(1, "lost")
    with pytest.raises(HorizonError, match="max_horizon>=3"):
        found.within(3)
