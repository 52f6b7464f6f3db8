"""The hazard in a model file: plain numbers, believed only where a fit could have written them."""

from __future__ import annotations

from math import isfinite

from safetydrift.errors import ModelFileError
from safetydrift.monitor.covariates import Factors
from safetydrift.monitor.hazard import KINDS, Hazard, Learned, LinkSpread, Spread, Weights
from safetydrift.monitor.intervals import LEVELS, MOST_BETWEEN
from safetydrift.monitor.pipelines import Marks
from safetydrift.states.task_words import WORD_BINS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from safetydrift.states.space import StateSpace

_MAX_NAMES = 10_000
_HIGHEST = 1e3
_HIGHEST_VARIANCE = 100.0
_NUMBERED = ("marks", "marks_exposed")
_OF_WORDS = ("task", "orders", "heard")


def hazard_definition(hazard: Hazard) -> dict[str, Any]:
    """Return a hazard as plain data; zeros at the end of a table are left out."""
    return {
        "marks": hazard.marks.marks,
        "standing": _weights_definition(hazard.standing),
        "proposal": _weights_definition(hazard.proposal),
        "within": hazard.within,
        "eventually": hazard.eventually,
        "proposed": hazard.proposed,
        **({} if hazard.spread is None else {"spread": _spread_definition(hazard.spread)}),
    }


def read_hazard(part: Any, space: StateSpace, max_horizon: int) -> Hazard:
    """Build a hazard from plain data; the inverse of `hazard_definition`.

    Raises
    ------
    ModelFileError
        If a number is missing, is none, or is out of proportion.
    SpaceMismatchError
        If the space lacks a dimension that a hazard looks at.
    """
    factors = Factors(space)
    marks = _marks(part["marks"])
    sizes = factors.standing_sizes
    links = {name: tuple([_pair(link) for link in part[name]]) for name in ("within", "proposed")}
    if any(len(found) != max_horizon for found in links.values()):
        raise ModelFileError("its hazard and its tables differ in horizon")
    all_sizes = (*sizes, *factors.proposal_sizes)
    standing = _read_weights(part["standing"], sizes, len(marks.marks))
    proposal = _read_weights(part["proposal"], all_sizes, len(marks.marks))
    spread = part.get("spread")
    return Hazard(
        marks=marks,
        standing=standing,
        proposal=proposal,
        within=links["within"],
        eventually=_pair(part["eventually"]),
        proposed=links["proposed"],
        spread=None if spread is None else _read_spread(spread, standing, proposal, max_horizon),
    )


def _weights_definition(weights: Weights) -> dict[str, Any]:
    return {
        "bias": weights.bias,
        "tables": [_trimmed(table) for table in weights.tables],
        "last": {name: weight for name, weight in weights.last.items() if weight},
        "before": {name: weight for name, weight in weights.before.items() if weight},
        "task": [list(weights.task), list(weights.task.values())],
        "orders": [list(weights.orders), list(weights.orders.values())],
        "heard": [list(weights.heard), list(weights.heard.values())],
        "marks": weights.marks,
        "marks_exposed": weights.marks_exposed,
    }


def _spread_definition(spread: Spread) -> dict[str, Any]:
    return {
        "standing": _learned_definition(spread.standing),
        "proposal": _learned_definition(spread.proposal),
        "within": [[link.between, link.left] for link in spread.within],
        "eventually": [spread.eventually.between, spread.eventually.left],
        "proposed": [[link.between, link.left] for link in spread.proposed],
    }


def _learned_definition(learned: Learned) -> dict[str, Any]:
    parts = {name: getattr(learned, name) for name in ("variances", "tables", *_NUMBERED, *_OF_WORDS)}
    return parts | {name: dict(getattr(learned, name)) for name in ("last", "before")}


def _read_spread(part: Any, standing: Weights, proposal: Weights, max_horizon: int) -> Spread:
    within, proposed = (tuple([_link_spread(link) for link in part[name]]) for name in ("within", "proposed"))
    if len(within) != max_horizon or len(proposed) != max_horizon:
        raise ModelFileError("its hazard says how sure it is for other horizons than it has")
    return Spread(
        standing=_read_learned(part["standing"], standing),
        proposal=_read_learned(part["proposal"], proposal),
        within=within,
        eventually=_link_spread(part["eventually"]),
        proposed=proposed,
    )


