"""Which order has the chain? Foretelling the next level from the last one, two or three, and testing each (table 1)."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING

import numpy as np

from safetydrift.evaluation.document import Table
from safetydrift.evaluation.splits import random_runs
from safetydrift.study.analyses.foresight import NextLevel, Steps, dense, foretell
from safetydrift.study.analyses.independence import independence
from safetydrift.study.analyses.study import HELD_OUT_NOTE
from safetydrift.study.published import ORDERS

if TYPE_CHECKING:
    from safetydrift.evaluation.document import Cell
    from safetydrift.markov._arrays import IntArray
    from safetydrift.study.analyses.study import Study

HIGHEST = 3
"""The highest order tried."""

HELD_OUT, RANDOM = "held-out tasks", "random (the paper's)"
"""How runs were told apart for training and testing."""

CONSTRUCTIONS = {False: "violation only (the paper's)", True: "violation and completion"}
"""The ends a chain may have, by whether completion is one."""


def order(study: Study) -> dict[str, Table]:
    """Return ``order``, next-level prediction by chains of order 1 to 3, and ``order-tests``, tests of each order."""
    return {"order": _prediction(study), "order-tests": _tests(study)}


def _prediction(study: Study) -> Table:
    splits = {HELD_OUT: study.held_out(), RANDOM: study.parts(random_runs(study.cases, study.generator()))}
    rows: list[tuple[Cell, ...]] = []
    for completion, construction in CONSTRUCTIONS.items():
        steps = Steps.of(study, study.level, len(study.level_names), completion=completion)
        rungs = _contexts(study, steps)
        run_of_step = study.cases.run_of_point[steps.point]
        for split, parts in splits.items():
            for k in range(1, HIGHEST + 1):
                trials = [
                    foretell(
                        rungs[: k + 1], steps.target, steps.n_targets, train[run_of_step], test[run_of_step]
                    )
                    for train, test in parts
                ]
                found = sum(trials, start=NextLevel())
                printed = None if completion else ORDERS[k]
                rows.append(
                    (
                        construction,
                        split,
                        k,
                        found.total,
                        found.accuracy,
                        found.log_loss,
                        *((printed.accuracy, printed.log_loss) if printed else (None, None)),
                    )
                )
    return Table(
        "Next-state prediction by the order of the coarse chain",
        f"{study.note} Risk levels of all categories together. {HELD_OUT_NOTE} The random split tries a fifth of "
        "the runs, with runs of one task on both sides, as the paper does. Log loss in nats; a context leans on "
        "the one that is a level shorter by one pseudo-observation, so no probability is zero. Before a run's "
        "first call stands a level of its own.",
        (
            "ends",
            "split",
            "order",
            "steps",
            "accuracy",
            "log loss",
            "published accuracy",
            "published log loss",
        ),
        tuple(rows),
    )


def _contexts(study: Study, steps: Steps) -> list[IntArray]:
    """Return what each step may be foretold from: nothing, the last level, the last two, the last three."""
    n_levels = len(study.level_names)
    code = np.zeros(len(steps.point), dtype=np.int64)
    rungs = [code]
    for back in range(HIGHEST):
        code = code * (n_levels + 1) + _level_before(study, steps.point, back)
        rungs.append(code)
    return [dense(rung) for rung in rungs]


def _level_before(study: Study, point: IntArray, back: int) -> IntArray:
    """Return the level some points back in the same run; one past the highest before the run began."""
    exists = study.cases.step_of_point[point] >= back
    return np.where(exists, study.level[np.maximum(point - back, 0)], len(study.level_names))


def _tests(study: Study) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for completion, construction in CONSTRUCTIONS.items():
        steps = Steps.of(study, study.level, len(study.level_names), completion=completion)
        rungs = _contexts(study, steps)
        category = study.category[steps.point]
        for k in range(1, HIGHEST + 1):
            known = study.cases.step_of_point[steps.point] >= k
            before = _level_before(study, steps.point, k)[known]
            likelihood, parameters = _likelihood(rungs[k], rungs[1], steps)
            n = len(steps.point)
            for scope, context in (
                ("all runs", rungs[k]),
                ("within category", rungs[k] * len(study.categories) + category),
            ):
                found = independence(context[known], before, steps.target[known])
                whole = scope == "all runs"
                rows.append(
                    (
                        construction,
                        scope,
                        f"{k} against {k + 1}",
                        found.observations,
                        found.g_squared,
                        found.chi_squared,
                        found.degrees,
                        found.p_value,
                        found.small,
                        2.0 * parameters - 2.0 * likelihood if whole else None,
                        parameters * log(n) - 2.0 * likelihood if whole and n else None,
                        "rejected" if k == 1 and whole and not completion else None,
                    )
                )
    return Table(
        "Tests of each order against the next",
        f"{study.note} All runs, none held out. Steps with enough levels before them; G² and X² with the degrees of "
        "freedom of what was seen, and the share of expected counts below 5, where the chi-squared limit is a poor "
        "guide. Within category the category is part of the context: a mixture of different first-order chains is of "
        "no order. Runs of one task are alike, which no row allows for: p-values are too small. AIC and BIC of the "
        "lower order, over all steps.",
        (
            "ends",
            "scope",
            "order",
            "steps",
            "G²",
            "X²",
            "degrees of freedom",
            "p",
            "expected below 5",
            "AIC",
            "BIC",
            "published",
        ),
        tuple(rows),
    )


def _likelihood(context: IntArray, level: IntArray, steps: Steps) -> tuple[float, int]:
    """Return the log likelihood of a chain fitted to all steps, in nats, and its number of free parameters.

    A context whose last level was seen to lead to m others, after whatever came before, has m - 1 parameters.
    """
    counts, of_level = _table(context, steps), _table(level, steps)
    totals = counts.sum(axis=1)
    likelihood = float((counts * np.log(np.maximum(counts, 1))).sum())
    likelihood -= float((totals * np.log(np.maximum(totals, 1))).sum())
    last = np.zeros(len(counts), dtype=np.int64)
    last[context] = level
    return likelihood, int(((of_level > 0).sum(axis=1) - 1)[last].sum())


def _table(context: IntArray, steps: Steps) -> IntArray:
    """Count what followed each context; shape (contexts, n_targets)."""
    cells = context * steps.n_targets + steps.target
    size = (int(context.max(initial=0)) + 1) * steps.n_targets
    return np.bincount(cells, minlength=size).reshape(-1, steps.n_targets)
