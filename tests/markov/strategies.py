"""Hypothesis strategies for counts, supports and chains.

Chains have monotone support: states are numbered so that no step leads far down, as where exposure only
grows.
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from safetydrift.markov import AbsorbingChain, TransitionCounts


@st.composite
def sequences(draw, n_states: int, max_runs: int = 8):
    """Runs of states; empty ones and single states included."""
    run = st.lists(st.integers(0, n_states - 1), max_size=12)
    return draw(st.lists(run, max_size=max_runs))


@st.composite
def supports(draw, n_states: int):
    """Allowed transitions: up, stay, or one down."""
    upwards = np.triu(np.ones((n_states, n_states), dtype=bool), -1)
    cells = draw(st.lists(st.booleans(), min_size=n_states**2, max_size=n_states**2))
    return upwards & np.array(cells).reshape(n_states, n_states)


@st.composite
def counts(draw, n_states: int, max_count: int = 9):
    """Counts on a monotone support, with the last two states never left."""
    support = draw(supports(n_states))
    values = draw(st.lists(st.integers(0, max_count), min_size=n_states**2, max_size=n_states**2))
    matrix = np.where(support, np.array(values).reshape(n_states, n_states), 0)
    matrix[-2:] = 0
    return TransitionCounts(matrix)


@st.composite
def chains(draw, max_transient: int = 6):
    """Absorbing chains with two classes, rows of any sparsity, and some states without observations."""
    n_transient = draw(st.integers(1, max_transient))
    n_states = n_transient + 2
    support = draw(supports(n_states))
    weights = draw(
        st.lists(st.floats(0.01, 1.0), min_size=n_states**2, max_size=n_states**2).map(
            lambda values: np.array(values).reshape(n_states, n_states)
        )
    )
    matrix = np.where(support, weights, 0.0)
    seen = np.array(draw(st.lists(st.booleans(), min_size=n_states, max_size=n_states)))
    # Every seen state has a way up, so that a run is bound to end.
    matrix[np.arange(n_states - 2), np.arange(1, n_states - 1)] += 0.05
    matrix[~seen] = 0.0
    matrix[-2:] = 0.0
    totals = matrix.sum(axis=1, keepdims=True)
    matrix = np.divide(matrix, totals, out=np.zeros_like(matrix), where=totals > 0)
    absorbing = {"violated": [n_states - 2], "completed": [n_states - 1]}
    return AbsorbingChain(matrix, absorbing, visited=totals[:, 0] > 0)
