"""OpenHands event lists, bare or in the wrapper of OpenAgentSafety with its task and its judge's label.

Every action of the agent is a call but those known to be none. The call is told as the model proposed it, where
the event remembers that: its own ``args`` are what OpenHands made of it. Results point back with ``cause``.
"""

from __future__ import annotations

from typing import Any

import msgspec

from safetydrift.formats.format import Content, FormatMismatch, Transcript, proposed, text_of
from safetydrift.trace import Ending, Label, ToolCall, Trace

_NO_CALLS = frozenset(
    {
        "change_agent_state",
        "condensation",
        "loop_recovery",
        "message",
        "null",
        "pause",
        "recall",
        "resume",
        "start",
        "stop",
        "system",
    }
)
"""What an agent's event may be besides a tool call: words, and the housekeeping of OpenHands itself."""


class _Function(msgspec.Struct):
    name: str = ""
    arguments: Any = None


class _ModelCall(msgspec.Struct):
    id: str | None = None
    function: _Function = msgspec.field(default_factory=_Function)


class _ModelMessage(msgspec.Struct):
    tool_calls: list[_ModelCall] | None = None


class _Choice(msgspec.Struct):
    message: _ModelMessage | None = None


class _Response(msgspec.Struct):
    id: str | None = None
    choices: list[_Choice] | None = None


class _Origin(msgspec.Struct):
    function_name: str | None = None
    tool_call_id: str | None = None
    model_response: _Response | None = None


class _Event(msgspec.Struct):
    id: int | str | None = None
    source: str | None = None
    action: str | None = None
    args: Any = None
    observation: str | None = None
    content: Content = None
    cause: int | str | None = None
    tool_call_metadata: _Origin | None = None

    @property
    def is_agents_action(self) -> bool:
        return self.source == "agent" and self.action is not None

    @property
    def is_call(self) -> bool:
        return self.is_agents_action and self.action not in _NO_CALLS


class _Verdict(msgspec.Struct):
    llm_label: Any = None


class _Wrapped(msgspec.Struct):
    path: str
    task: str
    model: str
    record: list[_Event]
    llm_judge: _Verdict | None = None


class OpenHands:
    """Reads OpenHands event lists and OpenAgentSafety trajectories."""

    name = "openhands"
    description = "OpenHands event lists, bare or wrapped by OpenAgentSafety with a judge's label"
    record_type = Any

    def recognises(self, record: object) -> bool:
        """Return whether a record is, or wraps, a list that begins with an event."""
        wrapped = isinstance(record, dict) and {"task", "model", "llm_judge", "record"} <= record.keys()
        events = record["record"] if wrapped and isinstance(record, dict) else record
        return isinstance(events, list) and (_is_event(events[0]) if events else wrapped)

    def read(self, record: object, fallback_id: str) -> Trace:
        """Return the trace of an event list."""
        if isinstance(record, list):
            run = _Wrapped("", "", "", msgspec.convert(record, list[_Event]))
            source, label = "openhands", Label()
        else:
            run = msgspec.convert(record, _Wrapped)
            source, label = "openagentsafety", _label(run.llm_judge)
        transcript = _told(run.record)
        return Trace(
            run.path or fallback_id,
            transcript.steps(),
            source=source,
            task=run.task,
            category=source,
            model=run.model,
            prompt=transcript.prompt,
            messages=transcript.messages,
            ending=_ending(run.record),
            label=label,
        )


def _is_event(value: object) -> bool:
    return isinstance(value, dict) and "source" in value and ("action" in value or "observation" in value)


def _told(events: list[_Event]) -> Transcript:
    transcript = Transcript()
    call_of_event: dict[int | str, int] = {}
    response: str | None = None
    for event in events:
        if event.source == "user" and event.action == "message":
            transcript.user(_words(event.args))
        elif event.is_call or (event.is_agents_action and event.action == "message"):
            previous, response = response, _response_id(event)
            if response is None or response != previous:
                transcript.agent()
            if event.is_call:
                index = transcript.call(_call(event))
                if event.id in call_of_event:
                    raise FormatMismatch(f"two calls have the event id {event.id!r}")
                if event.id is not None:
                    call_of_event[event.id] = index
        elif event.observation is not None and event.cause in call_of_event:
            text = text_of(event.content)
            error = text if event.observation == "error" else None
            transcript.answer(call_of_event[event.cause], text, error)
    return transcript


def _words(args: object) -> str:
    content = args.get("content") if isinstance(args, dict) else None
    return content if isinstance(content, str) else ""


def _response_id(event: _Event) -> str | None:
    origin = event.tool_call_metadata
    return origin.model_response.id if origin is not None and origin.model_response is not None else None


def _call(event: _Event) -> ToolCall:
    origin = event.tool_call_metadata or _Origin()
    arguments = event.args
    for choice in (origin.model_response or _Response()).choices or ():
        for call in (choice.message or _ModelMessage()).tool_calls or ():
            if call.id is not None and call.id == origin.tool_call_id:
                arguments = call.function.arguments
    return proposed(origin.function_name or event.action or "", arguments, origin.tool_call_id)


def _ending(events: list[_Event]) -> Ending:
    last = next((event for event in reversed(events) if event.is_agents_action), None)
    return Ending.COMPLETED if last is not None and last.action == "finish" else Ending.CENSORED


_UNUSABLE = {
    "Label: 1": "the judge found the unsafe act only partly done",
    "Label: -1": "the judge found that the run never came to the point",
}


def _label(verdict: _Verdict | None) -> Label:
    said = None if verdict is None else verdict.llm_label
    if said in ("Label: 2", "Label: 0"):
        return Label(said == "Label: 2", origin="language-model judge")
    reason = "no judge's label" if said is None else "the judge's label is malformed"
    if isinstance(said, str):
        reason = _UNUSABLE.get(said, reason)
    return Label(unusable=reason, origin="language-model judge")
