"""Spans of agents that nobody guards: a collector sends them here (OTLP over HTTP, as JSON), and their runs appear.

Each request is read by itself, as a file of spans is. A call that was told of before, by its identifier or by what it
was and when, counts once; so a collector may send again what it is not sure to have delivered.
"""

from __future__ import annotations

import asyncio
import json
from functools import partial
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from sqlalchemy import update
from starlette.responses import Response

from safetydrift.errors import TraceFormatError
from safetydrift.formats.reading import read_traces
from safetydrift.service.access import AGENT
from safetydrift.service.database.schema import runs
from safetydrift.service.deciding import OBSERVED
from safetydrift.service.serving import answered, body_of, principal_of, require
from safetydrift.service.wire import OpenRun, Settle

if TYPE_CHECKING:
    from starlette.requests import Request

    from safetydrift.service.lanes import Lane
    from safetydrift.service.runtime import Runtime
    from safetydrift.trace import Step, Trace

MAX_SPANS = 8 << 20
"""Bytes of a request with spans."""
MAX_CALLS = 2000
"""Calls of a run that are taken from one request."""


async def spans(request: Request, runtime: Runtime) -> Response:
    """Take spans in (``POST /v1/traces``)."""
    who = await principal_of(request, runtime)
    require(who, AGENT)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        return Response("spans are read as OTLP JSON: set the exporter's encoding to json\n", 415)
    body = await body_of(request, MAX_SPANS)
    found, bad = await asyncio.to_thread(_read, body)
    for trace in found:
        key = f"{trace.id[:400]}/observed"
        work = partial(_observed, runtime=runtime, org=who.org, key=key, trace=trace, agent=who.name)
        await runtime.lanes.of(who.org, key).run(work)
    rejected = {"rejectedSpans": bad, "errorMessage": "not understood"} if bad else {}
    return answered({"partialSuccess": rejected})


def _read(body: bytes) -> tuple[list[Trace], int]:
    """Return the runs in a request, and how many records could not be read.

    Raises
    ------
    ValueError
        If it holds no spans at all.
    """
    with TemporaryDirectory(prefix="safetydrift-") as folder:
        path = Path(folder) / "spans.jsonl"
        try:
            path.write_bytes(json.dumps(json.loads(body)).encode() + b"\n")  # one record on one line
            reader = read_traces(path, format="opentelemetry", skip_bad=True, max_record_bytes=MAX_SPANS * 2)
            return list(reader), len(reader.report.bad)
        except (TraceFormatError, RecursionError) as error:
            raise ValueError(f"these are no spans: {error}") from error


def _observed(lane: Lane, *, runtime: Runtime, org: int, key: str, trace: Trace, agent: str) -> None:
    point = runtime.point
    model, task = trace.model[:256], trace.task[:65_536]
    number = point.open(
        lane, org, OpenRun(run=key, task=task, agent=trace.source[:256], pipeline=model), agent
    )
    lane.execute(update(runs).where(runs.c.org == org, runs.c.id == number).values(origin=OBSERVED), {})
    for step in trace.steps[:MAX_CALLS]:
        call_id = _identifier(step)
        if point.knows(lane, org, number, call_id):
            continue
        settled = Settle(
            run=key,
            call_id=call_id,
            result=step.result,
            error=step.error,
            tool=step.call.name[:65_536],
            arguments=dict(step.call.args),
        )
        point.settle(lane, org, settled, done=OBSERVED)


def _identifier(step: Step) -> str:
    """Return the identifier of a call; one without gets it from what it was, and when."""
    if step.call.id:
        return step.call.id[:256]
    what = json.dumps([step.call.name, dict(step.call.args), step.started], default=str, sort_keys=True)
    return sha256(what.encode()).hexdigest()[:32]
