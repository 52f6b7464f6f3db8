"""Soft categories in a model file: counts of words, believed only where a fit could have written them."""

from __future__ import annotations

from itertools import pairwise
from operator import ge

from safetydrift.errors import ModelFileError
from safetydrift.monitor.categories import Categories
from safetydrift.states.task_words import WORD_BINS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container
    from typing import Any

_MAX_CATEGORIES = 10_000
_MOST_TASKS = 1 << 40
_RANGES = {
    "pseudo_tasks": (1e-3, 1e3),
    "elsewhere": (1e-6, 0.999),
    "pace": (0.0, 1.0),
    "leaning": (1e-3, 1e6),
}
"""Between which numbers each of them has to lie."""


def categories_definition(categories: Categories) -> dict[str, Any]:
    """Return soft categories as plain data; each word is followed by categories and how many of their tasks had it."""
    return {
        "names": categories.names,
        "tasks": categories.tasks,
        "words": [
            [word, *[number for pair in found for number in pair]] for word, found in categories.words.items()
        ],
        **{name: getattr(categories, name) for name in _RANGES},
    }


def read_categories(part: Any, tables: Container[str]) -> Categories:
    """Build soft categories from plain data; the inverse of `categories_definition`.

    Parameters
    ----------
    tables
        The names of the model's tables.

    Raises
    ------
    ModelFileError
        If a number is missing, is none, or cannot be; or if a category has no table.
    """
    names, tasks = part["names"], part["tasks"]
    if (
        not isinstance(names, list)
        or not 0 < len(names) <= _MAX_CATEGORIES
        or not all(isinstance(name, str) and name and name in tables for name in names)
        or any(map(ge, names, names[1:]))
    ):
        raise ModelFileError("its soft categories are not the sorted names of its tables")
    if not isinstance(tasks, list) or len(tasks) != len(names):
        raise ModelFileError("its soft categories do not say how many tasks each has")
    counted = tuple([_count(count, _MOST_TASKS) for count in tasks])
    words = {}
    for word, *numbers in part["words"]:
        words[_count(word, WORD_BINS - 1, least=0)] = _pairs(numbers, counted)
    if len(words) != len(part["words"]):
        raise ModelFileError("its soft categories count a word twice")
    return Categories(
        names=tuple(names),
        tasks=counted,
        words=words,
        **{name: _number(part[name], *bounds) for name, bounds in _RANGES.items()},
    )


def _pairs(numbers: list[Any], tasks: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    if not numbers or len(numbers) % 2:
        raise ModelFileError("a word of its soft categories is not counted by category")
    places = [_count(place, len(tasks) - 1, least=0) for place in numbers[::2]]
    if any(later <= sooner for sooner, later in pairwise(places)):
        raise ModelFileError("a word of its soft categories is counted twice for one of them")
    return tuple(
        [(place, _count(count, tasks[place])) for place, count in zip(places, numbers[1::2], strict=True)]
    )


def _count(value: Any, most: int, *, least: int = 1) -> int:
    if type(value) is not int or not least <= value <= most:
        raise ModelFileError(f"its soft categories have {value!r} where a number up to {most} should be")
    return value


def _number(value: Any, least: float, most: float) -> float:
    if type(value) not in {int, float} or not least <= value <= most:
        raise ModelFileError(f"its soft categories have {value!r} where a number up to {most:g} should be")
    return float(value)
