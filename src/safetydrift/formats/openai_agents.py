"""Traces of the OpenAI Agents SDK: what ``export()`` gives of traces and spans, one per record, or ``{"data": [..]}``.

Spans of type ``response`` name a response and hold nothing of it: what their model proposed is known by the tools'
spans alone. Handoffs go on in the same run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from safetydrift.formats.pooled import SpanFormat
from safetydrift.formats.spans import MODEL, OTHER, SUBAGENT, TOOL, Span
from safetydrift.formats.times import seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from safetydrift.formats.format import Account, Place

_KINDS = {"generation": MODEL, "response": MODEL, "function": TOOL, "agent": SUBAGENT}
_OBJECTS = frozenset({"trace", "trace.span"})


class _Error(msgspec.Struct):
    message: str = "failed"


class _Data(msgspec.Struct):
    type: str = ""
    name: str | None = None
    input: msgspec.Raw = msgspec.Raw()
    output: msgspec.Raw = msgspec.Raw()
    model: str | None = None
    tools: Any = None


class _Record(msgspec.Struct):
    object: str
    id: str
    trace_id: str | None = None
    parent_id: str | None = None
    group_id: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    span_data: _Data | None = None
    error: _Error | None = None


class _Batch(msgspec.Struct):
    data: list[_Record] | None = None


_record = msgspec.json.Decoder(_Record).decode
_batch = msgspec.json.Decoder(_Batch).decode


class OpenAIAgents(SpanFormat):
    """Reads traces of the OpenAI Agents SDK."""

    name = "openai_agents"
    description = "OpenAI Agents SDK traces, as export() gives them"

    def recognises(self, record: object) -> bool:
        """Return whether a record is a trace, a span, or a batch of them."""
        if not isinstance(record, dict):
            return False
        batch = record.get("data")
        first = batch[0] if record.keys() == {"data"} and isinstance(batch, list) and batch else record
        return isinstance(first, dict) and str(first.get("object")) in _OBJECTS

    def spans(self, data: bytes, place: Place, account: Account) -> Iterator[Span]:
        """Yield the spans in a record or a batch; a record about a trace says which group it belongs to."""
        batch = _batch(data).data
        for record in (_record(data),) if batch is None else batch:
            if record.object == "trace":
                account.skipped("a record about a trace, of which its group is read", place)
                yield Span(record.id, "", OTHER, session=record.group_id or "")
            else:
                yield _span(record, place)


def _span(record: _Record, place: Place) -> Span:
    data = record.span_data or _Data()
    return Span(
        record.trace_id or "",
        record.id,
        _KINDS.get(data.type, OTHER),
        place,
        parent=record.parent_id or "",
        name=data.name or "",
        start=seconds(record.started_at),
        end=seconds(record.ended_at),
        model=data.model or "",
        tools=data.tools,
        inputs=_content(data.input),
        outputs=_content(data.output),
        error=None if record.error is None else record.error.message,
    )


def _content(raw: msgspec.Raw) -> bytes | None:
    data = bytes(raw)
    return None if data in {b"", b"null"} else data
