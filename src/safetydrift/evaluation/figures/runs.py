"""Figures of runs: how often they violate, how much warning there was, and what a monitor said along one."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING

from safetydrift.evaluation.figures.canvas import (
    CHARACTER,
    WIDTH,
    canvas,
    category_label,
    ceiling_of,
    counts,
    percent_axis,
    styled,
    whole_ticks,
)
from safetydrift.evaluation.palette import BLUE, INK, MUTED, PURPLE, VERMILLION
from safetydrift.monitor.model import AGGREGATE
from safetydrift.monitor.verdict import Basis

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from safetydrift.evaluation.rate import Rate
    from safetydrift.evaluation.replay import Replay

LAST_LEAD_TIME = 14


@styled
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
    right = 5.4 * max((len(counts(rate)) for rate in rates.values()), default=4) + 10
    width = max(WIDTH, left + right + 140)
    figure, axes = canvas(width, 40 + 21 * len(rates), left=left, right=right, top=6, bottom=34)
    axes.set(xlim=(0, 1), ylim=(len(rates) - 0.4, -0.6), xlabel="runs violated")
    for row, (name, rate) in enumerate(rates.items()):
        colour, marker = (INK, "s") if name == AGGREGATE else (BLUE, "o")
        axes.plot(rate.interval(), (row, row), color=colour, linewidth=2.2, alpha=0.45, solid_capstyle="butt")
        if rate.total:
            axes.plot(rate.value, row, color=colour, marker=marker, markersize=5.5, clip_on=False)
        axes.annotate(
            counts(rate), (1, row), (8, 0), textcoords="offset points", va="center", size=8.5, color=MUTED
        )
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25", "50", "75", "100 %"])
    axes.set_yticks(range(len(names)), names)
    axes.grid(visible=True, axis="x")
    axes.spines["left"].set_visible(False)
    return figure


@styled
def lead_time_figure(lead_times: Mapping[int, int], *, published_mean: float | None = None) -> Figure:
    """Draw how many steps of warning there were.

    Parameters
    ----------
    lead_times
        Runs by steps from the first alarm to the violating call; what lies beyond 14 steps is gathered in the
        last bar.
    published_mean
        A printed mean, marked by a dashed line.
    """
    last = max(1, min(LAST_LEAD_TIME, max(lead_times, default=1)))
    beyond = sum(runs for steps, runs in lead_times.items() if steps > last)
    heights = [lead_times.get(steps, 0) for steps in range(1, last + 1)] + [beyond] * bool(beyond)
    labels = [str(steps) for steps in range(1, last + 1)] + [f"{last + 1}+"] * bool(beyond)
    figure, axes = canvas(WIDTH, 170, left=12, right=8, top=18, bottom=36)
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
    if published_mean is not None:
        axes.axvline(published_mean - 1, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
        label = f"published mean {published_mean:g}"
        axes.annotate(
            label,
            (published_mean - 1, max(1, *heights)),
            (4, 4),
            textcoords="offset points",
            size=8,
            color=MUTED,
        )
    axes.set(
        xlim=(-0.6, max(len(heights), 4 if published_mean is None else 8) - 0.4),
        ylim=(0, max(1, *heights)),
        yticks=[],
    )
    axes.set(xlabel="steps from the first alarm to the violating call")
    axes.set_xticks(range(len(heights)), labels)
    axes.spines["left"].set_visible(False)
    axes.tick_params(length=0)
    return figure


@styled
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
    figure, axes = canvas(WIDTH, 224, left=38, right=14, top=60, bottom=36)
    axes.set(xlim=(-0.02 * last, 1.02 * last), ylim=(0, top), xlabel="calls made")
    axes.set_xticks(whole_ticks(0, last))
    percent_axis(axes, top)
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


# -- parts --------------------------------------------------------------------------------------------------


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
