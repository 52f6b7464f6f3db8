"""A fitted model as the runtime sees it: the space, the catalogue, and tables of plain numbers.

A model speaks of *rows*: a row is a state of its chain. A fine chain has one row per state of the space, or, where the
space is large, per state that was visited and one for all others; a coarse one has a row per risk level. ``row_of``
says which states share a row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from zlib import crc32

from msgspec import Struct

from safetydrift.effects.catalogue import Catalogue
from safetydrift.monitor.categories import Categories
from safetydrift.monitor.outlook import Bounds, Endings
from safetydrift.monitor.policy import Policy
from safetydrift.monitor.risk_score import RiskScore
from safetydrift.monitor.verdict import Basis
from safetydrift.states.space import StateSpace
from safetydrift.states.trajectory import Notion, UnknownOnset

AGGREGATE = ""
"""The category of runs whose category is unknown: the tables fitted on all of them."""


def category_name(category: str) -> str:
    """Name a category for people."""
    return "all runs" if category == AGGREGATE else category


class RiskTable(Struct, frozen=True, gc=False, kw_only=True):
    """What one chain says about each of its rows.

    Parameters
    ----------
    within
        Probability of a violation within h steps, by h then row: shape (max_horizon + 1, n_rows); nan where not
        visited.
    eventually
        Probability of ending violated, by row; nan where not visited.
    uncertain
        Probability of running into a row that was never left, within h steps, by h then row.
    arrival
        Of the calls that led to a row, the share that were themselves the violation, by row; nan where no call
        ever led there.
    departures
        Transitions observed from the row in runs of this category.
    visited
        Whether the estimate of the row rests on a run that went on from it, of this category or, where estimates
        are drawn to those of all runs, of any.
    expected_steps
        Expected steps until the run ends, by row; nan where not visited.
    counts
        Observed transitions as (from, to, count); rows n_rows and n_rows + 1 are *violated* and *completed*.
    bounds
        How sure the probabilities are.
    endings
        How runs end: completed or violated, after how many steps, in which kind.
    """

    within: tuple[tuple[float, ...], ...]
    eventually: tuple[float, ...]
    uncertain: tuple[tuple[float, ...], ...]
    arrival: tuple[float, ...]
    departures: tuple[int, ...]
    visited: tuple[bool, ...]
    expected_steps: tuple[float, ...]
    counts: tuple[tuple[int, int, int], ...] = ()
    bounds: Bounds | None = None
    endings: Endings | None = None

    def basis(self, row: int) -> Basis:
        """Return what the figures of a row rest on."""
        if self.departures[row]:
            return Basis.ESTIMATED
        return Basis.BORROWED if self.visited[row] else Basis.UNSEEN


class Model(Struct, frozen=True, gc=False, kw_only=True):
    """Everything a monitor needs, fitted and frozen.

    Parameters
    ----------
    space
        The state space it was fitted on.
    catalogue
        The tool catalogue its effects were read with.
    notion
        What it calls a violation.
    row_of
        Row of the chain by state of the space, shape (n_states,).
    rows
        Names of the rows, for people.
    tables
        A `RiskTable` per category; `AGGREGATE` is always there and stands in for unknown ones.
    policy
        The policy suggested with the model; a deployment may bring its own.
    settings
        How it was estimated.
    provenance
        What it was fitted on: corpus digest, runs, what was left out, versions.
    risk_score
        What was fitted beyond the chain; None for a model that is nothing but tables.
    evidence
        What runs showed, by source and category, as `safetydrift.monitor.updating` reads it: what more runs are added
        to. None for a model that cannot be added to.
    categories
        What tells the category of a run that nobody named; None for a model of one category, or of none.
    """

    space: StateSpace
    catalogue: Catalogue
    notion: Notion
    row_of: tuple[int, ...]
    rows: tuple[str, ...]
    tables: Mapping[str, RiskTable]
    policy: Policy
    settings: Mapping[str, Any]
    provenance: Mapping[str, Any]
    risk_score: RiskScore | None = None
    evidence: Sequence[Any] | None = None
    categories: Categories | None = None

    @property
    def identity(self) -> str:
        """What the states of its runs depend on: the space, the notion of a violation, the features of the score."""
        looks_at = "" if self.risk_score is None else " ".join(self.risk_score.proposal.weights.cells)
        return f"{self.space.identity}/{self.notion.value}/{crc32(looks_at.encode()):08x}"

    @property
    def max_horizon(self) -> int:
        """The furthest horizon of the tables, in steps."""
        return len(self.tables[AGGREGATE].within) - 1

    @property
    def unknown_onset(self) -> UnknownOnset:
        """What it does with runs labelled violated whose violating call is not known."""
        return UnknownOnset(self.settings["unknown_onset"])

    def __repr__(self) -> str:
        names = ", ".join(sorted(name for name in self.tables if name)) or "no categories"
        return f"<Model on {self.space.name!r} by {self.notion.value}: {len(self.rows)} rows, {names}>"
