"""Events of OpenTelemetry, in logs or in spans: the content of model calls, and what agents tell of themselves."""

from __future__ import annotations

from typing import Any, NamedTuple

from safetydrift.formats.conventions import collected, session_of, span_of
from safetydrift.formats.format import Place
from safetydrift.formats.messages import decoded
from safetydrift.formats.spans import MODEL, WORDS, Span

_DETAILS = frozenset(
    {"gen_ai.client.inference.operation.details", "gen_ai.content.prompt", "gen_ai.content.completion"}
)
_ROLES = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
_CHOICE = "gen_ai.choice"
_TOOLS = frozenset({"tool_result", "tool_call", "tool_decision"})
_NOT_ALLOWED = frozenset({"reject", "rejected", "denied", "deny", "abort", "block"})


class Event(NamedTuple):
    """An event: its name and attributes, the trace and span it happened in, and when.

    ``number`` tells it from others of its record.
    """

    name: str
    attributes: dict[str, Any]
    trace: str
    span: str
    time: float | None
    place: Place
    number: int


def span_from(event: Event, message: dict[str, Any]) -> Span | None:
    """Return what an event tells as a span that adds to the one it happened in, or stands alone; None if nothing.

    Parameters
    ----------
    message
        What the event holds, where it is a message: its body, or its attributes.
    """
    kind = event.name.rpartition(".")[2]
    if event.name in _DETAILS:
        found = _span(event, collected(event.attributes.items()))
        found.kind = MODEL
    elif event.name in _ROLES or event.name == _CHOICE:
        found = _span(event, {})
        found.kind = MODEL
        if event.name == _CHOICE:
            found.outputs = [_chosen(message)]
        else:
            found.inputs = [_said(event.name, message)]
    elif kind == "user_prompt":
        found = _span(event, event.attributes, alone=True)
        words = event.attributes.get("prompt")
        found.kind = WORDS
        found.inputs = words if isinstance(words, str) and words and words != "<REDACTED>" else None
    elif kind in _TOOLS:
        found = _tool(event, kind)
    else:
        return None
    return found


def _tool(event: Event, kind: str) -> Span:
    """Return the span that an agent's own event about a tool stands for: Claude Code's, Codex's, Gemini CLI's."""
    attributes = {"gen_ai.operation.name": "execute_tool"} | event.attributes
    found = _span(event, attributes, alone=True)
    if str(attributes.get("success")).lower() == "false":
        found.error = _why(attributes)
    if str(attributes.get("decision")) in _NOT_ALLOWED:
        found.error, found.refused_by = _why(attributes), _refuser(attributes)
    found.end = None if kind == "tool_decision" else event.time
    return found


def _span(event: Event, attributes: dict[str, Any], *, alone: bool = False) -> Span:
    trace, span = event.trace, event.span
    if alone:
        trace = trace or session_of(attributes)
        span = f"{span}#{event.place.path}:{event.place.line}.{event.place.number}.{event.number}"
    found = span_of(attributes, event.place, trace=trace, span=span, start=event.time)
    found.adds = True
    return found


def _why(attributes: dict[str, Any]) -> str:
    names = ("error", "error_message", "error.message", "output", "decision")
    return next((text for name in names if isinstance(text := attributes.get(name), str) and text), "failed")


def _refuser(attributes: dict[str, Any]) -> str:
    source = attributes.get("source") or attributes.get("decision_source")
    if source == "hook":
        return "hook"
    return "policy" if source == "config" else "person"


def _said(name: str, content: dict[str, Any]) -> dict[str, Any]:
    said = {key: decoded(value)[0] for key, value in content.items() if value is not None}
    if name == "gen_ai.tool.message":
        said["tool_call_id"] = content.get("id")
    return said | {"role": _ROLES[name]}


def _chosen(content: dict[str, Any]) -> dict[str, Any]:
    message = decoded(content.get("message"))[0]
    told = message if isinstance(message, dict) else content
    return {key: decoded(value)[0] for key, value in told.items() if value is not None} | {
        "role": "assistant"
    }
