"""What a program does with its arguments: its entry in the catalogue, looked through to what it runs in turn."""

from __future__ import annotations

import re
from abc import abstractmethod
from fnmatch import fnmatchcase
from itertools import pairwise

from safetydrift.effects.catalogue.harms import Harm
from safetydrift.effects.catalogue.scales import overlay
from safetydrift.effects.languages.shell.builtins import BUILTINS
from safetydrift.effects.languages.shell.environment import with_environment
from safetydrift.effects.languages.shell.expansion import Expander
from safetydrift.effects.languages.shell.judging import Command, judge, ruled
from safetydrift.effects.languages.shell.operands import (
    add_operands,
    add_written,
    first_operand,
    named_by_glob,
    outputs_of,
)
from safetydrift.effects.languages.shell.outputs import output
from safetydrift.effects.languages.shell.reach import (
    Reach,
    addresses_of,
    all_here,
    changes,
    ends,
    hosts_in,
    reaches,
)
from safetydrift.effects.languages.shell.searches import FOUND, found_by
from safetydrift.effects.languages.shell.values import Carried, Computed, Fed, file_key, joined, like
from safetydrift.effects.languages.shell.windows import powershell_code
from safetydrift.effects.reading import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from safetydrift.effects.catalogue.entries import ProgramCase, ProgramEntry
    from safetydrift.effects.catalogue.scales import Ranks
    from safetydrift.effects.languages.shell.values import Function

_WILD = re.compile(r"[*?\[]")
_FED = frozenset(("-", "/dev/stdin", "/proc/self/fd/0", "/dev/fd/0"))
_FOLDERS = frozenset(("-P", "--directory-prefix", "-d", "--dir", "--output-dir"))
_MAX_MATCHES = 24
_PRICE = 16
_PRICE_OF_WORD = 24
_PRICE_OF_PATTERN = 12_000
_MAX_HANDED = 256
_MAX_INQUIRY = 3
_MAX_SUBCOMMANDS = 5
_SUBCOMMAND = re.compile(r"[a-z][a-z\-]{1,31}")
_MAX_SUBCOMMAND = 4
_MAX_LINES = 64
_MAX_SESSION = 4096
_VERSION = re.compile(r"[-.]?\d{1,3}(?:\.\d{1,3}){0,3}$")
_SHEBANG = re.compile(r"#!\s*(?:\S*/)?(?:env\s+(?:-\S+\s+)*)?(?:\S*/)?([\w.+\-]+)")
_HIDDEN = "run code that an encoding hides"
_RUN = Harm("run", role="command")


