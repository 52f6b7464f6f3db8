"""Soft categories: of which kind a task is, as far as its words and the run so far can say.

A deployment rarely says of which category a task is. Each category is then believed with a probability: first by the
words of the task, of which a model counts in how many tasks of each category they occurred; then by where the run
goes, since each category has a chain. One more possibility is none of them, whose chain is that of all runs.

Everything here is looked up or counted; nothing needs more than the standard library.
"""

from __future__ import annotations

from collections import namedtuple
from functools import lru_cache
from math import exp, log, sqrt
from operator import add

from safetydrift.errors import SnapshotError
from safetydrift.monitor.model import AGGREGATE
from safetydrift.states.task_words import WORD_BINS
from safetydrift.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from safetydrift.monitor.model import Model
    from safetydrift.states.space import StateSpace

HEARD = 64
"""So many transitions of a run say of which category it is; later ones are not heard, so that a state stays small."""

NEGLIGIBLE = 0.01
"""A category that is believed less than this share of the likeliest has no part in a verdict."""

SCANT = 1.0
"""Pseudo-observations by which a row of all runs is drawn to where runs go at all."""
_SLIGHT = 0.5
_MEMO = 4096

Row = dict[int, int]


class Categories(Value):
    """In how many tasks of each category each word occurred, and how much that and transitions are believed.

    Parameters
    ----------
    names
        The categories, sorted; none of them is empty.
    tasks
        How many tasks of each were counted.
    words
        By word, pairs of a category's number and how many of its tasks had the word.
    pseudo_tasks
        Tasks, of no category in particular, by which the share of tasks that had a word is drawn to the mean over
        categories.
    elsewhere
        Prior probability that a task is of none of the categories.
    pace
        By how much the log likelihood of a transition counts: less than one, for runs of one category differ.
    leaning
        Pseudo-observations by which a category's transitions are drawn to those of all other runs.
    """

    __slots__ = ("elsewhere", "leaning", "names", "pace", "pseudo_tasks", "tasks", "words")
    names: tuple[str, ...]
    tasks: tuple[int, ...]
    words: Mapping[int, tuple[tuple[int, int], ...]]
    pseudo_tasks: float
    elsewhere: float
    pace: float
    leaning: float

    def __init__(
        self,
        *,
        names: tuple[str, ...],
        tasks: tuple[int, ...],
        words: Mapping[int, tuple[tuple[int, int], ...]],
        pseudo_tasks: float = 1.0,
        elsewhere: float = 0.05,
        pace: float = 0.5,
        leaning: float = 5.0,
    ) -> None:
        self._fill(
            names=names,
            tasks=tasks,
            words=words,
            pseudo_tasks=pseudo_tasks,
            elsewhere=elsewhere,
            pace=pace,
            leaning=leaning,
        )


_Told = namedtuple("_Told", "given trust words")  # noqa: PYI024  # typing is not imported beside an agent


class Told(_Told):
    """What is known of a run's category before its first call.

    Parameters
    ----------
    given
        The category somebody named; empty if nobody did, or none that the model knows.
    trust
        Probability that whoever named it was right.
    words
        The words of the task.
    """

    __slots__ = ()
    given: str
    trust: float
    words: frozenset[int]

    def asked(self, words: Iterable[int]) -> Told:
        """Return it with more words of the task."""
        return Told(self.given, self.trust, self.words.union(words))


Belief = tuple[Told, *tuple[int, ...]]
"""What there is to tell a run's category by: what was told, and the states it stood in, from the start, for up to
`HEARD` transitions. A plain tuple, since one is made at every step; probabilities are worked out when asked for."""

LONGEST = HEARD + 2
"""Parts of a belief to which nothing is added any more."""


def snapshot(belief: Belief) -> list[Any]:
    """Return a belief as plain data that JSON can hold."""
    (given, trust, words), *path = belief
    return [given, trust, sorted(words), path]


def restore(parts: Any, space: StateSpace) -> Belief:
    """Return a belief from what `snapshot` gave.

    Raises
    ------
    SnapshotError
        If it is no such data.
    """
    try:
        given, trust, words, path = parts
    except (TypeError, ValueError) as error:
        raise SnapshotError("not what a run's category is told by") from error
    if (
        not isinstance(given, str)
        or type(trust) not in {int, float}
        or not 0.0 <= trust < 1.0
        or not _numbers(words, WORD_BINS)
        or not _numbers(path, space.n_states)
        or not 0 < len(path) <= HEARD + 1
    ):
        raise SnapshotError("not what a run's category is told by")
    return Told(given, float(trust), frozenset(words)), *path


def _numbers(part: Any, below: int) -> bool:
    return isinstance(part, list) and all(type(number) is int and 0 <= number < below for number in part)


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
        told, *path = belief
        if len(path) == 1:
            return self._prior(*told)
        *before, now = path
        so_far = self._weighed((told, *before))
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
