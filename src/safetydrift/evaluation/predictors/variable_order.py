"""A Markov chain of variable order: where a run goes depends on its state and on the effects of its last two calls.

A state keeps the highest levels so far and forgets when they were reached; what was done last, and before, tells runs
apart that stand in one state. A context seldom seen backs off to a shorter one, this to the state in the run's own
category, in its source, and in all runs, and a state never seen to what runs do in general
(`safetydrift.markov.contexts`). The contexts seen are the rows of one absorbing chain (`safetydrift.markov.memory`).

A call is foretold in two parts, each with concentrations of its own: whether it ends the run, violated or completed,
and if not, what effect it has. Those of the first are fitted by empirical Bayes, those of the second are chosen on
tasks left out, for runs of one task make the same calls. A category that no training run was of has the chain of all
runs, without memory: what follows what differs from suite to suite (docs/design/memory-in-the-chain.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from safetydrift.evaluation.predictors.walks import join, walks
from safetydrift.evaluation.scores import HORIZONS, Scores
from safetydrift.markov.contexts import UNKNOWN, ContextCounts, held_out_concentrations
from safetydrift.markov.horizon import horizon_table
from safetydrift.markov.memory import BEFORE, FORGOTTEN, ContextRows
from safetydrift.states.trajectory import COMPLETED, VIOLATED
from safetydrift.trace import Ending

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from safetydrift.evaluation.cases import CaseSet
    from safetydrift.markov._arrays import FloatArray, IntArray
    from safetydrift.states.space import StateSpace

DEPTH = 2
"""Calls remembered."""

SHOWN_BY = 2
"""Tasks that must show a context of two calls or more for it to have a row: what one task did says little of others."""

ENDS = (VIOLATED, COMPLETED)
"""The ends of a run, by number."""

GOES_ON, CUT_OFF = len(ENDS), -1
"""What else may come of a moment: a call that ends nothing, or nobody knows."""


_Pair: TypeAlias = tuple[str, str]
"""Source and category."""


@dataclass(frozen=True, slots=True)
class VariableOrder:
    """The chain of variable order.

    Parameters
    ----------
    space
        The space of the runs.
    depth
        How many calls are remembered at most; without any it is a chain of the first order.
    """

    space: StateSpace
    depth: int = DEPTH
    name: str = "variable-order"

    def fit(self, cases: CaseSet) -> FittedContexts:
        """Count, choose concentrations and solve."""
        groups = _Groups.of(cases, self.space)
        moments = _Moments.of(cases, self.depth)
        task, pair = cases.task[cases.run_of_point], groups.numbers(cases)[cases.run_of_point]
        known = moments.came != CUT_OFF
        estimate = _Estimate.of(self.space, moments, groups.keys(moments.contexts, pair), task)
        bare = np.concatenate(
            [moments.contexts[known], _elsewhere(self.space, self.depth)[: int(known.any())]]
        )
        bare[:, 1:] = FORGOTTEN
        tables: dict[_Pair | None, _Table] = {}
        for name, number in groups.known():
            mine = known & (pair == number) & (name is not None)
            rows = ContextRows(np.concatenate([bare, _shown(moments.contexts[mine], task[mine])]))
            tables[name] = estimate.table(rows, groups.keys(rows.contexts, np.full(len(rows), number)))
        leads_to = groups.keys(
            moments.leads_to(cases, self.space), groups.numbers(cases)[cases.run_of_proposal]
        )
        arrivals = ContextCounts(leads_to, cases.violating_proposal.astype(np.int64), 2)
        strengths = arrivals.empirical_concentrations()
        return FittedContexts(
            self.name, self.space, self.depth, groups, estimate, tables, arrivals, strengths
        )


@dataclass(frozen=True, slots=True)
class FittedContexts:
    """A fitted chain of variable order.

    Parameters
    ----------
    estimate
        What was counted.
    tables
        What the chain of each category says; by None, that of all runs.
    arrivals, strengths
        Proposed calls that were the violation, by where they would lead, and the concentrations of their levels.
    """

    name: str
    space: StateSpace
    depth: int
    groups: _Groups = field(repr=False)
    estimate: _Estimate = field(repr=False)
    tables: Mapping[_Pair | None, _Table] = field(repr=False)
    arrivals: ContextCounts = field(repr=False)
    strengths: Sequence[float] = field(repr=False)

    def score(self, cases: CaseSet) -> Scores:
        """Look up the context of every point and proposal."""
        moments = _Moments.of(cases, self.depth)
        leads_to = moments.leads_to(cases, self.space)
        number = self.groups.numbers(cases)
        within, later = np.ones((len(moments.came), len(HORIZONS))), np.ones(len(leads_to))
        for name, wanted in self.groups.known():
            table, here = self.tables[name], number[cases.run_of_point] == wanted
            ahead = number[cases.run_of_proposal] == wanted
            within[here] = table.within[list(HORIZONS)].T[table.at(moments.contexts[here])]
            later[ahead] = table.within[HORIZONS[-1] - 1, table.at(leads_to[ahead, : 1 + self.depth])]
        keys = self.groups.keys(leads_to, number[cases.run_of_proposal])
        itself = self.arrivals.expected(keys, self.strengths)[:, 1]
        return Scores(self.name, within, itself + (1.0 - itself) * later)

    def surprise(self, cases: CaseSet) -> FloatArray:
        """Return the log loss of what came of every point, in nats, shape (points,); nan where the run was cut off.

        What comes is an end, or the effect of the next call; those that no training run showed count as one effect.
        """
        moments = _Moments.of(cases, self.depth)
        keys = self.groups.keys(moments.contexts, self.groups.numbers(cases)[cases.run_of_point])
        loss = np.full(len(moments.came), np.nan)
        known, going = moments.came != CUT_OFF, moments.came == GOES_ON
        loss[known] = self.estimate.of_ends(keys[:, known], moments.came[known])
        loss[going] += self.estimate.of_calls(keys[:, going], moments.effect[going])
        return loss


@dataclass(frozen=True, slots=True)
class _Moments:
    """What is remembered at every point, and what came of it.

    Parameters
    ----------
    contexts : (points, 1 + depth) array
        The state, and the effects of the last calls.
    came : (points,) array
        The number of the end, `GOES_ON` or `CUT_OFF`.
    effect : (points,) array
        The effect of the next call, where there is one.
    """

    contexts: IntArray
    came: IntArray
    effect: IntArray

    @classmethod
    def of(cls, cases: CaseSet, depth: int) -> _Moments:
        walk, step = walks(cases), cases.step_of_point
        contexts = np.full((len(step), 1 + depth), BEFORE)
        contexts[:, 0] = walk.state
        for back in range(depth):
            made = step > back
            contexts[made, 1 + back] = walk.effect[np.flatnonzero(made) - back]
        came = np.full(len(step), GOES_ON)
        last = cases.first_point[1:] - 1
        completed = [case.run.ending is Ending.COMPLETED for case in cases.cases]
        calm = np.where(np.array(completed, dtype=np.bool_), ENDS.index(COMPLETED), CUT_OFF)
        came[last] = np.where(cases.violated, ENDS.index(VIOLATED), calm)
        return cls(contexts, came, np.append(walk.effect[1:], BEFORE))

    def leads_to(self, cases: CaseSet, space: StateSpace) -> IntArray:
        """Return the context to which each proposed call would lead, one call longer; shape (proposals, 2 + depth)."""
        walk = walks(cases)
        after = join(space, walk.state[walk.point], walk.proposed)
        return np.column_stack([after, walk.proposed, self.contexts[walk.point, 1:]])


@dataclass(frozen=True, slots=True)
class _Groups:
    """The categories that training runs were of, and what a context is at every level.

    Parameters
    ----------
    number
        The number of each category.
    source : (categories,) array
        The number of the source of each.
    n_states
        States of the space, and effects.
    """

    number: dict[_Pair, int]
    source: IntArray
    n_states: int

    @classmethod
    def of(cls, cases: CaseSet, space: StateSpace) -> _Groups:
        number = {name: place for place, name in enumerate(sorted({case.category for case in cases.cases}))}
        sources = sorted({source for source, _ in number})
        return cls(
            number, np.array([sources.index(name) for name, _ in number], dtype=np.int64), space.n_states
        )

    def numbers(self, cases: CaseSet) -> IntArray:
        """Return the number of the category of each run, `UNKNOWN` if training knew none of it."""
        return np.array([self.number.get(case.category, UNKNOWN) for case in cases.cases], dtype=np.int64)

    def known(self) -> list[tuple[_Pair | None, int]]:
        """Return every category with its number; None stands for all others."""
        return [(None, UNKNOWN), *self.number.items()]

    def keys(self, contexts: IntArray, category: IntArray) -> IntArray:
        """Return what each context is by level, shape (3 + depth, n).

        The first levels are the state in all runs, in those of the source and in those of the category. Each further
        one adds a call.
        """
        known = category != UNKNOWN
        number = np.where(known, category, 0)
        source = np.append(self.source, 0)[number]
        state, n_groups = contexts[:, 0], len(self.source) + 1
        key = state * n_groups + number
        levels = [state, np.where(known, state * n_groups + source, UNKNOWN), np.where(known, key, UNKNOWN)]
        for effect in contexts[:, 1:].T:
            known = known & (effect != FORGOTTEN)
            key = key * (self.n_states + 1) + effect + 1
            levels.append(np.where(known, key, UNKNOWN))
        return np.array(levels)


@dataclass(frozen=True, slots=True)
class _Table:
    """The rows of a chain, and what it says of each.

    Parameters
    ----------
    rows
        The rows.
    elsewhere
        The row of the states that no run was seen to go on from; there is none when no run was seen at all.
    within : (horizons, n_rows + 1) array
        Probability of a violation; 1 where nothing is known.
    """

    rows: ContextRows
    elsewhere: int
    within: FloatArray = field(repr=False)

    def at(self, contexts: IntArray) -> IntArray:
        """Return the row of each context."""
        return _placed(self.rows.find(contexts), self.rows, self.elsewhere)


def _placed(row: IntArray, rows: ContextRows, elsewhere: int) -> IntArray:
    return np.where(row == rows.unknown, elsewhere, row)


def _elsewhere(space: StateSpace, depth: int) -> IntArray:
    """Return the context of states that no run was seen to go on from: a state of its own, shape (1, 1 + depth)."""
    return np.array([[space.n_states, *[FORGOTTEN] * depth]])


@dataclass(frozen=True, slots=True)
class _Estimate:
    """What was counted, and how far each level follows the one before it."""

    space: StateSpace
    effects: IntArray
    ends: ContextCounts
    end_strengths: Sequence[float]
    calls: ContextCounts
    call_strengths: Sequence[float]

    @classmethod
    def of(cls, space: StateSpace, moments: _Moments, keys: IntArray, task: IntArray) -> _Estimate:
        known, going = moments.came != CUT_OFF, moments.came == GOES_ON
        effects, call = np.unique(moments.effect[going], return_inverse=True)
        ends = ContextCounts(keys[:, known], moments.came[known], len(ENDS) + 1)
        n_calls = len(effects) + 1  # the last one stands for all effects that were never seen
        calls = ContextCounts(keys[:, going], call, n_calls)
        chosen = held_out_concentrations(keys[:, going], call, n_calls, task[going])
        return cls(space, effects, ends, ends.empirical_concentrations(), calls, chosen)

    def of_ends(self, keys: IntArray, came: IntArray) -> FloatArray:
        """Return the log loss of whether and how runs ended, shape (n,)."""
        return -np.log(self.ends.expected_of(keys, came, self.end_strengths))

    def of_calls(self, keys: IntArray, effect: IntArray) -> FloatArray:
        """Return the log loss of the effects of calls, shape (n,)."""
        place = np.searchsorted(self.effects, effect)
        place[np.append(self.effects, BEFORE)[place] != effect] = len(self.effects)
        return -np.log(self.calls.expected_of(keys, place, self.call_strengths))

    def table(self, rows: ContextRows, keys: IntArray) -> _Table:
        """Solve the chain on some rows, given what each is by level."""
        ends = self.ends.expected(keys, self.end_strengths)
        calls = self.calls.expected(keys, self.call_strengths)
        elsewhere = int(rows.find(_elsewhere(self.space, rows.depth))[0])
        after = self._after(rows.contexts[:, 0])
        successors = _placed(rows.successors(self.effects, after), rows, elsewhere)
        never = np.full((len(rows), 1), elsewhere)
        leads_to = np.concatenate([successors, never], axis=1)
        chain = rows.chain(calls * ends[:, GOES_ON:], ends[:, :GOES_ON], leads_to, ENDS)
        within = horizon_table(chain, HORIZONS[-1]).probability(VIOLATED)[:, : rows.unknown + 1].copy()
        within[:, rows.unknown] = 1.0
        return _Table(rows, elsewhere, within)

    def _after(self, state: IntArray) -> IntArray:
        """Return the state after each effect, shape (n, effects); from elsewhere nobody knows the way back."""
        inside = state < self.space.n_states
        start = np.repeat(np.where(inside, state, self.space.start), len(self.effects))
        after = join(self.space, start, np.tile(self.effects, len(state))).reshape(
            len(state), len(self.effects)
        )
        after[~inside] = self.space.n_states
        return after


def _shown(contexts: IntArray, task: IntArray) -> IntArray:
    """Return contexts as long as enough tasks showed them; those of one call always count as shown."""
    kept = contexts.copy()
    for length in range(2, contexts.shape[1]):
        _, which = np.unique(contexts[:, : length + 1], axis=0, return_inverse=True)
        shown = np.unique(np.stack([which.ravel(), task]), axis=1)[0]
        kept[np.bincount(shown)[which.ravel()] < SHOWN_BY, length:] = FORGOTTEN
    return kept
