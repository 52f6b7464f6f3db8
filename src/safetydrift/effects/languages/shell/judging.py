"""What a command does to what: the rules of the catalogue about its program, applied to its words."""

from __future__ import annotations

from itertools import pairwise

from safetydrift.effects.languages.shell.reach import addresses_of, changes, hosts_in, reaches
from safetydrift.effects.languages.shell.transfers import hand_over, secrets_in
from safetydrift.effects.operations import CERTAIN, MAX_TARGET, POSSIBLE, Operation
from safetydrift.effects.reading import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from safetydrift.effects.catalogue.entries import ProgramCase, ProgramEntry
    from safetydrift.effects.catalogue.rules import ProgramRule, TransferRule
    from safetydrift.effects.catalogue.scales import Ranks
    from safetydrift.effects.languages.shell.reach import Host
    from safetydrift.effects.reading import Reading

_SENDING = frozenset(("send", "publish"))
_MAX_WORDS = 128
_MAX_TARGETS = 16
_OF_KINDS = {
    "destructive_action": ("delete", "destruction"),
    "integrity": ("edit", "integrity"),
    "privilege_escalation": ("grant", "privilege"),
    "unauthorised_transaction": ("pay", "transaction"),
}


class Command:
    """A command as rules see it.

    Attributes
    ----------
    words
        The program and its arguments.
    operands
        The words that are neither options nor their values.
    firsts
        The first operand, the first two and the first three, joined.
    given
        The words behind the program, and all neighbours joined.
    """

    __slots__ = ("entry", "firsts", "given", "name", "operands", "start", "words")

    def __init__(self, entry: ProgramEntry, words: Sequence[str], start: int) -> None:
        self.entry, self.words, self.start = entry, words[:_MAX_WORDS], start
        self.name = words[0].rpartition("/")[2]
        self.operands = _operands(entry, self.words)
        first = self.operands[:3]
        self.firsts = [" ".join(first[:count]) for count in range(1, len(first) + 1)]
        own = self.words[1:start] if entry.wraps else self.words[1:]
        self.given = [*own, *[f"{one} {two}" for one, two in pairwise(own)]]

    def text(self) -> str:
        """Return the command as one text."""
        return " ".join(self.words)[:MAX_TARGET]

    def hosts(self) -> list[Host]:
        """Return the hosts that its words name."""
        return hosts_in(self.entry, self.words, self.start) or addresses_of(self.words[1:])


def judge(
    reading: Reading,
    command: Command,
    ranks: Ranks,
    kinds: Sequence[str],
    carried: Mapping[str, tuple[str, ...]],
    *,
    leaves: bool,
    idle: bool,
) -> None:
    """Add what a command does to what.

    Parameters
    ----------
    ranks, kinds, leaves
        Its effect, which tells what it does where no rule holds.
    carried
        What its words come from.
    idle
        Whether what it does is told by something else: the command that it runs, the files it names.
    """
    transfer = _transfer(reading, command)
    secrets_in(reading, transfer, command.words)
    hosts = None
    if transfer is not None:
        hosts = hand_over(reading, transfer, command.words, command.operands[transfer.depth :], carried)
    if _ruled(reading, command) or idle or hosts == []:
        return
    _otherwise(reading, command, ranks, kinds, hosts, leaves=leaves)


def _transfer(reading: Reading, command: Command) -> TransferRule | None:
    for rule in reading.catalogue.rules.transfers(command.name):
        if not rule.first or rule.first.any_of(command.firsts):
            return rule
    return None


def _ruled(reading: Reading, command: Command) -> bool:
    """Apply the rules; return whether one held."""
    held = False
    for rule in reading.catalogue.rules.of(command.name, command.operands[0] if command.operands else ""):
        if (held and rule.otherwise) or not rule.holds(command.firsts, command.given):
            continue
        held = True
        _apply(reading, command, rule)
    return held


def _apply(reading: Reading, command: Command, rule: ProgramRule) -> None:
    harm = rule.harm
    for target in _targets(command, rule)[:_MAX_TARGETS]:
        place = reading.located(target) if harm.role == "path" else target
        certainty = rule.certainty(place, command.given)
        if harm.action in _SENDING and harm.harm == "exfiltration":
            host = next((host for host, word in command.hosts() if word == target), "")
            reading.hands(host, target, action=harm.action, role=harm.role, least=certainty)
        elif harm.action == "delete" and harm.role == "path" and harm.harm == "destruction":
            reading.loses(target, whole=certainty == CERTAIN)
        else:
            reading.does(harm, place, certainty=certainty, carries=reading.taken if harm.action == "push" else ())


def _targets(command: Command, rule: ProgramRule) -> list[str]:
    """Return the targets of a rule; what it names itself, or the command, where the words name none."""
    found = _FINDERS[rule.target](command, rule)
    return found or [rule.named or command.text()]


def _behind(command: Command, rule: ProgramRule) -> list[str]:
    return command.operands[rule.depth :]


def _values(command: Command, rule: ProgramRule) -> list[str]:
    found = []
    for at, word in enumerate(command.words[1:], 1):
        if word[:1] in "-/" or "=" in word:
            option, equals, value = word.partition("=")
            if word in rule.options and at + 1 < len(command.words):
                found.append(command.words[at + 1])
            elif equals and option in rule.options:
                found.append(value)
    return found


_FINDERS = {
    "command": lambda command, rule: [rule.named or command.text()],
    "operands": _behind,
    "first": lambda command, rule: _behind(command, rule)[:1],
    "second": lambda command, rule: _behind(command, rule)[1:2],
    "last": lambda command, rule: _behind(command, rule)[-1:],
    "rest": lambda command, rule: [" ".join(_behind(command, rule))] if _behind(command, rule) else [],
    "values": _values,
    "hosts": lambda command, rule: [word for _, word in command.hosts()],  # noqa: ARG005
    "nothing": lambda command, rule: [rule.named],  # noqa: ARG005
}


def _otherwise(
    reading: Reading,
    command: Command,
    ranks: Ranks,
    kinds: Sequence[str],
    hosts: list[Host] | None,
    *,
    leaves: bool,
) -> None:
    """Add what the effect of a command alone tells."""
    if reaches(reading, ranks):
        for host, word in hosts or command.hosts() or [("", "")]:
            if leaves or reading.taken or hosts:
                reading.hands(host, word)
            else:
                reading.operations.add(Operation("fetch", word[:MAX_TARGET] or command.text(), "host"))
                reading.taken.append(word or command.text())
    for kind in kinds:
        action, harm = _OF_KINDS.get(kind, ("", ""))
        if harm:
            note = f"run {shown(command.text())}"
            reading.operations.add(Operation(action, command.text(), "command", harm, POSSIBLE, note))
    if not kinds and not reaches(reading, ranks):
        action = "edit" if changes(reading, ranks) else "read"
        if ranks[reading.tool] > 1:
            action = "run"
        reading.operations.add(Operation(action, command.text(), "command"))


def _operands(entry: ProgramEntry, words: Sequence[str]) -> list[str]:
    found: list[str] = []
    value = only = False
    for word in words[1:]:
        if value:
            value = False
        elif only or word == "-" or not _is_option(entry, word):
            found.append(word)
        elif word == "--":
            only = True
        else:
            value = word in entry.valued
    return found


def _is_option(entry: ProgramEntry, word: str) -> bool:
    return word[:1] == "-" or (entry.slashes and word[:1] == "/" and "/" not in word[1:])


