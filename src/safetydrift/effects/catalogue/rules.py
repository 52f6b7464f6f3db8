"""Rules about programs: what a command does to what, and which harm that is if nobody asked for it.

`ProgramEntry` says how far a program reaches, `ProgramRule` what it is about. All rules of a program that hold count,
so that one rule asks one question; the effect of a program is not decided here.
"""

from __future__ import annotations

from safetydrift.effects.catalogue.globs import Globs
from safetydrift.effects.catalogue.harms import read_harm
from safetydrift.effects.operations import CERTAIN, LIKELY
from safetydrift.errors import CatalogueError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from safetydrift.effects.catalogue.plain import Entry

TARGETS = ("command", "operands", "first", "second", "last", "rest", "values", "hosts", "found", "nothing")
"""Where the targets of a rule stand: the whole command; the operands behind the subcommand, or one of them; all of them
as one; the values of some options; the hosts that the words name; what a search finds; nowhere."""
COPIED = ("", "copied", "sent")
_WILD = frozenset("*?[")


class ProgramRule:
    """What commands of some programs do that are given certain words.

    Attributes
    ----------
    programs
        Names of programs without directory.
    first
        Globs for the subcommand: the first operand, or the first two or three joined by spaces.
    words, also, lacks
        Globs for any one word, or for two neighbours joined by a space. Of `words` and of `also` one has to be there,
        where any are given; of `lacks` none may. ``fold`` has the case of letters ignored.
    harm
        What it does.
    target, options
        Where its targets stand, one of `TARGETS`; the options of which the values are meant.
    depth
        How many operands the subcommand has; as many as its first pattern has words, if it is not said.
    named
        What its target is where the words do not tell it.
    raised
        Globs for words or targets that make the harm at least that certain, highest first.
    spared
        Globs for targets with which there is no harm.
    whole
        Whether folders are deleted with everything below them.
    otherwise
        Whether it only counts where no rule before it did.
    """

    __slots__ = (
        "also",
        "depth",
        "first",
        "harm",
        "keys",
        "lacks",
        "named",
        "options",
        "otherwise",
        "programs",
        "raised",
        "spared",
        "target",
        "whole",
        "words",
    )

    def __init__(self, entry: Entry) -> None:
        self.programs = entry.named("programs")
        first = entry.texts("first")
        fold = entry.flag("fold")
        self.first = Globs(first, fold=fold)
        self.keys = frozenset() if fold else _keys(first)
        self.words = Globs(entry.texts("words"), fold=fold)
        self.also = Globs(entry.texts("also"), fold=fold)
        self.lacks = Globs(entry.texts("lacks"), fold=fold)
        self.harm = read_harm(entry)
        self.target = entry.text("target") or "command"
        if self.target not in TARGETS:
            raise CatalogueError(f"{entry.where}: target is one of {', '.join(TARGETS)}, got {self.target!r}")
        self.options = Globs(entry.texts("options"), fold=fold)
        if bool(self.options) is not (self.target == "values"):
            raise CatalogueError(f"{entry.where}: options go with target = 'values'")
        self.depth = entry.count("depth") or (len(first[0].split()) if first else 0)
        self.named = entry.text("named")
        raised = [
            (CERTAIN, Globs(entry.texts("certain"), fold=True)),
            (LIKELY, Globs(entry.texts("likely"), fold=True)),
        ]
        self.raised = tuple([pair for pair in raised if pair[1]])
        self.spared = Globs(entry.texts("spared"), fold=True)
        self.whole = entry.flag("whole")
        self.otherwise = entry.flag("otherwise")
        entry.done()

    def holds(self, firsts: Sequence[str], given: Sequence[str]) -> bool:
        """Return whether it speaks of a command.

        Parameters
        ----------
        firsts
            The first operand, the first two and the first three, joined.
        given
            The words, and all neighbours joined.
        """
        return (
            (not self.first or self.first.any_of(firsts))
            and (not self.words or self.words.any_of(given))
            and (not self.also or self.also.any_of(given))
            and not (self.lacks and self.lacks.any_of(given))
        )

    def certainty(self, target: str, given: Iterable[str]) -> int:
        """Return how certain its harm is for a target."""
        least = self.harm.certainty
        if not least or (self.spared and target in self.spared):
            return 0
        for certainty, words in self.raised:
            if certainty > least and (target in words or words.any_of(given)):
                return certainty
        return least


