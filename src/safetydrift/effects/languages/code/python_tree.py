"""The syntax tree of Python code as a `Program`: what it binds, calls and mentions."""

from __future__ import annotations

import ast

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
from safetydrift.effects.reading import UnreadableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import ClassVar

    from safetydrift.effects.languages.code.program import Program

    Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp

_MAX_DEPTH = 100
_ADDING = frozenset(("append", "extend", "insert", "add", "appendleft"))
_LISTS = frozenset(("list", "tuple", "sorted", "set", "iter", "reversed"))


def read_tree(program: Program, tree: ast.Module) -> None:
    """Fill a program with what a tree holds.

    Raises
    ------
    UnreadableError
        If an expression nests too deeply.
    """
    reader = _Tree(program)
    left: list[tuple[ast.AST, str]] = [(statement, "") for statement in reversed(tree.body)]
    while left:
        statement, function = left.pop()
        inner = reader.statement(statement, function)
        left += reversed(list(inner))


class _Tree:
    """Turns the nodes of a tree into expressions, and notes in the program what they bind and call."""

    __slots__ = ("_depth", "program")

    def __init__(self, program: Program) -> None:
        self.program = program
        self._depth = 0

    # -- statements ---------------------------------------------------------------------------------------

    def statement(self, node: ast.AST, function: str) -> Iterator[tuple[ast.AST, str]]:
        """Note what one statement does; give the statements within it, each with the function it belongs to."""
        handler = self._statements.get(type(node))
        if handler is not None:
            handler(self, node, function)
            return
        for name in node._fields:
            if name in {"returns", "annotation", "type_params", "type_comment"}:
                continue
            yield from self._field(getattr(node, name, None), self._inside(node, function))

    def _inside(self, node: ast.AST, function: str) -> str:
        """Note the head of a compound statement; return the function that its body belongs to."""
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self.program.routine(node.name, self._parameters(node.args))
            return node.name
        if isinstance(node, ast.For | ast.AsyncFor):
            self.target(node.target, Element(self.expression(node.iter)))
        return function

    def _field(self, value: object, function: str) -> Iterator[tuple[ast.AST, str]]:
        for item in value if isinstance(value, list) else (value,):
            if isinstance(item, ast.expr):
                self.expression(item)
            elif isinstance(item, ast.withitem):
                self._with(item)
            elif isinstance(item, ast.keyword):
                self.expression(item.value)
            elif isinstance(item, ast.AST) and not isinstance(item, ast.arguments):
                yield item, function

    def _parameters(self, arguments: ast.arguments) -> list[str]:
        plain = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
        only = [argument.arg for argument in arguments.kwonlyargs]
        for name, default in zip(reversed(plain), reversed(arguments.defaults), strict=False):
            self.program.bind(name, self.expression(default))
        for name, value in zip(only, arguments.kw_defaults, strict=True):
            if value is not None:
                self.program.bind(name, self.expression(value))
        if plain[:1] in (["self"], ["cls"]):
            del plain[0]
        self.program.parameters([*plain, *only])
        return plain + only

    def _with(self, item: ast.withitem) -> None:
        value = self.expression(item.context_expr)
        if item.optional_vars is not None:
            self.target(item.optional_vars, value)

    def _expr(self, node: ast.Expr, _function: str) -> None:
        self.expression(node.value)

    def _assign(self, node: ast.Assign, _function: str) -> None:
        value = self.expression(node.value)
        for target in node.targets:
            self.target(target, value)

    def _annotated(self, node: ast.AnnAssign, _function: str) -> None:
        if node.value is not None:
            self.target(node.target, self.expression(node.value))

    def _augmented(self, node: ast.AugAssign, _function: str) -> None:
        value = self.expression(node.value)
        if isinstance(node.op, ast.Add) and isinstance(node.target, ast.Name):
            self.program.grow(node.target.id, value)
            return
        before = self.expression(node.target, mention=False)
        self.target(node.target, Joined((before, value), "/" if isinstance(node.op, ast.Div) else ""))

    def _return(self, node: ast.Return, function: str) -> None:
        if node.value is not None:
            self.program.returns(function, self.expression(node.value))

    def _import(self, node: ast.Import, _function: str) -> None:
        for alias in node.names:
            self.program.imported.append(alias.name)
            name = alias.asname or alias.name.partition(".")[0]
            self.program.bind(name, Reference(alias.name if alias.asname else name))

    def _import_from(self, node: ast.ImportFrom, _function: str) -> None:
        module = "." * node.level + (node.module or "")
        self.program.imported.append(module)
        for alias in node.names:
            if alias.name == "*":
                self.program.everything.append(module)
            else:
                self.program.bind(alias.asname or alias.name, Reference(f"{module}.{alias.name}"))

    def _nothing(self, _node: ast.AST, _function: str) -> None:
        pass

    def target(self, node: ast.expr, value: Expression) -> None:
        """Note that a target is assigned a value."""
        if isinstance(node, ast.Name):
            self.program.bind(node.id, value)
        elif isinstance(node, ast.Attribute):
            self.program.bind("." + node.attr, value)
            self.expression(node.value, mention=False)
        elif isinstance(node, ast.Subscript):
            self.expression(node.slice)
            base = self.expression(node.value, mention=False)
            if isinstance(base, Name):
                self.program.add(base.name, value)
        elif isinstance(node, ast.Starred):
            self.target(node.value, value)
        elif isinstance(node, ast.Tuple | ast.List):
            given = value.items if isinstance(value, Items) and len(value.items) == len(node.elts) else None
            for place, element in enumerate(node.elts):
                self.target(element, given[place] if given else Index(value, Constant(place)))

    # -- expressions --------------------------------------------------------------------------------------

    def expression(self, node: ast.expr, *, mention: bool = True) -> Expression:
        """Return a node as an expression; `mention` if its value is used as such."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise UnreadableError("Python code that nests too deeply")
        handler = self._expressions.get(type(node))
        result = self._others(node) if handler is None else handler(self, node)
        self._depth -= 1
        if mention and isinstance(result, Name | Attribute | Index):
            self.program.mention(result)
        return result

    def _others(self, node: ast.AST) -> Expression:
        """Note what stands within a node that has no value to be told."""
        for name in node._fields:
            value = getattr(node, name, None)
            for item in value if isinstance(value, list) else (value,):
                if isinstance(item, ast.expr):
                    self.expression(item)
                elif isinstance(item, ast.AST) and item._fields:
                    self._others(item)
        return OPAQUE

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
        if isinstance(node.slice, ast.Slice):
            self._others(node.slice)
            step = node.slice.step
            if isinstance(step, ast.UnaryOp) and node.slice.lower is None and node.slice.upper is None:
                return Call(Reference("reversed"), (base,))
            return (
                base if isinstance(base, Name) and not isinstance(node.slice.upper, ast.Constant) else OPAQUE
            )
        return Index(base, self.expression(node.slice))

    def _call(self, node: ast.Call) -> Expression:
        arguments = [self.expression(argument) for argument in node.args]
        keywords = {
            keyword.arg or "**": self.expression(keyword.value, mention=keyword.arg != "env")
            for keyword in node.keywords
        }
        callee = self.expression(node.func, mention=False)
        if isinstance(callee, Name):
            special = self._special(callee.name, arguments)
            if special is not None:
                return special
        elif isinstance(callee, Attribute) and callee.name in _ADDING and arguments:
            self._adds(callee, arguments[-1])
        return self.program.call(Call(callee, arguments, keywords))

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
            self.program.call(Call(arguments[0], (element,)))
            result = Call(arguments[0], (element,)) if name == "map" else element
            return self._mapped(arguments[1], result)
        return None

    def _mapped(self, base: Expression, result: Expression) -> Expression:
        if isinstance(base, Items) and isinstance(result, Call):
            return Items([Call(result.callee, (item,)) for item in base.items])
        return Choice((Items((result,)), OPAQUE))

    def _adds(self, callee: Attribute, value: Expression) -> None:
        extends = callee.name == "extend"
        if isinstance(callee.base, Name):
            self.program.add(callee.base.name, Element(value) if extends else value)

    def _starred(self, node: ast.Starred) -> Expression:
        return Element(self.expression(node.value))

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
        between = "/" if kind is ast.Div else ""
        return Joined([self.expression(part) for part in reversed(parts)], between)

    def _f_string(self, node: ast.JoinedStr) -> Expression:
        return Joined([self.expression(part) for part in node.values])

    def _f_part(self, node: ast.FormattedValue) -> Expression:
        if node.format_spec is not None:
            self.expression(node.format_spec)
        return self.expression(node.value)

    def _list(self, node: ast.List | ast.Tuple | ast.Set) -> Expression:
        return Items([self.expression(item) for item in node.elts])

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
        return Choice((self.expression(node.body), self.expression(node.orelse)))

    def _either(self, node: ast.BoolOp) -> Expression:
        return Choice([self.expression(value) for value in node.values])

    def _compare(self, node: ast.Compare) -> Expression:
        contained = isinstance(node.ops[0], ast.In | ast.NotIn)
        self.expression(node.left)
        for comparator in node.comparators:
            self.expression(comparator, mention=not contained)
        return OPAQUE

    def _walrus(self, node: ast.NamedExpr) -> Expression:
        value = self.expression(node.value)
        self.target(node.target, value)
        return value

    def _lambda(self, node: ast.Lambda) -> Expression:
        self._parameters(node.args)
        return Routine(self.expression(node.body))

    def _awaited(self, node: ast.Await) -> Expression:
        return self.expression(node.value)

    def _yield(self, node: ast.Yield) -> Expression:
        return OPAQUE if node.value is None else self.expression(node.value)

    def _comprehension(self, node: Comprehension) -> Expression:
        bases = []
        for part in node.generators:
            bases.append(self.expression(part.iter))
            self.target(part.target, Element(bases[-1]))
            for condition in part.ifs:
                self.expression(condition)
        if isinstance(node, ast.DictComp):
            self.expression(node.key)
            return Table({"": self.expression(node.value)})
        element = self.expression(node.elt)
        base = bases[0]
        if (
            isinstance(base, Items)
            and len(bases) == 1
            and isinstance(element, Call)
            and len(element.arguments) == 1
        ):
            # Item by item, so that `"".join(chr(c) for c in [...])` can be told.
            return Items([Call(element.callee, (item,)) for item in base.items])
        return Choice((Items((element,)), OPAQUE))

    def _unary(self, node: ast.UnaryOp) -> Expression:
        inner = self.expression(node.operand)
        if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            value = node.operand.value
            return Constant(-value) if isinstance(value, int | float) else OPAQUE
        return OPAQUE if isinstance(inner, Constant) else inner

    _statements: ClassVar[dict[type, Callable[..., None]]] = {
        ast.Expr: _expr,
        ast.Assign: _assign,
        ast.AnnAssign: _annotated,
        ast.AugAssign: _augmented,
        ast.Return: _return,
        ast.Import: _import,
        ast.ImportFrom: _import_from,
        ast.Global: _nothing,
        ast.Nonlocal: _nothing,
        ast.Pass: _nothing,
    }

    _expressions: ClassVar[dict[type, Callable[..., Expression]]] = {
        ast.Constant: _constant,
        ast.Name: _name,
        ast.Attribute: _attribute,
        ast.Subscript: _subscript,
        ast.Call: _call,
        ast.Starred: _starred,
        ast.BinOp: _binary,
        ast.JoinedStr: _f_string,
        ast.FormattedValue: _f_part,
        ast.List: _list,
        ast.Tuple: _list,
        ast.Set: _list,
        ast.Dict: _dict,
        ast.IfExp: _if,
        ast.BoolOp: _either,
        ast.Compare: _compare,
        ast.NamedExpr: _walrus,
        ast.Lambda: _lambda,
        ast.Await: _awaited,
        ast.Yield: _yield,
        ast.YieldFrom: _yield,
        ast.ListComp: _comprehension,
        ast.SetComp: _comprehension,
        ast.GeneratorExp: _comprehension,
        ast.DictComp: _comprehension,
        ast.UnaryOp: _unary,
    }
