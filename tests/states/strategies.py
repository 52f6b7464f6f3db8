"""Hypothesis strategies for state spaces and trajectories."""

from __future__ import annotations

from hypothesis import strategies as st

from safetydrift.states.dimensions import Accumulation, Dimension
from safetydrift.states.rules import Rule
from safetydrift.states.space import StateSpace

_NAMES = ("alpha", "beta", "gamma")


@st.composite
def spaces(draw: st.DrawFn) -> StateSpace:
    """Small spaces of one to three dimensions, with a cascade that ends in a rule without conditions."""
    dimensions = tuple(
        Dimension(
            name,
            tuple(f"{name}{level}" for level in range(draw(st.integers(2, 4)))),
            draw(st.sampled_from(Accumulation)),
        )
        for name in _NAMES[: draw(st.integers(1, 3))]
    )
    rules = []
    for _ in range(draw(st.integers(0, 3))):
        dimension = draw(st.sampled_from(dimensions))
        condition = draw(st.sampled_from(("", ">= ", "<= "))) + draw(st.sampled_from(dimension.levels))
        rules.append(Rule({dimension.name: condition}, draw(st.sampled_from(("low", "high")))))
    return StateSpace("drawn", dimensions, ("low", "high"), (*rules, Rule({}, "low")), "high")


@st.composite
def walks(draw: st.DrawFn, max_size: int = 12) -> tuple[StateSpace, list[int]]:
    """A space and the effects of a run through it."""
    space = draw(spaces())
    return space, draw(st.lists(st.integers(0, space.n_states - 1), max_size=max_size))
