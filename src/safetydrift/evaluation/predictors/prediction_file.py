"""Predictions read from a file: ours, written by ``safetydrift predict``, or anybody else's in the same form.

See `safetydrift.evaluation.predictions` for the lines. Of each, ``trace``, ``step`` and ``p`` are needed; ``alarm``,
``unseen``, ``p_end`` and ``pending`` may be left out, the first and last by all lines or by none. The file is
untrusted: it is bounded in size, every number is checked, and whatever does not fit is an error that names the line.
"""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import numpy as np

from safetydrift.errors import PredictionFileError
from safetydrift.evaluation.scores import HORIZONS, Fixed, Scores
from safetydrift.formats.files import Damage, Lines

if TYPE_CHECKING:
    from os import PathLike

    from safetydrift.evaluation.cases import CaseSet
    from safetydrift.markov._arrays import BoolArray, FloatArray, IntArray

MAX_LINE = 64 * 1024
"""Bytes of one line."""
MAX_PREDICTIONS = 20_000_000
"""Lines of one file."""
_SPAN = 1 << 32
_MAX_TRACE = 4096

Probability = Annotated[float, msgspec.Meta(ge=0, le=1)]
Trace = Annotated[str, msgspec.Meta(max_length=_MAX_TRACE)]
Step = Annotated[int, msgspec.Meta(ge=0, lt=_SPAN)]


class _Pending(msgspec.Struct):
    risk: Probability
    alarm: bool | None = None


class _Within(msgspec.Struct):
    one: Probability = msgspec.field(name="1")
    three: Probability = msgspec.field(name="3")
    five: Probability = msgspec.field(name="5")


