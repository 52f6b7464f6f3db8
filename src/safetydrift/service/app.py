"""The application: routes, and what happens at the start and at the end of a worker."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import asynccontextmanager, suppress
from threading import current_thread, main_thread
from time import time
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import text
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from safetydrift.service import answers, observing, streams
from safetydrift.service.api import OPERATIONS
from safetydrift.service.jobs import Jobs
from safetydrift.service.openapi import document
from safetydrift.service.pages import Pages
from safetydrift.service.runtime import Runtime
from safetydrift.service.serving import Headers, answered, endpoint, failed
from safetydrift.service.settings import Settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from starlette.requests import Request

VARIABLE = "SAFETYDRIFT_SERVICE"
"""The environment variable by which workers are told their settings."""
READY_WAIT = 2.0


def create() -> Starlette:
    """Return the application with the settings that the environment holds; for the workers of uvicorn."""
    return application(Runtime(msgspec.json.decode(os.environ[VARIABLE], type=Settings)))


def application(runtime: Runtime) -> Starlette:
    """Return the application of a worker."""
    described = answered(document(runtime.settings.url)).body

    async def healthy(_: Request) -> Response:
        return answered({"status": "alive", "version": runtime.version})

    async def ready(_: Request) -> Response:
        try:
            await asyncio.wait_for(asyncio.to_thread(runtime.read, _alive), READY_WAIT)
            await runtime.jobs_lane.run(lambda lane: lane.execute(text("SELECT 1"), {}), time() + READY_WAIT)
        except Exception as error:  # noqa: BLE001  # whatever it is, it is not ready
            return answered({"status": "not ready", "why": type(error).__name__}, 503)
        if runtime.hub.stopping.is_set():
            return answered({"status": "not ready", "why": "it is being stopped"}, 503)
        return answered({"status": "ready"})

    async def figures(_: Request) -> Response:
        runtime.metrics.queued.set(runtime.lanes.queued)
        return Response(runtime.metrics.text(), media_type="text/plain; version=0.0.4")

    async def description(_: Request) -> Response:
        return Response(described, media_type="application/json")

    def safely(answer: Callable[[Request, Runtime], Awaitable[Response]]) -> Callable[..., Any]:
        async def answering(request: Request) -> Response:
            try:
                return await answer(request, runtime)
            except Exception as error:  # noqa: BLE001  # whatever it is, it is answered
                return failed(runtime, error)

        return answering

    routes: list[BaseRoute] = [
        Route(one.path, endpoint(runtime, one), methods=[one.method]) for one in OPERATIONS
    ]
    routes += [
        Route("/api/v1/events", safely(streams.events)),
        Route("/v1/traces", safely(observing.spans), methods=["POST"]),
        Route("/hooks/slack/{number:int}", safely(answers.from_slack), methods=["POST"]),
        Route("/hooks/webhook/{number:int}", safely(answers.from_webhook), methods=["POST"]),
        Route("/healthz", healthy),
        Route("/readyz", ready),
        Route("/metrics", figures),
        Route("/openapi.json", description),
    ]
    routes += Pages(runtime).routes()
    app = Starlette(routes=routes, middleware=[Middleware(Headers)], lifespan=_lifespan(runtime))
    app.state.runtime = runtime
    return app


def _alive(connection: Any) -> None:
    connection.execute(text("SELECT 1"))


def _lifespan(runtime: Runtime) -> Any:
    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await runtime.hub.start()
        jobs = Jobs(runtime)
        jobs.start()
        _on_signal(runtime)
        try:
            yield
        finally:
            await runtime.hub.stop()
            await jobs.stop()
            await runtime.tasks.stop()
            await asyncio.to_thread(runtime.close)

    return lifespan


def _on_signal(runtime: Runtime) -> None:
    """Let streams and those who wait know at once that the worker is to end; the server waits for them."""
    if current_thread() is not main_thread():
        return
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        before = signal.getsignal(number)
        if not callable(before):
            continue

        def stopping(got: int, frame: Any, before: Any = before) -> None:
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(runtime.hub.leave)
            before(got, frame)

        signal.signal(number, stopping)
