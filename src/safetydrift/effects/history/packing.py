"""Sets of digests and of words as short texts, so that a history can be kept as JSON."""

from __future__ import annotations

from array import array
from binascii import a2b_base64, b2a_base64
from sys import byteorder

from safetydrift.errors import SnapshotError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_WIDTH = 4
_BETWEEN = "\n"


def pack(digests: Iterable[int]) -> str:
    """Return 32-bit digests as base64 of little-endian words, in ascending order."""
    return b2a_base64(_little(array("I", sorted(digests))).tobytes(), newline=False).decode()


def unpack(text: Any, most: int) -> frozenset[int]:
    """Return the digests of a packed text.

    Raises
    ------
    SnapshotError
        If it is none, or holds more than ``most``.
    """
    if not isinstance(text, str) or len(text) > most * 6 + 4:
        raise SnapshotError("not a packed set of digests")
    found = array("I")
    try:
        found.frombytes(a2b_base64(text, strict_mode=True) if text else b"")
    except ValueError as error:
        raise SnapshotError(f"not a packed set of digests: {error}") from error
    if len(found) > most:
        raise SnapshotError(f"a set of {len(found)} digests, where at most {most} are remembered")
    return frozenset(_little(found))


def pack_words(words: Iterable[str]) -> str:
    """Return words, which hold no line breaks, one a line and in order."""
    return _BETWEEN.join(sorted(words))


def unpack_words(text: Any, most: int) -> frozenset[str]:
    """Return the words of a packed text.

    Raises
    ------
    SnapshotError
        If it is none, or holds more than ``most``.
    """
    if not isinstance(text, str) or text.count(_BETWEEN) >= most:
        raise SnapshotError("not a packed set of words")
    return frozenset(text.split(_BETWEEN)) if text else frozenset()


def _little(numbers: array[int]) -> array[int]:
    """Return the numbers with their bytes swapped on machines that count the other way."""
    if byteorder == "big":
        numbers.byteswap()
    return numbers
