"""Categories within sources within all runs: what each level lends to the one inside it, and how much.

The rings of a category are, from the outside: the runs of other sources, the other runs of its own sources, its own
runs. Each run stands in one ring only (`safetydrift.markov.hierarchy`). Where all runs come from one source there is
no ring between the category and the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from safetydrift.markov.hierarchy import fit_concentration, nested_mean, posterior_mean
from safetydrift.monitor.evidence import VIOLATION_KINDS
from safetydrift.monitor.model import AGGREGATE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from safetydrift.markov._arrays import FloatArray
    from safetydrift.monitor.evidence import Evidence, Rows
    from safetydrift.states.space import StateSpace

SLIGHT = 0.5
"""Arrivals given to every row in the outermost prior, on top of those observed."""

ALL, SOURCE, CATEGORY, ROW = "all", "source", "category", "row"
"""The levels whose concentrations are fitted, from the outside; rows are a level of their own for kinds only."""


def nest(
    evidence: Mapping[str, Evidence],
    kin: Mapping[str, Evidence],
    base: FloatArray,
    read: Callable[[Evidence], FloatArray],
) -> tuple[dict[str, FloatArray], dict[str, float]]:
    """Return the rows expected in each category, and the concentrations fitted.

    Parameters
    ----------
    evidence
        What each category showed; `AGGREGATE` is all of them together.
    kin
        What the other runs of each category's sources showed; empty where there is one source only.
    base : (rows, cells) array
        What is expected before anything is seen.
    read
        The counts to look at, shape (rows, cells).

    Returns
    -------
    tuple
        By category, the expected probabilities, shape (rows, cells); by level, the concentration.
    """
    everything = read(evidence[AGGREGATE])
    strengths = {ALL: fit_concentration(everything, base)}
    own = {category: read(part) for category, part in evidence.items() if category != AGGREGATE}
    near = {category: read(kin[category]) for category in own} if kin else {}
    if near:
        sources = {(counts + near[name]).tobytes(): counts + near[name] for name, counts in own.items()}
        whole = list(sources.values())
        beyond = [posterior_mean(everything - counts, base, strengths[ALL]) for counts in whole]
        strengths[SOURCE] = fit_concentration(np.concatenate(whole), np.concatenate(beyond))
    outside = {
        name: _outside(everything, counts, near.get(name), base, strengths) for name, counts in own.items()
    }
    if own:
        strengths[CATEGORY] = fit_concentration(
            np.concatenate(list(own.values())), np.concatenate(list(outside.values()))
        )
    means = {name: posterior_mean(own[name], outside[name], strengths[CATEGORY]) for name in own}
    return {AGGREGATE: posterior_mean(everything, base, strengths[ALL]), **means}, strengths


def _outside(
    everything: FloatArray,
    own: FloatArray,
    near: FloatArray | None,
    base: FloatArray,
    strengths: Mapping[str, float],
) -> FloatArray:
    """Return what the rings around a category lead one to expect of it."""
    if near is None:
        return nested_mean([everything - own], base, [strengths[ALL]])
    return nested_mean([everything - own - near, near], base, [strengths[ALL], strengths[SOURCE]])


def nested_transitions(
    evidence: Mapping[str, Evidence], kin: Mapping[str, Evidence], rows: Rows, space: StateSpace
) -> tuple[dict[str, FloatArray], dict[str, float]]:
    """Return the transition matrix expected in each category, (n_rows + 2, n_rows + 2), and the concentrations.

    Before anything is seen, the next row is expected to be any that the dimensions allow, in the proportion in which
    runs came to it. Rows that no run ever left are zero in every category: nothing is known of them.
    """
    whole = evidence[AGGREGATE].counts
    weights = rows.support(space) * (whole.arrivals + SLIGHT)
    weights[len(rows.names) :] = 0.0
    totals = weights.sum(axis=1, keepdims=True)
    base = np.divide(weights, totals, out=np.zeros_like(weights), where=totals > 0.0)
    means, strengths = nest(evidence, kin, base, lambda part: part.counts.matrix.astype(np.float64))
    for matrix in means.values():
        matrix[whole.departures == 0] = 0.0
        totals = matrix.sum(axis=1, keepdims=True)
        np.divide(matrix, totals, out=matrix, where=totals > 0.0)
    return means, strengths


def nested_arrivals(
    evidence: Mapping[str, Evidence], kin: Mapping[str, Evidence]
) -> tuple[dict[str, FloatArray], dict[str, float]]:
    """Return the share of violating calls among those that lead to each row, (n_rows,), and the concentrations.

    ``nan`` where no call of any category ever led.
    """
    whole = evidence[AGGREGATE]
    violating, calls = int(whole.violating_arrivals.sum()), int(whole.arrivals.sum())
    overall = (violating + SLIGHT) / (calls + 2 * SLIGHT)
    base = np.tile([overall, 1.0 - overall], (len(whole.arrivals), 1))
    means, strengths = nest(evidence, kin, base, _arrivals)
    shares = {category: mean[:, 0] for category, mean in means.items()}
    for share in shares.values():
        share[whole.arrivals == 0] = np.nan
    return shares, strengths


def nested_kinds(evidence: Mapping[str, Evidence]) -> tuple[dict[str, FloatArray], dict[str, float]]:
    """Return how a violating call from each row divides among `VIOLATION_KINDS`, (n_rows, kinds), and concentrations.

    A row leans on the other rows of its category, the category on all other runs.
    """
    n_kinds = len(VIOLATION_KINDS)
    base = np.full((1, n_kinds), 1.0 / n_kinds)
    totals = {category: part.kinds.sum(axis=0, keepdims=True) for category, part in evidence.items()}
    everything = totals[AGGREGATE]
    strengths = {ALL: fit_concentration(everything, base)}
    beyond = {
        name: base if name == AGGREGATE else posterior_mean(everything - total, base, strengths[ALL])
        for name, total in totals.items()
    }
    parts = [name for name in totals if name != AGGREGATE]
    strengths[CATEGORY] = (
        fit_concentration(
            np.concatenate([totals[name] for name in parts]), np.concatenate([beyond[name] for name in parts])
        )
        if parts
        else strengths[ALL]
    )
    around = {
        name: posterior_mean(
            np.maximum(totals[name] - part.kinds, 0.0),  # sums of shares leave an ulp behind
            beyond[name],
            strengths[ALL if name == AGGREGATE else CATEGORY],
        )
        for name, part in evidence.items()
    }
    chosen = parts or [AGGREGATE]
    strengths[ROW] = fit_concentration(
        np.concatenate([evidence[name].kinds for name in chosen]),
        np.concatenate([around[name] for name in chosen]),
    )
    return {
        name: posterior_mean(part.kinds, around[name], strengths[ROW]) for name, part in evidence.items()
    }, strengths


def _arrivals(part: Evidence) -> FloatArray:
    return np.column_stack([part.violating_arrivals, part.arrivals - part.violating_arrivals]).astype(
        np.float64
    )
