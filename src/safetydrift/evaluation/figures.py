"""Drawings of results: each function takes a result and returns a figure, and nothing else changes.

Figures are made without pyplot, so no backend is chosen and no global setting survives a call; save one with
``figure.savefig("matrix.svg")``. Colours are those of Okabe and Ito, and no meaning hangs on colour alone.

Names of categories, states and tools come from files of others. They are drawn as plain text: never as formulas,
never over several lines.
"""

from __future__ import annotations

from functools import wraps
from math import isnan
from typing import TYPE_CHECKING, ParamSpec

import numpy as np

from safetydrift.errors import MissingExtraError
from safetydrift.evaluation.palette import (
    BLACK,
    BLUE,
    GREEN,
    GRID,
    INK,
    MUTED,
    PAPER,
    PURPLE,
    SERIES,
    STYLE,
    VERMILLION,
)
from safetydrift.monitor.model import AGGREGATE
from safetydrift.monitor.verdict import Basis

try:
    from matplotlib import style
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle
except ImportError as error:
    raise MissingExtraError("matplotlib", "report", "the report") from error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray

    from safetydrift.evaluation.rate import Rate
    from safetydrift.evaluation.replay import Replay
    from safetydrift.markov.chain import AbsorbingChain
    from safetydrift.markov.horizon import HorizonTable

WIDTH = 320.0
"""Width of most figures, in points: legible when scaled to the width of a phone."""

CHARACTER = 5.2
"""Room for one character of a label, in points; text is not measured, so that layout never depends on fonts."""

LONGEST_NAME = 32
LEGIBLE_CURVES = len(SERIES)
STRONG_CELL, DARK_CELL = 0.62, 0.85
LEAST = 0.005
CEILINGS = (0.04, 0.08, 0.2, 0.4, 0.6, 0.8, 1.0)
LAST_LEAD_TIME = 14

_P = ParamSpec("_P")


def _styled(draw: Callable[_P, Figure]) -> Callable[_P, Figure]:
    """Draw in the style above whatever the caller's own settings are, and leave those as they were."""

    @wraps(draw)
    def styled(*args: _P.args, **kwargs: _P.kwargs) -> Figure:
        with style.context(["default", STYLE]):
            return draw(*args, **kwargs)

    return styled


# -- the figures ----------------------------------------------------------------------------------------


