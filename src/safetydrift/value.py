"""Immutable values for the modules that run beside an agent.

A hook starts an interpreter for every tool call, and there ``dataclasses`` alone costs more than everything
SafetyDrift does (docs/design/runtime-without-imports.md). ``Value`` gives the few classes on that path what a
frozen dataclass would: fields in slots, equality, hashing, a readable ``repr``, pickling and ``replace``.
Code off that path uses ``dataclasses``.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn, Self

set_field = object.__setattr__
"""Set one field from inside a constructor; for the few values that are made too often for `Value._fill`."""


class Value:
    """An object whose fields are set once, by its constructor, and never again."""

    __slots__: tuple[str, ...] = ()

    def _fill(self, **fields: Any) -> None:
        """Set the fields; only a constructor may call this."""
        for name, value in fields.items():
            set_field(self, name, value)

    def _fields(self) -> tuple[Any, ...]:
        return tuple([getattr(self, name) for name in self.__slots__])

    def replace(self, **changes: Any) -> Self:
        """Return a copy in which the named fields have other values."""
        return type(self)(**{name: getattr(self, name) for name in self.__slots__} | changes)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable; use replace({name}=...)")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash((type(self), self._fields()))

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({inside})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self._fields())


def _rebuild(cls: type[Value], fields: tuple[Any, ...]) -> Value:
    value = cls.__new__(cls)
    for name, field in zip(cls.__slots__, fields, strict=True):
        set_field(value, name, field)
    return value
