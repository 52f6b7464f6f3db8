"""Claude Code: the transcripts of its sessions.

A session is a file of lines; subagents have files of their own (``<session>/subagents/agent-*.jsonl``), and in older
versions lines of their own (``isSidechain``). What ran after the user went back to an earlier point did run, so the
tree of lines is read in the order of the file. Sessions that share lines or a plan are one run; ``/clear`` begins
another.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from safetydrift.formats.messages import call_of, is_call_block, text_of_result
from safetydrift.formats.run_builder import RunBuilder
from safetydrift.formats.session_log import File, SessionLog, Subrun, in_order, without_copies
from safetydrift.formats.times import seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from safetydrift.formats.format import Account, Place
    from safetydrift.trace import Trace

_TYPES_OF_A_HEAD = frozenset(
    {
        "summary",
        "file-history-snapshot",
        "queue-operation",
        "permission-mode",
        "mode",
        "user",
        "assistant",
        "system",
    }
)
_NOT_WORDS = re.compile(
    r"\s*(?:<(?:command-|local-command-|bash-|task-notification|user-memory-input|ide_|teammate-message)"
    r"|\[Request interrupted by user|Caveat: The messages below|This session is being continued from)"
)
_REMINDER = re.compile(r"\s*<system-reminder>.*?</system-reminder>", re.DOTALL)
_CLEAR = "<command-name>/clear</command-name>"
_COMMAND_ARGUMENTS = re.compile(r"<command-args>(.+?)</command-args>", re.DOTALL)
_REFUSED = (
    ("person", re.compile(r"The user doesn't want to (?:proceed with this tool use|take this action)")),
    (
        "hook",
        re.compile(r"(?:PreToolUse:\S* |PreToolUse )?[Hh]ook (?:error|blocked|denied)|PreToolUse:\S+ hook"),
    ),
    (
        "policy",
        re.compile(r"Permission to use .{1,200} (?:has been|was) denied|Claude requested permissions to"),
    ),
)
_DENIED = {"user-rejected": "person", "user": "person", "hook": "hook"}
_NO_PERSON = frozenset({"channel", "peer", "task-notification", "coordinator"})
SPOKEN_IN_HEAD = 2
"""Messages of a file that are looked at to tell whether it begins with a copy of another."""


class _Block(msgspec.Struct):
    type: str = "text"
    text: str | None = None
    id: str | None = None
    name: str | None = None
    input: Any = None
    tool_use_id: str | None = None
    content: Any = None
    is_error: bool | None = None


class _Message(msgspec.Struct):
    id: str | None = None
    model: str | None = None
    content: str | list[_Block | str] | None = None

    @property
    def blocks(self) -> list[_Block]:
        """The content, text in a block of its own."""
        if isinstance(self.content, str):
            return [_Block(text=self.content)]
        return [_Block(text=one) if isinstance(one, str) else one for one in self.content or ()]


class _Origin(msgspec.Struct):
    kind: str | None = None


class _Attachment(msgspec.Struct):
    type: str = ""
    prompt: Any = None
    commandMode: str | None = None  # noqa: N815  # Claude Code's names, here and below
    origin: _Origin | None = None
    hookEvent: str | None = None  # noqa: N815
    toolUseID: str | None = None  # noqa: N815
    blockingError: Any = None  # noqa: N815


class _Line(msgspec.Struct):
    type: str = ""
    uuid: str | None = None
    parentUuid: str | None = None  # noqa: N815
    sessionId: str | None = None  # noqa: N815
    agentId: str | None = None  # noqa: N815
    timestamp: str | None = None
    isSidechain: bool | None = None  # noqa: N815
    isMeta: bool | None = None  # noqa: N815
    isCompactSummary: bool | None = None  # noqa: N815
    message: _Message | None = None
    attachment: _Attachment | None = None
    origin: _Origin | None = None
    toolUseResult: msgspec.Raw = msgspec.Raw()  # noqa: N815
    toolDenialKind: str | None = None  # noqa: N815


class ClaudeCode:
    """Reads transcripts of Claude Code."""

    name = "claude_code"
    description = "Claude Code transcripts (~/.claude/projects), with their subagents"
    pooled = False

    def recognises(self, record: object) -> bool:
        """Return whether a record is a line of a transcript."""
        if not isinstance(record, dict) or "projectHash" in record or not isinstance(record.get("type"), str):
            return False
        if {"sessionId", "parentUuid", "uuid"} <= record.keys() or {"leafUuid", "summary"} <= record.keys():
            return True
        return record["type"] in _TYPES_OF_A_HEAD and (
            "sessionId" in record or {"messageId", "snapshot"} <= record.keys()
        )

    def keys(self, path: Path, head: Iterable[object]) -> Iterator[str]:
        """Yield the sessions, the plan and the first messages that a file is about."""
        if path.parent.name == "subagents":
            yield f"claude {path.parent.parent.name}"
            return
        spoken = 0
        for line in head:
            if not isinstance(line, dict) or not self.recognises(line):
                continue
            forked, message = line.get("forkedFrom"), line.get("message")
            named = [line.get("sessionId"), forked.get("sessionId") if isinstance(forked, dict) else None]
            if isinstance(message, dict) and not path.name.startswith("agent-"):
                named += [line.get("slug"), line.get("uuid"), message.get("id")]
            yield from (f"claude {name}" for name in named if isinstance(name, str))
            spoken += isinstance(message, dict)
            if spoken == SPOKEN_IN_HEAD:
                return

    def gather(self, account: Account) -> _Sessions:
        """Return what takes the lines of the files of one family of sessions."""
        return _Sessions(account)


def _ids(line: _Line) -> Iterator[str]:
    if line.uuid is not None:
        yield line.uuid
    if line.type == "assistant" and line.message is not None:
        yield from (
            name for name in (line.message.id, *[one.id for one in line.message.blocks]) if name is not None
        )


class _Sessions(SessionLog[_Line]):
    """The runs of a family of sessions."""

    source = ClaudeCode.name
    decode = msgspec.json.Decoder(_Line).decode

    def __init__(self, account: Account) -> None:
        super().__init__(account)
        self._name = ""
        self._main: list[RunBuilder] = []
        self._agents: dict[str, Subrun] = {}
        self._starts: dict[str, str] = {}
        self._roots: dict[str, str] = {}
        self._messages: dict[int, str] = {}
        self._uuids: set[str] = set()

    def runs(self, files: list[File[_Line]]) -> Iterator[Trace]:
        """Yield the user's runs, then those of subagents."""
        own = [file for file in files if not _is_of_agent(file.path)]
        others = [file for file in files if _is_of_agent(file.path)]
        seen: set[str] = set()
        for file in (*in_order(own, _time), *in_order(others, _time)):
            self._name = self._name or _session(file)
            if not _is_of_agent(file.path) or not self._main:
                self._main = self._main or [RunBuilder()]
            alone = len(files) == 1
            self.tell(file.lines if alone else without_copies(file, seen, _ids, self.account), self._line)
        for number, builder in enumerate(self._main, 1):
            if not builder.is_empty:
                yield builder.trace(self._main_name(number), self.source)
        for agent, run in self._agents.items():
            if not run.builder.is_empty:
                call = self._starts.get(agent, "")
                yield run.builder.trace(
                    f"{self._name}/{agent}",
                    self.source,
                    task=run.delegated,
                    parent=self._parent(call),
                    parent_call=call,
                )

    def _main_name(self, number: int) -> str:
        return self._name if number == 1 else f"{self._name}#{number}"

    def _parent(self, call: str) -> str:
        numbers = (n for n, builder in enumerate(self._main, 1) if call and builder.knows(call))
        return self._main_name(next(numbers, 1))

    def _line(self, line: _Line, place: Place) -> None:
        run = self._run(line, place.path)
        if line.uuid is not None and line.uuid in self._uuids:
            self.account.skipped("a line written again", place)
            return
        if line.uuid is not None:
            self._uuids.add(line.uuid)
        if line.message is not None and line.type == "assistant" and line.message.model != "<synthetic>":
            self._assistant(line, line.message, run.builder if isinstance(run, Subrun) else run)
        elif line.message is not None and line.type == "user":
            if not self._user(line, line.message, run, place):
                return
        elif line.attachment is None or not self._attached(line, line.attachment, run):
            self.account.skipped(f"a line of type {line.type[:40]}", place)
            return
        self.account.used()

    def _run(self, line: _Line, path: str) -> RunBuilder | Subrun:
        """Return the run that a line belongs to."""
        agent = line.agentId
        if agent is None and line.isSidechain:
            agent = self._roots.get(line.parentUuid or "", line.uuid or "")
            self._roots[line.uuid or ""] = agent
        if agent is None and not _is_of_agent(path):
            return self._main[-1]
        agent = agent or path
        if agent not in self._agents:
            self._agents[agent] = Subrun(self._main[-1], seconds(line.timestamp))
        return self._agents[agent]

    def _assistant(self, line: _Line, message: _Message, builder: RunBuilder) -> None:
        if message.id is None or self._messages.get(id(builder)) != message.id:
            builder.agent()
            self._messages[id(builder)] = message.id or ""
        builder.model = builder.model or message.model or ""
        time = seconds(line.timestamp)
        for block in message.blocks:
            if is_call_block(block.type):
                builder.call(call_of(block.name, block.input, block.id), time)
            elif block.type.endswith("_tool_result"):
                self._answer(line, block, builder)

    def _user(self, line: _Line, message: _Message, run: RunBuilder | Subrun, place: Place) -> bool:
        builder = run.builder if isinstance(run, Subrun) else run
        blocks = message.blocks
        results = [one for one in blocks if one.type == "tool_result"]
        answered = [one for one in results if self._answer(line, one, builder)]
        texts = [one.text for one in blocks if one.type == "text" and one.text]
        if any(_CLEAR in text for text in texts) and isinstance(run, RunBuilder):
            self._main.append(RunBuilder())
        words = [] if line.isMeta or line.isCompactSummary or _by_no_person(line.origin) else _words(texts)
        for text in words:
            if isinstance(run, Subrun):
                run.hear(text)
            else:
                run.user(text, seconds(line.timestamp))
        if answered or words:
            return True
        reason = (
            "a result that belongs to no call"
            if results
            else "words under the user's name that no person wrote"
        )
        self.account.skipped(reason, place)
        return False

    def _answer(self, line: _Line, block: _Block, builder: RunBuilder) -> bool:
        found = builder.find(block.tool_use_id)
        if found is None:
            return False
        text = text_of_result(block.content)
        refused_by = _refuser(line, text) if block.is_error else ""
        found.answer(text, text if block.is_error else None, seconds(line.timestamp), refused_by)
        if b'"agentId"' in (raw := bytes(line.toolUseResult)):
            started = msgspec.json.decode(raw)
            if isinstance(started, dict) and isinstance(agent := started.get("agentId"), str):
                self._starts[agent] = found.call.id
        return True

    def _attached(self, line: _Line, attachment: _Attachment, run: RunBuilder | Subrun) -> bool:
        """Read what the client put beside the messages; return whether it says anything of the run."""
        builder = run.builder if isinstance(run, Subrun) else run
        if attachment.type == "queued_command" and attachment.commandMode == "prompt":
            words = _words([text_of_result(attachment.prompt)])
            if not _by_no_person(attachment.origin) and words and isinstance(run, RunBuilder):
                run.user(words[0], seconds(line.timestamp))
                return True
        if (
            attachment.type == "hook_blocking_error"
            and attachment.hookEvent == "PreToolUse"
            and attachment.toolUseID
        ):
            found = builder.find(attachment.toolUseID)
            if found is not None:
                found.answer(None, text_of_result(attachment.blockingError), seconds(line.timestamp), "hook")
                return True
        return False


def _time(line: _Line) -> float | None:
    return seconds(line.timestamp)


def _is_of_agent(path: str) -> bool:
    return Path(path).name.startswith("agent-")


def _session(file: File[_Line]) -> str:
    """Return the session that a file is about, by its folder or its lines."""
    path = Path(file.path)
    if path.parent.name == "subagents":
        return path.parent.parent.name
    named = (line.sessionId for line, _ in file.lines if line.sessionId and line.message is not None)
    return next(named, path.name.partition(".")[0])


def _by_no_person(origin: _Origin | None) -> bool:
    return origin is not None and origin.kind in _NO_PERSON


def _words(texts: list[str]) -> list[str]:
    """Return what a person wrote of some texts under the user's name; of a command, what follows its name."""
    texts = [_REMINDER.sub("", text) for text in texts]
    words = [text for text in texts if text and not _NOT_WORDS.match(text)]
    words += [
        found[1] for text in texts if "<command-name>" in text and (found := _COMMAND_ARGUMENTS.search(text))
    ]
    return words


def _refuser(line: _Line, text: str) -> str:
    if line.toolDenialKind:
        return _DENIED.get(line.toolDenialKind, "policy")
    return next((who for who, pattern in _REFUSED if pattern.match(text)), "")
