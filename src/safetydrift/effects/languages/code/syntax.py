"""Syntax trees of compiled grammars as a `Program`, whatever the language: what the kinds of nodes are is in a table.

Nodes that no table names are looked through: what stands in them is read, and one that holds a single other stands
for it. So a grammar that changes a little loses little.
"""

from __future__ import annotations

import re

from safetydrift.effects.languages.code.builder import Builder
from safetydrift.effects.languages.code.expressions import (
    OPAQUE,
    Attribute,
    Call,
    Choice,
    Constant,
    Element,
    Expression,
    Index,
    Items,
    Joined,
    Name,
    Routine,
    Table,
)
from safetydrift.effects.languages.code.values import unescaped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tree_sitter import Node

    from safetydrift.effects.languages.code.program import Program

_BLOCK = re.compile(
    r".*(?:statement|block|body|clauses?|declaration|definition|(?:statement|declaration)_list)"
    r"|program|chunk|source_file|module|ERROR|do|then|else|elsif|begin|ensure|rescue|when|case|class|while|until|if|unless"
)
_OF_SEVERAL = frozenset(("binary", "compared", "formatted", "values", "targets", "member", "index"))
"""Roles of nodes that stand for the one in them if there is no other."""
_NOTHING: tuple[str, tuple[str, ...], bool] = ("", (), True)
_PIECES = frozenset(
    ("string_content", "string_fragment", "heredoc_content", "escape_sequence", "nowdoc_string")
)
_ENDS = ("_start", "_end")
_CONSTANTS: dict[str, object] = {"true": True, "false": False}
_CHOOSING = frozenset(("||", "??", "&&", "?:", "or", "and", "//", "-or", "-and"))


class Grammar:
    """What the kinds of nodes of a grammar are to a program.

    Parameters
    ----------
    package
        The package of the compiled grammar.
    pace
        What a hundred steps of its parser cost at worst (see `Reading.budget`), how many characters they take it on at
        least, and how often there may be as many in a text in error, where it searches for the least wrong reading.
    kinds
        By kind of node, the method of `SyntaxTree` that reads it, with the names of its fields.
    joining
        The operators that put texts together.
    pairs
        Kinds of nodes that hold a name and a value.
    names
        Pieces of names that the catalogue writes otherwise.
    raw
        Quotes of texts in which nothing is filled and nothing escaped.
    listed
        Kinds of nodes that hold the arguments of a call.
    avoided
        An expression of what the grammar may never come back from; such texts are not parsed.
    """

    __slots__ = (
        "_blocks",
        "avoided",
        "joining",
        "kinds",
        "listed",
        "names",
        "pace",
        "package",
        "pairs",
        "raw",
    )

    def __init__(
        self,
        package: str,
        pace: tuple[int, int, int],
        kinds: Mapping[str, tuple[str, ...]],
        *,
        joining: str = "+",
        pairs: str = "pair",
        names: Mapping[str, str] | None = None,
        raw: str = "",
        listed: str = "arguments argument_list",
        avoided: str = r"(?!)",
    ) -> None:
        self.avoided = re.compile(avoided)
        self.package, self.pace, self.names, self.raw = package, pace, names or {}, raw
        self.kinds: dict[str, tuple[str, Sequence[str], bool]] = {
            kind: (f"_{role}", fields, role in _OF_SEVERAL) for kind, (role, *fields) in kinds.items()
        }
        self._blocks: dict[str, bool] = {}
        self.joining, self.pairs = frozenset(joining.split()), frozenset(pairs.split())
        self.listed = frozenset(listed.split())

    def is_block(self, kind: str) -> bool:
        """Return whether nodes of a kind hold statements, which are read later."""
        block = self._blocks.get(kind)
        if block is None:
            block = kind not in self.kinds and _BLOCK.fullmatch(kind) is not None
            self._blocks[kind] = block
        return block


