import numpy as np
import pytest

from safetydrift.errors import ChainError
from safetydrift.markov import AbsorbingChain, TransitionCounts, absorption, bootstrap_horizons, shrunk
from safetydrift.markov.spread import absorption_variance, beta_interval, horizon_variance

ENDS = {"violated": [4], "completed": [5]}


def example(times: int = 1):
    """Four states in a circle with two ways out, and the counts behind them."""
    rng = np.random.default_rng(0)
    counts = np.zeros((6, 6), dtype=np.int64)
    counts[:4] = times * rng.integers(1, 12, (4, 6))
    chain = shrunk(TransitionCounts(counts), ENDS, towards=np.full((6, 6), 1 / 6), strength=6.0)
    weights = np.append(counts[:4].sum(axis=1) + 6.0, [0.0, 0.0])
    return TransitionCounts(counts), chain, weights


def draws(chain, weights, size, seed=1):
    rng = np.random.default_rng(seed)
    drawn = np.tile(chain.transitions, (size, 1, 1))
    for row in chain.transient:
        drawn[:, row] = rng.dirichlet(weights[row] * chain.transitions[row], size)
    return drawn


def test_one_step_has_the_variance_of_the_beta_distribution():
    _, chain, weights = example()
    p = chain.transitions[:4, 4]
    assert horizon_variance(chain, weights, 1)[1, :4] == pytest.approx(p * (1 - p) / (weights[:4] + 1))
    assert not horizon_variance(chain, weights, 3)[:, 4:].any()
    assert not horizon_variance(chain, weights, 3)[0].any()


def test_with_much_evidence_variances_are_those_of_drawn_chains():
    _, chain, weights = example(times=30)
    drawn = draws(chain, weights, 20_000)
    ours = horizon_variance(chain, weights, 5)
    column = np.zeros((20_000, 6, 1))
    column[:, 4] = 1.0
    for horizon in range(1, 6):
        column = drawn @ column
        # the variance of 20,000 draws is known to one per cent
        assert ours[horizon, :4] == pytest.approx(column[:, :4, 0].var(axis=0), rel=0.05)
    ends = np.linalg.solve(np.eye(4) - drawn[:, :4, :4], drawn[:, :4, 4:5])[..., 0]
    at_the_end = absorption_variance(absorption(chain), weights)
    assert at_the_end[:4] == pytest.approx(ends.var(axis=0), rel=0.05)
    assert not at_the_end[4:].any()


def test_intervals_are_near_the_quantiles_of_drawn_chains_also_with_little_evidence():
    counts, chain, weights = example()
    pseudo = np.zeros((6, 6))
    pseudo[:4] = 1.0
    drawn = bootstrap_horizons(
        counts, ENDS, 8000, 5, np.random.default_rng(2), pseudo_counts=pseudo, levels=[0.05, 0.95]
    )
    within = np.array([np.linalg.matrix_power(chain.transitions, h)[:, 4] for h in range(6)])
    for horizon in (1, 3, 5):
        low, high = beta_interval(within[horizon], horizon_variance(chain, weights, 5)[horizon])
        theirs = drawn.within(horizon)
        assert np.abs(low - theirs[0])[:4].max() < 0.015
        assert np.abs(high - theirs[1])[:4].max() < 0.015


def test_the_fundamental_matrix_may_be_given():
    _, chain, weights = example()
    ends = absorption(chain)
    assert absorption_variance(ends, weights, ends.fundamental()) == pytest.approx(
        absorption_variance(ends, weights), rel=1e-9
    )


def test_unseen_states_add_no_uncertainty_of_their_own():
    chain = AbsorbingChain(
        [[0.2, 0.5, 0.3], [0.0, 0.0, 0.0], [0.0] * 3], {"violated": [2]}, visited=[True, False, True]
    )
    variance = horizon_variance(chain, [9.0, 0.0, 0.0], 2)
    assert variance[1, 0] == pytest.approx(0.3 * 0.7 / 10)
    assert not variance[:, 1].any()


def test_intervals_of_what_is_certain_are_points_and_of_what_is_unknown_unknown():
    low, high = beta_interval([0.0, 1.0, 0.3, np.nan], [0.0, 0.0, 0.0, 0.1])
    assert low[:3].tolist() == high[:3].tolist() == [0.0, 1.0, 0.3]
    assert np.isnan([low[3], high[3]]).all()


def test_intervals_hold_their_mean_also_where_no_distribution_is_so_wide():
    means = np.linspace(0.01, 0.99, 25)
    for variance in (1e-12, 1e-4, 0.05, 0.3):
        low, high = beta_interval(means, np.full(25, variance))
        assert ((low >= 0.0) & (low <= means) & (means <= high) & (high <= 1.0)).all()


def test_weights_that_do_not_fit_are_refused():
    _, chain, weights = example()
    with pytest.raises(ChainError, match="a weight is needed for each of the 6 states"):
        horizon_variance(chain, weights[:3], 2)
    with pytest.raises(ChainError, match="none below 0"):
        horizon_variance(chain, -weights, 2)
