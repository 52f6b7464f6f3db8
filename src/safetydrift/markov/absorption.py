"""Where a chain ends, and when: absorption probabilities and the number of steps before absorption.

With the canonical form of `safetydrift.markov.chain`, ``N = (I - Q)^-1`` is the *fundamental matrix*: its
entry ``n_ij`` is the expected number of visits to ``j`` of a run that starts in ``i``. From it follow

- the absorption probabilities  ``B = N R``, one column per class,
- the expected steps            ``t = N 1``,
- their variance                ``v = N d`` with ``d_i = sum_j P_ij (t_j - t_i + 1)^2``, where ``t`` is 0 at
  absorption: the law of total variance, unrolled over the run, and
- the expected steps given that the run ends in a class, ``(N b) / b`` for that class's column ``b`` of ``B``.

All of them solve ``(I - Q) X = Y`` with some ``Y >= 0``. ``N`` itself is only formed when asked for.

How exact
---------
A chain that rarely leaves its transient states makes ``I - Q`` nearly singular. With an escape rate of 1e-15,
``1 - p_ii`` can be wrong by 5 per cent, and whatever a solver does with it afterwards, so is the answer.
The digits are not lost in the problem, only in the subtraction: ``1 - p_ii`` is also the sum of the other
entries of the row. `eliminate` therefore never subtracts. It removes states one after the other, as
Grassmann, Taksar and Heyman do for stationary distributions, and carries the probability of absorption along
as a separate number, which is how Alfa, Xue and Ye represent a diagonally dominant M-matrix. With ``r`` the
probability of absorption in the next step, state ``s``, the last that is left, goes like this::

    leave               = r_s + sum_{j < s} q_sj            (never 1 - q_ss)
    q_sj, r_s, y_s     /= leave                             for j < s
    q_ij, r_i, y_i     += q_is (q_sj, r_s, y_s)             for all i != s and j < s

Rows that went before are updated too (Gauss-Jordan), so that in the end ``y`` is the solution. Sums, products
and quotients of non-negative numbers keep their relative accuracy, so every entry of ``X``, however small or
large, is right to a small multiple of the machine precision.

For stacks of many well-behaved chains the LAPACK solver is several times faster, and an error bound comes
with its answer. It solves ``(I - Q + E) x = y`` exactly for some ``E`` of the order of the machine precision
eps. As ``N >= 0``, the absorption probabilities are then off by at most a small multiple of ``eps max(t)``,
and the expected steps by that relative to themselves. Where this exceeds a tolerance the chain is solved
again, by elimination.

Literature
----------
J. G. Kemeny and J. L. Snell, *Finite Markov Chains*, 1960, theorems 3.2.4 (N), 3.3.5 (t), 3.3.7 (B).
W. K. Grassmann, M. I. Taksar and D. P. Heyman, "Regenerative analysis and steady state distributions for
Markov chains", Operations Research 33 (1985), 1107-1116.
A. S. Alfa, J. Xue and Q. Ye, "Accurate computation of the smallest eigenvalue of a diagonally dominant
M-matrix", Mathematics of Computation 71 (2002), 217-236.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from safetydrift.errors import ChainError, NotAbsorbingError
from safetydrift.markov._arrays import CHUNK, BoolArray, FloatArray, ReadOnly, text_table
from safetydrift.markov.chain import Absorbing, AbsorbingChain, AbsorbingClasses, close, matrix_stack
from safetydrift.markov.structure import reaches_exit, require_absorbing

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

TOLERANCE = 1e-12
"""The largest ``eps max(t)`` at which a stack keeps the LAPACK solution; reached at 4,500 expected steps."""


@dataclass(frozen=True, eq=False, repr=False)
class Absorption(ReadOnly):
    """How the runs of a chain end. Rows are its transient states, in the order of ``chain.transient``.

    Attributes
    ----------
    chain
        The chain.
    probabilities : (t, classes) array
        The probability of ending in each class of ``chain.class_names``. Rows sum to one; mass in ``unseen``
        has run into a state that was never departed from.
    expected_steps : (t,) array
        Steps until absorption in any class, ``unseen`` included.
    """

    chain: AbsorbingChain
    probabilities: FloatArray
    expected_steps: FloatArray

    def probability(self, class_name: str | None = None) -> FloatArray:
        """Return the probability of ending in a class from every state of the chain, shape (n,).

        Parameters
        ----------
        class_name
            The class; the chain's first if left out.

        Raises
        ------
        ChainError
            If there is no such class.
        """
        column = self.chain.class_index(class_name)
        everywhere = self.chain.membership[:, column].copy()
        everywhere[self.chain.transient] = self.probabilities[:, column]
        return everywhere

    @cached_property
    def variance_of_steps(self) -> FloatArray:
        """Variance of the steps until absorption, shape (t,)."""
        t = self.expected_steps
        exits = self.chain.R.sum(axis=1)
        with np.errstate(over="ignore"):  # what overflows here is refused by the solver
            spread = (self.chain.Q * (t - t[:, None] + 1.0) ** 2).sum(axis=1) + exits * (1.0 - t) ** 2
        return self._solve(spread[:, None])[:, 0]

    def expected_steps_given(self, class_name: str | None = None) -> FloatArray:
        """Return the expected steps of the runs that end in a class, shape (t,).

        Undefined, and therefore ``nan``, where no run does.

        Parameters
        ----------
        class_name
            The class; the chain's first if left out.

        Raises
        ------
        ChainError
            If there is no such class.
        """
        ends = self.probabilities[:, self.chain.class_index(class_name)]
        together = self._solve(ends[:, None])[:, 0]
        return np.divide(together, ends, out=np.full_like(ends, np.nan), where=ends > 0.0)

    def fundamental(self, tolerance: float = 0.0) -> FloatArray:
        """Return ``N``, the expected visits to transient states (columns) from each (rows), shape (t, t).

        Parameters
        ----------
        tolerance
            A relative error up to which LAPACK is trusted, which is several times faster; by default it is not.
        """
        identity = np.eye(len(self.chain.transient))
        if np.finfo(np.float64).eps * self.expected_steps.max(initial=0.0) < tolerance:
            visits = np.linalg.solve(identity - self.chain.Q, identity).astype(np.float64, copy=False)
            return np.maximum(visits, 0.0)
        return self._solve(identity)

    def _solve(self, right: FloatArray) -> FloatArray:
        return eliminate(self.chain.Q, self.chain.R.sum(axis=1), right)

    def __repr__(self) -> str:
        rows = [
            [self.chain.names[state], *(f"{p:.3f}" for p in row), f"{steps:.4g}"]
            for state, row, steps in zip(
                self.chain.transient, self.probabilities, self.expected_steps, strict=True
            )
        ]
        return text_table(["absorbed from", *self.chain.class_names, "expected steps"], rows)


@dataclass(frozen=True, eq=False)
class AbsorptionBatch(ReadOnly):
    """How the runs of many chains end.

    Attributes
    ----------
    class_names : tuple of str
        The declared classes, then ``"unseen"``.
    probabilities : (k, n, classes) array
        The probability of ending in each class, from every state of every chain; 1 where the state is in it.
    expected_steps : (k, n) array
        Steps until absorption; 0 for absorbing and unseen states.
    eliminated : (k,) array of bool
        The chains whose LAPACK solution was not trusted, and which were solved by elimination.
    """

    class_names: tuple[str, ...]
    probabilities: FloatArray
    expected_steps: FloatArray
    eliminated: BoolArray


def absorption(chain: AbsorbingChain) -> Absorption:
    """Return where the runs of a chain end and how long they take, by subtraction-free elimination.

    Every probability and every expectation is accurate relative to itself, however rarely the chain is left;
    a class that cannot be reached has probability zero exactly.

    Raises
    ------
    NotAbsorbingError
        If transient states cannot reach any absorbing class, naming them.
    ChainError
        If an expectation exceeds what a float can hold.

    Examples
    --------
    >>> chain = AbsorbingChain(
    ...     [[0.5, 0.25, 0.25, 0], [0, 0.5, 0.25, 0.25], [0] * 4, [0] * 4],
    ...     {"violated": [2], "completed": [3]},
    ...     names=["start", "exposed", "violated", "completed"],
    ... )
    >>> absorption(chain)
    absorbed from  violated  completed  unseen  expected steps
    start             0.750      0.250   0.000               3
    exposed           0.500      0.500   0.000               2
    """
    require_absorbing(chain)
    right = np.column_stack([chain.R, np.ones(len(chain.R))])
    solution = eliminate(chain.Q, chain.R.sum(axis=1), right)
    return Absorption(chain, solution[:, :-1], solution[:, -1])


def absorption_batch(
    transitions: ArrayLike, absorbing: Absorbing, *, tolerance: float = TOLERANCE
) -> AbsorptionBatch:
    """Return where the runs of many chains over the same states end, and how long they take.

    Parameters
    ----------
    transitions : (k, n, n) array
        The transition matrices. Rows of declared states are zero or the identity's; any other row of zeros
        makes its state unseen in that chain.
    absorbing
        Class names and their states, the same for all chains.
    tolerance
        The error of a probability, and the relative error of an expectation, that sends a chain from LAPACK
        to elimination. Zero eliminates always.

    Raises
    ------
    ChainError
        If a matrix is not a transition matrix, or an expectation exceeds what a float can hold.
    NotAbsorbingError
        If in some chain transient states cannot reach any absorbing class.
    """
    stack = matrix_stack(transitions)
    n_chains, n_states = stack.shape[:2]
    classes = AbsorbingClasses(absorbing, n_states)
    indicator = classes.indicator()
    probabilities = np.broadcast_to(indicator, (n_chains, *indicator.shape)).copy()
    expected_steps = np.zeros((n_chains, n_states))
    eliminated = np.zeros(n_chains, dtype=np.bool_)

    for start in range(0, n_chains, CHUNK):
        part = slice(start, start + CHUNK)
        closed, unseen = close(stack[part], classes)
        unseen = unseen[:, classes.open]
        moves = closed[:, classes.open[:, None], classes.open]
        moves[unseen] = 0.0
        exits = closed[:, classes.open] @ indicator
        exits[..., -1] = unseen
        stuck = ~reaches_exit(moves, exits.sum(axis=2))
        if stuck.any():
            raise NotAbsorbingError(tuple(classes.open[stuck.any(axis=0)].tolist()))
        # An unseen state is absorbed where it stands: its row reads x = 1 for its class, x = 0 for the steps.
        right = np.concatenate([exits, ~unseen[..., None]], axis=2)
        solution, eliminated[part] = _solve(moves, exits.sum(axis=2), right, tolerance)
        probabilities[part, classes.open] = solution[..., :-1]
        expected_steps[part, classes.open] = solution[..., -1]
    return AbsorptionBatch(classes.names, probabilities, expected_steps, eliminated)


def _solve(
    moves: FloatArray, exits: FloatArray, right: FloatArray, tolerance: float
) -> tuple[FloatArray, BoolArray]:
    """Solve by LAPACK, and again by elimination where its bound exceeds the tolerance.

    The last column of `right` asks for the expected steps, on which the bound rests.
    """
    try:
        solution: FloatArray = np.linalg.solve(np.eye(moves.shape[-1]) - moves, right).astype(
            np.float64, copy=False
        )
    except np.linalg.LinAlgError:  # some chain looks singular: none of this chunk was solved
        solution = np.full(right.shape, np.nan)
    steps = solution[..., -1]
    trusted = np.asarray(np.isfinite(solution).all(axis=(1, 2)) & (steps >= 0.0).all(axis=1))
    trusted &= np.finfo(np.float64).eps * steps.max(axis=1, initial=0.0) <= tolerance
    np.clip(solution[..., :-1], 0.0, 1.0, out=solution[..., :-1])
    if not trusted.all():
        again = ~trusted
        solution[again] = eliminate(moves[again], exits[again], right[again])
    return solution, np.logical_not(trusted)


def eliminate(moves: FloatArray, exits: FloatArray, right: FloatArray) -> FloatArray:
    """Solve ``(I - Q) X = Y`` for one chain or a stack of chains, without a single subtraction.

    Parameters
    ----------
    moves : (..., m, m) array
        ``Q`` of each chain; its diagonal is never read.
    exits : (..., m) array
        Probability of absorption in the next step.
    right : (..., m, c) array
        ``Y``, non-negative.

    Returns
    -------
    (..., m, c) array
        ``X``, each entry accurate relative to itself.

    Raises
    ------
    ChainError
        If an entry exceeds what a float can hold.
    """
    n_right = right.shape[-1]
    # Columns: Y, absorption, then the moves, so that whatever still leads away from a state is one slice.
    work = np.concatenate([right, exits[..., None], moves], axis=-1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for state in range(moves.shape[-1] - 1, -1, -1):
            column = n_right + 1 + state
            row = work[..., state, :column]
            row /= np.add.reduce(row[..., n_right:], axis=-1, keepdims=True)
            work[..., state, column] = 0.0
            work[..., :column] += work[..., column, None] * row[..., None, :]
    solution = work[..., :n_right].copy()
    if not np.isfinite(solution).all():
        raise ChainError("absorption takes more steps than a float can count; declare the trap absorbing")
    return solution
