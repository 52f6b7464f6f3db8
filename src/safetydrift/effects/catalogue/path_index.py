"""Finding the few path entries that may match a path, without asking all of them.

The globs of path entries are mostly pieces of text that have to stand somewhere in the path. Each piece is filed under
four of its characters; only entries that are filed under some four characters of a path can match it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from safetydrift.effects.catalogue.globs import Globs


class _Matched(Protocol):
    """An entry with globs for canonical paths."""

    match: Globs


_Entry = TypeVar("_Entry", bound=_Matched)
_WIDTH = 4


class PathIndex(Generic[_Entry]):
    """The path entries of a catalogue, in the order they are tried."""

    __slots__ = ("_always", "_entries", "_filed")

    def __init__(self, entries: Iterable[_Entry]) -> None:
        self._entries = tuple(entries)
        self._filed: dict[str, set[int]] = {}
        self._always: set[int] = set()
        for place, entry in enumerate(self._entries):
            for piece in entry.match.pieces():
                if len(piece) < _WIDTH:
                    self._always.add(place)
                else:
                    # The end of a piece is more telling than its start, which is often a slash.
                    self._filed.setdefault(piece[-_WIDTH:], set()).add(place)

    def candidates(self, canonical: str) -> list[_Entry]:
        """Return the entries that may match a canonical path, in order; those that are left out do not."""
        filed, found = self._filed, self._always
        for at in range(len(canonical) - _WIDTH + 1):
            gram = canonical[at : at + _WIDTH]
            if gram in filed:
                found = found | filed[gram]
        return [self._entries[place] for place in sorted(found)]
