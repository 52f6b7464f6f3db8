"""Figures of results. They are made without pyplot, so that no backend is chosen and no global setting survives a call.

Names come from files of others: they are drawn as plain text, never as formulas, and never over several lines.
"""

from __future__ import annotations

import warnings
from functools import wraps
from io import BytesIO
from typing import TYPE_CHECKING, Any, ParamSpec

import numpy as np
from matplotlib import style
from matplotlib.figure import Figure

from safetydrift.evaluation.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from safetydrift.evaluation.metrics.calibration import ReliabilityPoint
    from safetydrift.evaluation.metrics.detection import Sweep
    from safetydrift.markov.chain import AbsorbingChain
    from safetydrift.markov.horizon import HorizonTable

BLUE, VERMILLION, GREEN, ORANGE, PURPLE, SKY = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#e69f00",
    "#cc79a7",
    "#56b4e9",
)
"""Colours of Okabe and Ito, which colour-blind readers can tell apart; markers differ besides."""
GREY = "#5a6270"
MARKERS = "osD^vP"
COLOURS = (BLUE, VERMILLION, GREEN, ORANGE, PURPLE, SKY)
LONGEST_NAME = 32
LAST_LEAD_TIME = 14
_STYLE = {
    "font.size": 9,
    "text.parse_math": False,
    "axes.grid": True,
    "grid.color": "#d9dde3",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.axisbelow": True,
    "lines.markersize": 4,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
    "figure.dpi": 150,
    "svg.fonttype": "none",
    "svg.hashsalt": "safetydrift",
}

_P = ParamSpec("_P")


def styled(draw: Callable[_P, Figure]) -> Callable[_P, Figure]:
    """Draw in our style whatever the caller's own settings are, and leave those as they were."""

    @wraps(draw)
    def drawn(*args: _P.args, **kwargs: _P.kwargs) -> Figure:
        with style.context(["default", _STYLE]):
            return draw(*args, **kwargs)

    return drawn


def encoded(figure: Figure, suffix: str) -> bytes:
    """Return a figure as the bytes of a file; the same figure gives the same bytes."""
    stream = BytesIO()
    metadata = {"Date": None, "Creator": None} if suffix == "svg" else {"Software": None}
    with style.context(["default", _STYLE]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)  # names may be in any script
        figure.savefig(stream, format=suffix, metadata=metadata)
    return stream.getvalue()


def axes_of(
    width: float = 5.5, height: float = 3.2, rows: int = 1, columns: int = 1
) -> tuple[Figure, list[Axes]]:
    """Return a figure, in inches, and its axes row by row."""
    figure = Figure(figsize=(width, height))
    return figure, figure.subplots(rows, columns, squeeze=False).ravel().tolist()


def name_of(name: str) -> str:
    """Return a name as it may be drawn."""
    return printable(name, LONGEST_NAME)


def legend(figure: Figure, axes: Axes) -> None:
    """Name the curves of some axes at the right of a figure."""
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper")


@styled
def curves_figure(
    curves: Mapping[str, tuple[ArrayLike, ArrayLike]],
    x: str,
    y: str,
    *,
    diagonal: bool = False,
    points: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
    **limits: object,
) -> Figure:
    """Draw curves by name, each with a colour and a marker of its own.

    Parameters
    ----------
    curves
        Horizontal and vertical coordinates of each curve.
    x, y
        What the axes show.
    diagonal
        Whether to draw the line on which both are equal.
    points
        Printed figures, drawn hollow: they come from other runs.
    limits
        Further settings of the axes, such as ``xscale`` or ``ylim``.
    """
    figure, (axes,) = axes_of()
    if diagonal:
        axes.axline((0, 0), slope=1, color=GREY, linewidth=0.9, linestyle="--")
    for place, (name, (across, up)) in enumerate(curves.items()):
        axes.plot(
            across,
            up,
            color=COLOURS[place % 6],
            marker=MARKERS[place % 6],
            markevery=0.05,
            label=name_of(name),
        )
    for name, (across, up) in (points or {}).items():
        axes.plot(
            across, up, linestyle="", marker="D", markerfacecolor="none", color=GREY, label=name_of(name)
        )
    axes.set(xlabel=x, ylabel=y, **limits)
    legend(figure, axes)
    return figure


def recall_figure(sweeps: Mapping[str, Sweep]) -> Figure:
    """Draw violations detected against false alarms over all thresholds; the horizontal axis is stretched towards 0."""
    curves = {}
    for name, sweep in sweeps.items():
        false = np.array([1.0, *(np.array(sweep.false_alarms) / max(sweep.not_violated, 1)), 0.0])
        found = np.array([1.0, *(np.array(sweep.detected) / max(sweep.violated, 1)), 0.0])
        curves[name] = (np.sqrt(false), found)
    ticks = np.array([0.01, 0.05, 0.1, 0.25, 0.5, 1.0])
    labels = [f"{100 * tick:.0f} %" for tick in ticks]
    return curves_figure(
        curves,
        "runs without a violation that alarm",
        "violations detected",
        xlim=(0, 1),
        ylim=(0, 1),
        xticks=np.sqrt(ticks),
        xticklabels=labels,
    )


