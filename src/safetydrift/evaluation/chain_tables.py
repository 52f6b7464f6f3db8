"""Chains as tables: where a step leads, how likely a violation is within the next ones, and how runs end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safetydrift.evaluation.document import Table
from safetydrift.markov.estimation import row_intervals
from safetydrift.monitor.tabulation import ends_of
from safetydrift.states.trajectory import VIOLATED, Notion

if TYPE_CHECKING:
    from safetydrift.markov.chain import AbsorbingChain
    from safetydrift.markov.estimation import Interval
    from safetydrift.markov.horizon import HorizonTable
    from safetydrift.monitor.evidence import Evidence

MATRIX_COLUMNS = 10
LIKELIEST = 3
NOTION_WORDS = {
    Notion.LABEL: "violation = the source's own label, at its onset",
    Notion.RULES: "violation = the rules of the state space",
}


def percent(value: float) -> str:
    """Write a probability as a percentage; what is undefined is a dash."""
    return f"{100 * value:.1f} %" if value == value else "-"  # noqa: PLR0124  # nan


def matrix_table(
    title: str, chain: AbsorbingChain, evidence: Evidence | None = None, *, intervals: bool = False
) -> Table:
    """Return a transition matrix; a dash is a transition never observed. States no run ever left are not shown.

    A matrix too wide for a page becomes the likeliest next states of each. With ``intervals`` every cell carries the
    95 % Wilson interval of the observed share.
    """
    ends = [state for states in chain.absorbing.values() for state in states]
    rows = [state for state in range(chain.n_states) if state not in ends and chain.transitions[state].any()]
    columns = [
        state for state in range(chain.n_states) if state in ends or chain.transitions[rows, state].any()
    ]
    seen = [(_departures(evidence, state),) if evidence else () for state in rows]
    last = ("transitions",) if evidence else ()
    if len(columns) > MATRIX_COLUMNS:
        told = [_likeliest(chain, state) for state in rows]
        header: tuple[str, ...] = (f"the {LIKELIEST} likeliest next states",)
    else:
        bounds = row_intervals(evidence.counts) if intervals and evidence else None
        told = [tuple(_cell(chain, state, target, bounds) for target in columns) for state in rows]
        header = tuple(chain.names[state] for state in columns)
    cells = [(chain.names[state], *cell, *count) for state, cell, count in zip(rows, told, seen, strict=True)]
    return Table(title, "", ("from", *(f"to {name}" for name in header), *last), tuple(cells))


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


def _likeliest(chain: AbsorbingChain, state: int) -> tuple[str, ...]:
    order = sorted(range(chain.n_states), key=lambda target: -chain.transitions[state, target])
    shown = [target for target in order[:LIKELIEST] if chain.transitions[state, target]]
    return (", ".join(f"{chain.names[one]} {chain.transitions[state, one]:.2f}" for one in shown),)


def horizons_table(title: str, horizons: HorizonTable) -> Table:
    """Return the probability of a violation within 1, 2, .. steps from every transient state, in per cent."""
    curves, names = horizons.probability(VIOLATED), horizons.chain.names
    rows = [
        (names[state], *(f"{100 * value:.1f}" for value in curves[1:, state]))
        for state in horizons.chain.transient.tolist()
    ]
    return Table(f"{title} (%)", "", ("from", *(f"h={h}" for h in range(1, len(curves)))), tuple(rows))


def ends_table(title: str, chain: AbsorbingChain) -> Table:
    """Return how runs end from every transient state, and in how many steps."""
    ends = ends_of(chain)
    classes = [end for end in chain.class_names if ends.probability(end)[ends.chain.transient].any()]
    rows = [
        (
            chain.names[state],
            *(percent(float(ends.probability(end)[state])) for end in classes),
            f"{ends.expected_steps[position]:.1f}",
            f"{ends.variance_of_steps[position]:.1f}",
        )
        for position, state in enumerate(ends.chain.transient.tolist())
    ]
    columns = ("from", *(f"ends {name}" for name in classes), "expected steps", "variance")
    return Table(title, "", columns, tuple(rows))
