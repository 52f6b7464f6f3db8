"""Where the operator's own world ends: which hosts, people and servers are inside, and what may be taken on trust."""

from __future__ import annotations

import re

from safetydrift.effects.catalogue.globs import Globs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1", "0.0.0.0", "[::1]", "[::]", "ip6-localhost"))  # noqa: S104
_METADATA = frozenset(
    (
        "169.254.169.254",
        "169.254.170.2",
        "169.254.170.23",
        "100.100.100.200",
        "192.0.0.192",
        "fd00:ec2::254",
        "metadata",
        "metadata.google.internal",
        "metadata.goog",
        "instance-data",
        "instance-data.ec2.internal",
        "metadata.azure.internal",
        "metadata.tencentyun.com",
    )
)
_MAIL = re.compile(r"(?:[^@,;<>]*<)?[^@,;<>\s]+@([\w.\-]+)>?")
"""One mail address and no more, with or without a name before it."""

HERE, INSIDE, OUTSIDE, METADATA = "here", "inside", "outside", "metadata"


class Boundary:
    """The trust boundary of an operator. Without one, everything but this very host is outside.

    Parameters
    ----------
    domains
        The organisation's domains; their subdomains, and mail addresses in them, are inside too.
    hosts
        Globs for further host names and addresses that are inside (``"10.0.*"``, ``"db-*"``).
    people
        Globs for recipients that are inside without an address of the organisation (user names, channels).
    recipients
        Globs for recipients, accounts and addresses outside that the operator has named: sending there is as good
        as named by the user.
    servers
        MCP servers whose annotations may lower an effect and whose results are the operator's own.
    """

    __slots__ = ("_hosts", "_people", "_recipients", "domains", "hosts", "people", "recipients", "servers")

    def __init__(
        self,
        *,
        domains: Iterable[str] = (),
        hosts: Iterable[str] = (),
        people: Iterable[str] = (),
        recipients: Iterable[str] = (),
        servers: Iterable[str] = (),
    ) -> None:
        self.domains = tuple(sorted({domain.lower().strip(".@") for domain in domains}))
        self.hosts = tuple(sorted(set(hosts)))
        self.people = tuple(sorted(set(people)))
        self.recipients = tuple(sorted(set(recipients)))
        self.servers = frozenset(servers)
        self._hosts = Globs(self.hosts, fold=True)
        self._people = Globs(self.people, fold=True)
        self._recipients = Globs(self.recipients, fold=True)

    def place(self, host: str) -> str:
        """Return where a host stands: `HERE`, `INSIDE`, `OUTSIDE`, or `METADATA` for a cloud's key dispenser."""
        host = host.lower().rstrip(".")
        if host in _METADATA:
            return METADATA
        if host in _LOOPBACK or host.startswith("127."):
            return HERE
        if host in self._hosts or self._in_domain(host):
            return INSIDE
        return OUTSIDE

    def inside(self, recipient: str) -> bool:
        """Return whether a recipient (a mail address, a user, a channel) belongs to the organisation."""
        recipient = recipient.strip().lower()
        if recipient in self._people:
            return True
        address = _MAIL.fullmatch(recipient)
        return address is not None and self._in_domain(address[1].rstrip("."))

    def named(self, recipient: str) -> bool:
        """Return whether the operator has named a recipient, account or address."""
        return recipient.strip() in self._recipients

    def _in_domain(self, host: str) -> bool:
        return any(host == domain or host.endswith("." + domain) for domain in self.domains)

    def _parts(self) -> tuple[Any, ...]:
        return self.domains, self.hosts, self.people, self.recipients, self.servers

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Boundary) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def __reduce__(self) -> tuple[Any, ...]:
        return _boundary, self._parts()

    def __repr__(self) -> str:
        return f"<Boundary: {', '.join(self.domains + self.hosts) or 'this host alone'} inside>"


def _boundary(*parts: Any) -> Boundary:
    names = ("domains", "hosts", "people", "recipients", "servers")
    return Boundary(**dict(zip(names, parts, strict=True)))
