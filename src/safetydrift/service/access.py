"""Who asks, and what they may: tokens of machines and people, visits of browsers, roles.

A token is shown once and kept as a digest. It belongs to one organisation, which no request can choose; what it may do
is in its scopes. A browser has a cookie instead, which is worth nothing on another site: everything that changes
something has to carry the key of the visit besides, and to come from our own pages.
"""

from __future__ import annotations

from hashlib import sha256
from hmac import compare_digest
from secrets import token_urlsafe
from time import monotonic, time
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from sqlalchemy import delete, insert, select, update

from safetydrift.service import audit
from safetydrift.service.database.schema import organisations, tokens, visits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Connection, Engine

    from safetydrift.service.lanes import Lane

AGENT, READER, APPROVER, ADMIN = "agent", "reader", "approver", "admin"
IMPLIED = {
    ADMIN: frozenset((ADMIN, APPROVER, READER)),
    APPROVER: frozenset((APPROVER, READER)),
    READER: frozenset((READER,)),
    AGENT: frozenset((AGENT,)),
}
"""What each role may do besides. An agent may decide nothing about itself."""
PREFIX = "sdt_"
VISIT = 12 * 3600.0
"""Seconds for which somebody stays signed in."""
BELIEVED = 5.0
"""Seconds for which a token is believed without a look at the database: as long as a revocation takes to arrive."""
MAX_BELIEVED = 4096


class Principal(Struct, frozen=True):
    """Who asks.

    Parameters
    ----------
    org
        The organisation.
    name
        What the audit log calls them.
    may
        Their rights.
    token
        The number of the token; 0 for people who signed in otherwise.
    csrf
        The key of the visit; empty for tokens.
    """

    org: int
    name: str
    may: frozenset[str]
    token: int = 0
    csrf: str = ""


class DeniedError(PermissionError):
    """Nobody is known by this name, or they may not do this.

    Attributes
    ----------
    status
        401 or 403.
    """

    def __init__(self, status: int, detail: str) -> None:
        self.status = status
        super().__init__(detail)


def digest(secret: str) -> str:
    """Return what is kept of a token: it has more than enough bits of its own."""
    return sha256(secret.encode("utf-8", "replace")).hexdigest()


def rights(roles: Iterable[str]) -> frozenset[str]:
    """Return what some roles may do."""
    return frozenset().union(*[IMPLIED.get(role, frozenset()) for role in roles])


