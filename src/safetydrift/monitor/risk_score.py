"""The risk score: what was fitted beyond the chain, as plain numbers.

The log odds of a violation are a sum: a bias, one weight per feature (`safetydrift.monitor.features`), and the weights
of the two tools that count, of the words of the task, of injected instructions and of the user, and of the pipeline
that acts. One score ranks; a link per horizon, fitted on tasks the score had not seen, turns it into probabilities. It
is a discrete-time logistic hazard in all but name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct

from safetydrift.monitor.pipelines import TRAIT_KINDS, Traits
from safetydrift.states.bounded import Word

WordSet = Literal["task", "injected", "heard"]
WORD_SETS: tuple[WordSet, ...] = ("task", "injected", "heard")
"""The sets of words that count: of the task, of injected instructions, and of what the user has said since the task."""

TOOLS = ("last", "before")
"""The two tools that count."""

EXPOSED = " exposed"
"""Behind the kind of a trait: its weights that count once injected instructions have been read."""

KINDS = ("cells", *TOOLS, *TRAIT_KINDS, *[f"{kind}{EXPOSED}" for kind in TRAIT_KINDS], *WORD_SETS)
"""The kinds of weights that have a variance of their own, in the order in which they are fitted."""

LEVELS = "0123456789abcdefghijklmnopqrstuvwxyz"
"""The level of what is known about a weight, a character each (`safetydrift.monitor.intervals.left`)."""

MOST_BETWEEN = 16.0
"""The largest variance between tasks that is believed."""

Number = Annotated[float, Meta(ge=-1e3, le=1e3)]
Variance = Annotated[float, Meta(ge=0.0, le=100.0)]
Level = Annotated[int, Meta(ge=0, lt=len(LEVELS))]
ByTool = Annotated[Mapping[str, Number], Meta(max_length=10_000)]


class Weights(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One additive score.

    Parameters
    ----------
    bias
        The score where nothing is known.
    cells
        Weight by cell, for every feature by its name; those beyond the end are 0.
    tools
        Weight by name of a tool, for the two that count: the last and the one before it; for proposals, the proposed
        tool and the last.
    words
        Weight by word, for every one of `WORD_SETS`. A set of n words counts with its sum over the root of n.
    traits, traits_exposed
        Weight by trait of the pipeline's name; the second counts as well once injected instructions have been read.
    """

    bias: Number
    cells: Mapping[str, tuple[Number, ...]]
    tools: tuple[ByTool, ByTool]
    words: Mapping[WordSet, Mapping[Word, Number]]
    traits: tuple[Number, ...]
    traits_exposed: tuple[Number, ...]


class Learned(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much runs have told about the weights of one score; its parts are named as those of `Weights`.

    Parameters
    ----------
    variances
        Of weights nothing is known about, by kind (`KINDS`); of words, of their weights as they count.
    cells
        Levels of the cells; those beyond the end of a text have level 0.
    tools
        Level by name of the tool; 0 for others.
    words
        Levels of the words, in the order of the words that have a weight; 0 for others.
    traits, traits_exposed
        Levels of the traits' weights.
    """

    variances: Mapping[str, Variance]
    cells: Mapping[str, str]
    tools: tuple[Mapping[str, Level], Mapping[str, Level]]
    words: Mapping[WordSet, str]
    traits: str
    traits_exposed: str


class Link(Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """From scores to the probability of a violation, by a logistic function.

    Parameters
    ----------
    intercept, slope
        The log odds are ``intercept + slope * score``.
    between
        The variance of these log odds between tasks that look the same; None where it was not fitted.
    left
        The share of the variance of the weights that is left; 1 until a deployment's own runs are added.
    """

    intercept: Number
    slope: Annotated[float, Meta(ge=0.0, le=1e3)]
    between: Annotated[float, Meta(ge=0.0, le=MOST_BETWEEN)] | None = None
    left: Annotated[float, Meta(ge=0.0, le=1.0)] = 1.0


class Side(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One score with its links.

    Parameters
    ----------
    weights
        The score.
    within
        The link for a violation within h steps, h = 1 .. max_horizon.
    eventually
        The link for a run that ends violated.
    learned
        How much is known about the weights; None for a score that gives no intervals.
    """

    weights: Weights
    within: tuple[Link, ...]
    eventually: Link
    learned: Learned | None = None


class RiskScore(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything fitted beyond the chain.

    Parameters
    ----------
    traits
        What it knows names of pipelines to say.
    current, proposal
        The score of where a run stands, and of a call as proposed, which is the first of the steps of its horizons.
    """

    traits: Traits
    current: Side
    proposal: Side
