"""Statements that define, alter or drop things, and those that hand out rights.

Each function is given the place of its verb in a statement. It returns the place from which to read on, or 0 if the
word is no verb there.
"""

from __future__ import annotations

from safetydrift.effects.languages.sql.statement import completes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from safetydrift.effects.languages.sql.statement import Statement

_HOLDS_DATA = frozenset(
    (
        *("TABLE", "DATABASE", "SCHEMA", "COLUMN", "PARTITION", "KEYSPACE", "TABLESPACE", "USER"),
        *("ROLE", "LOGIN", "OWNED", "CATALOG"),
    )
)
_HOLDS_NONE = frozenset(
    (
        *("INDEX", "VIEW", "SEQUENCE", "FUNCTION", "PROCEDURE", "PROC", "TYPE", "EXTENSION", "DOMAIN"),
        *("SYNONYM", "AGGREGATE", "CONSTRAINT", "DEFAULT", "SERVER", "PUBLICATION", "SUBSCRIPTION"),
        *("TRIGGER", "RULE", "EVENT", "STATISTICS", "CAST", "COLLATION", "MACRO", "LINK", "PACKAGE"),
        *("STAGE", "STREAM", "TASK", "WAREHOUSE", "ASSEMBLY", "SECRET"),
    )
)
_GUARDS = frozenset(("POLICY", "AUDIT", "MASKING", "RULE"))
_CODE = frozenset(
    ("FUNCTION", "PROCEDURE", "PROC", "TRIGGER", "EVENT", "PACKAGE", "RULE", "AGGREGATE", "MACRO", "TASK")
)
_PRINCIPALS = frozenset(("USER", "ROLE", "LOGIN", "CREDENTIAL"))
_LOADED = frozenset(("EXTENSION", "LIBRARY", "ASSEMBLY", "PLUGIN", "LANGUAGE"))
_CONNECTED = frozenset(("SERVER", "SUBSCRIPTION", "LINK", "ENDPOINT"))
_KEPT = frozenset(
    (
        *("TABLE", "VIEW", "INDEX", "DATABASE", "SCHEMA", "SEQUENCE", "TYPE", "DOMAIN", "SYNONYM"),
        *("POLICY", "SECRET", "STATISTICS", "TABLESPACE", "PUBLICATION", "CAST", "COLLATION", "STAGE"),
        *("STREAM", "WAREHOUSE", "PARTITION", "KEYSPACE", "OPERATOR"),
    )
)
_NEAR = 8
"""The kind of thing stands within so many words of CREATE or ALTER."""
_NO_COLUMN = frozenset(
    ("INDEX", "CONSTRAINT", "KEY", "PRIMARY", "FOREIGN", "DEFAULT", "NOT", "CHECK", "EXPRESSION", "IDENTITY")
)
_BODIES = {
    "PLPYTHONU": "python",
    "PLPYTHON3U": "python",
    "PLPYTHON2U": "python",
    "PYTHON": "python",
    "PLPERL": "perl",
    "PLPERLU": "perl",
    "PLTCL": "tcl",
    "PLTCLU": "tcl",
    "PLV8": "javascript",
    "JAVASCRIPT": "javascript",
    "PLLUA": "lua",
    "PLR": "r",
    "PLSH": "shell",
    "SQL": "sql",
    "PLPGSQL": "sql",
    "": "sql",
}
"""The languages in which functions of databases are written."""


def drop(statement: Statement, place: int) -> int:
    """Read DROP: tables go with what they hold, definitions can be made again if somebody kept them."""
    key = statement.key(place + 1)
    if key in {"TEMPORARY", "TEMP"}:
        statement.reading.act("writes", "drops something temporary")
        return place + 2
    if key in {
        "MATERIALIZED",
        "PUBLIC",
        "FOREIGN",
        "EXTERNAL",
        "ROW",
        "SECURITY",
        "ACCESS",
        "SERVER",
        "BITMAP",
    }:
        place += 1
        key = statement.key(place + 1)
    names, end = statement.names(place + 2)
    if not names and key in _KINDS and place + 2 >= len(statement):
        return place + 2  # what follows is a comment in this reading
    shown = ", ".join(names)[:60]
    if key in _GUARDS:
        statement.reading.act("tampers" if key == "AUDIT" else "escalates", f"drops a {key.lower()}: {shown}")
    elif key in _HOLDS_DATA:
        temporary = key == "TABLE" and bool(names) and all(name.startswith("#") for name in names)
        statement.reading.act("writes" if temporary else "deletes", f"drops {key.lower()} {shown}")
    elif key in _HOLDS_NONE:
        statement.irreversible(f"drops {key.lower()} {shown}")
    else:
        return 0
    for name in names:
        statement.removed(name)
    return max(end, place + 2)


def truncate(statement: Statement, place: int) -> int:
    """Read TRUNCATE, which empties tables."""
    key = statement.key(place + 1)
    if key != "TABLE" and (place > 0 or not statement.name(place + 1)[0]):
        return 0
    names, end = statement.names(place + 1)
    statement.reading.act("deletes", f"empties {', '.join(names)[:60]}")
    for name in names:
        statement.removed(name)
    return max(end, place + 1)


