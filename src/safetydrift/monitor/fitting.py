"""From labelled trajectories to a model, in one call.

The chain has one row per state (or per risk level, when coarse) and two absorbing classes, *violated* and
*completed*. Runs that were cut off are censored: their last state counts as reached and not as left.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from safetydrift._version import __version__
from safetydrift.errors import ChainError
from safetydrift.markov.absorption import Absorption, absorption
from safetydrift.markov.chain import UNSEEN, AbsorbingChain
from safetydrift.markov.estimation import dirichlet, maximum_likelihood, shrunk
from safetydrift.markov.horizon import horizon_table
from safetydrift.markov.structure import trapped
from safetydrift.monitor.calibration import suggest_policy
from safetydrift.monitor.evidence import Evidence, Rows, gather
from safetydrift.monitor.model import AGGREGATE, Model, RiskTable
from safetydrift.monitor.policy import Policy
from safetydrift.monitor.settings import Estimator, FitSettings
from safetydrift.states.trajectory import VIOLATED, Notion, ObservedRun, observe

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from safetydrift.effects.catalogue import Catalogue
    from safetydrift.states.space import StateSpace
    from safetydrift.states.trajectory import Trajectory


@dataclass(frozen=True, slots=True)
class FittedChains:
    """The chains behind a model, for analysis.

    Parameters
    ----------
    rows
        The rows of every chain.
    evidence
        What each category showed; `AGGREGATE` is all of them together.
    chains
        The estimated chain per category.
    left_out
        Runs left out, by reason.
    settings
        The choices made.
    """

    rows: Rows
    evidence: Mapping[str, Evidence]
    chains: Mapping[str, AbsorbingChain]
    left_out: Mapping[str, int]
    settings: FitSettings


def fit_chains(
    trajectories: Iterable[Trajectory], space: StateSpace, settings: FitSettings | None = None
) -> FittedChains:
    """Estimate one chain over all runs and one per category.

    Raises
    ------
    ChainError
        If no run can be used under the chosen notion of violation.
    """
    settings = settings or FitSettings()
    rows = Rows.of(space, settings.granularity)
    left_out: Counter[str] = Counter()
    by_category: dict[str, list[ObservedRun]] = defaultdict(list)
    for trajectory in trajectories:
        run = observe(trajectory, space, settings.notion, settings.unknown_onset)
        if run.left_out:
            left_out[run.left_out] += 1
        else:
            by_category[trajectory.category].append(run)
    if not by_category:
        reasons = "; ".join(f"{count} {reason}" for reason, count in left_out.most_common(5))
        hint = "; the rules need no labels (notion 'rules')" if settings.notion is Notion.LABEL else ""
        raise ChainError(
            f"no run can be used by the notion {settings.notion.value!r}: {reasons or 'no runs at all'}{hint}"
        )

    completion = settings.estimator is not Estimator.PUBLISHED
    evidence = {
        category: gather(runs, rows, completion=completion) for category, runs in sorted(by_category.items())
    }
    parts = list(evidence.values())
    evidence = {AGGREGATE: sum(parts[1:], start=parts[0]), **{k: v for k, v in evidence.items() if k}}
    return FittedChains(rows, evidence, estimate_chains(evidence, rows, space, settings), dict(left_out), settings)


def estimate_chains(
    evidence: Mapping[str, Evidence], rows: Rows, space: StateSpace, settings: FitSettings
) -> dict[str, AbsorbingChain]:
    """Estimate the chain of each category from what it showed; `AGGREGATE` is what the others may lean on."""
    absorbing, names = rows.absorbing, rows.chain_names
    if settings.estimator is Estimator.SMOOTHED:
        support = rows.support(space)
        return {
            category: dirichlet(part.counts, absorbing, support=support, concentration=JEFFREYS, names=names)
            for category, part in evidence.items()
        }
    aggregate = maximum_likelihood(evidence[AGGREGATE].counts, absorbing, names)
    if settings.estimator is not Estimator.SHRUNK:
        return {
            category: maximum_likelihood(part.counts, absorbing, names) for category, part in evidence.items()
        }
    strength, towards = settings.strength, aggregate.transitions
    return {
        category: aggregate
        if category == AGGREGATE
        else shrunk(part.counts, absorbing, towards=towards, strength=strength, names=names)
        for category, part in evidence.items()
    }


def fit_model(
    trajectories: Sequence[Trajectory],
    space: StateSpace,
    catalogue: Catalogue,
    settings: FitSettings | None = None,
    *,
    horizon: int = 5,
    threshold: float | None = None,
    provenance: Mapping[str, object] | None = None,
) -> tuple[Model, FittedChains]:
    """Fit a model and the policy suggested with it.

    Parameters
    ----------
    trajectories
        Runs labelled in ``space``.
    horizon
        The policy's horizon, in steps.
    threshold
        The policy's threshold; by default the one that spends the false-alarm budget of the settings.
    provenance
        What the runs are; versions, runs used and runs left out are added.

    Raises
    ------
    ChainError
        If no run can be used under the chosen notion of violation.
    HorizonError
        If the horizon lies beyond the tables.
    """
    fitted = fit_chains(trajectories, space, settings)
    model = build_model(fitted, space, catalogue, Policy(horizon), provenance)
    if threshold is not None:
        return model.replace(policy=Policy(horizon, threshold)), fitted
    budget = fitted.settings.false_alarm_budget
    policy = suggest_policy(model, trajectories, budget, fitted.settings.unknown_onset)
    statement = (
        f"chosen so that at most {budget:.0%} of the training runs without a violation alarm; no guarantee"
    )
    return model.replace(policy=policy, provenance={**model.provenance, "threshold": statement}), fitted


def build_model(
    fitted: FittedChains,
    space: StateSpace,
    catalogue: Catalogue,
    policy: Policy,
    provenance: Mapping[str, object] | None = None,
) -> Model:
    """Turn fitted chains into the tables a monitor looks up.

    Parameters
    ----------
    policy
        The policy suggested with the model.
    provenance
        What the model was fitted on; the runs used and left out are added.
    """
    tables = {category: _table(fitted, category) for category in fitted.chains}
    return Model(
        space=space,
        catalogue=catalogue,
        notion=fitted.settings.notion,
        row_of=fitted.rows.row_of,
        rows=fitted.rows.names,
        tables=tables,
        policy=policy,
        settings=fitted.settings.definition(),
        provenance={
            **(provenance or {}),
            "safetydrift": __version__,
            "runs": {category: dict(part.ends) for category, part in fitted.evidence.items()},
            "left_out": dict(fitted.left_out),
        },
    )


def _table(fitted: FittedChains, category: str) -> RiskTable:
    chain, evidence = fitted.chains[category], fitted.evidence[category]
    aggregate = fitted.evidence[AGGREGATE]
    rows = slice(len(fitted.rows.names))
    horizons = horizon_table(chain, fitted.settings.max_horizon)
    ends = ends_of(chain)
    expected_steps = np.full(chain.n_states, np.nan)
    expected_steps[ends.chain.transient] = ends.expected_steps
    within = horizons.probability(VIOLATED).copy()
    eventually = ends.probability(VIOLATED).copy()
    uncertain = horizons.probability(UNSEEN).copy()
    departed = (evidence.counts.departures > 0) | (aggregate.counts.departures > 0)
    known = departed & chain.transitions.any(axis=1)
    within[:, ~known], eventually[~known] = np.nan, np.nan
    uncertain[:, ~known] = 1.0
    return RiskTable(
        within=_rounded(within[:, rows]),
        eventually=_rounded(eventually[rows]),
        uncertain=_rounded(uncertain[:, rows]),
        arrival=_rounded(_arrival(evidence, aggregate, fitted.settings)),
        departures=tuple(evidence.counts.departures[rows].tolist()),
        visited=tuple(known[rows].tolist()),
        expected_steps=_rounded(expected_steps[rows]),
        counts=tuple(
            (int(origin), int(target), int(evidence.counts.matrix[origin, target]))
            for origin, target in np.argwhere(evidence.counts.matrix)
        ),
    )


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


def _arrival(evidence: Evidence, aggregate: Evidence, settings: FitSettings) -> NDArray[np.float64]:
    """Share of violating calls among those that led to each row, drawn towards the aggregate when shrunk."""
    with np.errstate(invalid="ignore", divide="ignore"):
        overall = aggregate.violating_arrivals / aggregate.arrivals
        if settings.estimator is not Estimator.SHRUNK or evidence is aggregate:
            share: NDArray[np.float64] = evidence.violating_arrivals / evidence.arrivals
            return share
    weight = settings.strength
    return (evidence.violating_arrivals + weight * overall) / (evidence.arrivals + weight)


JEFFREYS = 0.5
"""Pseudo-observations per allowed transition of the estimator SMOOTHED."""

DIGITS = 9
"""Decimal places kept in a model file: far below what any count supports, and stable across platforms."""


def _rounded(values: NDArray[np.float64]) -> tuple:  # type: ignore[type-arg]
    """Round and turn an array into nested tuples of plain floats."""
    if values.ndim > 1:
        return tuple(map(_rounded, values))
    return tuple(np.round(values, DIGITS).tolist())
