"""The statements of a query language, each by the row of words that it is made of."""

from __future__ import annotations

import re

from safetydrift.effects.catalogue.acts import ACTS
from safetydrift.errors import CatalogueError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from safetydrift.effects.catalogue.plain import Entry

REMOVES = "removes"
"""An act of statements alone: destroys what was meant to go, so that no violation is completed."""
NAMES = ("removed", "changed", "added", "merged", "read", "procedure")
TEXTS = ("exports", "imports", "shell", "sql", "body")
_AHEAD = 60
_FEW = 7
_PART = r"""(?:["'*]|[\w@#$]+) """
_MODIFIERS = r"(?:(?:IF|NOT|EXISTS|ONLY|LOW_PRIORITY|IGNORE|QUICK|CONCURRENTLY|INTO|FROM|TABLE|DELAYED) )*+"
_NAME = rf"{_PART}(?:\. {_PART})*+"
_TOKEN = re.compile(r"\{(\w+)\}|\[(\S+)\](\*?)|!(\S+)|(\.\.\.?|~)|(\S+)")


class Form:
    """A row of words that a statement may begin with, or hold.

    Parameters
    ----------
    written
        The row as the catalogue writes it: see ``catalogues/default/statements-sql.toml``.
    things
        Words that no short gap passes over.

    Attributes
    ----------
    verbs
        The words it may start with.
    gaps
        How many gaps it has: what matching it costs.
    """

    __slots__ = ("_expression", "_pattern", "gaps", "verbs")

    def __init__(self, written: str, things: str) -> None:
        first, *rest = written.split()
        self.verbs = tuple(first.split("|"))
        parts = "".join([_part(token, things) for token in rest])
        self._expression = f"{_words(first)}{parts}{')' if '~' in rest else ''}"
        self.gaps = sum(token in {"..", "...", "~"} for token in rest)
        self._pattern: re.Pattern[str] | None = None

    def match(self, line: str, start: int) -> re.Match[str] | None:
        """Return how the form fits the words that begin at a place; `line` has each of them with a blank behind."""
        if self._pattern is None:
            self._pattern = re.compile(self._expression)
        return self._pattern.match(line, start)


def _part(token: str, things: str) -> str:
    found = _TOKEN.fullmatch(token)
    role, optional, star, other, gap, plain = found.groups() if found else ("?", *[None] * 5)
    if role is not None:
        if role in TEXTS:
            return f"(?P<{role}>') "
        if role not in NAMES:
            raise CatalogueError(f"there is no part {token!r}")
        return f"{_MODIFIERS}(?P<{role}>{_NAME}(?:, {_MODIFIERS}{_NAME})*+)"
    if optional is not None:
        return f"(?:{_words(optional)}){'*+' if star else '?+'}"
    if other is not None:
        return rf"(?!{_words(other)})\S+ "
    if gap is not None:
        one = rf"(?:(?!{things})\S+ ){{0,{_FEW}}}?" if gap == ".." else rf"(?:\S+ ){{0,{_AHEAD}}}?"
        return f"(?={one}" if gap == "~" else one
    return r"\Z" if plain == "$" else _words(plain or "")


def _words(written: str) -> str:
    """Return an expression for one of several words, each with the blank behind it; a star stands for any rest."""
    words = [re.escape(word).replace(r"\*", r"\S*") for word in written.split("|")]
    return f"(?:{'|'.join(words)}) "


class StatementEntry:
    """What statements of some forms do.

    Attributes
    ----------
    forms
        The forms, each tried where one of its first words stands.
    acts
        What they do: `ACTS`, or `REMOVES`.
    bounded
        What they do instead where a condition or a limit bounds them to some rows; empty if that changes nothing.
    first, after
        Whether they are found only as the first word of a statement; words that they never stand behind.
    whole, goes_on, more
        Whether the entry says everything about its statement; whether a statement of its own follows; whether the
        entries after it are tried as well.
    note
        Why, in words.
    """

    __slots__ = ("acts", "after", "bounded", "first", "forms", "goes_on", "more", "note", "whole")

    def __init__(self, entry: Entry, things: str) -> None:
        written = entry.named("forms")
        try:
            self.forms = tuple([Form(one, things) for one in written])
        except CatalogueError as error:
            raise CatalogueError(f"{entry.where}: {error}") from None
        act = entry.get("act")
        self.acts = entry.texts("act") if isinstance(act, list) else tuple(filter(None, [entry.text("act")]))
        self.bounded = entry.text("bounded")
        for name in filter(None, (*self.acts, self.bounded)):
            if name not in ACTS and name != REMOVES:
                raise CatalogueError(f"{entry.where}: unknown act {name!r}")
        self.first, self.whole = entry.flag("first"), entry.flag("whole")
        self.goes_on, self.more = entry.flag("goes_on"), entry.flag("more")
        self.after = frozenset(entry.texts("after"))
        self.note = entry.text("note", required=True)
        entry.done()


class Statements:
    """The entries by the first words of their forms, in the order they are tried."""

    __slots__ = ("by_verb",)

    def __init__(self, section: Entry | None) -> None:
        self.by_verb: dict[str, list[tuple[StatementEntry, Form]]] = {}
        if section is None:
            return
        things = _words("|".join(section.named("things")))
        for part in section.parts("statements"):
            entry = StatementEntry(part, things)
            for form in entry.forms:
                for verb in form.verbs:
                    self.by_verb.setdefault(verb, []).append((entry, form))
        section.done()
