"""Formats of the logs that coding agents write: a line for everything that happens, a file for every session.

Sessions that were resumed or forked begin with a copy of another. Such files have a key in common and are read
together; what was copied is told by ids that another file has, too, and all before the last of them was copied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from safetydrift.formats.format import HOSTILE, Place, why
from safetydrift.formats.run_builder import RunBuilder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from safetydrift.formats.format import Account
    from safetydrift.trace import Trace

Line = TypeVar("Line")
_COPIED = "copied from another file"


class File(NamedTuple, Generic[Line]):
    """The lines of a file, each with its place."""

    path: str
    lines: list[tuple[Line, Place]]


def without_copies(
    file: File[Line], seen: set[str], ids: Callable[[Line], Iterable[str]], account: Account
) -> list[tuple[Line, Place]]:
    """Return the lines of a file that are not copies from files read before, and note their ids.

    Parameters
    ----------
    seen
        The ids in those files; those of this one are added.
    ids
        Returns what a line is known by.
    """
    named = [tuple(ids(line)) for line, _ in file.lines]
    first = max((i for i, some in enumerate(named, 1) if not seen.isdisjoint(some)), default=0)
    for _, place in file.lines[:first]:
        account.skipped(_COPIED, place)
    for some in named:
        seen.update(some)
    return file.lines[first:]


class SessionLog(Generic[Line]):
    """Takes the lines of the files of one batch; a child puts them together."""

    source = ""
    decode: Callable[[bytes], Line]

    def __init__(self, account: Account) -> None:
        self.account = account
        self._files: dict[str, File[Line]] = {}
        self._latest: File[Line] = File("", [])

    def take(self, data: bytes, place: Place) -> Iterable[Trace]:
        """Take one line."""
        line = type(self).decode(data)
        if self._latest.path != place.path:
            self._latest = self._files.setdefault(place.path, File(place.path, []))
        self._latest.lines.append((line, place))
        return ()

    def finish(self) -> Iterator[Trace]:
        """Yield the runs of the batch."""
        files = list(self._files.values())
        try:
            yield from self.runs(files)
        except HOSTILE as error:
            reason = f"its run cannot be put together: {why(error)}"
            self.account.bad(files[0].lines[0][1], reason)

    def tell(self, lines: Iterable[tuple[Line, Place]], take: Callable[[Line, Place], None]) -> None:
        """Have lines taken one by one, and tell of those that cannot be read."""
        for line, place in lines:
            try:
                take(line, place)
            except HOSTILE as error:
                self.account.bad(place, f"not a line of format {self.source}: {why(error)}")

    def runs(self, files: list[File[Line]]) -> Iterator[Trace]:
        """Yield the runs that some files tell of."""
        raise NotImplementedError


class Subrun:
    """The run of a subagent: what its user says is said by the agent that started it.

    Attributes
    ----------
    builder
        The run, which has heard what the user had said before.
    delegated
        What it was told to do, in the words of the agent that started it.
    """

    def __init__(self, parent: RunBuilder | None, start: float | None) -> None:
        self.builder = RunBuilder("" if parent is None else parent.said_before(start))
        self.delegated = ""
        self._known = frozenset() if parent is None else parent.words

    def hear(self, words: str) -> None:
        """Take words under the user's name."""
        if words not in self._known:
            self.delegated = self.delegated or words


def in_order(files: list[File[Any]], time_of: Callable[[Any], float | None]) -> list[File[Any]]:
    """Return files by the time of their first line that has one."""

    def first(file: File[Any]) -> tuple[float, str]:
        return next((time for line, _ in file.lines if (time := time_of(line))), 0.0), file.path

    return sorted(files, key=first)
