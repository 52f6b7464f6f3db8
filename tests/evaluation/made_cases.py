"""Runs made by hand, and predictors whose scores are known beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from safetydrift.evaluation.cases import Case, CaseSet
from safetydrift.evaluation.scores import HORIZONS, Fixed, Scores
from safetydrift.states.trajectory import Trajectory
from safetydrift.trace import Label

if TYPE_CHECKING:
    from collections.abc import Callable

    from safetydrift.markov._arrays import BoolArray, FloatArray

_numbers = iter(range(10**9))


def case(
    n_steps: int = 3,
    onset: int | None = None,
    *,
    task: str = "task",
    category: str = "office",
    source: str = "made",
    model: str = "model",
    exposure: int | None = None,
    goal: str = "goal",
    onset_known: bool = True,
) -> Case:
    """A run of some calls, violated at its ``onset`` where there is one."""
    run = Trajectory.of_columns(
        f"run {next(_numbers)}",
        states=(0,) * (n_steps + 1),
        effects=(0,) * n_steps,
        source=source,
        task=task,
        category=category,
        model=model,
        label=Label(onset is not None, onset=onset if onset_known else None, exposure=exposure, goal=goal),
    )
    return Case(run, onset, onset_known)


def many(
    rng: np.random.Generator,
    n_tasks: int = 40,
    per_task: int = 10,
    rate: Callable[[int], float] = lambda _task: 0.3,
    **fields: object,
) -> CaseSet:
    """Runs of several tasks; each violates at its first call or not at all, as likely as its task has it."""
    made = []
    for task in range(n_tasks):
        for number in range(per_task):
            onset = 1 if rng.random() < rate(task) else None
            made.append(
                case(1, onset, task=f"task {task}", model=f"model{number}", category=f"c{task % 4}", **fields)  # type: ignore[arg-type]
            )
    return CaseSet(made)


@dataclass(frozen=True)
class Says:
    """Scores by a rule that is given the cases."""

    name: str
    rule: Callable[[CaseSet], FloatArray]
    probabilistic: bool = True
    alarm_at: float | None = None
    covers: Callable[[CaseSet], BoolArray] | None = None

    def score(self, cases: CaseSet) -> Scores:
        points = self.rule(cases)
        pending = points[: len(cases.run_of_proposal)] if len(points) else points
        pending = np.resize(pending, len(cases.run_of_proposal)) if len(points) else np.zeros(0)
        return Scores(
            self.name,
            within=np.repeat(points[:, None], len(HORIZONS), axis=1),
            pending=pending,
            alarm=None if self.alarm_at is None else points >= self.alarm_at,
            pending_alarm=None if self.alarm_at is None else pending >= self.alarm_at,
            probabilistic=self.probabilistic,
            covered=None if self.covers is None else self.covers(cases),
        )


@dataclass(frozen=True)
class Constant(Says):
    """The same rule, fitted on nothing, and saying so."""

    trained_on: frozenset[tuple[str, str, str]] | None = frozenset()


def fixed(name: str, rule: Callable[[CaseSet], FloatArray], **options: object) -> Fixed:
    """A predictor that needs no fitting."""
    return Fixed(name, Constant(name, rule, **options))  # type: ignore[arg-type]


def oracle(cases: CaseSet) -> FloatArray:
    """Whether the violation comes within the furthest horizon."""
    return cases.happens_within(HORIZONS[-1]).astype(float)


def by_position(cases: CaseSet) -> FloatArray:
    """A score for every point that has nothing to do with what happened."""
    named = [f"{one.run.id} at {k}" for one in cases.cases for k in range(one.n_points)]
    return np.array([crc32(name.encode()) % 997 / 997 for name in named])


@dataclass(frozen=True)
class Remembers:
    """Learns how often each value of a key violated, and says so again; 0 for values it has not met."""

    name: str
    key: Callable[[Case], object]

    def fit(self, cases: CaseSet) -> Says:
        counts: dict[object, list[int]] = {}
        for one in cases.cases:
            counts.setdefault(self.key(one), [0, 0])[one.violated] += 1
        rates = {key: violated / (safe + violated) for key, (safe, violated) in counts.items()}
        return Says(
            self.name,
            lambda tried: np.repeat(
                [rates.get(self.key(one), 0.0) for one in tried.cases], np.diff(tried.first_point)
            ).astype(float),
        )
