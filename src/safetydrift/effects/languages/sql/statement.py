"""One statement of SQL as a row of words, and what its readers ask of it."""

from __future__ import annotations

from safetydrift.effects.reading import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from safetydrift.effects.catalogue.tables import TableEntry
    from safetydrift.effects.languages.sql.lexer import Word
    from safetydrift.effects.reading import Reading

_MODIFIERS = frozenset(
    (
        *("IF", "NOT", "EXISTS", "ONLY", "LOW_PRIORITY", "IGNORE", "QUICK", "CONCURRENTLY", "INTO"),
        *("FROM", "TABLE", "DELAYED", "OVERWRITE"),
    )
)
"""Words that may stand before the name of a table."""
_AHEAD = 400
"""No verb looks further ahead than so many words."""
MAX_NAMES = 1000
"""More names in one statement are not looked at."""


class Statement:
    """One statement: its words, and the reading it is added to."""

    __slots__ = ("_seen", "reading", "words")

    def __init__(self, reading: Reading, words: Sequence[Word]) -> None:
        self.reading, self.words = reading, words
        self._seen: set[tuple[str, str]] = set()

    def __len__(self) -> int:
        return len(self.words)

    def key(self, place: int) -> str:
        """Return the key word at a place; empty where there is none."""
        return self.words[place].key if 0 <= place < len(self.words) else ""

    def keys(self, start: int, end: int | None = None) -> list[str]:
        """Return the key words from a place on, as far as a verb looks ahead."""
        return [word.key for word in self.words[start : start + _AHEAD if end is None else end]]

    def string(self, start: int, end: int | None = None) -> str | None:
        """Return the first string from a place on; None if there is none."""
        words = self.words[start : start + _AHEAD if end is None else end]
        return next((word.text for word in words if word.is_string), None)

    def after(self, key: str, start: int = 0) -> int:
        """Return the place behind the next such key word; 0 if there is none."""
        for place in range(start, min(start + _AHEAD, len(self.words))):
            if self.words[place].key == key:
                return place + 1
        return 0

    def name(self, start: int) -> tuple[str, int]:
        """Return the dotted name at a place, past words that may stand before it, and the place behind it."""
        words, place = self.words, start
        while self.key(place) in _MODIFIERS:
            place += 1
        parts: list[str] = []
        while place < len(words) and (
            words[place].is_name or words[place].is_string or words[place].key == "*"
        ):
            parts.append(words[place].text)
            place += 1
            if self.key(place) != ".":
                break
            while self.key(place) == ".":
                place += 1
        return ".".join(parts), place

    def names(self, start: int) -> tuple[list[str], int]:
        """Return the dotted names at a place, separated by commas, and the place behind the last."""
        name, place = self.name(start)
        found = [name] if name else []
        while name and self.key(place) == ",":
            name, place = self.name(place + 1)
            if name:
                found.append(name)
        return found, place

    # -- what is added to the reading ----------------------------------------------------------------------

    def irreversible(self, reason: str) -> None:
        """Add that something goes for good that was meant to go, so that no violation is completed."""
        self.reading.add(self.reading.catalogue.acts["deletes"].ranks, reason)

    def changed(self, name: str) -> None:
        """Add what it may complete to change a table of this name."""
        entry = self.reading.catalogue.tables.table(name)
        if entry is not None and entry.changed:
            completes(self.reading, name, entry, entry.changed)

    def removed(self, name: str) -> None:
        """Add what it may complete to delete a table of this name or rows of it; nobody gains rights by that."""
        entry = self.reading.catalogue.tables.table(name)
        kinds = tuple([kind for kind in entry.changed if kind != "privilege_escalation"]) if entry else ()
        if entry is not None and kinds:
            completes(self.reading, name, entry, kinds)

    def added(self, name: str) -> None:
        """Add what it may complete to add to a table of this name."""
        entry = self.reading.catalogue.tables.table(name)
        if entry is not None and entry.added:
            completes(self.reading, name, entry, entry.added)

    def password(self, start: int) -> None:
        """Add that a password is carried, if the words from here on hold one."""
        if {"PASSWORD", "IDENTIFIED", "BY"}.intersection(self.keys(start)) and self.string(start) is not None:
            self.column("password")

    def table(self, name: str) -> None:
        """Add that rows of a table are read."""
        if not self._news("table", name):
            return
        entry = self.reading.catalogue.tables.table(name)
        if entry is None:
            self.reading.act("reads", f"reads the table {shown(name)}")
        else:
            self.reading.add(entry.ranks, f"reads {shown(name)}: {entry.note}")

    def column(self, name: str) -> TableEntry | None:
        """Add what the name of a column tells, and return its entry if it tells anything that was not said before."""
        entry = self.reading.catalogue.tables.column(name) if self._news("column", name) else None
        if entry is not None:
            self.reading.add(entry.ranks, f"{shown(name)}: {entry.note}")
        return entry

    def _news(self, kind: str, name: str) -> bool:
        """Return whether a name was not looked at before; too many of them hide something."""
        if (kind, name) in self._seen:
            return False
        self._seen.add((kind, name))
        if len(self._seen) == MAX_NAMES:
            self.reading.hides("a statement with very many names")
        return len(self._seen) < MAX_NAMES


def completes(reading: Reading, name: str, entry: TableEntry, kinds: tuple[str, ...]) -> None:
    """Add the kinds of violation that changing something of a telling name may complete."""
    if "integrity" in kinds:
        reading.act("tampers", f"changes {shown(name)}: {entry.note}")
    reading.add(reading.catalogue.scales.lowest, f"changes {shown(name)}: {entry.note}", kinds=kinds)
