"""The shape of every store, ours or yours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from safetydrift.guard.session import Session
    from safetydrift.states.space import StateSpace


class Store(Protocol):
    """Keeps sessions by key, for any number of threads, and, if it can, of processes.

    Attributes
    ----------
    waits
        Whether its methods may wait for a disk or a network; an event loop then calls them in a thread.
    """

    waits: bool

    def bind(self, model: str, space: StateSpace) -> None:
        """Take note of the model whose sessions are kept; called once, by the guard."""
        ...

    def read(self, key: str) -> tuple[Session, int] | None:
        """Return a session and its version, None if there is none.

        Raises
        ------
        SnapshotError
            If what is kept under the key is damaged or of another model.
        StoreError
            If the store cannot be reached.
        """
        ...

    def write(self, key: str, session: Session, version: int) -> bool:
        """Keep a session, if its version is still the one that was read (0: if there is none).

        Returns
        -------
        bool
            Whether it was kept; False if somebody else has written in between.

        Raises
        ------
        StoreError
            If the store cannot be reached.
        """
        ...

    def remove(self, key: str) -> None:
        """Forget a session; to forget an unknown one is no error."""
        ...

    def keys(self) -> Iterable[str]:
        """Return the keys of the sessions that have not expired."""
        ...

    def sweep(self) -> int:
        """Forget what has expired; return how much that was."""
        ...

    def close(self) -> None:
        """Let go of files and connections."""
        ...
