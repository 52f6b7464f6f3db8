"""What a shell command really does: the join over every program that it may run.

Each simple command is looked up in the catalogue's programs, its operands in the paths; wrappers (``sudo``,
``xargs``, ``sh -c``) are looked through. Nothing is executed and nothing expanded, so the reading errs to the
cautious side: every branch counts as taken, every function as called.
"""

from __future__ import annotations

import re
from itertools import pairwise

from safetydrift.effects.scales import join, overlay
from safetydrift.effects.shell_syntax import MAX_TEXT, Command, Script
from safetydrift.effects.shell_words import Computed, UnreadableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from safetydrift.effects.catalogue import Catalogue
    from safetydrift.effects.entries import ProgramEntry
    from safetydrift.effects.scales import Ranks
    from safetydrift.states.effect import Effect

_MAX_LOOKED_THROUGH = 8
_MAX_REASONS = 8
_MAX_SHOWN = 40
_NAMES = re.compile(r"\$\{?[!#]?(\w+)")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


def read_shell(catalogue: Catalogue, command: object) -> Effect:
    """Return the effect of running a shell command; never raises.

    Parameters
    ----------
    catalogue
        Knows programs and paths.
    command
        The text of the command, or its words when the tool takes an argument vector.

    Returns
    -------
    Effect
        Its source is ``"rule"`` if every program is known, ``"default"`` if one is not or the text cannot be
        read.
    """
    reading = _Reading(catalogue)
    try:
        if isinstance(command, str):
            reading.text(command)
        else:
            reading.vector(command)
    except UnreadableError as problem:
        ranks = join(catalogue.default, reading.ranks)
        return catalogue.scales.effect(ranks, "default", (f"the shell command cannot be read: {problem}",))
    source = "default" if reading.unknown else "rule"
    return catalogue.scales.effect(reading.ranks, source, tuple(reading.reasons) or ("nothing is run",))


