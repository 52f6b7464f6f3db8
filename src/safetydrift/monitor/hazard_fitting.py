"""From labelled trajectories to a `Hazard`: penalised logistic regression on cells, words, tools and models.

One regression ranks standings by the violation within the horizon, one ranks proposed calls. Its in-sample scores are
too good, so the links that turn scores into probabilities are fitted on scores of tasks that a regression had not seen:
the tasks are divided into folds, and every fold is scored by a regression on the others.

Heterogeneous evidence is balanced by the penalty alone: a cell, word or model with little behind it stays near zero,
and one never seen is zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from safetydrift.errors import ChainError
from safetydrift.monitor.covariates import Covariates, Factors
from safetydrift.monitor.hazard import Hazard, Learned, Spread, Weights
from safetydrift.monitor.maxima import Maxima
from safetydrift.monitor.pipelines import MARK_KINDS, PIPELINE, Marks
from safetydrift.monitor.spread_fitting import Cells, Known
from safetydrift.monitor.walk import walk
from safetydrift.states.task_words import WORD_BINS
from safetydrift.states.trajectory import VIOLATED, observe

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from safetydrift.markov._arrays import BoolArray, FloatArray, IntArray
    from safetydrift.monitor.pipelines import Pipeline
    from safetydrift.monitor.settings import FitSettings
    from safetydrift.states.space import StateSpace
    from safetydrift.states.trajectory import ObservedRun, Trajectory

PENALTY = 0.1
"""Inverse strength of the ridge penalty (C of scikit-learn) for standings."""
PROPOSAL_PENALTY = 0.3
"""The same for proposals, of which fewer are violations."""
WORD_SCALE = 2.0
"""How much more a set of words may weigh than a cell: words enter as vectors of this length."""
HEARD_SCALE = 16.0
"""The same for what the user says later: with a task that stands in a file, it is all that is known of the task."""
_SCALES = {"task": WORD_SCALE, "orders": WORD_SCALE, "heard": HEARD_SCALE}
FOLDS = 5
"""Folds of tasks from which the links are fitted."""
MAX_ITERATIONS = 80
TOLERANCE = 1e-5
"""Largest entry of the gradient of the mean loss at which a fit is done."""
FEWEST_CALLS = 20
"""A tool used less often is not told apart by its name."""
_DIGITS = 4


@dataclass(frozen=True, slots=True)
class _Side:
    """Rows of one kind, standings or proposals: who they belong to and what there is to see."""

    cells: IntArray
    """Cell by row and factor."""
    tools: IntArray
    """Numbers of the two tools that count, by row; 0 for none."""
    run: IntArray
    """Position of the run, by row."""
    orders: IntArray
    """Number of the set of orders' words, by row; 0 for none."""
    heard: IntArray
    """The same for what the user has said since the task."""
    left: IntArray
    """Calls until the violation has happened, by row; a large number where there is none."""


@dataclass(frozen=True, slots=True)
class _Data:
    """All runs, walked once."""

    standing: _Side
    proposal: _Side
    sizes: tuple[tuple[int, ...], tuple[int, ...]]
    tools: Mapping[str, int]
    sets: Sequence[frozenset[int]]
    task_words: Sequence[Sequence[int]]
    marks: Marks
    pipelines: Sequence[Pipeline]
    fold: IntArray
    task: IntArray
    violated: BoolArray


