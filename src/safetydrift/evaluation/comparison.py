"""Predictors side by side: each fitted without what it is tried on, measured on the same runs and resamples.

`compare` fits every predictor on the training runs of every fold, has it score the runs tried, pools the folds and
measures all of it in one `Frame`. Differences between two predictors are paired: both on the same resample of tasks.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from safetydrift.errors import ScoresError
from safetydrift.evaluation.cases import Case, CaseSet
from safetydrift.evaluation.metrics.detection import BUDGETS
from safetydrift.evaluation.metrics.levels import Frame
from safetydrift.evaluation.metrics.resampling import RESAMPLES, SEED, Resamples
from safetydrift.evaluation.pooling import Doubt, Pool, Scored, covered_by_all, select
from safetydrift.evaluation.rate import Rate, plain
from safetydrift.evaluation.scores import HORIZONS
from safetydrift.evaluation.splits import Split, held_out_tasks
from safetydrift.evaluation.workers import Workers
from safetydrift.trace import NO_ATTACK, NO_SAFETY_LABEL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from safetydrift.evaluation.metrics.levels import Measures
    from safetydrift.evaluation.metrics.resampling import Estimate
    from safetydrift.evaluation.scores import Predictor
    from safetydrift.markov._arrays import BoolArray
    from safetydrift.states.trajectory import Trajectory

_T = TypeVar("_T")

REFERENCE = "category-prior"
"""The predictor that all others are held against."""


@dataclass(frozen=True, slots=True)
class PredictorResult:
    """One predictor under one split.

    Parameters
    ----------
    name
        As tables name it.
    probabilistic
        Whether its scores can be held against frequencies.
    measures
        Everything measured.
    differences
        Each of its figures minus the reference's, by name, where both have it; empty for the reference itself.
    fit_seconds, score_seconds
        How long fitting and scoring took over all folds.
    """

    name: str
    probabilistic: bool
    measures: Measures
    differences: Mapping[str, Estimate]
    fit_seconds: float
    score_seconds: float

    def as_dict(self) -> dict[str, object]:
        """Return all of it as plain data."""
        differences = {
            name: {**figure.as_dict(), "excludes_zero": figure.excludes_zero}
            for name, figure in self.differences.items()
        }
        return {
            "name": self.name,
            "probabilistic": self.probabilistic,
            **plain(self.measures),
            "differences": differences,
            "fit_seconds": self.fit_seconds,
            "score_seconds": self.score_seconds,
        }


@dataclass(frozen=True, slots=True)
class SplitComparison:
    """All predictors under one split.

    Parameters
    ----------
    name
        The split, as tables name it.
    kept_apart
        What it keeps apart: any of ``"task"``, ``"model"``, ``"source"``, ``"suite"``.
    folds
        How often each predictor was fitted.
    tasks
        How many tasks are tried.
    violated
        Of the runs tried.
    by_step
        Of the runs tried, those also measured by step and by proposal; of the others no violating call is known.
    background
        Further runs in which nobody attacked, tried for false alarms alone.
    predictors
        In the order they were given.
    unverified
        Predictors fitted elsewhere that do not say on which tasks: they may have seen those tried.
    in_sample
        Predictors that were fitted on tasks tried: what they remember of these runs is no foresight.
    notes
        What a reader has to know, one sentence each.
    """

    name: str
    kept_apart: tuple[str, ...]
    folds: int
    tasks: int
    violated: Rate
    by_step: Rate
    background: int
    predictors: tuple[PredictorResult, ...]
    unverified: tuple[str, ...]
    in_sample: tuple[str, ...]
    notes: tuple[str, ...]

    def predictor(self, name: str) -> PredictorResult:
        """Return the results of one predictor.

        Raises
        ------
        KeyError
            If there is none of that name.
        """
        for result in self.predictors:
            if result.name == name:
                return result
        raise KeyError(name)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Predictors under one or more splits.

    Parameters
    ----------
    splits
        In the order they were given; the first is the one to read first.
    reference
        The predictor that the others are held against.
    horizon
        The horizon at which whole runs are scored, in steps.
    resamples
        How often tasks were drawn again for the intervals.
    """

    splits: tuple[SplitComparison, ...]
    reference: str
    horizon: int
    resamples: int

    def as_dict(self) -> dict[str, object]:
        """Return all of it as plain data, for scripts."""
        return {
            "reference": self.reference,
            "horizon": self.horizon,
            "horizons": HORIZONS,
            "resamples": self.resamples,
            "finding": self.finding(),
            "splits": self.splits,
        }

    def finding(self) -> str:
        """Say in plain words which predictor ranks best within category on held-out tasks, and how sure that is."""
        split = next((split for split in self.splits if "task" in split.kept_apart), None)
        if split is None:
            return "No task was held out, so nothing is said about tasks not seen before."
        return _finding(split, self.reference, self.horizon)


