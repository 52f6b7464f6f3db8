"""From fitted chains to the tables a monitor looks up: probabilities, how sure they are, and how runs end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from safetydrift.markov.absorption import Absorption, absorption
from safetydrift.markov.chain import UNSEEN, AbsorbingChain
from safetydrift.markov.horizon import horizon_table
from safetydrift.markov.spread import ENOUGH, absorption_variance, beta_interval, horizon_variance
from safetydrift.markov.structure import trapped
from safetydrift.monitor.evidence import SMALL_SPACE, VIOLATION_KINDS
from safetydrift.monitor.model import RiskTable
from safetydrift.monitor.outlook import Bounds, Endings
from safetydrift.states.trajectory import COMPLETED, VIOLATED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from safetydrift.markov._arrays import FloatArray
    from safetydrift.monitor.evidence import Evidence

DIGITS = 6
"""Significant digits kept of a probability: more than any count supports, and stable across platforms."""

FEW_DIGITS = 4
"""Significant digits kept in tables of more than `SMALL_SPACE` rows: what counts support, in files that stay small."""

BOUND_DIGITS = 3
"""Significant digits of bounds."""

PLACES = 3
"""Decimal places of mass that runs into the unknown."""

SHARE_PLACES = 2
"""Decimal places of shares of kinds."""


@dataclass(frozen=True)
class Tabulated:
    """What the table of one category is made of.

    Parameters
    ----------
    chain
        The chain.
    weights
        Counts and pseudo-counts behind each row of the chain, shape (n_rows + 2,).
    evidence
        What the category showed.
    aggregate
        What all runs showed.
    arrival, arrival_weights
        Share of violating calls among those that led to each row, and counts and pseudo-counts behind it, shape
        (n_rows,).
    kinds
        How a violating call from each row divides among the kinds, shape (n_rows, len(VIOLATION_KINDS)).
    max_horizon
        Furthest horizon of the table, in steps.
    horizon
        The one for which bounds are given.
    """

    chain: AbsorbingChain
    weights: FloatArray
    evidence: Evidence
    aggregate: Evidence
    arrival: FloatArray
    arrival_weights: FloatArray
    kinds: FloatArray
    max_horizon: int
    horizon: int

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        """The states of the chain from which runs of this category, or of any, were seen to go on."""
        departed = (self.evidence.counts.departures > 0) | (self.aggregate.counts.departures > 0)
        return np.asarray(departed & self.chain.transitions.any(axis=1))

    @cached_property
    def ends(self) -> Absorption:
        """How runs end."""
        return ends_of(self.chain)

    @cached_property
    def visits(self) -> FloatArray:
        """The fundamental matrix: expected visits to the transient states from each of them."""
        return self.ends.fundamental(ENOUGH)

    @property
    def digits(self) -> int:
        """To how many significant digits probabilities are rounded."""
        return DIGITS if len(self.arrival) <= SMALL_SPACE else FEW_DIGITS

    def table(self) -> RiskTable:
        """Return the table, rounded."""
        rows = slice(len(self.arrival))
        horizons = horizon_table(self.chain, self.max_horizon)
        within, uncertain = horizons.probability(VIOLATED).copy(), horizons.probability(UNSEEN).copy()
        within[:, ~self.known], uncertain[:, ~self.known] = np.nan, 1.0
        counts = np.ceil(self.evidence.counts.matrix).astype(
            np.int64
        )  # whole but where runs are being forgotten
        departures = np.ceil(self.evidence.counts.departures).astype(np.int64)
        return RiskTable(
            within=rounded(within[:, rows], self.digits),
            eventually=rounded(self._where_known(self.ends.probability(VIOLATED)), self.digits),
            uncertain=rounded(np.round(uncertain[:, rows], PLACES), DIGITS),
            arrival=rounded(self.arrival, self.digits),
            departures=tuple(departures[rows].tolist()),
            visited=tuple(self.known[rows].tolist()),
            expected_steps=rounded(self._everywhere(self.ends.expected_steps), self.digits),
            counts=tuple(
                (int(origin), int(target), int(counts[origin, target]))
                for origin, target in np.argwhere(counts)
            ),
            bounds=self._bounds(within[:, rows]),
            endings=self._endings(),
        )

    def _bounds(self, within: FloatArray) -> Bounds:
        horizon, rows = self.horizon, slice(len(self.arrival))
        variance = horizon_variance(self.chain, self.weights, horizon)[:, rows]
        later, spread = within[horizon - 1], variance[horizon - 1]
        violates = self.arrival
        doubt = violates * (1.0 - violates) / (self.arrival_weights + 1.0)
        # The proposed call does not violate and neither does what follows: independent, so second moments multiply.
        spared, ahead = (1.0 - violates) ** 2, (1.0 - later) ** 2
        arriving = (doubt + spared) * (spread + ahead) - spared * ahead
        eventually = self.ends.probability(VIOLATED)
        at_the_end = absorption_variance(self.ends, self.weights, self.visits)
        low, high = beta_interval(within[horizon], variance[horizon])
        pending_low, pending_high = beta_interval(violates + (1.0 - violates) * later, arriving)
        eventually_low, eventually_high = beta_interval(
            self._where_known(eventually), self._where_known(at_the_end)
        )
        return Bounds(
            horizon=horizon,
            low=rounded(low, BOUND_DIGITS),
            high=rounded(high, BOUND_DIGITS),
            pending_low=rounded(pending_low, BOUND_DIGITS),
            pending_high=rounded(pending_high, BOUND_DIGITS),
            eventually_low=rounded(eventually_low, BOUND_DIGITS),
            eventually_high=rounded(eventually_high, BOUND_DIGITS),
        )

    def _endings(self) -> Endings:
        chain = self.ends.chain
        exits = chain.transitions[chain.transient] @ chain.membership[:, chain.class_index(VIOLATED)]
        direct = exits[:, None] * self.kinds[chain.transient]
        by_kind = self.visits @ direct
        total = by_kind.sum(axis=1, keepdims=True)
        shares = np.divide(by_kind, total, out=np.full_like(by_kind, np.nan), where=total > 0.0)
        kinds = [self._everywhere(column) for column in shares.T]
        violated = self.ends.probabilities[:, chain.class_index(VIOLATED)]
        together = self.visits @ violated
        steps = np.divide(together, violated, out=np.full_like(violated, np.nan), where=violated > 0.0)
        return Endings(
            rounded(self._where_known(self.ends.probability(COMPLETED)), self.digits),
            rounded(self._everywhere(steps), self.digits),
            tuple(
                (kind, rounded(np.round(values, SHARE_PLACES), DIGITS))
                for kind, values in zip(VIOLATION_KINDS, kinds, strict=True)
                if np.nan_to_num(np.round(values, SHARE_PLACES)).any()
            ),
        )

    def _where_known(self, values: FloatArray) -> FloatArray:
        """Return the rows of a value per state of the chain, nan where nothing is known."""
        return np.where(self.known, values, np.nan)[: len(self.arrival)]

    def _everywhere(self, values: FloatArray) -> FloatArray:
        """Return the rows of a value per transient state, nan for the others."""
        everywhere = np.full(self.chain.n_states, np.nan)
        everywhere[self.ends.chain.transient] = values
        return self._where_known(everywhere)


def ends_of(chain: AbsorbingChain) -> Absorption:
    """Return how the runs of a fitted chain end.

    Runs that were cut off can leave states from which no end was ever reached. Where such a run would have ended
    is not known, so these states count as unseen instead of making the whole chain unsolvable.
    """
    stuck = trapped(chain)
    if not stuck.size:
        return absorption(chain)
    transitions, visited = chain.transitions.copy(), chain.visited.copy()
    transitions[stuck], visited[stuck] = 0.0, False
    return absorption(AbsorbingChain(transitions, chain.absorbing, chain.names, visited))


def rounded(values: FloatArray, digits: int) -> tuple:  # type: ignore[type-arg]
    """Round to significant digits and turn an array into nested tuples of plain floats."""
    if values.ndim > 1:
        return tuple([rounded(row, digits) for row in values])
    return tuple([float(f"{value:.{digits}g}") for value in values.tolist()])
