"""ATIF, Harbor's interchange format of trajectories: a document for each, its results beside its calls.

A trajectory that was continued in another document is one run with it; subagents are runs of their own, in the same
document or in one beside it. Agents that only write text have no calls in the format: what their text asks the
terminal to do is read for those of whom it is known how they ask, and taken for a call that cannot be read else.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import msgspec

from safetydrift.formats.messages import call_of, decoded, text_of_result, tools_of
from safetydrift.formats.run_builder import RESULT, RunBuilder
from safetydrift.formats.times import seconds
from safetydrift.trace import ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from safetydrift.formats.format import Account, Place
    from safetydrift.trace import Trace

MAX_CONTINUATIONS = 1000
MAX_EMBEDDED = 16
_TERMINAL = "terminus"


class _Call(msgspec.Struct):
    function_name: str
    tool_call_id: str | None = None
    arguments: Any = None


class _Ref(msgspec.Struct):
    session_id: str | None = None
    trajectory_id: str | None = None
    trajectory_path: str | None = None


class _Result(msgspec.Struct):
    source_call_id: str | None = None
    content: Any = None
    subagent_trajectory_ref: list[_Ref] | None = None
    extra: Any = None


class _Observation(msgspec.Struct):
    results: list[_Result] = []


class _Step(msgspec.Struct):
    source: str
    message: Any = None
    timestamp: str | None = None
    model_name: str | None = None
    tool_calls: list[_Call] | None = None
    observation: _Observation | None = None
    is_copied_context: bool | None = None
    extra: Any = None


class _Agent(msgspec.Struct):
    name: str = ""
    model_name: str | None = None
    tool_definitions: Any = None


class _Trajectory(msgspec.Struct):
    schema_version: str
    steps: list[_Step]
    agent: _Agent = msgspec.field(default_factory=_Agent)
    session_id: str | None = None
    trajectory_id: str | None = None
    subagent_trajectories: list[_Trajectory] | None = None
    continued_trajectory_ref: str | None = None


_trajectory = msgspec.json.Decoder(_Trajectory).decode


class Atif:
    """Reads trajectories of ATIF."""

    name = "atif"
    description = "ATIF trajectories (Harbor), with continuations and subagents"
    pooled = True

    def recognises(self, record: object) -> bool:
        """Return whether a record is a trajectory."""
        return isinstance(record, dict) and str(record.get("schema_version")).startswith("ATIF-")

    def keys(self, path: Path, head: Iterable[object]) -> Iterator[str]:  # noqa: ARG002  # all files are one batch
        """Yield nothing."""
        yield from ()

    def gather(self, account: Account) -> _Gatherer:
        """Return what takes the documents of all files."""
        return _Gatherer(account)


class _Gatherer:
    """Gives a run back as soon as it is complete; only parts of continued ones wait for each other."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._waiting: dict[str, tuple[_Trajectory, Place]] = {}
        self._parents: dict[str, tuple[str, str]] = {}

    def take(self, data: bytes, place: Place) -> Iterable[Trace]:
        """Take a document."""
        told = _trajectory(data)
        self._note_subagents(told, place)
        if told.continued_trajectory_ref is None and not any(one.is_copied_context for one in told.steps):
            return list(self._runs([(told, place)]))
        self._waiting[place.path] = (told, place)
        return ()

    def finish(self) -> Iterator[Trace]:
        """Yield the runs that have several parts, or parts that were not read."""
        after = {
            path: _beside(path, told.continued_trajectory_ref) for path, (told, _) in self._waiting.items()
        }
        later = set(after.values())
        for path in [*(path for path in after if path not in later), *after]:
            parts: list[tuple[_Trajectory, Place]] = []
            at: str | None = path
            while at is not None and at in self._waiting and len(parts) < MAX_CONTINUATIONS:
                parts.append(self._waiting.pop(at))
                at = after[at]
            if parts:
                yield from self._runs(parts)

    def _note_subagents(self, told: _Trajectory, place: Place) -> None:
        for step in told.steps:
            for result in step.observation.results if step.observation is not None else ():
                for ref in result.subagent_trajectory_ref or ():
                    beside = _beside(place.path, ref.trajectory_path)
                    for name in (beside, ref.trajectory_id):
                        if name is not None:
                            self._parents[name] = (_name(told, place), result.source_call_id or "")

    def _runs(self, parts: list[tuple[_Trajectory, Place]]) -> Iterator[Trace]:
        told, place = parts[0]
        name = _name(told, place)
        parent, call = self._parents.get(place.path) or self._parents.get(told.trajectory_id or "", ("", ""))
        builder = RunBuilder()
        for part, _ in parts:
            _tell(part, builder)
            self._account.used()
        yield builder.trace(name, Atif.name, parent=parent, parent_call=call)
        embedded = [(one, name, 1) for part, _ in parts for one in part.subagent_trajectories or ()]
        for number, (inner, outer, depth) in enumerate(embedded, 1):
            own = inner.trajectory_id or f"{outer}/{number}"
            builder = RunBuilder()
            _tell(inner, builder, delegated=True)
            yield builder.trace(own, Atif.name, parent=outer, parent_call=self._parents.get(own, ("", ""))[1])
            if depth < MAX_EMBEDDED:
                embedded += [(one, own, depth + 1) for one in inner.subagent_trajectories or ()]


