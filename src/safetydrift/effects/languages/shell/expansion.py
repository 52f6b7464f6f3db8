"""Words of a command, expanded as far as that can be known without running anything.

A piece of a word is a pair: its possible texts (mostly one), and whether the shell splits it into words.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from itertools import product

from safetydrift.effects.languages.shell.outputs import unescaped
from safetydrift.effects.languages.shell.parameters import PRESET, Parameter, applied
from safetydrift.effects.languages.shell.values import (
    MAX_ALTERNATIVES,
    Carried,
    Computed,
    Scope,
    joined,
    like,
)
from safetydrift.effects.reading import UnreadableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from tree_sitter import Node

    from safetydrift.effects.reading import Reading

    Piece = tuple[tuple[str, ...], bool]

MAX_DEPTH = 48
"""Deeper nesting within one text is not followed."""
MAX_WORDS = 4096
_ESCAPED = re.compile(r"\\(\n)?(.?)", re.DOTALL)
_ESCAPED_IN_QUOTES = re.compile(r"\\([\n$`\"\\])")
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
_NAMES = re.compile(r"[A-Za-z_]\w*")
_SHOWN = 200
_FREE = 64


class Expander(ABC):
    """Expands the words of one text; how the commands within them are read is left to a subclass."""

    def __init__(self, reading: Reading, scope: Scope) -> None:
        self.reading, self.scope = reading, scope
        self.source = b""
        self.end = 0
        self.part = ""
        self.given: list[str] = []
        self.depth = 0

    @abstractmethod
    def substituted(self, node: Node) -> str:
        """Read the commands of a substitution; return its output, `Computed` where that is not known."""

    def enter(self) -> None:
        """Go one level deeper; whoever enters lowers `depth` again."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise UnreadableError(f"more than {MAX_DEPTH} levels of nesting")

    def written(self, node: Node) -> str:
        """Return the text of a node as it is written."""
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    # -- whole words --------------------------------------------------------------------------------------

    def fields(self, node: Node) -> list[str]:
        """Return the words that one written word becomes: several or none where the shell splits or drops it."""
        kind = node.type
        if kind == "word":
            text = self.written(node)
            if "\\" not in text:
                return [text]
        elif kind == "raw_string":
            return [self.written(node)[1:-1]]
        elif kind == "number":
            return [self.written(node)]
        elif kind == "string":
            spread = self._spread(node)
            return list(self._quoted(node)) if spread is None else spread
        pieces = self._pieces(node)
        words = self._split(pieces)
        if kind == "concatenation" and any("{" in word for word in words):
            words = [part for word in words for part in _braces(word)]
        return words[:MAX_WORDS]

    def text(self, node: Node) -> str:
        """Return a word where the shell does not split it: a value, the target of a redirection."""
        return self._only(_combined(self._pieces(node)))

    def alternatives(self, node: Node) -> tuple[str, ...]:
        """Return the possible texts of a word that is not split."""
        return _combined(self._pieces(node))

    def body(self, node: Node, *, quoted: bool) -> str:
        """Return the body of a here-document."""
        if quoted:
            return self.written(node)
        return self._only(self._filled(node, node.start_byte, node.end_byte, plain=False))

    def choice(self, node: Node) -> tuple[str, ...]:
        """Return the values of a variable that stands alone and may be one of several; else nothing."""
        if node.type == "string" and node.named_child_count == 1:
            node = node.named_children[0]
        written = self.source[node.start_byte : node.end_byte]
        if node.type not in {"simple_expansion", "expansion"} or b"[" in written or written in {b"$@", b"$*"}:
            return ()
        values = self._variable(node)
        return values if len(values) > 1 else ()

    def _only(self, values: tuple[str, ...]) -> str:
        return values[0] if len(values) == 1 else joined(values, " ")

    def _spread(self, node: Node) -> list[str] | None:
        """Return the words of ``"$@"`` and ``"${a[@]}"``, None if it is something else."""
        if node.named_child_count != 1:
            return None
        inner = node.named_children[0]
        text = self.source[inner.start_byte : inner.end_byte]
        if text == b"$@" or text.endswith(b"[@]}"):
            return list(self._variable(inner))
        return None

    def _split(self, pieces: list[Piece]) -> list[str]:
        """Return words from pieces; text that came from a variable falls apart at blanks."""
        if len(pieces) == 1 and not pieces[0][1]:
            return list(pieces[0][0])
        if not any(splits for _, splits in pieces):
            return list(_combined(pieces))
        words: list[str] = []
        open_parts: list[str] = []
        for values, splits in pieces:
            if not splits:
                open_parts.append(self._only(values))
                continue
            text = self._only(values)
            parts = self._fields_of(text)
            if parts and text[:1].isspace() and open_parts:
                words.append(joined(open_parts))
                open_parts = []
            for number, part in enumerate(parts):
                if number and open_parts:
                    words.append(joined(open_parts))
                    open_parts = []
                open_parts.append(part)
            if text[-1:].isspace() and open_parts:
                words.append(joined(open_parts))
                open_parts = []
        if open_parts:
            words.append(joined(open_parts))
        return words

    def _fields_of(self, text: str) -> list[str]:
        if isinstance(text, Computed) and text.startswith(("$(", "`", "<(", ">(")):
            return [text]
        separators = self.scope.variables.get("IFS", ("",))[0]
        for sign in separators[:8]:
            text = like(text.replace(sign, " "), (text,))
        return [like(part, (text,)) for part in text.split()]

    # -- pieces of words ----------------------------------------------------------------------------------

    def _pieces(self, node: Node) -> list[Piece]:
        read = _PIECES.get(node.type)
        if read is not None:
            return read(self, node)
        return [(self._filled(node, node.start_byte, node.end_byte, plain=True), False)]

    def _word(self, node: Node) -> list[Piece]:
        return [((_ESCAPED.sub(r"\2", self.written(node)),), False)]

    def _raw(self, node: Node) -> list[Piece]:
        return [((self.written(node)[1:-1],), False)]

    def _ansi(self, node: Node) -> list[Piece]:
        return [((unescaped(self.written(node)[2:-1]),), False)]

    def _string(self, node: Node) -> list[Piece]:
        return [(self._quoted(node), False)]

    def _concatenation(self, node: Node) -> list[Piece]:
        self.enter()
        pieces = [piece for child in node.children if child.type != "$" for piece in self._pieces(child)]
        self.depth -= 1
        return pieces

    def _expanded(self, node: Node) -> list[Piece]:
        return [(self._variable(node), True)]

    def _substitution(self, node: Node) -> list[Piece]:
        return [((self.substituted(node),), True)]

    def _quoted(self, node: Node) -> tuple[str, ...]:
        start, end = node.start_byte, node.end_byte
        first = self.source.find(b'"', start, end) + 1
        last = end - 1 if end > first and self.source[end - 1 : end] == b'"' else end
        return self._filled(node, first, last, plain=False)

    def _filled(self, node: Node, start: int, end: int, *, plain: bool) -> tuple[str, ...]:
        """Return text with the expansions in it replaced; what stands between them has no node of its own."""
        pieces: list[Piece] = []
        at = start
        known = True
        for child in self._expansions(node):
            pieces.append(((self._literal(at, child.start_byte),), False))
            pieces += self._pieces(child)
            at, known = child.end_byte, False
        if known:
            return (self._literal(start, end),)
        pieces.append(((self._literal(at, end),), False))
        values = _combined(pieces)
        return tuple(Computed(value) if plain and type(value) is str else value for value in values)

    def _literal(self, start: int, end: int) -> str:
        text = self.source[start:end].decode("utf-8", "replace")
        return _ESCAPED_IN_QUOTES.sub(_unquoted, text) if "\\" in text else text

    def _expansions(self, node: Node) -> Iterable[Node]:
        """Yield the expansions within a node, from left to right, without those within one another."""
        stack = list(reversed(node.children))
        while stack:
            child = stack.pop()
            if child.type in _EXPANSIONS:
                yield child
            elif child.child_count:
                stack.extend(reversed(child.children))

    # -- parameters ---------------------------------------------------------------------------------------

    def _variable(self, node: Node) -> tuple[str, ...]:
        written = self.written(node)
        for child in self._expansions(node):
            if child.type.endswith("substitution"):
                default = self.substituted(child)
                if type(default) is str:
                    written = written.replace(self.written(child), default)
        parameter = Parameter(written)
        if parameter.name in {"@", "*"} or (parameter.name.isdigit() and parameter.name != "0"):
            return self._positional(parameter, written)
        if self.scope.sources:
            self.reading.taken += self.scope.sources.get(parameter.name, ())
        values = self._values(parameter.name)
        if parameter.indirect:
            values = tuple(value for name in values for value in self._values(str(name)))
        if parameter.operator and parameter.operator[0] in ":-=+?" and "$" in parameter.operand:
            parameter = parameter.with_operand(self._default(node))
        found = applied(parameter, values)
        return found or (self._unset(parameter.name, written),)

    def _default(self, node: Node) -> str:
        return joined([self._only(_combined(self._pieces(child))) for child in node.named_children[1:]])

    def _positional(self, parameter: Parameter, written: str) -> tuple[str, ...]:
        arguments = self.scope.arguments
        self.reading.taken += self.scope.sources.get("@", ())
        if arguments is None:
            return (Carried(written[:_SHOWN]),)
        if parameter.name.isdigit():
            place = int(parameter.name[:4]) - 1
            values = arguments[place : place + 1]
            return applied(parameter, values) or ("",)
        if parameter.operator or not arguments:
            return applied(parameter, ()) or ("",)
        self.used(arguments)
        return arguments

    def _values(self, name: str) -> tuple[str, ...]:
        values = self.scope.variables.get(name)
        if values is None:
            return PRESET.get(name, ())
        self.used(values)
        return values

    def used(self, values: Iterable[str]) -> None:
        """Pay for text that is put in place of an expansion, which could grow without end."""
        length = sum(map(len, values))
        if length > _FREE:
            self.reading.pay(length)

    def _unset(self, name: str, written: str) -> str:
        """Return the value of a variable that comes from outside the text; its name may tell what it holds."""
        names = _NAMES.findall(name)
        if names and self.reading.names(names[0]):
            return Carried(written[:_SHOWN])
        return Computed(written[:_SHOWN])