def reliability_figure(curves: Mapping[str, Sequence[ReliabilityPoint]]) -> Figure:
    """Draw how often what was forecast came true: points on the diagonal mean what they say."""
    drawn = {
        name: ([point.forecast for point in curve], [point.observed.value for point in curve])
        for name, curve in curves.items()
    }
    return curves_figure(drawn, "forecast, within 5 steps", "came true", diagonal=True)


@styled
def matrix_figure(
    chain: AbsorbingChain, departures: Sequence[int] = (), published: AbsorbingChain | None = None
) -> Figure:
    """Draw a transition matrix as a heat map with its numbers.

    Parameters
    ----------
    chain
        The chain.
    departures
        Transitions observed from each state.
    published
        A chain whose shares stand in brackets, where its states have the same names.
    """
    rows = [state for state in chain.classes.open.tolist() if chain.transitions[state].any()]
    columns = [state for state in range(chain.n_states) if chain.transitions[rows, state].any()]
    shares = chain.transitions[np.ix_(rows, columns)]
    figure, (axes,) = axes_of(2 + 0.75 * len(columns), 1.2 + 0.45 * len(rows))
    axes.imshow(np.sqrt(shares), cmap="Blues", vmin=0, vmax=1.4, aspect="auto")
    for row, origin in enumerate(rows):
        for column, target in enumerate(columns):
            told = f"{shares[row, column]:.2f}" if shares[row, column] else "·"
            told += _printed(chain, published, origin, target)
            axes.text(column, row, told, ha="center", va="center", size=8)
    seen = [f"  ({departures[state]:,})" if departures else "" for state in rows]
    labels = [name_of(chain.names[state]) + count for state, count in zip(rows, seen, strict=True)]
    axes.set_yticks(range(len(rows)), labels)
    axes.set_xticks(range(len(columns)), [name_of(chain.names[state]) for state in columns], rotation=30)
    axes.grid(visible=False)
    return figure


def _printed(chain: AbsorbingChain, published: AbsorbingChain | None, origin: int, target: int) -> str:
    names = () if published is None else published.names
    if published is None or chain.names[origin] not in names or chain.names[target] not in names:
        return ""
    cell = names.index(chain.names[origin]), names.index(chain.names[target])
    return f" [{published.transitions[cell]:.2f}]"


@styled
def horizons_figure(
    tables: Mapping[str, HorizonTable], published: Mapping[str, float] | None = None
) -> Figure:
    """Draw the probability of a violation within h steps, a panel per chain and a curve per state, on one scale.

    Parameters
    ----------
    tables
        By name.
    published
        Printed probabilities within 5 steps by the name of the state, drawn hollow.
    """
    abreast = min(max(len(tables), 1), 4)
    down = -(-max(len(tables), 1) // abreast)
    figure, panels = axes_of(1.2 + 2.4 * max(abreast, 1.6), 0.6 + 2.2 * down, down, abreast)
    names = list(
        dict.fromkeys(table.chain.names[s] for table in tables.values() for s in table.chain.transient)
    )
    for axes, (title, table) in zip(panels, tables.items(), strict=False):
        curves = table.probability()
        for state in table.chain.transient.tolist():
            place = names.index(table.chain.names[state])
            look: dict[str, Any] = {"color": COLOURS[place % 6], "marker": MARKERS[place % 6]}
            axes.plot(range(1, len(curves)), curves[1:, state], label=name_of(names[place]), **look)
            if names[place] in (published or {}):
                axes.plot(5, (published or {})[names[place]], **look, markersize=9, markerfacecolor="none")
        axes.set(title=name_of(title), ylim=(0, 1), xlabel="steps ahead")
    for axes in panels[len(tables) :]:
        axes.set_visible(False)
    if tables:
        legend(figure, max(panels[: len(tables)], key=lambda one: len(one.lines)))
    return figure


@styled
def lead_time_figure(lead_times: Mapping[int, int], published_mean: float | None = None) -> Figure:
    """Draw runs by the steps of warning; what lies beyond 14 steps is gathered in the last bar."""
    figure, (axes,) = axes_of()
    gathered = np.zeros(LAST_LEAD_TIME + 1)
    for steps, runs in lead_times.items():
        gathered[min(steps, LAST_LEAD_TIME)] += runs
    axes.bar(range(1, LAST_LEAD_TIME + 1), gathered[1:], color=BLUE)
    if published_mean is not None:
        axes.axvline(published_mean, color=GREY, linestyle="--", label="published mean")
        legend(figure, axes)
    axes.set(xlabel=f"steps of warning ({LAST_LEAD_TIME}: or more)", ylabel="runs")
    return figure
