"""Expressions as the readers of code see them, whatever the language: what can name a function or be its argument."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Expression:
    """Something with a value.

    Attributes
    ----------
    values
        The values it may have, once they have been worked out.
    """

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values: tuple[object, ...] | None = None


class Constant(Expression):
    """A constant: a text (bytes count as text), a number, a truth value, or None."""

    __slots__ = ()

    def __init__(self, value: object) -> None:
        self.values = (value,)


class Reference(Expression):
    """Something of a library that an import has brought in."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.values = None
        self.name = name


class Name(Expression):
    """A variable, or something global."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.values = None
        self.name = name


class Attribute(Expression):
    """A part of something: ``base.name``."""

    __slots__ = ("base", "name")

    def __init__(self, base: Expression, name: str) -> None:
        self.values = None
        self.base, self.name = base, name


class Index(Expression):
    """An item of something: ``base[key]``."""

    __slots__ = ("base", "key")

    def __init__(self, base: Expression, key: Expression) -> None:
        self.values = None
        self.base, self.key = base, key


class Call(Expression):
    """A call, with its arguments by place and by name."""

    __slots__ = ("arguments", "callee", "keywords")

    def __init__(
        self,
        callee: Expression,
        arguments: Sequence[Expression],
        keywords: dict[str, Expression] | None = None,
    ) -> None:
        self.values = None
        self.callee, self.arguments, self.keywords = callee, arguments, keywords or {}


class Joined(Expression):
    """Texts or lists one after the other; between paths, with a slash."""

    __slots__ = ("between", "parts")

    def __init__(self, parts: Sequence[Expression], between: str = "") -> None:
        self.values = None
        self.parts, self.between = parts, between


class Formatted(Expression):
    """A template with signs of the ``%`` family, and what is put into it."""

    __slots__ = ("given", "template")

    def __init__(self, template: Expression, given: Sequence[Expression]) -> None:
        self.values = None
        self.template, self.given = template, given


class Items(Expression):
    """A list."""

    __slots__ = ("items",)

    def __init__(self, items: Sequence[Expression]) -> None:
        self.values = None
        self.items = items


class Table(Expression):
    """A table by key; what has no constant key goes by the key ``""``."""

    __slots__ = ("items",)

    def __init__(self, items: dict[str, Expression]) -> None:
        self.values = None
        self.items = items


class Choice(Expression):
    """One of several."""

    __slots__ = ("options",)

    def __init__(self, options: Sequence[Expression]) -> None:
        self.values = None
        self.options = options


class Element(Expression):
    """Some item of a list."""

    __slots__ = ("base",)

    def __init__(self, base: Expression) -> None:
        self.values = None
        self.base = base


class Routine(Expression):
    """A function written where it is used, with the values it may return."""

    __slots__ = ("returns",)

    def __init__(self, returns: Expression) -> None:
        self.values = None
        self.returns = returns


class Opaque(Expression):
    """Something of which nothing is known."""

    __slots__ = ()


OPAQUE = Opaque()
