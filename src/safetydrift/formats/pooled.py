"""Formats whose runs may be spread over any of the files read: spans wait until all were seen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from safetydrift.formats.format import HOSTILE, why
from safetydrift.formats.spans import runs_of
from safetydrift.formats.spool import Spool

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from safetydrift.formats.format import Account, Place
    from safetydrift.formats.spans import Span
    from safetydrift.trace import Trace

_APART = "\x1f"


def trace_at(place: Place) -> str:
    """Return an id for a trace that has none: the file's name and the line, and apart from it the folder."""
    path = Path(place.path)
    return f"{path.name}:{place.line or 1}{f'.{place.number}' if place.number else ''}{_APART}{path.parent}"


class SpanFormat:
    """A format of spans; a child says which are in a record."""

    name = ""
    description = ""
    pooled = True

    def recognises(self, record: object) -> bool:
        """Return whether decoded JSON is a record of this format."""
        raise NotImplementedError

    def spans(self, data: bytes, place: Place, account: Account) -> Iterable[Span]:
        """Return the spans in a record; what it holds besides is told to the account."""
        raise NotImplementedError

    def keys(self, path: Path, head: Iterable[object]) -> Iterator[str]:  # noqa: ARG002  # all files are one batch
        """Yield nothing."""
        yield from ()

    def gather(self, account: Account) -> _Gatherer:
        """Return what takes the records of all files."""
        return _Gatherer(self, account)


class _Gatherer:
    def __init__(self, kind: SpanFormat, account: Account) -> None:
        self._kind, self._account, self._spool = kind, account, Spool()

    def take(self, data: bytes, place: Place) -> Iterable[Trace]:
        """Keep the spans of a record until their sessions are complete."""
        counted = self._account.items
        spans = list(self._kind.spans(data, place, self._account))
        for span in spans:
            self._spool.add(span, len(data) // len(spans))
        if not spans and self._account.items == counted:
            self._account.skipped("a record that holds nothing", place)
        return ()

    def finish(self) -> Iterator[Trace]:
        """Yield the runs of every session."""
        for name, spans in self._spool.sessions(self._account):
            place = next((span.place for span in spans if span.place is not None), None)
            if place is None:
                continue
            try:
                yield from runs_of(spans, name.partition(_APART)[0], self._kind.name, self._account)
            except HOSTILE as error:
                self._account.bad(place, f"its run cannot be put together: {why(error)}")
