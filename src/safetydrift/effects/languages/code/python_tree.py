"""The syntax tree of Python code as a `Program`: what it binds, calls and mentions."""

from __future__ import annotations

import ast

from safetydrift.effects.languages.code.builder import Builder
from safetydrift.effects.languages.code.expressions import (
    OPAQUE,
    Attribute,
    Call,
    Choice,
    Constant,
    Element,
    Expression,
    Formatted,
    Index,
    Items,
    Joined,
    Name,
    Reference,
    Routine,
    Table,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, ClassVar

    Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp

_LISTS = frozenset(("list", "tuple", "sorted", "set", "iter", "reversed"))
_UNREAD = frozenset(("returns", "annotation", "type_params", "type_comment", "ctx"))


class PythonProgram(Builder):
    """Reads the nodes of a tree of `ast`."""

    __slots__ = ()

    # -- statements ---------------------------------------------------------------------------------------

    def statement(self, node: ast.AST) -> None:
        """Note what one statement does, and keep those within it for `later`."""
        handler = self._statements.get(type(node))
        if handler is not None:
            handler(self, node)
            return
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self.program.routine(node.name, self._parameters(node.args))
            self._owner = node.name
        elif isinstance(node, ast.For | ast.AsyncFor):
            self.bind(self.expression(node.target, mention=False), Element(self.expression(node.iter)))
        self._others(node)

    def _others(self, node: ast.AST) -> Expression:
        """Note what stands within a node that has no value to be told: statements later, all else now."""
        for part in _parts(node):
            if isinstance(part, ast.expr):
                self.expression(part)
            elif isinstance(part, ast.withitem):
                self._with(part)
            elif isinstance(part, ast.stmt | ast.excepthandler | ast.match_case):
                self.later((part,))
            elif part._fields and not isinstance(part, ast.arguments):
                self._others(part)
        return OPAQUE

    def _parameters(self, arguments: ast.arguments) -> list[str]:
        plain = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
        only = [argument.arg for argument in arguments.kwonlyargs]
        for name, default in zip(reversed(plain), reversed(arguments.defaults), strict=False):
            self.program.bound[name].append(self.expression(default))
        for name, value in zip(only, arguments.kw_defaults, strict=True):
            if value is not None:
                self.program.bound[name].append(self.expression(value))
        if plain[:1] in (["self"], ["cls"]):
            del plain[0]
        self.program.parameters([*plain, *only])
        return plain + only

    def _with(self, item: ast.withitem) -> None:
        value = self.expression(item.context_expr)
        if item.optional_vars is not None:
            self.bind(self.expression(item.optional_vars, mention=False), value)

    def _assign(self, node: ast.Assign) -> None:
        value = self.expression(node.value)
        for target in node.targets:
            self.bind(self._target(target), value)

    def _annotated(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.bind(self._target(node.target), self.expression(node.value))

    def _target(self, node: ast.expr) -> Expression:
        """Return what is assigned to; it is not used by that."""
        if isinstance(node, ast.Tuple | ast.List):
            return Items([self._target(item) for item in node.elts])
        return self.expression(node, mention=False)

    def _augmented(self, node: ast.AugAssign) -> None:
        value = self.expression(node.value)
        before = self.expression(node.target, mention=False)
        if isinstance(node.op, ast.Add) and isinstance(before, Name):
            self.program.grown[before.name].append(value)
        else:
            self.bind(before, Joined((before, value), "/" if isinstance(node.op, ast.Div) else ""))

    def _return(self, node: ast.Return) -> None:
        if node.value is not None:
            self.program.returned[self._owner].append(self.expression(node.value))

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.program.imported.append(alias.name)
            self.imports(
                alias.name if alias.asname else alias.name.partition(".")[0], alias=alias.asname or ""
            )

    def _import_from(self, node: ast.ImportFrom) -> None:
        module = "." * node.level + (node.module or "")
        self.program.imported.append(module)
        for alias in node.names:
            if alias.name == "*":
                self.program.everything.append(module)
            else:
                self.imports(module, alias.name, alias.asname or "")

    # -- expressions --------------------------------------------------------------------------------------

    def translate(self, node: ast.AST) -> Expression:
        """Return a node as an expression."""
        handler = self._expressions.get(type(node))
        return self._others(node) if handler is None else handler(self, node)

    def _all(self, nodes: Sequence[ast.expr]) -> list[Expression]:
        return [self.expression(node) for node in nodes]

    def _constant(self, node: ast.Constant) -> Expression:
        value = node.value
        return Constant(value.decode("latin-1") if isinstance(value, bytes) else value)

    def _name(self, node: ast.Name) -> Expression:
        return Name(node.id)

    def _attribute(self, node: ast.Attribute) -> Expression:
        base = self.expression(node.value, mention=False)
        return base if node.attr == "__dict__" else Attribute(base, node.attr)

    def _subscript(self, node: ast.Subscript) -> Expression:
        base = self.expression(node.value, mention=False)
        if not isinstance(node.slice, ast.Slice):
            return Index(base, self.expression(node.slice))
        self._others(node.slice)
        part = node.slice
        if isinstance(part.step, ast.UnaryOp) and part.lower is None and part.upper is None:
            return Call(Reference("reversed"), (base,))
        return base if isinstance(base, Name) and not isinstance(part.upper, ast.Constant) else OPAQUE

    def _call(self, node: ast.Call) -> Expression:
        arguments = self._all(node.args)
        keywords = {
            keyword.arg or "**": self.expression(keyword.value, mention=keyword.arg != "env")
            for keyword in node.keywords
        }
        callee = self.expression(node.func, mention=False)
        special = self._special(callee.name, arguments) if isinstance(callee, Name) else None
        return self.call(callee, arguments, keywords) if special is None else special

    def _special(self, name: str, arguments: list[Expression]) -> Expression | None:
        """Return what calls of some built-in functions amount to."""
        if name == "getattr" and len(arguments) > 1:
            return Index(arguments[0], arguments[1])
        if name in {"globals", "locals"} and not arguments:
            return Reference("builtins")
        if name == "vars" and arguments:
            return arguments[0]
        if name in _LISTS and len(arguments) == 1:
            return Call(Reference("reversed"), arguments) if name == "reversed" else arguments[0]
        if name in {"map", "filter"} and len(arguments) > 1:
            element = Element(arguments[1])
            call = self.program.call(Call(arguments[0], (element,)))
            return _each(arguments[1], call if name == "map" else element)
        return None

    def _starred(self, node: ast.Starred) -> Expression:
        return Element(self.expression(node.value, mention=isinstance(node.ctx, ast.Load)))

    def _binary(self, node: ast.BinOp) -> Expression:
        """Read a chain of additions without nesting: long texts are often put together so."""
        if isinstance(node.op, ast.Mod):
            given = self.expression(node.right)
            return Formatted(
                self.expression(node.left), given.items if isinstance(given, Items) else (given,)
            )
        if not isinstance(node.op, ast.Add | ast.Div):
            return self._others(node)
        kind = type(node.op)
        parts = [node.right]
        left = node.left
        while isinstance(left, ast.BinOp) and isinstance(left.op, kind):
            parts.append(left.right)
            left = left.left
        parts.append(left)
        return Joined(self._all(parts[::-1]), "/" if kind is ast.Div else "")

    def _f_string(self, node: ast.JoinedStr) -> Expression:
        return Joined(self._all(node.values))

    def _f_part(self, node: ast.FormattedValue) -> Expression:
        if node.format_spec is not None:
            self.expression(node.format_spec)
        return self.expression(node.value)

    def _list(self, node: ast.List | ast.Tuple | ast.Set) -> Expression:
        return Items(self._all(node.elts))

    def _dict(self, node: ast.Dict) -> Expression:
        items: dict[str, Expression] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is not None:
                self.expression(key)
            text = key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else ""
            item = self.expression(value)
            items[text] = Choice((items[text], item)) if text in items else item
        return Table(items)

    def _if(self, node: ast.IfExp) -> Expression:
        self.expression(node.test)
        return Choice(self._all((node.body, node.orelse)))

    def _either(self, node: ast.BoolOp) -> Expression:
        return Choice(self._all(node.values))

    def _compare(self, node: ast.Compare) -> Expression:
        contained = isinstance(node.ops[0], ast.In | ast.NotIn)
        self.expression(node.left)
        for comparator in node.comparators:
            self.expression(comparator, mention=not contained)
        return OPAQUE

    def _walrus(self, node: ast.NamedExpr) -> Expression:
        value = self.expression(node.value)
        self.bind(self._target(node.target), value)
        return value

    def _lambda(self, node: ast.Lambda) -> Expression:
        self._parameters(node.args)
        return Routine(self.expression(node.body))

    def _value(self, node: ast.Await | ast.Yield) -> Expression:
        return OPAQUE if node.value is None else self.expression(node.value)

    def _comprehension(self, node: Comprehension) -> Expression:
        bases = []
        for part in node.generators:
            bases.append(self.expression(part.iter))
            self.bind(self._target(part.target), Element(bases[-1]))
            self._all(part.ifs)
        if isinstance(node, ast.DictComp):
            self.expression(node.key)
            return Table({"": self.expression(node.value)})
        element = self.expression(node.elt)
        if len(bases) == 1 and isinstance(element, Call) and len(element.arguments) == 1:
            return _each(bases[0], element)
        return Choice((Items((element,)), OPAQUE))

    def _unary(self, node: ast.UnaryOp) -> Expression:
        inner = self.expression(node.operand)
        if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            value = node.operand.value
            return Constant(-value) if isinstance(value, int | float) else OPAQUE
        return OPAQUE if isinstance(inner, Constant) else inner

    def _nothing(self, _node: ast.AST) -> None:
        pass

    _statements: ClassVar[dict[type, Callable[[Any, Any], None]]] = {
        ast.Expr: lambda reader, node: reader.expression(node.value),
        ast.Assign: _assign,
        ast.AnnAssign: _annotated,
        ast.AugAssign: _augmented,
        ast.Return: _return,
        ast.Import: _import,
        ast.ImportFrom: _import_from,
        **dict.fromkeys((ast.Global, ast.Nonlocal, ast.Pass), _nothing),
    }

    _expressions: ClassVar[dict[type, Callable[[Any, Any], Expression]]] = {
        ast.Constant: _constant,
        ast.Name: _name,
        ast.Attribute: _attribute,
        ast.Subscript: _subscript,
        ast.Call: _call,
        ast.Starred: _starred,
        ast.BinOp: _binary,
        ast.JoinedStr: _f_string,
        ast.FormattedValue: _f_part,
        **dict.fromkeys((ast.List, ast.Tuple, ast.Set), _list),
        ast.Dict: _dict,
        ast.IfExp: _if,
        ast.BoolOp: _either,
        ast.Compare: _compare,
        ast.NamedExpr: _walrus,
        ast.Lambda: _lambda,
        **dict.fromkeys((ast.Await, ast.Yield, ast.YieldFrom), _value),
        **dict.fromkeys((ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp), _comprehension),
        ast.UnaryOp: _unary,
    }


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes in a node, but for those that only say of which type something is."""
    for name in node._fields:
        if name not in _UNREAD:
            value = getattr(node, name, None)
            for item in value if isinstance(value, list) else (value,):
                if isinstance(item, ast.AST):
                    yield item


def _each(base: Expression, result: Expression) -> Expression:
    """Return the list of what a call gives for each item, item by item where they are known."""
    if isinstance(base, Items) and isinstance(result, Call):
        return Items([Call(result.callee, (item,)) for item in base.items])
    return Choice((Items((result,)), OPAQUE))
