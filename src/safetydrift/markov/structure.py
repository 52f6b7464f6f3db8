"""The graph of a chain: which states can reach which, whatever the probabilities.

State ``i`` *reaches* ``j`` when some number of steps, none included, leads from ``i`` to ``j`` with positive
probability. States that reach each other *communicate*; communicating classes partition the states. A chain
absorbs with probability one exactly when every transient state reaches an absorbing class, and this is a
question about the graph: it is asked before any system is solved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from safetydrift.errors import ChainError, NotAbsorbingError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from safetydrift.markov._arrays import BoolArray, FloatArray, IntArray
    from safetydrift.markov.chain import AbsorbingChain


def reachability(transitions: ArrayLike) -> BoolArray:
    """Return which states can be reached from which, in any number of steps.

    Parameters
    ----------
    transitions : (n, n) array
        Probabilities, counts or booleans; only what is positive matters.

    Returns
    -------
    (n, n) array of bool
        Entry ``[i, j]`` is True if ``i`` reaches ``j``. The diagonal is True.

    Raises
    ------
    ChainError
        If the array is not square.
    """
    positive = np.asarray(transitions) > 0
    if positive.ndim != 2 or positive.shape[0] != positive.shape[1]:  # noqa: PLR2004
        raise ChainError(f"a transition matrix is square, not of shape {positive.shape}")
    closure = positive | np.eye(len(positive), dtype=np.bool_)
    for _ in range(len(closure).bit_length()):  # each squaring doubles the number of steps allowed
        closure = (closure.astype(np.float32) @ closure.astype(np.float32)) > 0
    return closure


def communicating_classes(transitions: ArrayLike) -> tuple[tuple[int, ...], ...]:
    """Return the sets of states that reach each other, ordered by their first member.

    Parameters
    ----------
    transitions : (n, n) array
        As for `reachability`.

    Examples
    --------
    >>> communicating_classes([[0, 1, 0], [1, 0, 1], [0, 0, 1]])
    ((0, 1), (2,))
    """
    closure = reachability(transitions)
    mutual = closure & closure.T
    return tuple(dict.fromkeys(tuple(np.flatnonzero(row).tolist()) for row in mutual))


def reaches_exit(moves: FloatArray, exits: FloatArray) -> BoolArray:
    """Return which transient states can be absorbed, for a stack of chains.

    Parameters
    ----------
    moves : (k, m, m) array
        ``Q`` of each chain.
    exits : (k, m) array
        The probability of absorption in the next step.

    Returns
    -------
    (k, m) array of bool
    """
    reached = exits > 0.0
    while True:
        wider = reached | ((moves @ reached[..., None].astype(np.float64))[..., 0] > 0.0)
        if np.array_equal(wider, reached):
            return reached
        reached = wider


def trapped(chain: AbsorbingChain) -> IntArray:
    """Return the transient states that reach neither an absorbing class nor an unseen state, ascending."""
    stuck: IntArray = chain.transient[~reaches_exit(chain.Q[None], chain.R.sum(axis=1)[None])[0]]
    return stuck


def require_absorbing(chain: AbsorbingChain) -> None:
    """Refuse a chain in which some transient state can never be absorbed.

    Running into an `unseen` state counts as absorption: the chain knows nothing beyond it.

    Raises
    ------
    NotAbsorbingError
        Naming the states that cannot reach an absorbing class.
    """
    stuck = trapped(chain)
    if stuck.size:
        raise NotAbsorbingError(tuple(stuck.tolist()), tuple(chain.names[state] for state in stuck))
