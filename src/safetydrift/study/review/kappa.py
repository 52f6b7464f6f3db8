"""Cohen's kappa, plain and weighted, with its large-sample error and a bootstrap beside it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import nan, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

RESAMPLES = 2000
SEED = 20261121
_NEEDED = RESAMPLES // 2
"""Fewer resamples in which kappa is defined say nothing about its spread."""

_NOTHING = "no call was judged by both"
_CONSTANT = "both gave one and the same level throughout"
_ALL_AGREE = "every call agrees, so the variance is estimated as 0 and says nothing"
_ONE_CONSTANT = "one of the two gave the same level throughout, so kappa is 0 whatever the other says"


class Weights(Enum):
    """How much a disagreement between two levels counts."""

    EQUAL = "equal"
    """Every disagreement counts the same."""

    QUADRATIC = "quadratic"
    """By the square of the distance between the levels on their scale."""


@dataclass(frozen=True, slots=True)
class Kappa:
    """Agreement beyond chance, with 95 % intervals.

    Parameters
    ----------
    value
        1 for all, 0 for what chance gives; nan where it is undefined.
    error
        The large-sample standard error; nan where it is undefined.
    analytic
        The interval from that error, cut to [-1, 1]; None where the error says nothing.
    bootstrap
        The percentile interval over resampled calls; None likewise.
    reason
        Why a figure is missing, in words; empty when none is.
    """

    value: float
    error: float
    analytic: tuple[float, float] | None
    bootstrap: tuple[float, float] | None
    reason: str = ""

    def as_dict(self) -> dict[str, object]:
        """Return the figures as plain data."""
        return {
            "value": self.value,
            "standard_error": self.error,
            "analytic": self.analytic,
            "bootstrap": self.bootstrap,
            "reason": self.reason or None,
        }


def cohen_kappa(table: NDArray[np.int64], weights: Weights = Weights.EQUAL, *, seed: int = SEED) -> Kappa:
    """Return kappa of two judges.

    Parameters
    ----------
    table
        Calls by the level the first judge gave (row) and the second (column), both in the order of the scale;
        shape ``(n_levels, n_levels)``.
    weights
        What a disagreement counts.
    seed
        Of the bootstrap.

    Notes
    -----
    Cohen, "Weighted kappa" (1968), for the value; Fleiss, Cohen and Everitt, "Large sample standard errors of kappa
    and weighted kappa" (1969), Eq. 8 (of which the unweighted one is a special case), for its error.
    """
    total = int(table.sum())
    if not total:
        return Kappa(nan, nan, None, None, _NOTHING)
    costs = _costs(len(table), weights)
    value = float(_values(table[None], costs)[0])
    if np.isnan(value):
        return Kappa(nan, nan, None, None, _CONSTANT)
    reason = _degenerate(table)
    if reason:
        return Kappa(value, nan, None, None, reason)
    error = _standard_error(table, costs)
    reach = NormalDist().inv_cdf(0.975) * error
    return Kappa(
        value,
        error,
        (max(-1.0, value - reach), min(1.0, value + reach)),
        _resampled(table, costs, seed),
    )


def _costs(n_levels: int, weights: Weights) -> NDArray[np.int64]:
    """Return what each disagreement costs, as whole numbers; shape ``(n_levels, n_levels)``."""
    at = np.arange(n_levels, dtype=np.int64)
    apart = np.abs(at[:, None] - at[None, :])
    costs: NDArray[np.int64] = apart**2 if weights is Weights.QUADRATIC else (apart > 0).astype(np.int64)
    return costs


def _values(tables: NDArray[np.int64], costs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return kappa of each table, nan where chance alone would agree throughout.

    Kappa is 1 less the ratio of the cost observed to the cost by chance; both are whole numbers here, so that what is
    undefined is told exactly. ``tables`` has the shape ``(n_tables, n_levels, n_levels)``.
    """
    total = tables.sum(axis=(1, 2))
    observed = total * (tables * costs).sum(axis=(1, 2))
    by_chance = np.einsum("ti,ij,tj->t", tables.sum(axis=2), costs, tables.sum(axis=1))
    ratio: NDArray[np.float64] = np.divide(
        observed, by_chance, out=np.full(len(tables), nan), where=by_chance > 0
    )
    return 1.0 - ratio


def _degenerate(table: NDArray[np.int64]) -> str:
    if int(np.trace(table)) == int(table.sum()):
        return _ALL_AGREE
    if 1 in (np.count_nonzero(table.sum(axis=0)), np.count_nonzero(table.sum(axis=1))):
        return _ONE_CONSTANT
    return ""


def _standard_error(table: NDArray[np.int64], costs: NDArray[np.int64]) -> float:
    total = int(table.sum())
    share = table / total
    credit = 1.0 - costs / costs.max()
    first, second = share.sum(axis=1), share.sum(axis=0)
    observed, by_chance = float((credit * share).sum()), float(first @ credit @ second)
    spread = (credit @ second)[:, None] + (first @ credit)[None, :]
    terms = credit * (1.0 - by_chance) - spread * (1.0 - observed)
    variance = float((share * terms**2).sum()) - (observed * by_chance - 2.0 * by_chance + observed) ** 2
    return sqrt(max(variance, 0.0) / total) / (1.0 - by_chance) ** 2


def _resampled(table: NDArray[np.int64], costs: NDArray[np.int64], seed: int) -> tuple[float, float] | None:
    """Draw as many calls again, with replacement, and return the middle 95 % of kappa."""
    total = int(table.sum())
    shares = table.ravel() / total
    drawn = np.random.default_rng(seed).multinomial(total, shares, size=RESAMPLES)
    values = _values(drawn.reshape(RESAMPLES, *table.shape), costs)
    defined = values[~np.isnan(values)]
    if len(defined) < _NEEDED:
        return None
    low, high = np.quantile(defined, (0.025, 0.975)).tolist()
    return low, high
