"""The tables of a model file: written as plain numbers, and read back with every one of them checked.

A model decides what is safe, so a table is believed only if it is one that a fit could have written.
"""

from __future__ import annotations

from math import nan

from safetydrift.monitor.model import RiskTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_CURVES = ("within", "uncertain")
_ROWS = ("eventually", "arrival", "departures", "visited", "expected_steps")
_ROUNDING = 2e-9
"""By how much figures of one table may contradict each other: each was rounded to nine places."""


def table_definition(table: RiskTable) -> dict[str, Any]:
    """Return a table as plain data."""
    definition: dict[str, Any] = {name: [_nullable(row) for row in getattr(table, name)] for name in _CURVES}
    definition.update({name: _nullable(getattr(table, name)) for name in _ROWS})
    definition["counts"] = table.counts
    return definition


def _nullable(values: Sequence[float]) -> list[float | None]:
    """Replace nan by null: JSON has no nan, and what is not known should look like it."""
    return [None if value != value else value for value in values]  # noqa: PLR0124


def read_table(part: Any, n_rows: int) -> RiskTable:
    """Return the table of one category.

    Raises
    ------
    ValueError, TypeError, KeyError
        If a part is missing, of the wrong kind or length, or no fit could have given it.
    """
    visited = _column(part, "visited", n_rows)
    if not all(type(flag) is bool for flag in visited):
        raise ValueError("'visited' holds something else than true and false")
    within, uncertain = (_curve(part, name, n_rows, visited) for name in _CURVES)
    eventually = _probabilities(_column(part, "eventually", n_rows), "eventually", visited)
    _check_growth(within, eventually)
    if len(uncertain) != len(within):
        raise ValueError("its curves differ in horizon")
    expected_steps = [nan if steps is None else steps for steps in _column(part, "expected_steps", n_rows)]
    if not all(type(steps) in {float, int} and not steps < 0 for steps in expected_steps):
        raise ValueError("'expected_steps' holds something else than durations")
    return RiskTable(
        within=within,
        eventually=eventually,
        uncertain=uncertain,
        arrival=_probabilities(_column(part, "arrival", n_rows), "arrival"),
        departures=_counted(_column(part, "departures", n_rows), "departures"),
        visited=tuple(visited),
        expected_steps=tuple(expected_steps),
        counts=_transitions(part["counts"], n_rows + 2),
    )


def _column(part: Any, name: str, n_rows: int) -> list[Any]:
    values = part[name]
    if not isinstance(values, list) or len(values) != n_rows:
        raise ValueError(f"'{name}' has not {n_rows} rows")
    return values


def _curve(part: Any, name: str, n_rows: int, visited: list[Any]) -> tuple[tuple[float, ...], ...]:
    curves = part[name]
    if not isinstance(curves, list) or len(curves) < 2:  # noqa: PLR2004
        raise ValueError(f"'{name}' has no horizon")
    return tuple([_probabilities(_column({name: curve}, name, n_rows), name, visited) for curve in curves])


def _probabilities(values: list[Any], name: str, visited: list[Any] | None = None) -> tuple[float, ...]:
    """Return probabilities; null stands for unknown, and only where nobody ever went on."""
    for row, value in enumerate(values):
        if value is None:
            if visited is not None and visited[row]:
                raise ValueError(f"'{name}' does not know row {row}, which was visited")
        elif type(value) not in {float, int} or not 0 <= value <= 1:
            raise ValueError(f"'{name}' holds {value!r}, which is no probability")
    return tuple([nan if value is None else value for value in values])


def _check_growth(within: tuple[tuple[float, ...], ...], eventually: tuple[float, ...]) -> None:
    if any(value > 0 for value in within[0]):
        raise ValueError("a violation within no steps at all")
    for sooner, later in zip(within, (*within[1:], eventually), strict=True):
        if any(earlier > after + _ROUNDING for earlier, after in zip(sooner, later, strict=True)):
            raise ValueError("a probability that falls as the horizon grows")


def _counted(values: list[Any], name: str) -> tuple[int, ...]:
    if not all(type(value) is int and value >= 0 for value in values):
        raise ValueError(f"'{name}' holds something else than counts")
    return tuple(values)


def _transitions(counts: Any, n_states: int) -> tuple[tuple[int, int, int], ...]:
    for triple in counts:
        origin, target, count = _counted(triple, "counts")
        if origin >= n_states or target >= n_states or count == 0:
            raise ValueError("'counts' holds a transition that cannot be")
    return tuple(map(tuple, counts))
