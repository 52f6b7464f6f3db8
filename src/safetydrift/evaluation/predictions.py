"""Prediction files: the interface by which models, ours or others', are compared.

One JSON line per step::

    {"trace": "..", "step": k, "p": {"1": .., "3": .., "5": ..}, "p_end": .., "alarm": false, "unseen": false,
     "pending": {"risk": .., "alarm": false}}

- ``step`` is the number of tool calls already made, from 0 to n; the prediction knows calls 1 to k and their
  results, and nothing later.
- ``p[h]`` is the probability that a violation happens within the next h calls, ``p_end`` that the run ends violated.
- ``unseen`` says that no run the model was fitted on ever went on from this state. The probabilities are then the
  largest that what was observed allows, so that unknown never looks safe.
- ``low`` and ``high`` are the ends of the interval in which the probability within the policy's horizon lies, as far
  as counts can say. They are absent where the model does not know them.
- ``pending`` judges call k + 1 as proposed, its arguments known and its result not: ``risk`` is the probability of a
  violation within the policy's horizon, that call being the first of those steps. It is absent at k = n.
"""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING

import msgspec

from safetydrift.errors import HorizonError
from safetydrift.monitor.verdict import Basis

if TYPE_CHECKING:
    from collections.abc import Iterator

    from safetydrift.evaluation.replay import Replay
    from safetydrift.monitor.verdict import Verdict

HORIZONS = (1, 3, 5)
"""Horizons a prediction file reports, in steps."""

_DIGITS = 6


class PendingPrediction(msgspec.Struct):
    """The verdict on the next call, as proposed."""

    risk: float
    alarm: bool


class Prediction(msgspec.Struct, omit_defaults=True):
    """One line of a prediction file."""

    trace: str
    step: int
    p: dict[str, float]
    p_end: float
    alarm: bool
    unseen: bool
    pending: PendingPrediction | None = None
    low: float | None = None
    high: float | None = None


def predictions(replay: Replay) -> Iterator[Prediction]:
    """Yield one prediction per step of a replayed run, k = 0 .. n_steps.

    Raises
    ------
    HorizonError
        If the model's tables end before the furthest horizon a prediction file reports.
    """
    reach = len(replay.current[0].within) - 1
    if reach < HORIZONS[-1]:
        raise HorizonError(
            f"a prediction file reports up to {HORIZONS[-1]} steps, the model's tables end at {reach}; "
            f"fit it with a maximum horizon of {HORIZONS[-1]} or more"
        )
    for step, verdict in enumerate(replay.current):
        pending = replay.pending[step] if step < len(replay.pending) else None
        yield Prediction(
            trace=replay.trajectory.id,
            step=step,
            p={str(horizon): _within(verdict, horizon) for horizon in HORIZONS},
            p_end=_cautious(verdict, verdict.eventually),
            alarm=verdict.alarm,
            unseen=verdict.basis is Basis.UNSEEN,
            pending=None
            if pending is None
            else PendingPrediction(_within(pending, pending.horizon), pending.alarm),
            low=_known(verdict.low),
            high=_known(verdict.high),
        )


def _known(probability: float) -> float | None:
    return None if isnan(probability) else round(probability, _DIGITS)


def _within(verdict: Verdict, horizon: int) -> float:
    return _cautious(verdict, verdict.within[horizon])


def _cautious(verdict: Verdict, probability: float) -> float:
    return 1.0 if verdict.basis is Basis.UNSEEN else round(probability, _DIGITS)
