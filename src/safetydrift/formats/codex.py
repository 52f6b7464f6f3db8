"""Codex CLI: rollouts, a file for every thread.

What the model was given and answered are items of OpenAI's Responses; events beside them repeat calls and say what the
user wrote. The first ``session_meta`` of a file says whose it is; a subagent's file begins with a copy of its parent's.
Oldest files hold bare items.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from safetydrift.formats.messages import (
    AGENT,
    USER,
    call_of,
    has_failed,
    messages_of,
    text_of_result,
    tools_of,
)
from safetydrift.formats.run_builder import RESULT, RunBuilder
from safetydrift.formats.session_log import File, SessionLog, Subrun, in_order, without_copies
from safetydrift.formats.times import seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from safetydrift.formats.format import Account, Place
    from safetydrift.trace import ToolCall, Trace

_TYPES = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state"})
_CONTEXT = re.compile(
    r"\s*(?:<([a-zA-Z_]+)[ >].*</\1>\s*\Z|# AGENTS\.md instructions|<turn_aborted>)", re.DOTALL
)
_REJECTED = re.compile(r".{0,80}\brejected by user\b", re.DOTALL)
_READ_EVENTS = frozenset(
    {"user_message", "item_completed", "turn_aborted", "mcp_tool_call_end", "patch_apply_end"}
)
_HOSTED = frozenset({"web_search", "image_generation", "file_search"})
_EXECUTED = {"CommandExecution": "shell", "McpToolCall": "", "DynamicToolCall": ""}


class _Meta(msgspec.Struct):
    id: str = ""
    parent_thread_id: str | None = None
    forked_from_id: str | None = None
    source: Any = None
    timestamp: str | None = None
    subagent_history_start_ordinal: int | None = None
    dynamic_tools: Any = None

    @property
    def parent(self) -> str:
        """The thread that started this one as its subagent."""
        inner: Any = self.source
        for name in ("subagent", "thread_spawn"):
            inner = inner.get(name) if isinstance(inner, dict) else None
        named = inner.get("parent_thread_id") if isinstance(inner, dict) else None
        return self.parent_thread_id or (named if isinstance(named, str) else "")


class _Context(msgspec.Struct):
    model: str | None = None


class _Line(msgspec.Struct):
    type: str = ""
    timestamp: str | None = None
    ordinal: int | None = None
    payload: msgspec.Raw = msgspec.Raw()
    item: Any = None
    event: str = ""

    @property
    def ids(self) -> tuple[str, ...]:
        """What the line is known by."""
        if not isinstance(self.item, dict):
            return ()
        own = (self.item.get("id"), self.item.get("call_id") if self.item.get("type") != "message" else None)
        return tuple([name for name in own if isinstance(name, str)])


class _Typed(msgspec.Struct):
    type: str = ""


_line = msgspec.json.Decoder(_Line).decode
_typed = msgspec.json.Decoder(_Typed).decode
_meta = msgspec.json.Decoder(_Meta).decode
_context = msgspec.json.Decoder(_Context).decode


def _decode(data: bytes) -> _Line:
    line = _line(data)
    if line.type == "response_item":
        line.item = msgspec.json.decode(line.payload)
    elif line.type == "event_msg":
        line.event = _typed(line.payload).type
        if line.event in _READ_EVENTS:
            line.item = msgspec.json.decode(line.payload)
    elif not line.payload:  # of the oldest files: the line is the item
        line.item, line.type = msgspec.json.decode(data), "response_item"
    return line


class Codex:
    """Reads rollouts of the Codex CLI."""

    name = "codex"
    description = "Codex CLI rollouts (~/.codex/sessions), with their subagents"
    pooled = False

    def recognises(self, record: object) -> bool:
        """Return whether a record is a line of a rollout."""
        if not isinstance(record, dict):
            return False
        if isinstance(record.get("payload"), dict) and "timestamp" in record:
            return str(record.get("type")) in _TYPES
        return {"id", "timestamp", "instructions"} <= record.keys() and "type" not in record

    def keys(self, path: Path, head: Iterable[object]) -> Iterator[str]:  # noqa: ARG002  # its lines say all
        """Yield the threads that a file is about."""
        first = next(
            (one for one in head if isinstance(one, dict) and one.get("type") == "session_meta"), None
        )
        if first is not None and self.recognises(first):
            try:
                meta = msgspec.convert(first["payload"], _Meta)
            except msgspec.ValidationError:
                return  # reading the file will say what is wrong with it
            yield from (f"codex {name}" for name in (meta.id, meta.parent, meta.forked_from_id) if name)

    def gather(self, account: Account) -> _Sessions:
        """Return what takes the lines of threads that have to do with each other."""
        return _Sessions(account)


class _Sessions(SessionLog[_Line]):
    """The runs of a family of threads."""

    source = Codex.name
    decode = staticmethod(_decode)

    def runs(self, files: list[File[_Line]]) -> Iterator[Trace]:
        """Yield the runs of threads; a fork goes on in the run that it was forked from, if that was read."""
        metas = {file.path: _meta_of(file) for file in files}
        seen: set[str] = set()
        found: dict[str, _Thread] = {}
        for file in in_order(files, lambda line: seconds(line.timestamp)):
            meta = metas[file.path]
            lines = file.lines
            if meta.subagent_history_start_ordinal is not None:
                lines = [one for one in lines if (one[0].ordinal or 0) >= meta.subagent_history_start_ordinal]
                for _, place in file.lines[: len(file.lines) - len(lines)]:
                    self.account.skipped("copied from another file", place)
            name = meta.id or Path(file.path).name.partition(".")[0]
            thread = found.get(meta.forked_from_id or "") if not meta.parent else None
            if thread is None:
                thread = found.setdefault(name, _Thread(name, meta, found.get(meta.parent), self.account))
            found[name] = thread
            if len(files) > 1:
                lines = without_copies(File(file.path, lines), seen, lambda line: line.ids, self.account)
            self.tell(lines, thread.take)
        for thread in dict.fromkeys(found.values()):
            thread.flush()
            if not thread.builder.is_empty:
                run = thread.subrun
                yield thread.builder.trace(
                    thread.name,
                    self.source,
                    task="" if run is None else run.delegated,
                    parent=thread.parent,
                )


def _meta_of(file: File[_Line]) -> _Meta:
    raw = next((line.payload for line, _ in file.lines if line.type == "session_meta"), None)
    try:
        return _Meta() if raw is None else _meta(raw)
    except msgspec.ValidationError:
        return _Meta()


class _Thread:
    """One thread, put together."""

    def __init__(self, name: str, meta: _Meta, parent: _Thread | None, account: Account) -> None:
        self.name, self.parent = name, meta.parent
        self.subrun = (
            Subrun(None if parent is None else parent.builder, seconds(meta.timestamp))
            if meta.parent
            else None
        )
        self.builder: RunBuilder = RunBuilder() if self.subrun is None else self.subrun.builder
        self.builder.offers(tools_of(meta.dynamic_tools))
        self._account = account
        self._in_turn = False
        self._told_by_events = False
        self._unsure: list[tuple[str, float | None, Place]] = []

    def take(self, line: _Line, place: Place) -> None:
        """Take a line."""
        if line.type == "turn_context":
            self.builder.model = self.builder.model or _context(line.payload).model or ""
        elif line.type == "response_item" and isinstance(line.item, dict):
            if not self._item(line.item, seconds(line.timestamp), place):
                return
        elif line.type == "event_msg":
            if line.item is None or not self._event(line.item, seconds(line.timestamp)):
                self._account.skipped(f"an event of type {line.event[:40]}", place)
                return
        elif line.type != "session_meta":
            self._account.skipped(f"a line of type {line.type[:40]}", place)
            return
        self._account.used()

    def _item(self, item: dict[str, Any], time: float | None, place: Place) -> bool:
        """Take an item; return whether it counts as read here, and not later."""
        if item.get("type") == "function_call":
            self._propose([call_of(item.get("name"), item.get("arguments"), item.get("call_id"))], time)
            return True
        for message in messages_of(item, USER):
            if message.role == USER:
                self._in_turn = False
                self._unsure.append((message.text, time, place))
                return False
            if message.role == AGENT:
                self._propose(message.calls, time)
                if not message.calls and message.texts:
                    self.builder.spoke()
            for result in message.results:
                self._in_turn = False
                found = self.builder.find(result.call_id)
                if found is None:
                    self._account.skipped("a result that belongs to no call", place)
                    return False
                refused = "person" if _REJECTED.match(result.text) else result.refused_by
                found.answer(result.text, result.error, time, refused)
        return True

    def _propose(self, calls: list[ToolCall], time: float | None) -> None:
        """Take what the agent answers, which goes on until something comes back."""
        if self._unsure:
            self.flush()
        if not self._in_turn:
            self.builder.agent()
        self._in_turn = True
        for call in calls:
            found = self.builder.add(call, time)
            if call.name in _HOSTED and found.is_open:
                found.misses(RESULT)  # the provider ran it, and gave the result to the model alone

    def flush(self) -> None:
        """Take the user's messages among the items, where no event tells which of them a person wrote."""
        for text, time, place in self._unsure:
            if self._told_by_events or _CONTEXT.match(text) or not text:
                self._account.skipped(
                    "words under the user's name that events repeat, or that no person wrote", place
                )
            else:
                self._user(text, time)
                self._account.used()
        self._unsure.clear()

    def _user(self, text: str, time: float | None) -> None:
        self._in_turn = False
        if self.subrun is not None:
            self.subrun.hear(text)
        else:
            self.builder.user(text, time)

    def _event(self, event: dict[str, Any], time: float | None) -> bool:
        """Take an event; return whether it says what no item does."""
        kind, item = event.get("type"), event.get("item")
        if kind == "user_message" and isinstance(event.get("message"), str):
            self._told_by_events = True
            self._user(event["message"], time)
        elif kind == "item_completed" and isinstance(item, dict) and item.get("type") == "UserMessage":
            self._told_by_events = True
            self._user(text_of_result(item.get("content")), time)
        elif kind == "turn_aborted":
            self.builder.cut_off()
        elif kind == "mcp_tool_call_end" and isinstance(call := event.get("invocation"), dict):
            self._executed(call, event.get("call_id"), event.get("result"), time)
        elif kind == "item_completed" and isinstance(item, dict) and str(item.get("type")) in _EXECUTED:
            self._executed(item, item.get("id"), item.get("result"), time)
        elif kind == "patch_apply_end" and event.get("success") is False:
            found = self.builder.find(str(event.get("call_id")))
            if found is not None:
                found.answer(None, text_of_result(event.get("stderr")) or "failed", time)
        else:
            return False
        return True

    def _executed(self, call: dict[str, Any], call_id: object, result: object, time: float | None) -> None:
        """Take a call that was executed, which an item may have proposed or not."""
        tool = call.get("tool") or _EXECUTED.get(str(call.get("type")), "")
        name = f"mcp__{call['server']}__{tool}" if isinstance(call.get("server"), str) else tool
        given = {"command": call["command"]} if "command" in call else call.get("arguments")
        known = isinstance(call_id, str) and self.builder.knows(call_id)
        if not known:
            self.builder.agent()
        found = self.builder.call(call_of(name, given, call_id), time)
        value = (
            result.get("Ok", result.get("Err", result))
            if isinstance(result, dict)
            else call.get("aggregatedOutput")
        )
        failed = has_failed(value) or (isinstance(result, dict) and "Err" in result)
        text = None if value is None else text_of_result(value)
        refused = "person" if call.get("status") == "declined" else ""
        found.answer(text, text if failed else None, time, refused)
