"""Predictions read from a file: ours, written by ``safetydrift predict``, or anybody else's in the same form.

See `safetydrift.evaluation.predictions` for the lines. Of each, ``trace``, ``step`` and ``p`` are needed; ``alarm``,
``unseen``, ``p_end`` and ``pending`` may be left out, the first and last by all lines or by none. The file is
untrusted: it is bounded in size, every number is checked, and whatever does not fit is an error that names the line.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypeVar

import msgspec
import numpy as np

from safetydrift.errors import PredictionFileError
from safetydrift.evaluation.scores import Fixed, Scores
from safetydrift.formats.files import Damage, Lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from os import PathLike

    from safetydrift.evaluation.cases import Case, CaseSet
    from safetydrift.markov._arrays import BoolArray, FloatArray

MAX_LINE = 64 * 1024
"""Bytes of one line."""
MAX_PREDICTIONS = 5_000_000
"""Lines of one file."""
UNKNOWN = (1.0, 1.0, 1.0)
"""What counts where a file does not know: unknown is not safe."""

T = TypeVar("T")
Probability = Annotated[float, msgspec.Meta(ge=0, le=1)]


class _Pending(msgspec.Struct):
    risk: Probability
    alarm: bool | None = None


class _Within(msgspec.Struct):
    one: Probability = msgspec.field(name="1")
    three: Probability = msgspec.field(name="3")
    five: Probability = msgspec.field(name="5")


class _Line(msgspec.Struct):
    trace: Annotated[str, msgspec.Meta(max_length=4096)]
    step: Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]
    p: _Within
    p_end: Probability | None = None
    alarm: bool | None = None
    unseen: bool = False
    pending: _Pending | None = None


class _Said(NamedTuple):
    """What a line says, and which line it is."""

    line: int
    within: tuple[float, float, float]
    alarm: bool | None
    pending: float | None
    pending_alarm: bool | None


def lines_of(path: str, limit: int, what: str) -> Iterator[tuple[int, bytes]]:
    """Yield number and content of every line that is not blank.

    Parameters
    ----------
    limit
        Bytes of one line.
    what
        What a line is, for messages.

    Raises
    ------
    PredictionFileError
        If the file cannot be read, or holds too much.
    """
    try:
        with Lines(Path(path), limit, lambda _n: None) as lines:
            for number, line in lines:
                if line is None:
                    raise PredictionFileError(path, number, f"longer than {limit} bytes")
                if number > MAX_PREDICTIONS:
                    raise PredictionFileError(path, number, f"more than {MAX_PREDICTIONS} lines of {what}")
                if line.strip():
                    yield number, line
    except Damage as damage:
        raise PredictionFileError(path, None, str(damage)) from damage


def decoded(path: str, number: int, line: bytes, kind: type[T], what: str) -> T:
    """Return what a line says.

    Raises
    ------
    PredictionFileError
        If that is not of its kind; the message is one line that cannot speak to a terminal.
    """
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        shown = "".join([char if char.isprintable() else "?" for char in str(error)[:200]])
        raise PredictionFileError(path, number, f"not a {what}: {shown}") from None


class PredictionFile:
    """The predictions of a file, to be scored against any cases.

    Parameters
    ----------
    path
        The file; compressed ones are read as such.
    name
        How tables name it; by default what the file is called, without its suffixes.

    Raises
    ------
    PredictionFileError
        If it cannot be read, a line is no prediction, or a step of a run is predicted twice.
    """

    def __init__(self, path: str | PathLike[str], name: str | None = None) -> None:
        self.path = str(path)
        self.name = Path(path).name.split(".")[0] if name is None else name
        self._runs: dict[str, dict[int, _Said]] = {}
        for number, line in lines_of(self.path, MAX_LINE, "predictions"):
            read = decoded(self.path, number, line, _Line, "prediction")
            run = self._runs.setdefault(read.trace, {})
            if read.step in run:
                raise PredictionFileError(
                    self.path,
                    number,
                    f"step {read.step} of run {read.trace!r} was predicted before, in line {run[read.step].line}",
                )
            risk, flag = (None, None) if read.pending is None else (read.pending.risk, read.pending.alarm)
            within = UNKNOWN if read.unseen else (read.p.one, read.p.three, read.p.five)
            run[read.step] = _Said(number, within, read.alarm, risk, flag)

    @property
    def predictor(self) -> Fixed:
        """Itself in the shape of a predictor that needs no fitting."""
        return Fixed(self.name, self)

    def score(self, cases: CaseSet) -> Scores:
        """Give every point and proposal what the file says; runs it does not name are not covered.

        Lines about runs that are not among the cases, and about steps after the violating call, are passed over.

        Raises
        ------
        PredictionFileError
            If a run is predicted in part, or beyond its end; or two of the cases share one id.
        """
        covered = np.array([case.run.id in self._runs for case in cases.cases], dtype=np.bool_)
        times = Counter(case.run.id for case in cases.cases if case.run.id in self._runs)
        if twice := [trace for trace, number in times.items() if number > 1]:
            raise PredictionFileError(
                self.path,
                None,
                f"several of the runs are called {twice[0]!r}, and its lines may mean any of them",
            )
        points: list[_Said | None] = []
        proposals: list[_Said | None] = []
        for case in cases.cases:
            said = self._steps(case)
            points += said
            proposals += said[: case.n_proposals]
        within = np.array([UNKNOWN if one is None else one.within for one in points]).reshape(-1, 3)
        return Scores(
            self.name,
            within,
            self._numbers(proposals, "pending", "risk of the proposed call"),
            self._flags(points, "alarm", "alarm"),
            self._flags(proposals, "pending_alarm", "alarm for the proposed call"),
            covered=covered,
        )

    def _steps(self, case: Case) -> list[_Said | None]:
        """Return what is said at every point of a run; nothing, if the run is not named."""
        run = self._runs.get(case.run.id)
        if run is None:
            return [None] * case.n_points
        if (last := max(run)) > case.run.n_steps:
            raise PredictionFileError(
                self.path,
                run[last].line,
                f"there is no step {last} of run {case.run.id!r}, which has {case.run.n_steps} calls",
            )
        for step in range(case.n_points):
            if step not in run:
                raise PredictionFileError(
                    self.path, None, f"run {case.run.id!r} has no prediction after {step} calls"
                )
        return [run[step] for step in range(case.n_points)]

    def _numbers(self, said: Sequence[_Said | None], field: str, what: str) -> FloatArray | None:
        """Return the values of a field, 1 for runs not covered; None if no line has one."""
        known = [one for one in said if one is not None]
        given = [one for one in known if getattr(one, field) is not None]
        if not given:
            return None
        if len(given) < len(known):
            first = next(one for one in known if getattr(one, field) is None)
            raise PredictionFileError(self.path, first.line, f"no {what}, which other lines give")
        return np.array([1.0 if one is None else getattr(one, field) for one in said])

    def _flags(self, said: Sequence[_Said | None], field: str, what: str) -> BoolArray | None:
        numbers = self._numbers(said, field, what)
        return None if numbers is None else (numbers > 0) & np.array([one is not None for one in said])
