"""Sessions in Redis or Valkey, for many workers on many machines.

A session is a hash of its version and its state. To write one is a single script, which compares the version, writes,
and sets the expiry at once, so that no two workers can both be first.
"""

from __future__ import annotations

from time import time_ns
from typing import TYPE_CHECKING

from safetydrift.errors import MissingExtraError, SafetyDriftError, StoreError
from safetydrift.guard.session import Session

if TYPE_CHECKING:
    from typing import Any

    from safetydrift.states.space import StateSpace

DEFAULT_EXPIRY = 24 * 3600.0
DEFAULT_WAIT = 2.0
PREFIX = "safetydrift:session:"
_WRITE = """
local there = redis.call('HGET', KEYS[1], 'version')
if (there or '0') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'version', ARGV[2], 'state', ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return 1
"""


class RedisStore:
    """Keeps sessions on a server.

    Parameters
    ----------
    url
        Where it is, such as ``redis://localhost:6379/0``, or ``rediss://`` with TLS.
    expiry
        Seconds after its last change at which the server forgets a session.
    wait
        Seconds to wait for the server.
    prefix
        What the names of all keys begin with.
    client
        A client of the ``redis`` or ``valkey`` package to use instead of an address; it must answer in bytes.

    Raises
    ------
    MissingExtraError
        If no client is given and the ``redis`` package is not installed.
    """

    waits = True

    def __init__(
        self,
        url: str = "",
        expiry: float = DEFAULT_EXPIRY,
        wait: float = DEFAULT_WAIT,
        prefix: str = PREFIX,
        client: Any = None,
    ) -> None:
        self.expiry, self.prefix = expiry, prefix
        self._client = _client(url, wait) if client is None else client
        self._write = self._client.register_script(_WRITE)
        self._model = ""
        self._space: StateSpace | None = None

    def bind(self, model: str, space: StateSpace) -> None:
        """Take note of the model whose sessions are kept."""
        self._model, self._space = model, space

    def read(self, key: str) -> tuple[Session, int] | None:
        """Return a session and its version, None if there is none."""
        assert self._space is not None, "a guard binds its store"  # noqa: S101
        version, state = self._asked(self._client.hmget, self.prefix + key, "version", "state")
        if version is None:
            return None
        return Session.from_bytes(state, self._model, self._space), int(version)

    def write(self, key: str, session: Session, version: int) -> bool:
        """Keep a session, if its version is still the one that was read."""
        # Not 1: a session that was removed and made again must not pass for the one before.
        values = [
            version,
            version + 1 if version else time_ns(),
            session.to_bytes(self._model),
            int(1000 * self.expiry),
        ]
        return bool(self._asked(self._write, keys=[self.prefix + key], args=values))

    def remove(self, key: str) -> None:
        """Forget a session."""
        self._asked(self._client.delete, self.prefix + key)

    def keys(self) -> list[str]:
        """Return the keys of all sessions; the server is asked in small steps."""
        found = self._asked(lambda: list(self._client.scan_iter(match=f"{self.prefix}*", count=500)))
        return sorted({key.decode()[len(self.prefix) :] for key in found})

    def sweep(self) -> int:
        """Nothing to do: the server forgets by itself."""
        return 0

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _asked(self, ask: Any, *args: Any, **options: Any) -> Any:
        try:
            return ask(*args, **options)
        except SafetyDriftError:
            raise
        except Exception as error:  # whatever a client raises
            raise StoreError(f"the server that keeps the sessions: {error}") from error


def _client(url: str, wait: float) -> Any:
    try:
        from redis import Redis  # noqa: PLC0415  # an extra
    except ModuleNotFoundError as error:
        raise MissingExtraError("redis", "redis", "keeping sessions in Redis or Valkey") from error
    return Redis.from_url(url, socket_timeout=wait, socket_connect_timeout=wait)
