"""How often the intervals of a hazard hold what happens: tasks, models and suites held out of the shipped corpus.

A hazard is fitted without each part and walks its runs. Moments are divided into cells of one task (or one model, or
one task with one model) and about the same probability, with no run in a cell twice. In a cell of at least ten runs the
violations counted are held against what the intervals predict of such a count: a log odds drawn from the normal
distribution that has the interval's ends as its quantiles, then that many coins. Right intervals leave 5 % of the cells
below and 5 % above. "Without" is the same with the probability alone, as if it were known.

Run with --quick for two parts.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
from scipy.stats import binom

from safetydrift.effects.labeler import Labeler
from safetydrift.formats import load_catalogue, load_space
from safetydrift.formats.trajectories import TrajectoryReader
from safetydrift.monitor.fitting import fit_model
from safetydrift.monitor.foresight import ForesightMonitor
from safetydrift.monitor.hazard_fitting import pipelines
from safetydrift.monitor.settings import FitSettings
from safetydrift.states.trajectory import VIOLATED, observe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from safetydrift.states.trajectory import Trajectory

HORIZON = 5
FEWEST_RUNS = 10
QUANTILE = 1.6448536269514722
NODES = np.linspace(-5.0, 5.0, 41)
SHARES = np.exp(-0.5 * NODES**2) / np.exp(-0.5 * NODES**2).sum()


@dataclass(frozen=True)
class Moments:
    """What was said at the moments of runs, and what came of it; all (moments,)."""

    probability: Any
    low: Any
    high: Any
    happened: Any
    run: Any

    def cells(self, group: Any) -> tuple[Any, ...]:
        """Return size, count, middle, deviation and log odds of the probability of the cells of a grouping of runs."""
        low, high, odds = (_odds(found) for found in (self.low, self.high, self.probability))
        band = np.floor(odds / 0.5).astype(int)
        shuffled = np.random.default_rng(0).permutation(len(odds))
        _, first = np.unique(np.column_stack([self.run, band])[shuffled], axis=0, return_index=True)
        chosen = shuffled[first]
        where = np.column_stack([group[self.run[chosen]], band[chosen]])
        _, cell = np.unique(where, axis=0, return_inverse=True)
        cell = cell.ravel()
        size = np.bincount(cell)
        count = np.bincount(cell, self.happened[chosen])
        means = [
            np.bincount(cell, values[chosen]) / size
            for values in ((low + high) / 2, (high - low) / 2 / QUANTILE, odds)
        ]
        enough = size >= FEWEST_RUNS
        return tuple([values[enough] for values in (size, count, *means)])


def coverage(size: Any, count: Any, middle: Any, deviation: Any) -> tuple[float, float, float]:
    """Return the shares of cells inside, below and above; a count on the edge falls at random, as its share says."""
    chance = 1.0 / (1.0 + np.exp(-(middle[:, None] + deviation[:, None] * NODES)))
    below = binom.cdf(count[:, None] - 1, size[:, None], chance) @ SHARES
    at = binom.pmf(count[:, None], size[:, None], chance) @ SHARES
    place = below + np.random.default_rng(1).random(len(size)) * at
    return ((place > 0.05) & (place < 0.95)).mean(), (place <= 0.05).mean(), (place >= 0.95).mean()


def errors_by_width(size: Any, count: Any, deviation: Any, odds: Any) -> tuple[float, float]:
    """Return the root mean square errors of cells with narrow and with wide intervals, at equal probability.

    The noise of counting is taken off.
    """
    chance = 1.0 / (1.0 + np.exp(-odds))
    error = (count / size - chance) ** 2 - chance * (1.0 - chance) / size
    band, wide = np.floor(odds).astype(int), np.zeros(len(odds), dtype=bool)
    for found in np.unique(band):
        wide[band == found] = deviation[band == found] > np.median(deviation[band == found])
    return tuple([float(np.sqrt(max(error[half].mean(), 0.0))) for half in (~wide, wide)])


def area(scores: Any, happened: Any) -> float:
    """Return the area under the curve; ties count half."""
    _, rank, times = np.unique(scores, return_inverse=True, return_counts=True)
    middle = (np.cumsum(times) - times + 1 + np.cumsum(times)) / 2
    n = happened.sum()
    return (middle[rank.ravel()][happened].sum() - n * (n + 1) / 2) / (n * (len(scores) - n))


def walk(monitor: ForesightMonitor, runs: Sequence[Trajectory]) -> dict[str, Moments]:
    """Return what a monitor says along runs."""
    rows: dict[str, list[tuple[float, float, float, bool, int]]] = {
        "standing": [],
        "proposal": [],
        "in the end": [],
    }
    for number, run in enumerate(runs):
        seen = observe(run, monitor.model.space, monitor.model.notion, monitor.model.unknown_onset)
        moves = [] if seen.left_out else list(run.moves())
        state = monitor.begin(run)
        for step in range(len(seen.states)):
            soon = seen.onset is not None and seen.onset - step <= HORIZON
            verdict, outlook = monitor.verdict(state), monitor.outlook(state)
            rows["standing"].append((verdict.probability, verdict.low, verdict.high, soon, number))
            ends = seen.end == VIOLATED
            rows["in the end"].append((outlook.violates, outlook.low, outlook.high, ends, number))
            if step < len(moves):
                verdict = monitor.foresee(state, moves[step])
                rows["proposal"].append((verdict.probability, verdict.low, verdict.high, soon, number))
                state = monitor.follow(state, moves[step])
    result = {}
    for name, found in rows.items():
        columns = np.array(found)
        result[name] = Moments(*columns.T[:3], columns[:, 3] > 0, columns[:, 4].astype(int))
    return result


def parts(runs: Sequence[Trajectory]) -> Iterator[tuple[str, Callable[[Trajectory], bool]]]:
    """Yield what is held out."""
    bases, _ = pipelines({run.model for run in runs})

    def fold(name: str, n: int) -> int:
        return crc32(name.encode()) % n

    def base(run: Trajectory) -> str:
        name = run.model.lower()
        return max((one for one in bases if name.startswith(one)), key=len, default=name)

    for number in range(5):
        yield (
            f"tasks, part {number + 1}",
            lambda run, number=number: fold(f"{run.source}|{run.category}|{run.task}", 5) == number,
        )
    for source in ("agentdojo", "agentdyn"):
        for number in range(2):
            yield (
                f"models of {source}, part {number + 1}",
                lambda run, number=number, source=source: (
                    run.source == source and fold(base(run), 4) == number
                ),
            )
    for suite in ("shopping", "dailylife", "slack"):
        yield f"suite {suite}", lambda run, suite=suite: run.category == suite


def report(name: str, runs: Sequence[Trajectory], moments: dict[str, Moments]) -> None:
    """Print what was found in one part."""
    task = np.unique([f"{run.source}|{run.category}|{run.task}" for run in runs], return_inverse=True)[1]
    model = np.unique([run.model for run in runs], return_inverse=True)[1]
    groups = {"task": task, "model": model, "task and model": task * (model.max() + 1) + model}
    for side, said in moments.items():
        by_mean, by_high = (area(values, said.happened) for values in (said.probability, said.high))
        width = np.median(said.high - said.low)
        print(
            f"{name} | {side} | area by mean {by_mean:.3f}, by upper end {by_high:.3f} | median width {width:.2f}"
        )
        for group, numbers in groups.items():
            size, count, middle, deviation, odds = said.cells(numbers)
            inside, below, above = coverage(size, count, middle, deviation)
            bare = coverage(size, count, odds, np.zeros(len(odds)))[0]
            narrow, wide = errors_by_width(size, count, deviation, odds)
            print(
                f"    cells of one {group}: {len(size)} | inside {inside:.3f} (below {below:.3f}, above {above:.3f}) | "
                f"without {bare:.3f} | error where narrow {narrow:.3f}, where wide {wide:.3f}",
                flush=True,
            )


def _odds(probability: Any) -> Any:
    clipped = np.clip(probability, 1e-7, 1.0 - 1e-7)
    return np.log(clipped) - np.log1p(-clipped)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    space, catalogue = load_space("flow"), load_catalogue()
    runs = list(TrajectoryReader(["corpus"], space, Labeler(catalogue)))
    chosen = [(name, out) for name, out in parts(runs)]
    together: list[tuple[list[Trajectory], dict[str, Moments]]] = []
    for name, out in chosen[4:6] if given.quick else chosen:
        held_out = [run for run in runs if out(run)]
        model, _ = fit_model(
            [run for run in runs if not out(run)],
            space,
            catalogue,
            FitSettings(hazard=True),
            horizon=HORIZON,
            threshold=0.5,
        )
        moments = walk(ForesightMonitor(model, intervals=True), held_out)
        report(name, held_out, moments)
        if name.startswith("tasks"):
            together.append((held_out, moments))
    if len(together) > 1:
        everything = [run for held_out, _ in together for run in held_out]
        starts = np.cumsum([0, *(len(held_out) for held_out, _ in together)])
        joined = {
            side: Moments(
                *(
                    np.concatenate([getattr(moments[side], field) for _, moments in together])
                    for field in ("probability", "low", "high", "happened")
                ),
                np.concatenate(
                    [moments[side].run + start for (_, moments), start in zip(together, starts, strict=False)]
                ),
            )
            for side in together[0][1]
        }
        report("all tasks, each held out once", everything, joined)


if __name__ == "__main__":
    main()