def background_of(trajectories: Iterable[Trajectory]) -> CaseSet:
    """Return the runs in which nobody attacked and of which no outcome is published: alarms in them are false.

    They carry no usable label, so `cases_of` leaves them out. A run that broke off in an error is none of them, nor is
    one about which a judge could not make up its mind.
    """
    return CaseSet(
        Case(run, None)
        for run in trajectories
        if not run.label.goal
        and not run.label.attack
        and run.label.violated is None
        and run.label.unusable in _UNATTACKED
    )


def compare(
    predictors: Sequence[Predictor],
    cases: CaseSet | Split | Sequence[Split],
    *,
    reference: str = REFERENCE,
    horizon: int = HORIZONS[-1],
    budgets: Sequence[float] = BUDGETS,
    n_resamples: int = RESAMPLES,
    rng: np.random.Generator | None = None,
    background: CaseSet | None = None,
    processes: int = 1,
    progress: Callable[[str, int, int], None] = lambda _what, _done, _total: None,
) -> Comparison:
    """Fit, score and measure predictors.

    Parameters
    ----------
    predictors
        Of different names. One that was fitted elsewhere (`Fixed`) may say on which tasks: an attribute ``trained_on``
        of what it holds, a collection of (source, category, task); empty for a rule that was fitted on nothing. One
        whose attribute ``in_sample`` is true is known to have seen tasks tried: it is measured, and marked.
    cases
        Runs, which are then divided by held-out tasks; or one split; or several.
    reference
        The predictor that the others are held against; where it is none of them, no differences are given.
    horizon
        The horizon at which whole runs are scored: one of `HORIZONS`.
    budgets
        Shares of the runs without a violation that may alarm.
    n_resamples
        How often tasks are drawn again for the intervals.
    rng
        Where resamples come from; seeded with `safetydrift.evaluation.metrics.resampling.SEED` when left out.
    background
        Further runs in which nobody attacked, for false alarms; see `background_of`. One whose task a fold was fitted
        on is never scored by that fold.
    processes
        How many processes share the work, where they can be forked. The result is the same for any number.
    progress
        Called with what is being done, how many pieces of work are done, and how many there are.

    Raises
    ------
    LeakageError
        If a predictor was fitted on a task that it is tried on, under a split that keeps tasks apart.
    ScoresError
        If two predictors share a name, or scores do not fit the runs they are for.
    SplitError
        If there are too few tasks to hold any out.
    ValueError
        If ``horizon`` is none of `HORIZONS`.
    """
    if horizon not in HORIZONS:
        raise ValueError(f"predictors are compared at horizons {HORIZONS}, not {horizon}")
    if len({predictor.name for predictor in predictors}) < len(predictors):
        raise ScoresError("two predictors share a name; name each of them differently")
    splits = _splits(cases)
    rng = np.random.default_rng(SEED) if rng is None else rng
    pools = tuple(Pool(split, background) for split in splits)
    trial = _Trial(pools, tuple(predictors), horizon, tuple(budgets), {})
    steps = sum(len(predictors) * (len(split.folds) + 1) for split in splits)
    with Workers(trial, processes) as workers:
        work = _Work(workers, progress, steps)
        compared = [
            _measured(trial, number, work, reference=reference, n_resamples=n_resamples, rng=rng)
            for number in range(len(splits))
        ]
    return Comparison(tuple(compared), reference, horizon, n_resamples)


_UNATTACKED = frozenset({"", NO_ATTACK, NO_SAFETY_LABEL})
"""Why a run in which nobody attacked may be without a usable label."""


def _splits(cases: CaseSet | Split | Sequence[Split]) -> tuple[Split, ...]:
    if isinstance(cases, CaseSet):
        return (held_out_tasks(cases),)
    return (cases,) if isinstance(cases, Split) else tuple(cases)


