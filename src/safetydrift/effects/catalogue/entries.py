"""What a catalogue holds: entries for tools, programs, paths and annotations, read from plain data."""

from __future__ import annotations

from safetydrift.effects.catalogue.acts import read_kinds
from safetydrift.effects.catalogue.globs import Globs, NameGlobs
from safetydrift.effects.catalogue.harms import read_harm, read_targets
from safetydrift.effects.catalogue.http_roles import HttpRoles
from safetydrift.effects.catalogue.names import as_words
from safetydrift.effects.content.patterns import require_bounded
from safetydrift.errors import CatalogueError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from safetydrift.effects.catalogue.names import NameWords
    from safetydrift.effects.catalogue.plain import Entry
    from safetydrift.effects.catalogue.scales import Ranks, Scales


class ToolCase:
    """An effect that holds when an argument has a certain value.

    Attributes
    ----------
    argument, values
        The argument, and globs for its value; the case of letters is ignored.
    ranks
        What the effect then is, in the dimensions it names; the entry's own effect holds in the others.
    kinds, leaves
        What then holds instead of the entry's own; None where it says nothing of it.
    note
        Why, in words.
    harm
        The operation that it then is; without an action where the entry's own holds.
    """

    __slots__ = ("argument", "harm", "kinds", "leaves", "note", "ranks", "values")

    def __init__(self, entry: Entry, scales: Scales) -> None:
        self.argument = entry.text("argument", required=True)
        self.values = Globs(entry.named("values"), fold=True)
        self.ranks: Ranks = scales.read(entry.required("effect"), entry.where, whole=False)
        self.kinds = None if entry.get("kinds") is None else read_kinds(entry)
        self.leaves = None if entry.get("leaves") is None else entry.flag("leaves")
        self.note = entry.text("note")
        self.harm = read_harm(entry, action=False)
        entry.done()


class ToolEntry:
    """What tools of some exact names do.

    Attributes
    ----------
    names
        The names, with ``mcp__<server>__<name>`` for each of the entry's servers.
    ranks
        The effect, or None where the text in one of `arguments` decides it.
    language, arguments
        Which argument holds text of which language, the first that is given; both empty where none does.
    http
        Which arguments make up a request, where the language is ``"http"``; else None.
    paths
        Arguments that name a file whose content is read or carried: its path may raise the effect.
    cases
        Refinements, the first that holds decides.
    to
        Arguments that name who receives, is paid, is invited or gains access.
    kinds
        The kinds of violation it completes if nobody entitled to it has asked for it.
    leaves
        Whether its arguments go to others, so that it is a leak if they are sensitive.
    own
        Whether what comes back is the operator's own record, written by nobody outside. What speaks to the agent in it
        is heard as a stranger's order all the same.
    note
        Why, in words.
    harm
        The operation that it is; without an action where its text or its effect tell it.
    targets
        Which arguments name what it is done to: names by their role, one of `ROLES`. Empty where they go by their names
        (`RolesEntry`).
    """

    __slots__ = (
        "arguments",
        "cases",
        "harm",
        "http",
        "kinds",
        "language",
        "leaves",
        "names",
        "note",
        "own",
        "paths",
        "ranks",
        "targets",
        "to",
    )

    def __init__(self, entry: Entry, scales: Scales, languages: Collection[str]) -> None:
        names = entry.named("names")
        self.names = names + tuple(
            f"mcp__{server}__{name}" for server in entry.texts("servers") for name in names
        )
        self.language = known_language(entry, {*languages, "http"})
        self.arguments = _one_or_more(entry, "argument")
        requests = self.language == "http"
        self.http = HttpRoles(entry.part("http") if entry.get("http") else None) if requests else None
        if self.language and not requests and not self.arguments:
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
        self.to = entry.texts("to")
        self.kinds = read_kinds(entry)
        self.leaves = entry.flag("leaves")
        self.own = entry.flag("own")
        self.note = entry.text("note")
        self.harm = read_harm(entry, action=False)
        self.targets = read_targets(entry)
        entry.text("source")
        entry.done()

    @property
    def plain(self) -> bool:
        """Whether the effect depends on the name alone."""
        return not (self.language or self.paths or self.cases)

    def text(self, args: Mapping[str, object]) -> object:
        """Return the argument that holds the text, None where it is missing."""
        return next((args[name] for name in self.arguments if args.get(name) is not None), None)


