"""Figures of chains: where a step leads, and how likely a violation is within the next ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from safetydrift.evaluation.figures.canvas import (
    CHARACTER,
    LEAST,
    LEGIBLE_CURVES,
    WIDTH,
    canvas,
    category_label,
    ceiling_of,
    percent,
    percent_axis,
    spread_apart,
    state_names,
    styled,
    whole_ticks,
)
from safetydrift.evaluation.palette import BLACK, BLUE, GREEN, GRID, INK, MUTED, PAPER, SERIES, VERMILLION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray

    from safetydrift.markov.chain import AbsorbingChain
    from safetydrift.markov.horizon import HorizonTable

STRONG_CELL, DARK_CELL = 0.62, 0.85
FAINT = 0.1
PRINTED_HORIZON = 5
PANELS_ABREAST, MOST_PANELS = 4, 32


@styled
def matrix_figure(
    chain: AbsorbingChain, departures: ArrayLike | None = None, published: AbsorbingChain | None = None
) -> Figure:
    """Draw a transition matrix as a heat map with its numbers.

    A row per state that a run can leave and a column per state it can reach; the ends of a run come last. A dot
    is a transition that was never observed, a hatched row a state that was reached and never left.

    Parameters
    ----------
    chain
        The chain.
    departures : (n,) array, optional
        Transitions observed from each state, shown at the right of its row.
    published
        A chain whose shares stand small and grey below ours, where its states have the same names.
    """
    cell, row_height = 29.0, 23.0 if published is None else 31.0
    open_states = [
        state
        for state in chain.classes.open.tolist()
        if chain.transitions[:, state].any() or chain.transitions[state].any()
    ]
    ends = [state for state in chain.classes.absorbing.tolist() if _is_end(chain, state)]
    names = state_names(chain)
    columns = [*open_states, *ends]
    left = CHARACTER * max((len(names[state]) for state in open_states), default=4) + 10
    top = 0.65 * CHARACTER * max(len(names[state]) for state in columns) + 14
    width = left + cell * len(columns) + 52
    figure, axes = canvas(
        width, top + row_height * len(open_states) + 15, left=left, right=52, top=top, bottom=15
    )
    axes.set(xlim=(0, len(columns)), ylim=(max(len(open_states), 1), 0))
    for spine in axes.spines.values():
        spine.set_visible(False)
    for row, origin in enumerate(open_states):
        _matrix_row(axes, row, chain.transitions[origin, columns], first_end=len(open_states))
        if departures is not None:
            count = int(np.asarray(departures)[origin])
            axes.text(len(columns) + 0.2, row + 0.5, f"{count:,}", color=MUTED, va="center", size=8)
    if published is not None:
        _printed_shares(axes, chain, published, open_states, columns)
    if departures is not None:
        axes.text(len(columns) + 0.2, len(open_states) + 0.1, "seen", color=MUTED, va="top", size=8)
    if ends and open_states:
        axes.axvline(len(open_states), color=PAPER, linewidth=4)
    axes.xaxis.tick_top()
    axes.set_xticks(
        [column + 0.35 for column in range(len(columns))],
        [names[state] for state in columns],
        rotation=40,
        ha="left",
        rotation_mode="anchor",
    )
    axes.set_yticks([row + 0.5 for row in range(len(open_states))], [names[state] for state in open_states])
    axes.tick_params(length=0, pad=4)
    return figure


@styled
def horizon_figure(
    table: HorizonTable, *, ceiling: float | None = None, published: Mapping[str, float] | None = None
) -> Figure:
    """Draw the probability of a violation within h steps, h = 1 .. max_horizon, a curve per transient state.

    A faint band above a curve is mass that ran into states nothing is known about: the truth lies within it. A
    chain of more states than can be told apart is drawn in one colour, and its highest curves are named.

    Parameters
    ----------
    table
        The horizon table; its chain's first class is drawn.
    ceiling
        Upper end of the vertical axis, to compare several tables; by default it fits this one.
    published
        Printed probabilities within 5 steps by the name of the state, drawn hollow beside its curve.
    """
    chain, steps = table.chain, np.arange(1, table.max_horizon + 1)
    lower = table.probability()[1:]
    upper = np.minimum(lower + table.probability(chain.class_names[-1])[1:], 1.0)
    states = chain.transient.tolist()
    names = state_names(chain)
    printed = {
        state: value for state in states for name, value in (published or {}).items() if names[state] == name
    }
    if ceiling is None:
        ceiling = ceiling_of([*upper[:, states].ravel().tolist(), *printed.values()])
    top = ceiling
    named = sorted(states, key=lambda state: -lower[-1, state])[:LEGIBLE_CURVES]
    labels = [f"{names[state]}\N{EN SPACE}{percent(lower[-1, state])}" for state in named]
    right = CHARACTER * (max((len(names[state]) for state in named), default=0) + 6) + 24
    figure, axes = canvas(max(WIDTH, right + 188), 190, left=38, right=right, top=10, bottom=36)
    axes.set(xlim=(1, max(table.max_horizon, 2)), ylim=(0, top), xlabel="steps ahead")
    percent_axis(axes, top)
    axes.set_xticks(whole_ticks(1, table.max_horizon))
    plain = len(states) > LEGIBLE_CURVES
    looks = {state: (MUTED, "") if plain else SERIES[position] for position, state in enumerate(states)}
    for state, (colour, marker) in looks.items():
        axes.fill_between(steps, lower[:, state], upper[:, state], color=colour, alpha=0.14, linewidth=0)
        axes.plot(
            steps,
            lower[:, state],
            color=colour,
            marker=marker,
            clip_on=False,
            linewidth=0.7 if plain else 1.6,
        )
    for state, value in printed.items():
        colour, marker = looks[state]
        axes.plot(
            PRINTED_HORIZON,
            value,
            marker=marker,
            markersize=7,
            markerfacecolor="none",
            markeredgecolor=colour,
            linestyle="",
        )
    heights = spread_apart([float(lower[-1, state]) for state in named], 0.09 * top, top)
    for state, label, height in zip(named, labels, heights, strict=True):
        colour, marker = looks[state]
        axes.annotate(
            label,
            (1, height),
            (18, 0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            va="center",
            size=9,
            annotation_clip=False,
        )
        axes.plot(
            1.055, height, marker=marker, color=colour, transform=axes.get_yaxis_transform(), clip_on=False
        )
    return figure


@styled
def horizon_grid_figure(tables: Mapping[str, HorizonTable]) -> Figure:
    """Draw the curves of many chains, a panel each, all on one scale.

    Parameters
    ----------
    tables
        By category; the first `MOST_PANELS` are drawn.
    """
    shown = list(tables.items())[:MOST_PANELS]
    levels = list(dict.fromkeys(name for _, table in shown for name in _transient_names(table)))
    looks = dict(zip(levels, SERIES, strict=False))
    rows = -(-len(shown) // PANELS_ABREAST)
    side, gap, left, below, head = 92.0, 16.0, 40.0, 40.0, 24.0
    width = left + PANELS_ABREAST * (side + gap) + 100
    height = head + rows * (side + gap + 10) - gap - 10 + below
    figure = Figure(figsize=(width / 72, height / 72), dpi=200, facecolor=PAPER)
    axes = None
    for place, (category, table) in enumerate(shown):
        row, column = divmod(place, PANELS_ABREAST)
        bottom = height - head - row * (side + gap + 10) - side
        box = ((left + column * (side + gap)) / width, bottom / height, side / width, side / height)
        axes = figure.add_axes(box)
        axes.set(xlim=(1, max(table.max_horizon, 2)), ylim=(0, 1))
        lower = table.probability()[1:]
        for state, name in zip(table.chain.transient.tolist(), _transient_names(table), strict=True):
            colour, marker = looks.get(name, (MUTED, ""))
            steps = np.arange(1, table.max_horizon + 1)
            axes.plot(steps, lower[:, state], color=colour, marker=marker, markevery=3, clip_on=False)
        percent_axis(axes, 1.0)
        axes.set_xticks([1, 5, 10] if table.max_horizon >= 10 else [1, table.max_horizon])  # noqa: PLR2004
        if column:
            axes.set_yticklabels([])
        if place + PANELS_ABREAST < len(shown):
            axes.set_xticklabels([])
        axes.set_title(category_label(category), size=8.5, loc="left", color=INK, pad=4)
    if axes is not None:
        for name, (colour, marker) in looks.items():
            axes.plot([], [], color=colour, marker=marker, label=name)
        figure.legend(
            *axes.get_legend_handles_labels(), loc="upper right", bbox_to_anchor=(0.995, 1 - head / height)
        )
    figure.text(
        (left + PANELS_ABREAST * (side + gap) / 2) / width, 6 / height, "steps ahead", color=MUTED, size=9
    )
    return figure


# -- parts --------------------------------------------------------------------------------------------------


def _is_end(chain: AbsorbingChain, state: int) -> bool:
    """Tell whether a run can end there; the class the chain is about counts even if none did."""
    return state in chain.absorbing[chain.class_names[0]] or bool(
        np.count_nonzero(chain.transitions[:, state]) > 1
    )


def _matrix_row(axes: Axes, row: int, values: NDArray[np.float64], first_end: int) -> None:
    """Fill one row of the heat map; the ends of a run have a colour of their own."""
    if not values.any():
        axes.add_patch(
            Rectangle((0, row), len(values), 1, fill=False, hatch="////", edgecolor=GRID, linewidth=0)
        )
        axes.text(len(values) / 2, row + 0.5, "never left", ha="center", va="center", size=8, color=MUTED)
        return
    for column, value in enumerate(values.tolist()):
        strength = value**0.6 if value else 0.0
        colour = VERMILLION if column == first_end else BLUE if column < first_end else GREEN
        corner = (column + 0.03, row + 0.04)
        axes.add_patch(Rectangle(corner, 0.94, 0.92, facecolor=colour, alpha=strength, linewidth=0))
        axes.text(
            column + 0.5,
            row + 0.5,
            _share(value),
            ha="center",
            va="center",
            size=8.5,
            color=MUTED if not value else _on_cell(strength),
        )


def _transient_names(table: HorizonTable) -> list[str]:
    names = state_names(table.chain)
    return [names[state] for state in table.chain.transient.tolist()]


def _printed_shares(
    axes: Axes, chain: AbsorbingChain, published: AbsorbingChain, rows: list[int], columns: list[int]
) -> None:
    """Write the shares of a printed chain below our own, where the names are the same."""
    names, printed = state_names(chain), state_names(published)
    for row, origin in enumerate(rows):
        for column, target in enumerate(columns):
            if names[origin] in printed and names[target] in printed:
                cell = printed.index(names[origin]), printed.index(names[target])
                own = float(chain.transitions[origin, target])
                axes.text(
                    column + 0.5,
                    row + 0.84,
                    _share(float(published.transitions[cell])),
                    ha="center",
                    va="center",
                    size=6.5,
                    color=MUTED if own < FAINT else _on_cell(own**0.6),
                )


def _on_cell(strength: float) -> str:
    """Return the colour of a number on a cell: legible on light and on dark pages."""
    if strength < STRONG_CELL:
        return INK
    return BLACK if strength < DARK_CELL else PAPER


def _share(value: float) -> str:
    if not value:
        return "·"
    return f"{value:.2f}" if value >= LEAST else "<.01"
