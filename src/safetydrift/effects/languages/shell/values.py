"""What words and variables hold: text that is known, or text that is only complete when the command runs."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from tree_sitter import Node

MAX_ALTERNATIVES = 16
"""More values than these are not told apart."""
MAX_VALUE = 16 * 1024
"""A longer value is not kept."""


class Computed(str):
    """Text that the shell completes when it runs the command; what is unknown of it stands as written."""

    __slots__ = ()


class Carried(Computed):
    """Computed text that brings along content: what a command reads, a secret of the environment, a line of input."""

    __slots__ = ()


class Fed:
    """What a command is fed.

    Attributes
    ----------
    text
        The text itself, None where it is not known.
    words
        The words of the command whose output it is, if any.
    part
        What is known of a text that is not known as a whole.
    sources
        What the text comes from: paths, addresses, commands.
    """

    __slots__ = ("part", "sources", "text", "words")

    def __init__(
        self, text: str | None, words: tuple[str, ...] = (), part: str = "", sources: tuple[str, ...] = ()
    ) -> None:
        self.text, self.words, self.part, self.sources = text, words, part, sources


class Function:
    """A function of the text: its body, and whether it has been called."""

    __slots__ = ("body", "called", "open", "source")

    def __init__(self, source: bytes, body: Node) -> None:
        self.source, self.body = source, body
        self.called = self.open = False


class Scope:
    """What the commands so far have defined, over one text and the shell texts within it.

    Attributes
    ----------
    variables
        The values that a variable may have, by its name.
    functions, aliases
        By name.
    files
        Text written to a file, by its path; None where it is not known.
    arguments
        The positional parameters; None where they are not known.
    sources
        What the values of variables come from, by the name of the variable; by ``@`` those of the arguments.
    carried
        What the words of commands come from, by the word.
    remotes, connections
        Addresses of remotes of repositories by name, and of connections by the descriptor of the shell.
    branches
        How many constructs deep the reading is in which a command may be left out or repeated.
    """

    __slots__ = (
        "aliases",
        "arguments",
        "branches",
        "carried",
        "connections",
        "files",
        "functions",
        "remotes",
        "sources",
        "variables",
    )

    def __init__(self) -> None:
        self.variables: dict[str, tuple[str, ...]] = {}
        self.functions: dict[str, Function] = {}
        self.aliases: dict[str, str] = {}
        self.files: dict[str, str | None] = {}
        self.sources: dict[str, tuple[str, ...]] = {}
        self.carried: dict[str, tuple[str, ...]] = {}
        self.remotes: dict[str, str] = {}
        self.connections: dict[str, str] = {}
        self.arguments: tuple[str, ...] | None = ()
        self.branches = 0

    def assign(self, name: str, values: tuple[str, ...], *, adds: bool = False) -> None:
        """Give a variable its values; within a branch, what it held before stays possible."""
        before = self.variables.get(name, ())
        if adds or (self.branches and before):
            values = tuple(dict.fromkeys((*before, *values)))
        self.variables[name] = tuple(
            [value if len(value) <= MAX_VALUE else Carried(f"${name}") for value in values[:MAX_ALTERNATIVES]]
        )


def joined(parts: Iterable[str], sign: str = "") -> str:
    """Join texts; the whole is as little known as the least known of its parts."""
    parts = list(parts)
    return like(sign.join(parts), parts)


def like(text: str, parts: Iterable[str]) -> str:
    """Return a text that was made from parts, as little known as the least known of them."""
    kinds = {type(part) for part in parts}
    if kinds == {str}:
        return text
    return Carried(text) if Carried in kinds else Computed(text) if Computed in kinds else str(text)


def file_key(path: str) -> str:
    """Return the name under which a file is found again, from whatever directory it is named."""
    return path.rstrip("/").rpartition("/")[2]