def fit_hazard(
    trajectories: Iterable[Trajectory], space: StateSpace, settings: FitSettings, horizon: int
) -> tuple[Hazard, Maxima]:
    """Fit the hazard of a violation by the notion of the settings.

    Parameters
    ----------
    trajectories
        Runs labelled in ``space``.
    space
        A space with the dimensions of `flow`.
    horizon
        The horizon by which standings are ranked, in steps.

    Returns
    -------
    Hazard
        Fitted on all runs.
    Maxima
        What such a hazard says about tasks it was not fitted on.

    Raises
    ------
    ChainError
        If no run is violated, or none is not.
    """
    runs = [(run, observe(run, space, settings.notion, settings.unknown_onset)) for run in trajectories]
    used = [(run, seen) for run, seen in runs if not seen.left_out]
    if not any(seen.end == VIOLATED for _, seen in used) or all(seen.end == VIOLATED for _, seen in used):
        raise ChainError("a hazard needs runs that are violated and runs that are not")
    data = _walk(used, space)
    targets = {"standing": data.standing.left <= horizon, "proposal": data.proposal.left <= 1}
    weights, learned, scores, cells = {}, {}, {}, {}
    for name, side, sizes, penalty in (
        ("standing", data.standing, data.sizes[0], PENALTY),
        ("proposal", data.proposal, data.sizes[1], PROPOSAL_PENALTY),
    ):
        design = _Design(data, side, sizes)
        regression = _regression(design.inputs, targets[name], penalty)
        weights[name] = design.weights(regression)
        learned[name] = design.learned(design.known(design.inputs, regression, penalty), weights[name])
        scores[name], variances = _cross_scores(design, targets[name], penalty)
        cells[name] = Cells.of(scores[name], variances, side.run, data.task[side.run])
    ends = data.violated[data.standing.run]
    hazard = Hazard(
        marks=data.marks,
        standing=weights["standing"],
        proposal=weights["proposal"],
        within=tuple(
            _link(scores["standing"], data.standing.left <= steps)
            for steps in range(1, settings.max_horizon + 1)
        ),
        eventually=_link(scores["standing"], ends),
        proposed=tuple(
            _link(scores["proposal"], data.proposal.left <= steps)
            for steps in range(1, settings.max_horizon + 1)
        ),
    )
    spread = Spread(
        standing=learned["standing"],
        proposal=learned["proposal"],
        within=tuple(
            cells["standing"].spread(link, data.standing.left <= steps)
            for steps, link in enumerate(hazard.within, 1)
        ),
        eventually=cells["standing"].spread(hazard.eventually, ends),
        proposed=tuple(
            cells["proposal"].spread(link, data.proposal.left <= steps)
            for steps, link in enumerate(hazard.proposed, 1)
        ),
    )
    maxima = {
        name: _maxima(scores[name], side.run, len(used), links[horizon - 1])
        for name, side, links in (
            ("standing", data.standing, hazard.within),
            ("proposal", data.proposal, hazard.proposed),
        )
    }
    return replace(hazard, spread=spread), Maxima(
        maxima["standing"], maxima["proposal"], data.violated, data.task
    )


def _maxima(scores: FloatArray, run: IntArray, n_runs: int, link: tuple[float, float]) -> FloatArray:
    """Return the highest probability of each run; 0 for a run without a row."""
    highest = np.full(n_runs, -np.inf)
    np.maximum.at(highest, run, scores)
    found = np.where(np.isfinite(highest), 1.0 / (1.0 + np.exp(-(link[0] + link[1] * highest))), 0.0)
    return np.asarray(found, dtype=np.float64)


# -- walking the runs ------------------------------------------------------------------------------------


def _walk(used: Sequence[tuple[Trajectory, ObservedRun]], space: StateSpace) -> _Data:
    factors = Factors(space)
    marks = Marks.of_names({run.model for run, _ in used})
    tools = _Numbers(_frequent(run.tools for run, _ in used))
    sets: dict[frozenset[int], int] = {frozenset(): 0}
    sides = (_Rows(), _Rows())
    for number, (run, seen) in enumerate(used):
        for standing, past, state, move, left in _points(run, seen, factors):
            orders, heard = (
                sets.setdefault(found, len(sets)) for found in (past.order_words, past.heard_words)
            )
            if standing:
                cells = factors.standing_cells(state, past)
                sides[0].add(cells, (tools[past.last], tools[past.before], number, orders, heard, left))
            else:
                cells = factors.standing_cells(state, past) + factors.proposal_cells(state, past, move)
                sides[1].add(cells, (tools[move.tool], tools[past.last], number, orders, heard, left))
    return _Data(
        standing=sides[0].side(),
        proposal=sides[1].side(),
        sizes=(factors.standing_sizes, (*factors.standing_sizes, *factors.proposal_sizes)),
        tools=tools.numbers,
        sets=list(sets),
        task_words=[run.words for run, _ in used],
        marks=marks,
        pipelines=[marks.of(run.model) for run, _ in used],
        fold=_fold([(run.source, run.category, run.task) for run, _ in used]),
        task=_task_numbers([(run.source, run.category, run.task) for run, _ in used]),
        violated=np.array([seen.end == VIOLATED for _, seen in used], dtype=np.bool_),
    )


