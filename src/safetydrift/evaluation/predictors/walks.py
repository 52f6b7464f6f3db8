"""Where runs stand at every point and proposal, in flat arrays, and how states follow from effects in bulk."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from safetydrift.evaluation.cases import Case, CaseSet
from safetydrift.states.dimensions import Accumulation
from safetydrift.states.projection import project, projection

if TYPE_CHECKING:
    from collections.abc import Iterable

    from safetydrift.markov._arrays import BoolArray, IntArray
    from safetydrift.states.space import StateSpace


@dataclass(frozen=True, slots=True)
class Walks:
    """The ways of the runs of a `CaseSet`, in the order of its points and proposals.

    Parameters
    ----------
    state : (points,) array
        The state at each point.
    effect : (points,) array
        The effect of the latest call, as it turned out; -1 before the first.
    proposed : (proposals,) array
        The effect of each call as it was proposed.
    point : (proposals,) array
        The point at which each call is proposed.
    """

    state: IntArray
    effect: IntArray
    proposed: IntArray
    point: IntArray


def walks(cases: CaseSet) -> Walks:
    """Return the ways of the runs."""
    n_points, n_proposals = int(cases.first_point[-1]), int(cases.first_proposal[-1])
    first_point = cases.first_point[cases.run_of_proposal]
    within_run = np.arange(n_proposals) - cases.first_proposal[cases.run_of_proposal]
    return Walks(
        state=flat((case.run.states[: case.n_points] for case in cases.cases), n_points),
        effect=flat(((-1, *case.run.effects[: case.n_points - 1]) for case in cases.cases), n_points),
        proposed=flat((case.run.proposed[: case.n_proposals] for case in cases.cases), n_proposals),
        point=first_point + within_run,
    )


def flat(parts: Iterable[Iterable[int]], count: int) -> IntArray:
    """Return the numbers of all parts, one after the other, shape (count,)."""
    return np.fromiter(chain.from_iterable(parts), dtype=np.int64, count=count)


def digits_of(space: StateSpace) -> IntArray:
    """Return the level index of every state in each dimension, shape (n_states, dimensions)."""
    return np.array([space.digits(state) for state in range(space.n_states)], dtype=np.int64)


def join(space: StateSpace, states: IntArray, effects: IntArray) -> IntArray:
    """Return the states that follow, as `StateSpace.after` does, without building its rows.

    Parameters
    ----------
    states, effects : (n,) arrays
        Indices of states and of the effects that meet them.
    """
    digits = digits_of(space)
    keep = np.array([dimension.accumulation is Accumulation.HIGHEST for dimension in space.dimensions])
    levels = np.where(keep, np.maximum(digits[states], digits[effects]), digits[effects])
    sizes = [len(dimension.levels) for dimension in space.dimensions]
    strides = np.array([int(np.prod(sizes[place + 1 :], dtype=np.int64)) for place in range(len(sizes))])
    joined: IntArray = levels @ strides
    return joined


def so_far(cases: CaseSet, happened: BoolArray) -> IntArray:
    """Return how often something happened in the run up to and including each point, shape (points,)."""
    total = np.cumsum(happened, dtype=np.int64)
    first = cases.first_point[cases.run_of_point]
    counted: IntArray = total - total[first] + happened[first]
    return counted


def since(cases: CaseSet, happened: BoolArray) -> IntArray:
    """Return the calls made since something last happened, or since the start, shape (points,)."""
    here = np.arange(len(happened))
    marked = happened | (cases.step_of_point == 0)
    ago: IntArray = here - np.maximum.accumulate(np.where(marked, here, 0))
    return ago


def projected(cases: CaseSet, recorded: StateSpace, space: StateSpace) -> CaseSet:
    """Return the same cases with their runs read in another space; points and proposals keep their places.

    Raises
    ------
    SpaceMismatchError
        If the space has dimensions or levels the recorded one knows nothing of.
    """
    if recorded.identity == space.identity:
        return cases
    effect_of = projection(recorded, space)
    return CaseSet(
        Case(project(case.run, effect_of, space), case.onset, case.onset_known) for case in cases.cases
    )
