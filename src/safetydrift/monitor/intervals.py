"""Between which probabilities those of a hazard lie.

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

from safetydrift.monitor.hazard import KINDS, logistic
from safetydrift.monitor.pipelines import MODEL, PIPELINE

if TYPE_CHECKING:
    from safetydrift.monitor.covariates import Covariates
    from safetydrift.monitor.hazard import Learned, LinkSpread, Weights
    from safetydrift.monitor.pipelines import Marks, Pipeline

LEVELS = "0123456789abcdefghijklmnopqrstuvwxyz"
"""The level of what is known about a weight, a character each; see `left`."""

STEPS_PER_UNIT = 8
"""Standard deviations of a score are rounded to this fraction of a unit, so that verdicts are found again."""

MOST_BETWEEN = 16.0
"""The largest variance between tasks that is believed."""

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
    marks
        What names of pipelines can say.
    """

    __slots__ = ("_kinds", "_learned", "_marks", "_of_run", "_tables", "_variances", "_words")

    def __init__(self, weights: Weights, learned: Learned, marks: Marks) -> None:
        self._learned = learned
        self._kinds = marks.kinds
        self._variances = dict(zip(KINDS, learned.variances, strict=True))
        variance = self._variances["tables"]
        known = [_variances(levels, variance) for levels in learned.tables]
        self._tables = tuple(
            [
                found + (variance,) * (len(table) - len(found))
                for found, table in zip(known, weights.tables, strict=True)
            ]
        )
        self._words = {
            kind: dict(
                zip(
                    getattr(weights, kind),
                    _variances(getattr(learned, kind), self._variances[kind]),
                    strict=True,
                )
            )
            for kind in ("task", "orders", "heard")
        }
        self._marks = [
            [
                self._variances[kind + suffix] * left(LEVELS.index(level))
                for kind, level in zip(self._kinds, levels, strict=True)
            ]
            for suffix, levels in (("", learned.marks), ("_exposed", learned.marks_exposed))
        ]
        self._of_run = lru_cache(4096)(self._run)

    def __call__(
        self, cells: tuple[int, ...], past: Covariates, pipeline: Pipeline, tools: tuple[str, str]
    ) -> int:
        """Return the standard deviation, rounded, in steps; the arguments are those of `Score`."""
        variance = (
            self._of_run(past.task_words, past.order_words, past.heard_words, pipeline)
            + sum(map(getitem, self._tables, cells))
            + self._tool("last", tools[0])
            + self._tool("before", tools[1])
        )
        return int(sqrt(variance) * STEPS_PER_UNIT + 0.5)

    def _run(
        self, task: frozenset[int], orders: frozenset[int], heard: frozenset[int], pipeline: Pipeline
    ) -> float:
        variance = sum(
            [
                self._of_words(kind, words)
                for kind, words in (("task", task), ("orders", orders), ("heard", heard))
            ]
        )
        unknown = {MODEL, PIPELINE}.difference([self._kinds[mark] for mark in pipeline])
        for suffix, variances in list(zip(("", "_exposed"), self._marks, strict=True))[: 2 if orders else 1]:
            variance += sum([variances[mark] for mark in pipeline])
            variance += sum([self._variances[kind + suffix] for kind in unknown])
        return variance

    def _of_words(self, kind: str, words: frozenset[int]) -> float:
        if not words:
            return 0.0
        known, unknown = self._words[kind], self._variances[kind]
        return float(sum([known.get(word, unknown) for word in words])) / len(words)

    def _tool(self, kind: str, name: str) -> float:
        return self._variances[kind] * left(getattr(self._learned, kind).get(name, 0)) if name else 0.0


def ends(score: float, link: tuple[float, float], spread: LinkSpread, steps: int) -> tuple[float, float]:
    """Return the ends of the interval that a probability lies in with a posterior probability of 0.9.

    Parameters
    ----------
    score
        The score.
    link
        Intercept and slope of the link that gives the probability.
    spread
        What is not known about the link's log odds.
    steps
        The standard deviation of the score, as `Deviation` gives it.
    """
    deviation = steps / STEPS_PER_UNIT
    middle = centre(link[0] + link[1] * score, spread.between)
    reach = _QUANTILE * sqrt(spread.between + spread.left * (link[1] * deviation) ** 2)
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
