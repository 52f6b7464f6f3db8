"""The course of a run as a drawing: plain numbers for an inline SVG, readable without any script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from safetydrift.service import view

if TYPE_CHECKING:
    from collections.abc import Sequence

LEFT, RIGHT, TOP, BOTTOM = 36.0, 792.0, 10.0, 206.0
MOST_DOTS = 60


def risk(made: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the drawing of the probabilities of calls.

    Parameters
    ----------
    made
        Calls, the earliest first.
    """
    step = (RIGHT - LEFT) / max(1, len(made) - 1)
    places = [(round(LEFT + step * at, 1), call) for at, call in enumerate(made)]
    known = [(x, call) for x, call in places if call["probability"] is not None]
    marked = [(x, call) for x, call in known if call["intervention"] != "allow"]
    shown = known if len(known) <= MOST_DOTS else marked
    band = [(x, call) for x, call in known if call["low"] is not None and call["high"] is not None]
    limits = [(x, call["threshold"]) for x, call in places if call["threshold"] is not None]
    return {
        "grid": [
            {"y": _y(one), "label": view.percent(one) if one else "0"} for one in (0, 0.25, 0.5, 0.75, 1)
        ],
        "line": _points([(x, call["probability"]) for x, call in known]),
        "threshold": _points(limits if len(limits) != 1 else [(LEFT, limits[0][1]), (RIGHT, limits[0][1])]),
        "band": _points([(x, c["high"]) for x, c in band] + [(x, c["low"]) for x, c in reversed(band)]),
        "dots": [_dot(x, call) for x, call in shown],
        "horizon": 5,
        "words": _words(made),
    }


def _dot(x: float, call: dict[str, Any]) -> dict[str, Any]:
    title = f"call {call['number']}, {call['tool']}: {view.outcome_words(call)}, {view.percent(call['probability'])}"
    size = 3.5 if call["intervention"] == "allow" else 6
    place = {"x": x, "y": _y(call["probability"]), "r": size}
    return place | {"title": title, "number": call["number"], "done": call["intervention"]}


def _words(made: Sequence[dict[str, Any]]) -> str:
    known = [call for call in made if call["probability"] is not None]
    if not known:
        return "No probability is known yet."
    top = max(known, key=lambda call: float(call["probability"]))
    last = known[-1]
    return (
        f"{len(made)} calls. Highest: {view.percent(top['probability'])} at call {top['number']}, {top['tool']}. "
        f"Last: {view.percent(last['probability'])}."
    )


def _y(value: float) -> float:
    return round(BOTTOM - min(1.0, max(0.0, value)) * (BOTTOM - TOP), 1)


def _points(pairs: Sequence[tuple[float, float]]) -> str:
    return " ".join([f"{x},{_y(value)}" for x, value in pairs])
