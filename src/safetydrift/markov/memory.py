"""A chain with memory is a chain: its rows are the contexts that are kept.

Where a process of the second order goes next depends on its last two states, and pairs of states are the states of a
chain of the first order. So it is with contexts of any length: a *row* is a state and the last moves before it, as many
as are kept; a move leads from one row to the row of the longest context kept that describes what happened then. All
that is true of absorbing chains holds for this one: horizons, absorption, bounds.

What a row has forgotten no later row can know. Every context is kept with all its shorter parts, so a move out of a
long context is lost sight of only where no run was seen to go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from safetydrift.errors import ChainError
from safetydrift.markov.chain import AbsorbingChain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from safetydrift.markov._arrays import FloatArray, IntArray

BEFORE = -1
"""Stands for a move before the first one."""

FORGOTTEN = -2
"""Stands for a move that a row knows nothing of."""


class ContextRows:
    """The contexts kept, as rows of one chain.

    Parameters
    ----------
    contexts : (n, 1 + depth) array of int
        Those to keep: a state, the last move, the one before, ..; `BEFORE` where the run had not begun, `FORGOTTEN`
        from where a context ends. Shorter parts of each are kept too, and none twice.

    Attributes
    ----------
    contexts : (n_rows, 1 + depth) array
        The context of each row, the shortest first.
    unknown
        The number that stands for states that have no row; it is the one after the last row.

    Raises
    ------
    ChainError
        If numbers are too large to be told apart.
    """

    def __init__(self, contexts: ArrayLike) -> None:
        given = np.asarray(contexts, dtype=np.int64)
        if given.ndim != 2 or not given.shape[1]:  # noqa: PLR2004
            raise ChainError(f"contexts have shape (n, 1 + depth), not {given.shape}")
        self.depth = given.shape[1] - 1
        self._radix = int(given[:, 1:].max(initial=0)) + 2
        if (int(given[:, 0].max(initial=0)) + 1) * self._radix**self.depth >= 2**62:
            raise ChainError(f"contexts of {self.depth} moves and so many states are too many to be numbered")
        parts: list[IntArray] = []
        self._codes: list[IntArray] = []
        self._first: list[int] = []
        for length in range(self.depth + 1):
            part = given.copy()
            part[:, length + 1 :] = FORGOTTEN
            codes = self._code(part, length)
            distinct, first = np.unique(codes, return_index=True)
            first = first[distinct >= 0]
            self._codes.append(codes[first])
            self._first.append(sum(len(shorter) for shorter in parts))
            parts.append(part[first])
        self.contexts: IntArray = np.concatenate(parts)
        self.unknown = len(self.contexts)

    def __len__(self) -> int:
        return len(self.contexts)

    def _code(self, contexts: IntArray, length: int) -> IntArray:
        """Return one number for the first so many moves of each context; -1 where one of them is not known."""
        code: IntArray = contexts[:, 0].copy()
        known = code >= 0
        for move in contexts[:, 1 : length + 1].T:
            known &= (move >= BEFORE) & (move < self._radix - 1)
            code = code * self._radix + np.clip(move, BEFORE, self._radix - 2) + 1
        code[~known] = -1
        return code

    def find(self, contexts: ArrayLike) -> IntArray:
        """Return the row of the longest part of each context that is kept, shape (n,); `unknown` where none is.

        Parameters
        ----------
        contexts : (n, 1 + depth) array of int
        """
        asked = np.asarray(contexts, dtype=np.int64)
        rows = np.full(len(asked), self.unknown)
        for length, (codes, first) in enumerate(zip(self._codes, self._first, strict=True)):
            code = self._code(asked, length)
            place = np.searchsorted(codes, code)
            kept = np.append(codes, -2)[place] == code
            rows[kept] = first + place[kept]
        return rows

    def successors(self, moves: ArrayLike, after: ArrayLike) -> IntArray:
        """Return the row after each row and move, shape (n_rows, n_moves).

        Parameters
        ----------
        moves : (n_moves,) array of int
            The moves.
        after : (n_rows, n_moves) array of int
            The state that follows the state of each row, by move.
        """
        made, states = np.asarray(moves, dtype=np.int64), np.asarray(after, dtype=np.int64)
        contexts = np.empty((*states.shape, self.depth + 1), dtype=np.int64)
        contexts[..., 0] = states
        if self.depth:
            contexts[..., 1] = made
            contexts[..., 2:] = self.contexts[:, None, 1:-1]
        return self.find(contexts.reshape(-1, self.depth + 1)).reshape(states.shape)

    def chain(
        self, goes_on: ArrayLike, ends: ArrayLike, successors: IntArray, names: Sequence[str]
    ) -> AbsorbingChain:
        """Return the chain on these rows; after them comes one for the states without a row, unseen, and the ends.

        Parameters
        ----------
        goes_on : (n_rows, n_moves) array
            Probability of each move.
        ends : (n_rows, n_ends) array
            Probability of each end.
        successors
            As returned by `successors`.
        names
            Names of the ends, each an absorbing class of its own.

        Raises
        ------
        ChainError
            If the probabilities of a row do not sum to one.
        """
        moving, ending = np.asarray(goes_on, dtype=np.float64), np.asarray(ends, dtype=np.float64)
        n_rows, size = len(self), len(self) + 1 + len(names)
        cells = np.arange(n_rows)[:, None] * size + successors
        moved = np.bincount(cells.ravel(), weights=moving.ravel(), minlength=size * size)
        transitions: FloatArray = moved.astype(np.float64, copy=False).reshape(size, size)
        transitions[:n_rows, n_rows + 1 :] = ending
        totals = transitions.sum(axis=1, keepdims=True)
        if not np.allclose(totals[:n_rows], 1.0, rtol=0.0, atol=_ROUNDING):
            raise ChainError("the moves and ends of a row do not sum to one")
        np.divide(transitions, totals, out=transitions, where=totals > 0.0)
        seen = np.arange(size) != self.unknown
        return AbsorbingChain(
            transitions, {name: [n_rows + 1 + place] for place, name in enumerate(names)}, visited=seen
        )


_ROUNDING = 1e-9
