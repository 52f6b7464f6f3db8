"""Files of JSON: which of them to read, and their lines, whatever they are compressed with.

Nothing here knows what a trace is. A line is never held in memory beyond the limit it is read with, and
whatever is wrong with a file comes out as ``Damage``.
"""

from __future__ import annotations

import gzip
import io
import lzma
import os
import sys
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from safetydrift.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import IO

LINE_SUFFIXES = (".jsonl", ".ndjson")
JSON_SUFFIXES = (*LINE_SUFFIXES, ".json")
LOG_SUFFIX = ".eval"
"""Logs of Inspect, which are archives of JSON."""
LOG_NOTES = frozenset(("eval-set.json", "logs.json"))
"""What Inspect writes beside them."""
_AGENT_NOTES = (".meta.json", "sessions-index.json")
"""How files end that Claude Code writes beside its transcripts."""
_COMPRESSED_SUFFIXES = (".gz", ".xz", ".zst")
_GZIP, _XZ, _ZSTD = b"\x1f\x8b", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"
_BOM = b"\xef\xbb\xbf"
_GULP = 1 << 20


class Damage(Exception):  # noqa: N818  # what happened to a file; the error callers meet is TraceFormatError
    """A file cannot be read, or not any further. The message is the reason."""


def json_suffix(path: Path) -> str:
    """Return the suffix that says JSON or lines of it, past the one of a compression; empty without any."""
    name = path.name.lower()
    for suffix in _COMPRESSED_SUFFIXES:
        name = name.removesuffix(suffix)
    return next((suffix for suffix in JSON_SUFFIXES if name.endswith(suffix)), "")


