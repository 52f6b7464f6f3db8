"""How often the intervals of a risk score hold what happens: tasks, models and suites held out of the shipped corpus.

Scores come from regressions without the part held out; the links and the variance between tasks, from scores of other
tasks outside the part. Moments are divided into cells of one task (or one model, or one task with one model) and about
the same probability, with no run in a cell twice. In a cell of at least ten runs the violations counted are held
against what the intervals predict of such a count: a log odds drawn from the normal distribution that has the
interval's ends as its quantiles, then that many coins. Right intervals leave 5 % of the cells below and 5 % above.
"Without" is the same with the probability alone, as if it were known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
from scipy.stats import binom

from safetydrift.effects.labeler import Labeler
from safetydrift.formats import load_catalogue, load_space
from safetydrift.formats.trajectories import TrajectoryReader
from safetydrift.monitor.pipelines import MODEL, Traits
from safetydrift.monitor.regression import Regression, link
from safetydrift.monitor.score_fitting import PENALTY, PROPOSAL_PENALTY, SideFit
from safetydrift.monitor.score_rows import ScoreData
from safetydrift.monitor.settings import FitSettings
from safetydrift.monitor.spread_fitting import Cells, centres
from safetydrift.states.trajectory import observe

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from safetydrift.states.trajectory import Trajectory

HORIZON = 5
FEWEST_RUNS = 10
QUANTILE = 1.6448536269514722
NODES = np.linspace(-5.0, 5.0, 41)
SHARES = np.exp(-0.5 * NODES**2) / np.exp(-0.5 * NODES**2).sum()


@dataclass(frozen=True)
class Moments:
    """What was said at moments of runs, and what came of it; all (moments,)."""

    odds: Any
    middle: Any
    deviation: Any
    happened: Any
    run: Any

    @classmethod
    def joined(cls, parts: Sequence[Moments]) -> Moments:
        """Return the moments of several parts."""
        names = ("odds", "middle", "deviation", "happened", "run")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    @property
    def high(self) -> Any:
        """Log odds of the upper end."""
        return self.middle + QUANTILE * self.deviation

    @property
    def width(self) -> float:
        """Median width of the intervals, as a difference of probabilities."""
        ends = [_probability(self.middle + side * QUANTILE * self.deviation) for side in (-1.0, 1.0)]
        return float(np.median(ends[1] - ends[0]))

    def cells(self, group: Any) -> tuple[Any, ...]:
        """Return size, count, middle, deviation and log odds of the probability of the cells of a grouping of runs."""
        band = np.floor(self.odds / 0.5).astype(int)
        shuffled = np.random.default_rng(0).permutation(len(band))
        _, first = np.unique(np.column_stack([self.run, band])[shuffled], axis=0, return_index=True)
        chosen = shuffled[first]
        where = np.column_stack([group[self.run[chosen]], band[chosen]])
        _, cell = np.unique(where, axis=0, return_inverse=True)
        cell = cell.ravel()
        size, count = np.bincount(cell), np.bincount(cell, self.happened[chosen])
        means = [
            np.bincount(cell, values[chosen]) / size for values in (self.middle, self.deviation, self.odds)
        ]
        enough = size >= FEWEST_RUNS
        return tuple([values[enough] for values in (size, count, *means)])


def coverage(size: Any, count: Any, middle: Any, deviation: Any) -> tuple[float, float, float]:
    """Return the shares of cells inside, below and above; a count on the edge falls at random, as its share says."""
    chance = _probability(middle[:, None] + deviation[:, None] * NODES)
    below = binom.cdf(count[:, None] - 1, size[:, None], chance) @ SHARES
    at = binom.pmf(count[:, None], size[:, None], chance) @ SHARES
    place = below + np.random.default_rng(1).random(len(size)) * at
    return ((place > 0.05) & (place < 0.95)).mean(), (place <= 0.05).mean(), (place >= 0.95).mean()


def errors_by_width(size: Any, count: Any, deviation: Any, odds: Any) -> tuple[float, float]:
    """Return the root mean square errors of cells with narrow and with wide intervals, at equal probability.

    The noise of counting is taken off.
    """
    chance = _probability(odds)
    error = (count / size - chance) ** 2 - chance * (1.0 - chance) / size
    band, wide = np.floor(odds).astype(int), np.zeros(len(odds), dtype=bool)
    for found in np.unique(band):
        wide[band == found] = deviation[band == found] > np.median(deviation[band == found])
    narrower, wider = (float(np.sqrt(max(error[half].mean(), 0.0))) for half in (~wide, wide))
    return narrower, wider


def by_quarter_of_width(parts: Sequence[tuple[Any, ...]]) -> list[float]:
    """Return the same by quarters of width, over the cells of several parts."""
    size, count, _, deviation, odds = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    chance = _probability(odds)
    error = (count / size - chance) ** 2 - chance * (1.0 - chance) / size
    band, quarter = np.floor(odds).astype(int), np.zeros(len(odds), dtype=int)
    for found in np.unique(band):
        inside = band == found
        quarter[inside] = np.argsort(np.argsort(deviation[inside])) * 4 // inside.sum()
    return [float(np.sqrt(max(error[quarter == number].mean(), 0.0))) for number in range(4)]


def recall(scores: Any, run: Any, violated: Any) -> float:
    """Return the share of violating runs whose highest score is beyond that of 95 % of the others'."""
    peak = np.full(len(violated), -np.inf)
    np.maximum.at(peak, run, scores)
    seen = np.isfinite(peak)
    limit = np.quantile(peak[seen & ~violated], 0.95)
    return float((peak[seen & violated] > limit).mean())


