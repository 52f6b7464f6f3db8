"""What memory is worth to a chain: the shipped corpus, with whole tasks, models or suites held out.

For each number of remembered calls: log loss of what comes next (an end, or the effect of the next call), and of a
violation within five calls, with its ranking overall, within category, within task and after equally many calls.

Run with --depths 0 1 2 3 for more of them.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import numpy as np

from safetydrift.effects.labeler import Labeler
from safetydrift.evaluation.cases import cases_of
from safetydrift.evaluation.metrics.discrimination import auroc
from safetydrift.evaluation.predictors.variable_order import VariableOrder
from safetydrift.evaluation.splits import held_out_models, held_out_suites, held_out_tasks
from safetydrift.formats import load_catalogue, load_space
from safetydrift.formats.trajectories import TrajectoryReader

if TYPE_CHECKING:
    from safetydrift.evaluation.splits import Split
    from safetydrift.markov._arrays import BoolArray, FloatArray, IntArray
    from safetydrift.states.space import StateSpace

HORIZON, PLACE = 5, 2
SLIGHT = 1e-6
APART = {"tasks": held_out_tasks, "models": held_out_models, "suites": held_out_suites}


def measured(space: StateSpace, depth: int, split: Split) -> dict[str, float]:
    """Fit and try on every fold; figures are over all points tried."""
    surprise, chance, happened, groups, rows = [], [], [], [], []
    for fold in split.folds:
        fitted, test = VariableOrder(space, depth).fit(fold.train), fold.test
        surprise.append(fitted.surprise(test))
        chance.append(fitted.score(test).within[:, PLACE])
        happened.append(test.happens_within(HORIZON))
        of_run = test.run_of_point
        names = np.array([["/".join(case.category), "/".join(case.task)] for case in test.cases])
        groups.append(np.column_stack([names[of_run], test.step_of_point.astype(str)]))
        rows.append(sum(len(table.rows) for name, table in fitted.tables.items() if name))
    scores, outcome, group = np.concatenate(chance), np.concatenate(happened), np.concatenate(groups)
    given = np.clip(np.where(outcome, scores, 1.0 - scores), SLIGHT, 1.0)
    rate = outcome.mean()
    found = {
        "next": float(np.nanmean(np.concatenate(surprise))),
        "within 5": float(-np.log(given).mean()),
        "Brier skill": float(1.0 - np.mean((scores - outcome) ** 2) / (rate * (1.0 - rate))),
        "AUROC": auroc(scores, outcome),
    }
    for place, name in enumerate(("category", "task", "step")):
        found[f"AUROC, equal {name}"] = within(
            scores, outcome, np.unique(group[:, place], return_inverse=True)[1]
        )
    return {**found, "rows": float(np.mean(rows))}


def within(scores: FloatArray, outcome: BoolArray, stratum: IntArray) -> float:
    """Return the area under the ROC curve over the pairs of one stratum."""
    order = np.argsort(stratum, kind="stable")
    ordered, pairs = 0.0, 0.0
    for part in np.split(order, np.flatnonzero(np.diff(stratum[order])) + 1):
        both = float(outcome[part].sum()) * float((~outcome[part]).sum())
        if both:
            ordered += both * auroc(scores[part], outcome[part])
            pairs += both
    return ordered / pairs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--depths", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--held-out", nargs="+", choices=list(APART), default=list(APART))
    given = parser.parse_args()
    space = load_space("flow")
    cases, _ = cases_of(TrajectoryReader(["corpus"], space, Labeler(load_catalogue())), space)
    for name in given.held_out:
        split = APART[name](cases)
        for depth in given.depths:
            found = measured(space, depth, split)
            figures = "  ".join(f"{what} {figure:.4g}" for what, figure in found.items())
            print(f"{name}, {depth} calls remembered: {figures}", flush=True)


if __name__ == "__main__":
    main()
