"""The tables of a model file: written as plain numbers, and read back with every one of them checked.

A model decides what is safe, so a table is believed only if it is one that a fit could have written.
"""

from __future__ import annotations

from math import inf, isnan, nan
from operator import gt

from safetydrift.monitor.model import RiskTable
from safetydrift.monitor.outlook import Bounds, Endings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_CURVES = ("within", "uncertain")
_ROWS = ("eventually", "arrival", "departures", "expected_steps")
_BOUNDS = ("low", "high", "arriving_low", "arriving_high", "eventually_low", "eventually_high")
_ROUNDING = 2e-3
"""By what share figures of one table may contradict each other: each was rounded to four significant digits or more."""
_SHARES = 0.05
"""By how much shares of kinds may miss one: each was rounded to two places."""


def table_definition(table: RiskTable) -> dict[str, Any]:
    """Return a table as plain data."""
    definition: dict[str, Any] = {name: [_nullable(row) for row in getattr(table, name)] for name in _CURVES}
    definition.update({name: _nullable(getattr(table, name)) for name in _ROWS})
    definition.update(visited=table.visited, counts=_by_origin(table.counts))
    if table.bounds is not None:
        definition["bounds"] = {"horizon": table.bounds.horizon} | {
            name: _nullable(getattr(table.bounds, name)) for name in _BOUNDS
        }
    if table.endings is not None:
        definition["endings"] = {
            "completes": _nullable(table.endings.completes),
            "steps": _nullable(table.endings.steps),
            "kinds": {kind: _nullable(shares) for kind, shares in table.endings.kinds},
        }
    return definition


def _nullable(values: Sequence[float]) -> list[float | None]:
    """Replace nan by null: JSON has no nan, and what is not known should look like it. Zeros take one character."""
    return [None if value != value else value or 0 for value in values]  # noqa: PLR0124


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
    return RiskTable(
        within=within,
        eventually=eventually,
        uncertain=uncertain,
        arrival=_probabilities(_column(part, "arrival", n_rows), "arrival"),
        departures=_counted(_column(part, "departures", n_rows), "departures"),
        visited=tuple(visited),
        expected_steps=_durations(_column(part, "expected_steps", n_rows), "expected_steps"),
        counts=_transitions(part["counts"], n_rows + 2),
        bounds=_bounds(part["bounds"], n_rows, len(within) - 1) if "bounds" in part else None,
        endings=_endings(part["endings"], n_rows) if "endings" in part else None,
    )


def _bounds(part: Any, n_rows: int, max_horizon: int) -> Bounds:
    horizon = part["horizon"]
    if type(horizon) is not int or not 0 < horizon <= max_horizon:
        raise ValueError(f"bounds for a horizon of {horizon!r}")
    columns = {name: _probabilities(_column(part, name, n_rows), name) for name in _BOUNDS}
    for low, high in zip(_BOUNDS[::2], _BOUNDS[1::2], strict=True):
        if any(below > above for below, above in zip(columns[low], columns[high], strict=True)):
            raise ValueError(f"'{low}' lies above '{high}'")
    return Bounds(horizon=horizon, **columns)


def _endings(part: Any, n_rows: int) -> Endings:
    kinds = part["kinds"]
    if not isinstance(kinds, dict):
        raise TypeError("'kinds' is no table")
    columns = [(kind, _probabilities(_column(kinds, kind, n_rows), kind)) for kind in kinds]
    for shares in zip(*[values for _, values in columns], strict=True):
        if abs(sum(shares) - 1.0) > _SHARES:
            raise ValueError("shares of kinds that do not add up")
    return Endings(
        _probabilities(_column(part, "completes", n_rows), "completes"),
        _durations(_column(part, "steps", n_rows), "steps"),
        tuple(columns),
    )


def _durations(values: list[Any], name: str) -> tuple[float, ...]:
    if not all(value is None or (type(value) in {float, int} and 0 <= value < inf) for value in values):
        raise ValueError(f"'{name}' holds something else than durations")
    return tuple([nan if value is None else float(value) for value in values])


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
    unknown = [row for row, value in enumerate(values) if value is None]
    known = [value for value in values if value is not None] if unknown else values
    if _surely_probabilities(known) and not (visited and any(visited[row] for row in unknown)):
        if not unknown:
            return tuple(map(float, values))
        return tuple([nan if value is None else float(value) for value in values])
    for row, value in enumerate(values):
        if value is None:
            if visited is not None and visited[row]:
                raise ValueError(f"'{name}' does not know row {row}, which was visited")
        elif type(value) not in {float, int} or not 0 <= value <= 1:
            raise ValueError(f"'{name}' holds {value!r}, which is no probability")
    return tuple([nan if value is None else float(value) for value in values])


def _surely_probabilities(values: list[Any]) -> bool:
    """Return whether values are probabilities, all of them at once; no look at each says which is none."""
    return (
        set(map(type, values)) <= {float, int}
        and min(values, default=0) >= 0
        and max(values, default=0) <= 1
        and not isnan(sum(values))  # neither `min` nor `max` is sure to find a nan
    )


def _check_growth(within: tuple[tuple[float, ...], ...], eventually: tuple[float, ...]) -> None:
    if any(value > 0 for value in within[0]):
        raise ValueError("a violation within no steps at all")
    for sooner, later in zip(within, (*within[1:], eventually), strict=True):
        # What does not fall at all needs no second look.
        if any(map(gt, sooner, later)) and any(
            earlier > after * (1.0 + _ROUNDING) for earlier, after in zip(sooner, later, strict=True)
        ):
            raise ValueError("a probability that falls as the horizon grows")


def _counted(values: list[Any], name: str) -> tuple[int, ...]:
    if not all(type(value) is int and value >= 0 for value in values):
        raise ValueError(f"'{name}' holds something else than counts")
    return tuple(values)


def _by_origin(counts: Sequence[tuple[int, int, int]]) -> list[list[int]]:
    """Return transitions as one list per origin: the origin, then each target followed by its count."""
    origins: dict[int, list[int]] = {}
    for origin, target, count in counts:
        origins.setdefault(origin, [origin]).extend((target, count))
    return list(origins.values())


def _transitions(origins: Any, n_states: int) -> tuple[tuple[int, int, int], ...]:
    transitions = []
    for numbers in origins:
        origin, *pairs = _counted(numbers, "counts")
        if len(pairs) % 2 or max(origin, *pairs[::2], 0) >= n_states or 0 in pairs[1::2]:
            raise ValueError("'counts' holds a transition that cannot be")
        transitions += [(origin, *pair) for pair in zip(pairs[::2], pairs[1::2], strict=True)]
    return tuple(transitions)
