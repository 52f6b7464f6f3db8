"""The state space: every combination of levels, numbered, with the risk the rules give it.

A state is an integer. With dimensions of sizes ``n_1 .. n_d`` the state of level indices ``l_1 .. l_d`` is the
mixed-radix number whose last digit is ``l_d``; for the published space that is ``12 * data + 3 * tool +
reversibility``, 0 to 59. An effect is a point of the same grid, so it has an index of the same kind.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from safetydrift.errors import SpaceError
from safetydrift.states.dimensions import Accumulation, Dimension
from safetydrift.states.rules import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from safetydrift.states.effect import Effect

MAX_STATES = 4096
"""Larger spaces are refused: their tables would no longer be small, and their rows never visited."""


class StateSpace:
    """An indexed grid of safety states with a rule cascade.

    Parameters
    ----------
    name
        What the space is called in tables and files.
    dimensions
        The ordered dimensions; the first is the most significant digit of a state's index.
    risks
        Risk levels in ascending order.
    rules
        The cascade; the first rule that holds decides. Together they must decide every state.
    violated
        The risk level that means the line has been crossed.

    Raises
    ------
    SpaceError
        If names repeat, a rule speaks of something unknown, some state is left undecided, or the space is
        larger than `MAX_STATES`.

    Examples
    --------
    >>> from safetydrift.formats import load_space
    >>> space = load_space("paper")
    >>> space.n_states
    60
    >>> state = space.encode({"data": "sensitive", "tool": "code_exec", "reversibility": "partially"})
    >>> space.describe(state), space.risk_name(state)
    ('sensitive/code_exec/partially', 'elevated')
    """

    def __init__(
        self,
        name: str,
        dimensions: Sequence[Dimension],
        risks: Sequence[str],
        rules: Sequence[Rule],
        violated: str,
    ) -> None:
        self.name = name
        self.dimensions = tuple(dimensions)
        self.risks = tuple(risks)
        self.rules = tuple(rules)
        self._check_names(violated)
        self.violated_risk = self.risks.index(violated)

        sizes = [len(dimension.levels) for dimension in self.dimensions]
        self._strides = tuple(_product(sizes[position + 1 :]) for position in range(len(sizes)))
        self.n_states = _product(sizes)
        if self.n_states > MAX_STATES:
            raise SpaceError(f"space {name!r} has {self.n_states} states; at most {MAX_STATES} are supported")
        self._digits = tuple(self._split(index) for index in range(self.n_states))
        self.start = 0
        self.risk_of = self._decide_risks()
        self.violated = frozenset(
            index for index, risk in enumerate(self.risk_of) if risk == self.violated_risk
        )
        self._effect_indices: dict[tuple[tuple[str, str], ...], int] = {}
        self._rows: list[tuple[int, ...] | None] = [None] * self.n_states

    # -- states and their names -------------------------------------------------------------------------

    def encode(self, levels: Mapping[str, str]) -> int:
        """Return the index of a state given its level names; a dimension left out stands at its lowest.

        Raises
        ------
        SpaceError
            If a dimension or level is unknown.
        """
        unknown = sorted(set(levels) - {dimension.name for dimension in self.dimensions})
        if unknown:
            raise SpaceError(f"space {self.name!r} has no dimension {unknown[0]!r}")
        return sum(
            stride * dimension.index(levels[dimension.name])
            for dimension, stride in zip(self.dimensions, self._strides, strict=True)
            if dimension.name in levels
        )

    def decode(self, state: int) -> dict[str, str]:
        """Return the level name in each dimension; the inverse of `encode`."""
        return {
            dimension.name: dimension.levels[digit]
            for dimension, digit in zip(self.dimensions, self._digits[state], strict=True)
        }

    def digits(self, state: int) -> tuple[int, ...]:
        """Return the level index in each dimension, in the order of `dimensions`."""
        return self._digits[state]

    def describe(self, state: int) -> str:
        """Return the level names joined by slashes, as tables show them."""
        return "/".join(self.decode(state).values())

    def risk_name(self, state: int) -> str:
        """Return the name of the risk level the rules give a state."""
        return self.risks[self.risk_of[state]]

    # -- effects and where they lead --------------------------------------------------------------------

    def effect_index(self, effect: Effect) -> int:
        """Return the index of an effect on this space's grid.

        Levels of dimensions that this space does not have are ignored: an effect may know more than a space asks.

        Raises
        ------
        SpaceError
            If the effect says nothing about a dimension of this space, or names a level it does not have. Nothing
            said is not the lowest level.
        """
        index = self._effect_indices.get(effect.levels)
        if index is None:
            levels = dict(effect.levels)
            missing = [dimension.name for dimension in self.dimensions if dimension.name not in levels]
            if missing:
                raise SpaceError(
                    f"an effect says nothing about {missing[0]!r}, which space {self.name!r} asks for"
                )
            index = self.encode({dimension.name: levels[dimension.name] for dimension in self.dimensions})
            self._effect_indices[effect.levels] = index
        return index

    def after(self, state: int, effect: int) -> int:
        """Return the state that follows: the join, dimension by dimension (paper, A1).

        Dimensions that accumulate take the higher of the two levels, the others the level of the effect.
        """
        return self.successors(state)[effect]

    def successors(self, state: int) -> tuple[int, ...]:
        """Return the state after each effect, by effect index; built once per state, on first use."""
        row = self._rows[state]
        if row is None:
            row = self._rows[state] = self._join_row(state)
        return row

    def support(self, state: int) -> frozenset[int]:
        """Return the states that can follow at all; every other transition is a structural zero."""
        return frozenset(self.successors(state))

    # -- identity ---------------------------------------------------------------------------------------

    def definition(self) -> dict[str, Any]:
        """Return the space as plain data: what a space file holds, and what its identity is made of."""
        return {
            "name": self.name,
            "dimensions": [
                {
                    "name": dimension.name,
                    "title": dimension.title,
                    "levels": list(dimension.levels),
                    "accumulation": dimension.accumulation.value,
                }
                for dimension in self.dimensions
            ],
            "risks": list(self.risks),
            "violated": self.risks[self.violated_risk],
            "rules": [{"when": dict(rule.when), "risk": rule.risk} for rule in self.rules],
        }

    @classmethod
    def from_definition(cls, definition: Mapping[str, Any]) -> StateSpace:
        """Build a space from plain data; the inverse of `definition`.

        Raises
        ------
        SpaceError
            If a part is missing or of the wrong shape, or the space is not well formed.
        """
        try:
            _only(definition, "a space", {"format", "name", "dimensions", "risks", "violated", "rules"})
            for part in _parts(definition, "dimensions"):
                _only(part, "a dimension", {"name", "title", "levels", "accumulation"})
            for part in _parts(definition, "rules"):
                _only(part, "a rule", {"when", "risk"})
            dimensions = [
                Dimension(
                    _text(part["name"]),
                    tuple(map(_text, _parts(part, "levels"))),
                    Accumulation(part["accumulation"]),
                    _text(part.get("title", "")),
                )
                for part in definition["dimensions"]
            ]
            rules = [
                Rule(
                    {_text(name): _text(condition) for name, condition in part.get("when", {}).items()},
                    _text(part["risk"]),
                )
                for part in definition["rules"]
            ]
            return cls(
                _text(definition["name"]),
                dimensions,
                tuple(map(_text, _parts(definition, "risks"))),
                rules,
                _text(definition["violated"]),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise SpaceError(f"a space definition lacks or misuses {error}") from error
        except SpaceError:
            raise
        except ValueError as error:
            raise SpaceError(str(error)) from error

    @property
    def identity(self) -> str:
        """A digest of everything that gives the space its meaning; titles do not count."""
        from hashlib import sha256  # noqa: PLC0415  # only fitting and saving ask for it

        definition = self.definition()
        for part in definition["dimensions"]:
            del part["title"]
        return sha256(json.dumps(definition, sort_keys=True).encode()).hexdigest()[:16]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StateSpace) and self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)

    def __repr__(self) -> str:
        shape = " x ".join(f"{dimension.name}({len(dimension.levels)})" for dimension in self.dimensions)
        return f"<StateSpace {self.name!r}: {shape} = {self.n_states} states, {len(self.rules)} rules>"

    # -- construction -----------------------------------------------------------------------------------

    def _check_names(self, violated: str) -> None:
        names = [dimension.name for dimension in self.dimensions]
        if not names or len(set(names)) != len(names):
            raise SpaceError(
                f"space {self.name!r} needs one or more dimensions with distinct names, got {names}"
            )
        if len(set(self.risks)) != len(self.risks):
            raise SpaceError(f"space {self.name!r} names a risk level twice")
        if violated not in self.risks:
            raise SpaceError(f"space {self.name!r} has no risk level {violated!r} to call violated")
        for rule in self.rules:
            if rule.risk not in self.risks:
                raise SpaceError(f"a rule assigns an unknown risk level {rule.risk!r}")

    def _split(self, index: int) -> tuple[int, ...]:
        return tuple(
            index // stride % len(dimension.levels)
            for dimension, stride in zip(self.dimensions, self._strides, strict=True)
        )

    def _decide_risks(self) -> tuple[int, ...]:
        decided = [-1] * self.n_states
        left = list(range(self.n_states))
        for rule in self.rules:
            risk, found = self.risks.index(rule.risk), left
            for place, (low, high) in enumerate(rule.bounds(self.dimensions)):
                if low > 0 or high < len(self.dimensions[place].levels) - 1:
                    found = [state for state in found if low <= self._digits[state][place] <= high]
            for state in found:
                decided[state] = risk
            left = [state for state in left if decided[state] < 0]
        if left:
            raise SpaceError(
                f"no rule of space {self.name!r} decides {self.describe(left[0])}; "
                "end the cascade with a rule that has no conditions"
            )
        return tuple(decided)

    def _join_row(self, state: int) -> tuple[int, ...]:
        after = [0]
        for dimension, stride, mine in zip(self.dimensions, self._strides, self._digits[state], strict=True):
            lowest = mine if dimension.accumulation is Accumulation.HIGHEST else 0
            levels = [stride * max(lowest, theirs) for theirs in range(len(dimension.levels))]
            after = [index + level for index in after for level in levels]
        return tuple(after)


def _product(sizes: Sequence[int]) -> int:
    result = 1
    for size in sizes:
        result *= size
    return result


def _only(part: Mapping[str, Any], what: str, known: set[str]) -> None:
    """Refuse keys that nobody reads: a typing mistake in a condition must not make a rule hold always."""
    unknown = sorted(map(str, set(part) - known))
    if unknown:
        raise SpaceError(f"{what} has no {unknown[0]!r}; it may have: {', '.join(sorted(known))}")


def _parts(whole: Mapping[str, Any], key: str) -> list[Any]:
    parts = whole[key]
    if not isinstance(parts, list):
        raise SpaceError(f"{key!r} is a list, not {parts!r}")
    return parts


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise SpaceError(f"expected a name, got {value!r}")
    return value
