"""Server-sent events: what has happened, as a page or a program follows it."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from msgspec.json import encode
from starlette.responses import StreamingResponse

from safetydrift.service import queries, view
from safetydrift.service.access import READER
from safetydrift.service.hub import as_data, runs_of
from safetydrift.service.serving import TooMuchError, principal_of, require

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sqlalchemy import Connection
    from starlette.requests import Request
    from starlette.responses import Response

    from safetydrift.service.hub import Event
    from safetydrift.service.runtime import Runtime

HEARTBEAT = 10.0
MAX_ROWS = 1000
"""Runs whose new state is sent at once; beyond it the page is told to load again."""


async def events(request: Request, runtime: Runtime) -> Response:
    """Answer with a stream of events that does not end by itself."""
    who = await principal_of(request, runtime)
    require(who, READER)
    if runtime.streams >= runtime.limiter.streams:
        raise TooMuchError(429, "too many pages follow at once", HEARTBEAT)
    said = request.headers.get("last-event-id") or request.query_params.get("after") or ""
    after = int(said) if said.isdigit() else runtime.hub.last
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    stream = _stream(runtime, who.org, after)
    return StreamingResponse(stream, media_type="text/event-stream", headers=headers)


async def _stream(runtime: Runtime, org: int, after: int) -> AsyncIterator[bytes]:
    runtime.streams += 1
    try:
        yield b"retry: 2000\n\n"
        if not runtime.hub.knows(after):
            yield _event("reset", {}, runtime.hub.last)
            after = runtime.hub.last
        async with aclosing(runtime.hub.changes(org, after, patience=HEARTBEAT)) as changes:
            async for new in changes:
                yield await _said(runtime, org, new) if new else b": still here\n\n"
    finally:
        runtime.streams -= 1


async def _said(runtime: Runtime, org: int, new: list[Event]) -> bytes:
    numbers = runs_of(new)
    last = new[-1].seq
    if len(numbers) > MAX_ROWS:
        return _event("reset", {}, last)

    def ask(connection: Connection) -> tuple[list[dict[str, Any]], int]:
        return queries.run_rows(connection, org, numbers), queries.pending(connection, org)

    rows, pending = await asyncio.to_thread(runtime.read, ask)
    others = [as_data(event) for event in new if event.kind != "run"]
    calls = [as_data(event) for event in new if event.kind == "run" and event.subject][-200:]
    told = {
        "runs": [view.run_cells(row) for row in rows],
        "pending": pending,
        "events": others,
        "calls": calls,
    }
    return _event("change", told, last)


def _event(name: str, data: Any, seq: int) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (seq, name.encode(), encode(data))
