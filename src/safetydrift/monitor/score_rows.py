"""From labelled runs to the rows a risk score is fitted to: every place where a run stood, and every proposed call."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np

from safetydrift.monitor.features import Features
from safetydrift.monitor.pipelines import Traits
from safetydrift.monitor.risk_score import WORD_SETS
from safetydrift.monitor.walk import walk
from safetydrift.states.trajectory import VIOLATED

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from safetydrift.markov._arrays import BoolArray, IntArray
    from safetydrift.monitor.facts import Facts
    from safetydrift.monitor.pipelines import Pipeline
    from safetydrift.states.space import StateSpace
    from safetydrift.states.trajectory import ObservedRun, Trajectory

FOLDS = 5
"""Folds of tasks from which links are fitted."""
FEWEST_CALLS = 20
"""A tool used less often is not told apart by its name."""
NEVER = int(np.iinfo(np.int64).max)
"""Calls until a violation that does not come."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one kind, places or proposals: who they belong to and what there is to see.

    Parameters
    ----------
    cells : (rows, features) array
        Cell of every feature.
    tools : (rows, 2) array
        Numbers of the two tools that count; 0 for none.
    run : (rows,) array
        Position of the run.
    words : (rows, sets) array
        Number of the set of words, for every one of `WORD_SETS`.
    left : (rows,) array
        Calls until the violation has happened, `NEVER` where there is none.
    """

    cells: IntArray
    tools: IntArray
    run: IntArray
    words: IntArray
    left: IntArray


@dataclass(frozen=True, slots=True)
class ScoreData:
    """All runs, walked once.

    Parameters
    ----------
    features
        The features whose cells the rows hold.
    current, proposal
        The rows.
    tools
        Numbers of the tools that are told apart, by name.
    sets
        The sets of words by number; the first is empty.
    traits, pipelines
        What names of pipelines say, and what those of the runs do.
    fold, task : (runs,) arrays
        Fold and number of the run's task.
    violated : (runs,) array of bool
        Whether it ends violated.
    """

    features: Features
    current: Rows
    proposal: Rows
    tools: Mapping[str, int]
    sets: Sequence[Collection[int]]
    traits: Traits
    pipelines: Sequence[Pipeline]
    fold: IntArray
    task: IntArray
    violated: BoolArray

    @classmethod
    def of(cls, used: Sequence[tuple[Trajectory, ObservedRun]], space: StateSpace) -> ScoreData:
        """Walk runs; each comes with what is observed of it."""
        features, traits = Features(space), Traits.of_names({run.model for run, _ in used})
        tools = _frequent([run.tools for run, _ in used])
        sets: dict[Collection[int], int] = {frozenset(): 0}
        current, proposal = _Collected(tools, sets), _Collected(tools, sets)
        for number, (run, seen) in enumerate(used):
            for step, (facts, move) in enumerate(walk(features, run, len(seen.states))):
                left = NEVER if seen.onset is None else seen.onset - step
                state = seen.states[step]
                seen_of_run = features.see(state, facts)
                cells = [look.cell(seen_of_run) for look in features.current.values()]
                current.add(cells, (facts.last, facts.before), number, run, facts, left)
                if move is not None:
                    seen_of_call = features.see_call(seen_of_run, state, facts, move)
                    cells = cells + [look.cell(seen_of_call) for look in features.proposal.values()]
                    proposal.add(cells, (move.tool, facts.last), number, run, facts, left)
        tasks = [(run.source, run.category, run.task) for run, _ in used]
        numbers = {task: number for number, task in enumerate(dict.fromkeys(tasks))}
        return cls(
            features=features,
            current=current.rows(),
            proposal=proposal.rows(),
            tools=tools,
            sets=list(sets),
            traits=traits,
            pipelines=[traits.of(run.model) for run, _ in used],
            fold=np.array([_fold(task) for task in tasks], dtype=np.int64),
            task=np.array([numbers[task] for task in tasks], dtype=np.int64),
            violated=np.array([seen.end == VIOLATED for _, seen in used], dtype=np.bool_),
        )


class _Collected:
    """Collects rows."""

    def __init__(self, tools: Mapping[str, int], sets: dict[Collection[int], int]) -> None:
        self._tools, self._sets = tools, sets
        self._cells: list[Sequence[int]] = []
        self._rest: list[tuple[int, ...]] = []

    def add(  # noqa: PLR0917  # all that a row is
        self,
        cells: Sequence[int],
        tools: tuple[str, str],
        number: int,
        run: Trajectory,
        facts: Facts,
        left: int,
    ) -> None:
        self._cells.append(cells)
        words = (run.words, facts.injected_words, facts.heard_words)
        self._rest.append(
            (
                *[self._tools.get(tool, 0) for tool in tools],
                number,
                left,
                *[self._sets.setdefault(found, len(self._sets)) for found in words],
            )
        )

    def rows(self) -> Rows:
        rest = np.array(self._rest, dtype=np.int64).reshape(-1, 4 + len(WORD_SETS))
        return Rows(np.array(self._cells, dtype=np.int32), rest[:, :2], rest[:, 2], rest[:, 4:], rest[:, 3])


def _frequent(tools: Sequence[Sequence[str]]) -> dict[str, int]:
    """Return the number of every tool that was used often enough, from 1."""
    counts: dict[str, int] = {}
    for names in tools:
        for name in names:
            counts[name] = counts.get(name, 0) + 1
    often = sorted(name for name, count in counts.items() if name and count >= FEWEST_CALLS)
    return {name: number for number, name in enumerate(often, 1)}


def _fold(task: tuple[str, str, str]) -> int:
    """Return the fold of a task: decided by its name alone."""
    return int.from_bytes(sha256("|".join(task).encode()).digest()[:4]) % FOLDS
