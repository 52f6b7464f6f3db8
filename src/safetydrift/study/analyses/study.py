"""The runs under study, flat in arrays: states, what followed each, and folds that keep tasks together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from safetydrift.errors import ChainError
from safetydrift.evaluation.cases import CaseSet, cases_of
from safetydrift.evaluation.splits import FOLDS, held_out_tasks
from safetydrift.monitor.settings import FitSettings
from safetydrift.states.trajectory import Notion
from safetydrift.trace import Ending

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TypeAlias

    from safetydrift.evaluation.splits import Split
    from safetydrift.markov._arrays import BoolArray, IntArray
    from safetydrift.states.space import StateSpace
    from safetydrift.states.trajectory import Trajectory

    Part: TypeAlias = tuple[BoolArray, BoolArray]

DEFAULT_SEED = 20260327
"""Seed of everything drawn at random, unless another is given."""

UNKNOWN = -1
"""What followed the last state of a run that was cut off."""


@dataclass(frozen=True)
class Study:
    """Runs with a usable outcome, and how they are to be studied.

    Parameters
    ----------
    cases
        The runs.
    space
        The state space their states are numbered in.
    settings
        Notion of violation, estimator and granularity of the chains.
    seed
        Every analysis draws from a generator of its own with this seed, so that none depends on the others.
    left_out
        Runs that cannot be used, by reason.
    """

    cases: CaseSet
    space: StateSpace
    settings: FitSettings
    seed: int
    left_out: Mapping[str, int]

    @classmethod
    def of(
        cls,
        trajectories: Iterable[Trajectory],
        space: StateSpace,
        settings: FitSettings | None = None,
        seed: int = DEFAULT_SEED,
    ) -> Study:
        """Gather the runs that can be used under the settings' notion of violation.

        Raises
        ------
        ChainError
            If there are none.
        """
        settings = settings or FitSettings()
        cases, left_out = cases_of(trajectories, space, settings.notion, settings.unknown_onset)
        if not len(cases):
            reasons = "; ".join(f"{count} {reason}" for reason, count in left_out.items())
            raise ChainError(f"no run can be studied: {reasons or 'no runs at all'}")
        return cls(cases, space, settings, seed, left_out)

    def generator(self) -> np.random.Generator:
        """Return a fresh generator with the seed of the study."""
        return np.random.default_rng(self.seed)

    # -- per point: a moment of a run before anything was violated --------------------------------------

    @cached_property
    def state(self) -> IntArray:
        """State at each point, shape (points,)."""
        states = chain.from_iterable(case.run.states[: case.n_points] for case in self.cases.cases)
        return np.fromiter(states, dtype=np.int64, count=int(self.cases.first_point[-1]))

    @cached_property
    def level(self) -> IntArray:
        """Risk level at each point, shape (points,)."""
        return np.array(self.space.risk_of, dtype=np.int64)[self.state]

    @cached_property
    def category(self) -> IntArray:
        """Number of the category of each point's run, shape (points,)."""
        return self.cases.category[self.cases.run_of_point]

    def following(self, row: IntArray, n_rows: int, *, completion: bool) -> IntArray:
        """Return what came after each point, shape (points,).

        Parameters
        ----------
        row : (points,) array
            How the points are to be told apart: numbers from 0 to ``n_rows - 1``.
        n_rows
            How many there are.
        completion
            Whether finishing is something that follows; without it a finished run is taken as cut off, which is the
            published construction.

        Returns
        -------
        (points,) array
            The row of the next point; ``n_rows`` for the violation, ``n_rows + 1`` for completion, `UNKNOWN` where the
            run was cut off.
        """
        after = np.empty_like(row)
        after[:-1] = row[1:]
        finished = n_rows + 1 if completion else UNKNOWN
        after[self.cases.first_point[1:] - 1] = np.where(
            self.cases.violated, n_rows, np.where(self._completed, finished, UNKNOWN)
        )
        return after

    @cached_property
    def _completed(self) -> BoolArray:
        return np.array([case.run.ending is Ending.COMPLETED for case in self.cases.cases], dtype=np.bool_)

    # -- names ------------------------------------------------------------------------------------------

    @cached_property
    def categories(self) -> tuple[str, ...]:
        """Name of each category by its number, with its source where there are several."""
        pairs = list(dict.fromkeys(case.category for case in self.cases.cases))
        several = len({source for source, _ in pairs}) > 1
        return tuple(_category_name(source, name) if several else name for source, name in pairs)

    @cached_property
    def level_names(self) -> tuple[str, ...]:
        """Name of each risk level; the one the rules call violated is marked, for under a label it is no end."""
        return tuple(
            f"{risk} (rules)" if number == self.space.violated_risk else risk
            for number, risk in enumerate(self.space.risks)
        )

    @property
    def note(self) -> str:
        """Which runs these are, in a sentence."""
        by = "the rules" if self.settings.notion is Notion.RULES else "the sources' own labels"
        left_out = sum(self.left_out.values())
        aside = f"; {left_out:,} runs without a usable outcome are left out" if left_out else ""
        return (
            f"{len(self.cases):,} runs of {len(self.cases.tasks):,} tasks, space {self.space.name!r}, "
            f"violation by {by}{aside}."
        )

    # -- splits -----------------------------------------------------------------------------------------

    def parts(self, split: Split) -> list[Part]:
        """Return the folds of a split as pairs of (runs,) arrays of bool: runs to learn from, runs to try on."""
        return [(self._chosen(fold.train), self._chosen(fold.test)) for fold in split.folds]

    def held_out(self) -> list[Part]:
        """Return folds that hold out whole tasks; the same tasks together whatever else is in the study.

        Raises
        ------
        SplitError
            If there are too few tasks to hold any out.
        """
        return self.parts(held_out_tasks(self.cases))

    def draw_held_out(self, generator: np.random.Generator, n_folds: int = FOLDS) -> BoolArray:
        """Draw one task in ``n_folds``, of each category alike; return which runs are of these, shape (runs,)."""
        names = [case.run.task for case in self.cases.cases]
        first, task = np.unique(names, return_index=True, return_inverse=True)[1:]
        shuffled = generator.permutation(len(first))
        by_category = shuffled[np.argsort(self.cases.category[first][shuffled], kind="stable")]
        drawn = np.zeros(len(first), dtype=np.bool_)
        drawn[by_category[generator.integers(n_folds) :: n_folds]] = True
        return np.asarray(drawn[task])

    def _chosen(self, cases: CaseSet) -> BoolArray:
        chosen = {id(case) for case in cases.cases}
        return np.array([id(case) in chosen for case in self.cases.cases], dtype=np.bool_)


HELD_OUT_NOTE = (
    f"Tasks are dealt into {FOLDS} folds; each is tried on by what was fitted on the others, so that no task is on "
    "both sides."
)


def _category_name(source: str, name: str) -> str:
    return name if name == source or not source else f"{source}/{name}"