class _Line(msgspec.Struct):
    trace: Trace
    step: Step
    p: _Within
    p_end: Probability | None = None
    alarm: bool | None = None
    unseen: bool = False
    pending: _Pending | None = None


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
        columns = _Columns(self.path)
        try:
            with Lines(Path(path), MAX_LINE, lambda _n: None) as lines:
                for number, line in lines:
                    columns.add(number, line)
        except Damage as damage:
            raise PredictionFileError(self.path, None, str(damage)) from damage
        self._number_of = columns.traces
        keys = np.frombuffer(columns.keys, dtype=np.int64)
        order = np.argsort(keys, kind="stable")
        self._keys: IntArray = keys[order]
        self._line: IntArray = np.frombuffer(columns.lines, dtype=np.int64)[order]
        self._within: FloatArray = np.frombuffer(columns.within, dtype=np.float64).reshape(-1, 3)[order]
        self._pending: FloatArray = np.frombuffer(columns.pending, dtype=np.float64)[order]
        self._alarm, self._pending_alarm = (
            np.frombuffer(column, dtype=np.int8)[order].astype(np.int64)
            for column in (columns.alarm, columns.pending_alarm)
        )
        self._require_single()

    def __len__(self) -> int:
        return len(self._keys)

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
        run = np.array([self._number_of.get(case.run.id, -1) for case in cases.cases], dtype=np.int64)
        covered = run >= 0
        self._require_one_each(run[covered])
        self._require_within_runs(cases, run)
        at_point = self._find(run[cases.run_of_point], cases.step_of_point)
        call = cases.step_of_proposal
        at_call = self._find(run[cases.run_of_proposal], call)
        within = np.ones((len(at_point), len(HORIZONS)))
        within[at_point >= 0] = self._within[at_point[at_point >= 0]]
        return Scores(
            self.name,
            within,
            self._all_or_none(self._pending, at_call, "risk of the proposed call"),
            self._flags(self._alarm, at_point, "alarm"),
            self._flags(self._pending_alarm, at_call, "alarm for the proposed call"),
            covered=covered,
        )

    def _find(self, run: IntArray, step: IntArray) -> IntArray:
        """Return where the prediction of each step stands, -1 for runs that are not covered."""
        wanted = run * _SPAN + step
        place = np.minimum(np.searchsorted(self._keys, wanted), max(len(self._keys) - 1, 0))
        found = (run >= 0) & (self._keys[place] == wanted) if len(self._keys) else run >= 0
        missing = np.flatnonzero((run >= 0) & ~found)
        if len(missing):
            trace = list(self._number_of)[int(run[missing[0]])]
            raise PredictionFileError(
                self.path, None, f"run {trace!r} has no prediction after {int(step[missing[0]])} calls"
            )
        return np.where(run >= 0, place, -1)

    def _all_or_none(self, values: FloatArray, place: IntArray, what: str) -> FloatArray | None:
        """Return the values that are there, 1 for runs not covered; None if no line has one."""
        asked = place >= 0
        given = ~np.isnan(values[place[asked]])
        if not given.any():
            return None
        if not given.all():
            line = int(self._line[place[asked][~given][0]])
            raise PredictionFileError(self.path, line, f"no {what}, which other lines give")
        filled = np.ones(len(place))
        filled[asked] = values[place[asked]]
        return filled

    def _flags(self, values: IntArray, place: IntArray, what: str) -> BoolArray | None:
        numbers = self._all_or_none(np.where(values < 0, np.nan, values.astype(np.float64)), place, what)
        return None if numbers is None else (numbers > 0) & (place >= 0)

    def _require_single(self) -> None:
        twice = np.flatnonzero(np.diff(self._keys) == 0)
        if len(twice):
            key, line = int(self._keys[twice[0]]), int(self._line[twice[0] + 1])
            trace = list(self._number_of)[key // _SPAN]
            first = int(self._line[twice[0]])
            raise PredictionFileError(
                self.path, line, f"step {key % _SPAN} of run {trace!r} was predicted before, in line {first}"
            )

    def _require_one_each(self, run: IntArray) -> None:
        numbers, times = np.unique(run, return_counts=True)
        if (times > 1).any():
            trace = list(self._number_of)[int(numbers[times > 1][0])]
            raise PredictionFileError(
                self.path,
                None,
                f"several of the runs are called {trace!r}, and its lines may mean any of them",
            )

    def _require_within_runs(self, cases: CaseSet, run: IntArray) -> None:
        most = np.full(len(self._number_of), _SPAN, dtype=np.int64)
        most[run[run >= 0]] = [
            case.run.n_steps for case, one in zip(cases.cases, run, strict=True) if one >= 0
        ]
        beyond = np.flatnonzero(self._keys % _SPAN > most[self._keys // _SPAN])
        if len(beyond):
            key = int(self._keys[beyond[0]])
            trace, steps = list(self._number_of)[key // _SPAN], int(most[key // _SPAN])
            raise PredictionFileError(
                self.path,
                int(self._line[beyond[0]]),
                f"there is no step {key % _SPAN} of run {trace!r}, which has {steps} calls",
            )


class _Columns:
    """What was read so far, a column per field, so that millions of lines fit."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.traces: dict[str, int] = {}
        self.keys, self.lines = array("q"), array("q")
        self.within, self.pending = array("d"), array("d")
        self.alarm, self.pending_alarm = array("b"), array("b")
        self._decode = msgspec.json.Decoder(_Line).decode

    def add(self, number: int, line: bytes | None) -> None:
        if line is None:
            raise PredictionFileError(self.path, number, f"longer than {MAX_LINE} bytes")
        if not line.strip():
            return
        if number > MAX_PREDICTIONS:
            raise PredictionFileError(self.path, number, f"more than {MAX_PREDICTIONS} lines")
        try:
            read = self._decode(line)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise PredictionFileError(self.path, number, f"not a prediction: {_shown(error)}") from None
        run = self.traces.setdefault(read.trace, len(self.traces))
        self.keys.append(run * _SPAN + read.step)
        self.lines.append(number)
        p = read.p
        self.within.extend((1.0, 1.0, 1.0) if read.unseen else (p.one, p.three, p.five))
        pending = read.pending
        self.pending.append(float("nan") if pending is None else pending.risk)
        self.alarm.append(_flag(read.alarm))
        self.pending_alarm.append(_flag(None if pending is None else pending.alarm))


def _flag(value: bool | None) -> int:
    return -1 if value is None else int(value)


def _shown(error: Exception) -> str:
    """Return what is wrong, on one line that cannot speak to a terminal."""
    return "".join([char if char.isprintable() else "?" for char in str(error)[:200]])
