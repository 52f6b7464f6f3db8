"""Soft categories: what there is to tell the kind of a task by.

A deployment rarely says of which category a task is. Each category is then believed with a probability: first by the
words of the task, of which a model counts in how many tasks of each category they occurred; then by where the run
goes, since each category has a chain. One more possibility is none of them, whose chain is that of all runs.
`safetydrift.monitor.mixture` turns this into probabilities.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from safetydrift.states.bounded import Count, Word, Words

HEARD = 64
"""So many transitions of a run say of which category it is; later ones are not heard, so that a state stays small."""


class Categories(Struct, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=True):
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

    names: tuple[str, ...]
    tasks: tuple[Annotated[int, Meta(ge=1, le=1 << 40)], ...]
    words: Mapping[Word, tuple[tuple[Count, Count], ...]]
    pseudo_tasks: Annotated[float, Meta(ge=1e-3, le=1e3)] = 1.0
    elsewhere: Annotated[float, Meta(ge=1e-6, le=0.999)] = 0.05
    pace: Annotated[float, Meta(ge=0.0, le=1.0)] = 0.5
    leaning: Annotated[float, Meta(ge=1e-3, le=1e6)] = 5.0


class Belief(Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """What there is to tell a run's category by; probabilities are worked out when somebody asks for them.

    Parameters
    ----------
    given
        The category somebody named; empty if nobody did, or none that the model knows.
    trust
        Probability that whoever named it was right.
    words
        The words of the task.
    path
        The states it stood in, from the start, for up to `HEARD` transitions.
    """

    given: str
    trust: Annotated[float, Meta(ge=0.0, lt=1.0)]
    words: Words
    path: Annotated[tuple[Count, ...], Meta(min_length=1, max_length=HEARD + 1)]

    def asked(self, words: Iterable[int]) -> Belief:
        """Return it with more words of the task."""
        return replace(self, words=self.words.union(words))

    def after(self, state: int) -> Belief:
        """Return it after a transition to a state; after `HEARD` of them nothing is added any more."""
        path = self.path
        return self if len(path) > HEARD else Belief(self.given, self.trust, self.words, (*path, state))
