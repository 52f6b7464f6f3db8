"""What figures show beyond tables: curves over all thresholds, and how risk goes along a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from safetydrift.evaluation.metrics.detection import RunFrame
from safetydrift.evaluation.metrics.resampling import Resamples
from safetydrift.evaluation.scores import HORIZONS

if TYPE_CHECKING:
    from safetydrift.evaluation.cases import CaseSet
    from safetydrift.evaluation.scores import Scores
    from safetydrift.markov._arrays import BoolArray, FloatArray

BAND_RESAMPLES = 100
"""Resamples behind a band: it is looked at, not read off."""

SHARES = (*(round(0.005 * k, 3) for k in range(11)), *(round(0.05 * k, 2) for k in range(2, 21)))
"""False alarms at which detection is drawn."""

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
FEWEST_RUNS = 30
"""Runs that still have to go on at a step for it to be drawn."""

LAST_STEP = 30


@dataclass(frozen=True, slots=True)
class Band:
    """Violations detected at each share of false alarms, with 95 % intervals over resampled tasks.

    Parameters
    ----------
    false_alarms, detected, low, high
        Shares from 0 to 1, equally many.
    """

    false_alarms: tuple[float, ...]
    detected: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]

    def as_dict(self) -> dict[str, list[float]]:
        """Return the curve as plain data."""
        return {
            "false_alarms": list(self.false_alarms),
            "detected": list(self.detected),
            "low": list(self.low),
            "high": list(self.high),
        }


@dataclass(frozen=True, slots=True)
class FanPart:
    """How the risk of runs of one outcome goes along.

    Parameters
    ----------
    runs
        How many runs are still going after 0, 1, 2, .. calls.
    quantiles
        Of their risk, by `QUANTILES` and then by calls made.
    """

    runs: tuple[int, ...]
    quantiles: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class Fan:
    """How risk goes along in runs that violate, up to the violating call, and in the others."""

    violated: FanPart
    calm: FanPart

    def as_dict(self) -> dict[str, object]:
        """Return the quantiles as plain data."""
        return {
            outcome: {
                "runs": list(part.runs),
                "quantiles": {f"{q:g}": list(row) for q, row in zip(QUANTILES, part.quantiles, strict=True)},
            }
            for outcome, part in (("violated", self.violated), ("not_violated", self.calm))
        }


@dataclass(frozen=True, slots=True)
class Drawn:
    """What is drawn of one predictor."""

    band: Band
    fan: Fan

    def as_dict(self) -> dict[str, object]:
        """Return all of it as plain data."""
        return {"recall": self.band.as_dict(), "risk_by_step": self.fan.as_dict()}


def drawn(cases: CaseSet, scores: Scores, horizon: int, rng: np.random.Generator) -> Drawn:
    """Return what is drawn of a predictor.

    Parameters
    ----------
    cases, scores
        The runs tried, and what it said of them.
    horizon
        Steps ahead: one of `HORIZONS`.
    rng
        Where resamples come from.
    """
    risk = scores.within[:, HORIZONS.index(horizon)]
    return Drawn(band(cases, risk, rng), fan(cases, risk))


def band(cases: CaseSet, risk: FloatArray, rng: np.random.Generator) -> Band:
    """Return detection against false alarms, of scores per point."""
    frame = RunFrame(cases, Resamples.draw(len(cases.tasks), rng, BAND_RESAMPLES))
    recall = frame.recall_at(frame.peak(risk), SHARES)
    bounds = [recall[share].interval() for share in SHARES]
    return Band(
        SHARES,
        tuple(recall[share].value for share in SHARES),
        tuple(low for low, _ in bounds),
        tuple(high for _, high in bounds),
    )


def fan(cases: CaseSet, risk: FloatArray) -> Fan:
    """Return quantiles of risk by step, of scores per point."""
    known = np.array([case.onset_known or not case.violated for case in cases.cases], dtype=np.bool_)
    violated = cases.violated[cases.run_of_point]
    usable = known[cases.run_of_point]
    return Fan(_part(cases, risk, usable & violated), _part(cases, risk, usable & ~violated))


def _part(cases: CaseSet, risk: FloatArray, chosen: BoolArray) -> FanPart:
    step, mine = cases.step_of_point[chosen], risk[chosen]
    runs, columns = [], []
    for k in range(LAST_STEP + 1):
        here = mine[step == k]
        if len(here) < FEWEST_RUNS and k:
            break
        runs.append(len(here))
        columns.append(np.quantile(here, QUANTILES) if len(here) else np.full(len(QUANTILES), np.nan))
    return FanPart(tuple(runs), tuple(map(tuple, np.array(columns).T.tolist())))
