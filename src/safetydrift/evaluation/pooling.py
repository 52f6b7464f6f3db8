"""Scores under a split: fold after fold, checked, and put one after another."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from safetydrift.errors import ScoresError
from safetydrift.evaluation.cases import Case, CaseSet
from safetydrift.evaluation.scores import HORIZONS, Fixed, Scores
from safetydrift.evaluation.splits import require_disjoint

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from safetydrift.evaluation.scores import FittedPredictor, Predictor
    from safetydrift.evaluation.splits import Fold, Split
    from safetydrift.markov._arrays import BoolArray

    _T = TypeVar("_T", bound=np.generic)


class Doubt(Enum):
    """Whether a predictor is tried on tasks that are new to it, as far as is known; the later the worse."""

    NONE = 0
    UNKNOWN = 1
    IN_SAMPLE = 2


@dataclass(frozen=True, slots=True)
class Scored:
    """What a predictor said of the runs tried, and how that came about.

    Parameters
    ----------
    name
        The predictor.
    scores, background
        Of the runs tried, and of the further runs in which nobody attacked; None without any.
    fit_seconds, score_seconds
        How long it took.
    doubt
        What may be wrong with it.
    """

    name: str
    scores: Scores
    background: Scores | None
    fit_seconds: float
    score_seconds: float
    doubt: Doubt


class Pool:
    """The runs tried under a split, fold after fold, and the background each fold may be tried on.

    Attributes
    ----------
    cases, background
        The runs, and those of the background.
    block : (n,) array of int
        The fold of each run tried.
    without_fold
        Runs of the background that no fold may be tried on.
    """

    def __init__(self, split: Split, background: CaseSet | None) -> None:
        self.split = split
        self.cases = CaseSet(case for fold in split.folds for case in fold.test.cases)
        self.block = np.repeat(np.arange(len(split.folds)), [len(fold.test) for fold in split.folds])
        self.beside = self._background(background)
        self.background = CaseSet(case for part in self.beside for case in part.cases)
        self.without_fold = 0 if background is None else len(background) - len(self.background)

    def _background(self, background: CaseSet | None) -> list[CaseSet]:
        """Give each run of the background to the first fold that was not fitted on its task."""
        cases = () if background is None else background.cases
        parts: list[list[Case]] = [[] for _ in self.split.folds]
        apart = self.split.tests_unseen_tasks
        known = [fold.train.tasks if apart else frozenset() for fold in self.split.folds]
        for case in cases:
            fold = next((at for at, tasks in enumerate(known) if case.task not in tasks), None)
            if fold is not None:
                parts[fold].append(case)
        return [CaseSet(part) for part in parts]

    def score(self, predictor: Predictor, number: int) -> Scored:
        """Fit on one fold and score what it tries."""
        fold, beside = self.split.folds[number], self.beside[number]
        start = perf_counter()
        fitted = predictor.fit(fold.train)
        fitted_at = perf_counter()
        doubt = self._doubt(predictor, fitted, fold)
        scores = checked(fitted.score(fold.test), fold.test, predictor.name)
        scored_at = perf_counter()
        return Scored(
            predictor.name,
            scores,
            checked(fitted.score(beside), beside, predictor.name),
            fitted_at - start,
            scored_at - fitted_at,
            doubt,
        )

    def pooled(self, parts: Sequence[Scored]) -> Scored:
        """Put the scores of all folds one after another."""
        name = parts[0].name
        beside = [part.background for part in parts if part.background is not None]
        return Scored(
            name,
            pooled(name, [part.scores for part in parts]),
            pooled(name, beside) if len(self.background) else None,
            sum(part.fit_seconds for part in parts),
            sum(part.score_seconds for part in parts),
            max((part.doubt for part in parts), key=lambda doubt: doubt.value),
        )

    def _doubt(self, predictor: Predictor, fitted: FittedPredictor, fold: Fold) -> Doubt:
        """Check that a predictor fitted elsewhere has seen no task tried, as far as it says."""
        if getattr(fitted, "in_sample", False):
            return Doubt.IN_SAMPLE
        trained_on = getattr(fitted, "trained_on", None)
        if trained_on is None:
            return Doubt.UNKNOWN if isinstance(predictor, Fixed) else Doubt.NONE
        if self.split.tests_unseen_tasks:
            require_disjoint(trained_on, fold.test, predictor.name)
        return Doubt.NONE


def checked(scores: Scores, cases: CaseSet, name: str) -> Scores:
    """Return scores that fit the cases.

    Raises
    ------
    ScoresError
        If they do not.
    """
    points, proposals = int(cases.first_point[-1]), int(cases.first_proposal[-1])
    expected = {
        "within": (points, len(HORIZONS)),
        "alarm": (points,),
        "pending": (proposals,),
        "pending_alarm": (proposals,),
        "covered": (len(cases),),
    }
    for field, shape in expected.items():
        values = getattr(scores, field)
        if values is None:
            continue
        if values.shape != shape:
            raise ScoresError(f"{name}: {field} has shape {values.shape} for runs that need {shape}")
        if np.isnan(values).any():
            raise ScoresError(f"{name}: {field} is not a number somewhere; where nothing is known, say 1")
    if scores.probabilistic and points and (scores.within.min() < 0 or scores.within.max() > 1):
        raise ScoresError(f"{name}: probabilities lie outside 0 and 1; say that they are none")
    return scores


def pooled(name: str, parts: Sequence[Scores]) -> Scores:
    """Put scores one after another; what any part lacks, the whole lacks.

    Raises
    ------
    ScoresError
        If some parts say which runs they cover and others do not.
    """
    covering = [part.covered is not None for part in parts]
    if any(covering) and not all(covering):
        raise ScoresError(f"{name}: some folds say which runs they cover and others do not")
    return Scores(
        name=name,
        within=np.concatenate([part.within for part in parts]),
        pending=_joined([part.pending for part in parts]),
        alarm=_joined([part.alarm for part in parts]),
        pending_alarm=_joined([part.pending_alarm for part in parts]),
        probabilistic=all(part.probabilistic for part in parts),
        covered=_joined([part.covered for part in parts]),
    )


def _joined(arrays: Sequence[NDArray[_T] | None]) -> NDArray[_T] | None:
    there = [array for array in arrays if array is not None]
    return np.concatenate(there) if len(there) == len(arrays) else None


def select(scores: Scores, cases: CaseSet, chosen: BoolArray) -> Scores:
    """Return the scores of some of the cases."""
    points, proposals = chosen[cases.run_of_point], chosen[cases.run_of_proposal]
    return replace(
        scores,
        within=scores.within[points],
        pending=None if scores.pending is None else scores.pending[proposals],
        alarm=None if scores.alarm is None else scores.alarm[points],
        pending_alarm=None if scores.pending_alarm is None else scores.pending_alarm[proposals],
        covered=None,
    )


def covered_by_all(scores: Iterable[Scores], n: int) -> BoolArray:
    """Return which of the cases everybody says something about, shape (n,)."""
    covered = np.ones(n, dtype=np.bool_)
    for one in scores:
        if one.covered is not None:
            covered &= one.covered
    return covered
