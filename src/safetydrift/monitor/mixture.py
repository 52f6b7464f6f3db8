"""Of which category a run is, as far as its words and where it went can say.

Everything here is looked up or counted.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, log, sqrt
from operator import add
from typing import TYPE_CHECKING

from msgspec.structs import replace

from safetydrift.monitor.model import AGGREGATE

if TYPE_CHECKING:
    from typing import Any

    from safetydrift.monitor.categories import Belief, Categories
    from safetydrift.monitor.model import Model

NEGLIGIBLE = 0.01
"""A category that is believed less than this share of the likeliest has no part in a verdict."""

SCANT = 1.0
"""Pseudo-observations by which a row of all runs is drawn to where runs go at all."""
_SLIGHT = 0.5
_MEMO = 4096

Row = dict[int, int]


class Mixture:
    """The categories of one model, ready to be asked of which one a run is.

    Parameters
    ----------
    model
        The model.
    categories
        Them.
    """

    __slots__ = (
        "_categories",
        "_counts",
        "_evidence",
        "_model",
        "_row_of",
        "_tables",
        "_weighed",
        "names",
        "shares",
    )

    def __init__(self, model: Model, categories: Categories) -> None:
        self.names: tuple[str, ...] = (AGGREGATE, *categories.names)
        """What a run may be of: first none of the categories, then each."""
        self._model, self._categories = model, categories
        self._row_of, self._tables = model.row_of, model.tables
        self._counts: tuple[dict[int, Row], ...] | None = None
        self._evidence = lru_cache(_MEMO)(self._transition)
        self._weighed = lru_cache(_MEMO)(self._weights)
        self.shares = lru_cache(_MEMO)(self._shares)
        """Return how much each of the names is believed, given a belief; the sum is one."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to make it again: what is remembered need not travel."""
        return Mixture, (self._model, self._categories)

    def _shares(self, belief: Belief) -> tuple[float, ...]:
        weights = self._weighed(belief)
        highest = max(weights)
        odds = [exp(weight - highest) for weight in weights]
        whole = sum(odds)
        return tuple([one / whole for one in odds])

    def _weights(self, belief: Belief) -> tuple[float, ...]:
        """Return the log of how much each name is believed, but for a constant."""
        *before, now = belief.path
        if not before:
            return self._prior(belief.given, belief.trust, belief.words)
        so_far = self._weighed(replace(belief, path=tuple(before)))
        return tuple(map(add, so_far, self._evidence(self._row_of[before[-1]], self._row_of[now])))

    def _prior(self, given: str, trust: float, words: frozenset[int]) -> tuple[float, ...]:
        categories = self._categories
        n = len(categories.names)
        each = log((1.0 - categories.elsewhere) / n)
        weights = [log(categories.elsewhere), *[each + score for score in self._fit(words)]]
        if given in categories.names and trust > 0.0:
            weights[1 + categories.names.index(given)] += log(trust * n / (1.0 - trust))
        return tuple(weights)

    def _fit(self, words: frozenset[int]) -> list[float]:
        """Return how much better each category explains the words than no category does, in log odds.

        Words go together, so that the sum over n of them would claim too much; it is divided by the root of n.
        """
        categories = self._categories
        pseudo, tasks = categories.pseudo_tasks, categories.tasks
        scores, known = [0.0] * len(tasks), 0
        for word in words:
            found = categories.words.get(word)
            if not found:
                continue
            known += 1
            shares = [0.0] * len(tasks)
            for number, count in found:
                shares[number] = count / tasks[number]
            mean = sum(shares) / len(shares)
            for number, share in enumerate(shares):
                n = tasks[number]
                scores[number] += log((share / mean * n + pseudo) / (n + pseudo))
        return [score / sqrt(known) for score in scores] if known else scores

    def _transition(self, origin: int, target: int) -> tuple[float, ...]:
        """Return what a transition between two rows says for each name, as a log likelihood."""
        whole, *parts = self._counted()
        row, arrivals = whole.get(origin), whole[_ARRIVALS]
        if row is None:
            return (0.0,) * len(self.names)
        anywhere = (arrivals.get(target, 0) + _SLIGHT) / (
            sum(arrivals.values()) + _SLIGHT * (len(arrivals) + 1)
        )
        seen, departures = row.get(target, 0), sum(row.values())
        pace, leaning = self._categories.pace, self._categories.leaning
        found = [(seen + SCANT * anywhere) / (departures + SCANT)]
        for part in parts:
            own = part.get(origin, {})
            mine, all_mine = own.get(target, 0), sum(own.values())
            # A damaged file may count more in a part than in the whole.
            others = (max(seen - mine, 0) + SCANT * anywhere) / (max(departures - all_mine, 0) + SCANT)
            found.append((mine + leaning * others) / (all_mine + leaning))
        return tuple([pace * log(one) for one in found])

    def _counted(self) -> tuple[dict[int, Row], ...]:
        """Return the transitions of all runs and of each category, by origin and target; made when first needed."""
        if self._counts is None:
            counts = []
            for name in self.names:
                rows: dict[int, Row] = {_ARRIVALS: {}}
                for origin, target, count in self._tables[name].counts:
                    rows.setdefault(origin, {})[target] = count
                    rows[_ARRIVALS][target] = rows[_ARRIVALS].get(target, 0) + count
                counts.append(rows)
            self._counts = tuple(counts)
        return self._counts


def mixture_of(model: Model) -> Mixture | None:
    """Return the mixture of a model's categories; None where there are none to choose from."""
    categories = model.categories
    return None if categories is None or len(categories.names) == 1 else Mixture(model, categories)


_ARRIVALS = -1
"""No row: how often each row was come to."""