class Programs(Expander):
    """Runs look-ups, not programs."""

    @abstractmethod
    def shell_text(self, text: str) -> None:
        """Read shell text within this text, in the same scope."""

    @abstractmethod
    def call(self, function: Function, arguments: list[str], fed: Fed | None) -> None:
        """Read the body of a function with its arguments."""

    def run(self, words: list[str], fed: Fed | None) -> str | None:
        """Add what a program does with its arguments; return what it prints, None where that is not known."""
        self.enter()
        self.reading.pay(_PRICE)
        name = words[0]
        directory, slash, base = name.rpartition("/")
        if isinstance(name, Computed):
            self._made_up(words, fed)
        elif not slash and name in self.scope.aliases:
            self._alias(words)
        elif not slash and name in self.scope.functions:
            self.call(self.scope.functions[name], words[1:], fed)
        elif _WILD.search(name) and name not in {"[", "[["}:
            self._any_of(words, fed)
        else:
            self._program(words, base, directory if slash else None, fed)
        self.depth -= 1
        printed = output(words, fed.text if fed else None)
        if printed and base in self.reading.catalogue.shell.decoders:
            self.reading.decoded.add(printed.strip())
        if printed:
            self.used((printed,))
        return printed

    def _program(self, words: list[str], base: str, directory: str | None, fed: Fed | None) -> None:
        entry = self.reading.catalogue.programs.get(base) or self._versioned(base) or self._of_windows(base)
        if directory is not None and (entry is None or not self._at_home(entry, directory, base)):
            self._local(words)
            if entry is None and self.reading.catalogue.rules.knows(base):
                ruled(self.reading, Command(self.reading, self.reading.catalogue.nameless, words, 1))
        elif entry is None:
            self._unknown(words)
        if entry is not None:
            self._known(entry, words, fed)
        builtin = BUILTINS.get(base)
        if builtin is not None:
            builtin(self, words, fed)

    def _versioned(self, name: str) -> ProgramEntry | None:
        """Return the entry of a program that runs code and is named with its version: ``ruby3.0``."""
        match = _VERSION.search(name)
        entry = self.reading.catalogue.programs.get(name[: match.start()]) if match else None
        return entry if entry is not None and entry.language else None

    def _of_windows(self, name: str) -> ProgramEntry | None:
        """Return the entry of a program of Windows, whatever the case of its letters."""
        plain = name.rpartition("\\")[2].lower()
        if plain.endswith(".exe"):
            return self.reading.catalogue.programs.get(plain[:-4])
        entry = self.reading.catalogue.programs.get(plain)
        return entry if entry is not None and entry.folds else None

    def _at_home(self, entry: ProgramEntry, directory: str, name: str) -> bool:
        """Return whether a directory is one for programs; a language may have been installed anywhere."""
        if directory in self.reading.catalogue.shell.directories:
            return True
        return bool(entry.language) and directory.endswith("/bin") and name not in self.scope.files

    # -- programs without an entry ------------------------------------------------------------------------

    def _made_up(self, words: list[str], fed: Fed | None) -> None:
        base = words[0].rpartition("/")[2]
        entry = self.reading.catalogue.programs.get(base)
        if entry is not None and not isinstance(words[0], Carried) and "/" in words[0]:
            self.reading.act("runs", f"runs {shown(words[0])}")
            self._known(entry, words, fed)
            return
        self.reading.hides(f"{shown(words[0])} may be any program")
        self._name_all(words)

    def _alias(self, words: list[str]) -> None:
        text = self.scope.aliases.pop(words[0])
        self.shell_text(joined([text, *map(quoted, words[1:])], " "))
        self.scope.aliases[words[0]] = text

    def _any_of(self, words: list[str], fed: Fed | None) -> None:
        """Add what any program does that the shell may find in place of a pattern."""
        self.reading.pay(_PRICE_OF_PATTERN)
        base = words[0].rpartition("/")[2]
        programs = self.reading.catalogue.programs
        found = [name for name in programs if fnmatchcase(name, base)] if len(base) <= 64 else []  # noqa: PLR2004
        self.reading.act("runs", f"{shown(words[0])} is one of several programs")
        if not found or len(found) > _MAX_MATCHES:
            self.reading.hides(f"{shown(words[0])} may be any program")
            self._name_all(words)
        for name in found[:_MAX_MATCHES]:
            self._known(programs[name], [name, *words[1:]], fed)

    def _local(self, words: list[str]) -> None:
        if not self._written(words[0]):
            self.reading.runs(words[0], words[1:])
        self._name_all(words[1:])

    def _unknown(self, words: list[str]) -> None:
        hosts = addresses_of(words[1:])
        reason = f"unknown program {shown(words[0])}"
        if hosts and not all_here(self.reading, hosts):
            self.reading.unknown(f"{reason} is given an address", "hides")
            for host, word in hosts:
                self.reading.destinations.append(word)
                self.reading.hands(host, word)
        elif any(isinstance(word, Carried) for word in words):
            self.reading.unknown(f"{reason} is handed content")
        elif self._asks(words):
            self.reading.unknown(f"{reason}, which only seems to be asked for something", "checks")
        else:
            self.reading.unknown(reason)
        command = joined(words, " ")
        if any(word in self.reading.catalogue.shell.destroying for word in words[1:_MAX_SUBCOMMAND]):
            self.reading.act("deletes", f"has {shown(words[0])} delete something", command)
        if not ruled(self.reading, Command(self.reading, self.reading.catalogue.nameless, words, 1)):
            self.reading.does(_RUN, command)
        self.reading.gives(command)
        self._name_all(words[1:])

    def _asks(self, words: list[str]) -> bool:
        """Return whether a program nobody knows only looks, as far as its name and its first words tell."""
        shell = self.reading.catalogue.shell
        if words[0] in shell.lookers and words[0] not in shell.makers:
            return True
        return len(words) > 1 and (words[1] in shell.asking or words[1] in shell.inquiries)

    def _name_all(self, words: list[str]) -> None:
        for word in words:
            self.reading.names(word)
            named_by_glob(self.reading, word)

    def _written(self, path: str, language: str = "") -> bool:
        """Read a file that this very text has written, as code; False if it has not."""
        key = file_key(path)
        if key not in self.scope.files:
            return False
        text = self.scope.files[key]
        if text is None:
            self.reading.hides(f"runs {shown(path)}, whose content is only known when it is written", path)
            return True
        self._nested(language or self._language(text), text)
        return True

    def _language(self, text: str) -> str:
        first = _SHEBANG.match(text)
        entry = self.reading.catalogue.programs.get(first[1]) if first else None
        return (entry and entry.language) or "shell"

    # -- programs with an entry ---------------------------------------------------------------------------

    def _known(self, entry: ProgramEntry, words: list[str], fed: Fed | None) -> None:
        catalogue = self.reading.catalogue
        self.reading.pay(_PRICE_OF_WORD * len(words))
        if self._about_itself(entry, words):
            self.reading.add(catalogue.scales.lowest, f"{words[0]} only tells about itself")
            return
        if entry.stdin == "words":
            words = self._with_lines(words, fed)
        start = first_operand(entry, words)
        found = len(self.reading.operations)
        read = self._looked_through(entry, words, start, fed)
        case = self._effect(entry, words, start, read=read)
        if entry.executes:
            self._executed(entry, words, fed)
        paths = entry.paths if case is None or case.paths is None else case.paths
        add_operands(self.reading, entry, words, paths)
        for path in outputs_of(entry, words):
            add_written(self.reading, path)
            self.scope.files[file_key(path)] = None
        self._judge(entry, case, words, start, read=read, told=len(self.reading.operations) > found)

    def _judge(
        self,
        entry: ProgramEntry,
        case: ProgramCase | None,
        words: list[str],
        start: int,
        *,
        read: bool,
        told: bool,
    ) -> None:
        """Add what the command does to what."""
        judge(
            self.reading,
            Command(self.reading, entry, words, start),
            _effect_of(entry, case),
            self.scope.carried,
            read=read,
            told=told,
        )

    def _about_itself(self, entry: ProgramEntry, words: list[str]) -> bool:
        """Return whether a program is only asked about itself, or about one of its subcommands."""
        inquiries = self.reading.catalogue.shell.inquiries
        if 1 < len(words) <= _MAX_INQUIRY and words[1] in inquiries and words[-1][:1] == "-":
            return True
        if entry.wraps or entry.language or entry.code or entry.paths not in {"", "words"}:
            return False
        if words[-1] == "--help":
            return len(words) <= _MAX_SUBCOMMANDS and all(map(_SUBCOMMAND.fullmatch, words[1:-1]))
        return words[1:2] == ["help"] and reaches(self.reading, entry.ranks)

    def _with_lines(self, words: list[str], fed: Fed | None) -> list[str]:
        """Return a program's words and the lines it is fed, or finds in a file that this very text has written."""
        files = self.scope.files
        texts = [files.get(file_key(word)) for word in words[1:]] if files else []
        texts.append((fed.text or fed.part) if fed is not None else self._session(words))
        lines = [
            like(line.strip(), (text,)) for text in texts if text for line in text.split("\n")[:_MAX_LINES]
        ]
        self.reading.pay(sum(map(len, lines)))
        for line in [*words[1:], *lines]:
            for word in line[:_MAX_SESSION].split()[:_MAX_LINES] if "/" in line else ():
                if "/" in word:
                    self.reading.names(word.strip("\"'`();,"))
        return [*words, *filter(None, lines)]

    def _session(self, words: list[str]) -> str:
        """Return what is typed into a program that is started without operands: the text after its own line."""
        if len(words) > 1:
            return ""
        rest = self.source[self.end : self.end + _MAX_SESSION]
        return rest.decode("utf-8", "replace") if rest[:1] == b"\n" else ""

    def _looked_through(self, entry: ProgramEntry, words: list[str], start: int, fed: Fed | None) -> bool:
        """Read what a program runs in turn; False if there is nothing to read."""
        operand = start + entry.skip
        if self._of_windows_shell(entry, words, operand):
            return True
        read = bool(entry.code) and self._options(entry, words, start)
        if entry.evaluates and operand < len(words):
            self._code("shell", joined(words[operand:], " "))
            return False
        if entry.wraps and operand < len(words) and not read:
            self._through(entry, words, operand, fed)
            return True
        if entry.operand_code and operand < len(words) and not entry.skip_unless.any_of(words[1:start]):
            self._code(entry.language, words[operand])
            return True
        return read or self._script(entry, words, start, fed)

    def _of_windows_shell(self, entry: ProgramEntry, words: list[str], operand: int) -> bool:
        """Read the code that a shell of Windows is given on its command line; False if it is none or has none."""
        if entry.language == "cmd" and operand < len(words):
            self._code("cmd", joined(words[operand:], " "))
            return True
        given = powershell_code(words) if entry.language == "powershell" else None
        if given is None:
            return False
        code, encoded = given
        if encoded:
            self.reading.brings_code([" ".join(words)], _HIDDEN)
        self._code(entry.language, code)
        return True

    def _effect(self, entry: ProgramEntry, words: list[str], start: int, *, read: bool) -> ProgramCase | None:
        """Add what the entry says, in the case that holds; return the case."""
        case, place = _case(entry, words, start)
        if case is not None and case.wraps:
            inner = place
            for _ in range(case.skip):
                inner = _after(entry, words, inner + 1)
            if inner < len(words):
                self._inner(words[inner:], None)
        if read:
            silent = self.reading.catalogue.scales.lowest
            ranks = case.ranks if case else entry.ranks if entry.hosts else silent
            kinds = case.kinds if case else entry.kinds
            if ranks is silent and not kinds:
                return case
        else:
            ranks = overlay(entry.ranks, case.ranks) if case else entry.ranks
            kinds = case.kinds if case else entry.kinds
        reason = f"{words[0]}: {(case and case.note) or entry.note}"
        leaves = case.leaves if case else entry.leaves
        if not reaches(self.reading, ranks):
            self.reading.add(ranks, reason, kinds=kinds, leaves=leaves)
            return case
        leaves = leaves or ends(self.reading, ranks)
        hosts, raw = hosts_in(entry, words, start), entry.hosts == "sockets"
        Reach(ranks, reason, kinds, hosts, leaves=leaves, raw=raw).add_to(self.reading)
        keeps = changes(self.reading, ranks) and not leaves and not outputs_of(entry, words)
        self._fetched(words, keeps=keeps and (entry.hosts == "words" or words[1:2] == ["clone"]))
        return case

    def _fetched(self, words: list[str], *, keeps: bool) -> None:
        """Remember what a network program may have saved, in case it is run."""
        folder = next((words[at + 1] + "/" for at, word in enumerate(words[:-1]) if word in _FOLDERS), "")
        for word in words[1:]:
            key = file_key(word.partition("?")[0]) if "://" in word else ""
            if key:
                self.scope.files.setdefault(key, None)
                if keeps:
                    self.reading.writes(folder + key.removesuffix(".git"))

    # -- code ---------------------------------------------------------------------------------------------

    def _options(self, entry: ProgramEntry, words: list[str], start: int) -> bool:
        """Read the code that options hand over."""
        # After the first operand, the words belong to a script; programs that are given none take options anywhere.
        script = entry.language not in {"", "sql"}
        read = False
        for at in range(1, min(start + 1, len(words)) if script else len(words)):
            for option in entry.code:
                code = option.value(words, at)
                if code is not None:
                    if option.language == "shell":
                        self.scope.arguments = tuple(words[at + 3 :]) if script else self.scope.arguments
                    self._code(option.language, code)
                    read = read or not option.words
        return read

    def _script(self, entry: ProgramEntry, words: list[str], start: int, fed: Fed | None) -> bool:
        """Read the code that a program is fed or given as a file; False if there is none or it is not known."""
        if entry.stdin != "code" and not entry.language and words[0] not in {".", "source"}:
            return False
        # Of a program whose operands are no files (``at now``) only what it is fed is code.
        # What names a database is no file of statements.
        script = not (entry.language == "shell" and "-s" in words[1:start])
        script = script and not (entry.language == "sql" and fed is not None)
        if script and start < len(words) and words[start] not in _FED and (entry.paths or fed is None):
            return self._code_file(entry, words[start], words[start + 1 :])
        elsewhere = entry.skip_unless.any_of(words[1:start]) or "-m" in words[1:start]
        if fed is None and entry.language not in {"", "shell"} and entry.stdin == "code":
            session = self._session(words)
            if session.strip():
                self._code(entry.language, session)
        if fed is None or elsewhere or (entry.stdin != "code" and start >= len(words)):
            self.reading.shells = self.reading.shells or (entry.language == "shell" and start >= len(words))
            return False
        self._decoded(fed)
        if fed.text is None:
            self.reading.shells = True
            self.reading.hides(f"{words[0]} runs what it is fed")
        else:
            self._code(entry.language or "shell", fed.text)
        return True

    def _decoded(self, fed: Fed) -> None:
        """Add that code is run that an encoding hid."""
        if fed.words and fed.words[0].rpartition("/")[2] in self.reading.catalogue.shell.decoders:
            self.reading.brings_code([" ".join(fed.words)], _HIDDEN)

    def _code_file(self, entry: ProgramEntry, path: str, operands: list[str]) -> bool:
        if isinstance(path, Computed) and path.startswith(("$(", "`")):
            self.reading.hides(f"runs what {shown(path)} names")
            return True
        name = path.rpartition("/")[2]
        tool = self.reading.catalogue.programs.get(name) if "." in name else None
        if tool is not None and tool is not entry:
            self.reading.add(tool.ranks, f"{shown(path)}: {tool.note}", kinds=tool.kinds, leaves=tool.leaves)
        if self._written(path, entry.language):
            return True
        if tool is None and name in self.reading.catalogue.shell.checkers:
            self.reading.runs(path, operands)
            return True
        self.reading.starts(path)
        return False

    def _code(self, language: str, text: str) -> None:
        """Read code; what is only put together when it runs may be anything."""
        if isinstance(text, Carried) or (
            isinstance(text, Computed) and (language != "shell" or text.startswith(("$(", "`")))
        ):
            bare = text.startswith(("$", "`"))
            if bare or isinstance(text, Carried):
                self.reading.hides(f"runs {shown(text)}, which is put together while running")
            if bare and language not in {"shell", "powershell"}:
                return
        if text.strip() in self.reading.decoded:
            self.reading.brings_code([text.strip()], _HIDDEN)
        self._nested(language, text)

    def _nested(self, language: str, text: str) -> None:
        if not language or language == "shell":
            self.shell_text(text)
        else:
            self.reading.nested(language, with_environment(text, self.scope.variables))

    # -- commands within commands -------------------------------------------------------------------------

    def _through(self, entry: ProgramEntry, words: list[str], at: int, fed: Fed | None) -> None:
        inner = list(words[at:])
        if entry.stdin == "operands":
            inner = self._with_operands(words[:at], inner, fed)
        self._inner(inner, None if entry.stdin == "operands" else fed)

    def _inner(self, inner: list[str], fed: Fed | None) -> None:
        """Run a command that another one is given, in words or as one text."""
        if len(inner) == 1 and type(inner[0]) is str and any(sign in inner[0] for sign in " ;|&"):
            self.shell_text(inner[0])
        else:
            self.run(inner, fed)

    def _with_operands(self, options: list[str], inner: list[str], fed: Fed | None) -> list[str]:
        """Return the command that ``xargs`` makes of what it is fed."""
        if fed is not None and fed.text is not None:
            handed = [like(part, (fed.text,)) for part in fed.text.split()[:_MAX_HANDED]]
            named: list[str] = []
        else:
            self.scope.variables["input"] = (Carried("$input"),)
            handed = [Carried("$input")]
            named = found_by(fed.words) if fed else []
        mark = _placeholder(options)
        if not any(mark in word for word in inner):
            return [*inner, *handed, *named]
        self._name_all(named)
        whole = joined(handed, " ")
        entry = self.reading.catalogue.programs.get(inner[0])
        if entry is not None and entry.code and isinstance(whole, Carried):
            # Within code the variable speaks for itself: what matters is where it stands.
            whole = Computed(whole)
        return [joined(_interleaved(word.split(mark), whole)) if mark in word else word for word in inner]

    def _executed(self, entry: ProgramEntry, words: list[str], fed: Fed | None) -> None:
        """Look through ``find ... -exec``, with the words of the search in place of what it finds."""
        first = next((at for at, word in enumerate(words) if word in entry.executes), len(words))
        searched = found_by(words[:first])
        at = first
        while at < len(words):
            rest = words[at + 1 :]
            end = next((place for place, word in enumerate(rest) if word in {";", "+"}), len(rest))
            if end:
                # What a search finds is handed to the command: the words of the search stand for it.
                found = searched if words[at][0] == "-" != words[at][1] else []
                self.run(_with_found(rest[:end], found), fed)
            after = at + 1 + end
            at = next(
                (place for place in range(after, len(words)) if words[place] in entry.executes), len(words)
            )


