"""How well proposed calls can be told apart at best: a ceiling for what a risk score can reach in a suite it never saw.

For every suite of AgentDojo and AgentDyn, boosted trees are fitted *on the suite itself*, with its tasks and attacks on
both sides. They are shown every factor of a proposal, the tools, which task it is and which attack was inserted, and
how often the same attack led to a violating call of the same tool. Families of models are dealt into four groups and
each is scored by trees fitted on the others; with --pipelines, runs are dealt instead, and which model and which
defence act is known as well.

What is still told wrongly is what these numbers do not hold: above all whether an attack that was tried succeeds.
"""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from safetydrift.effects.labeler import Labeler
from safetydrift.evaluation.metrics.detection import threshold_for
from safetydrift.evaluation.metrics.discrimination import auroc
from safetydrift.evaluation.splits import model_families
from safetydrift.formats import load_catalogue, load_space
from safetydrift.formats.trajectories import TrajectoryReader
from safetydrift.monitor.features import CURRENT, PROPOSAL
from safetydrift.monitor.score_rows import ScoreData
from safetydrift.monitor.settings import FitSettings
from safetydrift.states.trajectory import Trajectory, observe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from safetydrift.markov._arrays import BoolArray, FloatArray, IntArray

SOURCES, GROUPS, BUDGETS = ("agentdojo", "agentdyn"), 4, (0.05, 0.01)
SMOOTHING = 0.02
_ATTACK = re.compile(r"injection_task_\d+")
_SHARE = [*CURRENT, *PROPOSAL].index("words of injected instructions, words of the user")


def numbered(names: Sequence[str]) -> IntArray:
    return np.unique(np.array(names), return_inverse=True)[1].astype(np.int64)


def rates(key: IntArray, happened: BoolArray, fitted: BoolArray) -> FloatArray:
    """Return for every row how often something happened in the rows fitted on that share its key, (rows,)."""
    _, place = np.unique(key, return_inverse=True)
    count = np.bincount(place[fitted], minlength=place.max() + 1)
    hits = np.bincount(place[fitted], happened[fitted], minlength=place.max() + 1)
    return np.asarray(((hits + SMOOTHING) / (count + 1.0))[place])


def scores(shown: FloatArray, keys: Sequence[IntArray], happened: BoolArray, group: IntArray) -> FloatArray:
    """Return the log odds of every row, by trees fitted on the other groups, (rows,)."""
    found = np.zeros(len(happened))
    for number in np.unique(group).tolist():
        fitted = group != number
        rows = np.column_stack([shown, *(rates(key, happened, fitted) for key in keys)])
        trees = HistGradientBoostingClassifier(
            max_iter=200,
            learning_rate=0.06,
            max_leaf_nodes=15,
            min_samples_leaf=10,
            l2_regularization=1.0,
            random_state=0,
        ).fit(rows[fitted], happened[fitted])
        found[~fitted] = trees.decision_function(rows[~fitted])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--pipelines", action="store_true", help="show which model and which defence act, too"
    )
    given = parser.parse_args()
    space, settings = load_space("flow"), FitSettings(risk_score=True)
    runs: list[Trajectory] = list(TrajectoryReader(["corpus"], space, Labeler(load_catalogue())))
    seen = [(run, observe(run, space, settings.notion, settings.unknown_onset)) for run in runs]
    used = [(run, one) for run, one in seen if not one.left_out and run.source in SOURCES]
    data = ScoreData.of(used, space)  # the very numbers that a risk score is fitted to
    side, family = data.proposal, model_families({run.model for run, _ in used})
    by_run = {
        "attack": numbered([(_ATTACK.search(run.id) or [""])[0] for run, _ in used]),
        "task": numbered([run.task for run, _ in used]),
        "family": numbered([family[run.model] for run, _ in used]),
        "pipeline": numbered([run.model for run, _ in used]),
        "group": np.array([crc32(family[run.model].encode()) % GROUPS for run, _ in used]),
        "draw": np.array([crc32(run.id.encode()) % (GROUPS + 1) for run, _ in used]),
    }
    suites = np.array([run.category for run, _ in used])
    for suite in np.unique(suites).tolist():
        rows = np.flatnonzero(suites[side.run] == suite)
        of = {name: numbers[side.run[rows]] for name, numbers in by_run.items()}
        tool, happened = side.tools[rows, 0], side.left[rows] <= 1
        one = of["attack"] * 10_000 + tool
        keys = [one, one * 1_000 + of["task"], one * 100 + side.cells[rows, _SHARE]]
        shown = np.column_stack([side.cells[rows], side.tools[rows], of["attack"], of["task"]]).astype(
            np.float64
        )
        if given.pipelines:
            attacked = of["pipeline"] * 100 + of["attack"]
            keys += [of["family"], of["pipeline"], attacked, attacked * 10_000 + tool]
        found = scores(shown, keys, happened, of["draw" if given.pipelines else "group"])
        highest = np.full(len(used), -np.inf)
        np.maximum.at(highest, side.run[rows], found)
        asked = suites == suite
        peak, violated = highest[asked], data.violated[asked]
        recalls = [(peak[violated] >= threshold_for(peak[~violated], budget)).mean() for budget in BUDGETS]
        print(
            f"{suite}: AUROC {auroc(peak, violated):.3f}, recall at 5 % {recalls[0]:.3f}, at 1 % {recalls[1]:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
