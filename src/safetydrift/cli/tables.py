"""The tables that several verbs print."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group

from safetydrift.cli.output import table
from safetydrift.markov.estimation import row_intervals
from safetydrift.monitor.model import category_name
from safetydrift.states.trajectory import VIOLATED, Notion

if TYPE_CHECKING:
    from safetydrift.markov.chain import AbsorbingChain
    from safetydrift.markov.estimation import Interval
    from safetydrift.markov.horizon import HorizonTable
    from safetydrift.monitor.evidence import Evidence
    from safetydrift.monitor.fitting import FittedChains
    from safetydrift.monitor.model import Model

MATRIX_COLUMNS = 10
LIKELIEST = 3

NOTION_WORDS = {
    Notion.LABEL: "violation = the source's own label, at its onset",
    Notion.RULES: "violation = the rules of the state space",
}


def matrix_table(
    title: str, chain: AbsorbingChain, evidence: Evidence | None = None, *, intervals: bool = False
) -> Group:
    """Show a transition matrix; a dash is a transition never observed. States no run ever left are not shown.

    A matrix too wide for a page is shown as the likeliest next states of each. With ``intervals`` every cell carries
    the 95 % Wilson interval of the observed share.
    """
    ends = [state for states in chain.absorbing.values() for state in states]
    rows = [state for state in range(chain.n_states) if state not in ends and chain.transitions[state].any()]
    columns = [
        state for state in range(chain.n_states) if state in ends or chain.transitions[rows, state].any()
    ]
    if len(columns) > MATRIX_COLUMNS:
        return _likeliest(title, chain, rows, evidence)
    bounds = row_intervals(evidence.counts) if intervals and evidence else None
    cells = [
        [
            chain.names[state],
            *(_cell(chain, state, target, bounds) for target in columns),
            *([_departures(evidence, state)] if evidence else []),
        ]
        for state in rows
    ]
    header = ["from", *(chain.names[state] for state in columns), *(["transitions"] if evidence else [])]
    return table(title, header, cells)


def _departures(evidence: Evidence, state: int) -> str:
    count = int(evidence.counts.departures[state])
    return f"{count:,}" if count else "0 (borrowed)"


def _cell(chain: AbsorbingChain, state: int, target: int, bounds: Interval | None) -> str:
    value = chain.transitions[state, target]
    if not value:
        return "-"
    if bounds is None:
        return f"{value:.3f}"
    return f"{value:.3f} [{bounds.low[state, target]:.2f},{bounds.high[state, target]:.2f}]"


def _likeliest(title: str, chain: AbsorbingChain, rows: list[int], evidence: Evidence | None) -> Group:
    cells = []
    for state in rows:
        order = sorted(range(chain.n_states), key=lambda target: -chain.transitions[state, target])
        shown = [target for target in order[:LIKELIEST] if chain.transitions[state, target]]
        words = ", ".join(f"{chain.names[target]} {chain.transitions[state, target]:.2f}" for target in shown)
        cells.append(
            [chain.names[state], words, *([int(evidence.counts.departures[state])] if evidence else [])]
        )
    header = ["from", f"the {LIKELIEST} likeliest next states", *(["transitions"] if evidence else [])]
    return table(title, header, cells, left=2)


def horizon_view(title: str, horizons: HorizonTable) -> Group:
    """Show the probability of a violation within 1, 2, .. steps from every transient state."""
    curves, names = horizons.probability(VIOLATED), horizons.chain.names
    rows = [
        [names[state], *(f"{100 * value:.1f}" for value in curves[1:, state])]
        for state in horizons.chain.transient
    ]
    return table(f"{title} (%)", ["from", *(f"h={h}" for h in range(1, len(curves)))], rows)


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
            "\nPolicy suggested with the model of all these runs",
            ["horizon", "threshold", "threshold for a proposed call", "intervention"],
            [[policy.horizon, policy.threshold, policy.pending_threshold, policy.intervention.value]],
            left=0,
        )
    )
    return Group(*parts)
