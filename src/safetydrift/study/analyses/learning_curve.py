"""How much foresight how many runs buy (figure 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from safetydrift.evaluation.document import Table
from safetydrift.evaluation.splits import FOLDS
from safetydrift.study.analyses.chains import Places
from safetydrift.study.analyses.trial import Trial, try_out
from safetydrift.study.published import LEARNING_CURVE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from safetydrift.evaluation.document import Cell
    from safetydrift.markov._arrays import BoolArray, IntArray
    from safetydrift.study.analyses.study import Study

SIZES = (*LEARNING_CURVE, 1_000, 3_000, 10_000, 30_000)
"""Training runs tried, as far as there are that many; then all there are."""

REPEATS = 10
"""How often each number of runs is drawn."""


def learning_curve(study: Study, sizes: Sequence[int] = SIZES, repeats: int = REPEATS) -> dict[str, Table]:
    """Return ``learning-curve``: foresight against the number of training runs.

    Parameters
    ----------
    sizes
        Numbers of runs to learn from.
    repeats
        How often the held-out tasks, and then the runs, are drawn.
    """
    generator = study.generator()
    places = Places.fine(study)
    splits = [_split(study, generator) for _ in range(repeats)]
    available = min(len(order) for order, _ in splits)
    used = [size for size in sizes if size < available]
    rows = []
    for size in (*used, available):
        found = [
            try_out(study, places, [(_only(order[:size], len(study.cases)), test)]) for order, test in splits
        ]
        rows.append(_row(size, found))
    note = (
        f"{study.note} {repeats} times one task in {FOLDS} is held out, and runs are drawn from the others without "
        "replacement; larger draws contain the smaller ones. Mean and standard deviation over the draws, which "
        "differ in their test tasks too. The next level is foretold from the state, over all categories; AUROC is "
        "of a violation within 5 steps by the chain of the category. The published curve rests on a random split."
    )
    columns = (
        "training runs",
        "repeats",
        "accuracy",
        "accuracy, deviation",
        "log loss",
        "log loss, deviation",
        "AUROC within 5",
        "AUROC within 5, deviation",
        "published accuracy",
        "published deviation",
    )
    return {"learning-curve": Table("Foresight by the number of training runs", note, columns, tuple(rows))}


def _split(study: Study, generator: np.random.Generator) -> tuple[IntArray, BoolArray]:
    """Return the training runs in an order drawn at random, and which runs are held out."""
    held_out = study.draw_held_out(generator)
    return generator.permutation(np.flatnonzero(~held_out)), held_out


def _only(chosen: IntArray, n_runs: int) -> BoolArray:
    mask = np.zeros(n_runs, dtype=np.bool_)
    mask[chosen] = True
    return mask


def _row(size: int, found: Sequence[Trial]) -> tuple[Cell, ...]:
    printed = LEARNING_CURVE.get(size)
    cells: list[Cell] = [size, len(found)]
    for values in (
        [trial.next_level.accuracy for trial in found],
        [trial.next_level.log_loss for trial in found],
        [trial.ranking.auroc for trial in found],
    ):
        cells += [float(np.mean(values)), _deviation(values)]
    return (*cells, printed.accuracy if printed else None, printed.deviation if printed else None)


def _deviation(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
