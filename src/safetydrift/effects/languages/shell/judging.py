"""What a command does to what: the rules of the catalogue about its program, applied to its words."""

from __future__ import annotations

from itertools import pairwise

from safetydrift.effects.boundary import METADATA
from safetydrift.effects.languages.addresses import host_of
from safetydrift.effects.languages.shell.operands import is_slashed
from safetydrift.effects.languages.shell.reach import addresses_of, changes, hosts_in, reaches
from safetydrift.effects.languages.shell.searches import found_by
from safetydrift.effects.languages.shell.transfers import hand_over, secrets_in
from safetydrift.effects.operations import LIKELY, MAX_TARGET, NONE, POSSIBLE
from safetydrift.effects.reading import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from safetydrift.effects.catalogue.entries import ProgramEntry
    from safetydrift.effects.catalogue.rules import ProgramRule, TransferRule
    from safetydrift.effects.catalogue.scales import Ranks
    from safetydrift.effects.languages.shell.reach import Host
    from safetydrift.effects.languages.shell.transfers import Sources
    from safetydrift.effects.reading import Reading

_SENDING = frozenset(("send", "publish"))
_MAX_WORDS = 128
_MAX_TARGETS = 16
_WRITABLE = ("/tmp", "/var/tmp", "/dev/shm", ".:")  # noqa: S108  # looked for, not written to
_LIBRARIES = ("/usr/lib", "/lib", "/opt/conda", "/opt/homebrew")
_WRITES = 1
"""The rank of what changes files, in the dimension ``tool``."""
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
        The words behind the program, and all two and three neighbours joined.
    """

    __slots__ = ("_given", "entry", "firsts", "name", "operands", "start", "words")

    def __init__(self, reading: Reading, entry: ProgramEntry, words: Sequence[str], start: int) -> None:
        self.entry, self.words, self.start = entry, words[:_MAX_WORDS], start
        self.name = _program_name(reading, words[0])
        self.operands = _operands(entry, self.words)
        first = self.operands[:3]
        self.firsts = [" ".join(first[:count]) for count in range(1, len(first) + 1)]
        self._given: list[str] | None = None

    @property
    def given(self) -> list[str]:
        """The words that belong to the program itself, alone and with their neighbours."""
        if self._given is None:
            end = self.start + self.entry.skip if self.entry.wraps else len(self.words)
            own = self.words[1:end]
            pairs = [f"{one} {two}" for one, two in pairwise(own)]
            self._given = [*own, *pairs, *map(" ".join, zip(own, own[1:], own[2:], strict=False))]
        return self._given

    def text(self) -> str:
        """Return the command as one text."""
        return " ".join(self.words)[:MAX_TARGET]

    def hosts(self) -> list[Host]:
        """Return the hosts that its words name."""
        found = hosts_in(self.entry, self.words, self.start) or addresses_of(self.words[1:])
        return [(host, word) for host, word in found if word[:1] not in {"+", "="}]


def judge(
    reading: Reading,
    command: Command,
    effect: tuple[Ranks, Sequence[str], bool],
    carried: Sources,
    *,
    read: bool,
    told: bool,
) -> None:
    """Add what a command does to what.

    Parameters
    ----------
    effect
        Its levels, its kinds of violation and whether content leaves, which tell what it does where no rule holds.
    carried
        What its words come from.
    read
        Whether what it does is told by what it runs.
    told
        Whether its operands have told already what it does.
    """
    ranks, kinds, leaves = effect
    transfer = _transfer(reading, command)
    secrets_in(reading, transfer, command.words)
    hosts, taken = None, len(reading.taken)
    if transfer is not None:
        hosts = hand_over(reading, transfer, command.words, command.operands[transfer.depth :], carried)
    held = ruled(reading, command)
    if not read and hosts != []:
        if reaches(reading, ranks) and (not held or len(reading.taken) > taken):
            _reach(reading, command, hosts, leaves=leaves)
        elif not held and not told:
            _otherwise(reading, command, ranks, kinds)
    if not reading.taken and _shows(reading, command, ranks, held, read=read):
        reading.gives(command.text(), secret=bool(held))


def variable_set(reading: Reading, name: str, value: str) -> None:
    """Add what it does that a variable of the shell has a value."""
    shell = reading.catalogue.shell
    if name in shell.unrecorded and not (value.isdecimal() and int(value[:9])):
        words = "keep the shell from recording what is typed"
        reading.note("disable", name, "resource", ("safeguards", LIKELY, words))
        reading.reaches("tampers", f"sets {name}")
    elif name == "PATH" and value.startswith(_WRITABLE):
        words = f"have programs of {shown(value.partition(':')[0])} run in place of those of this host"
        reading.note("configure", f"{name}={value}", "command", ("privilege", LIKELY, words))
    elif name in shell.authors and value:
        words = f"sign what is committed as {shown(value)}"
        reading.note("configure", f"{name}={value}", "person", ("integrity", LIKELY, words))
    elif name in shell.preloading and value and not value.startswith(_LIBRARIES):
        words = f"put {shown(value)} into what is started from here"
        reading.note("configure", f"{name}={value}", "command", ("privilege", LIKELY, words))


def ruled(reading: Reading, command: Command) -> set[str]:
    """Apply the rules; return the actions of those that held."""
    held: set[str] = set()
    for rule in reading.catalogue.rules.of(command.name, command.operands[0] if command.operands else ""):
        if not (held and rule.otherwise) and rule.holds(command.firsts, command.given):
            held.add(rule.harm.action)
            _apply(reading, command, rule)
    return held


def _program_name(reading: Reading, word: str) -> str:
    """Return the name under which rules know a program: without its folder, and without what Windows adds to it."""
    name = word.rpartition("/")[2]
    if reading.catalogue.rules.knows(name):
        return name
    return name.rpartition("\\")[2].lower().removesuffix(".exe")


def _transfer(reading: Reading, command: Command) -> TransferRule | None:
    """Return the rule about what goes out with a command."""
    for rule in reading.catalogue.rules.transfers(command.name):
        stays = rule.lacks and rule.lacks.any_of(command.given)
        if not stays and (not rule.first or rule.first.any_of(command.firsts)):
            return rule
    return None


def _shows(reading: Reading, command: Command, ranks: Ranks, held: set[str], *, read: bool) -> bool:
    """Return whether a command prints something of its own that may matter."""
    if command.name in reading.catalogue.shell.trivial:
        return False
    return "read" in held or command.entry.language == "sql" or not (read or changes(reading, ranks))


# -- rules -----------------------------------------------------------------------------------------------


def _apply(reading: Reading, command: Command, rule: ProgramRule) -> None:
    """Add what a rule says of a command, for each of its targets."""
    harm = rule.harm
    sources = [source.removeprefix("$(").removesuffix(")") for source in reading.taken]
    for target in _targets(command, rule)[:_MAX_TARGETS]:
        place = reading.located(target) if harm.role == "path" else target
        certainty = rule.certainty(place, [*command.given, *sources]) if harm.certainty else NONE
        if harm.harm == "untrusted_code" and harm.role == "host" and _is_registry(reading, target):
            certainty = NONE
        _add(reading, command, rule, place, certainty)


def _add(reading: Reading, command: Command, rule: ProgramRule, target: str, certainty: int) -> None:
    harm = rule.harm
    if harm.action in _SENDING and harm.harm == "exfiltration":
        reading.hands(_host(command, target), target, action=harm.action, role=harm.role, least=certainty)
    elif harm.action == "delete" and harm.role == "path" and harm.harm == "destruction":
        reading.loses(target, whole=rule.whole)
    else:
        carries = reading.taken if harm.action == "push" else ()
        reading.does(harm, target, certainty=certainty, carries=carries)
        if harm.action == "connect" and reading.taken and certainty <= POSSIBLE:
            reading.hands(_host(command, target), target)


def _host(command: Command, target: str) -> str:
    """Return the host of a target, empty if it cannot be told."""
    return next((host for host, word in command.hosts() if target.startswith(word)), "")


def _is_registry(reading: Reading, target: str) -> bool:
    return host_of(target) in reading.catalogue.hosts.registries


def _targets(command: Command, rule: ProgramRule) -> list[str]:
    """Return the targets of a rule; what it names itself, or the command, where the words name none."""
    found = [] if rule.target == "command" and rule.named else _FINDERS[rule.target](command, rule)
    return found or [rule.named or command.text()]


def _behind(command: Command, rule: ProgramRule) -> list[str]:
    return command.operands[rule.depth :]


def _rest(command: Command, rule: ProgramRule) -> list[str]:
    rest = _behind(command, rule)
    return [" ".join(rest)] if rest else []


def _values(command: Command, rule: ProgramRule) -> list[str]:
    """Return the values of the options that a rule names."""
    found = []
    for at, word in enumerate(command.words[1:], 1):
        option, equals, value = word.partition("=")
        if word in rule.options and at + 1 < len(command.words):
            found.append(command.words[at + 1])
        elif equals and option in rule.options:
            found.append(value)
    return found


def _hosts(command: Command, rule: ProgramRule) -> list[str]:  # noqa: ARG001  # one of the finders
    return [_with_port(command, word) for _, word in command.hosts()]


def _with_port(command: Command, word: str) -> str:
    """Return a host with the port that stands behind it as a word of its own."""
    if word not in command.operands:
        return word
    port = command.operands[command.operands.index(word) + 1 :][:1]
    return f"{word}:{port[0]}" if port and port[0].isdecimal() else word


_FINDERS: dict[str, Callable[[Command, ProgramRule], list[str]]] = {
    "command": lambda command, _: [command.text()],
    "operands": _behind,
    "first": lambda command, rule: _behind(command, rule)[:1],
    "second": lambda command, rule: _behind(command, rule)[1:2],
    "last": lambda command, rule: _behind(command, rule)[-1:],
    "rest": _rest,
    "values": _values,
    "hosts": _hosts,
    "found": lambda command, _: found_by(command.words),
    "nothing": lambda _, rule: [rule.named],
}


# -- where no rule holds ---------------------------------------------------------------------------------


def _reach(reading: Reading, command: Command, hosts: list[Host] | None, *, leaves: bool) -> None:
    """Add that a command asks hosts, or hands them something."""
    hands = bool(leaves or reading.taken or hosts)
    for host, word in hosts or command.hosts() or [("", "")]:
        if host and reading.boundary.place(host) == METADATA:
            reading.asks(host, word)
        elif hands:
            reading.hands(host, word or command.text())
        else:
            reading.gets(word or command.text())


def _otherwise(reading: Reading, command: Command, ranks: Ranks, kinds: Sequence[str]) -> None:
    """Add what the effect of a command alone tells."""
    text = command.text()
    for kind in kinds:
        action, harm = _OF_KINDS.get(kind, ("", ""))
        if harm:
            reading.note(action, text, "command", (harm, POSSIBLE, f"run {shown(text)}"))
    if not kinds:
        action = "run" if ranks[reading.tool] > _WRITES else "edit" if changes(reading, ranks) else "read"
        reading.note(action, text, "command")


def _operands(entry: ProgramEntry, words: Sequence[str]) -> list[str]:
    """Return the words that are neither options nor their values."""
    found: list[str] = []
    value = only = False
    for word in words[1:]:
        if value:
            value = False
        elif only or word == "-" or not (word[:1] == "-" or is_slashed(entry, word)):
            found.append(word)
        elif word == "--":
            only = True
        else:
            value = word in entry.valued
    return found
