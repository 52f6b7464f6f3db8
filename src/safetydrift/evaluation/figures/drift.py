"""The figure of a drift alarm: what its wagers were worth after every run."""

from __future__ import annotations

from math import log, log10
from typing import TYPE_CHECKING

from safetydrift.evaluation.figures.canvas import WIDTH, canvas, styled
from safetydrift.evaluation.palette import BLUE, INK, VERMILLION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure


@styled
def drift_figure(log_evidence: Sequence[float], level: float, alarmed_at: int | None) -> Figure:
    """Draw the evidence against the model after every run, in powers of ten, and where an alarm is raised.

    Parameters
    ----------
    log_evidence
        Its natural logarithm after run 1, 2, ..
    level
        The error level; the alarm is raised where the evidence reaches one over it.
    alarmed_at
        The run that raised the alarm, counted from 1; None if none did.
    """
    heights = [value / log(10.0) for value in log_evidence]
    bar = -log10(level)
    low, high = min([0.0, *heights]), max([bar, *heights])
    room = 0.08 * (high - low)
    figure, axes = canvas(WIDTH, 200, left=52, right=14, top=14, bottom=40)
    axes.set(xlim=(0, max(len(heights), 2)), ylim=(low - room, high + 2 * room))
    axes.set(xlabel="runs", ylabel="evidence (powers of ten)")
    axes.plot(range(1, len(heights) + 1), heights, color=BLUE)
    axes.axhline(bar, color=VERMILLION, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.text(0.0, bar, f" alarm, level {level:g}", color=VERMILLION, va="bottom", ha="left")
    if alarmed_at is not None and alarmed_at <= len(heights):
        axes.plot([alarmed_at], [heights[alarmed_at - 1]], color=VERMILLION, marker="o")
        axes.annotate(
            f"run {alarmed_at:,}",
            (alarmed_at, heights[alarmed_at - 1]),
            color=INK,
            xytext=(5, -10),
            textcoords="offset points",
        )
    return figure
