"""What is not known about a fitted risk score: the numbers behind `safetydrift.monitor.intervals`.

*Weights.* The ridge penalty is a normal prior of variance ``c`` for every weight, and what the rows tell about a weight
is its Fisher information ``i``, so that ``1 / (1 + c i)`` of the prior's variance is left. But the rows of a run and
the runs of a task are alike, and weights of one kind spread more or less than those of another. Each kind is therefore
given the variance that its known weights show, and the share that is left is applied to that. Correlations between
weights are not kept.

*Tasks.* Scores of tasks that a regression had not seen are divided into cells by task and score. The variance between
tasks is the one under which the violations counted in the cells are likeliest, the log odds of a cell being normal
around those of its score.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from safetydrift.monitor.pipelines import TRAIT_KINDS
from safetydrift.monitor.risk_score import EXPOSED, LEVELS, TOOLS, WORD_SETS, Learned

if TYPE_CHECKING:
    from collections.abc import Mapping

    from safetydrift.markov._arrays import BoolArray, FloatArray, IntArray
    from safetydrift.monitor.risk_score import Link, Weights, WordSet

CELL_WIDTH = 0.5
"""Width of a cell, in units of the score."""
CANDIDATES = (0.0, *np.geomspace(0.02, 12.0, 40).tolist())
"""The variances between tasks that are tried."""
HIGHEST_VARIANCE = 16.0
"""No weights are written down as spread further."""
_SEED = 0
_DIGITS = 3
_NODES = np.linspace(-5.0, 5.0, 21)
_SHARES = np.exp(-0.5 * _NODES**2) / np.exp(-0.5 * _NODES**2).sum()
_ODDS = np.linspace(-30.0, 30.0, 1201)


@dataclass(frozen=True, slots=True)
class Known:
    """What a regression knows about its columns.

    Parameters
    ----------
    left : (columns,) array
        Share of the variance that is left.
    variances : (kinds,) array
        Variance of the weights of each kind, in the order of the widths.
    widths
        Columns of each kind (`safetydrift.monitor.risk_score.KINDS`).
    """

    left: FloatArray
    variances: FloatArray
    widths: Mapping[str, int]

    @classmethod
    def of(
        cls, coefficients: FloatArray, information: FloatArray, penalty: float, widths: Mapping[str, int]
    ) -> Known:
        """Return what is known of coefficients after a penalised fit.

        Parameters
        ----------
        coefficients, information : (columns,) arrays
            What was found, and the Fisher information behind it.
        penalty
            The prior's variance.
        widths
            Columns of each kind (`safetydrift.monitor.risk_score.KINDS`).
        """
        remaining = 1.0 / (1.0 + penalty * information)
        cuts = np.cumsum(list(widths.values()))[:-1]
        variances = [
            _variance(found, 1.0 - share, penalty)
            for found, share in zip(np.split(coefficients, cuts), np.split(remaining, cuts), strict=True)
        ]
        return cls(remaining, np.array(variances), widths)

    @property
    def by_column(self) -> FloatArray:
        """Variance of each coefficient, (columns,)."""
        return np.asarray(self.left * np.repeat(self.variances, list(self.widths.values())))


def learned_of(
    known: Known,
    sizes: Mapping[str, int],
    tools: Mapping[str, int],
    weights: Weights,
    scales: Mapping[WordSet, float],
) -> Learned:
    """Return what a regression knows, in the form in which it is looked up.

    Parameters
    ----------
    sizes
        Number of cells by feature.
    tools
        Numbers of the tools by name.
    weights
        The weights found.
    scales
        How much more than 1 a set of words counts.
    """
    levels = np.clip(np.round(-2.0 * np.log2(known.left)), 0, len(LEVELS) - 1).astype(np.int64)
    cuts = np.cumsum(list(known.widths.values()))[:-1]
    parts = dict(zip(known.widths, np.split(levels, cuts), strict=True))
    last, before = (
        {name: int(parts[kind][number]) for name, number in tools.items() if parts[kind][number]}
        for kind in TOOLS
    )
    variances = {kind: float(found) for kind, found in zip(known.widths, known.variances, strict=True)}
    variances |= {which: variances[which] * scale**2 for which, scale in scales.items()}
    cells = np.split(parts["cells"], np.cumsum(list(sizes.values()))[:-1])
    return Learned(
        variances={
            kind: min(float(f"{found:.{_DIGITS}g}"), HIGHEST_VARIANCE) for kind, found in variances.items()
        },
        cells={name: _text(part).rstrip(LEVELS[0]) for name, part in zip(sizes, cells, strict=True)},
        tools=(last, before),
        words={
            which: _text(parts[which][np.array(list(weights.words[which]), dtype=np.int64)])
            for which in WORD_SETS
        },
        traits="".join([_text(parts[kind]) for kind in TRAIT_KINDS]),
        traits_exposed="".join([_text(parts[f"{kind}{EXPOSED}"]) for kind in TRAIT_KINDS]),
    )


def _variance(found: FloatArray, known: FloatArray, penalty: float) -> float:
    """Return the variance that weights spread by, of each of which a share is known.

    The penalty's own variance counts as one more weight. Weights of a kind of which no run says anything are no part of
    the score.
    """
    if not known.any():
        return 0.0
    return (penalty + float((found**2).sum())) / (1.0 + float((known**2).sum()))


def _text(levels: IntArray) -> str:
    return "".join([LEVELS[level] for level in levels.tolist()])


# -- tasks ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cells:
    """Rows of tasks that a regression had not seen, by task and score; no run is in a cell twice.

    Parameters
    ----------
    chosen : (chosen,) array of int
        The rows.
    cell : (chosen,) array of int
        The cell of each.
    size : (cells,) array
        Rows by cell.
    score, variance : (cells,) arrays
        Means of the score and of its variance.
    """

    chosen: IntArray
    cell: IntArray
    size: FloatArray
    score: FloatArray
    variance: FloatArray

    @classmethod
    def of(cls, scores: FloatArray, variances: FloatArray, run: IntArray, task: IntArray) -> Cells:
        """Return the cells of scores; ``run`` and ``task`` are those of the rows."""
        shuffled = np.random.default_rng(_SEED).permutation(
            len(scores)
        )  # which of a run's rows is left to chance
        band = np.floor(scores / CELL_WIDTH).astype(np.int64)
        _, first = np.unique(np.column_stack([run, band])[shuffled], axis=0, return_index=True)
        chosen = shuffled[first]
        _, cell = np.unique(np.column_stack([task, band])[chosen], axis=0, return_inverse=True)
        cell = cell.ravel()
        size = np.bincount(cell).astype(np.float64)
        score, variance = (np.bincount(cell, values[chosen]) / size for values in (scores, variances))
        return cls(chosen, cell, size, score, variance)

    def between(self, link: Link, happened: BoolArray) -> float:
        """Return the variance between tasks of a link's log odds, the likeliest of `CANDIDATES`.

        Parameters
        ----------
        happened : (rows,) array of bool
            What came of every row.
        """
        hits = np.bincount(self.cell, happened[self.chosen], minlength=len(self.size)).astype(np.float64)
        odds, of_weights = link.intercept + link.slope * self.score, link.slope**2 * self.variance
        likelihood = [
            _likelihood(hits, self.size, centres(odds, between), between + of_weights)
            for between in CANDIDATES
        ]
        return float(f"{CANDIDATES[int(np.argmax(likelihood))]:.{_DIGITS}g}")


def centres(odds: FloatArray, variance: float) -> FloatArray:
    """Return `safetydrift.monitor.intervals.centre` of many log odds, interpolated."""
    if variance <= 0.0:
        return odds
    mean = _probability(_ODDS[:, None] + np.sqrt(variance) * _NODES) @ _SHARES
    with np.errstate(divide="ignore"):
        return np.asarray(np.interp(odds, np.log(mean) - np.log1p(-mean), _ODDS))


def _likelihood(count: FloatArray, size: FloatArray, centre: FloatArray, variance: FloatArray) -> float:
    odds = centre[:, None] + np.sqrt(variance)[:, None] * _NODES
    logs = -count[:, None] * np.logaddexp(0.0, -odds) - (size - count)[:, None] * np.logaddexp(0.0, odds)
    highest = logs.max(axis=1)
    return float((highest + np.log(np.exp(logs - highest[:, None]) @ _SHARES)).sum())


def _probability(odds: Any) -> Any:
    return np.exp(-np.logaddexp(0.0, -odds))
