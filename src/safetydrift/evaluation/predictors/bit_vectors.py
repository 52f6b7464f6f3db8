"""A chain over vectors of predicates, after Pro2Guard (Wang et al., arXiv 2508.00500).

Each run is abstracted to what is true of it so far (sensitive data was read, the network was used, the latest call
cannot be taken back, ..), every vector of these bits that occurs is a state of a discrete-time Markov chain, and the
risk is the probability of reaching a violation within h steps. A baseline for hand-written predicates in place of a
state space. One chain serves all categories; transitions are estimated by their frequencies, and a vector that no
training run went on from is not known to be safe.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from safetydrift.evaluation.predictors.row_chain import RowTable, fit_rows
from safetydrift.evaluation.predictors.walks import digits_of, so_far, walks
from safetydrift.evaluation.scores import Scores

if TYPE_CHECKING:
    from safetydrift.evaluation.cases import CaseSet
    from safetydrift.markov._arrays import BoolArray, IntArray
    from safetydrift.states.space import StateSpace

THRESHOLD = 0.4
"""Alarm at this probability within five steps."""


@dataclass(frozen=True, slots=True)
class Predicate:
    """Whether a call reached at least a level in a dimension: the latest one, or any so far."""

    dimension: str
    level: str
    ever: bool = True


PREDICATES = (
    Predicate("data", "sensitive"),
    Predicate("data", "credentials"),
    Predicate("tool", "file_write"),
    Predicate("tool", "code_exec"),
    Predicate("tool", "network"),
    Predicate("reversibility", "irreversible"),
    Predicate("tool", "network", ever=False),
    Predicate("reversibility", "irreversible", ever=False),
    Predicate("untrusted", "read"),
    Predicate("untrusted", "instructed"),
    Predicate("provenance", "foreign", ever=False),
    Predicate("carried", "sensitive"),
)
"""The predicates; those of dimensions or levels that a space does not have are left out."""


@dataclass(frozen=True, slots=True)
class BitVectors:
    """The chain over bit vectors.

    Parameters
    ----------
    space
        The space of the runs.
    predicates
        The bits, lowest first; at most 20.
    """

    space: StateSpace
    predicates: tuple[Predicate, ...] = PREDICATES
    name: str = "bit-vectors"

    def fit(self, cases: CaseSet) -> FittedVectors:
        """Count and solve.

        Raises
        ------
        ValueError
            If there are too many predicates.
        """
        known = tuple(one for one in self.predicates if _is_known(one, self.space))
        if len(known) > 20:  # noqa: PLR2004
            raise ValueError(f"{len(known)} predicates make too many vectors; at most 20 are supported")
        vector, leads_to = _vectors(cases, self.space, known)
        table = fit_rows(cases, vector, leads_to, 1 << len(known))
        return FittedVectors(self.name, self.space, known, table)


@dataclass(frozen=True, slots=True)
class FittedVectors:
    """A fitted chain over bit vectors."""

    name: str
    space: StateSpace
    predicates: tuple[Predicate, ...]
    table: RowTable = field(repr=False)

    def score(self, cases: CaseSet) -> Scores:
        """Look up every vector."""
        vector, leads_to = _vectors(cases, self.space, self.predicates)
        within, pending = self.table.within[vector], self.table.pending[leads_to]
        return Scores(self.name, within, pending, within[:, -1] >= THRESHOLD, pending >= THRESHOLD)


def _is_known(predicate: Predicate, space: StateSpace) -> bool:
    return any(one.name == predicate.dimension and predicate.level in one.levels for one in space.dimensions)


def _vectors(
    cases: CaseSet, space: StateSpace, predicates: tuple[Predicate, ...]
) -> tuple[IntArray, IntArray]:
    """Return the vector at each point, shape (points,), and after each proposed call, (proposals,)."""
    walk = walks(cases)
    called = walk.effect >= 0
    vector = np.zeros(len(walk.state), dtype=np.int64)
    leads_to = np.zeros(len(walk.proposed), dtype=np.int64)
    for bit, predicate in enumerate(predicates):
        reaches = _reaches(space, predicate)
        now = called & reaches[walk.effect]
        then = reaches[walk.proposed]
        if predicate.ever:
            now = so_far(cases, now) > 0
            then = then | now[walk.point]
        vector |= now.astype(np.int64) << bit
        leads_to |= then.astype(np.int64) << bit
    return vector, leads_to


def _reaches(space: StateSpace, predicate: Predicate) -> BoolArray:
    """Return which effects reach the level, shape (n_states,)."""
    place = [dimension.name for dimension in space.dimensions].index(predicate.dimension)
    level = space.dimensions[place].index(predicate.level)
    reaches: BoolArray = digits_of(space)[:, place] >= level
    return reaches
