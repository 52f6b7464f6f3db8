"""The syntax tree of JavaScript as a `Program`: what it binds, calls and mentions."""

from __future__ import annotations

import re

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
    Reference,
    Routine,
    Table,
)
from safetydrift.effects.reading import UnreadableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import ClassVar

    from tree_sitter import Node

    from safetydrift.effects.languages.code.program import Program

_MAX_DEPTH = 100
_ESCAPE = re.compile(r"\\(?:u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(\r\n|.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": " ", "\n": "", "\r\n": ""}
_FUNCTIONS = frozenset(
    (
        "function_declaration",
        "function_expression",
        "arrow_function",
        "method_definition",
        "generator_function",
        "generator_function_declaration",
    )
)
_ADDING = frozenset(("push", "unshift"))


def read_tree(program: Program, root: Node, source: bytes) -> None:
    """Fill a program with what the tree of a source holds.

    Raises
    ------
    UnreadableError
        If an expression nests too deeply.
    """
    reader = _Tree(program, source)
    left: list[tuple[Node, str]] = [(root, "")]
    while left:
        node, function = left.pop()
        inner, function = reader.statement(node, function)
        left += [(child, function) for child in reversed(inner)]


def unescaped(text: str) -> str:
    r"""Return the text that a literal's inside stands for.

    >>> unescaped(r"\x61\u{62}")
    'ab'
    """
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    if code:
        number = int(code, 16)
        return chr(number) if 0 < number < 0x110000 and not 0xD800 <= number < 0xE000 else " "  # noqa: PLR2004
    return _ESCAPED.get(match[4], match[4])


