"""Server-sent events as bytes: cut apart without changing them, unless what they say is replaced."""

from __future__ import annotations

import re

from safetydrift.errors import MessageError
from safetydrift.integrations.mcp.wire import MAX_MESSAGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_END = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r)")
_LINE = re.compile(rb"\r\n|\n|\r")


class Event:
    """One event.

    Attributes
    ----------
    raw
        It as it came, its end included.
    data
        What it says; empty if nothing.
    """

    __slots__ = ("data", "raw")

    def __init__(self, raw: bytes, data: bytes) -> None:
        self.raw, self.data = raw, data

    def saying(self, data: bytes) -> bytes:
        """Return the event with other data; as it came if the data are its own."""
        if data is self.data:
            return self.raw
        others = [line for line in _LINE.split(self.raw) if line and not _is(line, b"data")]
        return b"".join(line + b"\n" for line in [*others, b"data: " + data]) + b"\n"


class Events:
    """Cuts a stream of bytes into events.

    Attributes
    ----------
    resumable
        Whether an event had an identifier, so that a client may ask for those after it on another connection.
    """

    def __init__(self) -> None:
        self._waiting = bytearray()
        self._looked = 0
        self.resumable = False

    def feed(self, data: bytes) -> Iterable[Event]:
        """Yield the events that are complete now.

        Raises
        ------
        MessageError
            If an event is too long.
        """
        waiting = self._waiting
        waiting += data
        while (end := _END.search(waiting, self._looked)) is not None:
            stop = end.end()
            if waiting[stop - 1 : stop] == b"\r" and stop == len(waiting):
                break  # a line feed may follow
            raw = bytes(waiting[:stop])
            del waiting[:stop]
            self._looked = 0
            yield self._event(raw)
        else:
            self._looked = max(0, len(waiting) - 3)
        if len(waiting) > MAX_MESSAGE:
            raise MessageError(f"the server sent an event of more than {MAX_MESSAGE} bytes")

    def _event(self, raw: bytes) -> Event:
        lines = _LINE.split(raw.removeprefix(b"\xef\xbb\xbf"))
        said = [line.partition(b":")[2].removeprefix(b" ") for line in lines if _is(line, b"data")]
        self.resumable = self.resumable or any(_is(line, b"id") for line in lines)
        return Event(raw, b"\n".join(said))


def _is(line: bytes, field: bytes) -> bool:
    return line == field or line.startswith(field + b":")
