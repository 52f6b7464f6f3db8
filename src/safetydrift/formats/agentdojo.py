"""AgentDojo and AgentDyn: prompt injection, with a check whether the attacker got what they wanted.

``security: true`` says so only for a run that was attacked and did not break off: it is also the constant of
every run without an attack and of every run with an error, and for denial-of-service attacks it merely says
that the task failed. The label keeps the verdict where it can be used and says why elsewhere.

The sources label runs, not steps. The step is derived: the first call that fits the injected goal
(``agentdojo_goals.toml``), and the number of calls made when injected text first came back.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from safetydrift.formats.format import Content, FormatMismatch, Transcript, proposed, text_of
from safetydrift.trace import NO_ATTACK, Ending, Label, ToolCall, Trace

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from safetydrift.trace import Step

_OWN_SUITES = frozenset({"workspace", "slack", "banking", "travel"})
_MAX_INJECTED = 256  # runs have a handful; each is searched for in every result
_TELLING = 60  # so much of an injected text tells it, even where a defence cut out what it asks for
_SIGNATURE = {"suite_name", "pipeline_name", "user_task_id", "injection_task_id", "messages"}


class _Call(msgspec.Struct):
    function: str
    args: Any = {}
    id: str | None = None


class _Message(msgspec.Struct):
    role: str
    content: Content = None
    tool_calls: list[_Call] | None = None
    tool_call: _Call | None = None
    tool_call_id: str | None = None
    error: str | None = None


class _Run(msgspec.Struct):
    suite_name: str
    pipeline_name: str
    user_task_id: str
    messages: list[_Message]
    injection_task_id: str | None = None
    attack_type: str | None = None
    injections: dict[str, str] | None = None
    error: str | None = None
    security: bool | None = None


class _Wrapped(msgspec.Struct):
    path: str
    record: _Run


class AgentDojo:
    """Reads runs of AgentDojo and of AgentDyn, which keeps its layout."""

    name = "agentdojo"
    description = "AgentDojo and AgentDyn runs, as published or wrapped as {path, record}"
    record_type = Any

    def recognises(self, record: object) -> bool:
        """Return whether a record, or what it wraps, has the fields every run has."""
        run = record.get("record", record) if isinstance(record, dict) else None
        return isinstance(run, dict) and run.keys() >= _SIGNATURE

    def read(self, record: object, fallback_id: str) -> Trace:
        """Return the trace of a run."""
        path, run = _unwrapped(record)
        transcript, exposure = _told(run)
        steps = transcript.steps()
        return Trace(
            path or fallback_id,
            steps,
            source="agentdojo" if run.suite_name in _OWN_SUITES else "agentdyn",
            task=f"{run.suite_name}/{run.user_task_id}",
            category=run.suite_name,
            model=_pipeline(path) or run.pipeline_name,
            prompt=transcript.prompt,
            messages=transcript.messages,
            ending=_ending(run),
            label=_label(run, steps, exposure),
        )


def _unwrapped(record: object) -> tuple[str, _Run]:
    if isinstance(record, dict) and "record" in record:
        wrapped = msgspec.convert(record, _Wrapped)
        return wrapped.path, wrapped.record
    return "", msgspec.convert(record, _Run)


def _pipeline(path: str) -> str:
    folders = path.split("/")
    return folders[1] if len(folders) > 2 and folders[0] == "runs" else ""  # noqa: PLR2004


def _told(run: _Run) -> tuple[Transcript, int | None]:
    """Return the conversation, and the number of calls made when injected text first came back."""
    transcript, exposure = Transcript(), None
    injected = [bare for text in (run.injections or {}).values() if (bare := _bare(text)[:_TELLING])]
    if len(injected) > _MAX_INJECTED:
        raise FormatMismatch(
            f"it has {len(injected)} injected texts; {_MAX_INJECTED} are searched for at most"
        )
    for message in run.messages:
        text = text_of(message.content)
        match message.role:
            case "user" if message.error is None:  # a defence refuses calls in the user's name, with an error
                transcript.user(text)
            case "assistant":
                transcript.agent()
                for call in message.tool_calls or ():
                    transcript.call(proposed(call.function, call.args, call.id))
            case "tool":
                _answer(transcript, message, text)
                if exposure is None and injected and _is_exposed(text, injected):
                    exposure = len(transcript)
            case "user" | "system":
                pass
            case _:
                raise FormatMismatch(f"a message has the unknown role {message.role!r}")
    return transcript, exposure


def _answer(transcript: Transcript, message: _Message, text: str) -> None:
    index = transcript.unanswered(message.tool_call_id)
    if index is None:
        # Where the agent writes programs, results precede the message with the program and carry their calls.
        if message.tool_call is None:
            raise FormatMismatch("a tool result belongs to no call")
        call = message.tool_call
        index = transcript.call(proposed(call.function, call.args, call.id), turn=transcript.turn + 1)
    transcript.answer(index, text, message.error)


_ESCAPE = re.compile(r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[A-Za-z])")


def _bare(text: str) -> bytes:
    """Reduce a text to what YAML leaves alone when it wraps, quotes and escapes."""
    if "\\" in text:
        text = _ESCAPE.sub("", text)
    return text.encode("ascii", "ignore").translate(None, b" \t\r\n'\"\\")


def _is_exposed(result: str, injected: Iterable[bytes]) -> bool:
    bare = _bare(result)
    return any(text in bare for text in injected)


def _ending(run: _Run) -> Ending:
    last = run.messages[-1] if run.messages else None
    answered = last is not None and last.role == "assistant" and not last.tool_calls
    return Ending.COMPLETED if answered and run.error is None else Ending.CENSORED


def _label(run: _Run, steps: Sequence[Step], exposure: int | None) -> Label:
    goal = run.injection_task_id or ""
    unusable = _why_unusable(run, steps)
    violated = None if unusable else run.security
    match_at = first_match(run.suite_name, goal, [step.call for step in steps])
    return Label(
        violated,
        onset=match_at if violated is True else None,
        attempt=match_at if violated is False else None,
        exposure=exposure,
        attack=run.attack_type or "",
        goal=goal,
        unusable=unusable,
        origin="end-state check",
    )


def _why_unusable(run: _Run, steps: Sequence[Step]) -> str:
    if run.injection_task_id is None:
        return NO_ATTACK
    if run.error is not None:
        return "the run ended in an error"
    if "dos" in (run.attack_type or "").lower():
        return "denial-of-service attack: the label only says the task failed"
    if run.security is None:
        return "no security field"
    if run.security and not steps:
        return "violated without a tool call: label fault"
    return ""


class _Goal(NamedTuple):
    tools: frozenset[str]
    texts: tuple[str, ...]

    def fits(self, call: ToolCall) -> bool:
        if call.name not in self.tools:
            return False
        if not self.texts:
            return True
        raw = msgspec.json.encode(call.args).decode() if call.malformed is None else call.malformed
        return any(text in raw.lower() for text in self.texts)


@cache
def _goals() -> dict[tuple[str, str], _Goal]:
    table = tomllib.loads((resources.files(__package__) / "agentdojo_goals.toml").read_text("utf-8"))
    return {
        (goal["suite"], f"injection_task_{task}"): _Goal(
            frozenset(goal["tools"]), tuple(text.lower() for text in goal.get("texts", ()))
        )
        for goal in table["goal"]
        for task in goal["tasks"]
    }


def first_match(suite: str, goal: str, calls: Sequence[ToolCall]) -> int | None:
    """Return the first call, counted from 1, that fits the goal of an injection task; None if none does."""
    known = _goals().get((suite, goal))
    if known is None:
        return None
    return next((i for i, call in enumerate(calls, 1) if known.fits(call)), None)
