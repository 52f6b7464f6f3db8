"""Counting the words of tasks by category: what soft categories know before a run makes its first call."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from safetydrift.monitor.categories import Categories
from safetydrift.states.task_words import task_digest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from safetydrift.states.trajectory import Trajectory


def counted(
    trajectories: Iterable[Trajectory], tasks: Collection[str], before: Categories | None = None
) -> Categories | None:
    """Count in how many tasks of each category each word occurs.

    A task counts once, however many runs there are of it. What a run led to does not matter.

    Parameters
    ----------
    trajectories
        Runs; those without a category, and those of other tasks, have no say.
    tasks
        Digests of the tasks to count.
    before
        Counts to add to; none of the tasks is among them yet.

    Returns
    -------
    Categories, optional
        None if there is no category at all.
    """
    wanted = frozenset(tasks)
    words_of: dict[tuple[str, str], set[int]] = defaultdict(set)
    digests: dict[tuple[str, str, str], str] = {}
    for run in trajectories:
        task = (run.source, run.category, run.task)
        if not run.category:
            continue
        if task not in digests:
            digests[task] = task_digest(*task)
        if digests[task] in wanted:
            words_of[run.category, digests[task]].update(run.words)
    n_tasks: dict[str, int] = defaultdict(int)
    counts: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    if before is not None:
        n_tasks.update(zip(before.names, before.tasks, strict=True))
        for word, found in before.words.items():
            counts[word].update({before.names[number]: count for number, count in found})
    for (category, _), words in words_of.items():
        n_tasks[category] += 1
        for word in words:
            counts[word][category] += 1
    names = tuple(sorted(n_tasks))
    if not names:
        return None
    number = {name: place for place, name in enumerate(names)}
    return Categories(
        names=names,
        tasks=tuple([n_tasks[name] for name in names]),
        words={
            word: tuple(sorted((number[name], count) for name, count in counts[word].items()))
            for word in sorted(counts)
        },
    )
