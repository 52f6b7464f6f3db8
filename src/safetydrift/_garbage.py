"""Reading large files without looking for garbage: nothing that is read refers to itself."""

from __future__ import annotations

import gc


class Uncollected:
    """A block in which the collector of cyclic garbage rests; it would walk through all that was read so far."""

    __slots__ = ("_was_on",)

    def __enter__(self) -> None:
        self._was_on = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._was_on:
            gc.enable()
