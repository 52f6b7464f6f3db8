"""A language model as monitor: after every call it was shown the latest one, or three, and said how risky that is.

A baseline for what reading the texts achieves, without state and without probabilities that were learned. What it said
was recorded; runs are scored from that file alone, offline and exactly. JSON lines: the first is the header
``{"format": "safetydrift.judgements/1", "model": .., "prompt": .., "window": ..}``, every other one
``{"digest": .., "trace": .., "step": k, "risk": 0..1, "unsafe": .., "usage": [in, out]}`` and no text of any call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import numpy as np

from safetydrift.errors import PredictionFileError
from safetydrift.evaluation.predictors.prediction_file import decoded, lines_of
from safetydrift.evaluation.scores import HORIZONS, Fixed, Scores

if TYPE_CHECKING:
    from os import PathLike

    from safetydrift.evaluation.cases import CaseSet

MAX_LINE = 16 * 1024
"""Bytes of one line."""
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Count = Annotated[int, msgspec.Meta(ge=0, le=10**12)]


class Header(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Whose judgements a file holds, and of what."""

    format: Literal["safetydrift.judgements/1"]
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
        The file; compressed ones are read as such.
    name
        How tables name it; by default the model and its window.

    Raises
    ------
    PredictionFileError
        If it cannot be read, or a line but the last is no judgement.
    """

    def __init__(self, path: str | PathLike[str], name: str | None = None) -> None:
        self.path = str(path)
        self.judgements: dict[tuple[str, int], Judgement] = {}
        header: Header | None = None
        torn: PredictionFileError | None = None
        for number, line in lines_of(self.path, MAX_LINE, "judgements"):
            if torn is not None:
                raise torn
            try:
                if header is None:
                    header = decoded(self.path, number, line, Header, "judgement")
                    continue
                judgement = decoded(self.path, number, line, Judgement, "judgement")
            except PredictionFileError as error:
                torn = error  # a last line that cannot be read is what a crash leaves behind
                continue
            self._add(number, judgement)
        if header is None:
            raise torn or PredictionFileError(self.path, 1, "not a file of recorded judgements")
        window = "per step" if header.window == 1 else f"{header.window}-step window"
        self.name = f"judge, {window}" if name is None else name

    def _add(self, number: int, read: Judgement) -> None:
        if (read.trace, read.step) in self.judgements:
            raise PredictionFileError(
                self.path, number, f"step {read.step} of run {read.trace!r} was judged before"
            )
        self.judgements[read.trace, read.step] = read

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