def _name(told: _Trajectory, place: Place) -> str:
    own = told.trajectory_id or told.session_id
    return own or f"{Path(place.path).name}:{place.line or 1}"


def _beside(path: str, ref: str | None) -> str | None:
    """Return the file beside another that a reference names; references never leave the folder."""
    named = PurePosixPath(ref or "")
    if not named.parts or named.is_absolute() or ".." in named.parts:
        return None
    return str(Path(path).parent.joinpath(*named.parts))


def _tell(told: _Trajectory, builder: RunBuilder, *, delegated: bool = False) -> None:
    builder.offers(tools_of(told.agent.tool_definitions))
    builder.model = builder.model or told.agent.model_name or ""
    for step in told.steps:
        if step.is_copied_context:
            continue
        time = seconds(step.timestamp)
        if step.source == "user" and not delegated:
            text = text_of_result(step.message)
            if text:
                builder.user(text, time)
        elif step.source == "agent":
            builder.model = builder.model or step.model_name or ""
            builder.agent()
            _act(step, told.agent.name, builder, time)


def _act(step: _Step, agent: str, builder: RunBuilder, time: float | None) -> None:
    results = step.observation.results if step.observation is not None else []
    calls = [call_of(one.function_name, one.arguments, one.tool_call_id) for one in step.tool_calls or ()]
    if not calls and results:
        calls = _written(step.message, agent)
    told = [builder.add(call, time) for call in calls]
    if step.tool_calls is None:
        # One screen shows what all the lines of a message did; it stands with the last.
        for result in results if told else ():
            told[-1].answer(text_of_result(result.content), None, time)
        for one in told[:-1]:
            one.misses(RESULT)
        return
    for result in results:
        found = builder.find(result.source_call_id)
        if found is not None:
            text = text_of_result(result.content)
            found.answer(text, text if _failed(step) or _failed(result) else None, time)
        elif result.subagent_trajectory_ref is None:
            builder.unread += 1


def _failed(one: _Step | _Result) -> bool:
    return isinstance(one.extra, dict) and one.extra.get("tool_result_is_error") is True


def _written(message: object, agent: str) -> list[ToolCall]:
    """Return the calls in a message of an agent that only writes."""
    text = text_of_result(message)
    said = decoded(text[text.find("{") :])[0] if agent.startswith(_TERMINAL) and "{" in text else None
    commands = said.get("commands") if isinstance(said, dict) else None
    if not isinstance(commands, list):
        return [ToolCall("", malformed=text)]
    keys = [one.get("keystrokes") if isinstance(one, dict) else None for one in commands]
    return [call_of("bash", None if one is None else {"command": one}) for one in keys]
