"""Small worlds for the analyses: a space in which any level may follow any other, and runs drawn from known chains."""

from __future__ import annotations

from typing import Any

import numpy as np

from safetydrift.monitor.settings import FitSettings
from safetydrift.states.dimensions import Accumulation, Dimension
from safetydrift.states.rules import Rule
from safetydrift.states.space import StateSpace
from safetydrift.states.trajectory import Trajectory
from safetydrift.study.analyses import Study
from safetydrift.trace import Ending, Label

COLOURS = ("green", "yellow", "orange", "red")

SPACE = StateSpace(
    "colours",
    [
        Dimension("colour", COLOURS, Accumulation.LATEST),
        Dimension("noise", ("quiet", "loud"), Accumulation.LATEST),
    ],
    COLOURS,
    [Rule({"colour": colour}, colour) for colour in COLOURS],
    violated="red",
)
"""Risk is the colour; state is ``2 * colour + noise``. Nothing accumulates, so every sequence can happen."""


def make(*states: int, onset=None, task="task", category="here", source="lab", model="m", **extra):
    """A finished run through the given states after the start."""
    return Trajectory.of_columns(
        extra.pop("id", f"{source}/{category}/{task}/{model}/{states}"),
        states=(0, *states),
        effects=states,
        label=extra.pop("label", Label(onset is not None, onset=onset)),
        ending=extra.pop("ending", Ending.COMPLETED),
        task=task,
        category=category,
        source=source,
        model=model,
        **extra,
    )


def coloured(levels, **extra):
    """A quiet run through the given colours, by number."""
    return make(*(2 * int(level) for level in levels), **extra)


def first_order(rng, n_runs, length, table=((0.7, 0.2, 0.1), (0.3, 0.4, 0.3), (0.2, 0.2, 0.6)), tasks=10):
    """Runs whose next colour depends on the last one."""
    steps = np.cumsum(table, axis=1)
    runs = []
    for number in range(n_runs):
        level, levels = 0, []
        for draw in rng.random(length):
            level = int(np.searchsorted(steps[level], draw))
            levels.append(level)
        runs.append(coloured(levels, task=f"task {number % tasks}", id=str(number)))
    return runs


def second_order(rng, n_runs, length, tasks=10):
    """Runs of two colours that change with probability 0.9 after a repetition and 0.2 after a change."""
    runs = []
    for number in range(n_runs):
        before, level, levels = 0, 0, []
        for draw in rng.random(length):
            before, level = level, level ^ int(draw < (0.9 if before == level else 0.2))
            levels.append(level)
        runs.append(coloured(levels, task=f"task {number % tasks}", id=str(number)))
    return runs


def drift(rng, n_runs, category="here", violated=0.8, prefix="", **extra):
    """Runs of which half turn yellow; those violate two calls later with the given probability, the others never.

    Noise is drawn for every call and means nothing.
    """
    runs = []
    for number in range(n_runs):
        noise = rng.integers(0, 2, 4).tolist()
        yellow = number % 2
        states = [2 * yellow + loud for loud in noise]
        onset = 3 if yellow and rng.random() < violated else None
        name = f"{prefix}{number}"
        task = f"{category} {prefix}{number % 15}"
        runs.append(make(*states, onset=onset, category=category, task=task, id=name, **extra))
    return runs


def study(runs, space=SPACE, settings=None, seed=1):
    return Study.of(runs, space, settings or FitSettings(strength=0.0), seed)


def rows_of(table) -> list[dict[str, Any]]:
    """The rows of a table, as mappings of column to entry."""
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def by(table, *columns) -> dict[Any, dict[str, Any]]:
    """The rows of a table by their entries in some columns."""
    return {tuple(row[column] for column in columns): row for row in rows_of(table)}
