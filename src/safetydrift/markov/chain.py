"""Absorbing Markov chains: the states that end a run, the states that do not, and the states nobody knows.

A *Markov chain* on states ``0 .. n - 1`` moves from ``i`` to ``j`` in one step with probability ``P[i, j]``,
so every row of the *transition matrix* ``P`` sums to one. A state that is never left is *absorbing*: its row
is a row of the identity. Here absorbing states are grouped into named *classes*, for example ``violated`` and
``completed``, and which class ends the run is the question.

A state that is not absorbing is *transient* when its row is known. A row of which nothing was observed and
nothing assumed is neither: where a run goes from there cannot be said. Such states form the class ``unseen``,
and mass that runs into it is reported instead of guessed. If a run ends in ``violated`` with probability
``p`` and in ``unseen`` with probability ``u``, the true probability of violation lies between ``p`` and ``p +
u``.

With the transient states listed first the matrix takes its *canonical form*::

    P = [ Q  R ]      Q: transient to transient
        [ 0  I ]      R: transient to absorbing, one column per class here

Literature
----------
J. G. Kemeny and J. L. Snell, *Finite Markov Chains*, 1960, chapter III, for the canonical form.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from operator import index
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from safetydrift.errors import ChainError
from safetydrift.markov._arrays import BoolArray, FloatArray, IntArray, ReadOnly

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

UNSEEN = "unseen"
"""The class of states from which nothing was ever observed; always the last of ``class_names``."""

ROW_SUM_TOLERANCE = 1e-12
"""How far a row may be from summing to one: the rounding of a long row, not a probability typed wrongly."""

Absorbing: TypeAlias = Mapping[str, Iterable[int]]
"""Class names and the states of each."""


class AbsorbingClasses:
    """Named, disjoint sets of absorbing states.

    Parameters
    ----------
    absorbing
        Class names and their states. The order of the mapping is the order of every result.
    n_states
        The number of states of the chain.

    Attributes
    ----------
    members : mapping of str to tuple of int
        The states of each class, ascending.
    names : tuple of str
        The class names, then ``"unseen"``.
    open : (m,) integers
        The states in no class: the transient and the unseen ones, ascending.

    Raises
    ------
    ChainError
        If a class is called ``unseen``, has no states or one out of range, or shares a state with another.
    """

    def __init__(self, absorbing: Absorbing, n_states: int) -> None:
        members: dict[str, tuple[int, ...]] = {}
        owner: dict[int, str] = {}
        for name, states in absorbing.items():
            if name == UNSEEN:
                raise ChainError(
                    f"{UNSEEN!r} is the class of states without observations; choose another name"
                )
            members[name] = tuple(sorted({index(state) for state in states}))
            if not members[name]:
                raise ChainError(f"class {name!r} has no states; leave it out")
            for state in members[name]:
                if not 0 <= state < n_states:
                    raise ChainError(f"state {state} of class {name!r} is outside 0 .. {n_states - 1}")
                if state in owner:
                    raise ChainError(f"state {state} is in both {owner[state]!r} and {name!r}")
                owner[state] = name
        self.members: Mapping[str, tuple[int, ...]] = MappingProxyType(members)
        self.names = (*members, UNSEEN)
        absorbed = np.zeros(n_states, dtype=np.bool_)
        absorbed[list(owner)] = True
        self.absorbing: IntArray = np.flatnonzero(absorbed)
        self.open: IntArray = np.flatnonzero(~absorbed)
        self.n_states = n_states

    def indicator(self) -> FloatArray:
        """Return 1 where a state (row) belongs to a declared class (column), shape (n, number of classes)."""
        inside = np.zeros((self.n_states, len(self.names)))
        for column, states in enumerate(self.members.values()):
            inside[list(states), column] = 1.0
        return inside


@dataclass(frozen=True, init=False, eq=False, repr=False)
class AbsorbingChain(ReadOnly):
    """A transition matrix with named absorbing classes.

    Parameters
    ----------
    transitions : (n, n) array
        ``transitions[i, j]`` is the probability of a step from ``i`` to ``j``. The row of an absorbing state
        is either a row of the identity or zero; it is stored as the identity.
    absorbing
        Class names and their states, for example ``{"violated": [4], "completed": [5]}``.
    names
        One name per state, for tables and messages; its number if left out.
    visited : (n,) array of bool, optional
        False where a state was never departed from, so that its row, if it has one, rests on assumptions
        alone. A row of zeros is accepted only there, and makes the state `unseen`. Absorbing states count as
        visited: their rows are known by definition.

    Attributes
    ----------
    class_names : tuple of str
        The absorbing classes in the order given, then ``"unseen"``, which may be empty.
    transient : (t,) integers
        The states that are neither absorbing nor unseen, ascending.
    unseen : (u,) integers
        The states without a row, ascending. Their rows in ``transitions`` are zero.

    Raises
    ------
    ChainError
        If the matrix is not square, finite and non-negative; if the row of a visited state does not sum to
        one within 1e-12 (`ROW_SUM_TOLERANCE`); if an absorbing state is left; if classes or names do not fit.

    Examples
    --------
    >>> chain = AbsorbingChain([[0.5, 0.3, 0.2], [0, 0, 0], [0, 0, 0]], {"won": [1], "lost": [2]})
    >>> chain.transitions[1].tolist()
    [0.0, 1.0, 0.0]
    >>> chain.Q.tolist(), chain.R.tolist(), chain.class_names
    ([[0.5]], [[0.3, 0.2, 0.0]], ('won', 'lost', 'unseen'))
    """

    transitions: FloatArray
    absorbing: Mapping[str, tuple[int, ...]]
    names: tuple[str, ...]
    visited: BoolArray
    classes: AbsorbingClasses

    def __init__(
        self,
        transitions: ArrayLike,
        absorbing: Absorbing,
        names: Sequence[str] | None = None,
        visited: ArrayLike | None = None,
    ) -> None:
        matrix = np.array(transitions, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:  # noqa: PLR2004
            raise ChainError(f"a transition matrix is square, not of shape {matrix.shape}")
        n_states = len(matrix)
        labels = tuple(map(str, range(n_states) if names is None else names))
        if len(labels) != n_states:
            raise ChainError(f"{len(labels)} names were given for {n_states} states")
        known = np.ones(n_states, dtype=np.bool_) if visited is None else np.array(visited, dtype=np.bool_)
        if known.shape != (n_states,):
            raise ChainError(f"visited has shape {known.shape} for {n_states} states")

        classes = AbsorbingClasses(absorbing, n_states)
        _absorb(matrix, classes, labels)
        known[classes.absorbing] = True
        require_stochastic(matrix, zero_rows=~known, names=labels)
        for field, value in (
            ("transitions", matrix),
            ("absorbing", classes.members),
            ("names", labels),
            ("visited", known),
            ("classes", classes),
        ):
            object.__setattr__(self, field, value)
        super().__post_init__()

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return type(self), (self.transitions, dict(self.absorbing), self.names, self.visited)

    def __repr__(self) -> str:
        inside = ", ".join(f"{len(states)} {name}" for name, states in self.absorbing.items())
        return (
            f"<AbsorbingChain of {self.n_states} states: {len(self.transient)} transient, {inside}, "
            f"{len(self.unseen)} unseen>"
        )

    @property
    def n_states(self) -> int:
        """The number of states of every kind."""
        return len(self.transitions)

    @property
    def class_names(self) -> tuple[str, ...]:
        """The absorbing classes in the order given, then ``"unseen"``."""
        return self.classes.names

    @cached_property
    def unseen(self) -> IntArray:
        """The states from which nothing was observed and nothing assumed, ascending."""
        return np.flatnonzero(~self.transitions.any(axis=1))

    @cached_property
    def transient(self) -> IntArray:
        """The states that are neither absorbing nor unseen, ascending."""
        return self.classes.open[self.transitions[self.classes.open].any(axis=1)]

    @cached_property
    def membership(self) -> FloatArray:
        """1 where a state (row) belongs to a class (column), ``unseen`` included, shape (n, classes)."""
        inside = self.classes.indicator()
        inside[self.unseen, -1] = 1.0
        return inside

    @cached_property
    def Q(self) -> FloatArray:  # noqa: N802 - the letter of the canonical form
        """Transient to transient, shape (t, t); rows and columns in the order of `transient`."""
        return self.transitions[np.ix_(self.transient, self.transient)]

    @cached_property
    def R(self) -> FloatArray:  # noqa: N802 - the letter of the canonical form
        """Transient to absorbing class in one step, shape (t, classes)."""
        return self.transitions[self.transient] @ self.membership

    def class_index(self, name: str | None) -> int:
        """Return the position of a class in `class_names`; None means the first, the one the chain is about.

        Raises
        ------
        ChainError
            If there is no such class.
        """
        if name is None:
            return 0
        if name not in self.class_names:
            raise ChainError(f"there is no class {name!r}; this chain has {', '.join(self.class_names)}")
        return self.class_names.index(name)


def require_stochastic(
    matrix: FloatArray, zero_rows: BoolArray | bool = False, names: Sequence[str] | None = None
) -> None:
    """Refuse a stack of matrices unless every row is a distribution, or is zero where that is allowed.

    Parameters
    ----------
    matrix : (..., n, n) array
        One matrix or a stack of them.
    zero_rows : bool, (n,) or (..., n) array of bool
        The rows that may be zero.
    names
        State names for the message.

    Raises
    ------
    ChainError
        Naming the first state whose row is not finite, has a negative entry, or does not sum to one.
    """
    totals = matrix.sum(axis=-1)
    fits = np.abs(totals - 1.0) <= ROW_SUM_TOLERANCE  # False for NaN and infinity as well
    fits |= zero_rows & (totals == 0.0)
    fits &= (matrix >= 0.0).all(axis=-1)
    if fits.all():
        return
    position = tuple(np.argwhere(~fits)[0])
    row, state = matrix[position], int(position[-1])
    name = names[state] if names else str(state)
    if not np.isfinite(row).all():
        raise ChainError(f"the row of state {name} is not finite")
    if (row < 0.0).any():
        raise ChainError(f"the row of state {name} has a negative entry, {row.min():g}")
    if not row.any():
        raise ChainError(
            f"the row of state {name} is empty; if nothing was observed there, pass visited with False for it"
        )
    raise ChainError(f"the row of state {name} sums to {row.sum():.17g}, not to 1; divide it by its sum")


def close(matrices: FloatArray, classes: AbsorbingClasses) -> tuple[FloatArray, BoolArray]:
    """Return checked copies of transition matrices in which every absorbing row is the identity's.

    Parameters
    ----------
    matrices : (k, n, n) array
        As for `AbsorbingChain`, except that any row outside the classes may be zero, which makes it unseen.
    classes
        The declared classes.

    Returns
    -------
    closed : (k, n, n) array
        With identity rows for the states of the declared classes and for the unseen ones.
    unseen : (k, n) array of bool
        Which states are unseen, chain by chain.

    Raises
    ------
    ChainError
        If a row is not a distribution, or an absorbing state is left.
    """
    closed = np.array(matrices, dtype=np.float64)
    _absorb(closed, classes, tuple(map(str, range(classes.n_states))))
    unseen: BoolArray = np.logical_not(closed.any(axis=-1))
    np.einsum("kii->ki", closed)[...] += unseen
    require_stochastic(closed)
    return closed, unseen


def matrix_stack(transitions: ArrayLike) -> FloatArray:
    """Return transition matrices as one array of shape (k, n, n).

    Raises
    ------
    ChainError
        If the array has another number of dimensions, or its matrices are not square.
    """
    stack = np.asarray(transitions, dtype=np.float64)
    if stack.ndim != 3 or stack.shape[1] != stack.shape[2]:  # noqa: PLR2004
        raise ChainError(f"a stack of transition matrices has shape (k, n, n), not {stack.shape}")
    return stack


def _absorb(matrices: FloatArray, classes: AbsorbingClasses, names: Sequence[str]) -> None:
    """Put identity rows where states are declared absorbing; refuse rows that are neither those nor zero."""
    identity = np.eye(classes.n_states)[classes.absorbing]
    rows = matrices[..., classes.absorbing, :]
    left = rows.any(axis=-1) & (rows != identity).any(axis=-1)
    if left.any():
        wrong = classes.absorbing[left.reshape(-1, len(identity)).any(axis=0)]
        shown = ", ".join(names[state] for state in wrong[:8])
        raise ChainError(f"absorbing states must not be left, but these have other rows: {shown}")
    matrices[..., classes.absorbing, :] = identity