def _one_or_more(entry: Entry, key: str) -> tuple[str, ...]:
    """Return a text or a list of texts."""
    return entry.texts(key) if isinstance(entry.get(key), list) else tuple(filter(None, [entry.text(key)]))


class PatternEntry:
    """What tools of a name do that nobody listed; every condition that an entry gives has to hold.

    Attributes
    ----------
    match
        Globs for the whole name; the case of letters is ignored.
    verbs
        What the tool does: of its verbs (`NameWords.verbs`, of all that any pattern lists) one is one of these.
    words
        The tool's own name has one of these words, wherever it stands.
    nouns
        The name, with that of the server, has one of these words.
    ranks, note
        The effect, and why, in words.
    kinds, leaves
        As in `ToolEntry`.
    harm
        The operation that such a tool is.
    language, arguments
        The language of the text in one of these arguments, which then decides; both empty for most.
    """

    __slots__ = (
        "arguments",
        "harm",
        "kinds",
        "language",
        "leaves",
        "match",
        "note",
        "nouns",
        "ranks",
        "verbs",
        "words",
    )

    def __init__(self, entry: Entry, scales: Scales, languages: Collection[str]) -> None:
        given = [key for key in ("match", "verbs", "words") if entry.get(key) is not None]
        first = entry.named(given[0] if given else "match")
        self.match = Globs(first if given[0] == "match" else (), fold=True)
        self.verbs = as_words(entry.texts("verbs"))
        self.words = as_words(entry.texts("words"))
        self.nouns = as_words(entry.texts("nouns"))
        self.ranks: Ranks = scales.read(entry.required("effect"), entry.where)
        self.kinds = read_kinds(entry)
        self.leaves = entry.flag("leaves")
        self.note = entry.text("note")
        self.harm = read_harm(entry, action=False)
        self.language = known_language(entry, languages)
        self.arguments = entry.texts("arguments")
        entry.done()

    def holds(self, name: str, told: NameWords, verbs: frozenset[str]) -> bool:
        """Return whether it speaks of a tool: its name, the words of it, and the verbs among them."""
        return (
            not (self.verbs and self.verbs.isdisjoint(verbs))
            and not (self.words and self.words.isdisjoint(told.own))
            and not (self.nouns and self.nouns.isdisjoint(told.every))
            and (not self.match or name in self.match)
        )


class RolesEntry:
    """What arguments are for, by their names, where the tool's entry does not say it.

    Attributes
    ----------
    to
        Globs for arguments that name who receives, is paid, is invited or gains access.
    prose
        Globs for arguments that hold free text; of those only the addresses in them decide anything.
    secret
        Globs for arguments that hold a password, a key or a code: giving one carries credentials.
    targets
        Globs for arguments that name what a call is done to, by the role that it has there.
    """

    __slots__ = ("prose", "secret", "targets", "to")

    def __init__(self, entry: Entry) -> None:
        self.to = NameGlobs(entry.texts("to"))
        self.prose = NameGlobs(entry.texts("prose"))
        self.secret = NameGlobs(entry.texts("secret"))
        self.targets = tuple([(role, NameGlobs(names)) for role, names in read_targets(entry)])
        entry.done()


