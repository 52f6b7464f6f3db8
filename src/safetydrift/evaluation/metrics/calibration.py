"""Whether a probability means what it says: Brier score and skill, log loss, calibration error, reliability."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING

import numpy as np

from safetydrift.evaluation.metrics.resampling import Estimate, estimate, ratio
from safetydrift.evaluation.rate import Rate

if TYPE_CHECKING:
    from safetydrift.evaluation.metrics.resampling import Resamples
    from safetydrift.markov._arrays import BoolArray, FloatArray, IntArray

BINS = 10
"""Bins of a reliability curve."""

FLOOR = 1e-6
"""Probabilities are held this far from 0 and 1 in the log loss: prediction files carry six decimal places, and one
certain forecast that fails would otherwise cost infinitely much."""


@dataclass(frozen=True, slots=True)
class ReliabilityPoint:
    """Forecasts of about one size.

    Parameters
    ----------
    forecast
        Their mean.
    observed
        How often it came true.
    """

    forecast: float
    observed: Rate


@dataclass(frozen=True, slots=True)
class Calibration:
    """How far probabilities can be taken at their word.

    Parameters
    ----------
    base_rate
        How often it happened.
    brier
        Mean squared difference between probability and outcome; lower is better.
    brier_skill
        1 - Brier score / Brier score of always saying the base rate of these very points. 0 is no better than knowing
        how common it is, 1 is perfect, and it may be negative (Wilks, *Statistical Methods in the Atmospheric
        Sciences*, eq. 8.37).
    brier_skill_within_category
        The same against always saying the base rate of each category.
    log_loss
        Mean negative log-likelihood in nats, probabilities held `FLOOR` away from 0 and 1.
    ece
        Expected calibration error: mean distance between forecast and frequency over the bins of the reliability
        curve, weighted by their points (Naeini and others, AAAI 2015, with bins of equal count).
    reliability
        The curve: bins of about equally many points, from low forecasts to high.
    """

    base_rate: Rate
    brier: Estimate
    brier_skill: Estimate
    brier_skill_within_category: Estimate
    log_loss: Estimate
    ece: float
    reliability: tuple[ReliabilityPoint, ...]

    def figures(self) -> dict[str, Estimate]:
        """Return its figures by name."""
        return {
            "brier": self.brier,
            "brier_skill": self.brier_skill,
            "brier_skill_within_category": self.brier_skill_within_category,
            "log_loss": self.log_loss,
        }


def calibration(
    probability: FloatArray, outcome: BoolArray, task: IntArray, category: IntArray, resamples: Resamples
) -> Calibration:
    """Hold probabilities against what happened.

    Parameters
    ----------
    probability, outcome, task, category : (n,) arrays
        The forecast, what happened, and the task and category it belongs to.
    """
    happened = outcome.astype(np.float64)
    count = resamples.total(np.ones(len(happened)), task)
    error = resamples.total((probability - happened) ** 2, task)
    held = np.clip(probability, FLOOR, 1 - FLOOR)
    surprise = resamples.total(-np.log(np.where(outcome, held, 1 - held)), task)
    curve = reliability(probability, outcome)
    return Calibration(
        base_rate=Rate(int(outcome.sum()), len(outcome)),
        brier=estimate(ratio(error, count)),
        brier_skill=estimate(_skill(error, _variation(happened, task, resamples))),
        brier_skill_within_category=estimate(
            _skill(
                error,
                sum(
                    (
                        _variation(happened[category == number], task[category == number], resamples)
                        for number in np.unique(category)
                    ),
                    np.zeros(len(count)),
                ),
            )
        ),
        log_loss=estimate(ratio(surprise, count)),
        ece=expected_calibration_error(curve),
        reliability=curve,
    )


def _variation(happened: FloatArray, task: IntArray, resamples: Resamples) -> FloatArray:
    """Return the summed squared error of always saying the base rate: n q (1 - q)."""
    count, hits = resamples.total(np.ones(len(happened)), task), resamples.total(happened, task)
    return hits - np.nan_to_num(ratio(hits * hits, count))


def _skill(error: FloatArray, reference: FloatArray) -> FloatArray:
    return 1 - ratio(error, reference)


def reliability(
    probability: FloatArray, outcome: BoolArray, bins: int = BINS
) -> tuple[ReliabilityPoint, ...]:
    """Return forecasts against frequencies in bins of about equally many points, equal forecasts never divided.

    Fewer bins come out where forecasts are few.
    """
    if not len(probability):
        return ()
    _, level = np.unique(probability, return_inverse=True)
    upto = np.cumsum(np.bincount(level))
    bin_of_level = np.minimum((upto - 1) * bins // len(probability), bins - 1)
    where = bin_of_level[level]
    count = np.bincount(where, minlength=bins)
    forecast, hits = np.bincount(where, probability, bins), np.bincount(where, outcome, bins)
    return tuple(
        ReliabilityPoint(float(forecast[b] / count[b]), Rate(int(hits[b]), int(count[b])))
        for b in np.flatnonzero(count)
    )


def expected_calibration_error(curve: tuple[ReliabilityPoint, ...]) -> float:
    """Return the mean distance between forecast and frequency, weighted by points; nan for an empty curve."""
    total = sum(point.observed.total for point in curve)
    if not total:
        return nan
    return sum(abs(point.forecast - point.observed.value) * point.observed.total for point in curve) / total
