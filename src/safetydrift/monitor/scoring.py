"""A risk score ready to be asked: sums of numbers looked up, and the probabilities that belong to them."""

from __future__ import annotations

from functools import lru_cache
from math import exp, sqrt
from operator import getitem
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from safetydrift.monitor.facts import Facts
    from safetydrift.monitor.pipelines import Pipeline, Traits
    from safetydrift.monitor.risk_score import Link, Weights, WordSet

FINENESS = 64
"""Scores are rounded to this fraction of a unit of log odds, so that their probabilities can be looked up as well."""
HIGHEST_SCORE = 16.0


class Score:
    """A score ready to be asked, with what does not change along a run remembered.

    Parameters
    ----------
    weights
        Its numbers.
    sizes
        How many cells each of its features has, by name, in the order in which the cells will be given.
    traits
        What names of pipelines can say.
    """

    __slots__ = ("_of_pipeline", "_of_run", "_of_tools", "_tables", "_traits", "weights")

    def __init__(self, weights: Weights, sizes: Mapping[str, int], traits: Traits) -> None:
        self.weights = weights
        self._traits = traits
        self._tables = tuple([padded(weights.cells[name], size, 0.0) for name, size in sizes.items()])
        self._of_pipeline = lru_cache(4096)(self._pipeline)
        self._of_run = lru_cache(4096)(self._run)
        self._of_tools = lru_cache(4096)(self._tools)

    def __call__(
        self, cells: Sequence[int], facts: Facts, pipeline: Pipeline, tools: tuple[str, str]
    ) -> float:
        """Return the log odds.

        Parameters
        ----------
        cells
            One per feature.
        tools
            The two tools whose names count, the later first.
        """
        return (
            self._of_run(facts.task_words, facts.injected_words, facts.heard_words, pipeline)
            + self._of_tools(tools)
            + sum(map(getitem, self._tables, cells))
        )

    def by_cell(self, cells: Sequence[int]) -> list[float]:
        """Return what each feature adds."""
        return list(map(getitem, self._tables, cells))

    def _run(
        self, task: frozenset[int], injected: frozenset[int], heard: frozenset[int], pipeline: Pipeline
    ) -> float:
        score = self.weights.bias + self._of_words("task", task)
        score += self._of_words("injected", injected) + self._of_words("heard", heard)
        return score + self._of_pipeline(pipeline, bool(injected))

    def _of_words(self, which: WordSet, words: frozenset[int]) -> float:
        if not words:
            return 0.0
        weights: Mapping[int, float] = self.weights.words[which]
        return sum([weights[word] for word in words if word in weights]) / sqrt(len(words))

    def _pipeline(self, pipeline: Pipeline, exposed: bool) -> float:  # part of a key
        """Return what a name adds; one of which nothing is known, what the known ones add in the mean."""
        if not pipeline:
            known = [self._pipeline(one, exposed) for one in self._traits.pipelines()]
            return sum(known) / len(known) if known else 0.0
        weights = self.weights
        score = sum([weights.traits[trait] for trait in pipeline])
        return score + sum([weights.traits_exposed[trait] for trait in pipeline]) if exposed else score

    def _tools(self, tools: tuple[str, str]) -> float:
        return sum([weights.get(tool, 0.0) for weights, tool in zip(self.weights.tools, tools, strict=True)])


def padded(numbers: tuple[float, ...], size: int, beyond: float) -> tuple[float, ...]:
    """Return numbers of all cells, given those of the first ones."""
    return numbers + (beyond,) * (size - len(numbers))


class Curves:
    """Probabilities by horizon, looked up by a rounded score; a row is worked out when it is first asked for.

    Parameters
    ----------
    links
        The link of every horizon, from 1 on.
    """

    __slots__ = ("_links", "_rows")

    def __init__(self, links: Sequence[Link]) -> None:
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


def probability(score: float, link: Link) -> float:
    """Return the probability that a logistic link gives a score."""
    return logistic(link.intercept + link.slope * score)


def logistic(odds: float) -> float:
    """Return the probability that has these log odds."""
    return 1.0 / (1.0 + exp(-odds)) if odds >= 0.0 else exp(odds) / (1.0 + exp(odds))


def _curve(score: float, links: Sequence[Link]) -> tuple[float, ...]:
    curve = [0.0]
    for link in links:
        curve.append(max(curve[-1], probability(score, link)))
    return tuple(curve)
