"""From labelled trajectories to a model, in one call.

The chain has one row per state (or per risk level, when coarse) and two absorbing classes, *violated* and
*completed*. Runs that were cut off are censored: their last state counts as reached and not as left.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from msgspec.structs import replace

from safetydrift._version import __version__
from safetydrift.errors import CalibrationError, ChainError, HorizonError
from safetydrift.markov.chain import AbsorbingChain
from safetydrift.markov.estimation import dirichlet, maximum_likelihood, shrunk
from safetydrift.monitor.category_counts import counted
from safetydrift.monitor.evidence import Evidence, Rows, evidence_definition, gather
from safetydrift.monitor.lookup import LookupMonitor
from safetydrift.monitor.maxima import Maxima
from safetydrift.monitor.model import AGGREGATE, Model
from safetydrift.monitor.nesting import ALL, CATEGORY, nested_arrivals, nested_kinds, nested_transitions
from safetydrift.monitor.policy import Policy
from safetydrift.monitor.settings import Estimator, FitSettings
from safetydrift.monitor.tabulation import Tabulated
from safetydrift.states.task_words import task_digest
from safetydrift.states.trajectory import Notion, ObservedRun, observe

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from safetydrift.effects.catalogue import Catalogue
    from safetydrift.markov._arrays import FloatArray
    from safetydrift.monitor.guarantee import Goal
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
    tasks
        Digests of the tasks of the runs used, sorted: enough to tell whether a run to be tried is new to the model.
    weights
        Per category, counts and pseudo-counts behind each row of its chain, shape (n_rows + 2,).
    strengths
        The concentrations fitted for transitions, by level (estimator HIERARCHICAL).
    kin
        What the other runs of each category's sources showed; empty where there is one source only.
    parts
        What runs showed, by source and category.
    """

    rows: Rows
    evidence: Mapping[str, Evidence]
    chains: Mapping[str, AbsorbingChain]
    left_out: Mapping[str, int]
    settings: FitSettings
    tasks: tuple[str, ...] = ()
    weights: Mapping[str, FloatArray] = field(default_factory=dict)
    strengths: Mapping[str, float] = field(default_factory=dict)
    kin: Mapping[str, Evidence] = field(default_factory=dict)
    parts: Mapping[tuple[str, str], Evidence] = field(default_factory=dict)


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
    used = _usable(trajectories, space, settings)
    visited = {state for run, _ in used.observed for state in _visited(run)}
    rows = Rows.of(space, settings.granularity, visited)
    completion = settings.estimator is not Estimator.PUBLISHED
    parts = {
        part: gather(
            [run for run, _ in found], rows, completion=completion, kinds=[kinds for _, kinds in found]
        )
        for part, found in sorted(used.by_part.items())
    }
    digests = {task_digest(*task) for task in used.tasks}
    return chains_of(parts, rows, space, settings, left_out=used.left_out, tasks=digests)


def chains_of(
    parts: Mapping[tuple[str, str], Evidence],
    rows: Rows,
    space: StateSpace,
    settings: FitSettings,
    *,
    left_out: Mapping[str, int],
    tasks: Iterable[str],
) -> FittedChains:
    """Estimate one chain over all runs and one per category, from what runs showed by source and category.

    Parameters
    ----------
    parts
        At least one.
    left_out
        Runs left out, by reason.
    tasks
        Digests of the tasks of the runs.
    """
    parts = dict(sorted(parts.items()))
    categories = sorted({category for _, category in parts})
    evidence = {AGGREGATE: _together(parts.values())}
    for category in filter(None, categories):
        evidence[category] = _together(found for part, found in parts.items() if part[1] == category)
    kin = _kin(parts, rows)
    estimate = _estimate(evidence, rows, space, settings, kin)
    return FittedChains(
        rows,
        evidence,
        estimate.chains,
        dict(left_out),
        settings,
        tuple(sorted(set(tasks))),
        estimate.weights,
        estimate.strengths,
        kin,
        parts,
    )


