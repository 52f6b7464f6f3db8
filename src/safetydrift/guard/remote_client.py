"""HTTP to a team's guard, with the standard library alone: connections that stay open, deadlines, and tries again.

Everything that is sent may be sent twice: calls go by their id, messages by theirs.
"""

from __future__ import annotations

from http.client import HTTPConnection, HTTPException, HTTPSConnection
from ipaddress import ip_address
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec import DecodeError
from msgspec.json import Decoder, Encoder

from safetydrift.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_REPLY = 8 << 20
MAX_IDLE = 32
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 0.5
AGAIN = frozenset((429, 502, 503, 504))
"""Answers after which it may go better."""
_encode = Encoder(enc_hook=str).encode
_decode = Decoder().decode


class UnreachableError(ServiceError):
    """The service could not be asked in time."""


class RefusedError(ServiceError):
    """The service was asked, and said no.

    Attributes
    ----------
    status, kind
        The status, and the type of the problem (RFC 9457).
    """

    def __init__(self, status: int, kind: str, detail: str) -> None:
        self.status, self.kind = status, kind
        super().__init__(f"the service answered {status}: {detail}")


class Client:
    """Asks one service.

    Parameters
    ----------
    url
        Its address.
    token
        Who we are.
    plain_http
        Whether the token may go over a network in clear; to this machine it may in any case.

    Raises
    ------
    ValueError
        If the address is none, or the token would go over a network in clear.
    """

    def __init__(
        self, url: str, token: str, *, plain_http: bool = False, pause: Callable[[float], None] = sleep
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError(f"a service has an http or https address, not {url!r}; set SAFETYDRIFT_URL")
        if not token or not token.isascii() or not token.isprintable():
            raise ValueError("a service is asked with a token; set SAFETYDRIFT_TOKEN")
        if parts.scheme == "http" and not plain_http and not _is_here(parts.hostname):
            raise ValueError(
                f"the token would go to {parts.hostname} in clear; use https, or say plain_http=True"
            )
        self.url = url.rstrip("/")
        self._kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._host, self._port, self._base = parts.hostname, parts.port, parts.path.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._idle: list[HTTPConnection] = []
        self._closed = False
        self._pause = pause

    def post(self, path: str, body: dict[str, Any], patience: float) -> Any:
        """Return what the service answers to something that is posted; see `ask`."""
        return self.ask("POST", path, body, patience)

    def ask(self, method: str, path: str, body: dict[str, Any] | None, patience: float) -> Any:
        """Return what the service answers.

        Parameters
        ----------
        patience
            Seconds, over all tries.

        Raises
        ------
        UnreachableError
            If no answer came in time.
        RefusedError
            If the service refuses what is asked.
        """
        data = None if body is None else _encode(body)
        until, pause = monotonic() + patience, FIRST_PAUSE
        while True:
            problem: str
            try:
                status, reply = self._once(method, path, data, until - monotonic())
                if status == 200:  # noqa: PLR2004
                    return _decode(reply)
                refused = _refused(status, reply)
                if status not in AGAIN:
                    raise refused
                problem = str(refused)
            except (OSError, HTTPException, DecodeError) as error:
                problem = f"{type(error).__name__}: {error}"
            if monotonic() + pause >= until:
                raise UnreachableError(f"{self.url} could not be asked ({problem})")
            self._pause(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def close(self) -> None:
        """Close the connections that nobody is using."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    def _once(self, method: str, path: str, data: bytes | None, seconds: float) -> tuple[int, bytes]:
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._kind(self._host, self._port)
        connection.timeout = max(0.05, seconds)
        if connection.sock is not None:
            connection.sock.settimeout(connection.timeout)
        try:
            connection.request(method, self._base + path, data, self._headers)
            reply = connection.getresponse()
            read = reply.read(MAX_REPLY + 1)
        except BaseException:
            connection.close()
            raise
        if len(read) > MAX_REPLY:
            connection.close()
            raise HTTPException("an answer that is too long")
        if self._closed or len(self._idle) >= MAX_IDLE:
            connection.close()
        else:
            self._idle.append(connection)
        return reply.status, read


def _refused(status: int, reply: bytes) -> RefusedError:
    try:
        said = _decode(reply)
    except DecodeError:
        said = None
    said = said if isinstance(said, dict) else {}
    return RefusedError(
        status, str(said.get("type", "")), str(said.get("detail") or said.get("title", ""))[:500]
    )


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
