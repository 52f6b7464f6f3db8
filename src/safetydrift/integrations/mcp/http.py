"""The proxy over streamable HTTP: listens on this host alone, and hands on to one address.

An ASGI application, so that it is served by what serves everything else. Requests are looked at before they are
handed on, answers before they are handed back; streams of events pass one event at a time.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
import signal
import socket
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from safetydrift.errors import ConfigError, MessageError, MissingExtraError
from safetydrift.integrations.mcp import wire
from safetydrift.integrations.mcp.events import Event, Events
from safetydrift.integrations.mcp.exchange import Exchange, Guarding, Run

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping

    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]
    Headers = list[tuple[bytes, bytes]]

SESSION_HEADER = "safetydrift-session"
"""The header by which a client may name the run that a request belongs to."""
MCP_SESSION = "mcp-session-id"
MAX_SESSIONS = 1024
LOOPBACK = frozenset(("127.0.0.1", "localhost", "::1"))
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
CONNECT, WRITE = 10.0, 60.0
"""Seconds for reaching the server, and for handing it a message."""
_HOP = frozenset(
    (
        "connection",
        "content-length",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    )
)
_NOT_SENT = _HOP | {"accept-encoding", "origin", SESSION_HEADER}
_NOT_RETURNED = _HOP | {"content-encoding", "date", "server"}
_MAY_REPEAT = frozenset(("accept", "accept-language", "accept-encoding", "cookie"))
_ENCODED = re.compile(r"=\?base64\?(.*)\?=")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class Refused(Exception):  # noqa: N818  # no error of ours
    """A request that is not handed on."""

    def __init__(
        self, status: int, why: str, code: int = wire.INVALID_REQUEST, request_id: Any = None
    ) -> None:
        super().__init__(why)
        self.status, self.code, self.request_id = status, code, request_id


class HttpProxy:
    """An ASGI application that guards one MCP server.

    Parameters
    ----------
    guarding
        Decides about the messages.
    upstream
        The server's address.
    run
        Belongs to requests that name neither a session nor a run; the others' are named after it.
    about
        ``category`` and ``pipeline`` of all runs, if known.

    Raises
    ------
    ConfigError
        If the address is none.
    MissingExtraError
        If the extra ``mcp`` is not installed.
    """

    def __init__(
        self, guarding: Guarding, upstream: str, run: Run, about: Mapping[str, str] | None = None
    ) -> None:
        parts = urlsplit(upstream)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ConfigError(f"a server has an http or https address, not {upstream!r}")
        self.guarding, self.upstream, self.run = guarding, upstream, run
        self.path = parts.path or "/"
        self._about = dict(about or {})
        self._exchanges: dict[str, Exchange] = {}
        self._runs: dict[str, Run] = {}
        try:
            import httpx2  # noqa: PLC0415  # the extra
        except ModuleNotFoundError as error:
            raise MissingExtraError("httpx2", "mcp", "the MCP proxy over HTTP") from error
        self._errors = httpx2.TransportError
        self._unreached = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.UnsupportedProtocol)
        self._client = httpx2.AsyncClient(
            timeout=httpx2.Timeout(None, connect=CONNECT, write=WRITE),
            limits=httpx2.Limits(max_connections=None),
            follow_redirects=False,
            trust_env=parts.hostname not in LOOPBACK,
        )

    async def close(self) -> None:
        """Let go of connections."""
        await self._client.aclose()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            raise ValueError(f"only http is served, not {scope['type']}")
        try:
            headers = self._checked(scope)
            if scope["method"] == "POST":
                await self._post(headers, await _body(receive), receive, send)
            else:
                await self._other(scope["method"], headers, receive, send)
        except Refused as refused:
            self.guarding.say(f"refused a request: {refused}")
            answer = wire.failure(refused.request_id, refused.code, f"SafetyDrift: {refused}")
            await _reply(send, refused.status, answer)

    # -- what may come in ---------------------------------------------------------------------------------

    def _checked(self, scope: Message) -> dict[str, str]:
        headers = _headers(scope["headers"])
        if _hostname(f"//{headers.get('host', '')}") not in LOOPBACK:
            raise Refused(403, "only this host may speak to the proxy")
        origin = headers.get("origin")
        if origin is not None and _hostname(origin) not in LOOPBACK:
            raise Refused(403, "a page from elsewhere may not speak to the proxy")
        if scope["path"] != self.path:
            raise Refused(404, "there is nothing here")
        if scope["method"] not in {"POST", "GET", "DELETE"}:
            raise Refused(405, "only POST, GET and DELETE are known")
        if scope["method"] == "POST":
            kind = headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != "application/json" or "content-encoding" in headers:
                raise Refused(415, "a message is application/json, and not encoded")
        return headers

    def _run(self, headers: dict[str, str], session: str | None) -> Run:
        """Return the run that a request belongs to."""
        named = headers.get(SESSION_HEADER)
        if named is None and session is None:
            return self.run
        key = self.run.key
        if session is not None:
            # What identifies a session at the server is as good as a password; it is not written down.
            key = f"{key}/session-{_digest(session)}"
        if named is not None:
            # Within a session, so that nobody names a run of another one; what is no plain name has a digest for one.
            key = f"{key}/named-{named if _PLAIN_NAME.fullmatch(named) else ':' + _digest(named)}"
        run = self._runs.pop(key, None) or Run(
            self.guarding.guard, key, self.run.task if named is None else "", self._about
        )
        self._runs[key] = run
        _bound(self._runs)
        return run

    def _exchange(self, headers: dict[str, str]) -> Exchange:
        """Return the connection that a request belongs to; one of its own where there are no sessions."""
        session = headers.get(MCP_SESSION)
        run = self._run(headers, session)
        if session is None:
            return Exchange(self.guarding, run)
        exchange = self._exchanges.pop(session, None)
        if exchange is None or exchange.run is not run:
            exchange = Exchange(self.guarding, run)
        self._exchanges[session] = exchange
        _bound(self._exchanges)
        return exchange

    # -- messages -----------------------------------------------------------------------------------------

    async def _post(self, headers: dict[str, str], body: bytes, receive: Receive, send: Send) -> None:
        try:
            message = wire.read_strictly(body)
        except MessageError as problem:
            raise Refused(400, str(problem), wire.PARSE_ERROR) from problem
        _same(headers, message)
        begins = isinstance(message, dict) and message.get("method") == "initialize"
        exchange = self._beginning() if begins else self._exchange(headers)
        key = wire.request_id(message) if isinstance(message, dict) and "method" in message else None
        passage = Passage(exchange, key, send)
        forward, answer = await self._decided(passage, body, receive)
        if forward:
            await _while_wanted(self._handed_on(passage, headers, body, begins=begins), receive)
        elif answer is None:
            await _reply(send, 202, b"")
        else:
            await _reply(send, 200, answer)

    async def _decided(self, passage: Passage, body: bytes, receive: Receive) -> tuple[bool, bytes | None]:
        if not self.guarding.deciding.waits:
            outcomes: list[tuple[bool, bytes | None]] = []
            passage.exchange.from_client(body, lambda *outcome: outcomes.append(outcome))
            return outcomes[0]
        loop = asyncio.get_running_loop()
        settled: asyncio.Future[tuple[bool, bytes | None]] = loop.create_future()

        def set_once(*outcome: Any) -> None:
            if not settled.done():
                settled.set_result(outcome)

        def settle(*outcome: Any) -> None:
            loop.call_soon_threadsafe(set_once, *outcome)

        await asyncio.to_thread(passage.exchange.from_client, body, settle)
        gone = asyncio.ensure_future(_gone(receive))
        try:
            await asyncio.wait((settled, gone), return_when=asyncio.FIRST_COMPLETED)
            if not settled.done():
                passage.exchange.withdraw(passage.key)  # nobody waits for the answer of a person any more
                return False, None
            return settled.result()
        finally:
            await _cancelled(gone)

    async def _handed_on(
        self,
        passage: Passage,
        headers: dict[str, str],
        body: bytes | None = None,
        *,
        method: str = "POST",
        begins: bool = False,
    ) -> int:
        """Hand a request on, and its answer back; return the server's status, 0 if there is none."""
        request = self._client.build_request(
            method, self.upstream, headers=_kept(headers.items(), _NOT_SENT), content=body
        )
        try:
            reply = await self._client.send(request, stream=True)
        except self._errors as problem:
            made = False if isinstance(problem, self._unreached) else None
            await passage.fail(f"the server did not answer ({problem})", made=made)
            return 0
        try:
            if begins:
                self._begun(reply, headers, passage.exchange.run.task)
            await passage.back(reply, self._errors)
        finally:
            await reply.aclose()
        return int(reply.status_code)

    def _beginning(self) -> Exchange:
        """Return a connection for the request that begins a session; its run is known when the server names it."""
        return Exchange(self.guarding, Run(self.guarding.guard, self.run.key, self.run.task, self._about))

    def _begun(self, reply: Any, headers: dict[str, str], task: str) -> None:
        """Say the task of a session that the server has just named."""
        if reply.is_success:
            run = self._run(headers, reply.headers.get(MCP_SESSION))
            if task:
                run.told(task)

    async def _other(self, method: str, headers: dict[str, str], receive: Receive, send: Send) -> None:
        passage = Passage(self._exchange(headers), None, send)
        status = await _while_wanted(self._handed_on(passage, headers, method=method), receive)
        if method == "DELETE" and status is not None and 200 <= status < 300:  # noqa: PLR2004
            self._exchanges.pop(headers.get(MCP_SESSION, ""), None)


