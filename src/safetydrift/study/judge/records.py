"""Files of what a judge said, one JSON line each after a header; they hold no text of any call.

A file grows by one whole line at a time, held by one process. A last line without its end is what a crash leaves
behind: it is passed over when the file is read, and cut off when it is written on.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import msgspec

from safetydrift.errors import JudgeFileError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import FileIO
    from os import PathLike

MAX_LINE = 16 * 1024
"""Bytes of one line."""
MAX_RECORDS = 5_000_000
"""Lines of one file."""

Line = TypeVar("Line", bound=msgspec.Struct)


def read_records(path: str | PathLike[str], header: msgspec.Struct, kind: type[Line]) -> Iterator[Line]:
    """Yield what a file holds.

    Parameters
    ----------
    header
        What its first line has to say.
    kind
        What every other line is.

    Raises
    ------
    JudgeFileError
        If it cannot be read, has another header, or a line is none of ours; the message names the line.
    """
    for number, line in _lines(path):
        if number == 1:
            _check_header(path, line, header)
            continue
        if number > MAX_RECORDS:
            raise JudgeFileError(f"{path}: more than {MAX_RECORDS} lines")
        try:
            yield msgspec.json.decode(line, type=kind)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise JudgeFileError(f"{path}:{number}: no answer: {_shown(error)}") from None


def _lines(path: str | PathLike[str]) -> Iterator[tuple[int, bytes]]:
    """Yield number and content of every whole line; the header as it is."""
    if Path(path).exists() and not Path(path).is_file():
        raise JudgeFileError(f"{path}: not a regular file")
    try:
        with Path(path).open("rb") as file:
            yield 1, file.readline(MAX_LINE + 1)
            number = 1
            while line := file.readline(MAX_LINE + 1):
                number += 1
                if not line.endswith(b"\n"):
                    if len(line) > MAX_LINE:
                        raise JudgeFileError(f"{path}:{number}: longer than {MAX_LINE} bytes")
                    return
                yield number, line
    except OSError as error:
        raise JudgeFileError(f"{path}: cannot be read: {error.strerror or error}") from error


def _check_header(path: str | PathLike[str], line: bytes, header: msgspec.Struct) -> None:
    try:
        found: Any = msgspec.json.decode(line, type=type(header))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise JudgeFileError(f"{path}: no file of recorded answers") from None
    if found != header or not line.endswith(b"\n"):
        raise JudgeFileError(
            f"{path}: holds answers in another format, of another model, or to other questions; choose another file"
        )


def _shown(error: Exception) -> str:
    """Return what is wrong, on one line that cannot speak to a terminal."""
    return "".join([char if char.isprintable() else "?" for char in str(error)[:200]])


class RecordFile:
    """A file that is written on; a context.

    Parameters
    ----------
    path
        The file; it is made if there is none. What a crash left of a last line is cut off.
    header
        What its first line says; a file that says otherwise is refused.

    Raises
    ------
    JudgeFileError
        If the file cannot be read or written, or another process is writing to it.
    """

    def __init__(self, path: str | PathLike[str], header: msgspec.Struct) -> None:
        self.path = Path(path)
        try:
            self._file: FileIO = self.path.open("a+b", buffering=0)  # closed with the object
        except OSError as error:
            raise JudgeFileError(f"{path}: cannot be written: {error.strerror or error}") from error
        try:
            self._hold()
            self._mend(header)
        except OSError as error:
            self._file.close()
            raise JudgeFileError(f"{path}: cannot be written: {error.strerror or error}") from error
        except BaseException:
            self._file.close()
            raise

    def add(self, record: msgspec.Struct) -> None:
        """Write a line, and see that it is on the disk; what did not get there is cut off when the file is written on.

        Raises
        ------
        JudgeFileError
            If it cannot be written.
        """
        line = msgspec.json.encode(record) + b"\n"
        try:
            if self._file.write(line) < len(line):
                raise OSError("a line did not reach the disk")  # noqa: TRY301  # told like all other reasons
            os.fsync(self._file.fileno())
        except (OSError, ValueError) as error:
            self._file.close()  # nothing may be written behind half a line
            reason = getattr(error, "strerror", None) or error
            raise JudgeFileError(f"{self.path}: cannot be written: {reason}") from error

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _hold(self) -> None:
        """Refuse a file that somebody else is writing to, where the system can tell."""
        try:
            import fcntl  # noqa: PLC0415  # not on every system
        except ImportError:
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise JudgeFileError(f"{self.path}: another process is writing to it") from None

    def _mend(self, header: msgspec.Struct) -> None:
        """Give an empty file its header; cut off a last line that was not finished, of no file but ours."""
        whole = msgspec.json.encode(header) + b"\n"
        size = self._file.seek(0, os.SEEK_END)
        self._file.seek(0)
        head = self._file.read(MAX_LINE + 1)
        if len(head) == size < len(whole) and whole.startswith(head):
            self._file.truncate(0)
            self._file.write(whole)
            return
        first, end, _ = head.partition(b"\n")
        _check_header(self.path, first + end, header)
        self._file.seek(max(0, size - MAX_LINE - 1))
        tail = self._file.read()
        unfinished = len(tail) - (tail.rfind(b"\n") + 1)
        if unfinished <= MAX_LINE:
            self._file.truncate(size - unfinished)