_Seen: TypeAlias = tuple[ObservedRun, tuple[str, ...]]
"""A run as it was observed, and the kinds of its violating call."""


@dataclass(frozen=True, slots=True)
class _Usable:
    """The runs that can be used, by source and category."""

    by_part: dict[tuple[str, str], list[_Seen]]
    left_out: Counter[str]
    tasks: set[tuple[str, str, str]]

    @property
    def observed(self) -> Iterable[_Seen]:
        return (seen for part in self.by_part.values() for seen in part)


def _usable(trajectories: Iterable[Trajectory], space: StateSpace, settings: FitSettings) -> _Usable:
    used = _Usable(defaultdict(list), Counter(), set())
    for trajectory in trajectories:
        run = observe(trajectory, space, settings.notion, settings.unknown_onset)
        if run.left_out:
            used.left_out[run.left_out] += 1
        else:
            kinds = trajectory.moves[run.onset - 1].kinds if run.onset else ()
            used.by_part[trajectory.source, trajectory.category].append((run, kinds))
            used.tasks.add((trajectory.source, trajectory.category, trajectory.task))
    if not used.by_part:
        reasons = "; ".join(f"{count} {reason}" for reason, count in used.left_out.most_common(5))
        hint = "; the rules need no labels (notion 'rules')" if settings.notion is Notion.LABEL else ""
        raise ChainError(
            f"no run can be used by the notion {settings.notion.value!r}: {reasons or 'no runs at all'}{hint}"
        )
    return used


def _visited(run: ObservedRun) -> tuple[int, ...]:
    return run.states if run.arrival is None else (*run.states, run.arrival)


def _together(parts: Iterable[Evidence]) -> Evidence:
    first, *others = parts
    return sum(others, start=first)


def _kin(parts: Mapping[tuple[str, str], Evidence], rows: Rows) -> dict[str, Evidence]:
    """Return, by category, what the other runs of its sources showed; nothing where there is one source only."""
    if len({source for source, _ in parts}) == 1:
        return {}
    kin = {}
    for category in {name for _, name in parts if name}:
        mine = {source for source, name in parts if name == category}
        others = [found for (source, name), found in parts.items() if source in mine and name != category]
        kin[category] = _together([gather([], rows), *others])
    return kin


@dataclass(frozen=True, slots=True)
class _Estimate:
    """Chains by category, the weights behind their rows, and the concentrations fitted by level."""

    chains: dict[str, AbsorbingChain]
    weights: dict[str, FloatArray]
    strengths: dict[str, float] = field(default_factory=dict)


def estimate_chains(
    evidence: Mapping[str, Evidence], rows: Rows, space: StateSpace, settings: FitSettings
) -> dict[str, AbsorbingChain]:
    """Estimate the chain of each category from what it showed; `AGGREGATE` is what the others may lean on.

    The categories count as those of one source.
    """
    return _estimate(evidence, rows, space, settings, {}).chains


def _estimate(
    evidence: Mapping[str, Evidence],
    rows: Rows,
    space: StateSpace,
    settings: FitSettings,
    kin: Mapping[str, Evidence],
) -> _Estimate:
    absorbing, names = rows.absorbing, rows.chain_names
    departures = {category: part.counts.departures.astype(np.float64) for category, part in evidence.items()}
    if settings.estimator is Estimator.HIERARCHICAL:
        return _hierarchical(evidence, rows, space, kin)
    if settings.estimator is Estimator.SMOOTHED:
        support = rows.support(space)
        smoothed = {
            category: dirichlet(part.counts, absorbing, support=support, concentration=JEFFREYS, names=names)
            for category, part in evidence.items()
        }
        prior: FloatArray = JEFFREYS * support.sum(axis=1, dtype=np.float64)
        return _Estimate(smoothed, {name: counted + prior for name, counted in departures.items()})
    aggregate = maximum_likelihood(evidence[AGGREGATE].counts, absorbing, names)
    if settings.estimator is not Estimator.SHRUNK:
        chains = {
            category: maximum_likelihood(part.counts, absorbing, names) for category, part in evidence.items()
        }
        return _Estimate(chains, departures)
    strength, towards = settings.strength, aggregate.transitions
    chains = {
        category: aggregate
        if category == AGGREGATE
        else shrunk(part.counts, absorbing, towards=towards, strength=strength, names=names)
        for category, part in evidence.items()
    }
    weights = {name: counted + strength * (name != AGGREGATE) for name, counted in departures.items()}
    return _Estimate(chains, weights)


