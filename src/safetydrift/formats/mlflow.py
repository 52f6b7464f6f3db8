"""MLflow: traces as ``Trace.to_json`` writes them, ``{"info": .., "data": ..}``, and as artifacts, ``{"spans": ..}``.

Every attribute of a span is JSON text. Spans of the second version are read, too; spans that come through
OpenTelemetry with its attributes are read by these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from safetydrift.formats.conventions import collected, span_of
from safetydrift.formats.messages import decoded
from safetydrift.formats.pooled import SpanFormat, trace_at
from safetydrift.formats.times import seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from safetydrift.formats.format import Account, Place
    from safetydrift.formats.spans import Span

_FAILED = ("STATUS_CODE_ERROR", "ERROR")
_SESSION = "mlflow.trace.session"


class _Info(msgspec.Struct):
    trace_id: str | None = None
    request_id: str | None = None
    trace_metadata: dict[str, Any] | None = None
    request_metadata: dict[str, Any] | None = None


class _Data(msgspec.Struct):
    spans: list[_Span] = []


class _Document(msgspec.Struct):
    info: _Info | None = None
    data: _Data | None = None
    spans: list[_Span] | None = None

    @property
    def all_spans(self) -> list[_Span]:
        """The spans of either form."""
        return self.spans if self.spans is not None else (self.data or _Data()).spans


class _Status(msgspec.Struct):
    code: str | int | None = None
    message: str | None = None


class _Event(msgspec.Struct):
    name: str = ""
    attributes: dict[str, Any] | None = None


class _Context(msgspec.Struct):
    span_id: str = ""
    trace_id: str = ""


class _Span(msgspec.Struct):
    name: str = ""
    trace_id: str | None = None
    span_id: str | None = None
    parent_span_id: str | None = None
    start_time_unix_nano: Any = None
    end_time_unix_nano: Any = None
    status: _Status | None = None
    events: list[_Event] | None = None
    attributes: dict[str, Any] | None = None
    context: _Context | None = None
    parent_id: str | None = None
    start_time: Any = None
    end_time: Any = None
    status_code: str | None = None
    status_message: str | None = None


_document = msgspec.json.Decoder(_Document).decode


class MLflow(SpanFormat):
    """Reads traces of MLflow."""

    name = "mlflow"
    description = "MLflow traces: Trace.to_json, or the artifact traces.json"

    def recognises(self, record: object) -> bool:
        """Return whether a record is a trace or the spans of one."""
        if not isinstance(record, dict):
            return False
        data = record.get("data")
        if isinstance(record.get("info"), dict) and isinstance(data, dict):
            return isinstance(data.get("spans"), list)
        return record.keys() == {"spans"} and isinstance(record["spans"], list)

    def spans(self, data: bytes, place: Place, account: Account) -> Iterator[Span]:  # noqa: ARG002  # all is read
        """Yield the spans of a trace."""
        document = _document(data)
        info = document.info or _Info()
        metadata = (info.trace_metadata or {}) | (info.request_metadata or {})
        session = metadata.get(_SESSION)
        trace = info.trace_id or info.request_id or _trace_of(document) or trace_at(place)
        for span in document.all_spans:
            found = _read(span, place)
            found.trace = trace
            found.session = session if isinstance(session, str) else found.session
            yield found


def _trace_of(document: _Document) -> str:
    """Return the id of a trace from its first span."""
    if not document.all_spans:
        return ""
    span = document.all_spans[0]
    named = decoded((span.attributes or {}).get("mlflow.traceRequestId"))[0]
    return named if isinstance(named, str) else span.trace_id or ""


def _read(span: _Span, place: Place) -> Span:
    context = span.context or _Context()
    status = span.status or _Status(span.status_code, span.status_message)
    failed = (status.message or "") if status.code in _FAILED else None
    for event in span.events or ():
        told = (event.attributes or {}).get("exception.message")
        if event.name == "exception" and failed is not None and isinstance(told, str):
            failed = failed or told
    return span_of(
        collected((span.attributes or {}).items()),
        place,
        trace="",
        span=span.span_id or context.span_id,
        parent=span.parent_span_id or span.parent_id or "",
        name=span.name,
        start=seconds(span.start_time_unix_nano or span.start_time),
        end=seconds(span.end_time_unix_nano or span.end_time),
        failed=failed,
    )
