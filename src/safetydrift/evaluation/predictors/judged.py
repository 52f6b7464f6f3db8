"""A language model as monitor: after every call it is shown the latest one, or three, and says how risky that is.

A baseline for what reading the texts achieves, without state and without probabilities that were learned.

Asking and scoring are apart. `record_judgements` walks raw traces and writes what the model said to a file;
`JudgementFile` scores runs from that file alone, offline and exactly. JSON lines: the first is the header
``{"format": "safetydrift.judgements/1", "model": .., "prompt": .., "window": ..}``, every other one
``{"digest": .., "trace": .., "step": k, "risk": 0..1, "unsafe": .., "usage": [in, out]}`` and no text of any call.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import numpy as np

from safetydrift.errors import PredictionFileError
from safetydrift.evaluation.scores import HORIZONS, Fixed, Scores

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import FileIO
    from os import PathLike
    from typing import Self

    from safetydrift.evaluation.cases import CaseSet

JUDGEMENTS_FORMAT = "safetydrift.judgements/1"
WINDOWS = (1, 3)
"""How many of the latest calls the model is shown: per step, or the published window."""
MAX_LINE = 16 * 1024
"""Bytes of one line."""
MAX_JUDGEMENTS = 5_000_000
"""Judgements in one file."""

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Count = Annotated[int, msgspec.Meta(ge=0, le=10**12)]


class Header(msgspec.Struct, forbid_unknown_fields=True):
    """Whose judgements a file holds, and of what."""

    format: str
    model: Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
    prompt: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{16}\Z")]
    window: Annotated[int, msgspec.Meta(ge=1, le=100)]


class Judgement(msgspec.Struct, forbid_unknown_fields=True):
    """What a model said after a call.

    Attributes
    ----------
    digest
        Of everything it was asked.
    trace, step
        The run, and the number of calls made.
    risk
        Its probability of a violation soon.
    unsafe
        Whether it would stop the run here.
    usage
        Tokens it took: in, out.
    """

    digest: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
    trace: Annotated[str, msgspec.Meta(max_length=4096)]
    step: Annotated[int, msgspec.Meta(ge=1, le=10**9)]
    risk: Share
    unsafe: bool
    usage: tuple[Count, Count] = (0, 0)


class JudgementFile:
    """Recorded judgements, to be scored against any cases.

    At a point the risk is what the model said after the latest call; before the first call there is nothing to show
    and the risk is 0. The same figure stands for every horizon. Runs of which a judgement is missing are not covered.

    Parameters
    ----------
    path
        The file.
    name
        How tables name it; by default the model and its window.

    Raises
    ------
    PredictionFileError
        If it cannot be read, or a line is no judgement. A last line without its end is what a crash leaves behind,
        and is passed over.
    """

    def __init__(self, path: str | PathLike[str], name: str | None = None) -> None:
        self.path = str(path)
        lines = _lines(Path(path))
        self.header = _header(self.path, next(lines, (1, b""))[1])
        window = "per step" if self.header.window == 1 else f"{self.header.window}-step window"
        self.name = f"judge, {window}" if name is None else name
        self.judgements: dict[tuple[str, int], Judgement] = {}
        for number, line in lines:
            self._add(number, line)

    def _add(self, number: int, line: bytes) -> None:
        try:
            read = msgspec.json.decode(line, type=Judgement)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            shown = "".join([char if char.isprintable() else "?" for char in str(error)[:200]])
            raise PredictionFileError(self.path, number, f"no judgement: {shown}") from None
        if (read.trace, read.step) in self.judgements:
            raise PredictionFileError(
                self.path, number, f"step {read.step} of run {read.trace!r} was judged before"
            )
        if len(self.judgements) >= MAX_JUDGEMENTS:
            raise PredictionFileError(self.path, number, f"more than {MAX_JUDGEMENTS} judgements")
        self.judgements[read.trace, read.step] = read

    def __len__(self) -> int:
        return len(self.judgements)

    @property
    def predictor(self) -> Fixed:
        """Itself in the shape of a predictor that needs no fitting."""
        return Fixed(self.name, self)

    def score(self, cases: CaseSet) -> Scores:
        """Look up every point; proposals were not judged."""
        n_points = int(cases.first_point[-1])
        risk, alarm = np.ones(n_points), np.zeros(n_points, dtype=np.bool_)
        covered = np.zeros(len(cases), dtype=np.bool_)
        for number, case in enumerate(cases.cases):
            said = [self.judgements.get((case.run.id, step)) for step in range(1, case.n_points)]
            known = [one for one in said if one is not None]
            if len(known) < len(said) or not self._knows(case.run.id, case.n_points):
                continue
            covered[number] = True
            part = slice(int(cases.first_point[number]), int(cases.first_point[number + 1]))
            risk[part] = [0.0, *(one.risk for one in known)]
            alarm[part] = [False, *(one.unsafe for one in known)]
        within = np.repeat(risk[:, None], len(HORIZONS), axis=1)
        return Scores(self.name, within, alarm=alarm, probabilistic=False, covered=covered)

    def _knows(self, trace: str, n_points: int) -> bool:
        """Return whether anything is said of a run; one with nothing but its start needs its first call judged."""
        return n_points > 1 or (trace, 1) in self.judgements


class JudgementWriter:
    """A file of judgements that grows by one whole line at a time; what it holds already is not asked again.

    Parameters
    ----------
    path
        The file; it is made if there is none. What a crash left of a last line is cut off.
    header
        Whose judgements these are; a file of others is refused.

    Raises
    ------
    PredictionFileError
        If the file cannot be read or written, or holds other judgements.
    """

    def __init__(self, path: str | PathLike[str], header: Header) -> None:
        self.path = str(path)
        try:
            self._file: FileIO = Path(path).open("a+b", buffering=0)  # noqa: SIM115  # closed with the writer
        except OSError as error:
            raise PredictionFileError(
                self.path, None, f"cannot be written: {error.strerror or error}"
            ) from error
        try:
            self.known = self._resume(header)
        except BaseException:
            self._file.close()
            raise

    def _resume(self, header: Header) -> dict[tuple[str, int], Judgement]:
        if self._file.seek(0, os.SEEK_END) == 0:
            self._write(msgspec.json.encode(header))
            return {}
        there = JudgementFile(self.path)
        if there.header != header:
            raise PredictionFileError(
                self.path, 1, "holds judgements of another model, prompt or window; choose another file"
            )
        self._cut_unfinished()
        return there.judgements

    def _cut_unfinished(self) -> None:
        """Cut off what a crash left of the last line; no line is longer than `MAX_LINE`."""
        size = self._file.seek(0, os.SEEK_END)
        start = self._file.seek(max(0, size - MAX_LINE - 1))
        tail = self._file.read(MAX_LINE + 1)
        if not tail.endswith(b"\n"):
            self._file.truncate(start + tail.rfind(b"\n") + 1)

    def add(self, judgement: Judgement) -> None:
        """Write a judgement in one piece.

        Raises
        ------
        PredictionFileError
            If it cannot be written.
        """
        self._write(msgspec.json.encode(judgement))
        self.known[judgement.trace, judgement.step] = judgement

    def _write(self, line: bytes) -> None:
        try:
            self._file.write(line + b"\n")
        except OSError as error:
            raise PredictionFileError(
                self.path, None, f"cannot be written: {error.strerror or error}"
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield number and content of every whole line."""
    try:
        if path.exists() and not path.is_file():
            raise PredictionFileError(str(path), None, "not a regular file")
        with path.open("rb") as file:
            for number in range(1, MAX_JUDGEMENTS + 3):
                line = file.readline(MAX_LINE + 1)
                if not line.endswith(b"\n"):
                    if len(line) > MAX_LINE:
                        raise PredictionFileError(str(path), number, f"longer than {MAX_LINE} bytes")
                    return
                yield number, line
    except OSError as error:
        raise PredictionFileError(str(path), None, f"cannot be read: {error.strerror or error}") from error


def _header(path: str, line: bytes) -> Header:
    try:
        header = msgspec.json.decode(line, type=Header)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise PredictionFileError(path, 1, "not a file of recorded judgements") from None
    if header.format != JUDGEMENTS_FORMAT:
        raise PredictionFileError(path, 1, f"its format is not supported; expected {JUDGEMENTS_FORMAT!r}")
    return header