def _points(
    run: Trajectory, seen: ObservedRun, factors: Factors
) -> Iterator[tuple[bool, Covariates, int, Any, int]]:
    """Yield every standing before the violation and every call proposed up to it, with the calls left until it."""
    end, never = seen.onset, np.iinfo(np.int64).max
    for step, (past, move) in enumerate(walk(factors, run, len(seen.states))):
        left = never if end is None else end - step
        yield True, past, seen.states[step], None, left
        if move is not None:
            yield False, past, seen.states[step], move, left


class _Rows:
    """Collects rows."""

    def __init__(self) -> None:
        self._cells: list[tuple[int, ...]] = []
        self._rest: list[tuple[int, int, int, int, int, int]] = []

    def add(self, cells: tuple[int, ...], rest: tuple[int, int, int, int, int, int]) -> None:
        self._cells.append(cells)
        self._rest.append(rest)

    def side(self) -> _Side:
        rest = np.array(self._rest, dtype=np.int64)
        return _Side(
            cells=np.array(self._cells, dtype=np.int32),
            tools=rest[:, :2],
            run=rest[:, 2],
            orders=rest[:, 3],
            heard=rest[:, 4],
            left=rest[:, 5],
        )


class _Numbers:
    """Numbers names from 1; what is not listed is 0."""

    def __init__(self, names: Iterable[str]) -> None:
        self.numbers = {name: number for number, name in enumerate(names, 1)}

    def __getitem__(self, name: str) -> int:
        return self.numbers.get(name, 0)


def _frequent(tools: Iterable[Sequence[str]]) -> list[str]:
    counts: dict[str, int] = {}
    for names in tools:
        for name in names:
            counts[name] = counts.get(name, 0) + 1
    return sorted(name for name, count in counts.items() if name and count >= FEWEST_CALLS)


def _fold(tasks: Sequence[tuple[str, str, str]]) -> IntArray:
    """Return the fold of each run: decided by the name of its task alone."""
    digests = [sha256("|".join(task).encode()).digest() for task in tasks]
    return np.array([int.from_bytes(digest[:4]) % FOLDS for digest in digests], dtype=np.int64)


def _task_numbers(tasks: Sequence[tuple[str, str, str]]) -> IntArray:
    numbers: dict[tuple[str, str, str], int] = {}
    return np.array([numbers.setdefault(task, len(numbers)) for task in tasks], dtype=np.int64)


# -- regression -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Inputs:
    """A wide matrix in parts, because many rows share the words of their task and of the orders they saw.

    Its columns are those of ``own``, then words of the task, of orders, and of what the user said later.
    """

    own: Any
    """Sparse, (rows, columns)."""
    words: tuple[Any, ...]
    """Sparse, (sets, `WORD_BINS`) each."""
    words_of: tuple[IntArray, ...]
    """Number of the set, by row."""

    def __len__(self) -> int:
        return len(self.words_of[0])

    def take(self, chosen: BoolArray) -> _Inputs:
        """Return some of the rows."""
        return _Inputs(self.own[chosen], self.words, tuple([numbers[chosen] for numbers in self.words_of]))

    def squared(self) -> _Inputs:
        """Return the matrix with every number squared."""
        return _Inputs(self.own.power(2), tuple([words.power(2) for words in self.words]), self.words_of)

    def times(self, coefficients: FloatArray) -> FloatArray:
        """Return the matrix times a vector of column weights, (rows,)."""
        first = self.own.shape[1]
        product: FloatArray = self.own @ coefficients[:first]
        for words, numbers, part in zip(
            self.words, self.words_of, np.split(coefficients[first:], len(self.words)), strict=True
        ):
            product += (words @ part)[numbers]
        return product

    def back(self, residuals: FloatArray) -> FloatArray:
        """Return the transposed matrix times a vector of row weights, (columns,)."""
        parts = [
            words.T @ np.bincount(numbers, residuals, minlength=words.shape[0])
            for words, numbers in zip(self.words, self.words_of, strict=True)
        ]
        return np.concatenate([self.own.T @ residuals, *parts])


