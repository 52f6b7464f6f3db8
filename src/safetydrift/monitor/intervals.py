"""Between which probabilities those of a risk score lie.

Two things are not known. *What a weight is*: every weight of a kind (of models, of tools, of words) comes from a normal
distribution around zero, whose variance is what the known weights of that kind spread by; runs have taken a part of
that variance away, more the more they told about the weight, and nothing for a model, a tool or a word that was never
seen. *What the next task is like*: tasks that look the same to the score differ, and by how much was measured on tasks
that it had not seen. Both add up on the scale of log odds; nothing here is drawn at random.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, log, sqrt
from operator import getitem
from typing import TYPE_CHECKING

from safetydrift.monitor.pipelines import MODEL, PIPELINE
from safetydrift.monitor.risk_score import EXPOSED, LEVELS, TOOLS, WORD_SETS
from safetydrift.monitor.scoring import logistic, padded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from safetydrift.monitor.facts import Facts
    from safetydrift.monitor.pipelines import Pipeline, Traits
    from safetydrift.monitor.risk_score import Learned, Link, Weights, WordSet

STEPS_PER_UNIT = 8
"""Standard deviations of a score are rounded to this fraction of a unit, so that verdicts are found again."""

_QUANTILE = 1.6448536269514722
"""Of the normal distribution, at 0.95: an interval leaves out 0.05 at either end."""
_NODES = tuple([number / 2.0 for number in range(-10, 11)])
_DENSITY = tuple([exp(-0.5 * node * node) for node in _NODES])
_SHARES = tuple([density / sum(_DENSITY) for density in _DENSITY])
_FURTHEST = 40.0
"""Log odds beyond which probabilities are 0 or 1 whatever is done to them."""
_ROUNDS = 30
_CLOSE = 1e-7


def left(level: int) -> float:
    """Return the share of a weight's variance that is left at a level; at level 0 nothing is known about it.

    >>> [left(level) for level in (0, 2, 4)]
    [1.0, 0.5, 0.25]
    """
    return float(2.0 ** (-0.5 * level))


class Deviation:
    """The standard deviation of a score, ready to be asked: the counterpart of `Score`.

    Parameters
    ----------
    weights
        Of the score.
    learned
        How much is known about them.
    sizes
        How many cells each of its features has, by name, in the order in which the cells will be given.
    traits
        What names of pipelines can say.
    """

    __slots__ = ("_kinds", "_of_run", "_tables", "_tools", "_traits", "_variances", "_words")

    def __init__(self, weights: Weights, learned: Learned, sizes: Mapping[str, int], traits: Traits) -> None:
        self._kinds = traits.kinds
        variances = self._variances = learned.variances
        unknown = variances["cells"]
        self._tables = tuple(
            [padded(_variances(learned.cells[name], unknown), size, unknown) for name, size in sizes.items()]
        )
        self._tools = [
            (variances[kind], {name: variances[kind] * left(level) for name, level in levels.items()})
            for kind, levels in zip(TOOLS, learned.tools, strict=True)
        ]
        self._words = {
            which: dict(
                zip(
                    weights.words[which],
                    _variances(learned.words[which], variances[which]),
                    strict=True,
                )
            )
            for which in WORD_SETS
        }
        self._traits = [
            [
                variances[kind + suffix] * left(LEVELS.index(level))
                for kind, level in zip(self._kinds, levels, strict=True)
            ]
            for suffix, levels in (("", learned.traits), (EXPOSED, learned.traits_exposed))
        ]
        self._of_run = lru_cache(4096)(self._run)

    def __call__(self, cells: Sequence[int], facts: Facts, pipeline: Pipeline, tools: tuple[str, str]) -> int:
        """Return the standard deviation, rounded, in steps; the arguments are those of `Score`."""
        variance = self._of_run(facts.task_words, facts.injected_words, facts.heard_words, pipeline) + sum(
            map(getitem, self._tables, cells)
        )
        for (unknown, known), tool in zip(self._tools, tools, strict=True):
            variance += known.get(tool, unknown) if tool else 0.0
        return int(sqrt(variance) * STEPS_PER_UNIT + 0.5)

    def _run(
        self, task: frozenset[int], injected: frozenset[int], heard: frozenset[int], pipeline: Pipeline
    ) -> float:
        sets = zip(WORD_SETS, (task, injected, heard), strict=True)
        variance = sum([self._of_words(which, words) for which, words in sets])
        unknown = {MODEL, PIPELINE}.difference([self._kinds[trait] for trait in pipeline])
        for suffix, variances in list(zip(("", EXPOSED), self._traits, strict=True))[: 2 if injected else 1]:
            variance += sum([variances[trait] for trait in pipeline])
            variance += sum([self._variances[kind + suffix] for kind in unknown])
        return variance

    def _of_words(self, which: WordSet, words: frozenset[int]) -> float:
        if not words:
            return 0.0
        known, unknown = self._words[which], self._variances[which]
        return float(sum([known.get(word, unknown) for word in words])) / len(words)


def ends(score: float, link: Link, steps: int) -> tuple[float, float]:
    """Return the ends of the interval that a probability lies in with a posterior probability of 0.9.

    Parameters
    ----------
    score
        The score.
    link
        The link that gives the probability; one whose variance between tasks was fitted.
    steps
        The standard deviation of the score, as `Deviation` gives it.
    """
    between, deviation = link.between or 0.0, steps / STEPS_PER_UNIT
    middle = centre(link.intercept + link.slope * score, between)
    reach = _QUANTILE * sqrt(between + link.left * (link.slope * deviation) ** 2)
    return logistic(middle - reach), logistic(middle + reach)


def centre(odds: float, variance: float) -> float:
    """Return the mean of the normal distribution of log odds whose mean probability has the log odds given.

    A link is fitted to the mean over all tasks, and the typical task lies further from one half than the mean.

    >>> centre(-2.0, 0.0), centre(0.0, 1.0), round(centre(-2.0, 1.0), 2)
    (-2.0, 0.0, -2.35)
    """
    if variance <= 0.0 or odds == 0.0 or abs(odds) > _FURTHEST:
        return odds
    if odds > 0.0:
        return -centre(-odds, variance)
    deviation, found = sqrt(variance), odds
    for _ in range(_ROUNDS):
        each = [logistic(found + deviation * node) for node in _NODES]
        mean = sum([share * one for share, one in zip(_SHARES, each, strict=True)])
        slope = sum([share * one * (1.0 - one) for share, one in zip(_SHARES, each, strict=True)])
        step = (log(mean / (1.0 - mean)) - odds) * mean * (1.0 - mean) / slope
        found -= step
        if abs(step) < _CLOSE:
            break
    return found


def _variances(levels: str, variance: float) -> tuple[float, ...]:
    by_level = {character: variance * left(level) for level, character in enumerate(LEVELS)}
    return tuple([by_level[character] for character in levels])
