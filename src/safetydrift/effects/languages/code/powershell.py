"""Syntax trees of PowerShell: commands with words and switches, pipelines, and names in any case."""

from __future__ import annotations

import re

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
_SAVING = ("outfile", "destination", "o", "output")
_STARTING = frozenset(("start-process", "saps", "start"))
_SWITCHES = frozenset(
    (
        "recurse", "rec", "r", "force", "fo", "confirm", "whatif", "wi", "verbose", "vb", "debug", "passthru", "append",
        "noclobber", "nonewline", "raw", "wait", "asjob", "hidden", "directory", "usebasicparsing", "container",
        "norestart", "skipcertificatecheck", "usedefaultcredentials", "nonewwindow",
    )
)  # fmt: skip
"""Parameters that take no value, as far as they are written in full or in their usual short form."""
_ESCAPED = re.compile(r"`(.)", re.DOTALL)
_SIGNS = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "\n": ""}
_RUN = Name("&")
_PROGRAM = Name("program")
_WRITTEN = Name("out-file")


class PowerShellTree(SyntaxTree):
    """Trees of PowerShell.

    A command is a call by its name. One that the catalogue does not know is a program, whose words a shell understands,
    unless the text itself defines it; a program that the text has fetched may be anything.
    """

    __slots__ = ("_programs", "_saved")

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._programs: list[tuple[str, Call]] = []
        self._saved: set[str] = set()

    def read(self, root: Node) -> None:
        """Read a whole tree."""
        super().read(root)
        for name, call in self._programs:
            if _base(name) in self._saved:
                self.program.call(Call(_RUN, [OPAQUE]))
            elif not self.program.is_own(name):
                self.program.call(call)

    # -- names and texts ----------------------------------------------------------------------------------

    def _piece(self, start: int, end: int, *, raw: bool = False) -> Constant:
        """Return a part of a text, in which a backquote escapes and a backslash stands for itself."""
        text = self._between(start, end)
        text = text if raw else _ESCAPED.sub(lambda match: _SIGNS.get(match[1], match[1]), text)
        self.texts.append(text)
        return Constant(text)

    def _variable(self, node: Node) -> Expression:
        name = self._text(node).lower().strip("${}@")
        scope, _, rest = name.rpartition(":")
        if scope.endswith("env"):
            return Index(Name("$env"), Constant(rest.upper()))
        return Name(f"${rest}")

    def _type(self, node: Node) -> Expression:
        return Name(_type_name(self._text(node)))

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
        if callee.name == "downloadfile" and arguments[1:]:
            self._saved.add(_base(_text(arguments[1])))
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
        arguments, keywords, words = self._elements(node.child_by_field_name("command_elements"))
        if fed is not None and not words:
            arguments = [fed]
        head = node.child_by_field_name("command_name")
        if head is None:
            return OPAQUE
        called = self.expression(head)
        if not _text(called):
            return self.call(_RUN, [called, *arguments], keywords)
        name = _text(called).lower()
        if name in _FOR_EACH and fed is not None:
            return fed
        return self._named_command(name, arguments, keywords, words)

    def _named_command(
        self,
        name: str,
        arguments: list[Expression],
        keywords: dict[str, Expression],
        words: list[Expression],
    ) -> Expression:
        base = _base(name).removesuffix(".exe")
        verb, dash, noun = base.partition("-")
        calls = self.program.calls
        self._saved.update(_base(_text(keywords[key])) for key in _SAVING if key in keywords)
        if base == "new-object" and arguments:
            return self.call(Attribute(Name(_type_name(_text(arguments[0]))), "new"), arguments[1:])
        if base in _STARTING and (arguments or "filepath" in keywords):
            given = [keywords.get("filepath"), *arguments, keywords.get("argumentlist")]
            return self._run([word for word in given if word is not None])
        if calls.find(base) and not name.endswith(".exe"):
            return self.call(Name(base), arguments, keywords)
        if dash and calls.find(f"{verb}.{noun}"):
            return self.call(Name(f"{verb}.{noun}"), arguments, keywords)
        return self._run([Constant(name), *words])

    def _run(self, words: list[Expression]) -> Expression:
        self._programs.append((_text(words[0]).lower(), Call(_PROGRAM, [Items(words)])))
        return OPAQUE

    def _elements(
        self, node: Node | None
    ) -> tuple[list[Expression], dict[str, Expression], list[Expression]]:
        """Return what a command is given by place, by name, and word by word."""
        arguments: list[Expression] = []
        keywords: dict[str, Expression] = {}
        words: list[Expression] = []
        switch = ""
        for child in node.named_children if node is not None else ():
            if child.type == "redirection":
                self.call(_WRITTEN, [self.expression(child)])
            elif child.type == "command_parameter":
                switch = self._text(child).lstrip("-").rstrip(":").lower()
                keywords[switch] = Constant(True)  # noqa: FBT003  # a switch is on
                words.append(Constant(self._text(child)))
            elif child.type == "argument_list" and arguments and isinstance(arguments[-1], Attribute):
                given = self.expression(child)  # right behind a part of something, this is the call of it
                arguments[-1] = self.call(arguments[-1], given.items if isinstance(given, Items) else [given])
            elif child.type != "command_argument_sep":
                words.append(self.expression(child))
                if switch and switch not in _SWITCHES:
                    keywords[switch], switch = words[-1], ""
                else:
                    arguments.append(words[-1])
        return arguments, keywords, words

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


def _text(value: Expression) -> str:
    """Return a constant text, empty if it is none."""
    return value.value if isinstance(value, Constant) and isinstance(value.value, str) else ""


def _base(path: str) -> str:
    """Return the last part of a path, in small letters."""
    return path.replace("\\", "/").rpartition("/")[2].lower()


def _type_name(written: str) -> str:
    """Return the name of a type as the catalogue writes it."""
    return written.strip("[]").lower().removeprefix("system.")
