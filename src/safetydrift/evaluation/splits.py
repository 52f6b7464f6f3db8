"""Ways to divide runs into those a predictor is fitted on and those it is tried on.

Runs of one task are alike, so a fair division never has a task on both sides. A `Split` says what it keeps apart and
checks it when it is made: a leak is an error, never a better figure.

Folds are decided by a digest of names, not by the data: adding runs moves no other run to another side.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np

from safetydrift.errors import LeakageError, SplitError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from safetydrift.evaluation.cases import Case, CaseSet
    from safetydrift.markov._arrays import BoolArray, IntArray

FOLDS = 5
"""How many folds a division by names has unless told otherwise."""

RANDOM_SEED = 20260327
"""Seed of the random division, where the caller brings no generator."""

TESTED_SHARE = 0.2
"""Share of the runs that the random division tries, as published."""

_KEPT_APART: dict[str, Callable[[Case], Hashable]] = {
    "task": lambda case: case.task,
    "model": lambda case: case.run.model,
    "source": lambda case: case.run.source,
    "suite": lambda case: (case.run.source, case.run.category),
}


@dataclass(frozen=True, slots=True)
class Fold:
    """One division.

    Parameters
    ----------
    name
        Which one it is, for people.
    train, test
        The runs to fit on, and the runs to try. A run may be in neither.
    """

    name: str
    train: CaseSet
    test: CaseSet


@dataclass(frozen=True, slots=True)
class Split:
    """A way to divide runs, with all its folds.

    Parameters
    ----------
    name
        As tables name it.
    folds
        At least one; no run is tried in two of them.
    apart
        What is never on both sides of a fold: any of ``"task"``, ``"model"``, ``"source"``, ``"suite"``.

    Raises
    ------
    LeakageError
        If something that is to be kept apart is on both sides of a fold.
    SplitError
        If there is no fold, or one with nothing to fit on or nothing to try.
    """

    name: str
    folds: tuple[Fold, ...]
    apart: tuple[str, ...] = ("task",)

    def __post_init__(self) -> None:
        if not self.folds or not all(len(fold.train) and len(fold.test) for fold in self.folds):
            raise SplitError(f"{self.name}: there are too few runs to fit on some and try others")
        for fold in self.folds:
            for what in self.apart:
                _require_apart(what, fold)

    @property
    def tests_unseen_tasks(self) -> bool:
        """Whether no task that is tried was fitted on."""
        return "task" in self.apart

    def first(self) -> Split:
        """Return the split with its first fold alone, for what takes long."""
        return replace(self, folds=self.folds[:1])


def require_disjoint(
    train_tasks: Iterable[Sequence[str]], test: CaseSet, who: str = "the training runs"
) -> None:
    """Check that no task of ``test`` is among those fitted on.

    Parameters
    ----------
    train_tasks
        Tasks as (source, category, task), for example from the provenance of a model file.
    test
        The runs to be tried.
    who
        What was fitted on these tasks, for the message.

    Raises
    ------
    LeakageError
        If one is.
    """
    shared = sorted(frozenset(tuple(task) for task in train_tasks) & test.tasks)
    if shared:
        raise LeakageError("task", tuple(shared), who)


def held_out_tasks(cases: CaseSet, n_folds: int = FOLDS) -> Split:
    """Hold out whole tasks, by a digest of their names: one in ``n_folds`` at a time.

    Raises
    ------
    SplitError
        If there are too few tasks to hold any out, or fewer than two folds are asked for.
    """
    return _by_fold("held-out tasks", cases, _task_folds(cases, n_folds), ("task",))


def held_out_models(cases: CaseSet, n_folds: int = FOLDS) -> Split:
    """Hold out whole families of models, by a digest of their names; tasks stand on both sides.

    Raises
    ------
    SplitError
        If there are too few models to hold any out, or fewer than two folds are asked for.
    """
    name = "held-out models (tasks on both sides)"
    return _by_fold(name, cases, _model_folds(cases, n_folds), ("model",))


def held_out_tasks_and_models(cases: CaseSet, n_folds: int = FOLDS) -> Split:
    """Hold out tasks and models at once: tried are held-out tasks run by held-out models, fitted on is what is neither.

    The folds of both are paired off, and one run in about ``n_folds`` is tried.

    Raises
    ------
    SplitError
        If there are too few tasks or models to hold any out, or fewer than two folds are asked for.
    """
    tasks, models = _task_folds(cases, n_folds), _model_folds(cases, n_folds)
    chosen = [
        (
            f"tasks {fold + 1}, models {fold + 1}",
            (tasks != fold) & (models != fold),
            (tasks == fold) & (models == fold),
        )
        for fold in range(n_folds)
    ]
    return _split("held-out tasks and models", cases, chosen, ("task", "model"))


def held_out_sources(cases: CaseSet) -> Split:
    """Hold out one whole source at a time.

    Raises
    ------
    SplitError
        If the runs have a single source.
    """
    source = np.array([case.run.source for case in cases.cases])
    return _one_by_one("held-out source", cases, source, ("task", "source"))


def held_out_suites(cases: CaseSet) -> Split:
    """Hold out one whole category of one source at a time, with its tasks and tools.

    Raises
    ------
    SplitError
        If the runs have a single one.
    """
    suite = np.array([f"{case.run.source}/{case.run.category}" for case in cases.cases])
    return _one_by_one("held-out suite", cases, suite, ("task", "suite"))


def random_runs(cases: CaseSet, rng: np.random.Generator | None = None, share: float = TESTED_SHARE) -> Split:
    """Divide runs at random, stratified by category and violation, as the published study did.

    Parameters
    ----------
    rng
        Where the division comes from; seeded with `RANDOM_SEED` when left out.
    share
        Share of the runs of each category and outcome that is tried, rounded down and up in turn so that the shares
        add up.

    Raises
    ------
    SplitError
        If there are too few runs.
    """
    rng = np.random.default_rng(RANDOM_SEED) if rng is None else rng
    tested = np.zeros(len(cases), dtype=np.bool_)
    stratum = 2 * cases.category + cases.violated
    shuffled = rng.permutation(len(cases))
    by_stratum = shuffled[np.argsort(stratum[shuffled], kind="stable")]
    # Every n-th place along the strata: each stratum gives its share, to within one run, and so do all together.
    tested[by_stratum] = np.diff(np.floor(np.arange(len(cases) + 1) * share)) > 0
    chosen = [("random", ~tested, tested)]
    return _split("random runs (as published; tasks on both sides)", cases, chosen, ())


SPLITS: Mapping[str, Callable[[CaseSet, int, np.random.Generator], Split]] = {
    "tasks": lambda cases, folds, _rng: held_out_tasks(cases, folds),
    "models": lambda cases, folds, _rng: held_out_models(cases, folds),
    "tasks-and-models": lambda cases, folds, _rng: held_out_tasks_and_models(cases, folds),
    "suites": lambda cases, _folds, _rng: held_out_suites(cases),
    "sources": lambda cases, _folds, _rng: held_out_sources(cases),
    "random": lambda cases, _folds, rng: random_runs(cases, rng),
}
"""Ways to divide runs, by the words of the command line."""


def model_families(names: Collection[str]) -> dict[str, str]:
    """Return the family of each model: the shortest listed name that its own name continues after a hyphen.

    Pipelines of one model and several defences share their model, and so no split tells them apart. Names are compared
    without regard to case and to the maker's name before an underscore; where in doubt, models count as related.

    Examples
    --------
    >>> families = model_families(["gpt-4o", "GPT-4o-tool_filter", "maker_gpt-4o-mini", "gpt-5"])
    >>> families["GPT-4o-tool_filter"], families["maker_gpt-4o-mini"], families["gpt-5"]
    ('gpt-4o', 'gpt-4o', 'gpt-5')
    """
    plain = {name: _without_maker(name.lower()) for name in names}
    bases = sorted(set(plain.values()), key=lambda base: (len(base), base))
    return {
        name: next(base for base in bases if own == base or own.startswith(base + "-"))
        for name, own in plain.items()
    }


def _without_maker(name: str) -> str:
    """Strip ``maker_`` from the front: a maker's name has no digit, a model's before its first underscore has."""
    maker, underscore, model = name.partition("_")
    return model if underscore and not any(map(str.isdigit, maker)) else name


def _task_folds(cases: CaseSet, n_folds: int) -> IntArray:
    return _folds([case.run.task for case in cases.cases], n_folds)


def _model_folds(cases: CaseSet, n_folds: int) -> IntArray:
    names = [case.run.model for case in cases.cases]
    family = model_families(set(names))
    return _folds([family[name] for name in names], n_folds)


def _folds(names: Sequence[str], n_folds: int) -> IntArray:
    if n_folds < 2:  # noqa: PLR2004
        raise SplitError(f"runs cannot be divided into {n_folds} folds; ask for 2 or more")
    fold = {name: int.from_bytes(sha256(name.encode()).digest()[:4]) % n_folds for name in set(names)}
    return np.array([fold[name] for name in names], dtype=np.int64)


def _by_fold(name: str, cases: CaseSet, fold: IntArray, apart: tuple[str, ...]) -> Split:
    chosen = [(f"fold {number + 1}", fold != number, fold == number) for number in np.unique(fold).tolist()]
    return _split(name, cases, chosen, apart)


def _one_by_one(name: str, cases: CaseSet, part: NDArray[np.str_], apart: tuple[str, ...]) -> Split:
    return _split(name, cases, [(one, part != one, part == one) for one in np.unique(part).tolist()], apart)


def _split(
    name: str, cases: CaseSet, chosen: Sequence[tuple[str, BoolArray, BoolArray]], apart: tuple[str, ...]
) -> Split:
    """Make the folds that have something on both sides."""
    folds = (
        Fold(label, cases.select(train), cases.select(test))
        for label, train, test in chosen
        if train.any() and test.any()
    )
    return Split(name, tuple(folds), apart)


def _require_apart(what: str, fold: Fold) -> None:
    key = _KEPT_APART[what]
    shared = {key(case) for case in fold.train.cases} & {key(case) for case in fold.test.cases}
    if shared:
        raise LeakageError(what, tuple(sorted(shared, key=repr)), f"{fold.name}: the training runs")