class _Tree:
    """Turns the nodes of a tree into expressions, and notes in the program what they bind and call."""

    __slots__ = ("_bodies", "_depth", "_source", "program")

    def __init__(self, program: Program, source: bytes) -> None:
        self.program = program
        self._source = source
        self._depth = 0
        self._bodies: list[Node] = []

    def _text(self, node: Node | None) -> str:
        """Return what stands at a node; nothing where there is none."""
        return (
            "" if node is None else self._source[node.start_byte : node.end_byte].decode("utf-8", "replace")
        )

    # -- statements ---------------------------------------------------------------------------------------

    def statement(self, node: Node, function: str) -> tuple[list[Node], str]:
        """Note what one statement does; return the statements within it and the function they belong to."""
        kind = node.type
        handler = self._statements.get(kind)
        if handler is not None:
            handler(self, node, function)
        elif kind in _FUNCTIONS:
            return self._function(node)
        elif kind in self._expressions:
            self.expression(node)
        else:
            return node.named_children, function
        bodies, self._bodies = self._bodies, []
        return bodies, function

    def _function(self, node: Node) -> tuple[list[Node], str]:
        name = self._text(node.child_by_field_name("name"))
        parameters = node.child_by_field_name("parameters")
        self.program.routine(name, self._parameters(parameters))
        body = node.child_by_field_name("body")
        bodies, self._bodies = self._bodies, []
        return [*bodies, *([] if body is None else [body])], name

    def _parameters(self, node: Node | None) -> list[str]:
        names = []
        for child in node.named_children if node is not None else ():
            inner = child.child_by_field_name("left") or child
            value = child.child_by_field_name("right")
            if value is not None:
                self.target(inner, self.expression(value))
            names.append(self._text(inner))
        self.program.parameters(names)
        return names

    def _declared(self, node: Node, _function: str) -> None:
        value = node.child_by_field_name("value")
        if value is None:
            return
        name = node.child_by_field_name("name")
        if value.type in _FUNCTIONS and name is not None:
            self.program.routine(self._text(name), self._parameters(value.child_by_field_name("parameters")))
        self.target(name, self.expression(value))

    def _loop(self, node: Node, _function: str) -> None:
        right = node.child_by_field_name("right")
        if right is not None:
            self.target(node.child_by_field_name("left"), Element(self.expression(right)))
        self._later(node.child_by_field_name("body"))

    def _return(self, node: Node, function: str) -> None:
        for child in node.named_children:
            self.program.returns(function, self.expression(child))

    def _import(self, node: Node, _function: str) -> None:
        source = node.child_by_field_name("source")
        module = unescaped(self._text(source)[1:-1]).removeprefix("node:")
        name = module.replace("/", ".")
        self.program.imported.append("./" if module[:1] in {".", "/"} else name)
        left = list(node.named_children)
        while left:
            child = left.pop()
            if child.type == "import_specifier":
                given = self._text(child.child_by_field_name("name"))
                alias = self._text(child.child_by_field_name("alias"))
                self.program.bind(alias or given, Reference(f"{name}.{given}"))
            elif child.type == "identifier":
                self.program.bind(self._text(child), Reference(name))
            elif child.type in {"import_clause", "named_imports", "namespace_import"}:
                left += child.named_children

    def _later(self, node: Node | None) -> None:
        """Keep a body to be read after the statement it stands in, so that nothing nests."""
        if node is not None:
            self._bodies.append(node)

    def target(self, node: Node | None, value: Expression) -> None:
        """Note that a target is assigned a value."""
        if node is None:
            return
        kind = node.type
        if kind in {"identifier", "shorthand_property_identifier_pattern"}:
            self.program.bind(self._text(node), value)
        elif kind == "member_expression":
            self.program.bind("." + self._text(node.child_by_field_name("property")), value)
            self._assigned(node, value)
        elif kind == "subscript_expression":
            self.expression(node)
        elif kind == "array_pattern":
            for place, child in enumerate(node.named_children):
                self.target(child, Index(value, Constant(place)))
        elif kind == "object_pattern":
            for child in node.named_children:
                self._pattern(child, value)
        elif kind in {"assignment_pattern", "object_assignment_pattern"}:
            self.target(node.child_by_field_name("left"), value)

    def _pattern(self, child: Node, value: Expression) -> None:
        """Note one part of ``{a, b: c, d = 1} = value``."""
        key = child.child_by_field_name("key") or child.child_by_field_name("left") or child
        part = Attribute(value, self._text(key))
        self.target(child.child_by_field_name("value") or key, part)

    def _assigned(self, node: Node, value: Expression) -> None:
        """Let an assignment to a part of something known count as a call: ``location.href = address``."""
        base = self.expression(node.child_by_field_name("object"), mention=False)
        name = self._text(node.child_by_field_name("property"))
        self.program.call(Call(Attribute(base, name + "="), (value,)))

    # -- expressions --------------------------------------------------------------------------------------

    def expression(self, node: Node | None, *, mention: bool = True) -> Expression:
        """Return a node as an expression; `mention` if its value is used as such."""
        if node is None:
            return OPAQUE
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise UnreadableError("JavaScript that nests too deeply")
        handler = self._expressions.get(node.type)
        result = self._others(node) if handler is None else handler(self, node)
        self._depth -= 1
        if mention and isinstance(result, Name | Attribute | Index):
            self.program.mention(result)
        return result

    def _others(self, node: Node) -> Expression:
        if node.type in _FUNCTIONS:
            return self._routine(node)
        if node.type == "statement_block" or node.type.endswith(("_statement", "_declaration")):
            self._later(node)
            return OPAQUE
        for child in node.named_children:
            self.expression(child)
        return OPAQUE

    def _routine(self, node: Node) -> Expression:
        single = node.child_by_field_name("parameter")
        if single is None:
            self._parameters(node.child_by_field_name("parameters"))
        else:
            self.program.parameters([self._text(single)])
        body = node.child_by_field_name("body")
        if body is not None and body.type == "statement_block":
            self._later(body)
            return Routine(OPAQUE)
        return Routine(self.expression(body))

    def _class(self, node: Node) -> Expression:
        self._later(node.child_by_field_name("body"))
        return OPAQUE

    def _string(self, node: Node) -> Expression:
        return Constant(unescaped(self._text(node)[1:-1]))

    def _number(self, node: Node) -> Expression:
        try:
            return Constant(int(self._text(node)[:20].replace("_", "").rstrip("n"), 0))
        except ValueError:
            return Constant(0.5)

    def _constant(self, node: Node) -> Expression:
        return Constant({"true": True, "false": False}.get(node.type))

    def _template(self, node: Node) -> Expression:
        parts: list[Expression] = []
        for child in node.named_children:
            if child.type == "template_substitution":
                inner = child.named_children
                parts.append(self.expression(inner[0]) if inner else OPAQUE)
            else:
                parts.append(Constant(unescaped(self._text(child))))
        return Joined(parts)

    def _name(self, node: Node) -> Expression:
        return Name(self._text(node))

    def _member(self, node: Node) -> Expression:
        base = self.expression(node.child_by_field_name("object"), mention=False)
        return Attribute(base, self._text(node.child_by_field_name("property")))

    def _subscript(self, node: Node) -> Expression:
        base = self.expression(node.child_by_field_name("object"), mention=False)
        return Index(base, self.expression(node.child_by_field_name("index")))

    def _call(self, node: Node) -> Expression:
        callee = node.child_by_field_name("function") or node.child_by_field_name("constructor")
        given = node.child_by_field_name("arguments")
        if given is not None and given.type == "template_string":
            arguments = [self._template(given)]
        else:
            arguments = (
                [self.expression(child) for child in given.named_children] if given is not None else []
            )
        function = Name("import") if callee is not None and callee.type == "import" else self._callee(callee)
        if isinstance(function, Attribute) and function.name in _ADDING and isinstance(function.base, Name):
            for argument in arguments:
                self.program.add(function.base.name, argument)
        if isinstance(function, Attribute) and function.name in {"map", "forEach"} and arguments:
            self.program.call(Call(arguments[0], (Element(function.base),)))
        if isinstance(function, Attribute) and function.name == "concat":
            return Joined([function.base, *arguments])
        return self.program.call(Call(function, arguments))

    def _callee(self, node: Node | None) -> Expression:
        """Return what is called; ``f.call(x, ..)``, ``f.apply`` and ``f.bind`` are `f` to us, and so is ``(0, f)``."""
        function = self.expression(node, mention=False)
        if isinstance(function, Attribute) and function.name in {"call", "apply", "bind"}:
            self.program.mention(function.base)
        return function

    def _parenthesised(self, node: Node) -> Expression:
        inner = node.named_children
        return self.expression(inner[-1], mention=False) if len(inner) == 1 else self._others(node)

    def _sequence(self, node: Node) -> Expression:
        results = [self.expression(child) for child in node.named_children]
        return results[-1] if results else OPAQUE

    def _binary(self, node: Node) -> Expression:
        """Read a chain of additions without nesting: long texts are often put together so."""
        operator = self._text(node.child_by_field_name("operator"))
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if operator in {"||", "??", "&&"}:
            return Choice((self.expression(left), self.expression(right)))
        if operator != "+":
            return self._others(node)
        parts = [right]
        while left is not None and left.type == "binary_expression" and self._adds(left):
            parts.append(left.child_by_field_name("right"))
            left = left.child_by_field_name("left")
        return Joined([self.expression(part) for part in (left, *reversed(parts))])

    def _adds(self, node: Node) -> bool:
        return self._text(node.child_by_field_name("operator")) == "+"

    def _ternary(self, node: Node) -> Expression:
        self.expression(node.child_by_field_name("condition"))
        options = (node.child_by_field_name("consequence"), node.child_by_field_name("alternative"))
        return Choice([self.expression(option) for option in options])

    def _array(self, node: Node) -> Expression:
        return Items([self.expression(child) for child in node.named_children])

    def _spread(self, node: Node) -> Expression:
        return Element(self._sequence(node))

    def _object(self, node: Node) -> Expression:
        items: dict[str, Expression] = {}
        for child in node.named_children:
            if child.type == "pair":
                key = child.child_by_field_name("key")
                items[self._key(key)] = self.expression(child.child_by_field_name("value"))
            elif child.type == "shorthand_property_identifier":
                items[self._text(child)] = self.expression(child)
            else:
                self.expression(child)
        return Table(items)

    def _key(self, node: Node | None) -> str:
        if node is not None and node.type == "string":
            return unescaped(self._text(node)[1:-1])
        if node is not None and node.type == "computed_property_name":
            self._others(node)
            return ""
        return self._text(node)

    def _assignment(self, node: Node) -> Expression:
        value = self.expression(node.child_by_field_name("right"))
        left = node.child_by_field_name("left")
        if node.type == "augmented_assignment_expression":
            if left is not None and left.type == "identifier":
                self.program.grow(self._text(left), value)
            return OPAQUE
        self.target(left, value)
        return value

    def _awaited(self, node: Node) -> Expression:
        return self._sequence(node)

    def _unary(self, node: Node) -> Expression:
        self._others(node)
        return OPAQUE

    _statements: ClassVar[dict[str, Callable[..., None]]] = {
        "variable_declarator": _declared,
        "for_in_statement": _loop,
        "return_statement": _return,
        "import_statement": _import,
    }

    _expressions: ClassVar[dict[str, Callable[..., Expression]]] = {
        "string": _string,
        "number": _number,
        "true": _constant,
        "false": _constant,
        "null": _constant,
        "template_string": _template,
        "identifier": _name,
        "this": _name,
        "shorthand_property_identifier": _name,
        "member_expression": _member,
        "subscript_expression": _subscript,
        "call_expression": _call,
        "new_expression": _call,
        "parenthesized_expression": _parenthesised,
        "sequence_expression": _sequence,
        "binary_expression": _binary,
        "ternary_expression": _ternary,
        "array": _array,
        "spread_element": _spread,
        "object": _object,
        "assignment_expression": _assignment,
        "augmented_assignment_expression": _assignment,
        "await_expression": _awaited,
        "unary_expression": _unary,
        "class": _class,
    }
