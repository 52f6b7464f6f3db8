"""Syntax trees of PowerShell: commands with words and switches, pipelines, and names in any case."""

from __future__ import annotations

from safetydrift.effects.languages.code.expressions import (
    OPAQUE,
    Attribute,
    Call,
    Constant,
    Element,
    Expression,
    Formatted,
    Index,
    Items,
    Name,
)
from safetydrift.effects.languages.code.syntax import SyntaxTree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tree_sitter import Node

_FOR_EACH = frozenset(("foreach-object", "%", "foreach", "where-object", "?", "where"))
_RUN = Name("&")
_PROGRAM = Name("program")
_WRITTEN = Name("out-file")


class PowerShellTree(SyntaxTree):
    """Trees of PowerShell.

    A command is a call by its name. One that the catalogue does not know is a program, whose words a shell
    understands, unless the text itself defines it.
    """

    __slots__ = ("_programs",)

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._programs: list[tuple[str, Call]] = []

    def read(self, root: Node) -> None:
        """Read a whole tree."""
        super().read(root)
        for name, call in self._programs:
            if not self.program.is_own(name):
                self.program.call(call)

    # -- names and texts ----------------------------------------------------------------------------------

    def _variable(self, node: Node) -> Expression:
        name = self._text(node).lower().strip("${}@")
        scope, _, rest = name.rpartition(":")
        if scope.endswith("env"):
            return Index(Name("$env"), Constant(rest.upper()))
        return Name(f"${rest}")

    def _type(self, node: Node) -> Expression:
        return Name(self._text(node).strip("[]").lower().removeprefix("system."))

    def _bare(self, node: Node) -> Expression:
        text = self._text(node).replace("`", "")
        self.texts.append(text)
        return Constant(text)

    def _member(self, node: Node, *_fields: str) -> Expression:
        """Read ``base.name``, ``[type]::name``, and calls of them."""
        children = node.named_children
        base, *rest = children
        name = next((child for child in rest if child.type == "member_name"), None)
        callee = Attribute(self.expression(base, mention=False), self._text(name).strip("'\"").lower())
        if node.type == "member_access":
            return callee
        given = [child for child in rest if child.type == "argument_list"]
        values = [self.expression(child) for child in given]
        arguments = list(values[0].items) if values and isinstance(values[0], Items) else values
        return self.call(callee, [item for item in arguments if item is not OPAQUE])

    # -- commands -----------------------------------------------------------------------------------------

    def _pipeline(self, node: Node) -> Expression:
        """Read commands that hand on what they give: it is the first argument of the next, and its ``$_``."""
        result: Expression = OPAQUE
        for place, child in enumerate(node.named_children):
            if place:
                self.program.bound["$_"].append(Element(result) if isinstance(result, Items) else result)
            given = result
            result = (
                self._piped(child, given if place else None)
                if child.type == "command"
                else self.expression(child)
            )
        return result

    def _command(self, node: Node) -> Expression:
        return self._piped(node, None)

    def _piped(self, node: Node, fed: Expression | None) -> Expression:
        arguments, keywords = self._elements(node.child_by_field_name("command_elements"))
        if fed is not None and not arguments and not keywords:
            arguments = [fed]
        head = node.child_by_field_name("command_name")
        if head is None:
            return OPAQUE
        if head.type == "command_name_expr" or any(
            child.type == "command_invokation_operator" for child in node.children
        ):
            return self.call(_RUN, [self.expression(head), *arguments], keywords)
        name = self._text(head).replace("`", "").strip("'\"").lower()
        if name in _FOR_EACH and fed is not None:
            return fed
        return self._named_command(name, arguments, keywords)

    def _named_command(
        self, name: str, arguments: list[Expression], keywords: dict[str, Expression]
    ) -> Expression:
        base = name.replace("\\", "/").rpartition("/")[2].removesuffix(".exe")
        verb, dash, noun = base.partition("-")
        calls = self.program.calls
        if calls.find(base):
            return self.call(Name(base), arguments, keywords)
        if dash and calls.find(f"{verb}.{noun}"):
            return self.call(Name(f"{verb}.{noun}"), arguments, keywords)
        words = [Constant(name), *arguments, *[part for pair in keywords.items() for part in _switch(*pair)]]
        self._programs.append((name, Call(_PROGRAM, words)))
        return OPAQUE

    def _elements(self, node: Node | None) -> tuple[list[Expression], dict[str, Expression]]:
        """Return the words of a command, and those behind a switch by its name."""
        arguments: list[Expression] = []
        keywords: dict[str, Expression] = {}
        switch = ""
        for child in node.named_children if node is not None else ():
            if child.type == "command_argument_sep":
                continue
            if child.type == "command_parameter":
                switch = self._text(child).lstrip("-").rstrip(":").lower()
                keywords[switch] = Constant(True)  # noqa: FBT003  # a switch is on
            elif child.type == "redirection":
                self.call(_WRITTEN, [self.expression(child)])
            else:
                value = self._continued(self.expression(child), child, arguments)
                if switch:
                    keywords[switch] = value
                    switch = ""
                elif value is not OPAQUE:
                    arguments.append(value)
        return arguments, keywords

    def _continued(self, value: Expression, node: Node, arguments: list[Expression]) -> Expression:
        """Return a word; a list of arguments right behind a part of something is the call of it."""
        if node.type == "argument_list" and arguments and isinstance(arguments[-1], Attribute):
            given = list(value.items) if isinstance(value, Items) else [value]
            arguments[-1] = self.call(arguments[-1], given)
            return OPAQUE
        return value

    # -- operators ----------------------------------------------------------------------------------------

    def _inner(self, node: Node) -> Expression:
        """Return the value of ``$(...)``: that of its first statement."""
        children = [child for part in node.named_children for child in part.named_children]
        return self.first([self.expression(child) for child in children if child.type != "empty_statement"])

    def _formatted(self, node: Node) -> Expression:
        children = node.named_children
        given = self.expression(children[-1])
        return Formatted(self.expression(children[0]), given.items if isinstance(given, Items) else (given,))

    def _compared(self, node: Node) -> Expression:
        """Read an operator that is named like a switch: ``-join``, ``-replace``, ``-split`` make texts."""
        children = [self.expression(child) for child in node.named_children if "operator" not in child.type]
        named = next((self._text(child) for child in node.named_children if "operator" in child.type), "")
        name = named.lstrip("-ic").lower()
        if children and name in {"join", "replace", "split"}:
            last = children[-1]
            given = last.items if isinstance(last, Items) and children[1:] else children[1:]
            return self.call(Attribute(children[0], f"-{name}"), list(given))
        return OPAQUE

    def _function(self, node: Node) -> Expression:
        children = node.named_children
        name = next((self._text(child).lower() for child in children if child.type == "function_name"), "")
        self.program.routine(name, ())
        self.later([child for child in children if child.type == "script_block"], name)
        return OPAQUE


def _switch(name: str, value: Expression) -> list[Expression]:
    """Return a switch as the words that it is to a program."""
    plain = isinstance(value, Constant) and value.value is True
    return [Constant(f"-{name}")] if plain else [Constant(f"-{name}"), value]
