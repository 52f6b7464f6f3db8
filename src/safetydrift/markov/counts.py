"""Transition counts: the evidence, before any estimate is made of it.

A *sequence* is what one run did, as integers ``0 .. n - 1``. Two neighbours in it make one *transition*, and
the count matrix ``C`` holds in ``C[i, j]`` how often ``j`` came directly after ``i``. From it follow the

- *departures* of ``i``, the sum of row ``i``: how often ``i`` was left (or stayed in) for a next step, and
  the
- *arrivals* at ``j``, the sum of column ``j``.

A state in which sequences only end has arrivals and no departures. The denominator of an estimate is the
departures, not the visits: a final visit says nothing about what follows.

Counts are sums over runs, so corpora add: ``count(a) + count(b) == count(a and b)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from safetydrift.errors import ChainError
from safetydrift.markov._arrays import IntArray, ReadOnly

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import ArrayLike, NDArray

CHUNK_TRANSITIONS = 1 << 17
"""Transitions coded at a time, so that their codes stay in cache; more only where the histogram is larger."""


@dataclass(frozen=True, init=False, eq=False, repr=False)
class TransitionCounts(ReadOnly):
    """How often each state followed each other state.

    Parameters
    ----------
    matrix : (n, n) array of integers
        ``matrix[i, j]`` counts the steps from ``i`` to ``j``. It is copied and made read-only.

    Raises
    ------
    ChainError
        If the array is not square, not of integers, or negative anywhere.

    Examples
    --------
    >>> counts = count_transitions([[0, 0, 1], [0, 1]], n_states=3)
    >>> counts.matrix.tolist()
    [[1, 2, 0], [0, 0, 0], [0, 0, 0]]
    >>> counts.departures.tolist(), counts.arrivals.tolist(), counts.total
    ([3, 0, 0], [1, 2, 0], 3)
    """

    matrix: IntArray

    def __init__(self, matrix: ArrayLike) -> None:
        matrix = np.asarray(matrix)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:  # noqa: PLR2004
            raise ChainError(f"counts must be a square matrix, not of shape {matrix.shape}")
        if matrix.dtype.kind not in "iu":
            raise ChainError(f"counts must be integers, not {matrix.dtype}")
        if (matrix < 0).any():
            row, column = np.argwhere(matrix < 0)[0]
            raise ChainError(f"the count from state {row} to state {column} is negative")
        object.__setattr__(self, "matrix", matrix.astype(np.int64))
        super().__post_init__()

    @classmethod
    def weighted(cls, matrix: ArrayLike) -> TransitionCounts:
        """Return counts that need not be whole: those of runs that are being forgotten weigh less than one each.

        Parameters
        ----------
        matrix : (n, n) array of numbers
            Finite and 0 or more.

        Raises
        ------
        ChainError
            If the array is not square, or an entry is negative or not finite.
        """
        values = np.array(matrix, dtype=np.float64)
        if values.ndim != 2 or values.shape[0] != values.shape[1]:  # noqa: PLR2004
            raise ChainError(f"counts must be a square matrix, not of shape {values.shape}")
        if not (np.isfinite(values) & (values >= 0.0)).all():
            raise ChainError("weighted counts must be finite and 0 or more")
        counts = cls(np.zeros((0, 0), dtype=np.int64))
        values.setflags(write=False)
        object.__setattr__(counts, "matrix", values)
        return counts

    @property
    def n_states(self) -> int:
        """The number of states, visited or not."""
        return len(self.matrix)

    @property
    def departures(self) -> IntArray:
        """How often each state was departed from, shape (n,)."""
        return np.asarray(self.matrix.sum(axis=1))

    @property
    def arrivals(self) -> IntArray:
        """How often each state was arrived at, shape (n,)."""
        return np.asarray(self.matrix.sum(axis=0))

    @property
    def total(self) -> int:
        """The number of transitions counted."""
        return int(self.matrix.sum())

    def __add__(self, other: TransitionCounts) -> TransitionCounts:
        if not isinstance(other, TransitionCounts):
            return NotImplemented
        if self.n_states != other.n_states:
            raise ChainError(f"counts over {self.n_states} and {other.n_states} states cannot be added")
        total = self.matrix + other.matrix
        return TransitionCounts(total) if total.dtype.kind == "i" else TransitionCounts.weighted(total)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TransitionCounts):
            return NotImplemented
        return np.array_equal(self.matrix, other.matrix)

    def __hash__(self) -> int:
        return hash((self.n_states, self.matrix.tobytes()))

    def __repr__(self) -> str:
        return f"<TransitionCounts of {self.total} transitions between {self.n_states} states>"

    def lump(self, mapping: Sequence[int] | IntArray, n_states: int) -> TransitionCounts:
        """Return the counts seen through a coarser state space.

        Exactly what counting the relabelled sequences would have given.

        Parameters
        ----------
        mapping : (n,) integers
            The coarse state of each state.
        n_states
            The number of coarse states.

        Raises
        ------
        ChainError
            If the mapping does not cover the states, or points outside the coarse ones.
        """
        coarse = _states(mapping, n_states)
        if len(coarse) != self.n_states:
            raise ChainError(f"the mapping covers {len(coarse)} states of {self.n_states}")
        lumped = np.zeros((n_states, n_states), dtype=np.int64)
        np.add.at(lumped, (coarse[:, None], coarse), self.matrix)
        return TransitionCounts(lumped)


def count_transitions(sequences: Iterable[Sequence[int] | IntArray], n_states: int) -> TransitionCounts:
    """Count the transitions of each sequence; none is counted from one sequence to the next.

    Parameters
    ----------
    sequences
        Sequences of states, of any lengths; one of a single state has no transition.
    n_states
        The number of states.

    Raises
    ------
    ChainError
        If a state is not an integer from 0 to ``n_states - 1``.
    """
    runs = [_states(sequence, n_states) for sequence in sequences]
    offsets = np.cumsum([0, *map(len, runs)])
    states = np.concatenate(runs) if runs else np.empty(0, dtype=np.int64)
    return count_flat(states, offsets, n_states)


def count_flat(states: ArrayLike, offsets: ArrayLike, n_states: int) -> TransitionCounts:
    """Count the transitions of sequences that are stored one behind the other.

    Parameters
    ----------
    states : (m,) integers
        All sequences, concatenated. A narrow type such as ``uint8`` saves memory and time.
    offsets : (s + 1,) integers
        Sequence ``k`` is ``states[offsets[k]:offsets[k + 1]]``.
    n_states
        The number of states.

    Raises
    ------
    ChainError
        If a state is not an integer from 0 to ``n_states - 1``, or the offsets do not run from 0 up to ``m``.

    Examples
    --------
    >>> count_flat([0, 1, 1, 0], offsets=[0, 2, 4], n_states=2).matrix.tolist()
    [[0, 1], [1, 0]]
    """
    flat = _states(states, n_states)
    return TransitionCounts(_histogram(flat, _boundaries(offsets, len(flat)), None, n_states, 1)[0])


def count_groups(
    states: ArrayLike, offsets: ArrayLike, groups: ArrayLike, n_states: int, n_groups: int
) -> tuple[TransitionCounts, ...]:
    """Count as `count_flat` does, for every group of sequences at once.

    Parameters
    ----------
    states, offsets, n_states
        As for `count_flat`.
    groups : (s,) integers
        The group of each sequence.
    n_groups
        The number of groups.

    Returns
    -------
    tuple of TransitionCounts
        One for each group, in order; a group without sequences has counts of zero.

    Raises
    ------
    ChainError
        As for `count_flat`, and if a group is not an integer from 0 to ``n_groups - 1``.
    """
    flat = _states(states, n_states)
    boundaries = _boundaries(offsets, len(flat))
    labels = _states(groups, n_groups, what="group")
    if len(labels) != len(boundaries) - 1:
        raise ChainError(f"there are {len(labels)} groups for {len(boundaries) - 1} sequences")
    return tuple(map(TransitionCounts, _histogram(flat, boundaries, labels, n_states, n_groups)))


def _histogram(
    states: NDArray[np.integer],
    offsets: IntArray,
    groups: NDArray[np.integer] | None,
    n_states: int,
    n_groups: int,
) -> IntArray:
    """Count (group, from, to) by coding each triple as one integer; returns (g, n, n)."""
    cells = n_groups * n_states * n_states
    counts = np.zeros(cells + 1, dtype=np.int64)
    length = max(CHUNK_TRANSITIONS, cells)
    code_type: type[np.signedinteger] = np.int32 if cells < np.iinfo(np.int32).max else np.int64
    for start in range(0, len(states) - 1, length):
        piece: NDArray[Any] = states[start : start + length + 1].astype(code_type)
        code = piece[:-1] * n_states
        code += piece[1:]
        stop = start + len(code)
        first, last = np.searchsorted(offsets, [start, stop], side="right")
        if groups is not None:
            inside = np.clip(offsets[first - 1 : last + 1], start, stop)
            base = groups[first - 1 : last].astype(code_type) * (n_states * n_states)
            code += np.repeat(base, np.diff(inside))
        # The last state of a sequence has no successor: its pair goes to a bin that is dropped.
        code[offsets[first:last] - 1 - start] = cells
        counts += np.bincount(code, minlength=cells + 1)
    return counts[:cells].reshape(n_groups, n_states, n_states)


def _states(values: ArrayLike, n_states: int, what: str = "state") -> NDArray[np.integer]:
    array = np.asarray(values)
    if array.ndim != 1:
        raise ChainError(f"{what}s must be one-dimensional, not of shape {array.shape}")
    if not array.size:
        return np.empty(0, dtype=np.int64)
    if array.dtype.kind not in "iu":
        raise ChainError(f"{what}s must be integers, not {array.dtype}")
    lowest, highest = int(array.min()), int(array.max())
    if lowest < 0 or highest >= n_states:
        wrong = lowest if lowest < 0 else highest
        raise ChainError(f"{what} {wrong} is outside 0 .. {n_states - 1}")
    return array


def _boundaries(offsets: ArrayLike, length: int) -> IntArray:
    array = np.asarray(offsets)
    if array.ndim != 1 or array.dtype.kind not in "iu" or not array.size:
        raise ChainError("offsets must be a one-dimensional array of integers, with one entry at least")
    if array[0] != 0 or array[-1] != length or (array[1:] < array[:-1]).any():
        raise ChainError(f"offsets must rise from 0 to the number of states, {length}")
    return array.astype(np.int64)
