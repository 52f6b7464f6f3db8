"""Reading plain data with care: every complaint names the entry, the key and what was found there."""

from __future__ import annotations

from safetydrift.errors import CatalogueError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MAX_DEPTH = 8
_SIMPLE = frozenset((str, bool, int, float))


def copy_plain(value: object, where: str = "catalogue", depth: int = 0) -> Any:
    """Return an independent copy of tables, lists, texts, numbers and truth values; refuse all else."""
    if type(value) in _SIMPLE or isinstance(value, str | bool | int | float):
        return value
    # A catalogue has tens of thousands of items, nearly all of them simple: only for the others is said where they are.
    if depth < _MAX_DEPTH and isinstance(value, dict):
        return {
            key if type(key) is str and key else text(key, f"{where}: key"): item
            if type(item) in _SIMPLE
            else copy_plain(item, f"{where}.{key}", depth + 1)
            for key, item in value.items()
        }
    if depth < _MAX_DEPTH and isinstance(value, list | tuple):
        return [item if type(item) in _SIMPLE else copy_plain(item, where, depth + 1) for item in value]
    raise CatalogueError(f"{where}: {type(value).__name__} has no place in a catalogue")


def text(value: object, where: str) -> str:
    """Return a text that is not empty."""
    if not isinstance(value, str) or not value:
        raise CatalogueError(f"{where}: expected a text, got {value!r}")
    return value


def texts(value: object, where: str) -> tuple[str, ...]:
    """Return a list of texts."""
    if not isinstance(value, list):
        raise CatalogueError(f"{where}: expected a list of texts, got {value!r}")
    if all(value) and set(map(type, value)) <= {str}:
        return tuple(value)
    return tuple([text(item, where) for item in value])


def table(value: object, where: str) -> dict[str, Any]:
    """Return a table."""
    if not isinstance(value, dict):
        raise CatalogueError(f"{where}: expected a table, got {value!r}")
    return value


def tables(value: object, where: str) -> list[dict[str, Any]]:
    """Return a list of tables."""
    if not isinstance(value, list):
        raise CatalogueError(f"{where}: expected a list of tables, got {value!r}")
    return [table(item, f"{where}[{position}]") for position, item in enumerate(value, 1)]


class Entry:
    """One table of a catalogue: what is asked of it is checked, what nobody asks for is refused."""

    __slots__ = ("_data", "_left", "where")

    def __init__(self, data: dict[str, Any], where: str) -> None:
        self._data, self._left, self.where = data, set(data), where

    def named(self, key: str) -> tuple[str, ...]:
        """Return the required names, at least one; from here on the first of them names the entry."""
        self.required(key)
        names = self.texts(key)
        if not names:
            raise CatalogueError(f"{self.where}: {key!r} lists nothing")
        self.where = f"{self.where} ({names[0]})"
        return names

    def required(self, key: str) -> Any:
        """Return the value of a key that has to be there."""
        if key not in self._data:
            raise CatalogueError(f"{self.where}: lacks {key!r}")
        return self.get(key)

    def get(self, key: str) -> Any:
        """Return the value of a key, None where it is missing."""
        self._left.discard(key)
        return self._data.get(key)

    def text(self, key: str, *, required: bool = False) -> str:
        """Return a text; empty where it is missing and need not be there."""
        value = self.required(key) if required else self.get(key)
        if type(value) is str and value:
            return value
        return "" if value is None else text(value, f"{self.where}: {key}")

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts, empty where it is missing."""
        value = self.get(key)
        return () if value is None else texts(value, f"{self.where}: {key}")

    def flag(self, key: str) -> bool:
        """Return a truth value, False where it is missing."""
        value = self.get(key)
        if value is not None and not isinstance(value, bool):
            raise CatalogueError(f"{self.where}: {key}: expected true or false, got {value!r}")
        return bool(value)

    def count(self, key: str) -> int:
        """Return a small whole number, 0 where it is missing."""
        value = self.get(key)
        if value is None:
            return 0
        if type(value) is not int or value < 0:
            raise CatalogueError(f"{self.where}: {key}: expected a whole number, got {value!r}")
        return value

    def part(self, key: str) -> Entry:
        """Return the required table under a key, as an entry."""
        where = f"{self.where}: {key}"
        return Entry(table(self.required(key), where), where)

    def parts(self, key: str) -> list[Entry]:
        """Return the tables under a key, each as an entry."""
        value = self.get(key)
        where = f"{self.where}: {key}"
        return (
            []
            if value is None
            else [Entry(part, f"{where}[{n}]") for n, part in enumerate(tables(value, where), 1)]
        )

    def done(self) -> None:
        """Refuse what was not asked for: a misspelt key would otherwise be a rule that never holds."""
        if self._left:
            raise CatalogueError(f"{self.where}: unknown key {min(self._left)!r}")