@dataclass(frozen=True, slots=True)
class _Trial:
    """What forked processes share: the splits with the runs tried, the predictors, and how they are measured."""

    pools: tuple[Pool, ...]
    predictors: tuple[Predictor, ...]
    horizon: int
    budgets: tuple[float, ...]
    frames: dict[int, Frame]


class _Work:
    """Hands out pieces of work, and says what is waited for."""

    def __init__(
        self, workers: Workers[_Trial], progress: Callable[[str, int, int], None], total: int
    ) -> None:
        self.workers, self.progress, self.total, self.done = workers, progress, total, 0

    def wait(self, what: str, result: Callable[[], _T]) -> _T:
        """Say what is waited for, and wait for it."""
        self.progress(what, self.done, self.total)
        self.done += 1
        return result()


def _score(trial: _Trial, split: int, predictor: int, fold: int) -> Scored:
    return trial.pools[split].score(trial.predictors[predictor], fold)


def _measure(
    trial: _Trial, split: int, chosen: tuple[BoolArray, BoolArray], resamples: Resamples, one: Scored
) -> Measures:
    """Measure one predictor in the frame of its split, which is made once per process."""
    pool, (covered, beside_covered) = trial.pools[split], chosen
    if split not in trial.frames:
        trial.frames.clear()
        tried = pool.cases.select(covered)
        trial.frames[split] = Frame(tried, pool.block[covered], resamples, trial.horizon, trial.budgets)
    scores = select(one.scores, pool.cases, covered)
    if one.background is None:
        return trial.frames[split].measure(scores)
    beside = select(one.background, pool.background, beside_covered)
    return trial.frames[split].measure(scores, beside, pool.background.select(beside_covered))


def _scored(trial: _Trial, number: int, work: _Work) -> list[Scored]:
    """Fit every predictor on every fold and score what it tries."""
    pool = trial.pools[number]
    folds = range(len(pool.split.folds))
    waiting = [
        [work.workers.submit(_score, number, place, fold) for fold in folds]
        for place in range(len(trial.predictors))
    ]
    found = []
    for predictor, results in zip(trial.predictors, waiting, strict=True):
        parts = [
            work.wait(f"{pool.split.name}, {fold.name}: {predictor.name}", result)
            for fold, result in zip(pool.split.folds, results, strict=True)
        ]
        found.append(pool.pooled(parts))
    return found


def _measured(
    trial: _Trial,
    number: int,
    work: _Work,
    *,
    reference: str,
    n_resamples: int,
    rng: np.random.Generator,
) -> SplitComparison:
    """Measure all predictors on the runs that every one of them covers."""
    pool, scored = trial.pools[number], _scored(trial, number, work)
    cases, background = pool.cases, pool.background
    covered = covered_by_all((one.scores for one in scored), len(cases))
    beside_covered = covered_by_all((one.background for one in scored if one.background), len(background))
    tried = cases.select(covered)
    if not len(tried):
        raise ScoresError("no run is covered by every predictor, so there is nothing to compare")
    resamples = Resamples.draw(len(tried.tasks), rng, n_resamples)
    waiting = [
        work.workers.submit(_measure, number, (covered, beside_covered), resamples, one) for one in scored
    ]
    results = {
        one.name: work.wait(f"{pool.split.name}: measuring {one.name}", result)
        for one, result in zip(scored, waiting, strict=True)
    }
    frame = Frame(tried, pool.block[covered], resamples, trial.horizon, trial.budgets)
    return SplitComparison(
        name=pool.split.name,
        kept_apart=pool.split.apart,
        folds=len(pool.split.folds),
        tasks=len(tried.tasks),
        violated=Rate(int(tried.violated.sum()), len(tried)),
        by_step=Rate(int(frame.with_steps.sum()), len(tried)),
        background=int(beside_covered.sum()),
        predictors=tuple(
            PredictorResult(
                name=one.name,
                probabilistic=one.scores.probabilistic,
                measures=results[one.name],
                differences=_differences(results, one.name, reference),
                fit_seconds=one.fit_seconds,
                score_seconds=one.score_seconds,
            )
            for one in scored
        ),
        unverified=tuple(one.name for one in scored if one.doubt is Doubt.UNKNOWN),
        in_sample=tuple(one.name for one in scored if one.doubt is Doubt.IN_SAMPLE),
        notes=_notes(pool, scored, covered, beside_covered, reference),
    )


