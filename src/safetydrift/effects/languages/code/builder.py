"""What the readers of syntax trees share: how a program is told what a tree binds, calls and mentions."""

from __future__ import annotations

from abc import ABC, abstractmethod

from safetydrift.effects.languages.code.expressions import (
    OPAQUE,
    Attribute,
    Call,
    Constant,
    Element,
    Expression,
    Index,
    Items,
    Name,
    Reference,
    Table,
)
from safetydrift.effects.reading import UnreadableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from safetydrift.effects.languages.code.program import Program

MAX_DEPTH = 100
"""Expressions that nest deeper are not followed."""
PRICE_OF_NODE = 12
_MANY = 200
_ADDING = frozenset(("append", "extend", "insert", "add", "appendleft", "push", "unshift"))
_FOR_EACH = frozenset(("map", "forEach"))


class Builder(ABC):
    """Turns the nodes of a tree into expressions, and notes in a program what they bind, call and mention.

    Parameters
    ----------
    program
        What is found is noted here.
    """

    __slots__ = ("_bodies", "_depth", "_nodes", "_owner", "program")
    setting_calls = False
    """Whether an assignment to a part of something counts as a call of what is named so, with a sign after it."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._depth = self._nodes = 0
        self._owner = ""
        self._bodies: list[tuple[Any, str]] = []

    def read(self, root: Any) -> None:
        """Read a whole tree, one statement after the other, so that only expressions nest.

        Raises
        ------
        UnreadableError
            If an expression nests too deeply, or there is too much to read.
        """
        left: list[tuple[Any, str]] = [(root, "")]
        while left:
            node, self._owner = left.pop()
            self.statement(node)
            self._nodes += 1
            left += reversed(self._bodies)
            self._bodies = []
        self._check()

    def later(self, nodes: Iterable[Any], function: str | None = None) -> None:
        """Keep statements to be read after the one they stand in, as those of a function if it has a name."""
        owner = self._owner if function is None else function
        self._bodies += [(node, owner) for node in nodes]

    @abstractmethod
    def statement(self, node: Any) -> None:
        """Note what one statement does, and keep those within it for `later`."""

    @abstractmethod
    def translate(self, node: Any) -> Expression:
        """Return a node as an expression."""

    def expression(self, node: Any, *, mention: bool = True) -> Expression:
        """Return a node as an expression; `mention` if its value is used as such."""
        self._nodes += 1
        self._depth += 1
        if self._depth > MAX_DEPTH or self._nodes > _MANY:
            self._check()
        result = self.translate(node)
        self._depth -= 1
        if mention and isinstance(result, Name | Attribute | Index):
            self.program.mentioned.append(result)
        return result

    def _check(self) -> None:
        """Account for the nodes that were read, and refuse an expression that nests too deeply."""
        self.program.pay(PRICE_OF_NODE * self._nodes)
        self._nodes = 0
        if self._depth > MAX_DEPTH:
            raise UnreadableError("code that nests too deeply")

    # -- what is bound ------------------------------------------------------------------------------------

    def bind(self, target: Expression, value: Expression) -> None:
        """Note that a target is assigned a value."""
        if isinstance(target, Name):
            self.program.bound[target.name].append(value)
        elif isinstance(target, Attribute):
            self.program.bound["." + target.name].append(value)
            if self.setting_calls:  # ``location.href = address``
                self.program.call(Call(Attribute(target.base, target.name + "="), (value,)))
        elif isinstance(target, Index) and isinstance(target.base, Name):
            self.program.added[target.base.name].append(value)
        elif isinstance(target, Element):
            self.bind(target.base, value)
        elif isinstance(target, Table):
            for name, item in target.items.items():
                self.bind(item, Attribute(value, name))
        elif isinstance(target, Items):
            parts = value.items if isinstance(value, Items) else ()
            for place, item in enumerate(target.items):
                known = len(parts) == len(target.items)
                self.bind(item, parts[place] if known else Index(value, Constant(place)))

    def imports(self, module: str, name: str = "", alias: str = "") -> None:
        """Note that a name stands for a module, or for one of its names."""
        full = f"{module}.{name}" if name else module
        self.program.bound[alias or name or module].append(Reference(full))

    # -- what is called -----------------------------------------------------------------------------------

    def call(
        self,
        callee: Expression,
        arguments: Sequence[Expression],
        keywords: Mapping[str, Expression] | None = None,
    ) -> Expression:
        """Note a call, and what usual methods of lists do with their list."""
        if isinstance(callee, Attribute) and arguments:
            if callee.name in _ADDING and isinstance(callee.base, Name):
                last = arguments[-1]
                self.program.added[callee.base.name].append(
                    Element(last) if callee.name == "extend" else last
                )
            elif callee.name in _FOR_EACH:
                self.program.call(Call(arguments[0], (Element(callee.base),)))
        return self.program.call(Call(callee, arguments, dict(keywords or {})))

    def first(self, results: Sequence[Expression]) -> Expression:
        """Return the first of several expressions, something unknown if there is none."""
        return results[0] if results else OPAQUE
