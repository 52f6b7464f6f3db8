"""What a catalogue holds: entries for tools, programs, paths and annotations, read from plain data."""

from __future__ import annotations

from safetydrift.effects.globs import Globs
from safetydrift.errors import CatalogueError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from safetydrift.effects.plain import Entry
    from safetydrift.effects.scales import Ranks, Scales


class ToolCase:
    """An effect that holds when an argument has a certain value.

    Attributes
    ----------
    argument, values
        The argument, and globs for its value; the case of letters is ignored.
    ranks
        What the effect then is, in the dimensions it names; the entry's own effect holds in the others.
    note
        Why, in words.
    """

    __slots__ = ("argument", "note", "ranks", "values")

    def __init__(self, entry: Entry, scales: Scales) -> None:
        self.argument = entry.text("argument", required=True)
        self.values = Globs(entry.named("values"), fold=True)
        self.ranks: Ranks = scales.read(entry.required("effect"), entry.where, whole=False)
        self.note = entry.text("note")
        entry.done()


class ToolEntry:
    """What tools of some exact names do.

    Attributes
    ----------
    names
        The names, with ``mcp__<server>__<name>`` for each of the entry's servers.
    ranks
        The effect, or None where the text in `argument` decides it.
    language, argument
        Which argument holds text of which language; both empty where none does.
    paths
        Arguments that name a file whose content is read or carried: its path may raise the effect.
    cases
        Refinements, the first that holds decides.
    note
        Why, in words.
    """

    __slots__ = ("argument", "cases", "language", "names", "note", "paths", "ranks")

    def __init__(self, entry: Entry, scales: Scales, languages: Collection[str]) -> None:
        names = entry.named("names")
        self.names = names + tuple(
            f"mcp__{server}__{name}" for server in entry.texts("servers") for name in names
        )
        self.language = entry.text("language")
        self.argument = entry.text("argument")
        if self.language and self.language not in languages:
            raise CatalogueError(
                f"{entry.where}: unknown language {self.language!r}; known: {', '.join(sorted(languages))}"
            )
        if self.language and not self.argument:
            raise CatalogueError(
                f"{entry.where}: lacks 'argument', the one that holds the {self.language} text"
            )
        effect = entry.get("effect") if self.language else entry.required("effect")
        if self.language and effect is not None:
            raise CatalogueError(
                f"{entry.where}: has a language, so its effect comes from the text; drop 'effect'"
            )
        self.ranks: Ranks | None = None if self.language else scales.read(effect, entry.where)
        self.paths = entry.texts("paths")
        self.cases = tuple([ToolCase(part, scales) for part in entry.parts("cases")])
        if self.language and (self.paths or self.cases):
            raise CatalogueError(f"{entry.where}: has a language; paths and cases go with an effect")
        self.note = entry.text("note")
        entry.text("source")
        entry.done()

    @property
    def plain(self) -> bool:
        """Whether the effect depends on the name alone."""
        return not (self.language or self.paths or self.cases)


class PatternEntry:
    """What tools whose whole name matches a glob do; the case of letters is ignored."""

    __slots__ = ("match", "note", "ranks")

    def __init__(self, entry: Entry, scales: Scales) -> None:
        self.match = Globs(entry.named("match"), fold=True)
        self.ranks: Ranks = scales.read(entry.required("effect"), entry.where)
        self.note = entry.text("note")
        entry.done()


class AnnotationEntry:
    """What an MCP annotation with a certain value says.

    Attributes
    ----------
    hint, value
        The annotation and the value it must have.
    ranks
        The dimensions it speaks of.
    lowers
        Whether it replaces what is otherwise assumed, which needs a trusted server; otherwise it only raises.
    """

    __slots__ = ("hint", "lowers", "note", "ranks", "value")

    def __init__(self, entry: Entry, scales: Scales) -> None:
        self.hint = entry.text("hint", required=True)
        entry.required("value")
        self.value = entry.flag("value")
        self.ranks: Ranks = scales.read(entry.required("effect"), entry.where, whole=False)
        self.lowers = entry.flag("lowers")
        self.note = entry.text("note")
        entry.done()


class PathEntry:
    """What the name of a file tells of its content.

    Attributes
    ----------
    match
        Globs for the `canonical_path`: each pattern has to match one component of it, or several in a row if it
        has slashes.
    addresses
        Globs with ``://``, which have to match the text as it is.
    """

    __slots__ = ("addresses", "match", "note", "ranks")

    def __init__(self, entry: Entry, scales: Scales) -> None:
        patterns = entry.named("match")
        addresses = [pattern for pattern in patterns if "://" in pattern]
        self.match = Globs([_anywhere(pattern) for pattern in patterns if pattern not in addresses])
        self.addresses = Globs(addresses, fold=True)
        self.ranks: Ranks = scales.read(entry.required("effect"), entry.where, whole=False)
        self.note = entry.text("note")
        entry.done()


