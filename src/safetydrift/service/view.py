"""What people are shown of a decision. Whatever a `Decision` comes to hold is picked up here and nowhere else.

A record is plain data: it is stored with the call, rendered by the templates, sent to Slack and to a SIEM. Fields that
a decision has and that are not known here are kept under ``details`` and shown as they are.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from safetydrift.guard.decision_wire import as_plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from safetydrift.guard.decision import Decision
    from safetydrift.states.space import StateSpace

_COLUMNS = frozenset(
    (
        "intervention",
        "rule",
        "probability",
        "threshold",
        "error",
        "would_be",
        "answered_by",
        "verdict",
        "repeated",
        "latency",
        "key",
        "call_id",
        "reason",
        "digest",
    )
)
"""Fields of a decision that have a column of their own, or need none."""

MAX_MESSAGE = 2000
WORDS = {
    "allow": "allowed",
    "warn": "warned",
    "ask": "asked",
    "suggest": "refused, safer named",
    "block": "refused",
    "made": "made unasked",
    "observed": "observed",
}
REFUSED = frozenset(("suggest", "block"))


def record(decision: Decision) -> dict[str, Any]:
    """Return what is stored of a decision besides the call, by column of ``calls``."""
    verdict = decision.verdict
    return {
        "decided": decision.intervention.value,
        "intervention": decision.intervention.value,
        "would_be": "" if decision.would_be is None else decision.would_be.value,
        "rule": decision.rule,
        "probability": finite(decision.probability),
        "threshold": finite(decision.threshold),
        "low": None if verdict is None else finite(verdict.low),
        "high": None if verdict is None else finite(verdict.high),
        "state": None if verdict is None else verdict.state,
        "risk": "" if verdict is None else verdict.risk,
        "message": message(decision)[:MAX_MESSAGE],
        "error": decision.error,
        "latency": decision.latency,
        "answered_by": decision.answered_by,
    }


def message(decision: Decision) -> str:
    """Return what a person needs to know first, in plain words; empty for what went ahead without a remark."""
    return str(getattr(decision, "message", "") or decision.reason)


def details(decision: Decision) -> dict[str, Any]:
    """Return everything else that a decision holds: its evidence, whatever that is."""
    return {name: value for name, value in as_plain(decision).items() if name not in _COLUMNS}


def finite(value: float | None) -> float | None:
    """Return a number, None for what is not known."""
    return None if value is None or not isfinite(value) else value


FIRST = ("concerns", "deciding", "values")
"""Evidence that is shown before all other, if a decision has it."""


def ordered(evidence: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the parts of some evidence in the order in which they are shown.

    Examples
    --------
    >>> ordered({"explanation": "because", "values": ["evil.example"]})
    [('values', ['evil.example']), ('explanation', 'because')]
    """
    places = {name: number for number, name in enumerate(FIRST)}
    return sorted(evidence.items(), key=lambda pair: places.get(pair[0], len(FIRST)))


def levels(space: StateSpace, state: int | None) -> list[dict[str, Any]]:
    """Return how far a run has drifted in each dimension of a state; nothing where it is not known."""
    if state is None:
        return []
    try:
        found = space.decode(state)
    except IndexError:  # of a model that was exchanged since
        return []
    ranks = {dimension.name: dimension.levels for dimension in space.dimensions}
    return [
        {"name": name, "level": str(level), "rank": ranks[name].index(level)} for name, level in found.items()
    ]


def course(probability: float | None) -> str:
    """Return a probability in two characters, as they are strung together for the course of a run.

    Examples
    --------
    >>> course(0.5), course(1.0), course(None)
    ('80', 'ff', '..')
    """
    return ".." if probability is None else f"{round(min(1.0, max(0.0, probability)) * 255):02x}"


def points(said: str) -> list[float | None]:
    """Return the probabilities of a course.

    Examples
    --------
    >>> points("00..ff")
    [0.0, None, 1.0]
    """
    pairs = [said[at : at + 2] for at in range(0, len(said) - 1, 2)]
    return [None if pair == ".." else int(pair, 16) / 255 for pair in pairs]


def outcome_words(call: Mapping[str, Any]) -> str:
    """Return what was done about a call, in a word or two."""
    done = WORDS.get(str(call["intervention"]), str(call["intervention"]))
    if call.get("would_be"):
        return f"{done} (shadow: {WORDS.get(str(call['would_be']), call['would_be'])})"
    return f"{done} by {call['answered_by']}" if call.get("answered_by") else done


def run_cells(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cells of a run that change, as they are written on the page."""
    probability = run["probability"]
    return {
        "id": run["id"],
        "done": run["last_intervention"],
        "waiting": run["waiting"],
        "text": {
            "outcome": WORDS.get(run["last_intervention"], "no call yet"),
            "probability": percent(probability),
            "calls": f"{run['calls']:,}",
            "tool": run["last_tool"],
            "message": run["last_message"],
            "last": run["last"],
            "counts": counts(run),
        },
        "spark": spark(points(run["course"])),
        "level": level(probability),
    }


def counts(run: Mapping[str, Any]) -> str:
    """Return how often somebody stood in the way of a run, in words; empty if never."""
    parts = [
        (run["waiting"], "waiting"),
        (run["refused"], "refused"),
        (run["asked"], "asked"),
        (run["warned"], "warned"),
    ]
    return ", ".join([f"{number} {word}" for number, word in parts if number])


def percent(value: float | None) -> str:
    """Return a probability as people read it.

    Examples
    --------
    >>> percent(0.004), percent(0.25), percent(None)
    ('0.4 %', '25 %', '-')
    """
    if value is None:
        return "-"
    return f"{100 * value:.1f} %" if value < 0.1 else f"{100 * value:.0f} %"  # noqa: PLR2004


def level(value: float | None) -> str:
    """Return how high a probability is, for colours: they never say anything that words do not."""
    if value is None:
        return "unknown"
    return "high" if value >= 0.5 else "raised" if value >= 0.2 else "low"  # noqa: PLR2004


def spark(course: list[float | None], width: float = 96.0, height: float = 24.0) -> str:
    """Return the points of a small line, the first call at the left; what is not known is left out.

    Examples
    --------
    >>> spark([0.0, 1.0])
    '2.0,22.0 20.4,2.0'
    """
    step = (width - 4.0) / max(len(course) - 1, 5)
    places = [
        f"{2.0 + step * at:.1f},{height - 2 - value * (height - 4):.1f}"
        for at, value in enumerate(course)
        if value is not None
    ]
    return " ".join(places if len(places) != 1 else places * 2)  # a single point is seen, too
