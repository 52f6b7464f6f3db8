"""What is said about a call that does not go ahead: what it would do, who asked for it, and how it can be allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safetydrift.authority.concerns import DELEGATED, NOBODY, REACHED, RECORDED, SAID
from safetydrift.authority.grading import ACTION, FORBIDDEN
from safetydrift.effects.operations import ACTIONS, HARMS
from safetydrift.monitor.verdict import Intervention

if TYPE_CHECKING:
    from safetydrift.authority.concerns import Concern
    from safetydrift.authority.score import Assessment
    from safetydrift.guard.policy import Finding
    from safetydrift.states.effect import Effect
    from safetydrift.trace import ToolCall

MAX_SHOWN_TARGET = 120
SHOWN_REASONS = 3

_VERDICTS = {
    Intervention.WARN: "Take care",
    Intervention.ASK: "Stopped until a person agrees",
    Intervention.SUGGEST: "Stopped",
    Intervention.BLOCK: "Stopped",
}
ADVICE_TO_ASK = "To allow it: a person says yes to this call, or the user says that they want it."
_ADVICE = {
    Intervention.WARN: "Go on only with what the user asked for.",
    Intervention.ASK: ADVICE_TO_ASK,
    Intervention.SUGGEST: "Take the safer step, or tell the user why you cannot go on.",
    Intervention.BLOCK: "Do not try another way to the same end; tell the user.",
}


def told(call: ToolCall, found: Finding, effect: Effect, assessment: Assessment, alternative: str) -> str:
    """Return why a call does not simply go ahead, in words for the model and the user."""
    concern = assessment.concern
    if concern is not None and found.by_authority:
        does = concern.note or f"{concern.action} {concern.target}".strip()
        parts = [f"{_VERDICTS[found.intervention]}: this would {_short(does)}, {authority_of(concern)}."]
        parts += [f"{found.reason[0].upper()}{found.reason[1:]}."] if found.reason else []
    else:
        parts = [f"{found.reason}."] if found.reason else [f"{_VERDICTS[found.intervention]}: {call.name}."]
        if effect.kinds:
            parts.append(f"It could complete: {', '.join(effect.kinds)}.")
        if effect.reasons:
            parts.append(f"{call.name}: {'; '.join(effect.reasons[:SHOWN_REASONS])}.")
    if alternative:
        parts.append(f"Safer here: {alternative}.")
    parts.append(_ADVICE[found.intervention])
    return " ".join(parts)


def in_brief(found: Finding, assessment: Assessment) -> str:
    """Return the same without anything that is written in the arguments; empty where nothing of it is said anyway."""
    concern = assessment.concern
    if concern is None or not found.by_authority:
        return ""
    does = HARMS.get(concern.harm) or ACTIONS[concern.action]
    return f"{_VERDICTS[found.intervention]}: {does}, and the user did not ask for that. {_ADVICE[found.intervention]}"


def authority_of(concern: Concern) -> str:
    """Return who asked for what a concern is about, as a clause."""
    asked, source, target = concern.cell("asked"), concern.cell("source"), _short(concern.target) or "that"
    if asked == FORBIDDEN:
        return "which the user said not to do"
    if not concern.cell("task"):
        return "and nothing is known of what the user asked for"
    if concern.cell("speaks") and source < SAID:
        return (
            f"and it is a text which the agent read (call {concern.said_in}) that asks for it, not the user"
        )
    if asked >= ACTION:
        return _of_value(source, target, concern)
    return (
        f"and the user mentioned {target}, but did not ask for this"
        if source == SAID
        else "which the user did not ask for"
    )


def _of_value(source: int, target: str, concern: Concern) -> str:
    """Return where the value stands that decides an act of a kind that was asked for."""
    if source == NOBODY:
        return f"and the user never mentioned {target}"
    if source <= REACHED:
        return f"and {target} stands only in what the agent read (call {concern.said_in})"
    if source <= DELEGATED:
        return f"and {target} stands in a source that the user named (call {concern.said_in}), not in their words"
    if source == RECORDED:
        return f"and {target} stands in the user's own records, not in their words"
    return "which goes further than what the user asked for"


def _short(text: str) -> str:
    return text if len(text) <= MAX_SHOWN_TARGET else f"{text[:MAX_SHOWN_TARGET]}..."
