"""Inspect AI: the samples of its evaluation logs, of our scenarios or of any other task with tools.

A record is one sample with what its log says of all of them: ``{"eval": .., "sample": ..}``; `eval_file` takes
them out of ``.eval`` files. Whether something was violated is taken from a score whose metadata hold ``safetydrift``;
a score of another kind says nothing that we could use.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from safetydrift.formats.format import Content, FormatMismatch, Part, Transcript, proposed, text_of
from safetydrift.trace import Ending, Label, ToolCall, Trace

_ATTACHED = "attachment://"
_OWN = ("safetydrift/scenarios", "scenarios")


class _Call(msgspec.Struct):
    function: str
    id: str = ""
    arguments: Any = None
    parse_error: str | None = None


class _Error(msgspec.Struct):
    message: str = ""
    type: str = "unknown"


class Message(msgspec.Struct):
    """A message of Inspect."""

    role: str
    content: Content = None
    tool_calls: list[_Call] | None = None
    tool_call_id: str | None = None
    error: _Error | None = None


class _Finding(msgspec.Struct):
    violated: bool
    onset: int | None = None
    origin: str = ""


class _Sample(msgspec.Struct):
    id: str | int
    epoch: int
    messages: list[Message]
    uuid: str = ""
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)
    scores: dict[str, Any] | None = None
    attachments: dict[str, str] = msgspec.field(default_factory=dict)
    limit: Any = None
    error: Any = None


class _Eval(msgspec.Struct):
    task: str = ""
    model: str = ""


class _Record(msgspec.Struct):
    eval: _Eval
    sample: _Sample


class InspectLog:
    """Reads samples of Inspect logs."""

    name = "inspect"
    description = "Inspect AI logs (.eval), of our scenarios or of any task with tools"
    record_type = Any

    def recognises(self, record: object) -> bool:
        """Return whether a record is a sample beside what its log says."""
        if not isinstance(record, dict) or record.keys() != {"eval", "sample"}:
            return False
        sample = record["sample"]
        return isinstance(sample, dict) and {"id", "epoch", "messages"} <= sample.keys()

    def read(self, record: object, fallback_id: str) -> Trace:
        """Return the trace of a sample."""
        log = msgspec.convert(record, _Record)
        sample, model = log.sample, log.eval.model
        own = log.eval.task in _OWN
        task = _text(sample.metadata.get("task")) or f"{log.eval.task}/{sample.id}"
        transcript = told(sample.messages, sample.attachments)
        name = f"{model}/{task}/{sample.epoch}/{sample.uuid}" if sample.uuid else fallback_id
        return Trace(
            name,
            transcript.steps(),
            source="scenarios" if own else "inspect",
            task=task,
            category=_text(sample.metadata.get("category")) or log.eval.task,
            model=model,
            prompt=transcript.prompt,
            ending=_ending(sample),
            label=_label(sample),
            messages=transcript.messages,
        )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def told(messages: list[Message], attachments: dict[str, str]) -> Transcript:
    """Return the conversation that messages make up.

    Parameters
    ----------
    attachments
        Texts that the messages name by their digests.

    Raises
    ------
    FormatMismatch
        If a result belongs to no call, or a role is unknown.
    """
    transcript = Transcript()
    for message in messages:
        text = _resolved(message.content, attachments)
        match message.role:
            case "user":
                transcript.user(text)
            case "assistant":
                transcript.agent()
                for call in message.tool_calls or ():
                    transcript.call(_proposed(call, attachments))
            case "tool":
                _answer(transcript, message, text)
            case "system":
                pass
            case _:
                raise FormatMismatch(f"a message has the unknown role {message.role!r}")
    return transcript


def _answer(transcript: Transcript, message: Message, text: str) -> None:
    index = transcript.unanswered(message.tool_call_id)
    if index is None:
        raise FormatMismatch("a tool result belongs to no call")
    transcript.answer(
        index, text, None if message.error is None else message.error.message or message.error.type
    )


def _proposed(call: _Call, attachments: dict[str, str]) -> ToolCall:
    if call.parse_error is not None:
        return ToolCall(call.function, id=call.id, malformed=call.parse_error)
    found = proposed(call.function, {} if call.arguments is None else call.arguments, call.id)
    if not attachments or found.malformed is not None:
        return found
    args = {name: _fetched(value, attachments) for name, value in found.args.items()}
    return replace(found, args=args)


def _resolved(content: Content, attachments: dict[str, str]) -> str:
    if isinstance(content, list):
        parts = [part.text if isinstance(part, Part) else part for part in content]
        if any(isinstance(part, str) and part.startswith(_ATTACHED) for part in parts):
            return "\n".join([str(_fetched(part, attachments)) for part in parts if part])
    return str(_fetched(text_of(content), attachments))


def _fetched(value: object, attachments: dict[str, str]) -> object:
    """Return a value, or the text that the log keeps elsewhere under its digest."""
    if isinstance(value, str) and value.startswith(_ATTACHED):
        return attachments.get(value.removeprefix(_ATTACHED), value)
    return value


def _ending(sample: _Sample) -> Ending:
    last = sample.messages[-1] if sample.messages else None
    answered = last is not None and last.role == "assistant" and not last.tool_calls
    return Ending.COMPLETED if answered and sample.limit is None and sample.error is None else Ending.CENSORED


def _label(sample: _Sample) -> Label:
    for score in (sample.scores or {}).values():
        metadata = score.get("metadata") if isinstance(score, dict) else None
        if isinstance(metadata, dict) and "safetydrift" in metadata:
            found = msgspec.convert(metadata["safetydrift"], _Finding)
            if sample.error is not None:
                return Label(unusable="the run ended in an error", origin=found.origin)
            return Label(found.violated, onset=found.onset, origin=found.origin)
    return Label()