class _Design:
    """What a regression is shown of one side, and how its coefficients become weights again."""

    def __init__(self, data: _Data, side: _Side, sizes: Sequence[int]) -> None:
        from scipy import sparse  # noqa: PLC0415  # comes with scikit-learn, which only fitting needs

        self.data, self.side, self.sizes = data, side, sizes
        n_tools = len(data.tools) + 1
        borne = _of_marks(data, pipelines=side is data.standing)[side.run]
        exposed = sparse.diags_array((side.orders > 0).astype(np.float64))
        blocks = [
            *(_one_hot(side.cells[:, factor], size) for factor, size in enumerate(sizes)),
            _one_hot(side.tools[:, 0], n_tools, side.tools[:, 0] > 0),
            _one_hot(side.tools[:, 1], n_tools, side.tools[:, 1] > 0),
            borne,
            exposed @ borne,
        ]
        self._widths = [*(block.shape[1] for block in blocks), WORD_BINS, WORD_BINS, WORD_BINS]
        own = sparse.hstack(blocks, format="csr", dtype=np.float64)
        tasks: dict[Sequence[int], int] = {}
        task_of = np.array([tasks.setdefault(words, len(tasks)) for words in data.task_words])
        self.inputs = _Inputs(
            own,
            (
                _of_words(list(tasks), WORD_SCALE),
                _of_words(data.sets, WORD_SCALE),
                _of_words(data.sets, HEARD_SCALE),
            ),
            (task_of[side.run], side.orders, side.heard),
        )

    def weights(self, regression: tuple[FloatArray, float]) -> Weights:
        """Return what a regression found, in the form in which it is looked up."""
        coefficients, bias = regression
        parts = iter(np.split(coefficients, np.cumsum(self._widths)[:-1]))
        tables = tuple(_rounded(next(parts)) for _ in self.sizes)
        last, before = (self._by_tool(next(parts)) for _ in range(2))
        marks, marks_exposed = (_rounded(next(parts)) for _ in range(2))
        task, orders, heard = (
            _by_word(next(parts), scale) for scale in (WORD_SCALE, WORD_SCALE, HEARD_SCALE)
        )
        return Weights(
            bias=round(bias, _DIGITS),
            tables=tables,
            last=last,
            before=before,
            task=task,
            orders=orders,
            heard=heard,
            marks=marks,
            marks_exposed=marks_exposed,
        )

    def known(self, inputs: _Inputs, regression: tuple[FloatArray, float], penalty: float) -> Known:
        """Return what a regression on these inputs knows about its coefficients."""
        coefficients, bias = regression
        with np.errstate(over="ignore"):
            expected = 1.0 / (1.0 + np.exp(-(inputs.times(coefficients) + bias)))
        information = inputs.squared().back(expected * (1.0 - expected))
        last, before, *_, task, orders, heard = self._widths[len(self.sizes) :]
        marks = [len(self.data.marks.named(kind)) for kind in MARK_KINDS]
        widths = [sum(self.sizes), last, before, *marks, *marks, task, orders, heard]
        return Known.of(coefficients, information, penalty, widths)

    def learned(self, known: Known, weights: Weights) -> Learned:
        """Return what is known, in the form in which it is looked up."""
        return known.learned(self.sizes, self.data.tools, weights, _SCALES)

    def _by_tool(self, part: FloatArray) -> dict[str, float]:
        return {name: round(float(part[number]), _DIGITS) for name, number in self.data.tools.items()}


