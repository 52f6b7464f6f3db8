"""Langfuse: traces with their observations, ``{"trace": .., "observations": [..]}``, or observations one by one.

Names are read in both spellings, ``parentObservationId`` and ``parent_observation_id``. Inputs and outputs hold JSON
text in the shape of the framework that was watched; where they are missing, the attributes that Langfuse kept of the
original span stand in.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import msgspec

from safetydrift.formats.conventions import collected, flattened, span_of
from safetydrift.formats.langsmith import answer_of
from safetydrift.formats.messages import decoded
from safetydrift.formats.pooled import SpanFormat
from safetydrift.formats.spans import MODEL, OTHER, SUBAGENT, TOOL, Span
from safetydrift.formats.times import seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from safetydrift.formats.format import Account, Place

_KINDS = {"GENERATION": MODEL, "TOOL": TOOL, "AGENT": SUBAGENT}
_OTHERS = frozenset({"SPAN", "EVENT", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL"})
_TRACE_ROW = ({"sessionId", "timestamp"}, {"session_id", "timestamp"})


class _Trace(msgspec.Struct, rename={"session_id": "sessionId"}):
    id: str
    session_id: str | None = None


class _Observation(msgspec.Struct, rename="camel"):
    id: str
    type: str = "SPAN"
    trace_id: str | None = None
    session_id: str | None = None
    parent_observation_id: str | None = None
    start_time: Any = None
    end_time: Any = None
    name: str | None = None
    level: str | None = None
    status_message: str | None = None
    model: str | None = None
    input: Any = None
    output: Any = None
    metadata: Any = None
    tool_definitions: Any = None
    tool_calls: list[Any] | None = None
    tool_call_names: list[str] | None = None


class _Document(msgspec.Struct):
    observations: list[_Observation]
    trace: _Trace | None = None


class _TraceRow(msgspec.Struct):
    id: str
    sessionId: str | None = None  # noqa: N815  # Langfuse's name
    session_id: str | None = None


_document = msgspec.json.Decoder(_Document).decode
_observation = msgspec.json.Decoder(_Observation).decode
_CAMEL = {one.name: one.encode_name for one in msgspec.structs.fields(_Observation)}
_trace_row = msgspec.json.Decoder(_TraceRow).decode


class Langfuse(SpanFormat):
    """Reads traces and observations of Langfuse."""

    name = "langfuse"
    description = "Langfuse exports: {trace, observations}, or rows of observations"

    def recognises(self, record: object) -> bool:
        """Return whether a record is a trace with observations, an observation, or a row about a trace."""
        if not isinstance(record, dict):
            return False
        if isinstance(record.get("observations"), list):
            return isinstance(record.get("trace"), dict)
        named = "traceId" in record or "trace_id" in record
        if named and isinstance(kind := record.get("type"), str) and "run_type" not in record:
            return kind in _KINDS or kind in _OTHERS
        return any(names <= record.keys() for names in _TRACE_ROW) and "id" in record and "type" not in record

    def spans(self, data: bytes, place: Place, account: Account) -> Iterator[Span]:
        """Yield the spans that observations are."""
        if b'"observations"' in data:
            document = _document(data)
            trace = document.trace or _Trace("")
            for one in document.observations:
                yield _span(one, place, trace.id, trace.session_id)
        elif b'"trace_id"' in data:
            row = msgspec.json.decode(
                data, type=dict[str, Any]
            )  # in the spelling of exports to a blob storage
            spelt = {_CAMEL.get(name, name): value for name, value in row.items()}
            yield _span(msgspec.convert(spelt, _Observation), place)
        elif b'"traceId"' in data:
            yield _span(_observation(data), place)
        else:
            about = _trace_row(data)
            account.skipped("a row about a trace, of which its session is read", place)
            yield Span(about.id, "", OTHER, session=about.sessionId or about.session_id or "")


def _span(one: _Observation, place: Place, trace: str = "", session: str | None = None) -> Span:
    found = Span(
        one.trace_id or trace,
        one.id,
        _KINDS.get(one.type, OTHER),
        place,
        parent=one.parent_observation_id or "",
        name=one.name or "",
        start=seconds(one.start_time),
        end=seconds(one.end_time),
        session=one.session_id or session or "",
        model=one.model or "",
        tools=one.tool_definitions,
        inputs=one.input,
        outputs=one.output,
        error=(one.status_message or "failed") if one.level == "ERROR" else None,
    )
    if one.input is None and one.output is None:
        _fill_bare(found, one)
    if found.outputs is None and one.tool_calls:
        found.outputs = {"role": "assistant", "tool_calls": _listed(one)}
    if found.kind == MODEL:
        return found
    output = decoded(found.outputs)[0]
    if _is_answer(output):
        found.kind = TOOL  # some versions write tools as spans
        answer_of(found, output)
    return found


def _fill_bare(span: Span, one: _Observation) -> None:
    """Take what Langfuse kept of the original span where it kept no input and no output."""
    metadata = decoded(one.metadata)[0]
    attributes = metadata.get("attributes") if isinstance(metadata, dict) else None
    if isinstance(attributes, dict):
        span.fill(span_of(collected(flattened(attributes)), None, trace=span.trace, span=span.id))


def _listed(one: _Observation) -> list[dict[str, Any]]:
    """Return the calls that Langfuse took out of a message, with the names that it keeps beside them."""
    names = one.tool_call_names or []
    calls = [decoded(call)[0] for call in one.tool_calls or ()]
    return [
        {"name": name} | (call if isinstance(call, dict) else {})
        for name, call in zip_longest(names, calls, fillvalue=None)
    ]


def _is_answer(output: object) -> bool:
    """Return whether what came out is the message of a tool."""
    return isinstance(output, dict) and output.get("type") == "tool" and "tool_call_id" in output
