"""What all figures share: their style, their canvas, and how names and numbers are written in them."""

from __future__ import annotations

from functools import wraps
from math import isnan
from typing import TYPE_CHECKING, ParamSpec

from matplotlib import style
from matplotlib.figure import Figure

from safetydrift.evaluation.palette import PAPER, SERIES, STYLE
from safetydrift.monitor.model import AGGREGATE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes

    from safetydrift.evaluation.rate import Rate
    from safetydrift.markov.chain import AbsorbingChain

WIDTH = 320.0
"""Width of most figures, in points: legible when scaled to the width of a phone."""

CHARACTER = 5.2
"""Room for one character of a label, in points; text is not measured, so that layout never depends on fonts."""

LONGEST_NAME = 32
LEGIBLE_CURVES = len(SERIES)
LEAST = 0.005
CEILINGS = (0.04, 0.08, 0.2, 0.4, 0.6, 0.8, 1.0)

_P = ParamSpec("_P")


def styled(draw: Callable[_P, Figure]) -> Callable[_P, Figure]:
    """Draw in our style whatever the caller's own settings are, and leave those as they were."""

    @wraps(draw)
    def drawn(*args: _P.args, **kwargs: _P.kwargs) -> Figure:
        with style.context(["default", STYLE]):
            return draw(*args, **kwargs)

    return drawn


def canvas(
    width: float, height: float, *, left: float, right: float, top: float, bottom: float
) -> tuple[Figure, Axes]:
    """Return a figure of one pair of axes; all lengths in points."""
    figure = Figure(figsize=(width / 72, height / 72), dpi=200, facecolor=PAPER)
    box = (left / width, bottom / height, (width - left - right) / width, (height - top - bottom) / height)
    return figure, figure.add_axes(box)


def percent_axis(axes: Axes, top: float) -> None:
    """Give the vertical axis percentages from 0 to an upper end, and a grid."""
    ticks = [top * quarter / 4 for quarter in range(5)]
    axes.set_yticks(ticks, [f"{100 * tick:.0f} %" for tick in ticks])
    axes.grid(visible=True, axis="y")
    axes.spines["left"].set_visible(False)


def whole_ticks(first: int, last: int) -> list[int]:
    """Return at most eleven whole numbers that cover a range of steps."""
    stride = next(stride for stride in (1, 2, 5, 10, 20, 50, last or 1) if (last - first) / stride <= 10)  # noqa: PLR2004
    return [
        step for step in range(last + 1) if step >= first and (step - first * (stride == 1)) % stride == 0
    ]


def spread_apart(heights: Sequence[float], gap: float, top: float) -> list[float]:
    """Move heights, given from the highest down, apart by a gap, as little as it takes within 0 .. top."""
    spread = [min(height, top - position * gap) for position, height in enumerate(heights)]
    for position in range(len(spread) - 2, -1, -1):
        spread[position] = max(spread[position], spread[position + 1] + gap / 2)
    for position in range(1, len(spread)):
        spread[position] = min(spread[position], spread[position - 1] - gap)
    lift = max(0.0, -min(spread, default=0.0))
    return [height + lift for height in spread]


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


def percent(value: float) -> str:
    """Write a probability as a whole percentage."""
    return f"{100 * value:.0f} %" if value >= LEAST or not value else "< 1 %"


def counts(rate: Rate) -> str:
    """Write a rate as its share and its counts."""
    share = f"{100 * rate.value:.0f} %" if rate.total else "-"
    return f"{share}\N{EN SPACE}{rate.hits:,}/{rate.total:,}"