def _read_learned(part: Any, weights: Weights) -> Learned:
    tables = part["tables"]
    if not isinstance(tables, list) or len(tables) != len(weights.tables):
        raise ModelFileError("its hazard says how sure it is of another number of factors than it has")
    return Learned(
        variances=tuple(
            [_within(value, _HIGHEST_VARIANCE) for value in _numbers(part["variances"], len(KINDS))]
        ),
        tables=tuple(
            [_levels(found, 0, len(own)) for found, own in zip(tables, weights.tables, strict=True)]
        ),
        last=_named_levels(part["last"]),
        before=_named_levels(part["before"]),
        **{name: _all_levels(part[name], len(getattr(weights, name))) for name in (*_NUMBERED, *_OF_WORDS)},
    )


def _link_spread(part: Any) -> LinkSpread:
    between, left = part
    return LinkSpread(_within(between, MOST_BETWEEN), _within(left, 1.0))


def _within(value: Any, highest: float) -> float:
    if not 0.0 <= _number(value) <= highest:
        raise ModelFileError(f"its hazard has {value!r} for something between 0 and {highest:g}")
    return float(value)


def _all_levels(text: Any, size: int) -> str:
    return _levels(text, size, size)


def _levels(text: Any, fewest: int, most: int) -> str:
    if not isinstance(text, str) or not fewest <= len(text) <= most or text.strip(LEVELS):
        raise ModelFileError("its hazard does not say how sure it is of each of its weights")
    return text


def _named_levels(part: Any) -> dict[str, int]:
    if not isinstance(part, dict) or len(part) > _MAX_NAMES:
        raise ModelFileError("its hazard does not say by name how sure it is of tools")
    if any(type(level) is not int or not 0 <= level < len(LEVELS) for level in part.values()):
        raise ModelFileError("its hazard is more sure of a tool than any fit could be")
    return dict(part)


def _trimmed(table: tuple[float, ...]) -> list[Any]:
    """Return a table as [cell, weight] pairs where few cells have one, else as it stands."""
    known = [[cell, weight] for cell, weight in enumerate(table) if weight]
    return known if 3 * len(known) < len(table) else list(table)


def _read_weights(part: Any, sizes: tuple[int, ...], n_marks: int) -> Weights:
    if len(part["tables"]) != len(sizes):
        raise ModelFileError("its hazard has another number of factors than this version looks at")
    return Weights(
        bias=_number(part["bias"]),
        tables=tuple([_table(table, size) for table, size in zip(part["tables"], sizes, strict=True)]),
        last=_by_name(part["last"]),
        before=_by_name(part["before"]),
        task=_by_word(part["task"]),
        orders=_by_word(part["orders"]),
        heard=_by_word(part["heard"]),
        marks=_numbers(part["marks"], n_marks),
        marks_exposed=_numbers(part["marks_exposed"], n_marks),
    )


def _table(table: Any, size: int) -> tuple[float, ...]:
    if len(table) == size and not (table and isinstance(table[0], list)):
        return _numbers(table, size)
    weights = [0.0] * size
    for cell, weight in table:
        if type(cell) is not int or not 0 <= cell < size:
            raise ModelFileError("a table of its hazard has a cell outside its factor")
        weights[cell] = _number(weight)
    return tuple(weights)


def _by_name(part: Any) -> dict[str, float]:
    if not isinstance(part, dict) or len(part) > _MAX_NAMES:
        raise ModelFileError("its hazard does not give tools by name")
    return {name: _number(weight) for name, weight in part.items()}


def _by_word(part: Any) -> dict[int, float]:
    words, weights = part
    if any(type(word) is not int or not 0 <= word < WORD_BINS for word in words):
        raise ModelFileError("its hazard names a word that is none")
    return dict(zip(words, _numbers(weights, len(words)), strict=True))


def _marks(part: Any) -> Marks:
    if (
        not isinstance(part, list)
        or len(part) > _MAX_NAMES
        or not all(isinstance(mark, str) for mark in part)
    ):
        raise ModelFileError("its hazard does not list what it knows names of models to say")
    return Marks(tuple(part))


def _numbers(part: Any, size: int) -> tuple[float, ...]:
    if len(part) != size:
        raise ModelFileError("a list of its hazard has another length than it should")
    return tuple([_number(value) for value in part])


def _pair(part: Any) -> tuple[float, float]:
    intercept, slope = part
    if _number(slope) < 0.0:
        raise ModelFileError("a link of its hazard falls where it should rise")
    return _number(intercept), float(slope)


def _number(value: Any) -> float:
    if type(value) not in {int, float} or not isfinite(value) or abs(value) > _HIGHEST:
        raise ModelFileError(f"its hazard has {value!r} where a number of a reasonable size should be")
    return float(value)
