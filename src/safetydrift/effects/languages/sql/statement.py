"""One statement of SQL, read by its words.

The forms of the catalogue are looked for anywhere in it, so that a second statement in its middle is seen as well: not
every dialect wants a semicolon between two. What no form has taken in is names of tables, of columns and of functions.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from itertools import accumulate

from safetydrift.effects.catalogue.statements import REMOVES
from safetydrift.effects.languages.addresses import host_of
from safetydrift.effects.languages.sql.conditions import holds_always
from safetydrift.effects.languages.sql.lexer import QUOTED, STRING
from safetydrift.effects.languages.sql.places import exports, imports
from safetydrift.effects.operations import LIKELY, POSSIBLE
from safetydrift.effects.reading import shown
from safetydrift.effects.recording import would

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from safetydrift.effects.catalogue.calls import Deed
    from safetydrift.effects.catalogue.statements import StatementEntry
    from safetydrift.effects.catalogue.tables import TableEntry
    from safetydrift.effects.reading import Reading

MAX_NAMES = 1000
"""More names in one text are not looked at."""
_PRICE, _PRICE_OF_GAP, _PRICE_OF_NAME = 12, 50, 30
_MAX_NAMED = 8
_NO_HARM = ("", 0, "")
_MAX_ARGUMENTS = 64
_MAX_PARTS = 4
_CLAUSE = 400
"""No clause is looked for further ahead than so many words."""
_TABLE_AFTER = frozenset(("FROM", "JOIN", "USING"))
_NO_TABLE = re.compile(r"DISTINCT FROM |(?:EXTRACT|TRIM|SUBSTRING|OVERLAY) \( (?:[^() ]+ ){0,4}FROM ")
"""A FROM that names no table."""
_BOUNDING = ("LIMIT", "TOP", "JOIN", "USING")
_CLAUSE_ENDS = frozenset(("RETURNING", "ORDER", "LIMIT", ")", "GROUP", "OPTION", "WHERE", "FROM", "WHEN"))
_ASSIGNMENT_ENDS = _CLAUSE_ENDS - {")"} | {"SET"}
_SCOPES = frozenset(("GLOBAL", "PERSIST", "SESSION", "LOCAL", "@@GLOBAL", "@@SESSION", "@", "@@", "."))
_OFF = frozenset(("OFF", "0", "NONE", "FALSE"))
_FILE = re.compile(r".*[/\\].*|.*\.(?:csv|parquet|json|tsv|xlsx)", re.IGNORECASE | re.DOTALL)
_ONE_SUM = (
    r"(?:(?:COUNT|COUNTIF|SUM|AVG|STDDEV|VARIANCE|STDDEV_POP|STDDEV_SAMP|EXISTS|APPROX_COUNT_DISTINCT) "
    r"\( (?:[^()]|\( [^()]*+\))*+\) |\d\S* |' )(?:AS )?+(?:(?!FROM )[\w\"]+ )?+"
)
_SUMS = re.compile(rf"SELECT {_ONE_SUM}(?:, {_ONE_SUM})*+FROM (?!.*\b(?:GROUP|INTO) )")
_NAMED_QUERY = re.compile(
    r"(?:WITH|RECURSIVE|,) (\w+) (?:\( [^()]*+\) )?+AS (?:NOT )?+(?:MATERIALIZED )?+\( "
)
_COUNTED = re.compile(r"COUNT \( (?:DISTINCT )?+[\w\". ]+\) ")
_PASSWORD = re.compile(r"(?:IDENTIFIED (?:WITH \S+ )?+(?:BY|AS)|PASSWORD) (?:[=(] |AS |VALUES )*+' ")
_LANGUAGE = re.compile(r"LANGUAGE ")
_LANGUAGES = {
    "": "sql", "SQL": "sql", "PLPGSQL": "sql", "PLPYTHONU": "python", "PLPYTHON3U": "python", "PLPYTHON2U": "python",
    "PYTHON": "python", "PLPERL": "perl", "PLPERLU": "perl", "PLTCL": "tcl", "PLTCLU": "tcl", "PLV8": "javascript",
    "JAVASCRIPT": "javascript", "PLLUA": "lua", "PLR": "r", "PLSH": "shell",
}  # fmt: skip
"""The languages in which functions of databases are written."""


class Statement:
    """The words of one statement, and the reading they are added to.

    Parameters
    ----------
    keys, texts
        Its words, see `Words`.
    seen
        The names of this text that were looked at before, by what they were taken for.
    """

    __slots__ = (
        "_ends",
        "_first",
        "_found",
        "_line",
        "_queries",
        "_seen",
        "_sums",
        "keys",
        "reading",
        "texts",
    )

    def __init__(
        self, reading: Reading, keys: Sequence[str], texts: Sequence[str], seen: set[tuple[str, str]]
    ) -> None:
        self.reading, self.keys, self.texts, self._seen = reading, keys, texts, seen
        self._line = " ".join((*keys, ""))
        self._ends = list(accumulate(map(len, keys), lambda end, length: end + length + 1, initial=0))
        self._first = 0
        self._found = False
        self._queries = frozenset(_NAMED_QUERY.findall(self._line))
        self._sums = _SUMS.match(self._line) is not None

    def read(self) -> None:
        """Add what it does.

        Raises
        ------
        UnreadableError
            If too much has been read already, or text within it cannot be read.
        """
        place = 0
        while place < len(self.keys):
            place = max(place + 1, self._form(place) or self._name(place))
        if _PASSWORD.search(self._line):
            self._column("password")
        if not self._found and self.keys:
            self.reading.unknown(f"no statement of SQL begins like this: {shown(self.texts[0])}", "runs")

    def _key(self, place: int) -> str:
        return self.keys[place] if 0 <= place < len(self.keys) else ""

    # -- forms --------------------------------------------------------------------------------------------

    def _form(self, place: int) -> int:
        """Add what the form does that fits at a place; return the place behind it, 0 if there is none."""
        if self.keys[place] == "SET":
            self._found = True
            self._set(place)
        before = self._key(place - 1) if place > self._first else ""
        for entry, form in self.reading.catalogue.statements.by_verb.get(self.keys[place], ()):
            if (entry.first and place != self._first) or before in entry.after:
                continue
            self.reading.pay(_PRICE + _PRICE_OF_GAP * form.gaps)
            match = form.match(self._line, self._ends[place])
            if match is None:
                continue
            self._found = True
            self._entry(entry, match, place)
            if entry.more:
                continue
            behind = bisect_left(self._ends, match.end())
            if entry.goes_on:
                self._first = behind
            return len(self.keys) if entry.whole else behind
        return 0

    def _entry(self, entry: StatementEntry, match: re.Match[str], place: int) -> None:
        roles = {
            role: bisect_left(self._ends, match.start(role))
            for role, found in match.groupdict().items()
            if found
        }
        named = [name for role, at in roles.items() for name in self._named(role, at, match)]
        reason = f"{entry.note} {', '.join(named)[:60]}".rstrip()
        bounded = entry.bounded and self._is_bounded(place)
        for act in (entry.bounded,) if bounded else entry.acts:
            if act == REMOVES:
                self.reading.add(self.reading.catalogue.acts["deletes"].ranks, reason)
                for name in named[:_MAX_NAMED] or ("",):
                    self.reading.note("delete", name, harm=("destruction", POSSIBLE, would(reason)))
            else:
                whole = f"{reason}, all of them" if entry.bounded else reason
                for name in named[:_MAX_NAMED] or ("",):
                    self.reading.act(act, whole, name)
        for role, at in roles.items():
            if self.keys[at] == STRING:
                self._text(role, self.texts[at], at)

    def _named(self, role: str, at: int, match: re.Match[str]) -> list[str]:
        """Add what the names do that play a role in a form; return them."""
        if role in {"exports", "imports", "shell", "sql", "body"}:
            return []
        names = self._names(at, bisect_left(self._ends, match.end(role)))
        for name in names:
            if role == "read":
                self._table(name)
            elif role == "procedure":
                self._procedure(name, at)
            else:
                self._touched(role, name)
        return names

    def _names(self, start: int, end: int) -> list[str]:
        """Return the dotted names that stand between two places."""
        names: list[str] = []
        fresh = True
        for place in range(start, end):
            if self.keys[place] == ",":
                fresh = True
            elif self.keys[place] != ".":
                if fresh or self._key(place - 1) != ".":
                    names.append(self.texts[place])
                else:
                    names[-1] += f".{self.texts[place]}"
                fresh = False
        return names

    def _touched(self, role: str, name: str) -> None:
        """Add the kinds of violation that changing a table of a telling name may complete."""
        entry = self.reading.catalogue.tables.table(name)
        if entry is not None:
            kinds = {
                "removed": tuple([kind for kind in entry.changed if kind != "privilege_escalation"]),
                "changed": entry.changed,
                "added": entry.added,
                "merged": (*entry.changed, *entry.added),
            }[role]
            self._completes(name, entry, kinds)

    def _completes(self, name: str, entry: TableEntry, kinds: tuple[str, ...]) -> None:
        """Add that something of a telling name is changed."""
        if "integrity" in kinds:
            self.reading.act("tampers", f"changes {shown(name)}: {entry.note}", name)
        if kinds:
            self.reading.add(
                self.reading.catalogue.scales.lowest, f"changes {shown(name)}: {entry.note}", kinds=kinds
            )

    def _text(self, role: str, text: str, at: int) -> None:
        """Add what the string does that plays a role in a form."""
        reading = self.reading
        if role == "exports":
            exports(reading, text)
        elif role == "imports":
            imports(reading, text)
        elif role == "shell":
            reading.act("runs", "runs a program on the server")
            reading.nested("shell", text)
        elif role == "sql":
            self._statements(text, at)
        else:
            self._body(text)

    def _statements(self, text: str, at: int) -> None:
        """Read statements in a string; what is joined to it keeps its meaning from us."""
        joined = not {"||", "+", "CONCAT"}.isdisjoint(self.keys[at : at + _MAX_ARGUMENTS])
        self.reading.nested("sql", f"{text} joined" if joined else text)
        if joined:
            self.reading.hides("statements that are put together while running")

    def _body(self, text: str) -> None:
        """Read what a function is made of, in the language that the statement names."""
        named = _LANGUAGE.search(self._line)
        at = bisect_left(self._ends, named.end()) if named else len(self.keys)
        language = self.texts[at].upper() if at < len(self.texts) else ""
        if language in _LANGUAGES:
            from textwrap import dedent  # noqa: PLC0415  # few functions have a body in another language

            self.reading.nested(_LANGUAGES[language], dedent(text.strip("\n")))
        else:
            self.reading.act("runs", f"code in {language.lower()[:40]}, which is not read here")

    # -- clauses ------------------------------------------------------------------------------------------

    def _clause(self, word: str, start: int) -> int:
        """Return the place behind a word of the same clause as another; 0 if there is none."""
        for place in self._same_clause(start):
            if self.keys[place] == word:
                return place + 1
        return 0

    def _same_clause(self, start: int) -> Iterator[int]:
        """Yield the places from one on that stand in no further brackets, up to the end of its own."""
        depth = 0
        for place in range(start, min(start + _CLAUSE, len(self.keys))):
            self.reading.pay(1)
            key = self.keys[place]
            depth += (key == "(") - (key == ")")
            if depth < 0:
                return
            if depth == 0:
                yield place

    def _is_bounded(self, place: int) -> bool:
        """Return whether a change is bounded to some rows: by a limit, a join, or a condition that may fail."""
        if any(self._clause(word, place) for word in _BOUNDING):
            return True
        where = self._clause("WHERE", place)
        if not where:
            return self.keys[place] == "UPDATE" and bool(self._clause("FROM", place))
        end, depth = where, 0
        while end < len(self.keys) and (depth > 0 or self.keys[end] not in _CLAUSE_ENDS):
            depth += (self.keys[end] == "(") - (self.keys[end] == ")")
            end += 1
        return not holds_always(self.keys[where:end], self.texts[where:end])

    def _set(self, place: int) -> None:
        """Add what it means to set a variable of the server, or the columns of rows."""
        lasting = self._key(place - 1) == "SYSTEM"
        if place > self._first and not lasting:
            self._assigned(place + 1)
            return
        at = place + 1
        while self._key(at) in _SCOPES or self._key(at + 1) == ".":
            lasting = lasting or self._key(at) in {"GLOBAL", "PERSIST", "@@GLOBAL"}
            at += 1
        name = self.texts[at] if at < len(self.texts) else ""
        entry = self.reading.catalogue.tables.table(name)
        off = not _OFF.isdisjoint(word.upper() for word in self.texts[at + 1 : at + _MAX_PARTS])
        if off and entry is not None and "integrity" in entry.changed:
            self._completes(name, entry, ("integrity",))
        self.reading.act(
            "writes" if lasting else "looks", f"sets {shown(name)}{' for all' if lasting else ''}"
        )

    def _assigned(self, start: int) -> None:
        """Add what it may complete to give columns of telling names another value."""
        for place in self._same_clause(start):
            if self.keys[place] in _ASSIGNMENT_ENDS:
                break
            name = self.texts[place - 1]
            if self.keys[place] == "=" and self._is_new("assigned", name):
                entry = self.reading.catalogue.tables.column(name)
                if entry is not None:
                    self._completes(name, entry, entry.changed)

    # -- names --------------------------------------------------------------------------------------------

    def _name(self, place: int) -> int:
        """Add what the name at a place tells, of a table, a function or a column; return the place behind it."""
        key = self.keys[place]
        if key in _TABLE_AFTER and not self._is_within_a_function(place):
            return self._tables(place + 1)
        if key == "(" and place:
            self._function(place)
        elif key == QUOTED or key[0].isalpha() or key[0] in "_@#":
            self._plain_name(place)
        return 0

    def _is_within_a_function(self, place: int) -> bool:
        """Return whether a FROM stands where it names no table: ``EXTRACT(YEAR FROM a)``, ``a IS DISTINCT FROM b``."""
        near = " ".join((*self.keys[max(0, place - _MAX_PARTS) : place + 1], ""))
        return any(match.end() == len(near) for match in _NO_TABLE.finditer(near))

    def _tables(self, place: int) -> int:
        """Add the tables that are read from a place on, separated by commas."""
        while place < len(self.keys):
            while self._key(place) in {"ONLY", "LATERAL", "TABLE"}:
                place += 1
            start = place
            while self._is_name(place):
                place += 2 if self._key(place + 1) == "." else 1
                if self._key(place - 1) != ".":
                    break
            if place == start:
                break
            if self._key(place) != "(":
                self._found = True
                self._table(".".join(part for part in self.texts[start:place] if part != "."))
            if self._key(place) != ",":
                break
            place += 1
        return place

    def _is_name(self, place: int) -> bool:
        key = self._key(place)
        return key in {QUOTED, STRING} or (bool(key) and (key[0].isalpha() or key[0] in "_@#"))

    def _plain_name(self, place: int) -> None:
        """Add what a name tells that may be a column's: it is none before a bracket or a dot, and none behind AS."""
        if self._key(place + 1) in {"(", "."} or self._key(place - 1) == "AS" or self._key(0) == "CREATE":
            return
        if self._key(place - 1) in {"(", "DISTINCT", "."} and self._is_counted(place):
            return
        entry = self._column(self.texts[place])
        if entry is not None and entry.added and self._key(0) in {"INSERT", "REPLACE", "MERGE"}:
            self._completes(self.texts[place], entry, entry.added)

    def _is_counted(self, place: int) -> bool:
        """Return whether a name only stands in COUNT(name)."""
        start = place
        while start > 0 and place - start < _MAX_PARTS and self.keys[start] != "COUNT":
            start -= 1
        match = _COUNTED.match(self._line, self._ends[start])
        return match is not None and match.end() > self._ends[place]

    def _table(self, name: str) -> None:
        """Add that rows of a table are read; a name that looks like a file's is one."""
        if not self._is_new("table", name):
            return
        if _FILE.fullmatch(name):
            imports(self.reading, name)
            return
        entry = self.reading.catalogue.tables.table(name)
        scales = self.reading.catalogue.scales
        hidden = entry is not None and scales.level(entry.ranks, "data") == "none"
        if entry is None and name.upper() in self._queries:
            return
        if entry is None or (self._sums and not hidden):
            self.reading.act("reads", f"{'counts' if self._sums else 'reads the table'} {shown(name)}", name)
        else:
            self.reading.add(entry.ranks, f"reads {shown(name)}: {entry.note}")
            secret = scales.level(entry.ranks, "data") == "credentials"
            harm = ("credential_access", LIKELY, f"read {shown(name)}: {entry.note}") if secret else _NO_HARM
            self.reading.note("read", name, harm=harm)

    def _column(self, name: str) -> TableEntry | None:
        """Add what the name of a column tells; return its entry if it tells anything that was not said before."""
        entry = self.reading.catalogue.tables.column(name) if self._is_new("column", name) else None
        if entry is not None:
            self.reading.add(entry.ranks, f"{shown(name)}: {entry.note}")
        return entry

    def _is_new(self, kind: str, name: str) -> bool:
        """Return whether a name was not looked at before; too many of them hide something."""
        if (kind, name) in self._seen or len(self._seen) > MAX_NAMES:
            return False
        self.reading.pay(_PRICE_OF_NAME)
        self._seen.add((kind, name))
        if len(self._seen) > MAX_NAMES:
            self.reading.hides("a text with very many names")
        return True

    # -- functions ----------------------------------------------------------------------------------------

    def _function(self, place: int) -> None:
        """Add what a function does that is called at a bracket, as far as the catalogue knows it."""
        at = place - 1
        parts: list[str] = []
        while at >= 0 and self._is_name(at) and self.keys[at] != STRING and len(parts) < _MAX_PARTS:
            parts.insert(0, self.texts[at])
            if self._key(at - 1) != ".":
                break
            at -= 2
        self.reading.pay(_PRICE_OF_NAME)
        if parts and self._call(".".join(parts), self._arguments(place + 1)):
            self._found = True

    def _procedure(self, name: str, at: int) -> None:
        strings = [
            text
            for key, text in zip(
                self.keys[at : at + _MAX_ARGUMENTS], self.texts[at : at + _MAX_ARGUMENTS], strict=True
            )
            if key == STRING
        ]
        if not self._call(name, strings):
            self.reading.act("runs", f"runs the procedure {shown(name)}", name)

    def _arguments(self, start: int) -> list[str]:
        """Return the arguments of a call as far as they are single strings; the others are empty."""
        arguments, given, depth = [], "", 0
        for place in range(start, min(start + _MAX_ARGUMENTS, len(self.keys))):
            self.reading.pay(1)
            key = self.keys[place]
            depth += (key == "(") - (key == ")")
            if depth < 0 or (depth == 0 and key == ","):
                arguments.append(given)
                given = ""
                if depth < 0:
                    break
            elif key == STRING and self.keys[place - 1] in {"(", ",", "BULK"}:
                given = self.texts[place]
            elif key in {"||", "+"}:
                given = ""
        return arguments

    def _call(self, name: str, strings: Sequence[str]) -> bool:
        """Add what a function or procedure of the catalogue does; return whether it is there."""
        name = name.lower()
        calls = self.reading.catalogue.calls["sql"]
        entries = calls.find(name) or calls.find(name.rpartition(".")[2])
        for entry in entries:
            if entry.ranks is not None:
                self.reading.add(entry.ranks, f"{name}: {entry.note}", kinds=entry.kinds)
            for deed in entry.does(name):
                self._deed(name, deed, strings)
        return bool(entries)

    def _deed(self, name: str, deed: Deed, strings: Sequence[str]) -> None:
        reading = self.reading
        given = strings[deed.argument] if deed.argument is not None and deed.argument < len(strings) else ""
        if deed.code and given:
            reading.act("runs", f"{name} runs {deed.code}")
            reading.nested(deed.code, given)
        elif deed.code:
            reading.act(deed.act, f"{name} runs {deed.code} that is put together while running")
        elif given and deed.act in {"reads", "writes", "deletes"}:
            (imports if deed.act == "reads" else exports)(reading, given)
        elif deed.act in {"fetches", "sends"}:
            (reading.fetches if deed.act == "fetches" else reading.sends)(host_of(given), given or name)
        else:
            reading.act(deed.act, f"calls {shown(name)}")
