"""What the functions of a language's libraries do, by name: the vocabulary of the readers of code."""

from __future__ import annotations

from safetydrift.effects.catalogue.acts import ACTS, read_kinds
from safetydrift.effects.catalogue.globs import Globs
from safetydrift.effects.catalogue.harms import read_harm
from safetydrift.errors import CatalogueError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import Any

    from safetydrift.effects.catalogue.plain import Entry
    from safetydrift.effects.catalogue.scales import Ranks, Scales

OPENS, ASKS = "opens", "asks"
"""Acts of calls alone: what they come to is told by the value of ``mode``."""
FOLDS = (
    "base32",
    "base64",
    "characters",
    "format",
    "hex",
    "home",
    "inflate",
    "join",
    "module",
    "path",
    "percent",
    "replace",
    "reverse",
    "rot13",
    "same",
    "split",
    "unfold",
)
"""Functions of constant texts whose result the readers can tell."""
_MAX_REMEMBERED = 2048
"""How many names `Calls.find` keeps the answers for; calls come back."""
_FOLDED_CASE = frozenset(("php", "powershell"))


class Deed:
    """One thing that a call does, and which of its arguments it does it to.

    Attributes
    ----------
    act
        One of `ACTS`; or ``"opens"``, which reads or writes a file as `mode` says; or ``"asks"``, which asks a server
        for something, or sends to it, as `mode` says.
    argument, keywords, receiver
        What it is done to: the argument at this place (None if at none), or else under one of these names, or else
        the object whose method is called. It is a path, or an address where the act concerns the network.
    code
        The language of the argument if it is code. `act` then holds where the code cannot be told.
    words
        The place from which on arguments are further words of the command (None if there are none).
    mode
        The place of the argument that is a file's mode or a request's method (None if at none). It may have the name
        ``mode`` or ``method`` as well.
    carries
        Arguments, by name or by place in digits, with which a request hands something over.
    """

    __slots__ = ("act", "argument", "carries", "code", "keywords", "mode", "receiver", "words")

    def __init__(self, entry: Entry, languages: Collection[str]) -> None:
        self.code = entry.text("code")
        if self.code and self.code not in languages:
            raise CatalogueError(f"{entry.where}: code: unknown language {self.code!r}")
        self.act = entry.text("act") or ("hides" if self.code else "")
        if self.act not in ACTS and self.act not in {OPENS, ASKS}:
            raise CatalogueError(f"{entry.where}: unknown act {self.act!r}")
        self.argument = _place(entry, "argument")
        self.keywords = entry.texts("keywords")
        self.receiver = entry.flag("receiver")
        self.mode = _place(entry, "mode")
        self.words = _place(entry, "words")
        self.carries = entry.texts("carries")

    @property
    def operates(self) -> bool:
        """Whether it is done to anything that can be named."""
        return self.argument is not None or self.receiver or bool(self.keywords)


def read_deeds(entry: Entry, languages: Collection[str]) -> tuple[Deed, ...]:
    """Return the deeds of an entry: the one its own keys tell, and those in ``also``; none if it names no act."""
    if entry.get("act") is None and entry.get("code") is None:
        return ()
    further = entry.parts("also")
    deeds = tuple([Deed(part, languages) for part in (entry, *further)])
    for part in further:
        part.done()
    return deeds


class CallCase:
    """Other deeds for some of the functions of an entry: globs for the last part of the name."""

    __slots__ = ("deeds", "names")

    def __init__(self, entry: Entry, languages: Collection[str]) -> None:
        self.names = Globs(entry.named("names"))
        self.deeds = read_deeds(entry, languages)
        entry.done()


class CallEntry:
    """What some functions of a language's libraries do when they are called.

    Attributes
    ----------
    language
        The language they belong to.
    names
        Their full names, with dots whatever the language writes: a function ``os.remove``; what a function or a
        class returns goes by its name, as in ``socket.socket.connect``. ``boto3.*`` stands for all that begins so
        and has no entry of its own, ``*.to_csv`` for a method of anything.
    deeds
        What they do: the keys of a `Deed` in the entry itself, and further ones in ``also``.
    cases
        Replace the deeds by the last part of the name; the first that holds decides.
    ranks, kinds
        What the call means beyond its acts, None and empty for most.
    used
        Whether the bare mention of the name counts as well (``os.environ``).
    folds
        Which of `FOLDS` it computes, empty for most.
    note
        Why, in words.
    by_name
        Whether the words of the name tell what it does, like those of a tool nobody listed.
    harm
        The operation that it is beyond what its acts tell; without an action for most.
    idle
        Whether such a call touches nothing outside the program.
    """

    __slots__ = (
        "by_name",
        "cases",
        "deeds",
        "folds",
        "harm",
        "idle",
        "kinds",
        "language",
        "names",
        "note",
        "ranks",
        "used",
    )

    def __init__(self, entry: Entry, scales: Scales, languages: Collection[str]) -> None:
        self.names = entry.named("names")
        self.language = entry.text("language", required=True)
        if self.language not in languages:
            raise CatalogueError(f"{entry.where}: unknown language {self.language!r}")
        wrong = [name for name in self.names if "*" in name.removeprefix("*.").removesuffix(".*")]
        if wrong:
            raise CatalogueError(f"{entry.where}: {wrong[0]!r}: a star stands for all before or after a dot")
        self.folds = entry.text("folds")
        if self.folds and self.folds not in FOLDS:
            raise CatalogueError(
                f"{entry.where}: there is no fold {self.folds!r}; the folds are: {', '.join(FOLDS)}"
            )
        self.deeds = read_deeds(entry, languages)
        if not self.deeds and not self.folds:
            raise CatalogueError(f"{entry.where}: lacks 'act', 'code' or 'folds'")
        self.cases = tuple([CallCase(part, languages) for part in entry.parts("cases")])
        effect = entry.get("effect")
        self.ranks: Ranks | None = None if effect is None else scales.read(effect, entry.where, whole=False)
        self.kinds = read_kinds(entry)
        self.used = entry.flag("used")
        self.note = entry.text("note")
        self.harm = read_harm(entry, action=False)
        self.by_name = entry.flag("by_name")
        entry.done()
        told = self.cases or self.ranks or self.kinds or self.harm.action or self.folds == "module"
        self.idle = not told and all(deed.act == "computes" and not deed.code for deed in self.deeds)

    def does(self, name: str) -> tuple[Deed, ...]:
        """Return what the function of this name does, one of those the entry stands for."""
        if self.cases:
            last = name.rpartition(".")[2]
            for case in self.cases:
                if last in case.names:
                    return case.deeds
        return self.deeds