def _hierarchical(
    evidence: Mapping[str, Evidence], rows: Rows, space: StateSpace, kin: Mapping[str, Evidence]
) -> _Estimate:
    means, strengths = nested_transitions(evidence, kin, rows, space)
    chains = {
        category: AbsorbingChain(
            mean, rows.absorbing, rows.chain_names, visited=evidence[category].counts.departures > 0
        )
        for category, mean in means.items()
    }
    weights = {
        category: part.counts.departures.astype(np.float64) + strengths[_level(category)]
        for category, part in evidence.items()
    }
    return _Estimate(chains, weights, strengths)


def _level(category: str) -> str:
    return ALL if category == AGGREGATE else CATEGORY


def fit_model(
    trajectories: Sequence[Trajectory],
    space: StateSpace,
    catalogue: Catalogue,
    settings: FitSettings | None = None,
    *,
    horizon: int = 5,
    threshold: float | None = None,
    provenance: Mapping[str, object] | None = None,
    goal: Goal | None = None,
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
    goal
        What thresholds are to be chosen for, with a guarantee, from risk scores that were fitted on other tasks;
        only with a risk score, and without a threshold.

    Raises
    ------
    ChainError
        If no run can be used under the chosen notion of violation.
    HorizonError
        If the horizon lies beyond the tables.
    CalibrationError
        If the goal cannot be reached with these runs, or without a risk score.
    """
    settings = settings or FitSettings()
    if horizon > settings.max_horizon:
        raise HorizonError(
            f"horizon {horizon} exceeds the tables' maximum {settings.max_horizon}; "
            f"fit with a maximum horizon of {horizon} or more"
        )
    if goal is not None and (threshold is not None or not settings.risk_score):
        raise CalibrationError(
            "a guarantee while fitting needs a risk score, which is tried on tasks it was not fitted on, and no "
            "threshold given by hand; else calibrate the fitted model on runs of other tasks"
        )
    fitted = fit_chains(trajectories, space, settings)
    model = build_model(fitted, space, catalogue, Policy(horizon), provenance)
    if settings.soft_categories:
        model = replace(model, categories=counted(trajectories, fitted.tasks))
    if fitted.settings.risk_score:
        return _with_risk_score(model, trajectories, fitted.settings, threshold, goal), fitted
    if threshold is not None:
        return replace(model, policy=Policy(horizon, threshold)), fitted
    budget = fitted.settings.false_alarm_budget
    seen = [(run, observe(run, space, settings.notion, settings.unknown_onset)) for run in trajectories]
    usable = [(run, one) for run, one in seen if not one.left_out]
    maxima = Maxima.along(LookupMonitor(model), usable)
    policy = Policy(horizon, *maxima.thresholds(budget, budget))
    statement = (
        f"chosen so that at most {budget:.0%} of the training runs without a violation alarm; no guarantee"
    )
    unknown = maxima.share_unknown()
    if unknown > budget:
        statement += f" ({unknown:.0%} do, for they come where no run went on from)"
    return replace(model, policy=policy, provenance={**model.provenance, "threshold": statement}), fitted


def _with_risk_score(
    model: Model,
    trajectories: Sequence[Trajectory],
    settings: FitSettings,
    threshold: float | None,
    goal: Goal | None,
) -> Model:
    """Return a model with its risk score, and the thresholds that fit it."""
    from safetydrift.monitor.score_fitting import fit_risk_score  # noqa: PLC0415  # needs scikit-learn

    found, tried = fit_risk_score(trajectories, model.space, settings, model.policy.horizon)
    if threshold is not None:
        return replace(model, risk_score=found, policy=Policy(model.policy.horizon, threshold))
    if goal is not None:
        from safetydrift.monitor.risk_control import with_thresholds  # noqa: PLC0415  # it uses this module

        return with_thresholds(replace(model, risk_score=found), tried, goal, cross_fitted=True)
    budget, proposals = settings.false_alarm_budget, settings.proposal_budget
    policy = Policy(model.policy.horizon, *tried.thresholds(budget, proposals))
    statement = (
        f"chosen so that at most {budget:.0%} of the training runs without a violation alarm, and {proposals:.0%} at a "
        "proposed call, each scored by a risk score fitted on other tasks; no guarantee"
    )
    return replace(
        model, risk_score=found, policy=policy, provenance={**model.provenance, "threshold": statement}
    )


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
    settings = fitted.settings
    arrivals = _arrivals(fitted)
    kinds, kind_strengths = nested_kinds(fitted.evidence)
    tables = {
        category: Tabulated(
            chain=chain,
            weights=fitted.weights[category],
            evidence=fitted.evidence[category],
            aggregate=fitted.evidence[AGGREGATE],
            arrival=arrivals.shares[category],
            arrival_weights=arrivals.weights[category],
            kinds=kinds[category],
            max_horizon=settings.max_horizon,
            horizon=policy.horizon,
        ).table()
        for category, chain in fitted.chains.items()
    }
    fitted_strengths = {
        "transitions": fitted.strengths,
        "arrivals": arrivals.strengths,
        "kinds": kind_strengths,
    }
    return Model(
        space=space,
        catalogue=catalogue,
        notion=settings.notion,
        row_of=fitted.rows.row_of,
        rows=fitted.rows.names,
        tables=tables,
        policy=policy,
        settings={**settings.definition(), "concentrations": _shown(fitted_strengths)},
        provenance={
            **(provenance or {}),
            "safetydrift": __version__,
            "runs": {category: dict(part.ends) for category, part in fitted.evidence.items()},
            "left_out": dict(fitted.left_out),
            "tasks": list(fitted.tasks),
        },
        evidence=evidence_definition(fitted.parts),
    )


@dataclass(frozen=True, slots=True)
class _Arrivals:
    """By category, the share of violating calls among those that led to each row and the weights behind it."""

    shares: dict[str, FloatArray]
    weights: dict[str, FloatArray]
    strengths: dict[str, float] = field(default_factory=dict)


def _arrivals(fitted: FittedChains) -> _Arrivals:
    """Estimate shares of violating calls, drawn towards other runs when transitions are."""
    evidence, settings = fitted.evidence, fitted.settings
    counted = {category: part.arrivals.astype(np.float64) for category, part in evidence.items()}
    if settings.estimator is Estimator.HIERARCHICAL:
        shares, strengths = nested_arrivals(evidence, fitted.kin)
        weights = {category: calls + strengths[_level(category)] for category, calls in counted.items()}
        return _Arrivals(shares, weights, strengths)
    strength = settings.strength if settings.estimator is Estimator.SHRUNK else 0.0
    aggregate = evidence[AGGREGATE]
    shares, weights = {}, {}
    with np.errstate(invalid="ignore", divide="ignore"):
        overall = aggregate.violating_arrivals / aggregate.arrivals
        for category, part in evidence.items():
            drawn = strength if category != AGGREGATE else 0.0
            weights[category] = counted[category] + drawn
            # Without pseudo-counts nothing is borrowed, an unknown share least of all.
            lent = drawn * overall if drawn else 0.0
            shares[category] = (part.violating_arrivals + lent) / weights[category]
    return _Arrivals(shares, weights)


def _shown(strengths: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    return {
        what: {level: float(f"{value:.4g}") for level, value in levels.items()}
        for what, levels in strengths.items()
        if levels
    }


JEFFREYS = 0.5
"""Pseudo-observations per allowed transition of the estimator SMOOTHED."""
