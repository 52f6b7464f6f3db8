"""Sessions in memory: the quickest store, for a run that begins and ends in one process."""

from __future__ import annotations

from _thread import allocate_lock
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from safetydrift.guard.session import Session
    from safetydrift.states.space import StateSpace

DEFAULT_EXPIRY = 24 * 3600.0
DEFAULT_MOST = 100_000


class MemoryStore:
    """Keeps the sessions themselves, and nothing beyond the life of the process.

    Parameters
    ----------
    expiry
        Seconds after its last change at which a session is forgotten.
    most
        Sessions that are kept; beyond it the one that has been still for longest is forgotten.
    clock
        Seconds that never go back.
    """

    waits = False

    __slots__ = ("_clock", "_lock", "_sessions", "expiry", "most")

    def __init__(
        self,
        expiry: float = DEFAULT_EXPIRY,
        most: int = DEFAULT_MOST,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.expiry, self.most = expiry, most
        self._clock = clock
        self._lock = allocate_lock()
        self._sessions: dict[str, tuple[Session, int, float]] = {}

    def bind(self, model: str, space: StateSpace) -> None:
        """Nothing needs to be known of the model: sessions are kept as they are."""

    def read(self, key: str) -> tuple[Session, int] | None:
        """Return a session and its version, None if there is none or it has expired."""
        found = self._sessions.get(key)
        if found is None or self._clock() - found[2] > self.expiry:
            return None
        return found[0], found[1]

    def write(self, key: str, session: Session, version: int) -> bool:
        """Keep a session, if its version is still the one that was read."""
        now = self._clock()
        with self._lock:
            sessions = self._sessions
            # Taken out and put back, so that the first of them is the one that has been still for longest.
            found = sessions.pop(key, None)
            there = 0 if found is None or now - found[2] > self.expiry else found[1]
            if there != version:
                if found is not None:
                    sessions[key] = found
                return False
            if len(sessions) >= self.most:
                del sessions[next(iter(sessions))]
            sessions[key] = (session, version + 1, now)
        return True

    def remove(self, key: str) -> None:
        """Forget a session."""
        with self._lock:
            self._sessions.pop(key, None)

    def keys(self) -> list[str]:
        """Return the keys of the sessions that have not expired."""
        oldest = self._clock() - self.expiry
        with self._lock:
            return [key for key, (_, _, at) in self._sessions.items() if at >= oldest]

    def sweep(self) -> int:
        """Forget what has expired; return how much that was."""
        oldest = self._clock() - self.expiry
        with self._lock:
            gone = [key for key, (_, _, at) in self._sessions.items() if at < oldest]
            for key in gone:
                del self._sessions[key]
        return len(gone)

    def close(self) -> None:
        """Nothing to let go of."""
