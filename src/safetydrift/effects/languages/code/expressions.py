"""Expressions as the readers of code see them, whatever the language: what can name a function or be its argument."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from safetydrift.effects.languages.code.values import UNKNOWN


class Expression(Struct, eq=False, kw_only=True):
    """Something with a value: `values` are those it may have, once they have been worked out."""

    values: tuple[object, ...] | None = None


class Constant(Expression, eq=False):
    """A constant: a text (bytes count as text), a number, a truth value, or None."""

    value: object


class Reference(Expression, eq=False):
    """Something of a library that an import has brought in."""

    name: str


class Name(Expression, eq=False):
    """A variable, or something global."""

    name: str


class Attribute(Expression, eq=False):
    """A part of something: ``base.name``."""

    base: Expression
    name: str


class Index(Expression, eq=False):
    """An item of something: ``base[key]``."""

    base: Expression
    key: Expression


class Call(Expression, eq=False):
    """A call, with its arguments by place and by name."""

    callee: Expression
    arguments: Sequence[Expression]
    keywords: dict[str, Expression] = field(default_factory=dict)


class Joined(Expression, eq=False):
    """Texts or lists one after the other; between paths, with a slash."""

    parts: Sequence[Expression]
    between: str = ""


class Formatted(Expression, eq=False):
    """A template with signs of the ``%`` family, and what is put into it."""

    template: Expression
    given: Sequence[Expression]


class Items(Expression, eq=False):
    """A list."""

    items: Sequence[Expression]


class Table(Expression, eq=False):
    """A table by key; what has no constant key goes by the key ``""``."""

    items: dict[str, Expression]


class Choice(Expression, eq=False):
    """One of several."""

    options: Sequence[Expression]


class Element(Expression, eq=False):
    """Some item of a list."""

    base: Expression


class Routine(Expression, eq=False):
    """A function written where it is used, with the values it may return."""

    returns: Expression


OPAQUE = Expression(values=(UNKNOWN,))
"""Something of which nothing is known."""