def _effect_of(entry: ProgramEntry, case: ProgramCase | None) -> tuple[Ranks, tuple[str, ...], bool]:
    """Return levels, kinds and whether content leaves, in the case that holds."""
    if case is None:
        return entry.ranks, entry.kinds, entry.leaves
    return overlay(entry.ranks, case.ranks), case.kinds, case.leaves


def _with_found(words: list[str], found: list[str]) -> list[str]:
    """Return a command with what a search found in place of the mark for it."""
    if not found:
        return words
    if not any(FOUND in word for word in words):
        return words + found
    return [word.replace(FOUND, one) for word in words for one in (found if FOUND in word else [FOUND])]


def _case(entry: ProgramEntry, words: list[str], start: int) -> tuple[ProgramCase | None, int]:
    """Return the first case that holds, and where the operands after its subcommand start."""
    if not entry.cases:
        return None, start
    operands = words[start : start + 2]
    firsts = [*operands[:1], " ".join(operands)]
    given: list[str] = []
    for case in entry.cases:
        if case.first and not case.first.any_of(firsts):
            continue
        if not given:
            # What follows belongs to the command that is run.
            own = words[1:start] if entry.wraps else words[1:]
            given = own + [f"{one} {two}" for one, two in pairwise(own)]
        if (not case.words or case.words.any_of(given)) and not (case.lacks and case.lacks.any_of(given)):
            return case, _after(entry, words, start + 1)
    return None, start


def _after(entry: ProgramEntry, words: list[str], at: int) -> int:
    """Return where the operands go on after a subcommand and its options."""
    while at < len(words) and words[at].startswith("-") and words[at] != "-":
        if words[at] == "--":
            return at + 1
        at += 2 if words[at] in entry.valued else 1
    return at


def _placeholder(options: list[str]) -> str:
    """Return what stands for the operands in the command of ``xargs``."""
    for at, word in enumerate(options):
        if word in {"-I", "-J"} and at + 1 < len(options):
            return options[at + 1] or "{}"
        if word.startswith("-I") and len(word) > 2:  # noqa: PLR2004
            return word[2:]
    return "{}"


def _interleaved(parts: list[str], between: str) -> list[str]:
    pieces = [parts[0]]
    for part in parts[1:]:
        pieces += [between, part]
    return pieces


def quoted(word: str) -> str:
    """Return a word so that a shell reads it as it is; what is not known of it stays open."""
    if isinstance(word, Computed):
        return word
    return "'" + word.replace("'", "'\\''") + "'"
