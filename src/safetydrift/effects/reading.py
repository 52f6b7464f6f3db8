"""The reading of one call: the join of everything that it was found to do, while it is being read.

The labeler opens a reading, the readers of languages write into it, and may hand text on to one another: a shell
command that runs Python code that runs SQL is one reading. Work is bounded by a common budget.
"""

from __future__ import annotations

from posixpath import normpath

from safetydrift.effects.boundary import HERE, INSIDE, METADATA
from safetydrift.effects.catalogue.scales import SILENT, join
from safetydrift.effects.operations import CERTAIN, LIKELY, MAX_CARRIED, MAX_TARGET, NONE, POSSIBLE, Operation, Operations
from safetydrift.states.effect import Effect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from safetydrift.effects.boundary import Boundary
    from safetydrift.effects.catalogue import Catalogue
    from safetydrift.effects.catalogue.harms import Harm
    from safetydrift.effects.catalogue.scales import Ranks

    Reader = Callable[["Reading", str], None]

MAX_TEXT = 64 * 1024
"""Longer text in a language is not read."""
MAX_NESTING = 8
"""Deeper texts within texts are not read."""
_BUDGET = 4 * MAX_TEXT
_MAX_REASONS = 12
_MAX_DESTINATIONS = 16
_MAX_OPERANDS = 64
_MAX_SHOWN = 60
_MAX_ORIGINS = 256
_MAX_SOURCE = 256
_ROOTS = frozenset(("/", "~", "$", "-", "", "<", ">", "\\"))
_STEMS = (("ies", "y"), ("shes", "sh"), ("ches", "ch"), ("sses", "ss"), ("ses", "se"), ("xes", "x"), ("oes", "o"), ("s", ""))
KINDS_OF: dict[str, tuple[str, ...]] = {
    "": (),
    "exfiltration": (),
    "credential_access": (),
    "destruction": ("destructive_action",),
    "transaction": ("unauthorised_transaction",),
    "access": ("privilege_escalation",),
    "privilege": ("privilege_escalation",),
    "persistence": ("privilege_escalation",),
    "untrusted_code": ("privilege_escalation",),
    "safeguards": ("integrity",),
    "integrity": ("integrity",),
    "production": ("integrity",),
    "physical": ("integrity",),
}
"""The kind of violation that an operation completes whose harm is likely; leaks are told by the levels."""


class UnreadableError(ValueError):
    """Text that cannot be followed; the message says why."""


