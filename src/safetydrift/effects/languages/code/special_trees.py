"""What single languages add to the reading of syntax trees: imports, patterns, files that are opened with a pipe."""

from __future__ import annotations

from safetydrift.effects.languages.code.expressions import (
    OPAQUE,
    Call,
    Constant,
    Element,
    Expression,
    Joined,
    Name,
    Table,
)
from safetydrift.effects.languages.code.syntax import SyntaxTree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tree_sitter import Node

_PIPED_OPENERS = frozenset(("open", "IO.popen"))
_PLAIN_MODES = frozenset(("", "utf8", "raw", "encoding(UTF-8)"))


class JavaScriptTree(SyntaxTree):
    """Trees of JavaScript."""

    __slots__ = ()

    def call(
        self,
        callee: Expression,
        arguments: Sequence[Expression],
        keywords: Mapping[str, Expression] | None = None,
    ) -> Expression:
        """Note a call; ``f.call(x, ..)``, ``f.apply`` and ``f.bind`` are `f` to us."""
        if getattr(callee, "name", "") in {"call", "apply", "bind"} and hasattr(callee, "base"):
            self.program.mentioned.append(callee.base)
        if getattr(callee, "name", "") == "concat" and hasattr(callee, "base"):
            return Joined([callee.base, *arguments])
        return super().call(callee, arguments, keywords)

    def _pattern(self, node: Node) -> Expression:
        """Return ``{a, b: c, d = 1}`` where it is assigned to: a table of targets."""
        items: dict[str, Expression] = {}
        for child in node.named_children:
            children = child.named_children or [child]
            items[self._key(children[0])] = self.expression(
                children[-1] if child.type == "pair_pattern" else children[0], mention=False
            )
        return Table(items)

    def _imported(self, node: Node) -> Expression:
        source = self.expression(node.child_by_field_name("source") or node, mention=False)
        module = str(source.value if isinstance(source, Constant) else "").removeprefix("node:")
        name = module.replace("/", ".")
        self.program.imported.append("./" if module[:1] in {".", "/"} else name)
        left = [child for child in node.named_children if child.type != "string"]
        while left:
            child = left.pop()
            if child.type == "import_specifier":
                given = self._text(child.child_by_field_name("name"))
                self.imports(name, given, self._text(child.child_by_field_name("alias")))
            elif child.type == "identifier":
                self.imports(name, alias=self._text(child))
            else:
                left += child.named_children
        return OPAQUE

    def _negated(self, node: Node) -> Expression:
        return self._others(node.named_children)


class PythonTree(SyntaxTree):
    """Trees of Python that is no Python of this day."""

    __slots__ = ()
    setting_calls = False

    def _imported(self, node: Node) -> Expression:
        module = self._text(node.child_by_field_name("module_name"))
        if module:
            self.program.imported.append(module)
        for child in node.children_by_field_name("name"):
            name = self._text(child.child_by_field_name("name") or child)
            alias = self._text(child.child_by_field_name("alias"))
            if module:
                self.imports(module, name, alias)
            else:
                self.program.imported.append(name)
                self.imports(name if alias else name.partition(".")[0], alias=alias)
        if module and any(child.type == "wildcard_import" for child in node.named_children):
            self.program.everything.append(module)
        return OPAQUE

    def _bound(self, node: Node) -> Expression:
        """Read ``value as target``."""
        children = node.named_children
        value = self.expression(children[0])
        self.bind(self.expression(children[-1], mention=False), value)
        return value


class RubyTree(SyntaxTree):
    """Trees of Ruby."""

    __slots__ = ()

    def call(
        self,
        callee: Expression,
        arguments: Sequence[Expression],
        keywords: Mapping[str, Expression] | None = None,
    ) -> Expression:
        """Note a call; a file that is opened with a pipe is a command."""
        piped = _piped(callee, arguments)
        return super().call(*piped) if piped else super().call(callee, arguments, keywords)


class PerlTree(RubyTree):
    """Trees of Perl."""

    __slots__ = ()

    def _variable(self, node: Node) -> Expression:
        """Return a variable; a block in the place of its name is read."""
        inner = node.named_children[:1]
        if inner and inner[0].type == "varname" and inner[0].named_child_count:
            return self._others(inner[0].named_children)
        return Name(self._text(node))

    def _globbed(self, node: Node) -> Expression:
        return self.call(Name("glob"), [self._string(node)])

    def _mapped(self, node: Node) -> Expression:
        """Read ``map`` and ``grep``: the items go by the name ``$_``."""
        *tests, source = node.named_children
        items = self.expression(source)
        self.program.bound["$_"].append(Element(items))
        self._others(tests)
        return items

    def _headed(self, node: Node) -> Expression:
        """Read a call by its first word; ``eval`` of a block catches errors, and runs no text."""
        if node.type == "eval_expression" and any(child.type == "block" for child in node.named_children):
            return self._others(node.named_children)
        return super()._headed(node)

    def _substituted(self, node: Node) -> Expression:
        """Read a substitution; with the letter ``e`` behind it, what it puts in is code."""
        modifiers = self._text(node.child_by_field_name("modifiers"))
        replacement = next((child for child in node.named_children if child.type == "replacement"), None)
        if "e" in modifiers and replacement is not None:
            self.program.call(Call(Name("eval"), [Constant(self._text(replacement))]))
        return OPAQUE


def _piped(callee: Expression, arguments: Sequence[Expression]) -> tuple[Expression, list[Expression]] | None:
    """Return the call that opening a file with a mode in its name is: ``open(F, "cmd |")``, ``open(F, "<", name)``."""
    if not isinstance(callee, Name) or callee.name not in _PIPED_OPENERS:
        return None
    given = list(arguments)
    at = next((n for n, argument in enumerate(given) if isinstance(argument, Constant | Joined)), len(given))
    if at == len(given):
        return None
    first = _start(given[at])
    mode = first[: len(first) - len(first.lstrip("+<>|- \t"))].strip()
    if "|" in mode or first.rstrip().endswith("|"):
        rest = given[at + 1 :] if first.strip() in {"|-", "-|"} else [_without(given[at], mode)]
        return Name("qx"), rest
    if mode and isinstance(given[at], Constant) and first.strip(":<>+ \t") in _PLAIN_MODES:
        return Name("open"), [*given[at + 1 : at + 2], Constant(mode)]
    if mode:
        return Name("open"), [_without(given[at], mode), Constant(mode)]
    return callee, given[at:]


def _start(expression: Expression) -> str:
    """Return the constant text that an expression starts with."""
    while isinstance(expression, Joined) and expression.parts:
        expression = expression.parts[0]
    value = expression.value if isinstance(expression, Constant) else ""
    return value if isinstance(value, str) else ""


def _without(expression: Expression, mode: str) -> Expression:
    """Return a text without the signs of the mode at its ends."""
    if isinstance(expression, Joined) and expression.parts:
        parts = list(expression.parts)
        parts[0], parts[-1] = _without(parts[0], mode), _without(parts[-1], mode)
        return Joined(parts)
    text = _start(expression)
    return Constant(text.strip().strip("|").removeprefix(mode).strip()) if text else expression
