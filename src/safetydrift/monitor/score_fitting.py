"""From labelled trajectories to a `RiskScore`: penalised logistic regression on cells, words, tools and pipelines.

One regression ranks the places where runs stand by the violation within the horizon, one ranks proposed calls. Its
in-sample scores are too good, so the links that turn scores into probabilities are fitted on scores of tasks that a
regression had not seen: the tasks are divided into folds, and every fold is scored by a regression on the others.

Heterogeneous evidence is balanced by the penalty alone: a cell, word or model with little behind it stays near zero,
and one never seen is zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from safetydrift.errors import ChainError
from safetydrift.monitor.maxima import Maxima
from safetydrift.monitor.pipelines import PIPELINE, TRAIT_KINDS
from safetydrift.monitor.regression import DIGITS, Inputs, Regression, link, members, one_hot
from safetydrift.monitor.risk_score import KINDS, WORD_SETS, Learned, Link, RiskScore, Side, Weights, WordSet
from safetydrift.monitor.score_rows import ScoreData
from safetydrift.monitor.spread_fitting import Cells, Known, learned_of
from safetydrift.states.task_words import WORD_BINS
from safetydrift.states.trajectory import VIOLATED, observe

if TYPE_CHECKING:
    from collections.abc import Iterable

    from safetydrift.markov._arrays import BoolArray, FloatArray, IntArray
    from safetydrift.monitor.score_rows import Rows
    from safetydrift.monitor.settings import FitSettings
    from safetydrift.states.space import StateSpace
    from safetydrift.states.trajectory import Trajectory

PENALTY = 0.1
"""Inverse strength of the ridge penalty (C of scikit-learn) for places."""
PROPOSAL_PENALTY = 0.3
"""The same for proposals, of which fewer are violations."""
SCALES: dict[WordSet, float] = {"task": 2.0, "injected": 2.0, "heard": 16.0}
"""How much more a set of words may weigh than a cell: words enter as vectors of this length. What the user says later
counts for more: with a task that stands in a file, it is all that is known of the task."""


def fit_risk_score(
    trajectories: Iterable[Trajectory], space: StateSpace, settings: FitSettings, horizon: int
) -> tuple[RiskScore, Maxima]:
    """Fit the score of a violation by the notion of the settings.

    Parameters
    ----------
    trajectories
        Runs labelled in ``space``.
    space
        A space with the dimensions of `flow`.
    horizon
        The horizon by which places are ranked, in steps.

    Returns
    -------
    RiskScore
        Fitted on all runs.
    Maxima
        What such a score says about tasks it was not fitted on.

    Raises
    ------
    ChainError
        If no run is violated, or none is not.
    """
    runs = [(run, observe(run, space, settings.notion, settings.unknown_onset)) for run in trajectories]
    used = [(run, seen) for run, seen in runs if not seen.left_out]
    if not any(seen.end == VIOLATED for _, seen in used) or all(seen.end == VIOLATED for _, seen in used):
        raise ChainError("a risk score needs runs that are violated and runs that are not")
    data = ScoreData.of(used, space)
    current = SideFit(data, data.current, list(data.features.current), PENALTY, pipelines=True)
    proposal = SideFit(data, data.proposal, list(data.features.all), PROPOSAL_PENALTY, pipelines=False)
    sides = [
        current.side(data.current.left <= horizon, settings.max_horizon),
        proposal.side(data.proposal.left <= 1, settings.max_horizon),
    ]
    of_current, of_proposal = [
        _highest(scores, rows.run, len(used), side.within[horizon - 1])
        for (side, scores), rows in zip(sides, (data.current, data.proposal), strict=True)
    ]
    found = RiskScore(traits=data.traits, current=sides[0][0], proposal=sides[1][0])
    return found, Maxima(of_current, of_proposal, data.violated, data.task)


class SideFit:
    """What a regression is shown of one side, and how its coefficients become weights again."""

    def __init__(
        self, data: ScoreData, rows: Rows, features: list[str], penalty: float, *, pipelines: bool
    ) -> None:
        from scipy import sparse  # noqa: PLC0415  # only fitting needs it

        self._data, self._rows, self._penalty = data, rows, penalty
        self._sizes = {name: data.features.all[name].size for name in features}
        n_tools = len(data.tools) + 1
        counted = np.array([pipelines or not one.startswith(f"{PIPELINE} ") for one in data.traits.traits])
        borne = members(data.pipelines, len(counted)) @ sparse.diags_array(counted.astype(np.float64))
        borne = borne.tocsr()[rows.run]
        exposed = sparse.diags_array((rows.words[:, WORD_SETS.index("injected")] > 0).astype(np.float64))
        blocks = [
            *(one_hot(rows.cells[:, place], size) for place, size in enumerate(self._sizes.values())),
            one_hot(rows.tools[:, 0], n_tools, rows.tools[:, 0] > 0),
            one_hot(rows.tools[:, 1], n_tools, rows.tools[:, 1] > 0),
            borne,
            exposed @ borne,
        ]
        self._widths = [*(block.shape[1] for block in blocks), *[WORD_BINS] * len(WORD_SETS)]
        root = np.sqrt(np.array([max(len(words), 1) for words in data.sets], dtype=np.float64))
        self.inputs = Inputs(
            sparse.hstack(blocks, format="csr", dtype=np.float64),
            tuple([members(data.sets, WORD_BINS, SCALES[which] / root) for which in WORD_SETS]),
            tuple([rows.words[:, place] for place in range(len(WORD_SETS))]),
        )

    def side(self, target: BoolArray, max_horizon: int) -> tuple[Side, FloatArray]:
        """Return the side, and the score of every row by a regression on other tasks."""
        regression = Regression.of(self.inputs, target, self._penalty)
        weights = self._weights(regression)
        scores, variances = self.cross_scores(target)
        run = self._rows.run
        cells = Cells.of(scores, variances, run, self._data.task[run])

        def spread(happened: BoolArray) -> Link:
            found = link(scores, happened)
            return replace(found, between=cells.between(found, happened))

        side = Side(
            weights=weights,
            within=tuple([spread(self._rows.left <= steps) for steps in range(1, max_horizon + 1)]),
            eventually=spread(self._data.violated[run]),
            learned=self._learned(self.known(self.inputs, regression), weights),
        )
        return side, scores

    def cross_scores(self, target: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Return the score of every row by a regression on tasks of other folds, and its variance."""
        fold = self._data.fold[self._rows.run]
        scores, variances = np.zeros(len(fold)), np.zeros(len(fold))
        for tried in np.unique(fold):
            inside = fold == tried
            fitted = target[~inside]
            if fitted.all() or not fitted.any():
                raise ChainError(
                    "too few tasks with and without a violation to fit a risk score on some and try it on others"
                )
            others, tried_on = self.inputs.take(~inside), self.inputs.take(inside)
            regression = Regression.of(others, fitted, self._penalty)
            scores[inside] = regression.scores(tried_on)
            variances[inside] = tried_on.squared().times(self.known(others, regression).by_column)
        return scores, variances

    def _weights(self, regression: Regression) -> Weights:
        """Return what a regression found, in the form in which it is looked up."""
        parts = iter(np.split(regression.coefficients, np.cumsum(self._widths)[:-1]))
        return Weights(
            bias=round(regression.bias, DIGITS),
            cells={name: _rounded(np.trim_zeros(np.round(next(parts), DIGITS), "b")) for name in self._sizes},
            tools=(self._by_tool(next(parts)), self._by_tool(next(parts))),
            traits=_rounded(next(parts)),
            traits_exposed=_rounded(next(parts)),
            words={which: _by_word(next(parts), SCALES[which]) for which in WORD_SETS},
        )

    def known(self, inputs: Inputs, regression: Regression) -> Known:
        """Return what a regression on these inputs knows about its coefficients."""
        last, before = self._widths[len(self._sizes) : len(self._sizes) + 2]
        traits = [len(self._data.traits.named(kind)) for kind in TRAIT_KINDS]
        words = self._widths[-len(WORD_SETS) :]
        widths = [sum(self._sizes.values()), last, before, *traits, *traits, *words]
        information = regression.information(inputs)
        return Known.of(
            regression.coefficients, information, self._penalty, dict(zip(KINDS, widths, strict=True))
        )

    def _learned(self, known: Known, weights: Weights) -> Learned:
        """Return what is known, in the form in which it is looked up."""
        return learned_of(known, self._sizes, self._data.tools, weights, SCALES)

    def _by_tool(self, part: FloatArray) -> dict[str, float]:
        found = {name: round(float(part[number]), DIGITS) for name, number in self._data.tools.items()}
        return {name: weight for name, weight in found.items() if weight}


def _highest(scores: FloatArray, run: IntArray, n_runs: int, by: Link) -> FloatArray:
    """Return the highest probability of each run; 0 for a run without a row."""
    highest = np.full(n_runs, -np.inf)
    np.maximum.at(highest, run, scores)
    found = np.where(np.isfinite(highest), 1.0 / (1.0 + np.exp(-(by.intercept + by.slope * highest))), 0.0)
    return np.asarray(found, dtype=np.float64)


def _rounded(part: FloatArray) -> tuple[float, ...]:
    return tuple(np.round(part, DIGITS).tolist())


def _by_word(part: FloatArray, scale: float) -> dict[int, float]:
    scaled = np.round(part * scale, 3)
    return {int(word): float(scaled[word]) for word in np.flatnonzero(scaled)}
