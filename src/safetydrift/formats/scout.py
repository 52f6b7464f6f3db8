"""Transcripts of Inspect Scout, which imports many sources itself: a record is ``Transcript.model_dump_json()``.

Their messages are Inspect's, and are read like those of its logs. They hold the main thread alone; what subagents did
stands in events, which are not read.
"""

from __future__ import annotations

from typing import Any

import msgspec

from safetydrift.formats.inspect_log import Message, told
from safetydrift.trace import Ending, Trace


class _Transcript(msgspec.Struct):
    transcript_id: str
    messages: list[Message]
    source_type: str | None = None
    task_id: str | None = None
    model: str | None = None
    error: str | None = None
    limit: str | None = None


class Scout:
    """Reads transcripts of Inspect Scout."""

    name = "scout"
    description = "Inspect Scout transcripts, as Transcript.model_dump_json() gives them"
    record_type = Any

    def recognises(self, record: object) -> bool:
        """Return whether a record is a transcript."""
        return isinstance(record, dict) and {"transcript_id", "messages"} <= record.keys()

    def read(self, record: object, fallback_id: str) -> Trace:  # noqa: ARG002  # transcripts have ids
        """Return the trace of a transcript."""
        found = msgspec.convert(record, _Transcript)
        transcript = told(found.messages, {})
        last = found.messages[-1] if found.messages else None
        answered = last is not None and last.role == "assistant" and not last.tool_calls
        complete = answered and found.error is None and found.limit is None
        return Trace(
            found.transcript_id,
            transcript.steps(),
            source=found.source_type or self.name,
            task=found.task_id or "",
            model=found.model or "",
            prompt=transcript.prompt,
            ending=Ending.COMPLETED if complete else Ending.CENSORED,
            messages=transcript.messages,
        )
