"""Rules about what calls hold: values of arguments that tell a harm whatever the tool, and texts put into files.

The name of a tool says what it is for; a value may say more. A setting for security that becomes false, a role that
becomes an administrator's, a list of scripts with one that is fetched and run: each is the same harm in every tool.
"""

from __future__ import annotations

import re

from safetydrift.effects.catalogue.entries import anywhere, canonical_path
from safetydrift.effects.catalogue.globs import Globs
from safetydrift.effects.catalogue.harms import Harm, read_harm
from safetydrift.effects.catalogue.names import as_words
from safetydrift.effects.catalogue.tables import word_pattern
from safetydrift.errors import CatalogueError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from safetydrift.effects.catalogue.names import NameWords
    from safetydrift.effects.catalogue.plain import Entry

MAX_EDITED = 64 * 1024
"""Of a longer text, only its beginning is searched."""


_SWITCHES = frozenset(("true", "false", "0", "1"))
"""Say nothing without a name."""


class ValueRule:
    """What a value tells that stands under certain names.

    Attributes
    ----------
    names
        Words of names of arguments, as tables and columns are named (`safetydrift.effects.catalogue.tables`):
        anywhere in a name, at an end of it with a star, and alone with ``=``.
    values
        Globs for values, without regard to case; truth values are ``true`` and ``false``. Any value but an empty one
        holds where none are given.
    spared
        Globs for values with which the rule does not hold.
    tools, lacks
        Words of the tool's name: of `tools` it has to have one, where any are given, of `lacks` none.
    reads
        Whether it also speaks of tools that only read.
    positional
        Whether values without a name may be meant although none are listed.
    found
        What the value has to look like, a regular expression that is searched for; None where it does not matter.
    harm
        What it does.
    """

    __slots__ = ("found", "harm", "lacks", "names", "positional", "reads", "spared", "tools", "values")

    def __init__(self, entry: Entry) -> None:
        self.names = Globs(map(word_pattern, entry.named("names")))
        self.values = Globs(entry.texts("values"), fold=True)
        self.spared = Globs(entry.texts("spared"), fold=True)
        self.tools = as_words(entry.texts("tools"))
        self.lacks = as_words(entry.texts("lacks"))
        self.reads = entry.flag("reads")
        self.positional = entry.flag("positional")
        self.found = _expression(entry, "found")
        self.harm = read_harm(entry)
        entry.done()

    def suits(self, tool: NameWords, *, reads: bool) -> bool:
        """Return whether it speaks of a tool."""
        return (
            (self.reads or not reads)
            and (not self.tools or not self.tools.isdisjoint(tool.every))
            and self.lacks.isdisjoint(tool.every)
        )

    def holds(self, name: str, value: str) -> bool:
        """Return whether a value under a name is meant."""
        return (
            name in self.names
            and (value in self.values if self.values else bool(value))
            and not (self.spared and value in self.spared)
            and (self.found is None or self.found.search(value) is not None)
        )

    def holds_anywhere(self, value: str) -> bool:
        """Return whether a value without a name is meant: only where the tool's name and the value tell it."""
        return (
            bool(self.tools)
            and value not in _SWITCHES
            and (value in self.values if self.values else self.positional and bool(value))
            and not (self.spared and value in self.spared)
            and (self.found is None or self.found.search(value) is not None)
        )


class EditRule:
    """What it is to change files of some names in some ways.

    Attributes
    ----------
    text
        What has to stand in the call that changes the file, a regular expression; None where the change alone counts.
    lacks
        What must not stand there.
    harm
        What it does; ``{target}`` is the file.
    """

    __slots__ = ("_named", "_placed", "harm", "lacks", "text")

    def __init__(self, entry: Entry) -> None:
        places, names = entry.texts("match"), entry.texts("named")
        if not places and not names:
            raise CatalogueError(f"{entry.where}: lacks 'match' or 'named'")
        entry.where = f"{entry.where} ({(*places, *names)[0]})"
        self._placed = Globs([anywhere(pattern) for pattern in places])
        self._named = Globs(names, fold=True)
        self.text = _expression(entry, "text")
        self.lacks = _expression(entry, "lacks")
        self.harm = read_harm(entry)
        entry.done()

    def holds(self, canonical: str, name: str, text: str) -> bool:
        """Return whether it speaks of a file that is changed by a call that holds a text."""
        return (
            (canonical in self._placed or name in self._named)
            and (self.text is None or self.text.search(text) is not None)
            and not (self.lacks is not None and self.lacks.search(text))
        )


class EditRules:
    """The rules about changes, all of which are asked."""

    __slots__ = ("_rules",)

    def __init__(self, rules: list[EditRule]) -> None:
        self._rules = tuple(rules)

    def of(self, path: str, text: str) -> Iterator[Harm]:
        """Yield what it is to change a file by a call that holds a text."""
        canonical = canonical_path(path)
        name = canonical.rstrip("/").rpartition("/")[2]
        text = text[:MAX_EDITED]
        return (rule.harm for rule in self._rules if rule.holds(canonical, name, text))


def _expression(entry: Entry, key: str) -> re.Pattern[str] | None:
    """Return a regular expression without regard to case, None where there is none."""
    written = entry.text(key)
    if not written:
        return None
    try:
        return re.compile(written, re.IGNORECASE | re.MULTILINE)
    except re.error as problem:
        raise CatalogueError(f"{entry.where}: {key} is no regular expression: {problem}") from problem
