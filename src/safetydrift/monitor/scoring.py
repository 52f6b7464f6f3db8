"""A risk score ready to be asked: sums of numbers looked up, and the probabilities that belong to them."""

from __future__ import annotations

from functools import lru_cache
from math import exp, sqrt
from operator import itemgetter
from typing import TYPE_CHECKING

from safetydrift.monitor.features import Look

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from safetydrift.monitor.facts import Facts
    from safetydrift.monitor.pipelines import Pipeline, Traits
    from safetydrift.monitor.risk_score import Link, Weights, WordSet

FINENESS = 64
"""Scores are rounded to this fraction of a unit of log odds, so that their probabilities can be looked up as well."""
HIGHEST_SCORE = 16.0
_SUMS = 1 << 13
"""Sums of weights that are remembered."""


class Score:
    """A score ready to be asked, with what comes again remembered.

    Parameters
    ----------
    weights
        Its numbers.
    traits
        What names of pipelines can say.
    current, proposal
        Its features by name: those that look at where a run stands, and those that look at the call it proposes too.
    """

    __slots__ = ("_of_calls", "_of_pipeline", "_of_run", "_of_runs", "_of_tools", "_traits", "weights")

    def __init__(
        self,
        weights: Weights,
        traits: Traits,
        current: Mapping[str, Look],
        proposal: Mapping[str, Look] | None = None,
    ) -> None:
        self.weights = weights
        self._traits = traits
        self._of_runs = _sum(weights, current)
        self._of_calls = _sum(weights, proposal or {})
        self._of_pipeline = lru_cache(4096)(self._pipeline)
        self._of_run = lru_cache(4096)(self._run)
        self._of_tools = lru_cache(4096)(self._tools)

    def __call__(
        self,
        seen: tuple[int, ...],
        facts: Facts,
        pipeline: Pipeline,
        tools: tuple[str, str],
        call: tuple[int, ...] | None = None,
    ) -> float:
        """Return the log odds.

        Parameters
        ----------
        seen
            What is seen of the run (`safetydrift.monitor.features.Features.see`).
        tools
            The two tools whose names count, the later first.
        call
            What is seen of it and the call it proposes (`safetydrift.monitor.features.Features.see_call`).
        """
        score = self._of_run(facts.task_words, facts.injected_words, facts.heard_words, pipeline)
        score += self._of_tools(tools) + self._of_runs(seen)
        return score if call is None else score + self._of_calls(call)

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


def by_feature(weights: Weights, looks: Mapping[str, Look], seen: Sequence[int]) -> dict[str, float]:
    """Return what each feature adds to the log odds."""
    cells = {name: look.cell(seen) for name, look in looks.items()}
    return {
        name: weights.cells[name][cell] if cell < len(weights.cells[name]) else 0.0
        for name, cell in cells.items()
    }


def _sum(weights: Weights, looks: Mapping[str, Look]) -> Callable[[tuple[int, ...]], float]:
    """Return what adds up the weights of some features, and remembers the sums by what they look at."""
    places = sorted({place for look in looks.values() for place in look.places})
    if not places:
        return lambda _: 0.0
    pick = itemgetter(*places, places[0])  # never a single one, which would not be a tuple
    where = {place: number for number, place in enumerate(places)}
    terms = [
        (
            padded(weights.cells[name], look.size, 0.0),
            Look(look.features, [where[place] for place in look.places]),
        )
        for name, look in looks.items()
    ]

    @lru_cache(_SUMS)
    def added(picked: tuple[int, ...]) -> float:
        return sum([weights[look.cell(picked)] for weights, look in terms])

    return lambda seen: added(pick(seen))


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