def files_below(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield every file below a folder in a stable order, each with the reason to pass it over or ``""``.

    Links to folders are not followed, so there are no loops; pipes and devices are passed over, for reading
    one may never end.
    """
    for here, folders, names in os.walk(folder, onerror=_unreadable):
        folders.sort()
        for name in folders:
            if (link := Path(here, name)).is_symlink():
                yield link, "a link to a folder"
        for name in sorted(names):
            yield (path := Path(here, name)), _reason_to_pass_over(path)


def _unreadable(error: OSError) -> None:
    raise Damage(f"{error.filename}: cannot be read: {error.strerror}") from error


def _reason_to_pass_over(path: Path) -> str:
    if not json_suffix(path) and not path.name.lower().endswith(LOG_SUFFIX):
        return f"not {', '.join((*JSON_SUFFIXES, LOG_SUFFIX))}"
    if path.name in LOG_NOTES and any(path.parent.glob(f"*{LOG_SUFFIX}")):
        return "written by Inspect about its logs"
    if path.name.endswith(_AGENT_NOTES):
        return "written by Claude Code about its transcripts"
    return "" if path.is_file() else "not a regular file"


class _MeteredFile(io.FileIO):
    """A file that says how much of it was read."""

    def __init__(self, path: Path, on_read: Callable[[int], None]) -> None:
        super().__init__(path)
        self._on_read = on_read

    def readinto(self, buffer: Any) -> int:
        n = super().readinto(buffer) or 0
        self._on_read(n)
        return n


class Lines:
    """The lines of a file, decompressed by what its first bytes say.

    Iterating yields ``(number, line)``, the line without its end, or None in place of a line over the limit;
    what remains of such a line is skipped without being held.

    Parameters
    ----------
    path
        The file.
    limit
        The most bytes a line, or the rest of the file, may have.
    on_read
        Called with the number of bytes each time some were read from disk.

    Attributes
    ----------
    is_torn
        Whether the latest line has no end: the file was cut there, or is still being written.
    """

    def __init__(self, path: Path, limit: int, on_read: Callable[[int], None]) -> None:
        self.is_torn = False
        self._limit = limit
        self._number = 0
        self._damages: tuple[type[BaseException], ...] = (
            OSError,
            EOFError,
            MemoryError,
            lzma.LZMAError,
            zlib.error,
        )
        try:
            self._raw: IO[bytes] = io.BufferedReader(_MeteredFile(path, on_read))
        except (OSError, ValueError) as error:
            raise Damage(f"cannot be read: {getattr(error, 'strerror', None) or error}") from error
        self._stream: IO[bytes] = self._raw

    def __enter__(self) -> Self:
        """Look at the first bytes."""
        try:
            self._stream = self._decompressed(self._raw)
        except OSError as error:
            self._raw.close()
            raise Damage(f"cannot be read: {error.strerror or error}") from error
        except MissingExtraError:
            self._raw.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self._stream.close()
        self._raw.close()

    def __iter__(self) -> Iterator[tuple[int, bytes | None]]:
        """Yield number and content of every line that was not read yet."""
        while line := self._read(self._stream.readline, self._limit + 1):
            self._number += 1
            if self._number == 1:
                line = line.removeprefix(_BOM)
            self.is_torn = not line.endswith(b"\n")
            content = line if self.is_torn else line[:-1]
            if len(content) <= self._limit:
                yield self._number, content
                continue
            while not line.endswith(b"\n") and (line := self._read(self._stream.readline, _GULP)):
                pass
            yield self._number, None

    def rest(self) -> bytes | None:
        """Return everything not read yet, or None if it is over the limit."""
        pieces, size = [], 0
        while piece := self._read(self._stream.read, _GULP):
            pieces.append(piece)
            size += len(piece)
            if size > self._limit:
                return None
        return b"".join(pieces)

    def _read(self, read: Callable[[int], bytes], at_most: int) -> bytes:
        try:
            return read(at_most)
        except self._damages as error:
            where = f"after line {self._number}" if self._number else "at its beginning"
            raise Damage(f"damaged {where}, and the rest of the file is lost: {error!s}") from error

    def _decompressed(self, raw: Any) -> Any:
        magic = raw.peek(len(_XZ))
        if magic.startswith(_GZIP):
            return gzip.open(raw)
        if magic.startswith(_XZ):
            return lzma.open(raw)
        if magic.startswith(_ZSTD):
            zstd = zstd_module()
            self._damages += (zstd.ZstdError,)
            return zstd.open(raw)
        return raw


@contextmanager
def complete_or_absent(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that appears under its name only when it is complete; compressed if its suffix says so.

    A link is followed: the file it leads to is replaced, not the link. What is no regular file (a device, a pipe)
    cannot be replaced and is written to as it stands.

    Raises
    ------
    MissingExtraError
        If the path ends in .zst and the package for it is not installed.
    OSError
        If the file cannot be written.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as plain, _compressed(plain, path.suffix) as stream:
            yield stream
        return
    with (
        replaced_when_complete(path) as unfinished,
        unfinished.open("wb") as plain,
        _compressed(plain, path.suffix) as stream,
    ):
        yield stream


@contextmanager
def replaced_when_complete(path: Path) -> Iterator[Path]:
    """Give the name of a file to write beside another, which it replaces when the block ends without an error."""
    path = path.resolve()
    unfinished = path.with_name(f"{path.name}.unfinished")
    try:
        yield unfinished
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _compressed(plain: IO[bytes], suffix: str) -> Any:
    if suffix == ".gz":
        return gzip.GzipFile(
            "", "wb", fileobj=plain, mtime=0
        )  # no name and no time: same content, same bytes
    if suffix == ".xz":
        return lzma.open(plain, "wb")
    if suffix == ".zst":
        return zstd_module().open(plain, "wb")
    return plain


def zstd_module() -> Any:
    """Return the module that reads and writes Zstandard.

    Raises
    ------
    MissingExtraError
        If it is not installed; before Python 3.14 an extra brings it.
    """
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd  # noqa: PLC0415  # only where a file needs it
        else:
            from backports import zstd  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError("backports.zstd", "zstd", "reading or writing .zst") from error
    return zstd