def create(statement: Statement, place: int) -> int:
    """Read CREATE; what a function or trigger is made of counts as if it ran, since somebody will run it."""
    kind = next((key for key in statement.keys(place + 1, place + _NEAR) if key in _KINDS), "")
    if not kind or statement.key(place - 1) == "SHOW":
        return 0
    reading = statement.reading
    name = statement.name(statement.after(kind, place))[0][:60]
    if kind in _PRINCIPALS:
        reading.act("escalates", f"creates {kind.lower()} {name}")
        statement.password(place)
    elif kind in _CODE:
        reading.act("writes", f"creates {kind.lower()} {name}")
        _body(statement, place)
    elif kind in _LOADED:
        reading.act("runs", f"loads {kind.lower()} {name}")
    elif kind in _CONNECTED:
        reading.act("connects", f"connects the database to another: {name}")
        statement.password(place)
    else:
        reading.act("writes", f"creates {kind.lower()} {name}")
        statement.added(name)
    return place + 2


def _body(statement: Statement, place: int) -> None:
    """Read what a function is made of, if it is given as a text; else the words that follow are read anyway."""
    if "DEFINER" in statement.keys(place) and "SECURITY" in statement.keys(place):
        statement.reading.act("escalates", "a function that runs with the rights of its owner")
    at = statement.after("AS", place)
    run_body(statement, statement.string(at, at + 1) if at else None, place)


def run_body(statement: Statement, body: str | None, place: int) -> None:
    """Read a text in the language that the statement names."""
    at = statement.after("LANGUAGE", place)
    language = statement.words[at].text.upper() if 0 < at < len(statement) else ""
    if language in _BODIES:
        if body is not None:
            from textwrap import dedent  # noqa: PLC0415  # few functions have a body in another language

            statement.reading.nested(_BODIES[language], dedent(body.strip("\n")))
    else:
        statement.reading.act("runs", f"code in {language.lower()[:40]}, which is not read here")


def alter(statement: Statement, place: int) -> int:
    """Read ALTER; what drops something, or takes a guard away, is named in it."""
    keys = statement.keys(place)
    near = keys[1:_NEAR]
    if not any(
        key in _KINDS or key in {"SYSTEM", "SERVER", "PRIVILEGES", "AUDIT", "GROUP", "SESSION"}
        for key in near
    ):
        return 0
    name = statement.name(place + 2)[0]
    if near[0] in _PRINCIPALS or "PRIVILEGES" in near or near[0] == "GROUP":
        statement.reading.act("escalates", f"alters {near[0].lower()} {name[:60]}")
        statement.password(place)
    elif near[0] == "SYSTEM":
        setting(statement, statement.after("SET", place) or place + 2, lasting=True)
    elif "AUDIT" in near:
        statement.reading.act("tampers", f"alters what is recorded: {name[:60]}")
    else:
        statement.reading.act("writes", f"alters {near[0].lower()} {name[:60]}")
        _altered(statement, place, keys)
        statement.changed(name)
    return len(statement)


def _altered(statement: Statement, place: int, keys: list[str]) -> None:
    reading = statement.reading
    for offset, key in enumerate(keys):
        following = statement.key(place + offset + 1)
        if key == "DROP" and following not in _NO_COLUMN:
            reading.act("deletes", "drops a column or partition with what it holds")
        elif key == "DISABLE" and following == "TRIGGER":
            reading.act("tampers", "switches a trigger off")
        elif (key == "DISABLE" and following == "ROW") or (key == "OWNER" and following == "TO"):
            reading.act("escalates", "lets others at the rows of a table")


def rights(statement: Statement, place: int) -> int:
    """Read GRANT, REVOKE and DENY."""
    key = statement.key(place)
    if place and not (statement.after("TO", place) or statement.after("FROM", place)):
        return 0
    if statement.key(place - 1) in {"WITH", "FOR"} or statement.key(place + 1) in {"", "."}:
        return 0
    statement.reading.act("escalates", f"{key}: changes who may do what")
    statement.password(place)
    return len(statement)


def setting(statement: Statement, place: int, *, lasting: bool) -> None:
    """Add what it means to set a variable of the server, here or for all to come."""
    reading = statement.reading
    name = statement.name(place)[0]
    entry = reading.catalogue.tables.table(name)
    off = {"OFF", "0", "NONE", "FALSE"} & {word.text.upper() for word in statement.words[place:]}
    if name.lower() in {"row_security", "session_replication_role"}:
        reading.act("escalates", f"sets {name}")
    elif off and entry is not None and "integrity" in entry.changed:
        completes(reading, name, entry, ("integrity",))
    elif lasting:
        reading.act("writes", f"sets {name[:60]} for the whole server")
    else:
        reading.act("looks", "a setting of this connection")


_KINDS = _KEPT | _CODE | _PRINCIPALS | _LOADED | _CONNECTED
