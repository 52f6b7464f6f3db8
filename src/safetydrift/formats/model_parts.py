"""The parts of a model file: tables as they are written, and what tells parts that a fit wrote from others."""

from __future__ import annotations

from itertools import pairwise
from math import isclose, nan
from operator import gt
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct, field

from safetydrift.errors import ModelFileError
from safetydrift.monitor.features import Features
from safetydrift.monitor.model import RiskTable
from safetydrift.monitor.outlook import Bounds, Endings
from safetydrift.monitor.risk_score import KINDS, LEVELS, WORD_SETS
from safetydrift.states.bounded import Count

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from safetydrift.monitor.categories import Categories
    from safetydrift.monitor.risk_score import Learned, RiskScore, Side, Weights
    from safetydrift.states.space import StateSpace

_ROUNDING = 2e-3
"""By what share figures of one table may contradict each other: each was rounded to four significant digits or more."""
_SHARES = 0.05
"""By how much shares of kinds may miss one: each was rounded to two places."""
_MAX_CATEGORIES = 10_000

Column = tuple[Annotated[float, Meta(ge=0.0, le=1.0)] | None, ...]
"""Probabilities by row; null where not known."""
Durations = tuple[Annotated[float, Meta(ge=0.0, le=1e300)] | None, ...]


