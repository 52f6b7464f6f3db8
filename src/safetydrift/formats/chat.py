"""Chat transcripts: lists of messages as the APIs of OpenAI and Anthropic exchange them.

A record is the list itself, or ``{"messages": [..]}`` with ``id``, ``task``, ``category``, ``model`` and
``source`` beside it where known. Calls are found in ``tool_calls`` (functions and custom tools), in the older
``function_call``, and in content blocks of a type ending in ``tool_use``; results in messages of role
``tool`` or ``function``, and in blocks of a type ending in ``tool_result``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from safetydrift.formats.format import Content, FormatMismatch, Transcript, proposed, text_of
from safetydrift.formats.messages import are_items
from safetydrift.trace import Ending, Trace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from safetydrift.trace import ToolCall

_OTHERS = frozenset({"user_task_id", "transcript_id"})
"""What the records of others have that hold messages, too."""
_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})


class _Block(msgspec.Struct):
    type: str = "text"
    text: str | None = None
    id: str | None = None
    name: str | None = None
    input: Any = None
    tool_use_id: str | None = None
    content: Any = None
    is_error: bool | None = None


class _Function(msgspec.Struct):
    name: str
    arguments: Any = None


class _Custom(msgspec.Struct):
    name: str
    input: str = ""


class _Call(msgspec.Struct):
    id: str | None = None
    function: _Function | None = None
    custom: _Custom | None = None


class Message(msgspec.Struct):
    """A message of either API."""

    role: str
    content: str | list[_Block | str] | None = None
    tool_calls: list[_Call] | None = None
    function_call: _Function | None = None
    tool_call_id: str | None = None

    def blocks(self, ending: str = "") -> Iterator[_Block]:
        """Yield the content blocks whose type ends like this."""
        if isinstance(self.content, list):
            yield from (
                block for block in self.content if isinstance(block, _Block) and block.type.endswith(ending)
            )

    def text(self) -> str:
        """Return what the message says, without calls and results."""
        if not isinstance(self.content, list):
            return self.content or ""
        texts = (block if isinstance(block, str) else block.text for block in self.content)
        return "\n".join(text for text in texts if text)

    def calls(self) -> list[ToolCall]:
        """Return the calls the message proposes."""
        calls = [_proposed(call) for call in self.tool_calls or ()]
        if self.function_call is not None:
            calls.append(proposed(self.function_call.name, self.function_call.arguments))
        for block in self.blocks("tool_use"):
            if block.name is None:
                raise FormatMismatch(f"a {block.type} block has no name")
            calls.append(proposed(block.name, block.input, block.id))
        return calls


class _Record(msgspec.Struct):
    messages: list[Message]
    id: str | int | None = None
    task: str | None = None
    category: str | None = None
    model: str | None = None
    source: str | None = None


class Chat:
    """Reads chat transcripts."""

    name = "chat"
    description = "lists of OpenAI or Anthropic messages, bare or as {messages}"
    record_type = Any

    def recognises(self, record: object) -> bool:
        """Return whether a record is a list of messages or holds one, and is no benchmark's record."""
        if isinstance(record, dict):
            messages = record.get("messages")
            return (
                record.keys().isdisjoint(_OTHERS)
                and isinstance(messages, list)
                and all(map(_is_message, messages[:1]))
            )
        return isinstance(record, list) and bool(record) and _is_message(record[0]) and not are_items(record)

    def read(self, record: object, fallback_id: str) -> Trace:
        """Return the trace of a conversation."""
        if isinstance(record, list):
            run = _Record(msgspec.convert(record, list[Message]))
        else:
            run = msgspec.convert(record, _Record)
        transcript = told(run.messages)
        return Trace(
            fallback_id if run.id is None else str(run.id),
            transcript.steps(),
            source=run.source or "chat",
            task=run.task or "",
            category=run.category or "",
            model=run.model or "",
            prompt=transcript.prompt,
            messages=transcript.messages,
            ending=_ending(run.messages),
        )


def _is_message(value: object) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("role"), str):
        return False
    return value["role"] in _ROLES and ("content" in value or "tool_calls" in value)


def told(messages: list[Message]) -> Transcript:
    """Return the conversation that messages make up.

    Raises
    ------
    FormatMismatch
        If a result belongs to no call, or a role is unknown.
    """
    transcript = Transcript()
    for message in messages:
        if message.role not in _ROLES:
            raise FormatMismatch(f"a message has the unknown role {message.role!r}")
        if message.role == "assistant":
            transcript.agent()
            for call in message.calls():
                transcript.call(call)
        for call_id, result, error in _results(message):
            index = transcript.unanswered(call_id)
            if index is None:
                raise FormatMismatch("a tool result belongs to no call")
            transcript.answer(index, result, error)
        if message.role == "user" and (text := message.text()):
            transcript.user(text)
    return transcript


def _results(message: Message) -> Iterator[tuple[str | None, str, str | None]]:
    if message.role in {"tool", "function"}:
        yield message.tool_call_id, message.text(), None
    for block in message.blocks("tool_result"):
        text = text_of(msgspec.convert(block.content, Content))
        yield block.tool_use_id, text, text if block.is_error else None


def _proposed(call: _Call) -> ToolCall:
    if call.function is not None:
        return proposed(call.function.name, call.function.arguments, call.id)
    if call.custom is not None:
        return proposed(call.custom.name, {"input": call.custom.input}, call.id)
    raise FormatMismatch("a tool call names neither a function nor a custom tool")


def _ending(messages: list[Message]) -> Ending:
    last = messages[-1] if messages else None
    answered = last is not None and last.role == "assistant" and not last.calls()
    return Ending.COMPLETED if answered else Ending.CENSORED
