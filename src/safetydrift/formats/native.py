"""SafetyDrift's own trace format: JSON Lines, one trace per line, every line with its version.

::

    {"format": "safetydrift.trace/1", "id": "run-7", "source": "my agent", "task": "tidy up",
     "category": "files", "model": "m-1", "prompt": "Please tidy up.", "ending": "completed",
     "label": {"violated": true, "onset": 2, "origin": "reviewer"},
     "steps": [{"tool": "list_files", "args": {"path": "."}, "call_id": "c1", "result": "a b",
                "said": "Please tidy up."},
               {"tool": "delete", "malformed": "{'path'", "error": "bad arguments", "turn": 1}]}

``format``
    Always ``safetydrift.trace/1``; another version is refused by name.
``id``
    Without it, file name and line stand in.
``source``, ``task``, ``category``, ``model``, ``prompt``
    Texts, as in ``Trace``.
``ending``
    ``completed`` or ``censored``.
``label``
    The fields of ``Label``.
``tools``, ``parent``, ``parent_call``, ``messages``, ``unread``
    As in ``Trace``.
``steps``
    ``tool``, ``args``, ``malformed``, ``call_id`` and ``hints`` of the call, and ``result``, ``error``,
    ``turn``, ``said``, ``started``, ``ended``, ``refused_by`` and ``unread`` of the step.

A field that has the default of ``Trace``, ``Step``, ``ToolCall`` or ``Label`` is left out. An unknown field
is an error, for a typing mistake in ``violated`` must not turn a violation into silence. Numbers are finite:
JSON has no nan.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from safetydrift.formats.files import complete_or_absent
from safetydrift.formats.format import FormatMismatch
from safetydrift.trace import Ending, Label, Step, ToolCall, Trace

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import IO

TRACE_FORMAT = "safetydrift.trace/1"
_FAMILY = "safetydrift.trace/"


class _Step(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    tool: str
    args: dict[str, Any] = {}
    malformed: str | None = None
    call_id: str = ""
    hints: dict[str, bool] | None = None
    result: str | None = None
    error: str | None = None
    turn: int = 0
    said: str = ""
    started: float | None = None
    ended: float | None = None
    refused_by: str = ""
    unread: tuple[str, ...] = ()


class _Record(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    format: Literal["safetydrift.trace/1"]
    id: str | msgspec.UnsetType = msgspec.UNSET
    source: str = ""
    task: str = ""
    category: str = ""
    model: str = ""
    prompt: str = ""
    ending: Ending = Ending.CENSORED
    label: Label | msgspec.UnsetType = msgspec.UNSET
    steps: list[_Step] = []
    tools: tuple[str, ...] = ()
    parent: str = ""
    parent_call: str = ""
    messages: int = 0
    unread: int = 0


class Native:
    """Reads SafetyDrift's own traces."""

    name = "native"
    description = "SafetyDrift's own traces, one per line (safetydrift.trace/1)"
    record_type = _Record

    def recognises(self, record: object) -> bool:
        """Return whether a record names a version of this format, known or not."""
        return isinstance(record, dict) and str(record.get("format")).startswith(_FAMILY)

    def read(self, record: object, fallback_id: str) -> Trace:
        """Return the trace in a record of version 1."""
        if not isinstance(record, _Record):
            version = record.get("format") if isinstance(record, dict) else None
            if version != TRACE_FORMAT:
                raise FormatMismatch(
                    f"format {version!r} is not supported; this version reads {TRACE_FORMAT!r}"
                )
            record = msgspec.convert(record, _Record)
        return Trace(
            fallback_id if isinstance(record.id, msgspec.UnsetType) else record.id,
            tuple([_step(step) for step in record.steps]),
            source=record.source,
            task=record.task,
            category=record.category,
            model=record.model,
            prompt=record.prompt,
            ending=record.ending,
            label=Label() if isinstance(record.label, msgspec.UnsetType) else record.label,
            tools=record.tools,
            parent=record.parent,
            parent_call=record.parent_call,
            messages=record.messages,
            unread=record.unread,
        )


def _step(step: _Step) -> Step:
    call = ToolCall(step.tool, step.args, id=step.call_id, malformed=step.malformed, hints=step.hints)
    return Step(
        call,
        step.result,
        step.error,
        step.turn,
        step.said,
        step.started,
        step.ended,
        step.refused_by,
        step.unread,
    )


def _record(trace: Trace) -> _Record:
    return _Record(
        format="safetydrift.trace/1",
        id=trace.id,
        source=trace.source,
        task=trace.task,
        category=trace.category,
        model=trace.model,
        prompt=trace.prompt,
        ending=trace.ending,
        label=msgspec.UNSET if trace.label == Label() else trace.label,
        steps=[_recorded_step(step) for step in trace.steps],
        tools=trace.tools,
        parent=trace.parent,
        parent_call=trace.parent_call,
        messages=trace.messages,
        unread=trace.unread,
    )


def _recorded_step(step: Step) -> _Step:
    call = step.call
    return _Step(
        tool=call.name,
        args=dict(call.args),
        malformed=call.malformed,
        call_id=call.id,
        hints=None if call.hints is None else dict(call.hints),
        result=step.result,
        error=step.error,
        turn=step.turn,
        said=step.said,
        started=step.started,
        ended=step.ended,
        refused_by=step.refused_by,
        unread=step.unread,
    )


def write_traces(traces: Iterable[Trace], target: str | os.PathLike[str] | IO[bytes]) -> int:
    """Write traces in SafetyDrift's own format, and return how many there were.

    Parameters
    ----------
    traces
        Any iterable; one trace at a time is held in memory.
    target
        A binary stream, or a path. A path ending in .gz, .xz or .zst is compressed, and the file is complete
        or absent, never half written.

    Raises
    ------
    MissingExtraError
        If the path ends in .zst and the package for it is not installed.
    """
    if isinstance(target, (str, os.PathLike)):
        with complete_or_absent(Path(target)) as stream:
            return _write(traces, stream)
    return _write(traces, target)


def _write(traces: Iterable[Trace], stream: IO[bytes]) -> int:
    encode = msgspec.json.Encoder().encode
    written = 0
    for trace in traces:
        stream.write(encode(_record(trace)) + b"\n")
        written += 1
    return written