class MarkEntry:
    """What gives away a passage that speaks to the agent.

    Attributes
    ----------
    leads
        What such a mark begins with, in small letters.
    then
        A regular expression for what follows, whose work is bounded; empty if nothing has to.
    note
        Why, in words.
    """

    __slots__ = ("leads", "note", "then")

    def __init__(self, entry: Entry) -> None:
        self.leads = entry.texts("leads")
        if not all(lead == lead.lower() for lead in self.leads) or not self.leads:
            raise CatalogueError(f"{entry.where}: leads: expected one or more texts in small letters")
        self.then = entry.text("then")
        try:
            if self.then:
                require_bounded(self.then)
        except ValueError as error:
            raise CatalogueError(f"{entry.where}: then: {error}") from error
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
    changed
        The kinds of violation that changing or deleting such a file may complete.
    """

    __slots__ = ("addresses", "changed", "match", "note", "ranks")

    def __init__(self, entry: Entry, scales: Scales) -> None:
        patterns = entry.named("match")
        addresses = [pattern for pattern in patterns if "://" in pattern]
        self.match = Globs([anywhere(pattern) for pattern in patterns if pattern not in addresses])
        self.addresses = Globs(addresses, fold=True)
        self.ranks: Ranks = scales.read(entry.required("effect"), entry.where, whole=False)
        self.changed = read_kinds(entry, "changed")
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


def anywhere(pattern: str) -> str:
    """Return a glob that finds a pattern of whole components anywhere in a canonical path."""
    core = pattern.lower().strip("/")
    return f"*{core if core.startswith('*') else '/' + core}{'' if core.endswith('*') else '/'}*"


PATHS = ("files", "words", "paths", "deleted", "written", "touched", "edited", "copied", "moved", "packed")
"""What the operands of a program may be."""


class ProgramCase:
    """An effect that holds when a program is given certain words.

    Attributes
    ----------
    first
        Globs for the subcommand: the first operand, or the first two joined by a space.
    words
        Globs for any one word, or for two neighbours joined by a space. Where both sets are given, both
        must match.
    lacks
        Globs for words that must not be there.
    paths
        As in `ProgramEntry`, where it differs from what the program's entry says; else None.
    ranks
        What the effect then is, in the dimensions it names.
    kinds, leaves
        As in `ProgramEntry`.
    wraps, skip
        Whether a command of its own follows the subcommand, and how many operands stand between them
        (``docker exec CONTAINER COMMAND``).
    """

    __slots__ = ("first", "kinds", "lacks", "leaves", "note", "paths", "ranks", "skip", "words", "wraps")

    def __init__(self, entry: Entry, scales: Scales, *, folds: bool = False) -> None:
        self.first = Globs(entry.texts("first"), fold=folds)
        self.words = Globs(entry.texts("words"), fold=folds)
        self.lacks = Globs(entry.texts("lacks"), fold=folds)
        if not self.first and not self.words and not self.lacks:
            raise CatalogueError(f"{entry.where}: lacks 'first', 'words' or 'lacks'")
        self.paths = None if entry.get("paths") is None else known_paths(entry)
        self.ranks: Ranks = scales.read(entry.required("effect"), entry.where, whole=False)
        self.kinds = read_kinds(entry)
        self.leaves = entry.flag("leaves")
        self.wraps = entry.flag("wraps")
        self.skip = entry.count("skip")
        self.note = entry.text("note")
        entry.done()


class CodeOption:
    """Where the words of a program hold code in some language: ``python -c CODE``, ``git -c core.pager=CODE``.

    Attributes
    ----------
    options
        Globs for options whose value is the code. It is the next word, or stands behind ``=``, or is glued to an
        option of one letter.
    words
        Globs for words in which the code is what their final ``*`` stands for (``core.pager=*``).
    language
        The language of the code.
    """

    __slots__ = ("_marks", "_whole", "language", "options", "words")

    def __init__(self, entry: Entry, languages: Collection[str], *, folds: bool = False) -> None:
        options, words = entry.texts("options"), entry.texts("words")
        if not options and not words:
            raise CatalogueError(f"{entry.where}: lacks 'options' or 'words'")
        wrong = [word for word in words if not word.endswith("*") or not word.rstrip("*")]
        if wrong:
            raise CatalogueError(
                f"{entry.where}: {wrong[0]!r} has to end with a '*' that stands for the code"
            )
        self.options, self.words = Globs(options, fold=folds), Globs(words, fold=folds)
        self._whole = folds
        # The text before the code, by which it is found in a word that matches.
        self._marks = tuple([word.rstrip("*").rpartition("*")[2] for word in words])
        self.language = known_language(entry, languages, required=True)
        entry.done()

    def value(self, words: Sequence[str], at: int) -> str | None:
        """Return the code that the word at a position holds or announces, None if it does neither."""
        word = words[at]
        if word in self.words:
            mark = next((mark for mark in self._marks if mark in word), "")
            start = word.find(mark) + len(mark)
            # Code that begins behind a quotation mark ends before the last one.
            end = word.rfind(mark[-1], start) if mark[-1:] in {'"', "'"} else -1
            return _tail(word[:end] if end > 0 and type(word) is str else word, start)
        if len(word) < 2 or word[0] != "-" or not self.options:  # noqa: PLR2004
            return None
        following = words[at + 1] if at + 1 < len(words) else None
        if word in self.options or self._whole:
            return following if word in self.options else None
        option, equals, _ = word.partition("=")
        if word[1] == "-":
            return _tail(word, len(option) + 1) if equals and option in self.options else None
        if word[:2] in self.options:
            return _tail(word, 2)
        return following if f"-{word[-1]}" in self.options else None


def _tail(word: str, start: int) -> str:
    """Return the rest of a word; what says of a word how far it is known is kept."""
    rest = word[start:]
    return rest if type(word) is str else type(word)(rest)


class ProgramEntry:
    """What programs of some names do in a shell.

    Attributes
    ----------
    names
        Program names without directory.
    folds
        Whether the case of letters does not count, neither in the names nor in what the program is given; its options
        are then never glued to their values.
    ranks
        The effect when no case holds; of a program that wraps another, its effect when it wraps nothing.
    paths
        What its operands are: ``"files"`` whose content is read or carried, files that are ``"deleted"``,
        ``"written"`` or only ``"touched"``, ``"edited"`` in place, ``"copied"`` or ``"moved"`` to the last of them, or
        ``"packed"`` into one of them or out of it; ``"words"`` if any word may name a file, so that only telling names
        count, ``"paths"`` if any word with a slash may; else empty.
    outputs
        Globs for options whose value is a file that it writes.
    valued
        Options whose value is the next word.
    skip, skip_unless
        How many leading operands are neither files nor the wrapped command (a search pattern, a duration),
        and the options that put one of them elsewhere.
    wraps
        Whether the operands are a command of their own.
    code
        Options whose value is code, by language.
    language
        The language of what it is fed and of the code file it is given; empty where it runs no code.
    operand_code
        Whether its first operand after those skipped is code in `language` (``awk CODE``, ``sqlite3 FILE CODE``).
    executes
        Words after which a command stands, up to ``;`` or ``+``.
    evaluates
        Whether the operands, joined, are shell text (``eval``, ``ssh HOST``).
    hosts
        Which words name the hosts it talks to: ``"operands"``; ``"words"`` where the operands may be files as well;
        ``"sockets"`` for operands of raw connections, whose effect holds whoever is at the other end; or empty where
        it talks to none that can be told.
    kinds
        The kinds of violation it may complete.
    leaves
        Whether it carries content out, so that it is a leak if the content is sensitive.
    slashes
        Whether its options begin with a slash.
    stdin
        ``"code"`` if it runs what it is fed, ``"operands"`` if what it is fed are further operands, ``"words"`` if
        the lines of it are commands of its own, which count as further words.
    cases
        Refinements, the first that holds decides.
    """

    __slots__ = (
        "cases",
        "code",
        "evaluates",
        "executes",
        "folds",
        "hosts",
        "kinds",
        "language",
        "leaves",
        "names",
        "note",
        "operand_code",
        "outputs",
        "paths",
        "ranks",
        "skip",
        "skip_unless",
        "slashes",
        "stdin",
        "valued",
        "wraps",
    )

    def __init__(self, entry: Entry, scales: Scales, languages: Collection[str]) -> None:
        self.names = entry.named("names")
        self.ranks: Ranks = scales.read(entry.required("effect"), entry.where)
        self.kinds = read_kinds(entry)
        self.leaves = entry.flag("leaves")
        self.paths = known_paths(entry)
        self.outputs = Globs(entry.texts("outputs"))
        self.valued = frozenset(entry.texts("valued"))
        self.skip = entry.count("skip")
        self.skip_unless = Globs(entry.texts("skip_unless"))
        self.wraps = entry.flag("wraps")
        self.folds = entry.flag("folds")
        self.code = tuple([CodeOption(part, languages, folds=self.folds) for part in entry.parts("code")])
        self.language = known_language(entry, languages)
        self.operand_code = entry.flag("operand_code")
        self.hosts = entry.text("hosts")
        if self.hosts not in {"", "operands", "words", "sockets"}:
            raise CatalogueError(
                f"{entry.where}: hosts is 'operands', 'words' or 'sockets', got {self.hosts!r}"
            )
        self.executes = frozenset(entry.texts("executes"))
        self.evaluates = entry.flag("evaluates")
        self.slashes = entry.flag("slashes")
        self.stdin = entry.text("stdin")
        if self.stdin not in {"", "code", "operands", "words"}:
            raise CatalogueError(f"{entry.where}: stdin is 'code', 'operands' or 'words', got {self.stdin!r}")
        self.cases = tuple([ProgramCase(part, scales, folds=self.folds) for part in entry.parts("cases")])
        self.note = entry.text("note")
        entry.done()


class ShellEntry:
    """What the shell itself knows, whatever the programs.

    Attributes
    ----------
    discard
        Targets of output that are no files.
    inquiries
        Words that, alone, only make a known program speak about itself.
    directories
        Where programs usually live; one named by another path is a program of the task.
    known
        Paths of files that are found everywhere, for patterns that stand for one of them.
    running
        Variables whose value a shell or a program runs as a command.
    checkers
        Globs for the names of programs of the task that only look and report, as far as their names tell.
    makers
        Globs for names that also say that something is made: such a program is no mere checker.
    results
        Directories where results go: a checker that is given a place in one as a further operand writes there.
    unchecked
        Directories whose programs are not taken at their names: what lies there was just written.
    lookers
        Globs for the names of programs nobody knows that only look, as far as their names tell.
    asking
        Globs for the first word after the name of a program nobody knows that only asks it for something.
    trivial
        Programs whose output tells nothing of the host that matters.
    authors
        Variables that say in whose name something is committed.
    unrecorded, preloading
        Variables that keep the shell from recording what is typed, and those that put code into what it starts.
    decoders
        Programs that turn a code back into text.
    destroying
        Globs for first operands and options that tell a program nobody knows to delete something.
    """

    __slots__ = (
        "asking",
        "authors",
        "checkers",
        "decoders",
        "destroying",
        "directories",
        "discard",
        "inquiries",
        "known",
        "lookers",
        "makers",
        "preloading",
        "results",
        "running",
        "trivial",
        "unchecked",
        "unrecorded",
    )

    def __init__(self, entry: Entry) -> None:
        self.known = entry.texts("known")
        self.running = frozenset(entry.texts("running"))
        self.discard = Globs(entry.texts("discard"))
        self.inquiries = frozenset(entry.texts("inquiries"))
        self.directories = frozenset(entry.texts("directories"))
        self.checkers = Globs(entry.texts("checkers"), fold=True)
        self.unchecked = entry.texts("unchecked")
        self.makers = Globs(entry.texts("makers"), fold=True)
        self.results = frozenset(entry.texts("results"))
        self.lookers = Globs(entry.texts("lookers"), fold=True)
        self.asking = Globs(entry.texts("asking"))
        self.trivial = frozenset(entry.texts("trivial"))
        self.decoders = frozenset(entry.texts("decoders"))
        self.unrecorded = frozenset(entry.texts("unrecorded"))
        self.preloading = frozenset(entry.texts("preloading"))
        self.authors = frozenset(entry.texts("authors"))
        self.destroying = Globs(entry.texts("destroying"), fold=True)
        entry.done()


class NotedEffect:
    """An effect with its kinds and a note, for what the readers meet by themselves."""

    __slots__ = ("kinds", "note", "ranks")

    def __init__(self, entry: Entry, scales: Scales) -> None:
        self.ranks: Ranks = scales.read(entry.required("effect"), entry.where, whole=False)
        self.kinds = read_kinds(entry)
        self.note = entry.text("note")
        entry.done()


def known_paths(entry: Entry) -> str:
    """Return what an entry says the operands are; empty if it says nothing."""
    paths = entry.text("paths")
    if paths and paths not in PATHS:
        raise CatalogueError(f"{entry.where}: paths is one of {', '.join(PATHS)}, got {paths!r}")
    return paths


def known_language(entry: Entry, languages: Collection[str], *, required: bool = False) -> str:
    """Return the language that an entry names; empty if it names none and need not."""
    language = entry.text("language", required=required)
    if language and language not in languages:
        raise CatalogueError(
            f"{entry.where}: unknown language {language!r}; known: {', '.join(sorted(languages))}"
        )
    return language