class Passage:
    """The way of one request's answer back to the client.

    Parameters
    ----------
    exchange
        The connection it belongs to.
    key
        Identifies the request within it; None for what asks for no answer.
    send
        Sends to the client.
    """

    def __init__(self, exchange: Exchange, key: Any, send: Send) -> None:
        self.exchange, self.key, self._send = exchange, key, send
        self._guarding = exchange.guarding

    async def fail(self, why: str, *, made: bool | None = None) -> None:
        """Answer a request that gets no answer from the server; `made` is as for `Exchange.abandon`."""
        self._guarding.say(why)
        answers = self._abandoned(why, made=made)
        if answers:
            await _reply(self._send, 200, answers[0])
        else:
            known = None if self.key is None else self.key[1]
            await _reply(self._send, 502, wire.failure(known, wire.INTERNAL_ERROR, f"SafetyDrift: {why}"))

    async def back(self, reply: Any, errors: type[Exception]) -> None:
        """Hand back what the server answers."""
        if reply.is_redirect:  # it would lead past the guard
            await self.fail(f"the server answered with status {reply.status_code}", made=False)
        elif _kind(reply) == "text/event-stream":
            await self._stream(reply, errors)
        else:
            await self._whole(reply, errors)

    async def _whole(self, reply: Any, errors: type[Exception]) -> None:
        data = bytearray()
        try:
            async for chunk in reply.aiter_bytes():
                data += chunk
                _bounded(data)
        except (MessageError, errors) as problem:
            await self.fail(f"the server's answer was not read ({problem})")
            return
        body = b"".join(await self._looked_at(bytes(data)))
        refused = 400 <= reply.status_code < 500  # noqa: PLR2004  # the client's fault: it was not begun with
        why = f"the server answered with status {reply.status_code}"
        answers = self._abandoned(why, made=False if refused else None)
        if answers and not reply.is_error:
            await _reply(self._send, 200, answers[0])
        else:
            await _reply(self._send, reply.status_code, body, _returned(reply))

    async def _stream(self, reply: Any, errors: type[Exception]) -> None:
        await self._send(_start(reply.status_code, _returned(reply)))
        events = Events()
        lost = False
        try:
            async for chunk in reply.aiter_bytes():
                for event in events.feed(chunk):
                    await self._event(event)
            why = "the server has ended its answer"
        except errors as problem:
            why = f"the server's answer broke off ({problem})"
        except MessageError as problem:
            why, lost = str(problem), True
        if lost or not events.resumable:
            for answer in self._abandoned(why):
                await self._part(b"event: message\ndata: " + answer + b"\n\n")
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _event(self, event: Event) -> None:
        if not event.data:
            await self._part(event.raw)
            return
        for data in await self._looked_at(event.data):
            await self._part(event.saying(data))

    async def _part(self, data: bytes) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def _looked_at(self, data: bytes) -> list[bytes]:
        if self._guarding.guard.store.waits:
            return await asyncio.to_thread(self.exchange.from_server, data)
        return self.exchange.from_server(data)

    def _abandoned(self, why: str, *, made: bool | None = None) -> list[bytes]:
        if self.key is None or not self.exchange.waits_for(self.key):
            return []
        return self.exchange.abandon(why, made=made, only=self.key)


