"""Gemini CLI: its chats, as lines of JSON or, from older versions, as one document.

A message that comes again with the same id is a newer version of it. What ran before the user went back to an earlier
point, or before the chat was compressed, did run.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from safetydrift.formats.messages import call_of, messages_of, text_of_result
from safetydrift.formats.run_builder import RunBuilder
from safetydrift.formats.session_log import File, SessionLog, Subrun, in_order
from safetydrift.formats.times import seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from safetydrift.formats.format import Account, Place
    from safetydrift.trace import Trace

_AGENT = frozenset({"gemini", "model"})
_REFUSED = "did not allow tool call"


class _Call(msgspec.Struct):
    name: str
    id: str | None = None
    args: Any = None
    result: Any = None
    status: str | None = None
    timestamp: str | None = None
    agentId: str | None = None  # noqa: N815  # Gemini CLI's names, here and below


class _Message(msgspec.Struct):
    id: str | None = None
    type: str = ""
    timestamp: str | None = None
    content: Any = None
    displayContent: Any = None  # noqa: N815
    parts: Any = None
    model: str | None = None
    toolCalls: list[_Call] | None = None  # noqa: N815


class _Changes(msgspec.Struct):
    messages: list[_Message] | None = None


class _Record(_Message):
    sessionId: str | None = None  # noqa: N815
    startTime: str | None = None  # noqa: N815
    kind: str | None = None
    messages: list[_Message] | None = None
    changes: _Changes | None = msgspec.field(default=None, name="$set")
    rewound: str | None = msgspec.field(default=None, name="$rewindTo")


class GeminiCLI:
    """Reads chats of the Gemini CLI."""

    name = "gemini_cli"
    description = "Gemini CLI chats (~/.gemini/tmp/*/chats), with their subagents"
    pooled = False

    def recognises(self, record: object) -> bool:
        """Return whether a record is the head of a chat, or a chat."""
        return isinstance(record, dict) and {"sessionId", "projectHash"} <= record.keys()

    def keys(self, path: Path, head: Iterable[object]) -> Iterator[str]:
        """Yield the session of a chat, and the one whose subagent it is."""
        first = next(iter(head), None)
        if self.recognises(first) and isinstance(first, dict):
            yield f"gemini {first['sessionId']}"
            if parent := _parent(str(path)):
                yield f"gemini {parent}"

    def gather(self, account: Account) -> _Sessions:
        """Return what takes the records of a chat and its subagents."""
        return _Sessions(account)


def _parent(path: str) -> str:
    """Return the session whose subagent a file is about: chats/<session>/<id>.jsonl."""
    folder = Path(path).parent
    return folder.name if folder.parent.name == "chats" else ""


class _Sessions(SessionLog[_Record]):
    """The runs of a chat and its subagents."""

    source = GeminiCLI.name
    decode = msgspec.json.Decoder(_Record).decode

    def runs(self, files: list[File[_Record]]) -> Iterator[Trace]:
        """Yield the user's runs, then those of subagents."""
        chats: dict[str, _Chat] = {}
        for file in in_order(files, lambda one: seconds(one.startTime or one.timestamp)):
            name = next((one.sessionId for one, _ in file.lines if one.sessionId), file.path)
            chat = chats.setdefault(name, _Chat(name, _parent(file.path)))
            for record, place in file.lines:
                self._take(chat, record, place)
        for chat in sorted(chats.values(), key=lambda one: bool(one.parent)):
            yield from chat.trace(chats)

    def _take(self, chat: _Chat, record: _Record, place: Place) -> None:
        added = [*(record.messages or ()), *((record.changes or _Changes()).messages or ())]
        if record.id is not None:
            added.append(record)
        for message in added:
            chat.messages[message.id or str(len(chat.messages))] = message
        if added or record.sessionId:
            self.account.used()
        else:
            self.account.skipped("a change that adds no message", place)


class _Chat:
    """One chat: its messages by their ids, the latest version of each."""

    def __init__(self, name: str, parent: str) -> None:
        self.name, self.parent = name, parent
        self.messages: dict[str, _Message] = {}
        self.builder = RunBuilder()
        self.agents: dict[str, str] = {}

    def trace(self, chats: dict[str, _Chat]) -> Iterator[Trace]:
        """Yield the run, if there is one."""
        outer = chats.get(self.parent)
        times = (seconds(one.timestamp) for one in self.messages.values())
        run = Subrun(None if outer is None else outer.builder, next(times, None)) if self.parent else None
        if run is not None:
            self.builder = run.builder
        for message in self.messages.values():
            self._tell(message, run)
        if not self.builder.is_empty:
            yield self.builder.trace(
                self.name,
                GeminiCLI.name,
                task="" if run is None else run.delegated,
                parent=self.parent,
                parent_call="" if outer is None else outer.agents.get(self.name, ""),
            )

    def _tell(self, message: _Message, run: Subrun | None) -> None:
        if message.type == "user":
            # What a person typed, where files and the like were put into it.
            shown = (message.displayContent, message.content, message.parts)
            content = next((one for one in shown if one is not None), None)
            for one in messages_of(
                {"role": "user", "parts": [content] if isinstance(content, str) else content}, "user"
            ):
                if one.text and run is None:
                    self.builder.user(one.text, seconds(message.timestamp))
                elif one.text and run is not None:
                    run.hear(one.text)
        elif message.type in _AGENT:
            self.builder.agent()
            self.builder.model = self.builder.model or message.model or ""
            for call in message.toolCalls or ():
                self._call(call)

    def _call(self, call: _Call) -> None:
        time = seconds(call.timestamp)
        found = self.builder.call(call_of(call.name, call.args, call.id), time)
        if call.agentId:
            self.agents[call.agentId] = found.call.id
        if call.result is None and call.status is None:
            return
        text, failed = _result(call.result)
        if call.status == "cancelled" and _REFUSED in text:
            found.answer(None, text, time, "person")
        else:
            failed = failed or call.status in {"error", "cancelled"}
            found.answer(text, (text or str(call.status)) if failed else None, time)


def _result(value: object) -> tuple[str, bool]:
    """Return the text of what came back, and whether it is an error."""
    texts, failed = [], False
    for one in messages_of({"role": "user", "parts": value if isinstance(value, list) else [value]}, "user"):
        texts += [*(result.text for result in one.results), *one.texts]
        failed = failed or any(result.error is not None for result in one.results)
    return "\n".join(texts) or ("" if value is None or texts else text_of_result(value)), failed