def _combined(pieces: list[Piece]) -> tuple[str, ...]:
    """Return the possible texts of pieces put together."""
    if len(pieces) == 1:
        return pieces[0][0]
    count = 1
    for values, _ in pieces:
        count *= len(values)
    if count == 1:
        return (joined([values[0] for values, _ in pieces]),)
    if count > MAX_ALTERNATIVES:
        return (Computed(joined([values[0] for values, _ in pieces])),)
    return tuple([joined(parts) for parts in product(*[values for values, _ in pieces])])


def _braces(word: str) -> list[str]:
    """Return the words of a brace list: ``{a,b}c`` is ``ac bc``."""
    words = [word]
    for _ in range(4):
        found: list[str] = []
        for one in words:
            match = _BRACES.search(one)
            if match is None:
                found.append(one)
            else:
                before, after = one[: match.start()], one[match.end() :]
                found += [like(before + part + after, (word,)) for part in match[1].split(",")]
        if found == words or len(found) > MAX_ALTERNATIVES * 4:
            break
        words = found
    return words


def _unquoted(match: re.Match[str]) -> str:
    return "" if match[1] == "\n" else match[1]


_EXPANSIONS = frozenset(("simple_expansion", "expansion", "command_substitution", "process_substitution"))
_PIECES = {
    "word": Expander._word,  # noqa: SLF001  # the table is part of the class
    "number": Expander._word,  # noqa: SLF001
    "extglob_pattern": Expander._word,  # noqa: SLF001
    "variable_name": Expander._word,  # noqa: SLF001
    "raw_string": Expander._raw,  # noqa: SLF001
    "ansi_c_string": Expander._ansi,  # noqa: SLF001
    "string": Expander._string,  # noqa: SLF001
    "concatenation": Expander._concatenation,  # noqa: SLF001
    "simple_expansion": Expander._expanded,  # noqa: SLF001
    "expansion": Expander._expanded,  # noqa: SLF001
    "command_substitution": Expander._substitution,  # noqa: SLF001
    "process_substitution": Expander._substitution,  # noqa: SLF001
}
