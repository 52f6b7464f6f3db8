"""From a request to an operation and back: who asks, what was sent, and what becomes of everything that goes wrong."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec import ValidationError
from msgspec.json import Decoder, Encoder
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from safetydrift.errors import (
    DatabaseError,
    LostStateError,
    MissingExtraError,
    SafetyDriftError,
    ServiceError,
)
from safetydrift.service.access import DeniedError, Principal, same
from safetydrift.service.api import Asked, Operation
from safetydrift.service.approvals import NotPendingError
from safetydrift.service.wire import Problem

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from safetydrift.service.runtime import Runtime

MAX_BODY = 16 << 20
COOKIE = "safetydrift"
SAFE = frozenset(("GET", "HEAD", "OPTIONS"))
_encode = Encoder(enc_hook=str).encode
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; font-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; manifest-src 'self'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),  # with "no-referrer" forms would come from "null"
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
)


class TooMuchError(Exception):
    """Somebody asks for more than they may.

    Attributes
    ----------
    status, wait
        413 or 429, and the seconds after which to try again.
    """

    def __init__(self, status: int, detail: str, wait: float = 0.0) -> None:
        self.status, self.wait = status, wait
        super().__init__(detail)


def answered(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return an answer in JSON."""
    kind = "application/problem+json" if isinstance(value, Problem) else "application/json"
    return Response(_encode(value), status, {"cache-control": "no-store"} | (headers or {}), kind)


def problem(error: BaseException) -> Response:
    """Return what is said of something that went wrong; what is of no concern to others stays out of it."""
    status, title = _status(error)
    detail = (
        str(error)
        if isinstance(error, (SafetyDriftError, ValueError, LookupError, PermissionError, TooMuchError))
        else ""
    )
    if isinstance(error, LookupError) and not isinstance(error, SafetyDriftError):
        detail = str(error.args[0]) if error.args else ""
    kind = "about:blank"
    if isinstance(error, LostStateError):
        kind = "urn:safetydrift:lost-state"
    wait = getattr(error, "wait", 0.0)
    headers = {"retry-after": str(max(1, round(wait)))} if status in {429, 503} else {}
    return answered(Problem(title, status, detail[:1000], kind), status, headers)


_STATUSES: tuple[tuple[type[BaseException], int, str], ...] = (
    (LostStateError, 409, "The state of this run is lost"),
    (NotPendingError, 409, "This question cannot be answered any more"),
    (DatabaseError, 503, "The database is away"),
    (MissingExtraError, 501, "Not installed"),
    (ServiceError, 409, "This cannot be done as things stand"),
    (TimeoutError, 504, "Not in time"),
    (PermissionError, 403, "Not allowed"),
    (ValidationError, 400, "Not understood"),
    (LookupError, 404, "Not found"),
    (ValueError, 422, "Not usable"),
)


def _status(error: BaseException) -> tuple[int, str]:
    if isinstance(error, TooMuchError):
        return error.status, "Too much"
    if isinstance(error, DeniedError):
        return error.status, "Not allowed"
    for kind, status, title in _STATUSES:
        if isinstance(error, kind):
            return status, title
    return 500, "Something went wrong here"


async def body_of(request: Request, most: int = MAX_BODY) -> bytes:
    """Return what was sent.

    Raises
    ------
    TooMuchError
        If it is more than is read.
    """
    if int(request.headers.get("content-length") or 0) > most:
        raise TooMuchError(413, f"more than {most} bytes")
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise TooMuchError(413, f"more than {most} bytes")
        parts.append(part)
    return b"".join(parts)


async def principal_of(request: Request, runtime: Runtime) -> Principal:
    """Return who asks: by a token, or by the cookie of a visit and, where something changes, its key.

    Raises
    ------
    DeniedError
        If nobody is known.
    """
    kind, _, secret = request.headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer" and secret:
        found = runtime.tokens.believed(secret)
        if found is None:
            found = await asyncio.to_thread(runtime.tokens.look_up, secret)
        wait = runtime.limiter.calls.take(found.name)
        if wait:
            raise TooMuchError(429, "more requests than this token may make", wait)
        return found
    visitor = await visitor_of(request, runtime)
    if request.method not in SAFE:
        require_same_site(request, visitor, request.headers.get("x-csrf-token", ""))
    return visitor


async def visitor_of(request: Request, runtime: Runtime) -> Principal:
    """Return who has the cookie of a request.

    Raises
    ------
    DeniedError
        If nobody has.
    """
    cookie = request.cookies.get(COOKIE, "")
    if not cookie:
        raise DeniedError(401, "sign in first")
    return await asyncio.to_thread(runtime.tokens.visitor, cookie)


def require_same_site(request: Request, visitor: Principal, csrf: str) -> None:
    """Check that a change comes from our own pages.

    Raises
    ------
    DeniedError
        If it does not.
    """
    site = request.headers.get("sec-fetch-site", "same-origin")
    origin = request.headers.get("origin")
    foreign = origin is not None and urlsplit(origin).netloc != request.headers.get("host", "")
    if site not in {"same-origin", "none"} or foreign or not same(csrf, visitor.csrf):
        raise DeniedError(403, "this did not come from our own page; load it again")


def require(who: Principal, right: str) -> None:
    """Check that somebody may do something.

    Raises
    ------
    DeniedError
        If they may not.
    """
    if right not in who.may:
        raise DeniedError(403, f"this needs the right {right!r}")


def endpoint(runtime: Runtime, operation: Operation) -> Callable[[Request], Awaitable[Response]]:
    """Return what answers requests for an operation."""
    decoder = None if operation.takes is None else Decoder(operation.takes)

    async def answer(request: Request) -> Response:
        try:
            who = await principal_of(request, runtime)
            require(who, operation.right)
            body = None if decoder is None else decoder.decode(await body_of(request))
            asked = Asked(runtime, who, body, request.path_params, request.query_params)
            return answered(await operation.handle(asked))
        except Exception as error:  # noqa: BLE001  # whatever it is, it is answered
            return failed(runtime, error)

    return answer


def failed(runtime: Runtime, error: BaseException) -> Response:
    """Return the answer to a request that could not be served, and count it if that was our own fault."""
    if isinstance(error, ClientDisconnect):
        return Response(status_code=499)
    response = problem(error)
    if response.status_code >= 500:  # noqa: PLR2004
        runtime.metrics.errors.labels(type(error).__name__).inc()
        if response.status_code == 500:  # noqa: PLR2004
            from logging import getLogger  # noqa: PLC0415  # seldom

            getLogger("safetydrift.service").error("a request failed", exc_info=error)
    return response


class Headers:
    """Adds to every answer what keeps browsers from doing more with it than they should."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        await self._app(scope, receive, sending)