class _Bounds(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    horizon: Annotated[int, Meta(ge=1)]
    low: Column
    high: Column
    pending_low: Column
    pending_high: Column
    eventually_low: Column
    eventually_high: Column


class _Endings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    completes: Column
    steps: Durations
    kinds: dict[str, Column]


class Table(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A `RiskTable` as it is written: null for what is not known, transitions as one list per origin."""

    within: Annotated[tuple[Column, ...], Meta(min_length=2)]
    uncertain: tuple[Column, ...]
    eventually: Column
    arrival: Column
    departures: tuple[Count, ...]
    visited: tuple[bool, ...]
    expected_steps: Durations
    counts: list[list[Count]] = field(default_factory=list)
    bounds: _Bounds | None = None
    endings: _Endings | None = None

    @classmethod
    def of(cls, table: RiskTable) -> Table:
        """Return a table as it is written."""
        bounds, endings = table.bounds, table.endings
        by_origin: dict[int, list[int]] = {}
        for origin, target, count in table.counts:
            by_origin.setdefault(origin, [origin]).extend((target, count))
        return cls(
            within=tuple(map(_nullable, table.within)),
            uncertain=tuple(map(_nullable, table.uncertain)),
            eventually=_nullable(table.eventually),
            arrival=_nullable(table.arrival),
            departures=table.departures,
            visited=table.visited,
            expected_steps=_nullable(table.expected_steps),
            counts=list(by_origin.values()),
            bounds=None
            if bounds is None
            else _Bounds(
                horizon=bounds.horizon, **{name: _nullable(getattr(bounds, name)) for name in _ENDS}
            ),
            endings=None
            if endings is None
            else _Endings(
                completes=_nullable(endings.completes),
                steps=_nullable(endings.steps),
                kinds={kind: _nullable(shares) for kind, shares in endings.kinds},
            ),
        )

    def read(self, n_rows: int) -> RiskTable:
        """Return the table.

        Raises
        ------
        ValueError
            If no fit could have given it.
        """
        columns = (*self.within, *self.uncertain, self.eventually, self.arrival, self.expected_steps)
        if any(len(column) != n_rows for column in (*columns, self.departures, self.visited)):
            raise ValueError(f"a table that has not {n_rows} rows")
        if len(self.uncertain) != len(self.within):
            raise ValueError("its curves differ in horizon")
        for column in (*self.within, *self.uncertain, self.eventually):
            if None in column and any(
                known and value is None for known, value in zip(self.visited, column, strict=True)
            ):
                raise ValueError("a probability that is not known of a row that was visited")
        within, eventually = tuple(map(_known, self.within)), _known(self.eventually)
        _check_growth(within, eventually)
        return RiskTable(
            within=within,
            eventually=eventually,
            uncertain=tuple(map(_known, self.uncertain)),
            arrival=_known(self.arrival),
            departures=self.departures,
            visited=self.visited,
            expected_steps=_known(self.expected_steps),
            counts=_transitions(self.counts, n_rows + 2),
            bounds=None if self.bounds is None else _read_bounds(self.bounds, n_rows, len(within) - 1),
            endings=None if self.endings is None else _read_endings(self.endings, n_rows),
        )


_ENDS = ("low", "high", "pending_low", "pending_high", "eventually_low", "eventually_high")


def check_categories(categories: Categories, tables: Container[str]) -> None:
    """Check soft categories.

    Parameters
    ----------
    tables
        The names of the model's tables.

    Raises
    ------
    ModelFileError
        If a category has no table, or no fit could have counted so.
    """
    names, tasks = categories.names, categories.tasks
    sorted_once = all(sooner < later for sooner, later in pairwise(names))
    if not 0 < len(names) <= _MAX_CATEGORIES or not sorted_once or not all(n and n in tables for n in names):
        raise ModelFileError("its soft categories are not the sorted names of its tables")
    if len(tasks) != len(names):
        raise ModelFileError("its soft categories do not say how many tasks each has")
    for found in categories.words.values():
        places = [place for place, _ in found]
        if not found or max(places) >= len(names) or sorted(set(places)) != places:
            raise ModelFileError("a word of its soft categories is not counted once by category")
        if any(not 0 < count <= tasks[place] for place, count in found):
            raise ModelFileError("a word of its soft categories is counted in more tasks than there are")


def check_risk_score(score: RiskScore, space: StateSpace, max_horizon: int) -> None:
    """Check a risk score: its sizes are those of its features and of the pipelines it knows.

    Raises
    ------
    ModelFileError
        If it looks at something unknown, or a number is missing or too many.
    SpaceMismatchError
        If the space lacks a dimension that it looks at.
    """
    current = score.current.weights.cells
    if [name for name in score.proposal.weights.cells if name in current] != list(current):
        raise ModelFileError("the score of its proposals does not begin with that of where runs stand")
    added = [name for name in score.proposal.weights.cells if name not in current]
    features = Features(space, current, added)
    sizes = {name: feature.size for name, feature in features.all.items()}
    for side in (score.current, score.proposal):
        if len(side.within) != max_horizon:
            raise ModelFileError("its risk score and its tables differ in horizon")
        _check_weights(side.weights, sizes, len(score.traits))
        if side.learned is not None:
            _check_learned(side.learned, side, sizes)


def _check_weights(weights: Weights, sizes: dict[str, int], n_traits: int) -> None:
    wrong = [name for name, cells in weights.cells.items() if len(cells) > sizes[name]]
    if wrong:
        raise ModelFileError(f"its risk score has more weights for {wrong[0]!r} than that has cells")
    if len(weights.traits) != n_traits or len(weights.traits_exposed) != n_traits:
        raise ModelFileError("its risk score has not one weight for everything that names of pipelines say")
    if set(weights.words) != set(WORD_SETS):
        raise ModelFileError(f"its risk score has not weights for the words of {', '.join(WORD_SETS)}")


def _check_learned(learned: Learned, side: Side, sizes: dict[str, int]) -> None:
    weights = side.weights
    texts = [(learned.words[which], len(weights.words[which])) for which in WORD_SETS]
    texts += [(one, len(weights.traits)) for one in (learned.traits, learned.traits_exposed)]
    if set(learned.variances) != set(KINDS) or learned.cells.keys() != weights.cells.keys():
        raise ModelFileError("its risk score does not say how sure it is of each kind of weights")
    if any(len(text) != size for text, size in texts) or any(
        len(text) > sizes[name] for name, text in learned.cells.items()
    ):
        raise ModelFileError("its risk score does not say how sure it is of each of its weights")
    if any(text.strip(LEVELS) for text in (*[text for text, _ in texts], *learned.cells.values())):
        raise ModelFileError("its risk score is more sure of a weight than any fit could be")
    if any(link.between is None for link in (*side.within, side.eventually)):
        raise ModelFileError("its risk score does not say how much tasks differ")


def _read_bounds(part: _Bounds, n_rows: int, max_horizon: int) -> Bounds:
    if part.horizon > max_horizon:
        raise ValueError(f"bounds for a horizon of {part.horizon}")
    columns = {name: _known(getattr(part, name)) for name in _ENDS}
    if any(len(column) != n_rows for column in columns.values()):
        raise ValueError(f"bounds that have not {n_rows} rows")
    for low, high in zip(_ENDS[::2], _ENDS[1::2], strict=True):
        if any(map(gt, columns[low], columns[high])):
            raise ValueError(f"'{low}' lies above '{high}'")
    return Bounds(horizon=part.horizon, **columns)


def _read_endings(part: _Endings, n_rows: int) -> Endings:
    kinds = {kind: _known(shares) for kind, shares in part.kinds.items()}
    if any(len(column) != n_rows for column in (part.completes, part.steps, *kinds.values())):
        raise ValueError(f"endings that have not {n_rows} rows")
    for shares in zip(*kinds.values(), strict=True):
        whole = sum(shares)
        if whole == whole and not isclose(whole, 1.0, abs_tol=_SHARES):  # noqa: PLR0124  # not nan
            raise ValueError("shares of kinds that do not add up")
    return Endings(_known(part.completes), _known(part.steps), tuple(kinds.items()))


def _check_growth(within: tuple[tuple[float, ...], ...], eventually: tuple[float, ...]) -> None:
    if any(value > 0 for value in within[0]):
        raise ValueError("a violation within no steps at all")
    for sooner, later in zip(within, (*within[1:], eventually), strict=True):
        # What does not fall at all needs no second look.
        if any(map(gt, sooner, later)) and any(
            earlier > after * (1.0 + _ROUNDING) for earlier, after in zip(sooner, later, strict=True)
        ):
            raise ValueError("a probability that falls as the horizon grows")


def _transitions(origins: list[list[int]], n_states: int) -> tuple[tuple[int, int, int], ...]:
    transitions = []
    for origin, *pairs in origins:
        if len(pairs) % 2 or max(origin, *pairs[::2], 0) >= n_states or 0 in pairs[1::2]:
            raise ValueError("'counts' holds a transition that cannot be")
        transitions += [(origin, *pair) for pair in zip(pairs[::2], pairs[1::2], strict=True)]
    return tuple(transitions)


def _nullable(values: Sequence[float]) -> tuple[float | None, ...]:
    """Replace nan by null: JSON has no nan, and what is not known should look like it. Zeros take one character."""
    return tuple([None if value != value else value or 0 for value in values])  # noqa: PLR0124


def _known(values: tuple[float | None, ...]) -> tuple[float, ...]:
    if None not in values:
        return values  # type: ignore[return-value]  # as was just seen
    return tuple([nan if value is None else value for value in values])
