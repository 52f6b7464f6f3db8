"""What the names of tables and columns in a database tell of their content."""

from __future__ import annotations

import re

from safetydrift.effects.catalogue.acts import read_kinds
from safetydrift.effects.catalogue.globs import Globs
from safetydrift.errors import CatalogueError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from safetydrift.effects.catalogue.plain import Entry
    from safetydrift.effects.catalogue.scales import Ranks, Scales

MAX_WORDS = 256
"""Names longer than this are not looked at."""
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_BREAK = re.compile(r"[\W_]+")
_KEEPS_S = ("ss", "us", "is", "as", "os")
_SHORTEST_PLURAL = 4


class TableEntry:
    """What tables and columns of some names hold.

    Attributes
    ----------
    tables, columns
        Globs for names as `words` writes them. A pattern finds its words anywhere in a name, in the singular or in
        the plural: ``customer`` finds ``tblCustomers`` and ``customer_orders``. One with a star at an end finds
        names that begin or end so (``*_at``), and one in ``=`` only this name (``=users``).
    ranks
        What reading them means, in the dimensions it names.
    changed, added
        The kinds of violation that changing or deleting what is there may complete, and those that adding to it may.
    note
        Why, in words.
    """

    __slots__ = ("added", "changed", "columns", "note", "ranks", "tables")

    def __init__(self, entry: Entry, scales: Scales) -> None:
        tables, columns = entry.texts("tables"), entry.texts("columns")
        if not tables and not columns:
            raise CatalogueError(f"{entry.where}: lacks 'tables' or 'columns'")
        entry.where = f"{entry.where} ({(*tables, *columns)[0]})"
        self.tables = Globs(map(word_pattern, tables))
        self.columns = Globs(map(word_pattern, columns))
        self.ranks: Ranks = scales.read(entry.required("effect"), entry.where, whole=False)
        self.changed = read_kinds(entry, "changed")
        self.added = read_kinds(entry, "added")
        self.note = entry.text("note")
        entry.done()


class Tables:
    """The entries in the order they are tried; the first that matches decides."""

    __slots__ = ("_columns", "_tables", "entries")

    def __init__(self, entries: Iterable[TableEntry] = ()) -> None:
        self.entries = tuple(entries)
        self._tables = tuple([entry for entry in self.entries if entry.tables])
        self._columns = tuple([entry for entry in self.entries if entry.columns])

    def table(self, name: str) -> TableEntry | None:
        """Return the entry of a table, given with or without its schema; None if its name tells nothing."""
        if len(name) > MAX_WORDS:
            return None
        written = words(name)
        return next((entry for entry in self._tables if written in entry.tables), None)

    def column(self, name: str) -> TableEntry | None:
        """Return the entry of a column; None if its name tells nothing."""
        if len(name) > MAX_WORDS:
            return None
        written = words(name)
        return next((entry for entry in self._columns if written in entry.columns), None)


def words(name: str) -> str:
    """Return the words of a name in the singular, in small letters, each between lines.

    >>> words("dbo.tblUserPasswords"), words("HTTPAddresses"), words("companies")
    ('_dbo_tbl_user_password_', '_http_address_', '_company_')
    """
    parts = _BREAK.split(_HUMP.sub("_", name).lower())
    return "_".join(["", *[_singular(part) for part in parts if part], ""])


def _singular(word: str) -> str:
    if len(word) < _SHORTEST_PLURAL or not word.endswith("s") or word.endswith(_KEEPS_S):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-2] if word.endswith(("sses", "xes", "ches", "shes")) else word[:-1]


def word_pattern(pattern: str) -> str:
    """Return a glob for `words` from a pattern of a catalogue."""
    if pattern.startswith("="):
        return words(pattern)
    start = "" if pattern.endswith("*") and not pattern.startswith("*") else "*"
    end = "" if pattern.startswith("*") and not pattern.endswith("*") else "*"
    return start + words(pattern) + end
