"""Sessions under lock: reading them, changing them until the change is stored, and knowing which is part of which.

Threads of one process take a lock per session; processes are kept apart by the store, which refuses what was decided
on a state that somebody else has changed since. Runs that are part of each other are locked together, and changed from
the whole to the part.
"""

from __future__ import annotations

from _thread import allocate_lock
from typing import TYPE_CHECKING

from safetydrift.errors import LostStateError, SafetyDriftError, StoreError
from safetydrift.guard.session import Session

if TYPE_CHECKING:
    from _thread import LockType
    from collections.abc import Callable, Sequence
    from typing import Any

    from safetydrift.guard.stores.protocol import Store
    from safetydrift.monitor.session import TrajectoryState

MAX_ATTEMPTS = 50
"""How often a change is tried again because somebody else has written in between."""
MAX_DEPTH = 8
"""How many runs may stand inside each other."""
_STRIPES = 64
_MAX_NOTED = 16_384


class SessionAccess:
    """The sessions of a guard.

    Parameters
    ----------
    store
        Where they are kept.
    require
        Checks the state of a run that was read; it is called where a store reads it from bytes.
    """

    __slots__ = ("_doubts", "_locks", "_parents", "_require", "store")

    def __init__(self, store: Store, require: Callable[[TrajectoryState], None]) -> None:
        self.store = store
        self._require = require if store.waits else None
        self._locks = tuple([allocate_lock() for _ in range(_STRIPES)])
        self._parents: dict[str, str] = {}
        self._doubts: dict[str, str] = {}

    def locked(self, keys: Sequence[str]) -> Locks | LockType:
        """Return the locks of some sessions, for ``with``."""
        if len(keys) == 1:
            return self._locks[hash(keys[0]) % _STRIPES]
        return Locks([self._locks[one] for one in sorted({hash(key) % _STRIPES for key in keys})])

    def read(self, key: str) -> tuple[Session, int]:
        """Return a session and its version.

        Raises
        ------
        LostStateError
            If it is not there.
        """
        found = self.store.read(key)
        if found is None:
            raise LostStateError(key)
        if self._require is not None:
            self._require(found[0].position)
        return found

    def trusted(self, line: Sequence[str]) -> list[tuple[Session, int]]:
        """Return sessions and their versions.

        Raises
        ------
        LostStateError
            If one is not there, or cannot be trusted any more.
        """
        found = []
        for key in line:
            why = self._doubts.get(key) if self._doubts else ""
            if not why:
                read = self.read(key)
                why = read[0].doubt
                found.append(read)
            if why:
                raise LostStateError(key) from SafetyDriftError(why)
        return found

    def lineage(self, key: str) -> tuple[str, ...]:
        """Return a key and those of the runs it is a part of, the whole last.

        Raises
        ------
        LostStateError
            If one of them is not there, or they are too many.
        """
        parents = self._parents
        parent = parents.get(key)
        if parent == "":
            return (key,)
        line = [key]
        while True:
            parent = parents.get(line[-1])
            if parent is None:
                parent = self.read(line[-1])[0].parent
                self._note(line[-1], parent)
            if not parent:
                return tuple(line)
            line.append(parent)
            if len(line) > MAX_DEPTH:
                raise LostStateError(key)

    def open(self, key: str, parent: str, start: Callable[[], TrajectoryState]) -> bool:
        """Make a session if it is not there; return whether it was made.

        Raises
        ------
        LostStateError
            If its parent is not there.
        """
        with self.locked((key,)):
            for _ in range(MAX_ATTEMPTS):
                if self.store.read(key) is not None:
                    return False
                if parent:
                    self.lineage(parent)
                if self.store.write(key, Session(key, start(), parent), 0):
                    self._doubts.pop(key, None)
                    self._note(key, parent)
                    return True
        raise StoreError(f"the run {key!r} could not be opened: others keep writing to it")

    def forget(self, key: str) -> None:
        """Remove a session."""
        with self.locked((key,)):
            self.store.remove(key)
            self._parents.pop(key, None)
            self._doubts.pop(key, None)

    def change(self, line: Sequence[str], change: Callable[[Session], None]) -> None:
        """Change sessions one by one, the whole first, each until it is stored."""
        with self.locked(line):
            for key in reversed(line):
                self.changed(key, change)

    def changed(
        self, key: str, change: Callable[[Session], None], read: tuple[Session, int] | None = None
    ) -> Session:
        """Change one session, whose lock is held, until it is stored; return it.

        Parameters
        ----------
        read
            The session and its version, if it was read under this lock already.

        Raises
        ------
        LostStateError, StoreError
            If it is not there, or could not be stored.
        """
        for _ in range(MAX_ATTEMPTS):
            session, version = read or self.read(key)
            change(session)
            if self.store.write(key, session, version):
                return session
            read = None
        raise self.crowded(key)

    def stored(self, read: Sequence[tuple[Session, int]]) -> bool:
        """Store changed sessions, the whole first; False as soon as one of them was changed by somebody else."""
        write = self.store.write
        return all(write(session.key, session, version) for session, version in reversed(read))

    def crowded(self, key: str) -> StoreError:
        """Return the error for a session that others keep writing to."""
        return StoreError(f"the state of {key!r} could not be stored: others keep writing to it")

    def doubt(self, key: str, why: str) -> str:
        """Note that a run, and those it is a part of, cannot be trusted any more; return why, with what failed."""
        self._note(key, why, self._doubts)

        def doubt(session: Session) -> None:
            session.doubt = why

        try:
            line = self.lineage(key)
            for one in line:
                self._note(one, why, self._doubts)
            self.change(line, doubt)
        except Exception as problem:  # noqa: BLE001  # this process remembers it in any case
            return f"{why}; nor could that be stored: {type(problem).__name__}: {problem}"
        return why

    def _note(self, key: str, value: str, notes: dict[str, str] | None = None) -> None:
        notes = self._parents if notes is None else notes
        if len(notes) >= _MAX_NOTED:
            notes.pop(next(iter(notes)), None)
        notes[key] = value


class Locks:
    """Some locks, always taken in the same order."""

    __slots__ = ("_held",)

    def __init__(self, locks: list[Any]) -> None:
        self._held = locks

    def __enter__(self) -> None:
        for lock in self._held:
            lock.acquire()

    def __exit__(self, *_: object) -> None:
        for lock in self._held:
            lock.release()
