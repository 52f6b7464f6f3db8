"""The file of recorded answers. It holds what a judge said of calls, and no text of any call.

JSON lines: the first is ``{"format": "safetydrift.judge/1"}``, every other one an answer, with the digest of its
question, levels, kinds, external, reason, confidence, model, version of the prompt, and the tokens it took.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self, cast

import msgspec

from safetydrift.effects.catalogue.acts import KINDS
from safetydrift.errors import JudgeFileError
from safetydrift.judge.answer import MAX_REASON, Answer, AnswerError, Kind, Share, check_levels
from safetydrift.judge.definitions import default_scales

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import FileIO
    from os import PathLike

    from safetydrift.effects.catalogue.scales import Scales

ANSWERS_FORMAT = "safetydrift.judge/1"
MAX_LINE = 16 * 1024
"""Bytes of one line."""
MAX_ANSWERS = 5_000_000
"""Answers in one file."""
_HEADER = f'{{"format":"{ANSWERS_FORMAT}"}}\n'.encode()
_MAX_TOKENS = 10**12

Digest = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
Version = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{16}\Z")]
Tokens = Annotated[int, msgspec.Meta(ge=0, le=_MAX_TOKENS)]


class _Header(msgspec.Struct, forbid_unknown_fields=True):
    format: str


class _Usage(msgspec.Struct, forbid_unknown_fields=True):
    input: Tokens
    output: Tokens


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    digest: Digest
    levels: dict[str, str]
    kinds: Annotated[list[Kind], msgspec.Meta(max_length=len(KINDS))]
    external: bool
    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_REASON)]
    confidence: Share
    model: Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
    prompt: Version
    usage: _Usage

    @classmethod
    def of(cls, digest: str, answer: Answer) -> Self:
        return cls(
            digest=digest,
            levels=dict(answer.levels),
            kinds=cast("list[Kind]", list(answer.kinds)),
            external=answer.external,
            reason=answer.reason,
            confidence=answer.confidence,
            model=answer.model,
            prompt=answer.prompt,
            usage=_Usage(*answer.usage),
        )

    def answer(self, scales: Scales) -> Answer:
        if sorted(set(self.kinds)) != self.kinds:
            raise AnswerError("its kinds are not in alphabetical order, or one is named twice")
        if not (self.reason + self.model).isprintable():
            raise AnswerError("its reason or model holds characters that do not show")
        return Answer(
            levels=check_levels(self.levels, scales),
            kinds=tuple(self.kinds),
            external=self.external,
            reason=self.reason,
            confidence=self.confidence,
            model=self.model,
            prompt=self.prompt,
            usage=(self.usage.input, self.usage.output),
        )


def read_answers(path: str | PathLike[str], scales: Scales | None = None) -> dict[str, Answer]:
    """Read recorded answers, by digest of the question.

    Parameters
    ----------
    scales
        The dimensions and levels that answers are given in; by default those of the shipped catalogue.

    Raises
    ------
    JudgeFileError
        If the file cannot be read, or a line is none of ours; the message names the line. A last line without its
        end is what a crash leaves behind, and is passed over.
    """
    scales = scales or default_scales()
    answers: dict[str, Answer] = {}
    for number, line in _lines(path):
        where = f"{path}:{number}"
        try:
            read = msgspec.json.decode(line, type=_Line)
            answer = read.answer(scales)
        except (msgspec.DecodeError, UnicodeError, RecursionError, AnswerError) as error:
            raise JudgeFileError(f"{where}: no answer: {_shown(error)}") from None
        if answers.setdefault(read.digest, answer) != answer:
            raise JudgeFileError(f"{where}: another answer to a question that was answered before")
        if len(answers) > MAX_ANSWERS:
            raise JudgeFileError(f"{path}: more than {MAX_ANSWERS} answers")
    return answers


def _lines(path: str | PathLike[str]) -> Iterator[tuple[int, bytes]]:
    """Yield number and content of every whole line after the header."""
    if Path(path).exists() and not Path(path).is_file():
        raise JudgeFileError(f"{path}: not a regular file")
    try:
        with Path(path).open("rb") as file:
            _check_header(path, file.readline(MAX_LINE + 1))
            number = 1
            while line := file.readline(MAX_LINE + 1):
                number += 1
                if not line.endswith(b"\n"):
                    if len(line) > MAX_LINE:
                        raise JudgeFileError(f"{path}:{number}: longer than {MAX_LINE} bytes")
                    return
                yield number, line
    except (OSError, ValueError) as error:
        if isinstance(error, JudgeFileError):
            raise
        raise JudgeFileError(
            f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from error


def _check_header(path: str | PathLike[str], line: bytes) -> None:
    try:
        found = msgspec.json.decode(line, type=_Header).format
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise JudgeFileError(f"{path}: no file of recorded answers") from None
    if found != ANSWERS_FORMAT or not line.endswith(b"\n"):
        raise JudgeFileError(
            f"{path}: format {found[:40]!r} is not supported; this version reads {ANSWERS_FORMAT!r}"
        )


def _shown(error: Exception) -> str:
    """Return what is wrong, on one line that cannot speak to a terminal."""
    text = str(error)[:200]
    return "".join([char if char.isprintable() else "?" for char in text])


class AnswerFile:
    """A file of answers that grows by one whole line at a time.

    Parameters
    ----------
    path
        The file; it is made if there is none. What a crash left of a last line is cut off.
    scales
        The dimensions and levels that answers are given in.

    Raises
    ------
    JudgeFileError
        If the file cannot be read or written, or another process is writing to it.

    Attributes
    ----------
    answers
        What it holds, by digest of the question.
    """

    def __init__(self, path: str | PathLike[str], scales: Scales | None = None) -> None:
        self.path = Path(path)
        self._file = _opened(self.path)
        try:
            self.answers = read_answers(self.path, scales)
        except BaseException:
            self._file.close()
            raise

    def add(self, digest: str, answer: Answer) -> None:
        """Write an answer in one piece and see that it is on the disk; one that is there already is not repeated.

        Raises
        ------
        JudgeFileError
            If it cannot be written.
        """
        if digest in self.answers:
            return
        line = msgspec.json.encode(_Line.of(digest, answer)) + b"\n"
        try:
            _append(self._file, line)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise JudgeFileError(f"{self.path}: cannot be written: {reason}") from error
        self.answers[digest] = answer

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _opened(path: Path) -> FileIO:
    """Open a file of answers for appending, held for this process alone and ending with a whole line."""
    try:
        file = path.open("a+b", buffering=0)
    except OSError as error:
        raise JudgeFileError(f"{path}: cannot be written: {error.strerror or error}") from error
    try:
        _hold(file, path)
        _mend(file, path)
    except OSError as error:
        file.close()
        raise JudgeFileError(f"{path}: cannot be written: {error.strerror or error}") from error
    except BaseException:
        file.close()
        raise
    return file


def _append(file: FileIO, line: bytes) -> None:
    """Write a line whole and see that it is on the disk, or leave the file as it was."""
    start = file.seek(0, os.SEEK_END)
    try:
        written = file.write(line)
        os.fsync(file.fileno())
    except OSError:
        file.truncate(start)
        raise
    if written != len(line):
        file.truncate(start)
        raise OSError("there is no room for all of a line")


def _hold(file: FileIO, path: Path) -> None:
    """Refuse a file that somebody else is writing to, where the system can tell."""
    try:
        import fcntl  # noqa: PLC0415  # not on every system
    except ImportError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise JudgeFileError(f"{path}: another process is writing to it") from None


def _mend(file: FileIO, path: Path) -> None:
    """Give an empty file its header; cut off a last line that was not finished, of no file but ours."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    head = file.read(MAX_LINE + 1)
    if len(head) == size < len(_HEADER) and _HEADER.startswith(head):
        file.truncate(0)
        file.write(_HEADER)
        return
    first, end, _ = head.partition(b"\n")
    _check_header(path, first + end)
    file.seek(max(0, size - MAX_LINE - 1))
    tail = file.read()
    unfinished = len(tail) - (tail.rfind(b"\n") + 1)
    if unfinished <= MAX_LINE:
        file.truncate(size - unfinished)