async def _while_wanted(work: Any, receive: Receive) -> Any:
    """Work until it is done, or until the client has gone; a call under way then stays reserved."""
    working = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait((working, gone), return_when=asyncio.FIRST_COMPLETED)
        return await working if working.done() else None
    finally:
        await _cancelled(working, gone)


def _same(headers: dict[str, str], message: Any) -> None:
    """Check that the headers which name the method and its object say what the message says."""
    table = message if isinstance(message, dict) else {}
    method, params = table.get("method"), table.get("params")
    said = headers.get("mcp-method")
    if said is not None and said != method:
        raise Refused(400, "mcp-method does not match the message", wire.HEADER_MISMATCH, table.get("id"))
    said = headers.get("mcp-name")
    if said is None:
        return
    field = NAMED_BY.get(str(method))
    if field is None or not isinstance(params, dict) or _decoded(said) != params.get(field):
        raise Refused(400, "mcp-name does not match the message", wire.HEADER_MISMATCH, table.get("id"))


def _decoded(value: str) -> str | None:
    """Return what a header says; None if it says nothing."""
    match = _ENCODED.fullmatch(value)
    if match is None:
        return value
    try:
        return base64.b64decode(match[1], validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return None


def _headers(pairs: Headers) -> dict[str, str]:
    headers: dict[str, str] = {}
    for raw, value in pairs:
        name = raw.decode("latin-1").lower()
        if name in headers and name not in _MAY_REPEAT:
            raise Refused(400, f"the header {name} stands twice", wire.HEADER_MISMATCH)
        text = value.decode("latin-1")
        headers[name] = f"{headers[name]}, {text}" if name in headers else text
    return headers


def _hostname(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None


def _digest(name: str) -> str:
    return sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _kept(pairs: Iterable[tuple[str, str]], left_out: frozenset[str]) -> list[tuple[str, str]]:
    kept = [(name.lower(), value) for name, value in pairs if name.lower() not in left_out]
    return [*kept, ("accept-encoding", "identity")] if left_out is _NOT_SENT else kept


def _kind(reply: Any) -> str:
    return str(reply.headers.get("content-type", "")).partition(";")[0].strip().lower()


def _bound(table: dict[str, Any]) -> None:
    while len(table) > MAX_SESSIONS:
        del table[next(iter(table))]


async def _body(receive: Receive) -> bytes:
    data = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refused(400, "the client has gone")
        data += message.get("body", b"")
        if len(data) > wire.MAX_MESSAGE:
            raise Refused(413, f"a message of more than {wire.MAX_MESSAGE} bytes")
        if not message.get("more_body"):
            return bytes(data)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _cancelled(*tasks: asyncio.Future[Any]) -> None:
    for task in tasks:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.wait((task,))


def _start(status: int, headers: Iterable[tuple[str, str]]) -> Message:
    pairs = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    return {"type": "http.response.start", "status": status, "headers": pairs}


def _returned(reply: Any) -> list[tuple[str, str]]:
    return _kept(reply.headers.multi_items(), _NOT_RETURNED)


def _bounded(data: bytearray) -> None:
    if len(data) > wire.MAX_MESSAGE:
        raise MessageError(f"more than {wire.MAX_MESSAGE} bytes")


async def _reply(
    send: Send, status: int, body: bytes, headers: Iterable[tuple[str, str]] | None = None
) -> None:
    given = [("content-type", "application/json")] if headers is None and body else list(headers or ())
    if status not in {204, 304}:
        given.append(("content-length", str(len(body))))
    await send(_start(status, given))
    await send({"type": "http.response.body", "body": body})


# -- as a process ---------------------------------------------------------------------------------------------


def listening(port: int = 0) -> socket.socket:
    """Return a socket that this host alone can reach."""
    # Only where the protocol is said are answers sent without waiting for each other (asyncio looks at it).
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    return listener


def serve(proxy: HttpProxy, listener: socket.socket) -> int:
    """Serve until interrupted; return the exit code.

    Raises
    ------
    MissingExtraError
        If the extra ``mcp`` is not installed.
    """
    try:
        import uvicorn  # noqa: PLC0415  # the extra
    except ModuleNotFoundError as error:
        raise MissingExtraError("uvicorn", "mcp", "the MCP proxy over HTTP") from error
    config = uvicorn.Config(
        proxy,
        http="h11",
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=2,
    )

    async def serving() -> None:
        try:
            await uvicorn.Server(config).serve(sockets=[listener])
        finally:
            await proxy.close()

    # The server hands signals on when it has ended; without a handler of ours they would end the process at once.
    signal.signal(signal.SIGTERM, _stopped)
    with suppress(KeyboardInterrupt):
        asyncio.run(serving())
    return 0


def _stopped(_number: int, _frame: object) -> None:
    raise SystemExit(0)