class SyntaxTree(Builder):
    """Reads the nodes of one source.

    Parameters
    ----------
    program
        What is found is noted here.
    grammar
        What its kinds of nodes are.
    source
        The text in UTF-8, which the places of nodes count.

    Attributes
    ----------
    texts
        The constant texts met.
    """

    __slots__ = ("_grammar", "_source", "texts")
    setting_calls = True

    def __init__(self, program: Program, grammar: Grammar, source: bytes) -> None:
        super().__init__(program)
        self._grammar, self._source = grammar, source
        self.texts: list[str] = []

    def statement(self, node: Node) -> None:
        """Note what one statement does, and keep those within it for `later`."""
        self.expression(node)

    def translate(self, node: Node) -> Expression:
        """Return a node as an expression."""
        grammar = self._grammar
        while True:
            role, fields, of_several = grammar.kinds.get(node.type, _NOTHING)
            children = node.named_children if of_several else ()
            if role and len(children) != 1:
                result: Expression = getattr(self, role)(node, *fields)
                return result
            if len(children) != 1 or grammar.is_block(children[0].type):
                return self._others(children)
            node = children[0]

    # -- pieces -------------------------------------------------------------------------------------------

    def _text(self, node: Node | None) -> str:
        """Return what stands at a node; nothing where there is none."""
        return "" if node is None else self._between(node.start_byte, node.end_byte)

    def _between(self, start: int, end: int) -> str:
        return self._source[start:end].decode("utf-8", "replace")

    def _plain(self, text: str) -> str:
        """Return a name as the catalogue writes it."""
        for written, plain in self._grammar.names.items():
            text = text.replace(written, plain)
        return text

    def _field(self, node: Node, name: str) -> Expression:
        child = node.child_by_field_name(name)
        return OPAQUE if child is None else self.expression(child, mention=False)

    def _others(self, nodes: Sequence[Node]) -> Expression:
        """Note what stands in nodes that have no value to be told: statements later, all else now."""
        for node in nodes:
            if self._grammar.is_block(node.type):
                self.later((node,))
            else:
                self.expression(node)
        return OPAQUE

    # -- roles: values ------------------------------------------------------------------------------------

    def _skip(self, _node: Node) -> Expression:
        return OPAQUE

    def _name(self, node: Node) -> Expression:
        return Name(self._plain(self._text(node)))

    def _word(self, node: Node) -> Expression:
        return Constant(self._text(node).strip(":"))

    def _constant(self, node: Node) -> Expression:
        return Constant(_CONSTANTS.get(node.type))

    def _number(self, node: Node) -> Expression:
        try:
            return Constant(int(self._text(node)[:20].replace("_", "").rstrip("n"), 0))
        except ValueError:
            return Constant(0.5)

    def _string(self, node: Node) -> Expression:
        """Return a text, joined with what is filled into it."""
        start, end = self._inside(node)
        raw = self._text(node)[:1] in tuple(self._grammar.raw)
        parts: list[Expression] = []
        for hole in () if raw else self._holes(node):
            parts += [self._piece(start, hole.start_byte), self.expression(hole)]
            start = hole.end_byte
        if not parts:
            return self._piece(start, end, raw=raw)
        return Joined([*parts, self._piece(start, end)])

    def _piece(self, start: int, end: int, *, raw: bool = False) -> Constant:
        text = self._between(start, end)
        text = text if raw else unescaped(text)
        self.texts.append(text)
        return Constant(text)

    def _inside(self, node: Node) -> tuple[int, int]:
        """Return where the inside of a text begins and ends."""
        content = node.child_by_field_name("content") or node.child_by_field_name("value")
        if content is not None:
            return content.start_byte, content.end_byte
        start, end = node.start_byte, node.end_byte
        children = node.children
        if not children:
            return (start + 1, end - 1) if end - start > 1 else (start, end)
        if not children[0].is_named or children[0].type.endswith(_ENDS):
            start = children[0].end_byte
        if not children[-1].is_named or children[-1].type.endswith(_ENDS):
            end = children[-1].start_byte
        return start, max(start, end)

    def _holes(self, node: Node) -> Iterator[Node]:
        """Yield what is filled into a text."""
        for child in node.named_children:
            if child.type in _PIECES or child.type == "heredoc_body":
                yield from self._holes(child)
            elif not child.type.endswith(_ENDS):
                yield child

    def _command(self, node: Node) -> Expression:
        """Return the call that a text in backticks is."""
        return self.program.call(Call(Name("qx"), [self._string(node)]))

    def _words(self, node: Node) -> Expression:
        return Items([Constant(word) for word in self._between(*self._inside(node)).split()])

    def _joined(self, node: Node) -> Expression:
        return Joined([self.expression(child) for child in node.named_children])

    def _binary(self, node: Node) -> Expression:
        """Read a chain of one operator without nesting: long texts are often put together so."""
        parts: list[Node] = []
        kind, operator = node.type, self._operator(node)
        if operator not in self._grammar.joining and operator not in _CHOOSING:
            return self._others(node.named_children)
        while node.type == kind and node.named_child_count > 1 and self._operator(node) == operator:
            self.program.pay(1)
            parts.append(node.named_children[-1])
            node = node.named_children[0]
        values = [self.expression(part) for part in (node, *reversed(parts))]
        if operator == "<<":
            self._grown(values)
        return Choice(values) if operator in _CHOOSING else Joined(values)

    def _grown(self, values: list[Expression]) -> None:
        """Note that texts are put to the end of a variable."""
        if isinstance(values[0], Name):
            for value in values[1:]:
                self.program.grown[values[0].name].append(value)

    def _operator(self, node: Node) -> str:
        """Return what stands between the first and the last part of a node."""
        children = node.named_children
        if len(children) < 2:  # noqa: PLR2004
            return ""
        return self._between(children[0].end_byte, children[-1].start_byte).strip()

    def _chosen(self, node: Node) -> Expression:
        """Return one of several values; the first part only says which."""
        results = [self.expression(child) for child in node.named_children]
        return Choice(results[1:]) if results[1:] else OPAQUE

    def _items(self, node: Node) -> Expression:
        """Return a list; a list of pairs is a table."""
        children = node.named_children
        if children and all(
            child.type in self._grammar.pairs and child.named_child_count > 1 for child in children
        ):
            return self._table(node)
        return self._values(node)

    def _values(self, node: Node) -> Expression:
        return Items([self.expression(child) for child in node.named_children])

    def _targets(self, node: Node) -> Expression:
        return Items([self.expression(child, mention=False) for child in node.named_children])

    def _table(self, node: Node) -> Expression:
        items: dict[str, Expression] = {}
        for child in node.named_children:
            pair = self._pair(child)
            if pair is None:
                self.expression(child)
            else:
                name, value = pair
                items[name] = Choice((items[name], value)) if name in items else value
        return Table(items)

    def _pair(self, node: Node) -> tuple[str, Expression] | None:
        """Return the name and the value of a pair; None if a node is none."""
        if node.type == "shorthand_property_identifier":
            return self._text(node), self.expression(node)
        children = node.named_children
        if node.type not in self._grammar.pairs or len(children) < 2:  # noqa: PLR2004
            return None
        return self._key(children[0]), self.expression(children[-1])

    def _key(self, node: Node) -> str:
        """Return the name that a key is; empty if that is not known."""
        if node.named_child_count == 0 and node.type != "string":
            return self._text(node).strip("'\":")
        key = self.expression(node)
        text = key.value if isinstance(key, Constant) else ""
        return text if isinstance(text, str) else ""

    def _element(self, node: Node) -> Expression:
        return Element(self._first(node))

    def _first(self, node: Node) -> Expression:
        return self.first([self.expression(child, mention=False) for child in node.named_children])

    def _last(self, node: Node) -> Expression:
        return self.first([self.expression(child, mention=False) for child in node.named_children][::-1])

    def _member(self, node: Node, base: str, name: str) -> Expression:
        part = self._plain(self._text(node.child_by_field_name(name)))
        return Attribute(self._field(node, base), part)

    def _scoped(self, node: Node) -> Expression:
        """Return a name of several parts, written as one."""
        return Name(self._plain(self._text(node).lstrip("\\:")))

    def _index(self, node: Node, base: str = "", key: str = "") -> Expression:
        children = node.named_children
        start = (node.child_by_field_name(base) if base else None) or children[0]
        end = (node.child_by_field_name(key) if key else None) or (children[-1] if children[1:] else None)
        return Index(self.expression(start, mention=False), OPAQUE if end is None else self.expression(end))

    # -- roles: calls -------------------------------------------------------------------------------------

    def _call(self, node: Node, callee: str, arguments: str = "arguments") -> Expression:
        given, keywords = self._arguments(node.child_by_field_name(arguments))
        return self.call(self._field(node, callee), given, keywords)

    def _method(self, node: Node, receiver: str, name: str, arguments: str = "arguments") -> Expression:
        """Read a call of a method, or of a function where nothing stands before its name."""
        base = node.child_by_field_name(receiver)
        given, keywords = self._arguments(node.child_by_field_name(arguments))
        called = self._plain(self._text(node.child_by_field_name(name)))
        callee: Expression = Name(called)
        if base is not None:
            callee = Attribute(self.expression(base, mention=False), called)
        block = node.child_by_field_name("block")
        if block is not None:
            self._block(block, callee)
        return self.call(callee, given, keywords)

    def _block(self, node: Node, callee: Expression) -> None:
        """Read a block that a method is given: its first parameter is each item of what the method belongs to."""
        names = self._parameters(node.child_by_field_name("parameters"))
        if names and isinstance(callee, Attribute):
            self.program.bound[names[0]].append(Element(callee.base))
        self.later(node.named_children)

    def _named(self, node: Node, name: str) -> Expression:
        """Read what is a call of a function by its kind: everything in it is an argument."""
        return self.call(Name(name), [self.expression(child) for child in node.named_children])

    def _headed(self, node: Node) -> Expression:
        """Read a call whose name is the first word of the node."""
        name = self._text(node.children[0])
        return self.call(Name(name), [self.expression(child) for child in node.named_children])

    def _created(self, node: Node) -> Expression:
        """Read ``new Name(arguments)``, whose parts have no fields."""
        children = node.named_children
        lists = [child for child in children if child.type in self._grammar.listed]
        given, keywords = self._arguments(lists[0] if lists else None)
        return self.call(self.expression(children[0], mention=False), given, keywords)

    def _arguments(self, node: Node | None) -> tuple[list[Expression], dict[str, Expression]]:
        """Return the arguments by place and by name."""
        given: list[Expression] = []
        keywords: dict[str, Expression] = {}
        if node is None:
            return given, keywords
        for child in node.named_children if node.type in self._grammar.listed else (node,):
            pair = self._pair(child)
            if pair is None:
                given.append(self.expression(child))
            else:
                keywords[pair[0]] = pair[1]
        if keywords and not given:
            # A table is often handed over as the first argument, without the signs around it.
            given = [Table(keywords)] if self._grammar.package == "tree_sitter_lua" else given
        return given, keywords

    # -- roles: statements --------------------------------------------------------------------------------

    def _assign(self, node: Node) -> Expression:
        """Read an assignment; one with an operator puts something to the end of a variable."""
        children = node.named_children
        if len(children) < 2:  # noqa: PLR2004
            return self._others(children)
        value = self.expression(children[-1])
        target = self.expression(children[0], mention=False)
        if isinstance(target, Call) and not target.arguments:
            target = target.callee
        if self._operator(node).rstrip("=") in {"", ":"}:
            self.bind(target, value)
            return value
        self._grown([target, value])
        return OPAQUE

    def _declared(self, node: Node, name: str, value: str) -> Expression:
        """Read the declaration of a variable, or of a function that is given as its value."""
        given, target = node.child_by_field_name(value), node.child_by_field_name(name)
        if given is not None and target is not None:
            if self._grammar.kinds.get(given.type, _NOTHING)[0] == "_routine":
                parameters = self._parameters(given.child_by_field_name("parameters"))
                self.program.routine(self._text(target), parameters)
            self.bind(self.expression(target, mention=False), self.expression(given))
        return OPAQUE

    def _function(self, node: Node) -> Expression:
        name = self._text(node.child_by_field_name("name"))
        self.program.routine(name, self._parameters(node.child_by_field_name("parameters")))
        body = node.child_by_field_name("body")
        self.later(() if body is None else (body,), name)
        return OPAQUE

    def _routine(self, node: Node) -> Expression:
        """Return a function without a name; what a short one returns is known."""
        single = node.child_by_field_name("parameter")
        if single is None:
            self._parameters(node.child_by_field_name("parameters"))
        else:
            self.program.parameters([self._text(single)])
        body = node.child_by_field_name("body")
        if body is None or _BLOCK.fullmatch(body.type):
            self.later(node.named_children if body is None else (body,))
            return Routine(OPAQUE)
        return Routine(self.expression(body))

    def _parameters(self, node: Node | None) -> list[str]:
        names = []
        for child in node.named_children if node is not None else ():
            inner = child
            while inner.named_child_count and inner.type not in self._grammar.kinds:
                inner = inner.named_children[0]
            if inner is not child and child.named_child_count > 1:
                self.bind(self.expression(inner, mention=False), self.expression(child.named_children[-1]))
            names.append(self._plain(self._text(inner)))
        self.program.parameters(names)
        return names

    def _returned(self, node: Node) -> Expression:
        for child in node.named_children:
            self.program.returned[self._owner].append(self.expression(child))
        return OPAQUE

    def _each(self, node: Node, item: str = "", items: str = "", body: str = "body") -> Expression:
        """Read a loop over the items of a list; where the parts have no names, the list stands before the item."""
        children = node.named_children
        target = node.child_by_field_name(item) if item else children[1]
        source = node.child_by_field_name(items) if items else children[0]
        if source is not None and target is not None:
            value = self.expression(source)
            if target.type in self._grammar.pairs:
                target = target.named_children[-1]
            self.bind(self.expression(target, mention=False), Element(value))
        inner = node.child_by_field_name(body)
        self.later(() if inner is None else (inner,))
        return OPAQUE

    def _clause(self, node: Node) -> Expression:
        """Read ``item in list``, the head of a loop."""
        target, source = node.named_children[0], node.named_children[-1]
        self.bind(self.expression(target, mention=False), Element(self.expression(source)))
        return OPAQUE