def _regression(inputs: _Inputs, target: BoolArray, penalty: float) -> tuple[FloatArray, float]:
    """Return coefficients and bias of a ridge-penalised logistic regression; the bias is free.

    Stops after `MAX_ITERATIONS` in any case: stopping early is one more way to stay near zero.
    """
    from scipy.optimize import minimize  # noqa: PLC0415  # as above
    from threadpoolctl import threadpool_limits  # noqa: PLC0415  # as above

    n, sign = len(inputs), np.where(target, -1.0, 1.0)
    ridge = 1.0 / (penalty * n)

    def loss(point: FloatArray) -> tuple[float, FloatArray]:
        coefficients = point[:-1]
        margins = sign * (inputs.times(coefficients) + point[-1])
        residuals = sign / (1.0 + np.exp(-margins)) / n
        value = float(np.logaddexp(0.0, margins).mean() + 0.5 * ridge * (coefficients @ coefficients))
        return value, np.append(inputs.back(residuals) + ridge * coefficients, residuals.sum())

    start = np.zeros(inputs.own.shape[1] + len(inputs.words) * WORD_BINS + 1)
    with threadpool_limits(limits=1), np.errstate(over="ignore"):  # threads would wait more than they share
        options = {"maxiter": MAX_ITERATIONS, "gtol": TOLERANCE}
        found = minimize(loss, start, method="L-BFGS-B", jac=True, options=options).x
    return found[:-1], float(found[-1])


def _cross_scores(design: _Design, target: BoolArray, penalty: float) -> tuple[FloatArray, FloatArray]:
    """Return the score of every row by a regression on tasks of other folds, and its variance."""
    fold = design.data.fold[design.side.run]
    scores, variances = np.zeros(len(fold)), np.zeros(len(fold))
    for tried in np.unique(fold):
        inside = fold == tried
        fitted = target[~inside]
        if fitted.all() or not fitted.any():
            raise ChainError(
                "too few tasks with and without a violation to fit a hazard on some and try it on others"
            )
        others, tried_on = design.inputs.take(~inside), design.inputs.take(inside)
        coefficients, bias = _regression(others, fitted, penalty)
        scores[inside] = tried_on.times(coefficients) + bias
        known = design.known(others, (coefficients, bias), penalty)
        variances[inside] = tried_on.squared().times(known.by_column)
    return scores, variances


def _link(scores: FloatArray, happened: BoolArray) -> tuple[float, float]:
    """Return intercept and slope of the logistic link from scores to what happened (Platt, 1999)."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415  # as above

    if happened.all() or not happened.any():
        return (HOPELESS if happened.all() else -HOPELESS), 0.0
    fitted = LogisticRegression(C=1e6).fit(scores[:, None], happened)
    return round(float(fitted.intercept_[0]), _DIGITS), round(max(float(fitted.coef_[0, 0]), 0.0), _DIGITS)


HOPELESS = 16.0
"""Log odds of what always happened."""


def _one_hot(numbers: IntArray, size: int, present: BoolArray | None = None) -> Any:
    from scipy import sparse  # noqa: PLC0415  # as above

    rows = np.arange(len(numbers)) if present is None else np.flatnonzero(present)
    columns = numbers if present is None else numbers[present]
    return sparse.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(len(numbers), size))


def _of_marks(data: _Data, *, pipelines: bool) -> Any:
    """Return which run's name bears which mark, (runs, marks); with those of whole pipelines or without."""
    from scipy import sparse  # noqa: PLC0415  # as above

    counted = np.array([pipelines or not mark.startswith(f"{PIPELINE} ") for mark in data.marks.marks])
    rows = np.repeat(np.arange(len(data.pipelines)), [len(borne) for borne in data.pipelines])
    columns = np.array([mark for borne in data.pipelines for mark in borne], dtype=np.int64)
    shape = (len(data.pipelines), len(data.marks.marks))
    return sparse.csr_matrix((counted[columns].astype(np.float64), (rows, columns)), shape=shape)


def _of_words(sets: Sequence[Iterable[int]], scale: float) -> Any:
    from scipy import sparse  # noqa: PLC0415  # as above

    lengths = np.array([len(tuple(words)) for words in sets])
    columns = np.array([word for words in sets for word in words], dtype=np.int64)
    rows = np.repeat(np.arange(len(sets)), lengths)
    values = scale / np.sqrt(np.repeat(lengths, lengths))
    return sparse.csr_matrix((values, (rows, columns)), shape=(len(sets), WORD_BINS))


def _rounded(part: FloatArray) -> tuple[float, ...]:
    return tuple(np.round(part, _DIGITS).tolist())


def _by_word(part: FloatArray, scale: float) -> dict[int, float]:
    scaled = np.round(part * scale, 3)
    return {int(word): float(scaled[word]) for word in np.flatnonzero(scaled)}
