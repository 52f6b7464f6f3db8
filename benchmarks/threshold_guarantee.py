"""How often a calibrated threshold breaks its promise: the shipped corpus, divided by tasks again and again.

Every run is scored once, by a hazard fitted on other tasks. Then the tasks are divided at random: a threshold is chosen
on one part, and the false alarms of the other part are counted.

What is promised is about the mean over all tasks there are, so two things are counted: divisions in which the tasks
held out exceed the budget, their own luck included, and draws with replacement in which the mean over all tasks given,
the truth of such draws, exceeds it.

Run with --quick for fewer splits.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from safetydrift.effects.labeler import Labeler
from safetydrift.errors import CalibrationError
from safetydrift.formats import load_catalogue, load_space
from safetydrift.formats.trajectories import TrajectoryReader
from safetydrift.monitor.guarantee import Goal
from safetydrift.monitor.risk_control import GRID, fewest_tasks, kept_until, shares
from safetydrift.monitor.score_fitting import fit_risk_score
from safetydrift.monitor.settings import FitSettings

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
        others = ~maxima.violated
        runs = np.unique(maxima.task[others], return_counts=True)[1]
        return cls(shares(scores, maxima.task, others), runs, shares(scores, maxima.task, maxima.violated))


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


def out_of_fold() -> Maxima:
    """Return the maxima of the shipped corpus, each scored by a risk score fitted on other tasks."""
    space = load_space("flow")
    runs = list(TrajectoryReader(["corpus"], space, Labeler(load_catalogue())))
    return fit_risk_score(runs, space, FitSettings(risk_score=True), 5)[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    maxima = out_of_fold()
    results = []
    for subject, scores in (("current", maxima.current), ("proposal", maxima.proposal)):
        counted = Counted.of(scores, maxima)
        for budget in (0.05, 0.1):
            for share in (0.5, 0.75):
                found = simulate(counted, budget, share, 100 if given.quick else 1000)
                results.append((subject, found))
    if given.json:
        print(json.dumps([{"subject": subject, **found} for subject, found in results], indent=1))
        return
    print(f"thresholds tried: {len(GRID)}; tasks needed for 5 % at 95 %: {fewest_tasks(0.05, CONFIDENCE)}")
    for subject, found in results:
        print(f"{subject}: ", "  ".join(f"{key} {value:.4g}" for key, value in found.items()))


if __name__ == "__main__":
    main()
