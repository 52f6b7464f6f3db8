"""How often a calibrated threshold breaks its promise, over many random divisions of tasks.

What is promised is about the mean over all tasks there are, so two things are counted: divisions in which the tasks
held out exceed the budget, their own luck included, and draws with replacement in which the mean over all tasks given,
the truth of such draws, exceeds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from safetydrift.errors import CalibrationError
from safetydrift.monitor.guarantee import Goal
from safetydrift.monitor.risk_control import kept_until, shares

if TYPE_CHECKING:
    from safetydrift.markov._arrays import FloatArray, IntArray
    from safetydrift.monitor.maxima import Maxima

CONFIDENCE = 0.95
SEED = 20260401


@dataclass(frozen=True)
class Counted:
    """What every task adds to the rates, by threshold of the grid.

    Parameters
    ----------
    alarmed : (tasks, thresholds) array
        Share of its non-violating runs alarmed.
    runs : (tasks,) array
        How many such runs it has.
    caught : (other tasks, thresholds) array
        Share of the violating runs of tasks that have some.
    """

    alarmed: FloatArray
    runs: IntArray
    caught: FloatArray

    @classmethod
    def of(cls, scores: FloatArray, maxima: Maxima) -> Counted:
        """Count the runs whose scores are given."""
        calm = ~maxima.violated
        runs = np.unique(maxima.task[calm], return_counts=True)[1]
        return cls(shares(scores, maxima.task, calm), runs, shares(scores, maxima.task, maxima.violated))


def _place(losses: FloatArray, budget: float) -> int | None:
    """Return the place of the threshold chosen, or None where the budget is refused."""
    try:
        return kept_until(losses, budget, Goal(limit=budget, confidence=CONFIDENCE))
    except CalibrationError:
        return None


def simulate(
    counted: Counted, budget: float, share: float, splits: int, seed: int = SEED
) -> dict[str, float]:
    """Return how often the promise was broken over random divisions by task, and what the thresholds did."""
    rng = np.random.default_rng(seed)
    losses, weight = counted.alarmed, counted.runs
    n = len(losses)
    n_chosen = round(share * n)
    truth = losses.mean(axis=0)
    refused, over, over_by_run, rates, recalls, over_truth = 0, 0, 0, [], [], 0
    for _ in range(splits):
        order = rng.permutation(n)
        chosen, rest = order[:n_chosen], order[n_chosen:]
        place = _place(losses[chosen], budget)
        if place is None:
            refused += 1
        else:
            rate = losses[rest, place].mean()
            over += bool(rate > budget)
            over_by_run += bool(losses[rest, place] @ weight[rest] / weight[rest].sum() > budget)
            rates.append(rate)
            recalls.append(counted.caught[:, place].mean())
        place = _place(losses[rng.integers(0, n, n_chosen)], budget)
        over_truth += bool(place is not None and truth[place] > budget)
    return {
        "budget": budget,
        "calibration_tasks": n_chosen,
        "held_out_tasks": n - n_chosen,
        "splits": splits,
        "refused": refused,
        "exceeded_on_held_out_tasks": over / splits,
        "exceeded_over_held_out_runs": over_by_run / splits,
        "exceeded_in_truth": over_truth / splits,
        "mean_held_out_rate": float(np.mean(rates)) if rates else float("nan"),
        "mean_recall": float(np.mean(recalls)) if recalls else float("nan"),
    }