def _differences(results: Mapping[str, Measures], name: str, reference: str) -> dict[str, Estimate]:
    if reference not in results or name == reference:
        return {}
    against = results[reference].figures()
    return {
        figure: value.minus(against[figure])
        for figure, value in results[name].figures().items()
        if figure in against
    }


def _notes(
    pool: Pool, scored: Sequence[Scored], covered: BoolArray, beside_covered: BoolArray, reference: str
) -> tuple[str, ...]:
    unknown = "was fitted elsewhere and does not say on which tasks: it may have seen those it is tried on."
    seen = "was fitted on tasks that it is tried on: what it remembers of them is no foresight."
    notes = [f"{one.name} {unknown}" for one in scored if one.doubt is Doubt.UNKNOWN]
    notes += [f"{one.name} {seen}" for one in scored if one.doubt is Doubt.IN_SAMPLE]
    if not covered.all():
        partial = ", ".join(one.name for one in scored if one.scores.covered is not None)
        runs = f"{int(covered.sum()):,} of {len(covered):,} runs"
        notes.append(f"All are compared on the {runs} that every predictor covers; {partial}: only part.")
    if not beside_covered.all():
        runs = f"{int(beside_covered.sum()):,} of {len(beside_covered):,} runs"
        notes.append(f"Of the background, {runs} are covered by every predictor.")
    if pool.without_fold:
        why = "every fold was fitted on their tasks"
        notes.append(f"{pool.without_fold:,} runs of the background are not tried: {why}.")
    if reference not in {one.name for one in scored}:
        notes.append(f"The reference, {reference}, is not among the predictors: no differences are given.")
    if not pool.split.tests_unseen_tasks:
        notes.append("Tasks stand on both sides of this split, so its figures flatter what remembers tasks.")
    return tuple(notes)


# -- in plain words ---------------------------------------------------------------------------------------


def _finding(split: SplitComparison, reference: str, horizon: int) -> str:
    figure, what, runs = (
        f"step.{horizon}.within_category",
        f"a violation within {horizon} steps",
        split.by_step.hits,
    )
    ranked = _ranked(split, figure)
    if not ranked:
        figure, what, runs = "run.within_category", "which runs end violated", split.by_step.total
        ranked = _ranked(split, figure)
    where = f"On {split.name} ({runs:,} runs)"
    if not ranked:
        return f"{where} nothing can be said: no category has runs of both outcomes."
    best, area = ranked[0]
    said = [
        f"{where}, {best} ranks {what} best within category.",
        f"Its area under the ROC curve, averaged over categories, is {area};",
        "knowing the category alone is worth 0.5.",
    ]
    by_name = dict(ranked)
    if best == reference:
        said.append(f"It is the reference itself: no predictor here does better than {reference}.")
    elif reference in by_name:
        said.append(f"That is {_against(area.minus(by_name[reference]), reference)}.")
    for name, other in [pair for pair in ranked[1:] if pair[0] != reference][:1]:
        said.append(f"It is {_against(area.minus(other), f'the next best, {name}')}.")
    if best in split.unverified:
        said.append("What it was fitted on is not known, so these tasks may not be new to it.")
    said.append(_caution(len(ranked)))
    return " ".join(said)


def _ranked(split: SplitComparison, figure: str) -> list[tuple[str, Estimate]]:
    """Return the predictors with a figure, highest first, of equals the one given first; none that is in-sample."""
    values = [
        (result.name, result.measures.figures()[figure])
        for result in split.predictors
        if result.name not in split.in_sample
    ]
    defined = [(name, value) for name, value in values if not isnan(value.value)]
    return sorted(defined, key=lambda pair: -pair[1].value)


def _against(difference: Estimate, name: str) -> str:
    if isnan(difference.interval()[0]):
        return f"{difference.value:.3f} above {name}, with no interval to tell how sure that is"
    sure = (
        "the interval excludes zero"
        if difference.excludes_zero
        else "the interval includes zero, so the two cannot be told apart on these runs"
    )
    return f"{difference} above {name}: {sure}"


def _caution(n: int) -> str:
    sentence = "Intervals are 95 %, over resampled tasks"
    if n > 2:  # noqa: PLR2004
        return f"{sentence}; they do not account for having picked the best of {n} on the same runs."
    return f"{sentence}."