class _Reading:
    """The join so far, over one command and everything nested in it."""

    __slots__ = ("catalogue", "depth", "ranks", "reasons", "script", "told", "unknown")

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self.ranks: Ranks = catalogue.scales.lowest
        self.reasons: list[str] = []
        self.script = Script()
        self.unknown = False
        self.depth = 0
        self.told = 0

    def text(self, text: str) -> None:
        """Add everything that a shell text runs."""
        for command in self.script.read(text):
            self._command(command)

    def vector(self, words: object) -> None:
        """Add what an argument vector runs."""
        command = Command()
        if isinstance(words, list | tuple):
            command.words = [word for word in words if isinstance(word, str)]
            if len(command.words) < len(words) or sum(map(len, command.words)) > MAX_TEXT:
                command.words = []
        if not command.words:
            raise UnreadableError("it is neither a text nor a list of words of a reasonable length")
        self._command(command)

    def _add(self, ranks: Ranks, reason: str) -> None:
        joined = join(self.ranks, ranks)
        if (joined != self.ranks or not self.reasons) and len(self.reasons) < _MAX_REASONS:
            self.reasons.append(reason)
        self.ranks = joined

    def _command(self, command: Command) -> None:
        shell = self.catalogue.shell
        for target in command.writes:
            if target not in shell.discard:
                self._add(shell.writes, f"writes {_shown(target)}")
                self._path(target, ordinary=False)
        for source in command.reads:
            self._path(source, ordinary=source not in shell.discard)
        if command.words:
            self._run(command.words, command)

    # -- programs -----------------------------------------------------------------------------------------

    def _run(self, words: list[str], command: Command) -> None:
        """Add what a program does with its arguments."""
        name = words[0]
        self._environment(words)
        directory, _, base = name.rpartition("/")
        program = None if isinstance(name, Computed) else self.catalogue.programs.get(base)
        if program is None or (directory and directory not in self.catalogue.shell.directories):
            self._unknown_program(name, words)
        elif len(words) == 2 and words[1] in self.catalogue.shell.inquiries:  # noqa: PLR2004
            self._add(self.catalogue.scales.lowest, f"{base} only tells about itself")
        else:
            self._known_program(program, words, command)

    def _unknown_program(self, name: str, words: list[str]) -> None:
        shell = self.catalogue.shell
        if isinstance(name, Computed):
            self._add(shell.computed if self.depth else shell.unknown, f"{_shown(name)} may be any program")
            self.unknown = True
        elif name in self.script.functions:
            return  # its body has been read where it stands
        elif "/" in name:
            self._add(shell.local, f"runs the local program {_shown(name)}")
        else:
            self._add(shell.unknown, f"unknown program {_shown(name)}")
            self.unknown = True
        for word in words[1:]:
            self._path(word, ordinary=False)

    def _known_program(self, program: ProgramEntry, words: list[str], command: Command) -> None:
        start = _first_operand(program, words)
        text = _script_text(program, words, start)
        if text is not None:
            self._nested(text)
        elif program.evaluates and start < len(words):
            self._nested(" ".join(words[start:]))
        elif program.wraps and start + program.skip < len(words):
            fed = command.piped.words[1:] if program.stdin == "operands" and command.piped else []
            self._through(words[start + program.skip :] + fed, command)
        elif not self._fed_code(program, words, start, command):
            ranks, note = _decide(program, words, start)
            self._add(ranks, f"{_shown(words[0])}: {note}")
        if program.executes:
            self._executed(program, words, command)
        if program.paths:
            self._operands(program, words)

    def _executed(self, program: ProgramEntry, words: list[str], command: Command) -> None:
        """Look through ``find ... -exec``, with the words of the search in place of what it finds."""
        start = next((at for at, word in enumerate(words) if word in program.executes), len(words))
        rest = words[start + 1 :]
        end = next((at for at, word in enumerate(rest) if word in {";", "+"}), len(rest))
        if end:
            self._through(rest[:end] + words[1:start], command)
        if end < len(rest) and program.executes.intersection(rest[end:]):
            self._through(words[:1] + rest[end + 1 :], command)

    def _fed_code(self, program: ProgramEntry, words: list[str], start: int, command: Command) -> bool:
        """Add what a program runs that is fed its code; False if it is fed none, or runs a file or an option's."""
        elsewhere = words[start : start + 1] not in ([], ["-"]) or program.skip_unless.any_of(words[1:start])
        if program.stdin != "code" or elsewhere:
            return False
        if command.bodies and program.script:
            for body in command.bodies:
                self._nested(body)
            return True
        if command.piped is None or command.bodies:
            return False
        self._add(self.catalogue.shell.computed, f"{program.names[0]} runs what a pipe hands it")
        return True

    def _through(self, words: list[str], command: Command) -> None:
        self._deeper()
        self._run(words, command)
        self.depth -= 1

    def _nested(self, text: str) -> None:
        self._deeper()
        self.text(text)
        self.depth -= 1

    def _deeper(self) -> None:
        self.depth += 1
        if self.depth > _MAX_LOOKED_THROUGH:
            raise UnreadableError(f"more than {_MAX_LOOKED_THROUGH} commands within commands")

    # -- data ---------------------------------------------------------------------------------------------

    def _operands(self, program: ProgramEntry, words: list[str]) -> None:
        """Add what the names of the files tell that a program reads."""
        skip = 0 if program.skip_unless.any_of(words[1:]) else program.skip
        value = only_operands = False
        for word in words[1:]:
            if value or (word.startswith("-") and not only_operands):
                self._path(word, ordinary=False)
                only_operands = word == "--" and not value
                value = not value and word in program.valued
            elif skip:
                skip -= 1
            else:
                self._path(word, ordinary=program.paths == "files")

    def _path(self, path: str, *, ordinary: bool) -> None:
        """Add what a file's name tells; one that tells nothing counts only if it is surely a file."""
        entry = self.catalogue.path(path)
        if entry is not None:
            self._add(entry.ranks, f"{_shown(path)}: {entry.note}")
        elif ordinary:
            self._add(self.catalogue.shell.file, f"reads {_shown(path)}")
        if isinstance(path, Computed):
            self._values()

    def _values(self) -> None:
        """Add what the values of variables tell, any of which may complete a word; each value only once."""
        values = self.script.values
        for value in values[self.told :]:
            entry = self.catalogue.path(value)
            if entry is not None:
                self._add(entry.ranks, f"{_shown(value)}: {entry.note}")
        self.told = len(values)

    def _environment(self, words: list[str]) -> None:
        """Add what the names of the variables tell that the command takes from its environment."""
        for word in words:
            if isinstance(word, Computed):
                for name in _NAMES.findall(word):
                    if name not in self.script.variables:
                        self._path(name, ordinary=False)


def _first_operand(program: ProgramEntry, words: list[str]) -> int:
    """Return where the operands start, after options, their values and, of a wrapper, assignments."""
    at = 1
    while at < len(words):
        word = words[at]
        if word == "--":
            return at + 1
        if word.startswith("-") and word != "-":
            at += 2 if word in program.valued else 1
        elif program.wraps and _ASSIGNMENT.match(word):
            at += 1
        else:
            break
    return at


def _script_text(program: ProgramEntry, words: list[str], start: int) -> str | None:
    """Return the shell text that an option hands over, if one does before the first operand."""
    for option, text in pairwise(words[: start + 1]):
        if option in program.script:
            return text
    return None


def _decide(program: ProgramEntry, words: list[str], start: int) -> tuple[Ranks, str]:
    """Return what the first case that holds says, or else what the program does at all, with the reason."""
    if program.cases:
        operands = words[start : start + 2]
        firsts = [*operands[:1], " ".join(operands)]
        given = words[1:] + [f"{one} {two}" for one, two in pairwise(words[1:])]
        for case in program.cases:
            if (not case.first or case.first.any_of(firsts)) and (not case.words or case.words.any_of(given)):
                return overlay(program.ranks, case.ranks), case.note or program.note
    return program.ranks, program.note


def _shown(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 3]}..."