def canonical_path(text: str) -> str:
    """Return a path as ``/a/b/c/`` in small letters; what is glued to it (``--file=a``, ``@a``, ``host:a``) is split.

    >>> canonical_path("file=@~/.SSH/./id_rsa")
    '/file/~/.ssh/id_rsa/'
    """
    text = text.lower()
    for sign in "=@:\\":
        text = text.replace(sign, "/")
    return "/".join(["", *[part for part in text.split("/") if part and part != "."], ""])


def _anywhere(pattern: str) -> str:
    """Return a glob that finds a pattern of whole components anywhere in a canonical path."""
    core = pattern.lower().strip("/")
    return f"*{core if core.startswith('*') else '/' + core}{'' if core.endswith('*') else '/'}*"


class ProgramCase:
    """An effect that holds when a program is given certain words.

    Attributes
    ----------
    first
        Globs for the subcommand: the first operand, or the first two joined by a space.
    words
        Globs for any one word, or for two neighbours joined by a space. Where both sets are given, both
        must match.
    ranks
        What the effect then is, in the dimensions it names.
    """

    __slots__ = ("first", "note", "ranks", "words")

    def __init__(self, entry: Entry, scales: Scales) -> None:
        self.first = Globs(entry.texts("first"))
        self.words = Globs(entry.texts("words"))
        if not self.first and not self.words:
            raise CatalogueError(f"{entry.where}: lacks 'first' or 'words'")
        self.ranks: Ranks = scales.read(entry.required("effect"), entry.where, whole=False)
        self.note = entry.text("note")
        entry.done()


class ProgramEntry:
    """What programs of some names do in a shell.

    Attributes
    ----------
    names
        Program names without directory.
    ranks
        The effect when no case holds; of a program that wraps another, its effect when it wraps nothing.
    paths
        Which arguments name files whose content is read or carried: ``"files"`` if the operands surely do,
        ``"words"`` if any word may, so that only telling names count; else empty.
    valued
        Options whose value is the next word.
    skip, skip_unless
        How many leading operands are neither files nor the wrapped command (a search pattern, a duration),
        and the options that put one of them elsewhere.
    wraps
        Whether the operands are a command of their own.
    script
        Options whose value is shell text.
    executes
        Words after which a command stands, up to ``;`` or ``+``.
    evaluates
        Whether the operands, joined, are shell text.
    stdin
        ``"code"`` if it runs what it is fed, ``"operands"`` if what it is fed are further operands.
    cases
        Refinements, the first that holds decides.
    """

    __slots__ = (
        "cases",
        "evaluates",
        "executes",
        "names",
        "note",
        "paths",
        "ranks",
        "script",
        "skip",
        "skip_unless",
        "stdin",
        "valued",
        "wraps",
    )

    def __init__(self, entry: Entry, scales: Scales) -> None:
        self.names = entry.named("names")
        self.ranks: Ranks = scales.read(entry.required("effect"), entry.where)
        self.paths = entry.text("paths")
        if self.paths not in {"", "files", "words"}:
            raise CatalogueError(f"{entry.where}: paths is 'files' or 'words', got {self.paths!r}")
        self.valued = frozenset(entry.texts("valued"))
        self.skip = entry.count("skip")
        self.skip_unless = Globs(entry.texts("skip_unless"))
        self.wraps = entry.flag("wraps")
        self.script = Globs(entry.texts("script"))
        self.executes = frozenset(entry.texts("executes"))
        self.evaluates = entry.flag("evaluates")
        self.stdin = entry.text("stdin")
        if self.stdin not in {"", "code", "operands"}:
            raise CatalogueError(f"{entry.where}: stdin is 'code' or 'operands', got {self.stdin!r}")
        self.cases = tuple([ProgramCase(part, scales) for part in entry.parts("cases")])
        self.note = entry.text("note")
        entry.done()


class ShellEntry:
    """What the shell itself does, whatever the programs.

    Attributes
    ----------
    unknown, local, computed, writes, file
        The effect of a program nobody knows, of one named by its path, of code that is put together while
        running, of output sent to a file, and of content taken from a file of no telling name.
    discard
        Targets of output that are no files.
    inquiries
        Words that, alone, only make a known program speak about itself.
    """

    __slots__ = ("computed", "directories", "discard", "file", "inquiries", "local", "unknown", "writes")

    def __init__(self, entry: Entry, scales: Scales) -> None:
        self.unknown: Ranks = scales.read(entry.required("unknown"), f"{entry.where}.unknown")
        self.local: Ranks = scales.read(entry.required("local"), f"{entry.where}.local")
        self.computed: Ranks = scales.read(entry.required("computed"), f"{entry.where}.computed")
        self.writes: Ranks = scales.read(entry.required("writes"), f"{entry.where}.writes", whole=False)
        self.file: Ranks = scales.read(entry.required("file"), f"{entry.where}.file", whole=False)
        self.discard = Globs(entry.texts("discard"))
        self.inquiries = frozenset(entry.texts("inquiries"))
        self.directories = frozenset(entry.texts("directories"))
        entry.done()