class TransferRule:
    """Which words of a program name what goes out with it.

    Attributes
    ----------
    programs, first
        As in `ProgramRule`.
    inputs
        Globs for options whose value is a file that is handed over.
    attached
        Globs for options whose value names such a file behind ``@`` or ``<``.
    copied
        ``"copied"`` if the last operand is where the others go, on this host or another; ``"sent"`` if all operands go
        out; else empty.
    depth
        How many operands the subcommand has.
    slots
        Globs for options whose value is no content: headers, users, keys that say who asks.
    lacks
        Globs for words with which nothing is handed over.
    feeds
        Globs for words with which it hands over what it is fed; where there are none, it always does.
    aliases
        Whether another place is named without a sign of it: what is not clearly a path of this host.
    within
        Whether what looks like another host stays on this one: a container, a device at the cable.
    """

    __slots__ = (
        "aliases",
        "attached",
        "copied",
        "depth",
        "feeds",
        "first",
        "inputs",
        "lacks",
        "programs",
        "slots",
        "within",
    )

    def __init__(self, entry: Entry) -> None:
        self.programs = entry.named("programs")
        first = entry.texts("first")
        self.first = Globs(first)
        self.inputs = Globs(entry.texts("inputs"))
        self.attached = Globs(entry.texts("attached"))
        self.slots = Globs(entry.texts("slots"))
        self.lacks = Globs(entry.texts("lacks"))
        self.feeds = Globs(entry.texts("feeds"))
        self.within = entry.flag("within")
        self.aliases = entry.flag("aliases")
        self.copied = entry.text("operands")
        if self.copied not in COPIED:
            raise CatalogueError(f"{entry.where}: operands is 'copied' or 'sent', got {self.copied!r}")
        self.depth = len(first[0].split()) if first else 0
        entry.done()


class ProgramRules:
    """The rules of all programs, found by name and subcommand."""

    __slots__ = ("_anyhow", "_keyed", "_transfers")

    def __init__(self, rules: Iterable[ProgramRule], transfers: Iterable[TransferRule]) -> None:
        self._keyed: dict[str, dict[str, list[tuple[int, ProgramRule]]]] = {}
        self._anyhow: dict[str, list[tuple[int, ProgramRule]]] = {}
        self._transfers: dict[str, list[TransferRule]] = {}
        for place, rule in enumerate(rules):
            for name in rule.programs:
                if rule.keys:
                    keyed = self._keyed.setdefault(name, {})
                    for key in rule.keys:
                        keyed.setdefault(key, []).append((place, rule))
                else:
                    self._anyhow.setdefault(name, []).append((place, rule))
        for transfer in transfers:
            for name in transfer.programs:
                self._transfers.setdefault(name, []).append(transfer)

    def of(self, program: str, subcommand: str) -> list[ProgramRule]:
        """Return the rules that may hold of a program whose first operand is this, in the order they are tried."""
        anyhow = self._anyhow.get(program, [])
        keyed = self._keyed.get(program)
        if keyed is None or subcommand not in keyed:
            return [rule for _, rule in anyhow]
        return [rule for _, rule in sorted([*anyhow, *keyed[subcommand]], key=lambda pair: pair[0])]

    def knows(self, program: str) -> bool:
        """Return whether there are any rules of a program."""
        return program in self._anyhow or program in self._keyed

    def transfers(self, program: str) -> Sequence[TransferRule]:
        """Return what is known of what goes out with a program."""
        return self._transfers.get(program, ())


def _keys(first: Iterable[str]) -> frozenset[str]:
    """Return the first words of subcommands; none if one of them is a pattern itself."""
    keys = {pattern.partition(" ")[0] for pattern in first}
    return frozenset() if any(_WILD.intersection(key) for key in keys) else frozenset(keys)