class Reading:
    """What one call was found to do so far.

    Parameters
    ----------
    catalogue
        Says what acts, programs and paths mean.
    boundary
        Says which hosts and people are inside.
    readers
        The reader of each language, for text within text.

    Attributes
    ----------
    ranks
        The join of all that was found.
    kinds
        The kinds of violation found.
    external, leaves
        Whether anything reaches outside, and whether content goes there.
    source
        ``"rule"``, or ``"default"`` once something nobody knows was met.
    confidence
        The lowest confidence of what was found.
    reasons
        Why, in words; only what raised the effect is told.
    destinations
        Hosts, addresses and recipients that content is sent to, as written.
    operations
        What it does to what.
    taken
        What the part that is being read has taken in: paths, addresses, and commands whose output it is handed.
    fed
        What its input comes from.
    made
        Paths that it has written.
    origins
        What files were made of, by path: what was taken in when they were written.
    directory
        Where relative paths start; empty where it is not known.
    exact
        Whether `taken` is exactly what goes along, rather than all that was taken in before.
    shells
        Whether a shell is started for whoever types into it.
    secrets
        Commands whose output is a secret.
    """

    __slots__ = (
        "boundary",
        "budget",
        "catalogue",
        "confidence",
        "depth",
        "destinations",
        "directory",
        "exact",
        "external",
        "fed",
        "kinds",
        "leaves",
        "made",
        "operations",
        "origins",
        "ranks",
        "readers",
        "reasons",
        "secrets",
        "shells",
        "source",
        "taken",
    )

    def __init__(self, catalogue: Catalogue, boundary: Boundary, readers: Mapping[str, Reader]) -> None:
        self.catalogue, self.boundary, self.readers = catalogue, boundary, readers
        self.ranks: Ranks = catalogue.scales.lowest
        self.kinds: set[str] = set()
        self.external = self.leaves = False
        self.source = "rule"
        self.confidence = catalogue.confidence["rule"]
        self.reasons: list[str] = []
        self.destinations: list[str] = []
        self.operations = Operations()
        self.taken: list[str] = []
        self.fed: tuple[str, ...] = ()
        self.made: list[str] = []
        self.origins: dict[str, tuple[str, ...]] = {}
        self.directory = ""
        self.exact = self.shells = False
        self.secrets: set[str] = set()
        self.depth = 0
        self.budget = _BUDGET

    @property
    def tool(self) -> int:
        """The position of the dimension ``tool`` in the ranks."""
        return self.catalogue.scales.names.index("tool")

    @property
    def network(self) -> int:
        """The highest rank of the dimension ``tool``."""
        return len(self.catalogue.scales.levels("tool")) - 1

    # -- what was found -----------------------------------------------------------------------------------

    def add(
        self,
        ranks: Ranks,
        reason: str,
        *,
        kinds: Iterable[str] = (),
        external: bool = False,
        leaves: bool = False,
    ) -> None:
        """Add something the call does; a reason that raises nothing is not kept, unless it is the first."""
        joined = join(self.ranks, ranks)
        news = joined != self.ranks or not self.kinds.issuperset(kinds) or not self.reasons
        if news and reason not in self.reasons and len(self.reasons) < _MAX_REASONS:
            self.reasons.append(reason)
        self.ranks = joined
        self.kinds.update(kinds)
        self.external = self.external or external
        self.leaves = self.leaves or leaves

    def act(self, name: str, reason: str, target: str = "") -> None:
        """Add one of the `ACTS`, which is an operation too.

        Parameters
        ----------
        target
            What it is done to, where that can be told.
        """
        self.reaches(name, reason)
        if name != "computes":
            self.does(self.catalogue.acts[name].harm, target, would(reason))

    def reaches(self, name: str, reason: str) -> None:
        """Add how far one of the `ACTS` reaches, and no operation."""
        act = self.catalogue.acts[name]
        self.add(act.ranks, reason, kinds=act.kinds, external=act.external, leaves=act.leaves)

    def does(
        self,
        harm: Harm,
        target: str = "",
        note: str = "",
        *,
        action: str = "",
        certainty: int | None = None,
        carries: Iterable[str] = (),
    ) -> None:
        """Add an operation.

        Parameters
        ----------
        harm
            What it does; its note counts unless there is another.
        action, certainty
            In place of those of the harm.
        """
        sure = harm.certainty if certainty is None else certainty
        self.operations.add(
            Operation(
                action or harm.action or "run",
                target[:MAX_TARGET],
                harm.role,
                harm.harm if sure else "",
                sure,
                note or (harm.words(target) if harm.note else ""),
                tuple(dict.fromkeys(carries))[:MAX_CARRIED],
            )
        )

    def runs(self, program: str, operands: Sequence[str] = ()) -> None:
        """Add that a program named by its path is run; its name may tell that it only looks."""
        shell = self.catalogue.shell
        _, _, name = program.rpartition("/")
        looks = name in shell.checkers and name not in shell.makers and not self._keeps(operands)
        if looks and not program.startswith(tuple(shell.unchecked)):
            self.reaches("checks", f"runs {shown(program)}, a name for a program that looks and reports")
            self.confidence = min(self.confidence, self.catalogue.confidence["pattern"])
        else:
            self.reaches("runs", f"runs the local program {shown(program)}")
        self.starts(program)

    def starts(self, path: str) -> None:
        """Add the operation that a program or script of the host is started, which may have been fetched before."""
        place = self.located(path)
        fetched = [source for source in self.origins.get(place, ()) if "://" in source]
        if fetched:
            self.brings_code(fetched, f"run {shown(path)}, fetched from {shown(fetched[0])}")
        self.operations.add(Operation("run", place, "path"))

    def brings_code(self, sources: Sequence[str], note: str = "", certainty: int = LIKELY) -> None:
        """Add the operation that code is run that comes from elsewhere."""
        source = sources[0] if sources else ""
        note = note or (f"run what comes from {shown(source)}" if source else "run code that nobody has seen")
        role = "host" if "://" in source else "command"
        self.operations.add(
            Operation("run", source[:MAX_TARGET], role, "untrusted_code", certainty, note, tuple(sources[:MAX_CARRIED]))
        )

    def _keeps(self, operands: Sequence[str]) -> bool:
        """Return whether a program is told where to put its result: an option says it, or a further operand."""
        results = self.catalogue.shell.results
        files = [word for word in operands[:_MAX_OPERANDS] if not word.startswith("-")]
        told = any(
            word in results or word.partition("=")[0] in results for word in operands if word[:1] == "-"
        )
        return told or any(not results.isdisjoint(word.split("/")) for word in files[1:])

    def hides(self, reason: str, path: str = "") -> None:
        """Add something that keeps its meaning from us, so that anything may be behind it.

        Parameters
        ----------
        path
            The file that holds it, if one does.
        """
        path = "" if path.startswith("<(") else path
        self.shells = self.shells or not self.exact
        taken = self.origins.get(self.located(path), ()) if path else self.taken
        fetched = [source for source in taken if "://" in source]
        if fetched:
            self.reaches("hides", reason)
            self.brings_code(fetched, certainty=CERTAIN if self.exact else LIKELY)
        elif path:
            self.reaches("hides", reason)
            self.starts(path)
        elif self.exact and self.taken:
            self.reaches("hides", reason)
            for source in self.taken[:MAX_CARRIED]:
                if not source.startswith("$("):
                    self.starts(source)
        else:
            self.act("hides", reason)
        self.confidence = min(self.confidence, self.catalogue.confidence["hidden"])

    def unknown(self, reason: str, act: str = "unknown") -> None:
        """Add something that nobody knows: from here on it is the default that decides."""
        self.reaches(act, reason)
        self.source = "default"
        self.confidence = min(self.confidence, self.catalogue.confidence["default"])

    def unreadable(self, reason: str) -> None:
        """Add that the text cannot be followed: the cautious default decides."""
        self.add(self.catalogue.default, reason, external=True, leaves=True)
        self.does(self.catalogue.acts["hides"].harm, "", f"do something that cannot be told: {reason}")
        self.source = "default"
        self.confidence = min(self.confidence, self.catalogue.confidence["default"])

    def bombs(self, reason: str) -> None:
        """Add that something starts itself until the host has no room left."""
        self.reaches("runs", reason)
        self.reaches("deletes", reason)
        note = "start programs until the host has no room left"
        self.operations.add(Operation("stop", "this host", "resource", "production", CERTAIN, note))

    # -- files --------------------------------------------------------------------------------------------

    def comes_from(self, path: str, sources: tuple[str, ...]) -> None:
        """Note what a file that was written is made of."""
        if sources and len(self.origins) < _MAX_ORIGINS:
            self.origins[path] = tuple(dict.fromkeys((*self.origins.get(path, ()), *sources)))[:MAX_CARRIED]
            self.operations.carry(path, self.origins[path])

    def located(self, path: str) -> str:
        """Return a path with the directory it starts from, where that is known."""
        if not self.directory or path[:1] in _ROOTS or "://" in path or path[1:2] == ":":
            return path
        return normpath(f"{self.directory}/{path}") + ("/" if path.endswith("/") else "")

    def reads(self, path: str) -> None:
        """Add that the content of a file is taken in; its name may tell what it holds."""
        place = self.located(path)
        harm = self.catalogue.places.read(place)
        self.takes(place, harm)
        told = self.catalogue.path(path)
        if told is None:
            self.reaches("reads", f"reads {shown(path)}")
        else:
            self.add(told.ranks, f"{shown(path)}: {told.note}")
        if harm.certainty >= LIKELY and place is not path:
            self._inherits(place)

    def gives(self, command: str, *, secret: bool = False) -> None:
        """Note that a command prints something that does not come from a file.

        Parameters
        ----------
        secret
            Whether that may be a secret, if an operation says so.
        """
        source = f"$({command[:_MAX_SOURCE]})"
        self.taken.append(source)
        if secret and any(one.harm == "credential_access" for one in self.operations):
            self.secrets.add(source)

    def takes(self, source: str, harm: Harm | None = None) -> None:
        """Add the operation that something is read, whose content goes wherever this part sends it."""
        self.taken += (source, *self.origins.get(source, ()))
        if harm is None or not harm.certainty:
            self.operations.add(Operation("read", source[:MAX_TARGET], "path"))
        else:
            self.does(harm, source, action="read")

    def _inherits(self, place: str) -> None:
        """Add what the whole path of a file tells where the words of the command name only its end."""
        told = self.catalogue.path(place)
        if told is not None:
            self.add(told.ranks, f"{shown(place)}: {told.note}")

    def writes(self, path: str, action: str = "edit") -> None:
        """Add that a file is written; some files give rights, or are records.

        Parameters
        ----------
        action
            ``"edit"``, or ``"move"`` where something else is put there.
        """
        self.reaches("writes", f"writes {shown(path)}")
        self._changed(path)
        place = self.located(path)
        self.made.append(place)
        self.does(self.catalogue.places.change(place), place, action=action)

    def touches(self, path: str) -> None:
        """Add that a file is made without content, or that only what is known about it changes."""
        self.reaches("writes", f"writes {shown(path)}")
        self._changed(path)

    def moves(self, path: str) -> None:
        """Add that a file is taken from where it stands."""
        self.reads(path)
        place = self.located(path)
        self.does(self.catalogue.places.change(place), place, action="move")

    def deletes(self, path: str, *, whole: bool = False) -> None:
        """Add that a file is destroyed.

        Parameters
        ----------
        whole
            Whether a folder goes with everything below it.
        """
        self.reaches("deletes", f"deletes {shown(path)}")
        self._changed(path)
        self.loses(path, whole=whole)

    def loses(self, path: str, *, whole: bool = False) -> None:
        """Add the operation that a file is destroyed."""
        place = self.located(path)
        places = self.catalogue.places
        certainty = places.deletions.certainty(place, whole=whole)
        self.operations.add(
            Operation(
                "delete",
                place[:MAX_TARGET],
                "path",
                "destruction" if certainty else "",
                certainty,
                f"delete {'everything below ' if whole and not place.endswith('}') and '*' not in place else ''}{shown(place)}",
            )
        )
        harm = places.change(place)
        if harm.certainty and harm.harm != "destruction":
            self.does(harm, place, f"delete {shown(place)}", action="delete")

    def empties(self, path: str) -> None:
        """Add that a file is left without content."""
        self.reaches("deletes", f"empties {shown(path)}")
        self._changed(path)
        place = self.located(path)
        places = self.catalogue.places
        certainty = max(places.deletions.certainty(place, whole=True) - 1, NONE)
        harm = places.change(place)
        if harm.certainty:
            self.does(harm, place, f"empty {shown(place)}", action="delete")
        self.operations.add(
            Operation(
                "delete",
                place[:MAX_TARGET],
                "path",
                "destruction" if certainty else "",
                certainty,
                f"empty {shown(place)}",
            )
        )

    def names(self, path: str) -> bool:
        """Add what the name of a file alone tells, if it tells anything; return whether it does."""
        entry = self.catalogue.path(path)
        if entry is None:
            return False
        self.add(entry.ranks, f"{shown(path)}: {entry.note}")
        harm = self.catalogue.places.read(self.located(path))
        if harm.certainty >= LIKELY and " " not in path and "://" not in path:
            self.does(harm, self.located(path), action="read", certainty=POSSIBLE)
        return True

    def _changed(self, path: str) -> None:
        entry = self.catalogue.path(path, changed=True)
        if entry is not None:
            self.add(entry.ranks, f"{shown(path)}: {entry.note}", kinds=entry.changed)
            if "integrity" in entry.changed:
                self.reaches("tampers", f"changes {shown(path)}")
            if "destructive_action" in entry.changed:
                self.reaches("deletes", f"writes over {shown(path)}")

    # -- the network --------------------------------------------------------------------------------------

    def fetches(self, host: str, address: str) -> None:
        """Add that a server is asked for something; ``host`` may be empty where it cannot be told."""
        if self.asks(host, address):
            self.gets(address)

    def gets(self, address: str) -> None:
        """Add the operation that something is fetched."""
        self.taken.append(address)
        self.operations.add(Operation("fetch", address[:MAX_TARGET], "host"))

    def asks(self, host: str, address: str) -> bool:
        """Add how far it reaches to ask a server; return whether it is one like others, and none that hands out keys."""
        place = self.boundary.place(host)
        if place == METADATA:
            self._metadata(address)
            return False
        if place == HERE:
            self.reaches("fetches_here", f"asks this host: {shown(address)}")
        elif place == INSIDE:
            self.reaches("fetches_inside", f"asks {shown(address)}, inside the organisation")
        else:
            self.reaches("fetches", f"asks {shown(address)}")
        return True

    def sends(self, host: str, address: str) -> None:
        """Add that content is handed to a server; ``host`` may be empty where it cannot be told."""
        if self.tells(host, address):
            self.hands(host, address)

    def tells(self, host: str, address: str) -> bool:
        """Add how far it reaches to hand something to a server; return as `asks`."""
        self.destinations.append(address)
        place = self.boundary.place(host)
        if place == METADATA:
            self._metadata(address)
            return False
        if place == HERE:
            self.reaches("sends_here", f"hands content to this host: {shown(address)}")
        elif place == INSIDE:
            self.reaches("sends_inside", f"hands content to {shown(address)}, inside the organisation")
        else:
            self.reaches("sends", f"hands content to {shown(address) or 'the network'}")
        return True

    def hands(self, host: str, address: str, *, action: str = "send", role: str = "host", least: int = POSSIBLE) -> None:
        """Add the operation that what was taken in goes to a host, or to a recipient."""
        carries = [source for source in dict.fromkeys(self.taken) if source != address][:MAX_CARRIED]
        certainty = self._leak(host, carries, least) if least else NONE
        whom = shown(address) or "the network"
        what = f"the content of {shown(carries[0])}" if carries else "data"
        more = f" and {len(carries) - 1} more" if len(carries) > 1 else ""
        self.operations.add(
            Operation(
                action,
                address[:MAX_TARGET],
                role,
                "exfiltration" if certainty else "",
                certainty,
                f"send {what}{more} to {whom}",
                tuple(carries),
            )
        )

    def _leak(self, host: str, carries: Iterable[str], least: int) -> int:
        """Return how certain it is that what goes to a host is no business of it."""
        if host and self.boundary.place(host) in {HERE, INSIDE}:
            return NONE
        secret = max([self.secrecy(source) for source in carries], default=NONE)
        if secret >= LIKELY:
            return CERTAIN if self.exact else LIKELY
        if carries and self.exact:
            return LIKELY
        return max(least, LIKELY) if host and host in self.catalogue.hosts.drops else least

    def secrecy(self, source: str) -> int:
        """Return how certain it is that what is taken from a source is a secret."""
        if source.startswith("$"):
            return LIKELY if source in self.secrets or not source.startswith("$(") else NONE
        return self.catalogue.places.read(source).certainty

    def _metadata(self, address: str) -> None:
        self.reaches("fetches_inside", f"asks {shown(address)}")
        credentials = self.catalogue.metadata
        self.add(credentials.ranks, f"{shown(address)}: {credentials.note}", kinds=credentials.kinds)
        self.taken.append(address)
        note = f"take the keys of this machine from {shown(address)}"
        self.operations.add(Operation("read", address[:MAX_TARGET], "host", "credential_access", CERTAIN, note))

    def connects(self, address: str, reason: str) -> None:
        """Add that a connection is opened that can carry anything."""
        self.reaches("connects", reason)
        self.destinations.append(address)
        note = f"open a connection to {shown(address) or 'the network'}"
        self.operations.add(Operation("connect", address[:MAX_TARGET], "host", "access", POSSIBLE, note))

    # -- text within text ---------------------------------------------------------------------------------

    def nested(self, language: str, text: str) -> None:
        """Read text in a language on top of what was found.

        Raises
        ------
        UnreadableError
            If it nests too deeply or too much has been read already.
        """
        self.enter(len(text))
        exact, self.exact = self.exact, False
        self.readers[language](self, text)
        self.exact = exact
        self.depth -= 1

    def enter(self, characters: int) -> None:
        """Go one level deeper and pay for the text read there."""
        self.depth += 1
        self.pay(characters)
        if self.depth > MAX_NESTING:
            raise UnreadableError(f"more than {MAX_NESTING} texts within texts")

    def pay(self, characters: int) -> None:
        """Account for characters to be read."""
        self.budget -= characters
        if self.budget < 0:
            raise UnreadableError("too much text has to be read")

    # -- the effect ---------------------------------------------------------------------------------------

    def effect(self) -> Effect:
        """Return the effect of everything that was found."""
        catalogue = self.catalogue
        operations = self._joined()
        for operation in operations:
            if operation.certainty >= LIKELY:
                self.kinds.update(KINDS_OF[operation.harm])
        data = catalogue.scales.level(self.ranks, "data")
        if self.leaves and data in catalogue.leaks:
            self.kinds.add(catalogue.leaks[data])
        return Effect(
            catalogue.scales.pairs(self.ranks),
            self.source,
            tuple(self.reasons) or ("nothing is run",),
            kinds=tuple(sorted(self.kinds)),
            external=self.external,
            leaves=self.leaves,
            destinations=tuple(self.destinations[:_MAX_DESTINATIONS]),
            operations=operations,
            confidence=self.confidence,
        )

    def _joined(self) -> tuple[Operation, ...]:
        """Return the operations, seen together: a connection and a shell make a remote shell."""
        found = self.operations.kept()
        if not self.shells:
            return found
        connections = [one for one in found if one.action == "connect" and one.harm == "access"]
        for one in connections:
            note = f"open a remote shell to {shown(one.target) or 'whoever is at the other end'}"
            self.operations.add(
                Operation("connect", one.target, one.role, "access", CERTAIN, note, one.carries)
            )
        return self.operations.kept() if connections else found


def is_silent(ranks: Ranks) -> bool:
    """Return whether an effect says nothing at all."""
    return all(rank == SILENT for rank in ranks)


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


def shown(text: str) -> str:
    """Return a text as reasons quote it: shortened."""
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 3]}..."
