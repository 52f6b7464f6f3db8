"""Everything known about how well risk is foretold, gathered in one go: predictors, splits, the paper's own analyses.

What is gathered is data; `safetydrift.evaluation.evidence_words` says it in sentences, `evidence_figures` draws it,
`evidence_report` writes it down.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from safetydrift.evaluation.cases import CaseSet, cases_of
from safetydrift.evaluation.comparison import REFERENCE, background_of, compare
from safetydrift.evaluation.drawn import Drawn, drawn
from safetydrift.evaluation.metrics.resampling import RESAMPLES, SEED
from safetydrift.evaluation.predictors import PREDICTORS, Circumstances
from safetydrift.evaluation.rate import Rate
from safetydrift.evaluation.scores import HORIZONS
from safetydrift.evaluation.splits import (
    FOLDS,
    held_out_models,
    held_out_sources,
    held_out_suites,
    held_out_tasks,
    held_out_tasks_and_models,
    random_runs,
)
from safetydrift.markov.horizon import HorizonTable, horizon_table
from safetydrift.monitor.fitting import fit_chains
from safetydrift.monitor.model import AGGREGATE
from safetydrift.monitor.settings import Estimator, FitSettings, Granularity
from safetydrift.states.projection import project, projection
from safetydrift.states.trajectory import Notion
from safetydrift.study.analyses import run_analyses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from safetydrift.evaluation.comparison import Comparison
    from safetydrift.evaluation.scores import Predictor, Scores
    from safetydrift.evaluation.splits import Split
    from safetydrift.states.space import StateSpace
    from safetydrift.states.trajectory import Trajectory
    from safetydrift.study.analyses.analysis import Analysis

SPLITS: Mapping[str, Callable[[CaseSet, int, np.random.Generator], Split]] = {
    "tasks": lambda cases, folds, _rng: held_out_tasks(cases, folds),
    "models": lambda cases, folds, _rng: held_out_models(cases, folds),
    "tasks-and-models": lambda cases, folds, _rng: held_out_tasks_and_models(cases, folds),
    "suites": lambda cases, _folds, _rng: held_out_suites(cases),
    "sources": lambda cases, _folds, _rng: held_out_sources(cases),
    "random": lambda cases, _folds, rng: random_runs(cases, rng),
}
"""Ways to divide runs, by the words of the command line."""

DRAWN = (
    "foresight",
    "monitor",
    "logistic-hazard",
    "boosting",
    "coarse-published-by-category",
    "model-rate",
    REFERENCE,
)
"""Predictors whose curves are drawn, where they are among those compared; models and files of the user come first."""

MOST_DRAWN = 6


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """What one source brings.

    Parameters
    ----------
    runs
        All of them.
    violated
        Of those with a usable outcome.
    onset_known
        Of the violated ones, those whose violating call is known.
    """

    runs: int
    violated: Rate
    onset_known: Rate

    def as_dict(self) -> dict[str, object]:
        """Return the counts as plain data."""
        return {
            "runs": self.runs,
            "violated": self.violated.as_dict(),
            "onset_known": self.onset_known.as_dict(),
        }


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was found.

    Parameters
    ----------
    comparison
        Predictors under each split.
    sources
        What the runs are.
    left_out
        Runs without a usable outcome, by reason.
    analyses
        The paper's own analyses, by name; empty if none was asked for.
    chains
        Horizon tables of the coarse chain, by category; empty where nothing is drawn.
    departures
        Transitions observed from each state of the chain of all runs.
    drawn
        Curves of some predictors under the first split, by name.
    notion
        What counts as a violation.
    provenance
        Where it comes from.
    """

    comparison: Comparison
    sources: Mapping[str, SourceFacts]
    left_out: Mapping[str, int]
    analyses: Mapping[str, Analysis]
    chains: Mapping[str, HorizonTable] = field(repr=False)
    departures: tuple[int, ...] = field(repr=False)
    drawn: Mapping[str, Drawn] = field(repr=False)
    notion: Notion
    provenance: Mapping[str, object]

    def as_dict(self) -> dict[str, object]:
        """Return all of it as plain data, for scripts."""
        return {
            "notion": self.notion.value,
            "sources": {name: facts.as_dict() for name, facts in self.sources.items()},
            "left_out": dict(self.left_out),
            "comparison": self.comparison.as_dict(),
            "analyses": {name: analysis.as_dict() for name, analysis in self.analyses.items()},
            "drawn": {name: one.as_dict() for name, one in self.drawn.items()},
            "provenance": dict(self.provenance),
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be gathered.

    Parameters
    ----------
    splits
        Any of `SPLITS`, the first to be read first.
    folds
        How many parts a division by names has.
    analyses
        Names of analyses of the paper.
    resamples
        How often tasks are drawn again for intervals.
    seed
        Of everything drawn at random.
    with_curves
        Whether what only figures need is gathered.
    processes
        How many processes share the work.
    """

    splits: tuple[str, ...] = ("tasks",)
    folds: int = FOLDS
    analyses: tuple[str, ...] = ()
    resamples: int = RESAMPLES
    seed: int = SEED
    with_curves: bool = True
    processes: int = 1


def gather_evidence(
    trajectories: Sequence[Trajectory],
    given: Circumstances,
    predictors: Callable[[CaseSet], Sequence[Predictor]],
    plan: Plan | None = None,
    *,
    provenance: Mapping[str, object] | None = None,
    progress: Callable[[str, int, int], None] = lambda _what, _done, _total: None,
) -> Evidence:
    """Compare predictors, run the paper's analyses, and keep what figures need.

    Parameters
    ----------
    trajectories
        Runs labelled in the space of ``given``.
    given
        The spaces, the catalogue, and what counts as a violation.
    predictors
        Makes the predictors, given all runs with a usable outcome.
    plan
        What is to be gathered.
    provenance
        What the runs are; how the evidence was gathered is added.
    progress
        Called with what is being done, how many pieces of work are done, and how many there are.

    Raises
    ------
    ScoresError
        If no run has a usable outcome, two predictors share a name, or scores do not fit.
    SplitError
        If there are too few tasks, models or sources to hold any out.
    """
    plan = plan or Plan()
    cases, left_out = cases_of(trajectories, given.space, given.notion, given.unknown_onset)
    background = background_of(trajectories) if given.notion is Notion.LABEL else CaseSet(())
    keep = _Curves(plan)
    compared = compare(
        predictors(cases),
        [SPLITS[name](cases, plan.folds, np.random.default_rng(plan.seed)) for name in plan.splits],
        n_resamples=plan.resamples,
        rng=np.random.default_rng(plan.seed),
        background=background if len(background) else None,
        processes=plan.processes,
        on_scores=keep,
        progress=progress,
    )
    settings = FitSettings(notion=given.notion, unknown_onset=given.unknown_onset)
    published = (
        _in_space(trajectories, given.space, given.published) if plan.analyses or plan.with_curves else []
    )
    analyses = {}
    if plan.analyses:
        analyses = run_analyses(
            plan.analyses, published, given.published, settings, plan.seed, on_progress=progress
        )
    chains, departures = _chains(published, given, settings) if plan.with_curves else ({}, ())
    return Evidence(
        comparison=compared,
        sources=_facts(trajectories, cases),
        left_out=left_out,
        analyses=analyses,
        chains=chains,
        departures=departures,
        drawn=keep.found,
        notion=given.notion,
        provenance={
            **(provenance or {}),
            "space": f"{given.space.name} ({given.space.identity})",
            "space_of_the_paper's_analyses": given.published.name,
            "catalogue": f"{given.catalogue.name} {given.catalogue.version} ({given.catalogue.identity})",
            "resamples": plan.resamples,
            "seed": plan.seed,
            "folds": plan.folds,
        },
    )


class _Curves:
    """Keeps what is drawn of a few predictors, under the first split."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.found: dict[str, Drawn] = {}
        self._first = ""

    def __call__(self, split: str, cases: CaseSet, scores: Sequence[Scores]) -> None:
        self._first = self._first or split
        if not self.plan.with_curves or split != self._first:
            return
        by_name = {one.name: one for one in scores}
        for name in drawn_names(list(by_name)):
            rng = np.random.default_rng(self.plan.seed)
            self.found[name] = drawn(cases, by_name[name], HORIZONS[-1], rng)


def drawn_names(names: Sequence[str]) -> list[str]:
    """Return which predictors are drawn: those of the user, then the ones that say most about the others."""
    own = [name for name in names if name not in PREDICTORS]
    return [*own, *(name for name in DRAWN if name in names)][:MOST_DRAWN]


def _facts(trajectories: Iterable[Trajectory], cases: CaseSet) -> dict[str, SourceFacts]:
    runs = Counter(run.source for run in trajectories)
    usable = Counter(case.run.source for case in cases.cases)
    violated = Counter(case.run.source for case in cases.cases if case.violated)
    known = Counter(case.run.source for case in cases.cases if case.violated and case.onset_known)
    return {
        name: SourceFacts(count, Rate(violated[name], usable[name]), Rate(known[name], violated[name]))
        for name, count in sorted(runs.items())
    }


def _in_space(
    trajectories: Sequence[Trajectory], recorded: StateSpace, space: StateSpace
) -> Sequence[Trajectory]:
    if recorded.identity == space.identity:
        return trajectories
    effect_of = projection(recorded, space)
    return [project(run, effect_of, space) for run in trajectories]


def _chains(
    trajectories: Sequence[Trajectory], given: Circumstances, settings: FitSettings
) -> tuple[dict[str, HorizonTable], tuple[int, ...]]:
    """Fit the published construction on risk levels; for drawing beside what was printed."""
    coarse = FitSettings(
        notion=settings.notion,
        unknown_onset=settings.unknown_onset,
        granularity=Granularity.COARSE,
        estimator=Estimator.PUBLISHED,
    )
    fitted = fit_chains(trajectories, given.published, coarse)
    tables = {category: horizon_table(chain, 10) for category, chain in fitted.chains.items()}
    return tables, tuple(fitted.evidence[AGGREGATE].counts.departures.tolist())
