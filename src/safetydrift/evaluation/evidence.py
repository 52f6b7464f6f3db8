"""How well risk is foretold, gathered in one go: predictors under splits, and what the runs are."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from safetydrift.evaluation.cases import CaseSet, cases_of
from safetydrift.evaluation.comparison import background_of, compare
from safetydrift.evaluation.metrics.resampling import RESAMPLES, SEED
from safetydrift.evaluation.rate import Rate
from safetydrift.evaluation.splits import FOLDS, SPLITS
from safetydrift.states.trajectory import Notion

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from safetydrift.evaluation.comparison import Comparison
    from safetydrift.evaluation.predictors import Circumstances
    from safetydrift.evaluation.scores import Predictor
    from safetydrift.states.trajectory import Trajectory


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


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was found.

    Parameters
    ----------
    notion
        What counts as a violation.
    sources
        What the runs are.
    left_out
        Runs without a usable outcome, by reason.
    comparison
        Predictors under each split.
    provenance
        Where it comes from.
    """

    notion: Notion
    sources: Mapping[str, SourceFacts]
    left_out: Mapping[str, int]
    comparison: Comparison
    provenance: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be gathered.

    Parameters
    ----------
    splits
        Any of `SPLITS`, the first to be read first.
    folds
        How many parts a division by names has.
    first_fold
        Whether only the first fold of each is tried.
    resamples
        How often tasks are drawn again for intervals.
    seed
        Of everything drawn at random.
    processes
        How many processes share the work.
    """

    splits: tuple[str, ...] = ("tasks",)
    folds: int = FOLDS
    first_fold: bool = False
    resamples: int = RESAMPLES
    seed: int = SEED
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
    """Compare predictors on runs.

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
    splits = [SPLITS[name](cases, plan.folds, np.random.default_rng(plan.seed)) for name in plan.splits]
    compared = compare(
        predictors(cases),
        [split.first() for split in splits] if plan.first_fold else splits,
        n_resamples=plan.resamples,
        rng=np.random.default_rng(plan.seed),
        background=background if len(background) else None,
        processes=plan.processes,
        progress=progress,
    )
    how = {
        "space": f"{given.space.name} ({given.space.identity})",
        "catalogue": f"{given.catalogue.name} {given.catalogue.version} ({given.catalogue.identity})",
        "resamples": plan.resamples,
        "seed": plan.seed,
        "folds": plan.folds,
    }
    facts = facts_of(trajectories, cases)
    return Evidence(given.notion, facts, left_out, compared, {**(provenance or {}), **how})


def facts_of(trajectories: Iterable[Trajectory], cases: CaseSet) -> dict[str, SourceFacts]:
    """Return what each source brings."""
    runs = Counter(run.source for run in trajectories)
    usable = Counter(case.run.source for case in cases.cases)
    violated = Counter(case.run.source for case in cases.cases if case.violated)
    known = Counter(case.run.source for case in cases.cases if case.violated and case.onset_known)
    return {
        name: SourceFacts(count, Rate(violated[name], usable[name]), Rate(known[name], violated[name]))
        for name, count in sorted(runs.items())
    }
