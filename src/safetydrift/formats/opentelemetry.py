"""OpenTelemetry: spans and log records of agents, in OTLP's JSON or in that of the SDK and of Phoenix.

A file holds payloads of OTLP, one per line or as a whole, or spans one by one. Which attributes are read stands in
`conventions`. Of a span that tells nothing of an agent, its ids are read: agents may stand inside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from safetydrift.formats.conventions import NAMED, collected, flattened, identifier, span_of
from safetydrift.formats.otel_events import Event, span_from
from safetydrift.formats.pooled import SpanFormat, trace_at
from safetydrift.formats.spans import OTHER, Span
from safetydrift.formats.times import seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from safetydrift.formats.format import Account, Place

_FAILED = frozenset({2, "2", "ERROR", "STATUS_CODE_ERROR"})
_PAYLOADS = frozenset({"resourceSpans", "resourceLogs"})
_OWN_MARKS = frozenset({"gen_ai.operation.name", "openinference.span.kind"})


class _Any(msgspec.Struct, gc=False):
    stringValue: str | None = None  # noqa: N815  # OTLP's names, here and below
    boolValue: bool | None = None  # noqa: N815
    intValue: int | str | None = None  # noqa: N815
    doubleValue: float | str | None = None  # noqa: N815
    bytesValue: str | None = None  # noqa: N815
    arrayValue: _Array | None = None  # noqa: N815
    kvlistValue: _Table | None = None  # noqa: N815


class _Array(msgspec.Struct, gc=False):
    values: list[_Any] = []


class _Entry(msgspec.Struct, gc=False):
    key: str
    value: _Any | None = None


class _Table(msgspec.Struct, gc=False):
    values: list[_Entry] = []


class _Status(msgspec.Struct):
    code: int | str | None = None
    message: str | None = None


class _Event(msgspec.Struct, gc=False):
    name: str = ""
    timeUnixNano: int | str | None = None  # noqa: N815
    attributes: list[_Entry] = []


class _Span(msgspec.Struct):
    traceId: str | None = None  # noqa: N815
    spanId: str | None = None  # noqa: N815
    parentSpanId: str | None = None  # noqa: N815
    attributes: list[_Entry] = []
    name: str = ""
    startTimeUnixNano: int | str | None = None  # noqa: N815
    endTimeUnixNano: int | str | None = None  # noqa: N815
    events: list[_Event] = []
    status: _Status | None = None


class _Log(msgspec.Struct):
    traceId: str | None = None  # noqa: N815
    spanId: str | None = None  # noqa: N815
    attributes: list[_Entry] = []
    timeUnixNano: int | str | None = None  # noqa: N815
    observedTimeUnixNano: int | str | None = None  # noqa: N815
    body: _Any | None = None
    eventName: str | None = None  # noqa: N815


class _Scope(msgspec.Struct):
    spans: list[_Span] = []
    logRecords: list[_Log] = []  # noqa: N815


class _Resource(msgspec.Struct):
    scopeSpans: list[_Scope] = []  # noqa: N815
    scopeLogs: list[_Scope] = []  # noqa: N815


class _Payload(msgspec.Struct):
    resourceSpans: list[_Resource] | None = None  # noqa: N815
    resourceLogs: list[_Resource] | None = None  # noqa: N815


class _Context(msgspec.Struct):
    trace_id: str
    span_id: str


class _PlainEvent(msgspec.Struct):
    name: str = ""
    attributes: dict[str, Any] | None = None


class _PlainStatus(msgspec.Struct):
    status_code: str | None = None
    description: str | None = None


class _Plain(msgspec.Struct):
    """A span as the SDK and Phoenix write one."""

    context: _Context
    attributes: dict[str, Any] | None = None
    name: str = ""
    parent_id: str | None = None
    start_time: Any = None
    end_time: Any = None
    span_kind: str | None = None
    status: _PlainStatus | None = None
    status_code: str | None = None
    status_message: str | None = None
    events: list[_PlainEvent] | None = None


_payload = msgspec.json.Decoder(_Payload).decode
_plain = msgspec.json.Decoder(_Plain).decode


class OpenTelemetry(SpanFormat):
    """Reads spans and log records."""

    name = "opentelemetry"
    description = "OpenTelemetry spans and logs of agents (OTLP JSON, SDK, Phoenix; GenAI, OpenInference)"

    def recognises(self, record: object) -> bool:
        """Return whether a record is a payload, a span, or the attributes of one."""
        if not isinstance(record, dict):
            return False
        context = record.get("context")
        is_span = (
            isinstance(context, dict) and {"trace_id", "span_id"} <= context.keys() and "attributes" in record
        )
        return is_span or not _PAYLOADS.isdisjoint(record) or not _OWN_MARKS.isdisjoint(record)

    def spans(self, data: bytes, place: Place, account: Account) -> Iterator[Span]:
        """Yield the spans of a payload, and what its events tell."""
        payload = _payload(data)
        if payload.resourceSpans is None and payload.resourceLogs is None:
            yield _lone(data, place)
            return
        for resource in payload.resourceSpans or ():
            for scope in resource.scopeSpans:
                for span in scope.spans:
                    yield from _of_otlp(span, place, account)
        number = 0
        for resource in payload.resourceLogs or ():
            for scope in resource.scopeLogs:
                for log in scope.logRecords:
                    number += 1
                    found = _of_log(log, place, number)
                    if found is None:
                        account.skipped("a log record that tells nothing of an agent", place)
                    else:
                        account.used()
                        yield found


def _lone(data: bytes, place: Place) -> Span:
    if b'"context"' in data:
        return _of_plain(_plain(data), place)
    attributes = msgspec.json.decode(data, type=dict[str, Any])  # of one span, without the span
    return span_of(collected(flattened(attributes)), place, trace=trace_at(place), span="1")


def _of_log(log: _Log, place: Place, number: int) -> Span | None:
    attributes = {one.key: _value(one.value) for one in log.attributes}
    body = _value(log.body)
    named = log.eventName or attributes.get("event.name") or body
    event = Event(
        named if isinstance(named, str) else "",
        attributes,
        identifier(log.traceId or ""),
        identifier(log.spanId or ""),
        seconds(log.timeUnixNano) or seconds(log.observedTimeUnixNano),
        place,
        number,
    )
    return span_from(event, body if isinstance(body, dict) else attributes)


def _value(value: _Any | None) -> Any:
    if value is None or value.stringValue is not None:
        return None if value is None else value.stringValue
    if value.intValue is not None:
        return int(value.intValue)  # 64 bits are text in OTLP's JSON
    if value.arrayValue is not None:
        return [_value(one) for one in value.arrayValue.values]
    if value.kvlistValue is not None:
        return {one.key: _value(one.value) for one in value.kvlistValue.values}
    others = (value.boolValue, value.doubleValue, value.bytesValue)
    return next((one for one in others if one is not None), None)


def _of_otlp(span: _Span, place: Place, account: Account) -> Iterator[Span]:
    attributes = collected([(one.key, _value(one.value)) for one in span.attributes])
    failed = None
    if span.status is not None and span.status.code in _FAILED:
        failed = span.status.message or ""
    for number, event in enumerate(span.events):
        told = {one.key: _value(one.value) for one in event.attributes}
        if event.name == "exception" and failed is not None:
            failed = failed or str(told.get("exception.message") or "")
        elif event.name.startswith("gen_ai."):
            time = seconds(event.timeUnixNano)
            trace, inside = identifier(span.traceId or ""), identifier(span.spanId or "")
            found = span_from(Event(event.name, told, trace, inside, time, place, number), told)
            if found is not None:
                yield found
    if not attributes and span.name not in NAMED:
        account.skipped("a span that tells nothing of an agent", place)
        ids = [identifier(text or "") for text in (span.traceId, span.spanId, span.parentSpanId)]
        yield Span(ids[0], ids[1], OTHER, parent=ids[2])
        return
    yield span_of(
        attributes,
        place,
        trace=span.traceId or "",
        span=span.spanId or "",
        parent=span.parentSpanId or "",
        name=span.name,
        start=seconds(span.startTimeUnixNano),
        end=seconds(span.endTimeUnixNano),
        failed=failed,
    )


def _of_plain(span: _Plain, place: Place) -> Span:
    attributes = collected(flattened(span.attributes))
    if span.span_kind and not span.span_kind.startswith("SpanKind"):
        attributes.setdefault("openinference.span.kind", span.span_kind)
    status = span.status or _PlainStatus(span.status_code, span.status_message)
    failed = (status.description or "") if status.status_code in _FAILED else None
    for event in span.events or ():
        if event.name == "exception" and failed is not None:
            failed = failed or str((event.attributes or {}).get("exception.message") or "")
    return span_of(
        attributes,
        place,
        trace=span.context.trace_id,
        span=span.context.span_id,
        parent=span.parent_id or "",
        name=span.name,
        start=seconds(span.start_time),
        end=seconds(span.end_time),
        failed=failed,
    )