@_styled
def matrix_figure(chain: AbsorbingChain, departures: ArrayLike | None = None) -> Figure:
    """Draw a transition matrix as a heat map with its numbers.

    A row per state that a run can leave and a column per state it can reach; the ends of a run come last. A dot
    is a transition that was never observed, a hatched row a state that was reached and never left.

    Parameters
    ----------
    chain
        The chain.
    departures : (n,) array, optional
        Transitions observed from each state, shown at the right of its row.
    """
    cell, row_height = 29.0, 23.0
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
    figure, axes = _canvas(
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


@_styled
def horizon_figure(table: HorizonTable, *, ceiling: float | None = None) -> Figure:
    """Draw the probability of a violation within h steps, h = 1 .. max_horizon, a curve per transient state.

    A faint band above a curve is mass that ran into states nothing is known about: the truth lies within it. A
    chain of more states than can be told apart is drawn in one colour, and its highest curves are named.

    Parameters
    ----------
    table
        The horizon table; its chain's first class is drawn.
    ceiling
        Upper end of the vertical axis, to compare several tables; by default it fits this one.
    """
    chain, steps = table.chain, np.arange(1, table.max_horizon + 1)
    lower = table.probability()[1:]
    upper = np.minimum(lower + table.probability(chain.class_names[-1])[1:], 1.0)
    states = chain.transient.tolist()
    names = state_names(chain)
    top = ceiling_of(upper[:, states].ravel().tolist()) if ceiling is None else ceiling
    named = sorted(states, key=lambda state: -lower[-1, state])[:LEGIBLE_CURVES]
    labels = [f"{names[state]}\N{EN SPACE}{_percent(lower[-1, state])}" for state in named]
    right = CHARACTER * (max((len(names[state]) for state in named), default=0) + 6) + 16
    figure, axes = _canvas(max(WIDTH, right + 188), 190, left=38, right=right, top=10, bottom=36)
    axes.set(xlim=(1, max(table.max_horizon, 2)), ylim=(0, top), xlabel="steps ahead")
    _percent_axis(axes, top)
    axes.set_xticks(_whole_ticks(1, table.max_horizon))
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
    heights = _spread([float(lower[-1, state]) for state in named], 0.09 * top, top)
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


@_styled
def category_figure(rates: Mapping[str, Rate]) -> Figure:
    """Draw a rate per category: a point, its 95 % Wilson interval, and the counts.

    Parameters
    ----------
    rates
        By category, drawn from the top in this order; the aggregate is set apart by its marker. A category
        without runs has an interval and no point.
    """
    names = [category_label(name) for name in rates]
    left = CHARACTER * max(map(len, names), default=4) + 10
    right = 5.4 * max((len(_counts(rate)) for rate in rates.values()), default=4) + 10
    width = max(WIDTH, left + right + 140)
    figure, axes = _canvas(width, 40 + 21 * len(rates), left=left, right=right, top=6, bottom=34)
    axes.set(xlim=(0, 1), ylim=(len(rates) - 0.4, -0.6), xlabel="runs violated")
    for row, (name, rate) in enumerate(rates.items()):
        colour, marker = (INK, "s") if name == AGGREGATE else (BLUE, "o")
        axes.plot(rate.interval(), (row, row), color=colour, linewidth=2.2, alpha=0.45, solid_capstyle="butt")
        if rate.total:
            axes.plot(rate.value, row, color=colour, marker=marker, markersize=5.5, clip_on=False)
        axes.annotate(
            _counts(rate), (1, row), (8, 0), textcoords="offset points", va="center", size=8.5, color=MUTED
        )
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25", "50", "75", "100 %"])
    axes.set_yticks(range(len(names)), names)
    axes.grid(visible=True, axis="x")
    axes.spines["left"].set_visible(False)
    return figure


@_styled
def lead_time_figure(lead_times: Mapping[int, int]) -> Figure:
    """Draw how many steps of warning there were.

    Parameters
    ----------
    lead_times
        Runs by steps from the first alarm to the violating call; what lies beyond 14 steps is gathered in the
        last bar.
    """
    last = max(1, min(LAST_LEAD_TIME, max(lead_times, default=1)))
    beyond = sum(runs for steps, runs in lead_times.items() if steps > last)
    heights = [lead_times.get(steps, 0) for steps in range(1, last + 1)] + [beyond] * bool(beyond)
    labels = [str(steps) for steps in range(1, last + 1)] + [f"{last + 1}+"] * bool(beyond)
    figure, axes = _canvas(WIDTH, 170, left=12, right=8, top=18, bottom=36)
    axes.bar(range(len(heights)), heights, color=BLUE, width=0.72)
    for position, runs in enumerate(heights):
        if runs:
            axes.annotate(
                f"{runs:,}",
                (position, runs),
                (0, 3),
                textcoords="offset points",
                ha="center",
                size=8,
                color=MUTED,
            )
    axes.set(xlim=(-0.6, max(len(heights), 4) - 0.4), ylim=(0, max(1, *heights)), yticks=[])
    axes.set(xlabel="steps from the first alarm to the violating call")
    axes.set_xticks(range(len(heights)), labels)
    axes.spines["left"].set_visible(False)
    axes.tick_params(length=0)
    return figure


@_styled
def replay_figure(replay: Replay, threshold: float, *, pending_threshold: float | None = None) -> Figure:
    """Draw what a monitor said along one run.

    Dots are verdicts after each call, diamonds verdicts on the next call as proposed, between the two calls they
    lie between; filled ones alarm. A cross at the upper edge is a state nothing is known about. What comes after
    a violation is faint.

    Parameters
    ----------
    replay
        The replayed run.
    threshold
        Where a verdict after a call alarms.
    pending_threshold
        Where a verdict on a proposed call alarms, drawn if it is another.
    """
    standing = [verdict.probability for verdict in replay.standing]
    pending = [verdict.probability for verdict in replay.pending]
    limits = [threshold] if pending_threshold is None else [threshold, pending_threshold]
    top = ceiling_of([*standing, *pending, *limits])
    last = max(len(standing) - 1, 1)
    figure, axes = _canvas(WIDTH, 224, left=38, right=14, top=60, bottom=36)
    axes.set(xlim=(-0.02 * last, 1.02 * last), ylim=(0, top), xlabel="calls made")
    axes.set_xticks(_whole_ticks(0, last))
    _percent_axis(axes, top)
    until = replay.before_onset
    axes.plot(range(until), standing[:until], color=BLUE, marker="o", clip_on=False, label="after each call")
    if replay.onset is not None:
        later = range(until - 1, len(standing))
        axes.plot(later, standing[until - 1 :], color=BLUE, alpha=0.3, linewidth=1, zorder=1)
    _proposals(axes, replay, pending)
    _thresholds(axes, threshold, pending_threshold)
    unknown = [step for step, verdict in enumerate(replay.standing[:until]) if verdict.basis is Basis.UNSEEN]
    axes.plot(unknown, [top] * len(unknown), "x", color=INK, markersize=5, clip_on=False)
    _marks(axes, replay, standing, top)
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(-0.02, 1.13),
        ncols=2,
        borderpad=0,
        handlelength=1.4,
        columnspacing=1.4,
    )
    return figure


# -- names and numbers ----------------------------------------------------------------------------------


def plain_text(name: str) -> str:
    """Return a name as it may be drawn: printable, on one line, of bounded length, and no formula."""
    shown = "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in name
    )
    shown = shown if len(shown) <= LONGEST_NAME else shown[: LONGEST_NAME - 1] + "…"
    return shown.replace("$", r"\$")


def category_label(category: str) -> str:
    """Name a category in a figure."""
    return "all runs" if category == AGGREGATE else plain_text(category)