class Tokens:
    """Tokens and visits, as a worker knows them.

    Parameters
    ----------
    engine
        For reading.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._believed: dict[str, tuple[float, Principal]] = {}

    def believed(self, secret: str) -> Principal | None:
        """Return who a token is of, if that was looked up lately."""
        found = self._believed.get(digest(secret))
        return found[1] if found is not None and monotonic() - found[0] < BELIEVED else None

    def look_up(self, secret: str) -> Principal:
        """Return who a token is of, by the database.

        Raises
        ------
        DeniedError
            If it is no token, or holds no more.
        """
        own = digest(secret)
        columns = (
            tokens.c.id,
            tokens.c.org,
            tokens.c.name,
            tokens.c.scopes,
            tokens.c.expires,
            tokens.c.revoked,
        )
        with self._engine.connect() as connection:
            row = connection.execute(select(*columns).where(tokens.c.digest == own)).first()
        if row is None or row[5] is not None or (row[4] is not None and row[4] < time()):
            self._believed.pop(own, None)
            raise DeniedError(401, "this token is not known, or holds no more")
        principal = Principal(int(row[1]), f"{row[2]} #{row[0]}", rights(row[3].split()), int(row[0]))
        if len(self._believed) >= MAX_BELIEVED:
            del self._believed[next(iter(self._believed))]
        self._believed[own] = monotonic(), principal
        return principal

    def visitor(self, cookie: str) -> Principal:
        """Return who has a cookie.

        Raises
        ------
        DeniedError
            If nobody has.
        """
        columns = (
            visits.c.org,
            visits.c.who,
            visits.c.roles,
            visits.c.csrf,
            visits.c.expires,
            visits.c.token_id,
        )
        with self._engine.connect() as connection:
            row = connection.execute(select(*columns).where(visits.c.digest == digest(cookie))).first()
            if row is None or row[4] < time() or (row[5] and self._revoked(connection, int(row[5]))):
                raise DeniedError(401, "sign in first")
        return Principal(int(row[0]), str(row[1]), rights(row[2].split()), int(row[5] or 0), str(row[3]))

    def forget(self) -> None:
        """Look every token up again."""
        self._believed.clear()

    @staticmethod
    def _revoked(connection: Connection, number: int) -> bool:
        row = connection.execute(
            select(tokens.c.revoked, tokens.c.expires).where(tokens.c.id == number)
        ).first()
        return row is None or row[0] is not None or (row[1] is not None and row[1] < time())


def same(given: str, own: str) -> bool:
    """Return whether two secrets are the same, in a time that tells nothing; an empty one is never."""
    return bool(own) and compare_digest(given.encode("utf-8", "replace"), own.encode())


def new_token(
    lane: Lane, org: int, name: str, scopes: Iterable[str], by: str, *, days: float | None = None
) -> tuple[int, str]:
    """Make a token; return its number and the token itself, which is not kept."""
    secret = PREFIX + token_urlsafe(32)
    now = time()
    row = {
        "org": org,
        "name": name,
        "digest": digest(secret),
        "scopes": " ".join(sorted(set(scopes))),
        "created": now,
        "created_by": by,
        "expires": None if days is None else now + days * 86_400.0,
    }
    number = int(lane.execute(insert(tokens).returning(tokens.c.id), row).scalar_one())
    audit.entry(lane, org, by, "token made", name, scopes=row["scopes"], token=number)
    return number, secret


def akin(lane: Lane, org: int, one: str, other: str) -> bool:
    """Return whether two names are the same, or one is that of a token which the other has made."""
    if one == other:
        return True
    statement = select(tokens.c.id, tokens.c.name, tokens.c.created_by).where(
        tokens.c.org == org, tokens.c.created_by.in_((one, other))
    )
    made = {(f"{name} #{number}", by) for number, name, by in lane.execute(statement, {})}
    return (one, other) in made or (other, one) in made


def revoke(lane: Lane, org: int, number: int, by: str) -> None:
    """Take a token back.

    Raises
    ------
    LookupError
        If the organisation has no such token.
    """
    changed = lane.execute(
        update(tokens)
        .where(tokens.c.org == org, tokens.c.id == number, tokens.c.revoked.is_(None))
        .values(revoked=time()),
        {},
    )
    if changed.rowcount != 1:
        raise LookupError(f"there is no token {number}")
    audit.entry(lane, org, by, "token revoked", str(number))


def sign_in(lane: Lane, org: int, who: str, roles: Iterable[str], token: int = 0) -> tuple[str, Principal]:
    """Begin a visit; return its cookie, and who it is."""
    cookie, csrf, now = token_urlsafe(32), token_urlsafe(32), time()
    kept = " ".join(sorted(set(roles)))
    row: dict[str, Any] = {
        "digest": digest(cookie),
        "org": org,
        "who": who,
        "roles": kept,
        "token_id": token or None,
        "csrf": csrf,
        "created": now,
        "expires": now + VISIT,
    }
    lane.execute(insert(visits), row)
    audit.entry(lane, org, who, "signed in", who, roles=kept)
    return cookie, Principal(org, who, rights(kept.split()), token, csrf)


def sign_out(lane: Lane, org: int, cookie: str) -> None:
    """End a visit."""
    lane.execute(delete(visits).where(visits.c.org == org, visits.c.digest == digest(cookie)), {})


def organisation(lane: Lane, name: str) -> int:
    """Return the number of an organisation; it is made if it is not there."""
    found = lane.execute(select(organisations.c.id).where(organisations.c.name == name), {}).scalar()
    if found is not None:
        return int(found)
    made = insert(organisations).returning(organisations.c.id)
    return int(lane.execute(made, {"name": name, "created": time()}).scalar_one())
