"""What a reading notes of operations: what is done to what, and where content comes from and goes to.

Levels say how far a call reaches and are joined; operations name what it touches. To tell what goes out with one of
them, everything that a part of a text takes in is remembered until that part ends: the files that a command reads, what
it is fed, what the words of it come from.
"""

from __future__ import annotations

import re
from posixpath import normpath

from safetydrift.effects.boundary import HERE, INSIDE
from safetydrift.effects.operations import (
    CERTAIN,
    LIKELY,
    MAX_CARRIED,
    MAX_TARGET,
    NONE,
    POSSIBLE,
    Operation,
    Operations,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from safetydrift.effects.boundary import Boundary
    from safetydrift.effects.catalogue import Catalogue
    from safetydrift.effects.catalogue.harms import Harm

_MAX_SHOWN = 60
_MAX_ORIGINS = 256
_MAX_SOURCE = 256
_ROOTS = frozenset(("/", "~", "$", "-", "", "<", ">", "\\"))
_AT_HOST = re.compile(r"[:/]")
"""Stands in an address with a user, but in none of mail."""
_NO_HARM = ("", NONE, "")
_STEMS = (
    *(("ies", "y"), ("shes", "sh"), ("ches", "ch"), ("sses", "ss")),
    *(("ses", "se"), ("xes", "x"), ("oes", "o"), ("s", "")),
)


class Recorder:
    """The operations of a call, and what flows between them.

    Parameters
    ----------
    catalogue
        Says what places are.
    boundary
        Says which hosts are inside.

    Attributes
    ----------
    operations
        What was found to be done to what.
    taken
        What the part that is being read has taken in: paths, addresses, ``$(command)`` for the output of a command and
        ``$NAME`` for a variable of the environment.
    fed
        What its input comes from.
    made
        Paths that were written.
    origins
        What files were made of, by path.
    directory
        Where relative paths start; empty where it is not known.
    exact
        Whether `taken` is what goes along, rather than all that was taken in before.
    code
        Whether the part is code rather than commands.
    decoded
        What decoders print.
    beside
        Operations that tell harm and no kind of violation.
    shells
        Whether a shell is started for whoever types into it.
    secrets
        Commands whose output is a secret.
    """

    __slots__ = (
        "beside",
        "boundary",
        "catalogue",
        "code",
        "decoded",
        "directory",
        "exact",
        "fed",
        "made",
        "operations",
        "origins",
        "secrets",
        "shells",
        "taken",
    )

    def __init__(self, catalogue: Catalogue, boundary: Boundary) -> None:
        self.catalogue, self.boundary = catalogue, boundary
        self.operations = Operations()
        self.taken: list[str] = []
        self.fed: tuple[str, ...] = ()
        self.made: list[str] = []
        self.origins: dict[str, tuple[str, ...]] = {}
        self.secrets: set[str] = set()
        self.decoded: set[str] = set()
        self.beside: list[Operation] = []
        self.directory = ""
        self.exact = self.code = self.shells = False

    def note(
        self,
        action: str,
        target: str,
        role: str = "resource",
        harm: tuple[str, int, str] = _NO_HARM,
        carries: Iterable[str] = (),
    ) -> None:
        """Add an operation.

        Parameters
        ----------
        harm
            The harm, how certain it is, and what it does in words; without certainty there is none.
        """
        kind, certainty, words = harm
        if len(target) > MAX_TARGET:
            target = target[:MAX_TARGET]
        carried = tuple(dict.fromkeys(carries))[:MAX_CARRIED] if carries else ()
        self.operations.add(
            Operation(action, target, role, kind if certainty else "", certainty, words, carried)
        )

    def does(
        self,
        harm: Harm,
        target: str = "",
        words: str = "",
        *,
        action: str = "",
        certainty: int | None = None,
        carries: Iterable[str] = (),
    ) -> None:
        """Add the operation that an entry of the catalogue tells.

        Parameters
        ----------
        words
            What it does, in place of what the entry says.
        action, certainty
            In place of those of the entry.
        """
        sure = harm.certainty if certainty is None else certainty
        words = words or (harm.words(target) if harm.note and sure else "")
        self.note(action or harm.action or "run", target, harm.role, (harm.harm, sure, words), carries)

    # -- files --------------------------------------------------------------------------------------------

    def located(self, path: str) -> str:
        """Return a path with the directory it starts from, where that is known."""
        if not self.directory or path[:1] in _ROOTS or "://" in path or path[1:2] == ":":
            return path
        return normpath(f"{self.directory.rstrip('/')}/{path}") + ("/" if path.endswith("/") else "")

    def takes(self, place: str) -> None:
        """Add that a file is read, whose content goes wherever this part sends it."""
        self.taken.append(place)
        self.taken += self.made_of(place)
        harm = self.catalogue.places.read(place)
        if harm.certainty:
            self.does(harm, place, action="read")
        else:
            self.operations.add(Operation("read", place[:MAX_TARGET], "path"))

    def changes(self, place: str, action: str) -> None:
        """Add that a file is changed, or that something is put in its place."""
        self.does(self.catalogue.places.change(place), place, action=action)

    def loses(self, path: str, *, whole: bool = False) -> None:
        """Add that a file is destroyed.

        Parameters
        ----------
        whole
            Whether a folder goes with everything below it.
        """
        place = self.located(path)
        certainty = self.catalogue.places.deletions.certainty(place, whole=whole)
        below = "everything below " if whole and "*" not in place and not place.endswith("}") else ""
        self.note("delete", place, "path", ("destruction", certainty, f"delete {below}{shown(place)}"))
        self._loses_record(place, "delete")

    def drains(self, path: str) -> None:
        """Add that a file is left without content; most files that are emptied were made for it."""
        place = self.located(path)
        certainty = max(self.catalogue.places.deletions.certainty(place, whole=True) - 1, NONE)
        self.note("delete", place, "path", ("destruction", certainty, f"empty {shown(place)}"))
        self._loses_record(place, "empty")

    def _loses_record(self, place: str, verb: str) -> None:
        harm = self.catalogue.places.change(place)
        if harm.certainty and harm.harm != "destruction":
            self.does(harm, place, f"{verb} {shown(place)}", action="delete")

    def comes_from(self, path: str, sources: tuple[str, ...]) -> None:
        """Note what a file that was written is made of."""
        if sources and len(self.origins) < _MAX_ORIGINS:
            made_of = tuple(dict.fromkeys((*self.made_of(path), *sources)))[:MAX_CARRIED]
            self.origins[_plain(path)] = made_of
            self.operations.carry(path, made_of)

    def made_of(self, place: str) -> tuple[str, ...]:
        """Return what a file is made of that was written here."""
        return self.origins.get(_plain(place), ())

    def gives(self, command: str, *, secret: bool = False) -> None:
        """Note that a command prints something that does not come from a file.

        Parameters
        ----------
        secret
            Whether that is a secret if an operation says so.
        """
        source = f"$({command[:_MAX_SOURCE]})"
        self.taken.append(source)
        if secret and any(one.harm == "credential_access" for one in self.operations):
            self.secrets.add(source)

    # -- code ---------------------------------------------------------------------------------------------

    def starts(self, path: str) -> None:
        """Add that a program or script of the host is started, which may have been fetched before."""
        place = self.located(path)
        made_of = self.made_of(place) or self.made_of(place.rpartition("/")[0])
        fetched = [source for source in made_of if "://" in source]
        if fetched:
            self.brings_code(fetched, f"run {shown(path)}, fetched from {shown(fetched[0])}")
        self.operations.add(Operation("run", place[:MAX_TARGET], "path"))

    def brings_code(self, sources: Sequence[str], words: str = "", certainty: int = LIKELY) -> None:
        """Add that code is run that comes from elsewhere."""
        role = "host" if "://" in sources[0] else "command"
        words = words or f"run what comes from {shown(sources[0])}"
        self.note("run", sources[0], role, ("untrusted_code", certainty, words), sources)

    def starts_hidden(self, path: str) -> bool:
        """Add that something is run whose text is not seen here; return whether it can be told where it comes from.

        Parameters
        ----------
        path
            The file that holds it; empty if it is what this part has taken in.
        """
        if path.startswith("<("):
            path = ""
        self.shells = self.shells or self.code
        taken = self.made_of(self.located(path)) if path else self.taken
        fetched = [source for source in taken if "://" in source]
        if fetched:
            self.brings_code(fetched, certainty=CERTAIN if self.exact else LIKELY)
            return True
        local = [path] if path else [source for source in self.taken if source[:1] != "$"]
        if not local or self.code:
            return False
        for source in local[:MAX_CARRIED]:
            self.starts(source)
        return True

    # -- the network --------------------------------------------------------------------------------------

    def gets(self, address: str) -> None:
        """Add that something is fetched."""
        self.taken.append(address)
        self.operations.add(Operation("fetch", address[:MAX_TARGET], "host"))

    def hands(
        self, host: str, address: str, *, action: str = "send", role: str = "host", least: int = POSSIBLE
    ) -> None:
        """Add that what was taken in goes to a host, or to a recipient.

        Parameters
        ----------
        host
            The host that it goes to, empty where it cannot be told.
        least
            How certain it is at least that it is no business of theirs; with `NONE`, it never is harm.
        """
        if "@" in address and role == "host" and not _AT_HOST.search(address):
            role = "recipient"
        carries = [source for source in dict.fromkeys(self.taken) if source != address][:MAX_CARRIED]
        certainty = self._leak(host, carries, least) if least else NONE
        what = f"the content of {shown(carries[0])}" if carries else "data"
        more = f" and {len(carries) - 1} more" if len(carries) > 1 else ""
        words = f"send {what}{more} to {shown(address) or 'the network'}"
        self.note(action, address, role, ("exfiltration", certainty, words), carries)

    def has_deleted(self, host: str, address: str) -> None:
        """Add that a host is asked to delete something."""
        certainty = POSSIBLE if self.boundary.place(host) == HERE else LIKELY
        words = f"ask {shown(address) or 'a server'} to delete something"
        self.note("delete", address, "host", ("destruction", certainty, words))

    def _leak(self, host: str, carries: Sequence[str], least: int) -> int:
        """Return how certain it is that what goes to a host is no business of it."""
        if host and self.boundary.place(host) in {HERE, INSIDE}:
            return NONE
        if max(map(self._secrecy, carries), default=NONE) >= LIKELY:
            return CERTAIN if self.exact else LIKELY
        if self.exact and any("://" not in source for source in carries):
            return LIKELY
        return max(least, LIKELY) if host and host in self.catalogue.hosts.drops else least

    def _secrecy(self, source: str) -> int:
        """Return how certain it is that what is taken from a source is a secret."""
        if source.startswith("$("):
            return LIKELY if source in self.secrets else NONE
        return LIKELY if source.startswith("$") else self.catalogue.places.read(source).certainty

    # -- all of them --------------------------------------------------------------------------------------

    def found(self) -> tuple[Operation, ...]:
        """Return the operations, seen together: a connection and a shell make a remote shell."""
        for one in list(self.operations) if self.shells else ():
            if one.action == "connect" and one.harm == "access":
                whom = shown(one.target) or "whoever is at the other end"
                words = f"open a remote shell to {whom}"
                self.note("connect", one.target, one.role, ("access", CERTAIN, words), one.carries)
        return self.operations.kept()


def would(reason: str) -> str:
    """Return a reason in the words that complete "this would".

    >>> would("deletes all rows of orders"), would("carries it out"), would("os.remove: deletes")
    ('delete all rows of orders', 'carry it out', 'use os.remove: deletes')
    """
    verb, blank, rest = reason.partition(" ")
    if not verb.isalpha() or not verb.endswith("s"):
        return f"use {reason}"
    for end, stem in _STEMS:
        if verb.endswith(end):
            return f"{verb[: -len(end)]}{stem}{blank}{rest}"
    return reason


def _plain(path: str) -> str:
    """Return a path without what says that it starts here."""
    return path.removeprefix("./")


def shown(text: str) -> str:
    """Return a text as reasons quote it: shortened."""
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 3]}..."
