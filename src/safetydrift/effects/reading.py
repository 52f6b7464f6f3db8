"""The reading of one call: the join of everything that it was found to do, while it is being read.

The labeler opens a reading, the readers of languages write into it, and may hand text on to one another: a shell
command that runs Python code that runs SQL is one reading. Work is bounded by a common budget.
"""

from __future__ import annotations

from safetydrift.effects.boundary import HERE, INSIDE, METADATA
from safetydrift.effects.catalogue.scales import SILENT, join
from safetydrift.effects.operations import CERTAIN, LIKELY, POSSIBLE
from safetydrift.effects.recording import Recorder, shown, would
from safetydrift.states.effect import Effect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from safetydrift.effects.boundary import Boundary
    from safetydrift.effects.catalogue import Catalogue
    from safetydrift.effects.catalogue.scales import Ranks

    Reader = Callable[["Reading", str], None]

MAX_TEXT = 64 * 1024
"""Longer text in a language is not read."""
MAX_NESTING = 8
"""Deeper texts within texts are not read."""
_BUDGET = 4 * MAX_TEXT
"""What may be done for one call, in units of a quarter of a microsecond on a usual machine."""
_PRICE_OF_TEXT = 200
_MAX_REASONS = 12
_MAX_DESTINATIONS = 16
_MAX_OPERANDS = 64
ONE_LINER = 512
"""Shorter code reads what it reads to do one thing with it, in characters."""
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


__all__ = ["MAX_NESTING", "MAX_TEXT", "ONE_LINER", "Reading", "UnreadableError", "is_silent", "shown"]


class UnreadableError(ValueError):
    """Text that cannot be followed; the message says why."""


class Reading(Recorder):
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
    """

    __slots__ = (
        "budget",
        "confidence",
        "depth",
        "destinations",
        "external",
        "kinds",
        "leaves",
        "ranks",
        "readers",
        "reasons",
        "source",
    )

    def __init__(self, catalogue: Catalogue, boundary: Boundary, readers: Mapping[str, Reader]) -> None:
        super().__init__(catalogue, boundary)
        self.readers = readers
        self.ranks: Ranks = catalogue.scales.lowest
        self.kinds: set[str] = set()
        self.external = self.leaves = False
        self.source = "rule"
        self.confidence = catalogue.confidence["rule"]
        self.reasons: list[str] = []
        self.destinations: list[str] = []
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
        if self.starts_hidden(path):
            self.reaches("hides", reason)
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
        words = "start programs until the host has no room left"
        self.note("stop", "this host", "resource", ("production", CERTAIN, words))

    # -- files --------------------------------------------------------------------------------------------

    def reads(self, path: str) -> None:
        """Add that the content of a file is taken in; its name may tell what it holds."""
        place = self.located(path)
        self.takes(place)
        told = self.catalogue.path(path)
        if told is None:
            self.reaches("reads", f"reads {shown(path)}")
        else:
            self.add(told.ranks, f"{shown(path)}: {told.note}")
        if place is not path and self.catalogue.places.read(place).certainty >= LIKELY:
            whole = self.catalogue.path(place)
            if whole is not None:
                self.add(whole.ranks, f"{shown(place)}: {whole.note}")

    def writes(self, path: str, action: str = "edit") -> None:
        """Add that a file is written; some files give rights, or are records.

        Parameters
        ----------
        action
            ``"edit"``, or ``"move"`` where something else is put there.
        """
        self.touches(path)
        place = self.located(path)
        self.made.append(place)
        self.changes(place, action)

    def touches(self, path: str) -> None:
        """Add how far it reaches to write a file, and no operation."""
        self.reaches("writes", f"writes {shown(path)}")
        self._changed(path)

    def moves(self, path: str) -> None:
        """Add that a file is taken from where it stands."""
        self.reads(path)
        self.changes(self.located(path), "move")

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

    def empties(self, path: str) -> None:
        """Add that a file is left without content."""
        self.reaches("deletes", f"empties {shown(path)}")
        self._changed(path)
        self.drains(path)

    def names(self, path: str) -> bool:
        """Add what the name of a file alone tells, if it tells anything; return whether it does."""
        entry = self.catalogue.path(path)
        if entry is None:
            return False
        self.add(entry.ranks, f"{shown(path)}: {entry.note}")
        if " " not in path and "://" not in path:
            place = self.located(path.rpartition("=@")[2])
            harm = self.catalogue.places.read(place)
            if harm.certainty >= LIKELY:
                self.does(harm, place, action="read", certainty=POSSIBLE)
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

    def asks(self, host: str, address: str) -> bool:
        """Add how far it reaches to ask a server; return whether it is one like others, which hands out no keys."""
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

    def _metadata(self, address: str) -> None:
        self.reaches("fetches_inside", f"asks {shown(address)}")
        credentials = self.catalogue.metadata
        self.add(credentials.ranks, f"{shown(address)}: {credentials.note}", kinds=credentials.kinds)
        self.taken.append(address)
        words = f"take the keys of this machine from {shown(address)}"
        self.note("read", address, "host", ("credential_access", CERTAIN, words))

    def connects(self, address: str, reason: str) -> None:
        """Add that a connection is opened that can carry anything."""
        self.reaches("connects", reason)
        self.destinations.append(address)
        words = f"open a connection to {shown(address) or 'the network'}"
        self.note("connect", address, "host", ("access", POSSIBLE, words))

    # -- text within text ---------------------------------------------------------------------------------

    def nested(self, language: str, text: str) -> None:
        """Read text in a language on top of what was found.

        Raises
        ------
        UnreadableError
            If it nests too deeply or too much has been read already.
        """
        self.enter(len(text))
        before = self.exact, self.code
        self.exact, self.code = len(text) <= ONE_LINER, True
        self.readers[language](self, text)
        self.exact, self.code = before
        self.depth -= 1

    def enter(self, characters: int) -> None:
        """Go one level deeper and pay for the text read there."""
        self.depth += 1
        self.pay(characters + _PRICE_OF_TEXT)
        if self.depth > MAX_NESTING:
            raise UnreadableError(f"more than {MAX_NESTING} texts within texts")

    def pay(self, characters: int) -> None:
        """Account for work, or for as many characters to be read."""
        self.budget -= characters
        if self.budget < 0:
            raise UnreadableError("too much text has to be read")

    # -- the effect ---------------------------------------------------------------------------------------

    def effect(self) -> Effect:
        """Return the effect of everything that was found."""
        catalogue = self.catalogue
        operations = self.found()
        for operation in operations:
            if operation.certainty >= LIKELY:
                self.kinds.update(KINDS_OF[operation.harm])
        if self.beside:
            for operation in self.beside:
                self.operations.add(operation)
            operations = self.operations.kept()
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


def is_silent(ranks: Ranks) -> bool:
    """Return whether an effect says nothing at all."""
    return all(rank == SILENT for rank in ranks)
