"""The reading of one call: the join of everything that it was found to do, while it is being read.

The labeler opens a reading, the readers of languages write into it, and may hand text on to one another: a shell
command that runs Python code that runs SQL is one reading. Work is bounded by a common budget.
"""

from __future__ import annotations

from safetydrift.effects.boundary import HERE, INSIDE, METADATA
from safetydrift.effects.catalogue.scales import SILENT, join
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
_MAX_SHOWN = 60


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
    """

    __slots__ = (
        "boundary",
        "budget",
        "catalogue",
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
        self.catalogue, self.boundary, self.readers = catalogue, boundary, readers
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

    def act(self, name: str, reason: str) -> None:
        """Add one of the `ACTS`."""
        act = self.catalogue.acts[name]
        self.add(act.ranks, reason, kinds=act.kinds, external=act.external, leaves=act.leaves)

    def runs(self, program: str, operands: Sequence[str] = ()) -> None:
        """Add that a program named by its path is run; its name may tell that it only looks."""
        shell = self.catalogue.shell
        _, _, name = program.rpartition("/")
        looks = name in shell.checkers and name not in shell.makers and not self._keeps(operands)
        if looks and not program.startswith(tuple(shell.unchecked)):
            self.act("checks", f"runs {shown(program)}, a name for a program that looks and reports")
            self.confidence = min(self.confidence, self.catalogue.confidence["pattern"])
        else:
            self.act("runs", f"runs the local program {shown(program)}")

    def _keeps(self, operands: Sequence[str]) -> bool:
        """Return whether a program is told where to put its result: an option says it, or a further operand."""
        results = self.catalogue.shell.results
        files = [word for word in operands[:_MAX_OPERANDS] if not word.startswith("-")]
        told = any(
            word in results or word.partition("=")[0] in results for word in operands if word[:1] == "-"
        )
        return told or any(not results.isdisjoint(word.split("/")) for word in files[1:])

    def hides(self, reason: str) -> None:
        """Add something that keeps its meaning from us, so that anything may be behind it."""
        self.act("hides", reason)
        self.confidence = min(self.confidence, self.catalogue.confidence["hidden"])

    def unknown(self, reason: str, act: str = "unknown") -> None:
        """Add something that nobody knows: from here on it is the default that decides."""
        self.act(act, reason)
        self.source = "default"
        self.confidence = min(self.confidence, self.catalogue.confidence["default"])

    def unreadable(self, reason: str) -> None:
        """Add that the text cannot be followed: the cautious default decides."""
        self.add(self.catalogue.default, reason, external=True, leaves=True)
        self.source = "default"
        self.confidence = min(self.confidence, self.catalogue.confidence["default"])

    # -- files --------------------------------------------------------------------------------------------

    def reads(self, path: str) -> None:
        """Add that the content of a file is taken in; its name may tell what it holds."""
        if not self.names(path):
            self.act("reads", f"reads {shown(path)}")

    def writes(self, path: str) -> None:
        """Add that a file is written; some files give rights, or are records."""
        self.act("writes", f"writes {shown(path)}")
        self._changed(path)

    def deletes(self, path: str) -> None:
        """Add that a file is destroyed."""
        self.act("deletes", f"deletes {shown(path)}")
        self._changed(path)

    def names(self, path: str) -> bool:
        """Add what the name of a file alone tells, if it tells anything; return whether it does."""
        entry = self.catalogue.path(path)
        if entry is None:
            return False
        self.add(entry.ranks, f"{shown(path)}: {entry.note}")
        return True

    def _changed(self, path: str) -> None:
        entry = self.catalogue.path(path, changed=True)
        if entry is not None:
            self.add(entry.ranks, f"{shown(path)}: {entry.note}", kinds=entry.changed)
            if "integrity" in entry.changed:
                self.act("tampers", f"changes {shown(path)}")
            if "destructive_action" in entry.changed:
                self.act("deletes", f"writes over {shown(path)}")

    # -- the network --------------------------------------------------------------------------------------

    def fetches(self, host: str, address: str) -> None:
        """Add that a server is asked for something; ``host`` may be empty where it cannot be told."""
        place = self.boundary.place(host)
        if place == METADATA:
            self._metadata(address)
        elif place == HERE:
            self.act("fetches_here", f"asks this host: {shown(address)}")
        elif place == INSIDE:
            self.act("fetches_inside", f"asks {shown(address)}, inside the organisation")
        else:
            self.act("fetches", f"asks {shown(address)}")

    def sends(self, host: str, address: str) -> None:
        """Add that content is handed to a server; ``host`` may be empty where it cannot be told."""
        self.destinations.append(address)
        place = self.boundary.place(host)
        if place == METADATA:
            self._metadata(address)
        elif place == HERE:
            self.act("sends_here", f"hands content to this host: {shown(address)}")
        elif place == INSIDE:
            self.act("sends_inside", f"hands content to {shown(address)}, inside the organisation")
        else:
            self.act("sends", f"hands content to {shown(address) or 'the network'}")

    def _metadata(self, address: str) -> None:
        self.act("fetches_inside", f"asks {shown(address)}")
        credentials = self.catalogue.metadata
        self.add(credentials.ranks, f"{shown(address)}: {credentials.note}", kinds=credentials.kinds)

    # -- text within text ---------------------------------------------------------------------------------

    def nested(self, language: str, text: str) -> None:
        """Read text in a language on top of what was found.

        Raises
        ------
        UnreadableError
            If it nests too deeply or too much has been read already.
        """
        self.enter(len(text))
        self.readers[language](self, text)
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
            confidence=self.confidence,
        )


def is_silent(ranks: Ranks) -> bool:
    """Return whether an effect says nothing at all."""
    return all(rank == SILENT for rank in ranks)


def shown(text: str) -> str:
    """Return a text as reasons quote it: shortened."""
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 3]}..."
