"""How soon the drift alarm is raised on runs unlike those the chain was fitted on, and how seldom on runs like them.

First the level: deployments whose runs are drawn from the shipped model's own chain, or from one that differs from it
as the null allows (every row drawn from its Dirichlet distribution), each watched for 300 runs.

Then the corpus: the chain is fitted on one part of it and watches 600 runs of another, in random order, ten times: runs
of the same tasks and models (one half of the corpus at random), of other tasks, of one family of models that was left
out, and of one source that was left out. It takes some minutes.
"""

from __future__ import annotations

import argparse
import json
from hashlib import sha256
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from safetydrift.effects.labeler import Labeler
from safetydrift.evaluation.splits import model_families
from safetydrift.formats import load_model
from safetydrift.formats.trajectories import TrajectoryReader
from safetydrift.monitor.drift import CONCENTRATION, LEVEL, DriftAlarm
from safetydrift.monitor.fitting import build_model, fit_chains
from safetydrift.monitor.model import AGGREGATE
from safetydrift.monitor.policy import Policy
from safetydrift.monitor.settings import FitSettings
from safetydrift.states.trajectory import COMPLETED, observe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from safetydrift.monitor.model import Model
    from safetydrift.states.trajectory import Trajectory

WATCHED, ORDERS, FEWEST_RUNS = 600, 10, 600
DEPLOYMENTS, OWN_RUNS, LONGEST = 300, 300, 60


def divisions(
    runs: list[Trajectory], rng: np.random.Generator
) -> Iterator[tuple[str, list[Trajectory], list[Trajectory]]]:
    """Yield a name, the runs to fit on, and the runs to watch."""
    order = rng.permutation(len(runs)).tolist()
    yield "same tasks and models", [runs[i] for i in order[::2]], [runs[i] for i in order[1::2]]
    even = [sha256(f"{run.source}|{run.category}|{run.task}".encode()).digest()[0] % 2 == 0 for run in runs]
    yield "other tasks", *_parted(runs, even)
    family = model_families({run.model for run in runs})
    for name in sorted(set(family.values())):
        away = [family[run.model] == name for run in runs]
        if sum(away) >= FEWEST_RUNS:
            yield f"model {name}", *_parted(runs, away)
    for source in sorted({run.source for run in runs}):
        yield f"source {source}", *_parted(runs, [run.source == source for run in runs])


def _parted(runs: list[Trajectory], away: list[bool]) -> tuple[list[Trajectory], list[Trajectory]]:
    pairs = list(zip(runs, away, strict=True))
    return [run for run, out in pairs if not out], [run for run, out in pairs if out]


def watched(
    model: Model, runs: list[Trajectory], rng: np.random.Generator, concentration: float
) -> int | None:
    """Return after how many runs the alarm is raised, None if it is not."""
    alarm = DriftAlarm(model, LEVEL, concentration)
    for place in rng.permutation(len(runs))[:WATCHED].tolist():
        seen = observe(runs[place], model.space, model.notion, model.unknown_onset)
        if alarm.record(runs[place].category, seen.states, completed=seen.end == COMPLETED):
            break
    return alarm.alarmed_at


def own_chain(model: Model, rng: np.random.Generator, concentration: float | None) -> bool:
    """Return whether an alarm is raised on runs of the model's own chain, of all runs together.

    With a concentration, every row of the deployment is drawn around what the model says.
    """
    alarm = DriftAlarm(model, LEVEL)
    state_of = {row: state for state, row in reversed(list(enumerate(model.row_of)))}
    origins: dict[int, list[tuple[int, int]]] = {}
    for origin, target, count in model.tables[AGGREGATE].counts:
        if target != len(model.rows):
            origins.setdefault(origin, []).append((target, count))
    chain = {}
    for origin, targets in origins.items():
        counts = np.array([count for _, count in targets], dtype=np.float64)
        shares = counts / counts.sum()
        if concentration is not None:
            firmness = 1.0 / (1.0 / concentration + 1.0 / (counts.sum() + 1.0))
            shares = rng.dirichlet(firmness * shares)
        chain[origin] = [target for target, _ in targets], np.cumsum(shares)
    for _ in range(OWN_RUNS):
        row, states = model.row_of[model.space.start], [model.space.start]
        while row in chain and row < len(model.rows) and len(states) < LONGEST:
            known, cumulated = chain[row]
            row = known[min(int(np.searchsorted(cumulated, rng.random())), len(known) - 1)]
            if row < len(model.rows):
                states.append(state_of[row])
        if alarm.record(AGGREGATE, states, completed=row > len(model.rows)):
            return True
    return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    shipped, settings, rng = load_model(), FitSettings(), np.random.default_rng(20260401)
    space, catalogue = shipped.space, shipped.catalogue
    runs = [
        run
        for run in TrajectoryReader(["corpus"], space, Labeler(catalogue))
        if not observe(run, space, settings.notion, settings.unknown_onset).left_out
    ]
    results: list[dict[str, Any]] = []
    for name, concentration in (("its own chain", None), ("a chain the null allows", CONCENTRATION)):
        alarmed = sum(own_chain(shipped, rng, concentration) for _ in range(DEPLOYMENTS))
        results.append({"watched": name, "runs": OWN_RUNS, "deployments": DEPLOYMENTS, "alarmed": alarmed})
        if not given.json:
            print("  ".join(f"{key} {value}" for key, value in results[-1].items()), flush=True)
    for name, fitted_on, rest in divisions(runs, rng):
        model = build_model(fit_chains(fitted_on, space, settings), space, catalogue, Policy())
        for concentration in (CONCENTRATION / 2, CONCENTRATION, 2 * CONCENTRATION, 1e6):
            alarms = [watched(model, rest, rng, concentration) for _ in range(ORDERS)]
            raised = [one for one in alarms if one is not None]
            results.append(
                {
                    "watched": name,
                    "concentration": concentration,
                    "runs": min(len(rest), WATCHED),
                    "orders": ORDERS,
                    "alarmed": len(raised),
                    "median_run": median(raised) if raised else None,
                }
            )
            if not given.json:
                print("  ".join(f"{key} {value}" for key, value in results[-1].items()), flush=True)
    if given.json:
        print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
