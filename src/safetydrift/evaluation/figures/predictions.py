"""Figures of predictors side by side: what their probabilities, alarms and warnings are worth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from safetydrift.evaluation.figures.canvas import (
    CHARACTER,
    canvas,
    ceiling_of,
    percent_axis,
    plain_text,
    styled,
    whole_ticks,
)
from safetydrift.evaluation.palette import BLUE, GRID, INK, MUTED, PAPER, SERIES, VERMILLION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from safetydrift.evaluation.drawn import Band, Fan
    from safetydrift.evaluation.metrics.calibration import ReliabilityPoint
    from safetydrift.evaluation.metrics.levels import Panel

MOST_CURVES = len(SERIES)
"""Predictors that one figure can hold; further ones are left out of it."""

LONGEST_WARNING = 12
_SIDE = 235.0
_USUAL = 0.05


@styled
def reliability_figure(curves: Mapping[str, Sequence[ReliabilityPoint]]) -> Figure:
    """Draw how often what was forecast came true: points on the diagonal mean what they say.

    Bars are 95 % Wilson intervals. The axes end where the forecasts do.

    Parameters
    ----------
    curves
        The reliability curve of each predictor, by name.
    """
    values = [value for curve in curves.values() for point in curve for value in _extent(point)]
    top = ceiling_of(values)
    figure, axes = _square(curves)
    axes.set(xlim=(0, top), ylim=(0, top), xlabel="forecast, within 5 steps", ylabel="came true")
    axes.plot([0, top], [0, top], color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)))
    for (colour, marker), curve in zip(SERIES, curves.values(), strict=False):
        forecast = [point.forecast for point in curve]
        axes.plot(forecast, [point.observed.value for point in curve], color=colour, marker=marker)
        for point in curve:
            axes.plot([point.forecast] * 2, point.observed.interval(), color=colour, alpha=0.4, linewidth=2)
    percent_axis(axes, top)
    axes.set_xticks(axes.get_yticks(), [label.get_text() for label in axes.get_yticklabels()])
    _key(axes, curves)
    return figure


@styled
def recall_figure(bands: Mapping[str, Band]) -> Figure:
    """Draw violations detected against false alarms, over all thresholds.

    The line at 5 % is the budget that tables use. Bands are 95 % intervals over resampled tasks. Both axes are shares
    of runs; the horizontal one is stretched towards zero, where a monitor has to work.

    Parameters
    ----------
    bands
        The curve of each predictor, by name.
    """
    figure, axes = _square(bands)
    axes.set(
        xlim=(0, 1), ylim=(0, 1), xlabel="runs without a violation that alarm", ylabel="violations detected"
    )
    axes.set_xscale("function", functions=(np.sqrt, np.square))
    diagonal = np.linspace(0, 1, 200)
    axes.plot(diagonal, diagonal, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.axvline(_USUAL, color=GRID, linewidth=1)
    for (colour, marker), band in zip(SERIES, bands.values(), strict=False):
        axes.fill_between(band.false_alarms, band.low, band.high, color=colour, alpha=0.15, linewidth=0)
        axes.plot(band.false_alarms, band.detected, color=colour, marker=marker, markevery=6)
    ticks = [0.01, 0.05, 0.1, 0.25, 0.5, 1.0]
    axes.set_xticks(ticks, [f"{100 * tick:.0f}" + (" %" if tick == 1 else "") for tick in ticks])
    axes.set_xticks([], minor=True)
    percent_axis(axes, 1.0)
    _key(axes, bands)
    return figure


@styled
def warning_figure(surviving: Mapping[str, Sequence[float]]) -> Figure:
    """Draw the share of violations that were warned of at least so many steps ahead.

    Parameters
    ----------
    surviving
        By predictor: the share with 1 step of warning or more, with 2 or more, and so on.
    """
    top = ceiling_of([value for curve in surviving.values() for value in curve])
    last = max((len(curve) for curve in surviving.values()), default=1)
    figure, axes = _square(surviving)
    axes.set(xlim=(1, max(last, 2)), ylim=(0, top), xlabel="steps of warning, or more", ylabel="violations")
    for (colour, marker), curve in zip(SERIES, surviving.values(), strict=False):
        axes.plot(range(1, len(curve) + 1), curve, color=colour, marker=marker, clip_on=False)
    axes.set_xticks(whole_ticks(1, last))
    percent_axis(axes, top)
    _key(axes, surviving)
    return figure


@styled
def panel_figure(panels: Mapping[str, Sequence[Panel]], horizon: int) -> Figure:
    """Draw how well each predictor ranks the points of each category: a point and its interval over tasks.

    Categories in which nothing can be ranked are left out.

    Parameters
    ----------
    panels
        The categories of each predictor, by name.
    horizon
        Steps ahead.
    """
    found = {
        name: {
            panel.name: panel.auroc[horizon]
            for panel in parts
            if panel.kind == "category"
            and horizon in panel.auroc
            and not np.isnan(panel.auroc[horizon].value)
        }
        for name, parts in list(panels.items())[:MOST_CURVES]
    }
    rows = list(dict.fromkeys(name for figures in found.values() for name in figures))
    labels = [plain_text(name) for name in rows]
    left = CHARACTER * max(map(len, labels), default=4) + 12
    step = 7.0 * max(len(found), 1) + 9
    right = _key_width(found)
    height = 46 + step * max(len(rows), 1)
    figure, axes = canvas(left + 250 + right, height, left=left, right=right, top=8, bottom=38)
    axes.set(
        xlim=(0, 1), ylim=(len(rows) - 0.5, -0.5), xlabel=f"area under the ROC curve, {horizon} steps ahead"
    )
    axes.axvline(0.5, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)))
    for place, ((colour, marker), figures) in enumerate(zip(SERIES, found.values(), strict=False)):
        for name, area in figures.items():
            row = rows.index(name) + (place - (len(found) - 1) / 2) * 7.0 / step
            axes.plot(area.interval(), (row, row), color=colour, linewidth=1.6, alpha=0.45)
            axes.plot(area.value, row, color=colour, marker=marker, markersize=3.8, clip_on=False)
    axes.set_yticks(range(len(labels)), labels)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", ".25", ".5", ".75", "1"])
    axes.grid(visible=True, axis="x")
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    _key(axes, found)
    return figure


@styled
def fan_figure(fan: Fan) -> Figure:
    """Draw how risk goes along: in runs that will violate, up to their violating call, and in all others.

    The line is the median over the runs that are still going, the dark band the middle half of them, the light band
    from the twentieth to the last but twentieth.

    Parameters
    ----------
    fan
        The quantiles of a predictor's risk by step.
    """
    width, height, left, gap, side = 480.0, 220.0, 42.0, 22.0, 200.0
    figure = Figure(figsize=(width / 72, height / 72), dpi=200, facecolor=PAPER)
    top = ceiling_of([value for part in (fan.violated, fan.calm) for value in part.quantiles[-1]])
    for place, (title, part, colour) in enumerate(
        (("runs that violate", fan.violated, VERMILLION), ("runs that do not", fan.calm, BLUE))
    ):
        start = (left + place * (side + gap)) / width
        axes = figure.add_axes((start, 40 / height, side / width, (height - 66) / height))
        last = max(len(fan.violated.runs), len(fan.calm.runs)) - 1
        axes.set(xlim=(0, max(last, 1)), ylim=(0, top), xlabel="calls made")
        steps = range(len(part.runs))
        lowest, low, middle, high, highest = part.quantiles
        axes.fill_between(steps, lowest, highest, color=colour, alpha=0.15, linewidth=0)
        axes.fill_between(steps, low, high, color=colour, alpha=0.3, linewidth=0)
        axes.plot(steps, middle, color=colour, clip_on=False)
        axes.set_xticks(whole_ticks(0, last))
        percent_axis(axes, top)
        if place:
            axes.set_yticklabels([])
        axes.set_title(f"{title} ({part.runs[0] if part.runs else 0:,})", size=9.5, loc="left", color=INK)
    return figure


# -- parts ------------------------------------------------------------------------------------------------


def _extent(point: ReliabilityPoint) -> tuple[float, float]:
    """Return how far the axes have to reach for a point; its interval may be cut where it rests on little."""
    return point.forecast, point.observed.value


def _key_width(names: Mapping[str, object]) -> float:
    return CHARACTER * max((len(plain_text(name)) for name in names), default=4) + 34


def _square(names: Mapping[str, object]) -> tuple[Figure, Axes]:
    """Return a square pair of axes, with room for a key at its right."""
    right = _key_width(names)
    figure, axes = canvas(50 + _SIDE + right, 48 + _SIDE, left=50, right=right, top=8, bottom=40)
    return figure, axes


def _key(axes: Axes, names: Mapping[str, object]) -> None:
    """Name colours and markers at the right of the axes."""
    for (colour, marker), name in zip(SERIES, names, strict=False):
        axes.plot([], [], color=colour, marker=marker, label=plain_text(name))
    if names:
        axes.legend(loc="upper left", bbox_to_anchor=(1.03, 1.02), borderaxespad=0, handlelength=1.5)