class Calls:
    """The entries of one language, found by the name of what is called."""

    __slots__ = ("_endings", "_exact", "_folded", "_found", "_methods", "_prefixes", "modules")

    def __init__(self, entries: Iterable[CallEntry], language: str) -> None:
        self._folded = language in _FOLDED_CASE
        self._exact: dict[str, CallEntry] = {}
        self._methods: dict[str, CallEntry] = {}
        self._prefixes: dict[str, CallEntry] = {}
        self._endings: dict[str, list[CallEntry]] = {}
        self._found: dict[str, tuple[CallEntry, ...]] = {}
        for entry in entries:
            for name in entry.names:
                self._enter(name.lower() if self._folded else name, entry)
        known = (name.partition(".")[0] for table in (self._exact, self._prefixes) for name in table)
        self.modules = frozenset(known)

    def _enter(self, name: str, entry: CallEntry) -> None:
        if name.startswith("*."):
            table, key = self._methods, name[2:]
        elif name.endswith(".*"):
            table, key = self._prefixes, name[:-2]
        else:
            table, key = self._exact, name
        if key in table:
            raise CatalogueError(f"{entry.language} call {name!r} is listed twice")
        table[key] = entry

    def exact(self, name: str) -> CallEntry | None:
        """Return the entry of exactly this name."""
        return self._exact.get(name.lower() if self._folded else name)

    def is_builtin(self, name: str) -> bool:
        """Return whether a name means something by itself, without being a library's."""
        return self.exact(name) is not None and name not in self._prefixes

    def method(self, name: str) -> CallEntry | None:
        """Return the entry of a method of anything."""
        return self._methods.get(name.lower() if self._folded else name)

    def find(self, name: str) -> tuple[CallEntry, ...]:
        """Return what is known of a full name: its own entry, or else those of its method and of its library."""
        found = self._found.get(name)
        if found is None:
            found = self._search(name.lower() if self._folded else name)
            if len(self._found) >= _MAX_REMEMBERED:
                self._found.clear()
            self._found[name] = found
        return found

    def ending(self, last: str) -> tuple[CallEntry, ...]:
        """Return what is known of all functions and methods whose name ends with this part."""
        if not self._endings:
            for table in (self._exact, self._methods):
                for name, entry in table.items():
                    self._endings.setdefault(name.rpartition(".")[2], []).append(entry)
        return tuple(self._endings.get(last.lower() if self._folded else last, ()))

    def acting(self, name: str) -> list[CallEntry]:
        """Return what is known of a full name, without what only computes."""
        return [entry for entry in self.find(name) if not entry.idle]

    def _search(self, name: str) -> tuple[CallEntry, ...]:
        exact = self._exact.get(name)
        if exact is not None:
            return (exact,)
        start, _, last = name.rpartition(".")
        found = [self._methods[last]] if start and last in self._methods else []
        while start:
            if start in self._prefixes:
                found.append(self._prefixes[start])
                break
            start = start.rpartition(".")[0]
        return tuple(found)


def tables_of_calls(entries: Iterable[Entry], scales: Scales, languages: Collection[str]) -> dict[str, Calls]:
    """Return the calls of every language, by language."""
    by_language: dict[str, list[CallEntry]] = {language: [] for language in languages}
    for part in entries:
        entry = CallEntry(part, scales, languages)
        by_language[entry.language].append(entry)
    return {language: Calls(found, language) for language, found in by_language.items()}


def calls_beneath(lower: list[dict[str, Any]], upper: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the entries of a definition without the names that another, which lies on top, has too."""
    taken = {(part["language"], name) for part in upper for name in part["names"]}
    kept = []
    for part in lower:
        names = [name for name in part["names"] if (part["language"], name) not in taken]
        if names:
            kept.append(part | {"names": names})
    return kept


def _place(entry: Entry, key: str) -> int | None:
    return None if entry.get(key) is None else entry.count(key)
