"""The tables that several verbs print."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group

from safetydrift.cli.output import table
from safetydrift.monitor.model import AGGREGATE
from safetydrift.states.trajectory import VIOLATED, Notion

if TYPE_CHECKING:
    from safetydrift.markov.chain import AbsorbingChain
    from safetydrift.markov.horizon import HorizonTable
    from safetydrift.monitor.evidence import Evidence
    from safetydrift.monitor.fitting import FittedChains
    from safetydrift.monitor.model import Model

NOTION_WORDS = {
    Notion.LABEL: "violation = the source's own label, at its onset",
    Notion.RULES: "violation = the rules of the state space",
}


def category_name(category: str) -> str:
    """Name a category in tables."""
    return category if category != AGGREGATE else "all runs"


def matrix_table(title: str, chain: AbsorbingChain, counts: Evidence | None = None) -> Group:
    """Show a transition matrix; a dash is a transition that was never observed, a row of dashes an unknown row."""
    columns = ["from", *chain.names, *(["transitions"] if counts else [])]
    rows = []
    for state, name in enumerate(chain.names):
        if state in chain.classes.absorbing:
            continue
        cells = [f"{value:.3f}" if value else "-" for value in chain.transitions[state]]
        rows.append([name, *cells, *([int(counts.counts.departures[state])] if counts else [])])
    return table(title, columns, rows)


def horizon_view(title: str, horizons: HorizonTable, names: list[str] | None = None) -> Group:
    """Show the probability of a violation within 1, 2, .. steps, from each transient state that was visited."""
    curves = horizons.probability(VIOLATED)
    unknown = horizons.probability("unseen")[-1]
    rows = [
        [
            horizons.chain.names[state],
            *(f"{100 * value:.1f}" for value in curves[1:, state]),
            "never left" if unknown[state] == 1.0 else "",
        ]
        for state in range(horizons.chain.n_states)
        if state not in horizons.chain.classes.absorbing
        and (names is None or horizons.chain.names[state] in names)
    ]
    return table(f"{title} (%)", ["from", *(f"h={h}" for h in range(1, len(curves))), ""], rows)


def fit_summary(chains: FittedChains, model: Model) -> Group:
    """Show what a fit used, and the policy it suggests."""
    rows = []
    for category, evidence in chains.evidence.items():
        ends = evidence.ends
        visited = int((evidence.counts.departures[: len(chains.rows.names)] > 0).sum())
        rows.append(
            [
                category_name(category),
                sum(ends.values()),
                ends[VIOLATED],
                ends["completed"],
                ends["censored"],
                evidence.counts.total,
                f"{visited} of {len(chains.rows.names)}",
            ]
        )
    columns = ["category", "runs", "violated", "completed", "cut off", "transitions", "rows visited"]
    parts = [table(f"Runs used ({NOTION_WORDS[model.notion]})", columns, rows)]
    if chains.left_out:
        left_out = sorted(chains.left_out.items(), key=lambda item: -item[1])
        parts.append(table("\nRuns left out", ["reason", "runs"], left_out))
    policy = model.policy
    parts.append(
        table(
            "\nSuggested policy",
            ["horizon", "threshold", "threshold for a proposed call", "intervention"],
            [[policy.horizon, policy.threshold, policy.pending_threshold, policy.intervention.value]],
            left=0,
        )
    )
    return Group(*parts)