def area(scores: Any, happened: Any) -> float:
    """Return the area under the curve; ties count half."""
    _, rank, times = np.unique(scores, return_inverse=True, return_counts=True)
    middle = (np.cumsum(times) - times + 1 + np.cumsum(times)) / 2
    n = happened.sum()
    return float((middle[rank.ravel()][happened].sum() - n * (n + 1) / 2) / (n * (len(scores) - n)))


def parts(runs: Sequence[Trajectory]) -> Iterator[tuple[str, Any]]:
    """Yield what is held out besides tasks, (runs,)."""
    bases = Traits.of_names({run.model for run in runs}).named(MODEL)
    named = [
        max((base for base in bases if run.model.lower().startswith(base)), key=len, default="")
        for run in runs
    ]
    part = np.array([crc32(base.encode()) % 4 for base in named])
    source, suite = np.array([run.source for run in runs]), np.array([run.category for run in runs])
    for name in ("agentdojo", "agentdyn"):
        for number in range(2):
            yield f"models of {name}, part {number + 1}", (source == name) & (part == number)
    for name in ("shopping", "dailylife", "slack"):
        yield f"suite {name}", suite == name


class Tried:
    """One side, places or proposals, with the scores of every task by a regression on others."""

    def __init__(self, data: ScoreData, target: Any, *, proposals: bool) -> None:
        self.data, self.target = data, target
        self.side = data.proposal if proposals else data.current
        self.penalty = PROPOSAL_PENALTY if proposals else PENALTY
        features = data.features.all if proposals else data.features.current
        self.fit = SideFit(data, self.side, list(features), self.penalty, pipelines=not proposals)
        self.scores, self.variances = self.fit.cross_scores(target)

    def tasks(self, happened: Any) -> Moments:
        """Return the moments of all tasks, linked by those of other folds."""
        fold = self.data.fold[self.side.run]
        found = [
            self._said(fold != number, fold == number, self.scores, self.variances, happened)
            for number in np.unique(fold)
        ]
        return Moments.joined(found)

    def scored(self, out: Any) -> tuple[Any, Any]:
        """Return the scores of held-out runs and their variances, at the rows of the runs."""
        inside = out[self.side.run]
        others, tried_on = self.fit.inputs.take(~inside), self.fit.inputs.take(inside)
        found = Regression.of(others, self.target[~inside], self.penalty)
        scores, variances = self.scores.copy(), self.variances.copy()
        scores[inside] = found.scores(tried_on)
        variances[inside] = tried_on.squared().times(self.fit.known(others, found).by_column)
        return scores, variances

    def part(self, out: Any, scored: tuple[Any, Any], happened: Any) -> Moments:
        """Return the moments of held-out runs, linked by the others."""
        inside = out[self.side.run]
        return self._said(~inside, inside, *scored, happened)

    def _said(self, known: Any, new: Any, scores: Any, variances: Any, happened: Any) -> Moments:
        run, task = self.side.run, self.data.task[self.side.run]
        found = link(self.scores[known], happened[known])
        cells = Cells.of(self.scores[known], self.variances[known], run[known], task[known])
        between = cells.between(found, happened[known])
        odds = found.intercept + found.slope * scores[new]
        deviation = np.sqrt(between + found.slope**2 * variances[new])
        return Moments(odds, centres(odds, between), deviation, happened[new], run[new])


def report(name: str, side: str, groups: dict[str, Any], said: Moments, violated: Any) -> None:
    """Print what was found in one part."""
    figures = said.odds, said.high
    by_mean, by_high = (area(values, said.happened) for values in figures)
    found, found_high = (recall(values, said.run, violated) for values in figures)
    print(
        f"{name} | {side} | area by mean {by_mean:.3f}, by upper end {by_high:.3f} | violating runs found at 5 % false "
        f"alarms {found:.3f}, {found_high:.3f} | median width {said.width:.2f}"
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


def _probability(odds: Any) -> Any:
    return np.exp(-np.logaddexp(0.0, -odds))


def main() -> None:
    space, settings = load_space("flow"), FitSettings()
    read = TrajectoryReader(["corpus"], space, Labeler(load_catalogue()))
    used = [(run, observe(run, space, settings.notion, settings.unknown_onset)) for run in read]
    used = [(run, seen) for run, seen in used if not seen.left_out]
    runs, data = [run for run, _ in used], ScoreData.of(used, space)
    model = np.unique([run.model for run in runs], return_inverse=True)[1]
    groups = {"task": data.task, "model": model, "task and model": data.task * (model.max() + 1) + model}
    left = data.current.left, data.proposal.left
    for tried, targets in (
        (
            Tried(data, left[0] <= HORIZON, proposals=False),
            {"current": left[0] <= HORIZON, "in the end": data.violated[data.current.run]},
        ),
        (
            Tried(data, left[1] <= 1, proposals=True),
            {"proposal": left[1] <= HORIZON, "proposal itself": left[1] <= 1},
        ),
    ):
        cells: dict[str, list[tuple[Any, ...]]] = {side: [] for side in targets}
        for name, out in (("tasks", None), *parts(runs)):
            scored = None if out is None else tried.scored(out)
            for side, happened in targets.items():
                said = tried.tasks(happened) if scored is None else tried.part(out, scored, happened)
                report(name, side, groups, said, data.violated)
                cells[side].append(said.cells(model))
        for side, found in cells.items():
            quarters = ", ".join([f"{error:.3f}" for error in by_quarter_of_width(found)])
            print(
                f"all parts | {side} | error of cells of one model by quarter of width at equal odds: {quarters}"
            )


if __name__ == "__main__":
    main()
