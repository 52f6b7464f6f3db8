"""Runs to be judged on: the points at which a prediction is asked for, and what came of each.

A *point* is a moment of a run: k calls made, and call k + 1 not yet known. A violated run has one point per call up to
and excluding the violating one (k = 0 .. onset - 1); every other run has one before each call and one at its end
(k = 0 .. n_steps), so that reading the bait and stopping counts. A *proposal* is a call about to be made: calls 1 to
onset of a violated run, all calls of every other.

Everything lies flat in arrays, run after run, so that a metric is arithmetic and never a walk.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from safetydrift.states.trajectory import Notion, UnknownOnset, observe

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from safetydrift.markov._arrays import BoolArray, IntArray
    from safetydrift.states.space import StateSpace
    from safetydrift.states.trajectory import Trajectory

NEVER = np.iinfo(np.int64).max
"""Calls until the violation in a run that has none."""


@dataclass(frozen=True, slots=True)
class Case:
    """A run with a usable outcome.

    Parameters
    ----------
    run
        The run.
    onset
        The violating call, counted from 1; None in a run without a violation.
    onset_known
        Whether the source names that call; where it does not, the violation stands at the last call.
    """

    run: Trajectory
    onset: int | None
    onset_known: bool = True

    @property
    def violated(self) -> bool:
        """Whether the run ends violated."""
        return self.onset is not None

    @property
    def task(self) -> tuple[str, str, str]:
        """What was asked: source, category and task. Runs of one task are alike and are never told apart by a split."""
        return self.run.source, self.run.category, self.run.task

    @property
    def category(self) -> tuple[str, str]:
        """Source and category: two sources may use one name for different things."""
        return self.run.source, self.run.category

    @property
    def exposed(self) -> bool:
        """Whether injected text reached the model."""
        return self.run.label.exposure is not None

    @property
    def benign(self) -> bool:
        """Whether nobody attacked and nothing was violated: the background on which a guard has to stay silent."""
        return not self.run.label.goal and not self.run.label.attack and not self.violated

    @property
    def n_points(self) -> int:
        """At how many moments a prediction is asked for."""
        return self.run.n_steps + 1 if self.onset is None else self.onset

    @property
    def n_proposals(self) -> int:
        """How many calls are judged before they are made."""
        return self.run.n_steps if self.onset is None else self.onset


class CaseSet:
    """Cases side by side, with their points and proposals in flat arrays.

    Parameters
    ----------
    cases
        The runs.

    Attributes
    ----------
    first_point, first_proposal : (n + 1,) array of int
        Where the points and proposals of each run begin; the last entry is their number.
    """

    def __init__(self, cases: Iterable[Case]) -> None:
        self.cases: tuple[Case, ...] = tuple(cases)
        self.first_point = _offsets([case.n_points for case in self.cases])
        self.first_proposal = _offsets([case.n_proposals for case in self.cases])

    def __len__(self) -> int:
        return len(self.cases)

    def select(self, chosen: Sequence[bool] | BoolArray) -> CaseSet:
        """Return the cases for which ``chosen``, shape (n,), is true."""
        return CaseSet(case for case, keep in zip(self.cases, chosen, strict=True) if keep)

    # -- per run ----------------------------------------------------------------------------------------

    @cached_property
    def violated(self) -> BoolArray:
        """Whether each run ends violated, shape (n,)."""
        return np.array([case.violated for case in self.cases], dtype=np.bool_)

    @cached_property
    def exposed(self) -> BoolArray:
        """Whether injected text reached the model in each run, shape (n,)."""
        return np.array([case.exposed for case in self.cases], dtype=np.bool_)

    @cached_property
    def benign(self) -> BoolArray:
        """Whether each run is part of the background, shape (n,)."""
        return np.array([case.benign for case in self.cases], dtype=np.bool_)

    @cached_property
    def task(self) -> IntArray:
        """Number of each run's task, shape (n,); equal numbers are equal tasks."""
        return _codes([case.task for case in self.cases])

    @cached_property
    def category(self) -> IntArray:
        """Number of each run's category, shape (n,)."""
        return _codes([case.category for case in self.cases])

    @cached_property
    def tasks(self) -> frozenset[tuple[str, str, str]]:
        """The tasks in it."""
        return frozenset(case.task for case in self.cases)

    # -- per point and per proposal ---------------------------------------------------------------------

    @cached_property
    def run_of_point(self) -> IntArray:
        """Position of the run of each point, shape (points,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.first_point))

    @cached_property
    def step_of_point(self) -> IntArray:
        """Calls made at each point, shape (points,)."""
        return np.arange(self.first_point[-1]) - self.first_point[self.run_of_point]

    @cached_property
    def calls_left(self) -> IntArray:
        """Calls from each point until the violating one has been made, shape (points,); `NEVER` where there is none."""
        onset = np.array([NEVER if case.onset is None else case.onset for case in self.cases], dtype=np.int64)
        ahead = onset[self.run_of_point]
        return np.where(ahead == NEVER, NEVER, ahead - self.step_of_point)

    def happens_within(self, horizon: int) -> BoolArray:
        """Return, per point, whether the violation is one of the next ``horizon`` calls, shape (points,)."""
        return self.calls_left <= horizon

    @cached_property
    def run_of_proposal(self) -> IntArray:
        """Position of the run of each proposed call, shape (proposals,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.first_proposal))

    @cached_property
    def step_of_proposal(self) -> IntArray:
        """Calls made before each proposed call, shape (proposals,)."""
        return np.arange(int(self.first_proposal[-1])) - self.first_proposal[self.run_of_proposal]

    @cached_property
    def violating_proposal(self) -> BoolArray:
        """Whether each proposed call is the violating one, shape (proposals,)."""
        last = np.zeros(int(self.first_proposal[-1]), dtype=np.bool_)
        last[self.first_proposal[1:][self.violated] - 1] = True
        return last


def cases_of(
    trajectories: Iterable[Trajectory],
    space: StateSpace,
    notion: Notion = Notion.LABEL,
    unknown_onset: UnknownOnset = UnknownOnset.LAST_CALL,
) -> tuple[CaseSet, dict[str, int]]:
    """Return the runs whose outcome can be used under a notion of violation, and how many cannot, by reason."""
    cases: list[Case] = []
    left_out: dict[str, int] = {}
    for trajectory in trajectories:
        run = observe(trajectory, space, notion, unknown_onset)
        if run.left_out:
            left_out[run.left_out] = left_out.get(run.left_out, 0) + 1
        else:
            known = notion is Notion.RULES or not run.onset or trajectory.label.onset is not None
            cases.append(Case(trajectory, run.onset, known))
    return CaseSet(cases), left_out


def _offsets(counts: Sequence[int]) -> IntArray:
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64)


def _codes(values: Sequence[object]) -> IntArray:
    numbers: dict[object, int] = {}
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], dtype=np.int64)
