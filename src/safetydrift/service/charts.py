"""The course of a run as a drawing: plain numbers for an inline SVG, readable without any script.

The drawing is 1000 wide and 100 high and is stretched to its place; labels stand beside it, as text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from safetydrift.service import view

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH, HEIGHT = 1000.0, 100.0
MARGIN = 12.0
MOST_DOTS = 60
TOPS = (0.1, 0.25, 0.5, 1.0)
"""Probabilities at which the scale may end."""


def risk(made: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the drawing of the probabilities of calls.

    Parameters
    ----------
    made
        Calls, the earliest first.
    """
    step = (WIDTH - 2 * MARGIN) / max(1, len(made) - 1)
    places = [(round(MARGIN + step * at, 1), call) for at, call in enumerate(made)]
    known = [(x, call) for x, call in places if call["probability"] is not None]
    marked = [(x, call) for x, call in known if call["intervention"] != "allow"]
    band = [(x, call) for x, call in known if call["low"] is not None and call["high"] is not None]
    limits = [(x, call["threshold"]) for x, call in places if call["threshold"] is not None]
    values = [call["probability"] for _, call in known] + [limit for _, limit in limits]
    top = next(one for one in TOPS if one >= max([*values, 0.0]) or one == TOPS[-1])
    if len(limits) == 1:
        limits = [(0.0, limits[0][1]), (WIDTH, limits[0][1])]
    upper, lower = [(x, c["high"]) for x, c in band], [(x, c["low"]) for x, c in reversed(band)]
    return {
        "labels": [view.percent(top * share) if share else "0" for share in (1, 0.75, 0.5, 0.25, 0)],
        "line": _points([(x, call["probability"]) for x, call in known], top),
        "threshold": _points(limits, top),
        "band": _points(upper + lower, top),
        "dots": [_dot(x, call, top) for x, call in (known if len(known) <= MOST_DOTS else marked)],
        "words": _words(made),
    }


def _dot(x: float, call: dict[str, Any], top: float) -> dict[str, Any]:
    title = f"call {call['number']}, {call['tool']}: {view.outcome_words(call)}, {view.percent(call['probability'])}"
    return {"x": x, "y": _y(call["probability"], top), "title": title, "done": call["intervention"]}


def _words(made: Sequence[dict[str, Any]]) -> str:
    known = [call for call in made if call["probability"] is not None]
    if not known:
        return "No probability is known yet."
    highest = max(known, key=lambda call: float(call["probability"]))
    last = known[-1]
    return (
        f"{len(made)} calls. Highest: {view.percent(highest['probability'])} at call {highest['number']}, "
        f"{highest['tool']}. Last: {view.percent(last['probability'])}."
    )


def _y(value: float, top: float) -> float:
    return round(HEIGHT - min(1.0, max(0.0, value / top)) * HEIGHT, 1)


def _points(pairs: Sequence[tuple[float, float]], top: float) -> str:
    return " ".join([f"{x},{_y(value, top)}" for x, value in pairs])
