"""Questions posted to a service of yours, and its answers, both signed with a key that both know.

``SafetyDrift-Signature: t=<seconds>,v1=<hex of HMAC-SHA256 over "<seconds>.<body>">``, in both directions.
"""

from __future__ import annotations

from hashlib import sha256
from hmac import new as hmac
from ipaddress import ip_address
from socket import getaddrinfo
from time import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.json import decode

from safetydrift.errors import ServiceError
from safetydrift.service.access import DeniedError, same

if TYPE_CHECKING:
    from collections.abc import Mapping

HEADER = "safetydrift-signature"
MAX_AGE = 300.0
KEPT = 4096
_SEEN: dict[str, float] = {}
"""Signatures that were accepted lately: an answer is not taken twice."""


class Reply(Struct, frozen=True, forbid_unknown_fields=True):
    """What a service answers."""

    id: str
    approved: bool
    presented: str
    by: str = ""
    reason: str = ""


def signed(secret: str, body: bytes, at: int | None = None) -> str:
    """Return the header of a message."""
    stamp = int(time()) if at is None else at
    return f"t={stamp},v1={hmac(secret.encode(), b'%d.%s' % (stamp, body), sha256).hexdigest()}"


def replied(secret: str, headers: Mapping[str, str], body: bytes) -> Reply:
    """Return what a service has answered.

    Raises
    ------
    DeniedError
        If the signature does not hold, is too old, or was used before.
    """
    given = headers.get(HEADER, "")
    stamp = given.partition(",")[0].removeprefix("t=")
    now = time()
    if not stamp.isdigit() or abs(now - int(stamp)) > MAX_AGE:
        raise DeniedError(401, "the message is too old, or says no time")
    if not same(given, signed(secret, body, int(stamp))):
        raise DeniedError(401, "the signature does not hold")
    for one in [one for one, at in _SEEN.items() if now - at > MAX_AGE]:
        del _SEEN[one]
    if given in _SEEN or len(_SEEN) >= KEPT:
        raise DeniedError(401, "this message came before")
    _SEEN[given] = now
    return decode(body, type=Reply)


def require_public(url: str) -> None:
    """Check that an address lies outside of private networks.

    Raises
    ------
    ServiceError
        If it does not, or its host has no address.
    """
    parts = urlsplit(url)
    try:
        found = getaddrinfo(parts.hostname, parts.port or 443)
    except OSError as error:
        raise ServiceError(f"{parts.hostname} has no address") from error
    for *_, place in found:
        if not ip_address(str(place[0]).partition("%")[0]).is_global:
            raise ServiceError(f"{parts.hostname} lies in a private network; say private = true if it should")


def message(approval: Mapping[str, Any], url: str) -> dict[str, Any]:
    """Return what is posted about a question, as it stands."""
    names = ("id", "status", "expires", "presented_digest", "question", "answered_by", "reason")
    return {name: approval[name] for name in names} | {"page": f"{url}/approvals/{approval['id']}"}
