"""The hazard: how likely a violation is from where a run stands, as a sum of numbers looked up.

The log odds of a violation are a bias, one weight per factor (`safetydrift.monitor.covariates`), and the weights of
the tools used last, of the task's words, of the words of strangers' orders, and of the model that acts. One score
ranks; a link per horizon, fitted on tasks the score had not seen, turns it into probabilities.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import exp, sqrt
from operator import getitem
from typing import TYPE_CHECKING

from msgspec import Struct

from safetydrift.monitor.pipelines import MARK_KINDS, Marks

if TYPE_CHECKING:
    from safetydrift.monitor.covariates import Covariates
    from safetydrift.monitor.pipelines import Pipeline

FINENESS = 64
"""Scores are rounded to this fraction of a unit of log odds, so that their probabilities can be looked up as well."""
HIGHEST_SCORE = 16.0

Links = tuple[tuple[float, float], ...]


class Weights(Struct, frozen=True, gc=False, kw_only=True):
    """One additive score.

    Parameters
    ----------
    bias
        The score where nothing is known.
    tables
        Weight by cell, for every factor in its order.
    last, before
        Weight by name of the last tool and of the one before it; for proposals, of the proposed tool and the last.
    task, orders, heard
        Weight by word of the task, of the orders so far, and of what the user has said since the task. A set of n
        words counts with its sum over the root of n.
    marks, marks_exposed
        Weight by mark of the pipeline's name; the second counts as well once orders have been read.
    """

    bias: float
    tables: tuple[tuple[float, ...], ...]
    last: Mapping[str, float]
    before: Mapping[str, float]
    task: Mapping[int, float]
    orders: Mapping[int, float]
    heard: Mapping[int, float]
    marks: tuple[float, ...]
    marks_exposed: tuple[float, ...]


KINDS = (
    "tables",
    "last",
    "before",
    *MARK_KINDS,
    *[f"{kind}_exposed" for kind in MARK_KINDS],
    "task",
    "orders",
    "heard",
)
"""The kinds of weights that have a variance of their own: as `Weights` names them, and those of marks by themselves."""


class Learned(Struct, frozen=True, gc=False, kw_only=True):
    """How much runs have told about the weights of one score.

    Parameters
    ----------
    variances
        Of weights nothing is known about, by kind in the order of `KINDS`; of words, of their weights as they count.
    tables
        Levels of the cells, a string for every factor; cells beyond its end have level 0.
    last, before
        Level by name of the tool; 0 for others.
    marks, marks_exposed
        Levels of the marks' weights, a string each.
    task, orders, heard
        Levels of the words, in the order of the words that have a weight; 0 for others.
    """

    variances: tuple[float, ...]
    tables: tuple[str, ...]
    last: Mapping[str, int]
    before: Mapping[str, int]
    marks: str
    marks_exposed: str
    task: str
    orders: str
    heard: str


class LinkSpread(Struct, frozen=True, gc=False):
    """What is not known about the log odds that a link gives.

    Parameters
    ----------
    between
        Their variance between tasks that look the same.
    left
        The share of the variance of the weights that is left; 1 until a deployment's own runs are added.
    """

    between: float
    left: float = 1.0


class Spread(Struct, frozen=True, gc=False, kw_only=True):
    """All that is not known about a hazard; its parts are named as those of `Hazard` that they belong to."""

    standing: Learned
    proposal: Learned
    within: tuple[LinkSpread, ...]
    eventually: LinkSpread
    proposed: tuple[LinkSpread, ...]


class Score:
    """A score ready to be asked, with what does not change along a run remembered.

    Parameters
    ----------
    weights
        Its numbers.
    marks
        What names of pipelines can say.
    """

    __slots__ = ("_marks", "_of_pipeline", "_of_run", "_of_tools", "_tables", "weights")

    def __init__(self, weights: Weights, marks: Marks) -> None:
        self.weights = weights
        self._marks = marks
        self._of_pipeline = lru_cache(4096)(self._pipeline)
        self._tables = weights.tables
        self._of_run = lru_cache(4096)(self._run)
        self._of_tools = lru_cache(4096)(self._tools)

    def __call__(
        self, cells: tuple[int, ...], past: Covariates, pipeline: Pipeline, tools: tuple[str, str]
    ) -> float:
        """Return the log odds.

        Parameters
        ----------
        cells
            One per factor, in the order of the tables.
        tools
            The two tools whose names count, the later first.
        """
        return (
            self._of_run(past.task_words, past.order_words, past.heard_words, pipeline)
            + self._of_tools(tools)
            + sum(map(getitem, self._tables, cells))
        )

    def _run(
        self, task: frozenset[int], orders: frozenset[int], heard: frozenset[int], pipeline: Pipeline
    ) -> float:
        weights = self.weights
        score = weights.bias + _of_words(weights.task, task)
        score += _of_words(weights.orders, orders) + _of_words(weights.heard, heard)
        return score + self._of_pipeline(pipeline, bool(orders))

    def _pipeline(self, pipeline: Pipeline, exposed: bool) -> float:  # part of a key
        """Return what a name adds; one of which nothing is known, what the known ones add in the mean."""
        if not pipeline:
            known = [self._pipeline(one, exposed) for one in self._marks.pipelines()]
            return sum(known) / len(known) if known else 0.0
        weights = self.weights
        score = sum([weights.marks[mark] for mark in pipeline])
        return score + sum([weights.marks_exposed[mark] for mark in pipeline]) if exposed else score

    def _tools(self, tools: tuple[str, str]) -> float:
        return self.weights.last.get(tools[0], 0.0) + self.weights.before.get(tools[1], 0.0)


class Hazard(Struct, frozen=True, gc=False, kw_only=True):
    """Everything fitted beyond the chain.

    Parameters
    ----------
    marks
        What it knows names of pipelines to say.
    standing, proposal
        The scores of where a run stands, and of a call as proposed.
    within
        (intercept, slope) of the logistic link for a violation within h steps, h = 1 .. max_horizon, from the
        standing's score.
    eventually
        The same for the end of the run.
    proposed
        The same within h steps from the proposal's score, the proposed call being the first of them.
    spread
        What is not known about all that; None for a hazard that gives no intervals.
    """

    marks: Marks
    standing: Weights
    proposal: Weights
    within: Links
    eventually: tuple[float, float]
    proposed: Links
    spread: Spread | None = None


class Curves:
    """Probabilities by horizon, looked up by a rounded score; a row is worked out when it is first asked for.

    Parameters
    ----------
    links
        The link of every horizon, from 1 on.
    """

    __slots__ = ("_links", "_rows")

    def __init__(self, links: Links) -> None:
        self._links = links
        self._rows: list[tuple[float, ...] | None] = [None] * (2 * int(HIGHEST_SCORE * FINENESS) + 1)

    def place(self, score: float) -> int:
        """Return the row of a score."""
        bounded = -HIGHEST_SCORE if score < -HIGHEST_SCORE else min(score, HIGHEST_SCORE)
        return int((bounded + HIGHEST_SCORE) * FINENESS + 0.5)

    def score(self, place: int) -> float:
        """Return the score of a row."""
        return place / FINENESS - HIGHEST_SCORE

    def __getitem__(self, place: int) -> tuple[float, ...]:
        """Return the probability within h steps, h = 0, 1, ..; it never falls with h."""
        row = self._rows[place]
        if row is None:
            row = self._rows[place] = _curve(self.score(place), self._links)
        return row


def probability(score: float, link: tuple[float, float]) -> float:
    """Return the probability that a logistic link gives a score."""
    return logistic(link[0] + link[1] * score)


def logistic(odds: float) -> float:
    """Return the probability that has these log odds."""
    return 1.0 / (1.0 + exp(-odds)) if odds >= 0.0 else exp(odds) / (1.0 + exp(odds))


def _curve(score: float, links: Links) -> tuple[float, ...]:
    curve = [0.0]
    for link in links:
        curve.append(max(curve[-1], probability(score, link)))
    return tuple(curve)


def _of_words(weights: Mapping[int, float], words: frozenset[int]) -> float:
    if not words:
        return 0.0
    known = [weights[word] for word in words if word in weights]
    return sum(known) / sqrt(len(words))
