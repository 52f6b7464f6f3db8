"""What an update on 100 runs does for a model, or a source, that the risk score was not fitted on.

Families of models are left out in four groups, and sources one by one; the risk score is fitted on the rest. For each
family and source left out, 100 of its runs correct the probabilities, and its other runs are scored before and after:
the expected calibration error (ten bins of equal width), the Brier score, and the AUROC, which a correction does not
change. Drawn at random, the 100 runs share tasks with the others; drawn from one half of the tasks and scored on the
other half, they do not. The last column is the floor: the error left when the correction is fitted on the very runs
it is scored on.

Standings are scored for a violation within 5 calls, proposals for one by the proposed call. It takes some minutes.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from safetydrift.effects.labeler import Labeler
from safetydrift.evaluation.metrics.discrimination import auroc
from safetydrift.evaluation.splits import model_families
from safetydrift.formats import load_model
from safetydrift.formats.trajectories import TrajectoryReader
from safetydrift.monitor.recalibration import ROWS_PER_RUN, Correction, Said, said_of
from safetydrift.monitor.score_fitting import fit_risk_score
from safetydrift.monitor.settings import FitSettings
from safetydrift.states.trajectory import observe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from safetydrift.markov._arrays import BoolArray, FloatArray, IntArray
    from safetydrift.monitor.model import Model
    from safetydrift.states.trajectory import Trajectory

GROUPS, UPDATED_ON, MOST_RUNS, FEWEST_RUNS, DRAWS, BINS = 4, 100, 2500, 300, 8, 10
SIDES = (("standing", 4), ("proposal", 0))
FREE = (1e-6, 0.0, 1e-6)


def divisions(runs: list[Trajectory]) -> Iterator[tuple[str, dict[str, list[Trajectory]], list[Trajectory]]]:
    """Yield what is left out, by name, and the runs to fit on."""
    family = model_families({run.model for run in runs})
    group = {name: int.from_bytes(sha256(name.encode()).digest()[:4]) % GROUPS for name in family.values()}
    for number in range(GROUPS):
        yield "model", *_divided(runs, [group[family[run.model]] == number for run in runs], family)
    for source in sorted({run.source for run in runs}):
        yield "source", *_divided(runs, [run.source == source for run in runs], None)


def _divided(
    runs: list[Trajectory], out: list[bool], family: dict[str, str] | None
) -> tuple[dict[str, list[Trajectory]], list[Trajectory]]:
    left: dict[str, list[Trajectory]] = defaultdict(list)
    for run, away in zip(runs, out, strict=True):
        if away:
            left[family[run.model] if family else run.source].append(run)
    return dict(left), [run for run, away in zip(runs, out, strict=True) if not away]


def expected_error(probability: FloatArray, happened: BoolArray) -> float:
    place = np.minimum((probability * BINS).astype(np.int64), BINS - 1)
    return float(np.abs(np.bincount(place, probability - happened, minlength=BINS)).sum() / len(place))


def tried(
    said: Said, column: int, task: IntArray, rng: np.random.Generator, *, apart: bool
) -> dict[str, float] | None:
    """Return the figures of one draw of runs, or None where one of the outcomes is missing."""
    runs = np.unique(said.run)
    half = rng.permutation(task.max() + 1)[: (task.max() + 1) // 2] if apart else np.arange(task.max() + 1)
    chosen = rng.permutation(runs[np.isin(task[runs], half)])[:UPDATED_ON]
    mine = np.isin(said.run, chosen)
    others = ~np.isin(task[said.run], half) if apart else ~mine
    happened, odds = said.happened(column, 10), said.odds[:, column]
    if happened[others].all() or not happened[others].any():
        return None
    correction = Correction().after(odds[mine], happened[mine], said.weight[mine])
    best = Correction(precision=FREE).after(odds[others], happened[others], np.ones(others.sum()))
    found = {"tasks": float(len(np.unique(task[chosen]))), "auroc": auroc(odds[others], happened[others])}
    for name, one in (("before", Correction()), ("after", correction), ("floor", best)):
        probability = np.exp(-np.logaddexp(0.0, -(one.intercept + one.slope * odds[others])))
        found[f"ece_{name}"] = expected_error(probability, happened[others])
        found[f"brier_{name}"] = float(((probability - happened[others]) ** 2).mean())
    return found


def figures(
    kind: str, name: str, model: Model, runs: list[Trajectory], rng: np.random.Generator
) -> Iterator[dict[str, Any]]:
    if len(runs) > MOST_RUNS:
        runs = [runs[place] for place in sorted(rng.choice(len(runs), MOST_RUNS, replace=False).tolist())]
    names: dict[tuple[str, str, str], int] = {}
    task = np.array([names.setdefault((run.source, run.category, run.task), len(names)) for run in runs])
    for (side, column), said in zip(SIDES, said_of(model, runs), strict=True):
        for apart in (False, True):
            draws = [tried(said, column, task, rng, apart=apart) for _ in range(DRAWS)]
            kept = [draw for draw in draws if draw]
            if kept:
                means = {key: float(np.mean([draw[key] for draw in kept])) for key in kept[0]}
                yield {
                    "kind": kind,
                    "name": name,
                    "side": side,
                    "tasks_apart": apart,
                    "runs": len(runs),
                    **means,
                }


def summary(results: list[dict[str, Any]]) -> Iterator[str]:
    for kind in ("model", "source"):
        for side, _ in SIDES:
            for apart in (False, True):
                some = [
                    one
                    for one in results
                    if (one["kind"], one["side"], one["tasks_apart"]) == (kind, side, apart)
                ]
                if some:
                    mean = {
                        key: np.mean([one[key] for one in some])
                        for key in some[0]
                        if "_" in key and key != "tasks_apart"
                    }
                    within = sum(one["ece_after"] <= 0.03 for one in some)
                    yield (
                        f"unseen {kind}s, {side}, tasks apart {apart}: {len(some)} of them; "
                        f"ECE {mean['ece_before']:.3f} -> {mean['ece_after']:.3f} (floor {mean['ece_floor']:.3f}; "
                        f"at most .03 in {within}); Brier "
                        f"{mean['brier_before']:.4f} -> {mean['brier_after']:.4f} (floor {mean['brier_floor']:.4f})"
                    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    model, settings, rng = load_model(), FitSettings(risk_score=True), np.random.default_rng(20260401)
    everything = TrajectoryReader(["corpus"], model.space, Labeler(model.catalogue))
    runs = [
        run
        for run in everything
        if not observe(run, model.space, settings.notion, settings.unknown_onset).left_out
    ]
    results = []
    for kind, left, rest in divisions(runs):
        score, _ = fit_risk_score(rest, model.space, settings, 5)
        for name, its_runs in sorted(left.items()):
            if len(its_runs) >= FEWEST_RUNS:
                results += list(figures(kind, name, replace(model, risk_score=score), its_runs, rng))
    if given.json:
        print(json.dumps(results, indent=1))
        return
    for one in results:
        print(
            f"{one['kind']:<7}{one['name']:<28}{one['side']:<9} apart {one['tasks_apart']!s:<6}{one['runs']:>5} runs  "
            f"ECE {one['ece_before']:.3f} -> {one['ece_after']:.3f} ({one['ece_floor']:.3f})  "
            f"Brier {one['brier_before']:.4f} -> {one['brier_after']:.4f}  AUROC {one['auroc']:.3f}"
        )
    print(f"rows of a run count as {ROWS_PER_RUN:g}, at most")
    print("\n".join(summary(results)))


if __name__ == "__main__":
    main()