def state_names(chain: AbsorbingChain) -> list[str]:
    """Name the states of a chain so that a risk level and the end of a run are not mistaken for each other."""
    ends = {chain.names[state] for state in chain.classes.absorbing.tolist()}
    absorbing = set(chain.classes.absorbing.tolist())
    return [
        plain_text(f"ends {name}" if state in absorbing else f"{name} (rules)" if name in ends else name)
        for state, name in enumerate(chain.names)
    ]


def ceiling_of(values: Sequence[float]) -> float:
    """Return an upper end for an axis of probabilities: the lowest round one that leaves room above them."""
    highest = 1.05 * max((value for value in values if not isnan(value)), default=0.0)
    return next((ceiling for ceiling in CEILINGS if ceiling >= highest), 1.0)


def _percent(value: float) -> str:
    return f"{100 * value:.0f} %" if value >= LEAST or not value else "< 1 %"


def _counts(rate: Rate) -> str:
    share = f"{100 * rate.value:.0f} %" if rate.total else "-"
    return f"{share}\N{EN SPACE}{rate.hits:,}/{rate.total:,}"


# -- parts of figures -----------------------------------------------------------------------------------


def _canvas(
    width: float, height: float, *, left: float, right: float, top: float, bottom: float
) -> tuple[Figure, Axes]:
    """Return a figure of one pair of axes; all lengths in points."""
    figure = Figure(figsize=(width / 72, height / 72), dpi=200, facecolor=PAPER)
    box = (left / width, bottom / height, (width - left - right) / width, (height - top - bottom) / height)
    return figure, figure.add_axes(box)


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


def _on_cell(strength: float) -> str:
    """Return the colour of a number on a cell: legible on light and on dark pages."""
    if strength < STRONG_CELL:
        return INK
    return BLACK if strength < DARK_CELL else PAPER


def _share(value: float) -> str:
    if not value:
        return "·"
    return f"{value:.2f}" if value >= LEAST else "<.01"


def _percent_axis(axes: Axes, top: float) -> None:
    ticks = [top * quarter / 4 for quarter in range(5)]
    axes.set_yticks(ticks, [f"{100 * tick:.0f} %" for tick in ticks])
    axes.grid(visible=True, axis="y")
    axes.spines["left"].set_visible(False)


def _whole_ticks(first: int, last: int) -> list[int]:
    """Return at most eleven whole numbers that cover a range of steps."""
    stride = next(stride for stride in (1, 2, 5, 10, 20, 50, last or 1) if (last - first) / stride <= 10)  # noqa: PLR2004
    return [
        step for step in range(last + 1) if step >= first and (step - first * (stride == 1)) % stride == 0
    ]


def _spread(heights: Sequence[float], gap: float, top: float) -> list[float]:
    """Move heights, given from the highest down, apart by a gap, as little as it takes within 0 .. top."""
    spread = [min(height, top - position * gap) for position, height in enumerate(heights)]
    for position in range(len(spread) - 2, -1, -1):
        spread[position] = max(spread[position], spread[position + 1] + gap / 2)
    for position in range(1, len(spread)):
        spread[position] = min(spread[position], spread[position - 1] - gap)
    lift = max(0.0, -min(spread, default=0.0))
    return [height + lift for height in spread]


def _thresholds(axes: Axes, threshold: float, pending_threshold: float | None) -> None:
    axes.axhline(
        threshold, color=BLUE, linewidth=1, linestyle=(0, (5, 3)), label=f"threshold {100 * threshold:.1f} %"
    )
    if pending_threshold is not None and pending_threshold != threshold:
        label = f"threshold {100 * pending_threshold:.1f} %"
        axes.axhline(pending_threshold, color=PURPLE, linewidth=1, linestyle=(0, (1.5, 2)), label=label)


def _proposals(axes: Axes, replay: Replay, pending: Sequence[float]) -> None:
    """Draw verdicts on proposed calls halfway between the calls before and after them."""
    before = replay.onset or len(pending)
    for alarm, face in ((False, "none"), (True, PURPLE)):
        steps = [step for step, verdict in enumerate(replay.pending[:before]) if verdict.alarm == alarm]
        axes.plot(
            [step + 0.5 for step in steps],
            [pending[step] for step in steps],
            linestyle="",
            marker="D",
            markersize=4,
            markerfacecolor=face,
            markeredgecolor=PURPLE,
            clip_on=False,
            label=None if alarm else "next call, as proposed",
        )


def _marks(axes: Axes, replay: Replay, standing: Sequence[float], top: float) -> None:
    """Mark the first alarm and the violating call."""
    if replay.onset is not None:
        axes.axvline(replay.onset, color=INK, linewidth=1.2)
        axes.annotate(
            f"violation, call {replay.onset}",
            (replay.onset, top),
            (0, 3),
            textcoords="offset points",
            ha="right",
            size=8.5,
        )
    if replay.alarm is not None:
        height = standing[replay.alarm]
        height = top if isnan(height) else height
        axes.plot(
            replay.alarm,
            height,
            "o",
            markersize=10,
            markerfacecolor="none",
            markeredgecolor=VERMILLION,
            clip_on=False,
        )
        axes.annotate(
            "alarm",
            (replay.alarm, height),
            (0, 8),
            textcoords="offset points",
            ha="center",
            size=8.5,
            annotation_clip=False,
        )
