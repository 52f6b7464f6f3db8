"""Figures of the published study, drawn from our own runs; what the paper printed stands beside, hollow and grey."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Any

from safetydrift.evaluation.figures.canvas import CHARACTER, WIDTH, canvas, percent_axis, plain_text, styled
from safetydrift.evaluation.palette import BLUE, GREEN, GRID, INK, MUTED, PURPLE, VERMILLION
from safetydrift.evaluation.rate import Rate
from safetydrift.study.published import LEARNING_CURVE, MONITORS, OPERATING_REGION

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from safetydrift.study.analyses.analysis import Analysis, Cell

PUBLISHED: dict[str, Any] = {
    "linestyle": "",
    "markerfacecolor": "none",
    "markeredgecolor": MUTED,
    "markersize": 6,
}
"""How printed figures are drawn: they come from other runs."""

_TENTHS, _TENTHS_SHOWN = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0), (".4", ".5", ".6", ".7", ".8", ".9", "1")


@styled
def threshold_figure(analysis: Analysis) -> Figure:
    """Draw detection and false alarms as the threshold goes up (figure 4).

    Parameters
    ----------
    analysis
        The analysis ``thresholds``. The shaded range is the published operating region.
    """
    thresholds = _numbers(analysis.column("threshold"))
    figure, axes = canvas(WIDTH + 130, 226, left=42, right=140, top=10, bottom=38)
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="threshold")
    axes.axvspan(*OPERATING_REGION, color=GRID, alpha=0.6, linewidth=0)
    lines = (
        ("detected", BLUE, "o", "detected"),
        ("false alarms", VERMILLION, "s", "false alarms"),
        ("detected by category prior", GREEN, "^", "category prior, with\nas many false alarms"),
    )
    for column, colour, marker, label in lines:
        axes.plot(
            thresholds,
            _numbers(analysis.column(column)),
            color=colour,
            marker=marker,
            markersize=3.2,
            label=label,
        )
    printed = MONITORS["SafetyDrift"]
    axes.plot(OPERATING_REGION[0], printed.detection, marker="o", label="published, detected", **PUBLISHED)
    axes.plot(
        OPERATING_REGION[0], printed.false_positives, marker="s", label="published, false alarms", **PUBLISHED
    )
    axes.set_xticks([0, 0.2, 0.4, 0.6, 0.8, 1.0], ["0", ".2", ".4", ".6", ".8", "1"])
    percent_axis(axes, 1.0)
    _key(axes)
    return figure


@styled
def ablation_figure(analysis: Analysis) -> Figure:
    """Draw what is left when a dimension is taken away (figure 6).

    Parameters
    ----------
    analysis
        The analysis ``ablation``.
    """
    names = [plain_text(str(name)) for name in analysis.column("taken away")]
    marks = (
        ("accuracy", BLUE, "o", "next risk level foretold"),
        ("accuracy, own levels", GREEN, "s", "the same, levels that remain"),
        ("AUROC within 5", PURPLE, "v", "AUROC, 5 steps ahead"),
    )
    left = CHARACTER * max(map(len, names), default=4) + 14
    figure, axes = canvas(left + 226 + 160, 50 + 30 * len(names), left=left, right=166, top=8, bottom=38)
    lowest = min((value for column, *_ in marks for value in _numbers(analysis.column(column))), default=1.0)
    axes.set(ylim=(len(names) - 0.5, -0.5), xlabel="share, or area under the ROC curve")
    for place, (column, colour, marker, label) in enumerate(marks):
        rows = [row + (place - 1) * 0.2 for row in range(len(names))]
        axes.plot(
            _numbers(analysis.column(column)), rows, linestyle="", color=colour, marker=marker, label=label
        )
    printed = [
        (value, row)
        for row, value in enumerate(analysis.column("published accuracy"))
        if isinstance(value, float)
    ]
    axes.plot(
        *zip(*printed, strict=True), marker="D", label="published accuracy", **PUBLISHED
    ) if printed else None
    axes.set_yticks(range(len(names)), names)
    axes.set_xticks(_TENTHS, _TENTHS_SHOWN)
    axes.set_xlim(_TENTHS[0] if lowest >= _TENTHS[0] else 0, 1)
    axes.grid(visible=True, axis="x")
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_ylabel("taken away")
    axes.yaxis.set_label_coords(-(left - 8) / 226, 0.5)
    _key(axes)
    return figure


@styled
def learning_figure(analysis: Analysis) -> Figure:
    """Draw foresight against the number of training runs (figure 7): mean and standard deviation over draws.

    Parameters
    ----------
    analysis
        The analysis ``learning-curve``.
    """
    runs = _numbers(analysis.column("training runs"))
    figure, axes = canvas(WIDTH + 130, 226, left=42, right=150, top=10, bottom=38)
    axes.set(ylim=(0.4, 1.0), xlabel="training runs")
    axes.set_xscale("log")
    curves = (
        ("accuracy", BLUE, "o", "next risk level foretold"),
        ("AUROC within 5", PURPLE, "v", "AUROC, 5 steps ahead"),
    )
    for column, colour, marker, label in curves:
        mean = _numbers(analysis.column(column))
        deviation = _numbers(analysis.column(f"{column}, deviation"))
        low, high = ([m + sign * d for m, d in zip(mean, deviation, strict=True)] for sign in (-1, 1))
        axes.fill_between(runs, low, high, color=colour, alpha=0.15, linewidth=0)
        axes.plot(runs, mean, color=colour, marker=marker, label=label)
    printed = {size: point.accuracy for size, point in LEARNING_CURVE.items()}
    axes.plot(list(printed), list(printed.values()), marker="D", label="published accuracy", **PUBLISHED)
    powers = [10**power for power in range(1, 7) if min(runs) * 0.7 <= 10**power <= max(runs) * 1.5]
    axes.set_xticks(powers, [f"{power:,}" for power in powers])
    axes.set_xticks([], minor=True)
    axes.set_yticks(_TENTHS, _TENTHS_SHOWN)
    axes.grid(visible=True, axis="y")
    axes.spines["left"].set_visible(False)
    _key(axes)
    return figure


def _key(axes: Axes) -> None:
    axes.legend(
        loc="upper left", bbox_to_anchor=(1.02, 1.02), borderaxespad=0, handlelength=1.5, labelcolor=INK
    )


def _numbers(cells: tuple[Cell, ...]) -> list[float]:
    """Return a column as numbers; what is no number is nan, and not drawn."""
    return [_number(cell) for cell in cells]


def _number(cell: Cell) -> float:
    if isinstance(cell, Rate):
        return cell.value
    return float(cell) if isinstance(cell, int | float) and not isnan(cell) else float("nan")
