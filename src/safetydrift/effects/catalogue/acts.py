"""Acts: what the readers of languages can find a call to do, in words that need no program or library.

A reader says ``reading.act("deletes", why)``; which levels that means, and which kinds of violation it may
complete, is data of the catalogue (``[acts]``). So the levels of a language nobody thought of yet follow from the
same few lines.
"""

from __future__ import annotations

from safetydrift.effects.catalogue.harms import read_harm
from safetydrift.errors import CatalogueError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from safetydrift.effects.catalogue.plain import Entry
    from safetydrift.effects.catalogue.scales import Ranks, Scales

ACTS: dict[str, str] = {
    "looks": "looks around: names, sizes, versions, not contents",
    "computes": "runs code that only computes and shows, and touches nothing else",
    "reads": "takes in the content of a file or record of no telling name",
    "writes": "creates or changes something that can be put back",
    "deletes": "destroys something that cannot be put back",
    "runs": "runs code of the task or the host that is not read here",
    "checks": "runs a program of the task or the host whose name says that it only looks and reports",
    "hides": "runs something that keeps its meaning from us: decoded, downloaded or put together while running",
    "unknown": "runs a program nobody knows",
    "connects": "opens a connection to the outside that can carry anything: a raw socket, a reverse shell",
    "listens": "waits for connections from the network, or opens the host to them",
    "fetches": "asks a server outside for something and changes nothing there",
    "sends": "hands content to the outside",
    "fetches_inside": "asks a server of the operator's own organisation",
    "sends_inside": "hands content to a server or a person of the operator's own organisation",
    "fetches_here": "asks a service on this very host",
    "sends_here": "hands content to a service on this very host",
    "escalates": "gives somebody or something more rights than before",
    "tampers": "falsifies records, or switches off what keeps or watches them",
}
"""Every act, with what it means. A catalogue gives each of them an effect."""

KINDS = (
    "credential_leak",
    "data_leak",
    "destructive_action",
    "integrity",
    "privilege_escalation",
    "unauthorised_transaction",
)
"""The kinds of violation, in alphabetical order."""


class Act:
    """What an act means.

    Attributes
    ----------
    name
        One of `ACTS`.
    ranks
        Its effect; dimensions it does not name are silent.
    kinds
        The kinds of violation it may complete by itself.
    external
        Whether it reaches beyond the operator's own hosts and accounts.
    leaves
        Whether it carries content out, so that it is a leak if the content is sensitive.
    harm
        The operation that it is.
    """

    __slots__ = ("external", "harm", "kinds", "leaves", "name", "ranks")

    def __init__(self, name: str, entry: Entry, scales: Scales) -> None:
        self.name = name
        self.ranks: Ranks = scales.read(entry.required("effect"), entry.where, whole=False)
        self.kinds = read_kinds(entry)
        self.external = entry.flag("external")
        self.leaves = entry.flag("leaves")
        self.harm = read_harm(entry, action=False)
        entry.done()


def read_kinds(entry: Entry, key: str = "kinds") -> tuple[str, ...]:
    """Return the kinds of violation that an entry names, in order."""
    kinds = entry.texts(key)
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise CatalogueError(f"{entry.where}: unknown kind {unknown[0]!r}; the kinds are: {', '.join(KINDS)}")
    return tuple(sorted(set(kinds)))
