"""How often a calibrated threshold breaks its promise: the shipped corpus, divided by tasks again and again.

Every run is scored once, by a hazard fitted on other tasks. Then the tasks are divided at random: a threshold is chosen
on one part, and the false alarms of the other part are counted (`safetydrift.evaluation.threshold_trials`).

Run with --quick for fewer splits.
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from safetydrift.effects.labeler import Labeler
from safetydrift.evaluation.threshold_trials import CONFIDENCE, Counted, simulate
from safetydrift.formats import load_catalogue, load_space
from safetydrift.formats.trajectories import TrajectoryReader
from safetydrift.monitor.risk_control import GRID, fewest_tasks
from safetydrift.monitor.score_fitting import fit_risk_score
from safetydrift.monitor.settings import FitSettings

if TYPE_CHECKING:
    from safetydrift.monitor.maxima import Maxima


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
