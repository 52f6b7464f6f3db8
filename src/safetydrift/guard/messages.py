"""What is said about a call that does not go ahead: what it would do, who asked for it, and how it can be allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safetydrift.authority.concerns import DELEGATED, NOBODY, RECORDED, REACHED, SAID
from safetydrift.authority.grading import ACTION, ASKED, FORBIDDEN, OBJECT
from safetydrift.effects.operations import ACTIONS, HARMS
from safetydrift.monitor.verdict import Intervention

if TYPE_CHECKING:
    from safetydrift.authority.concerns import Concern
    from safetydrift.guard.judgement import Judgement
    from safetydrift.trace import ToolCall

MAX_SHOWN_TARGET = 120
SHOWN_REASONS = 3

_VERDICTS = {
    Intervention.WARN: "Take care",
    Intervention.ASK: "Stopped until a person agrees",
    Intervention.SUGGEST: "Stopped",
    Intervention.BLOCK: "Stopped",
}
_ADVICE = {
    Intervention.WARN: "Go on only with what the user asked for.",
    Intervention.ASK: "To allow it: a person says yes to this call, or the user says that they want it.",
    Intervention.SUGGEST: "Take the safer step, or tell the user why you cannot go on.",
    Intervention.BLOCK: "Do not try another way to the same end; tell the user.",
}


def told(call: ToolCall, judged: Judgement, alternative: str) -> str:
    """Return why a call does not simply go ahead, in words for the model and the user."""
    found, concern = judged.found, judged.assessment.concern
    if concern is not None and found.by_authority:
        does = concern.note or f"{concern.action} {concern.target}".strip()
        parts = [f"{_VERDICTS[found.intervention]}: this would {_short(does)}, {authority_of(concern)}."]
        parts += [f"{found.reason[0].upper()}{found.reason[1:]}."] if found.reason else []
    else:
        parts = [f"{found.reason}."] if found.reason else [f"{_VERDICTS[found.intervention]}: {call.name}."]
        if judged.effect.kinds:
            parts.append(f"It could complete: {', '.join(judged.effect.kinds)}.")
        if judged.effect.reasons:
            parts.append(f"{call.name}: {'; '.join(judged.effect.reasons[:SHOWN_REASONS])}.")
    if alternative:
        parts.append(f"Safer here: {alternative}.")
    parts.append(_ADVICE[found.intervention])
    return " ".join(parts)


def in_brief(judged: Judgement) -> str:
    """Return the same without anything that is written in the arguments; empty where nothing of it is said anyway."""
    found, concern = judged.found, judged.assessment.concern
    if concern is None or not found.by_authority:
        return ""
    does = HARMS.get(concern.harm) or ACTIONS[concern.action]
    return f"{_VERDICTS[found.intervention]}: {does}, and the user did not ask for that. {_ADVICE[found.intervention]}"


def authority_of(concern: Concern) -> str:
    """Return who asked for what a concern is about, as a clause."""
    asked, source, speaks = concern.cell("asked"), concern.cell("source"), concern.cell("speaks")
    target = _short(concern.target) or "that"
    if asked == FORBIDDEN:
        return "which the user said not to do"
    if speaks and source < SAID:
        return f"and it is a text which the agent read (call {concern.said_in}) that asks for it, not the user"
    if source == NOBODY and concern.target and asked in {OBJECT, ACTION, ASKED}:
        return f"and the user never mentioned {target}"
    if source <= REACHED and asked in {ACTION, ASKED}:
        return f"and {target} stands only in what the agent read (call {concern.said_in})"
    if source in range(REACHED + 1, DELEGATED + 1) and asked <= OBJECT:
        return f"which a source that the user named speaks of (call {concern.said_in}), but the user did not ask for"
    if source == RECORDED:
        return "which nobody asked for, though the value stands in the user's own records"
    if source == SAID and asked <= OBJECT:
        return f"and the user mentioned {target}, but did not ask for this"
    return "which the user did not ask for" if concern.cell("task") else "and nothing is known of what the user asked for"


def _short(text: str) -> str:
    return text if len(text) <= MAX_SHOWN_TARGET else f"{text[:MAX_SHOWN_TARGET]}..."
