"""LangSmith: runs, one per record, and the bodies they are sent in (``post`` and ``patch``).

What LangSmith calls a run is a span; its ``session_id`` is the project. A conversation is named in the metadata. The
end of a run may come in a record of its own, as a patch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from safetydrift.formats.messages import decoded, has_failed, messages_of
from safetydrift.formats.pooled import SpanFormat
from safetydrift.formats.spans import MODEL, OTHER, TOOL, Span
from safetydrift.formats.times import seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from safetydrift.formats.format import Account, Place

_KINDS = {"llm": MODEL, "chat_model": MODEL, "tool": TOOL}
_EMPTY = (b"", b"null", b"{}")
_CONVERSATION = ("thread_id", "session_id", "conversation_id")
_MODEL = ("ls_model_name", "model", "model_name")


class _Extra(msgspec.Struct):
    metadata: dict[str, Any] | None = None
    invocation_params: Any = None


class _Run(msgspec.Struct):
    id: str = ""
    trace_id: str | None = None
    parent_run_id: str | None = None
    dotted_order: str | None = None
    name: str | None = None
    run_type: str | None = None
    start_time: Any = None
    end_time: Any = None
    inputs: msgspec.Raw = msgspec.Raw()
    outputs: msgspec.Raw = msgspec.Raw()
    error: str | None = None
    extra: _Extra | None = None

    @property
    def metadata(self) -> dict[str, Any]:
        """What was noted beside the run."""
        return (self.extra.metadata if self.extra is not None else None) or {}


class _Body(msgspec.Struct):
    post: list[_Run] | None = None
    patch: list[_Run] | None = None


_run = msgspec.json.Decoder(_Run).decode
_body = msgspec.json.Decoder(_Body).decode


class LangSmith(SpanFormat):
    """Reads runs of LangSmith."""

    name = "langsmith"
    description = "LangSmith runs, one per line, and ingest bodies ({post, patch})"

    def recognises(self, record: object) -> bool:
        """Return whether a record is a run or a body of them."""
        if not isinstance(record, dict):
            return False
        is_body = record.keys() <= {"post", "patch"} and any(isinstance(one, list) for one in record.values())
        return (
            is_body
            or {"run_type", "trace_id"} <= record.keys()
            or {"run_type", "dotted_order"} <= record.keys()
        )

    def spans(self, data: bytes, place: Place, account: Account) -> Iterator[Span]:
        """Yield the spans that runs are; a patch adds to one."""
        body = _body(data)
        if body.post is None and body.patch is None:
            yield _span(_run(data), place)
            return
        for run in body.post or ():
            yield _span(run, place)
        for run in body.patch or ():
            account.used()
            found = _span(run, place)
            found.adds = True
            yield found


def _span(run: _Run, place: Place) -> Span:
    order = (run.dotted_order or "").split(".")
    own = run.id or order[-1].partition("Z")[2]
    found = Span(
        run.trace_id or order[0].partition("Z")[2] or own,
        own,
        _KINDS.get(run.run_type or "", OTHER),
        place,
        parent=run.parent_run_id or "",
        name=run.name or "",
        start=seconds(run.start_time),
        end=seconds(run.end_time),
        session=_first_text(run.metadata, _CONVERSATION),
        inputs=_content(run.inputs),
        outputs=_content(run.outputs),
        error=run.error,
    )
    if found.kind == MODEL:
        found.model = _first_text(run.metadata, _MODEL)
        found.tools = None if run.extra is None else run.extra.invocation_params
    elif found.kind == TOOL:
        came = decoded(run.outputs)[0]
        answer_of(found, came.get("output", came) if isinstance(came, dict) else came)
    return found


def _content(raw: msgspec.Raw) -> bytes | None:
    data = bytes(raw)
    return None if data in _EMPTY else data


def _first_text(values: dict[str, Any], names: tuple[str, ...]) -> str:
    return next((text for name in names if isinstance(text := values.get(name), str)), "")


def answer_of(span: Span, value: object) -> None:
    """Read what a tool's span brought back; LangChain's is a message that names the call.

    Parameters
    ----------
    value
        Decoded JSON.
    """
    span.outputs = value or None
    if isinstance(value, dict) and ("tool_call_id" in value or "kwargs" in value):
        for message in messages_of(value, "tool"):
            for result in message.results:
                span.call_id, span.outputs = result.call_id, result.text
                span.error = span.error or result.error
    elif has_failed(value):
        span.error = span.error or "failed"
