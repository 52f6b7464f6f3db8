"""Statements read by their key words: all but queries, and whatever the parser does not take.

`scan` finds the verbs anywhere in a statement, so that a second statement in its middle is seen as well: not every
dialect wants a semicolon between two.
"""

from __future__ import annotations

from safetydrift.effects.languages.addresses import host_of
from safetydrift.effects.languages.sql import definitions, transfers
from safetydrift.effects.languages.sql.statement import Statement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from safetydrift.effects.catalogue.calls import Deed

QUIET = frozenset(
    (
        *("COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "ABORT", "USE", "LISTEN", "UNLISTEN"),
        *("DISCARD", "DEALLOCATE", "CHECKPOINT", "DECLARE", "FETCH", "CLOSE", "OPEN", "LOCK", "UNLOCK"),
        *("HELP", "RESET", "PRINT", "ANALYZE", "ANALYSE", "DETACH", "IF", "WHILE", "RETURN", "RETURNS"),
        *("LEAVE", "GO", "DELIMITER", "SUMMARIZE", "CHECK", "WAITFOR", "FOR", "CHECKSUM", "RAISE"),
        *("EXIT", "ELSIF", "ELSEIF", "EXCEPTION", "WHEN", "CASE", "MOVE", "HANDLER", "PERFORM"),
        *("REPEAT", "UNTIL", "ITERATE"),
    )
)
"""First words of statements that by themselves change nothing that is kept."""
_WRITING = frozenset(
    ("REFRESH", "OPTIMIZE", "REINDEX", "COMMENT", "FLUSH", "CLUSTER", "REPAIR", "CACHE", "UNDROP", "NOTIFY")
)
_NO_VERB_AFTER = frozenset(
    ("FOR", "KEY", "DO", "OR", "AFTER", "BEFORE", "THEN", "OF", "INSTEAD", "AS", ".", "END")
)
_NOT_A_TABLE = frozenset(("ON", "OF", ",", ")", "(", "OR", "=", "", "AS", "FROM", ".", "THEN", "SET"))
_TABLE_AFTER = frozenset(("FROM", "JOIN", "USING"))
_SESSION_PRAGMAS = frozenset(
    (
        *("foreign_keys", "busy_timeout", "cache_size", "temp_store", "mmap_size"),
        *("case_sensitive_like", "query_only", "synchronous", "threads", "recursive_triggers"),
        *("memory_limit", "table_info"),
    )
)
_MAX_FUNCTIONS = 64
_MAX_PARTS = 4
_NEAR = 8


def scan(statement: Statement, *, names: bool = True) -> bool:
    """Add what the verbs of a statement do, and the functions it calls; return whether there was any.

    Parameters
    ----------
    names
        Whether the names of tables and columns are looked at as well.
    """
    place = 0
    found: set[int] = set()
    while place < len(statement):
        verb = _VERBS.get(statement.key(place))
        behind = verb(statement, place) if verb else 0
        found.update(range(place, behind))
        place = max(behind, place + 1)
    called = _functions(statement)
    named = names and _names(statement, found)
    return bool(found) or called or named


def exported(statement: Statement, text: str) -> str:
    """Return the text of a query without its clause INTO OUTFILE, which no parser takes; empty if it has none."""
    for place, word in enumerate(statement.words):
        if word.key == "INTO" and statement.key(place + 1) in {"OUTFILE", "DUMPFILE"}:
            rest = statement.after("FROM", place)
            start, end = statement.words[0].start, statement.words[-1].end
            tail = text[statement.words[rest - 1].start : end] if rest else ""
            return f"{text[start : word.start]} {tail}"
    return ""


# -- rows ------------------------------------------------------------------------------------------------


def _delete(statement: Statement, place: int) -> int:
    following = statement.key(place + 1)
    if statement.key(place - 1) in _NO_VERB_AFTER or (following in _NOT_A_TABLE and following != "FROM"):
        return 0
    name = statement.name(place + 1)[0]
    if not name or (statement.key(place - 1) == "ON" and following != "FROM"):
        return 0
    bounded = {"WHERE", "LIMIT", "TOP", "JOIN", "USING"} & set(statement.keys(place))
    if bounded:
        statement.irreversible(f"deletes some rows of {name[:60]}")
    else:
        statement.reading.act("deletes", f"deletes all rows of {name[:60]}")
    statement.removed(name)
    return place + 1


def _update(statement: Statement, place: int) -> int:
    keys = statement.keys(place)
    if (
        statement.key(place - 1) in _NO_VERB_AFTER
        or set(keys[1:2]) & _NOT_A_TABLE
        or "SET" not in keys[1 : _NEAR + 4]
    ):
        return 0
    name = statement.name(place + 1)[0]
    if "WHERE" in keys or "LIMIT" in keys:
        statement.reading.act("writes", f"changes some rows of {name[:60]}")
    else:
        statement.reading.act("deletes", f"overwrites all rows of {name[:60]}")
    statement.changed(name)
    return place + 1


def _insert(statement: Statement, place: int) -> int:
    following = statement.key(place + 1)
    if statement.key(place - 1) in _NO_VERB_AFTER or following in _NOT_A_TABLE - {"OR", ""}:
        return 0
    at = statement.after("INTO", place)
    name = statement.name(at or place + 1)[0]
    if not name or not (at or {"VALUES", "SELECT", "OVERWRITE"} & set(statement.keys(place))):
        return 0
    if following == "OVERWRITE":
        statement.irreversible(f"replaces the rows of {name[:60]}")
    statement.reading.act("writes", f"adds rows to {name[:60]}")
    statement.added(name)
    return place + 1


def _replace(statement: Statement, place: int) -> int:
    return _insert(statement, place) if statement.key(place + 1) == "INTO" else 0


def _merge(statement: Statement, place: int) -> int:
    keys = statement.keys(place)
    if "USING" not in keys:
        return 0
    name = statement.name(place + 1)[0]
    statement.reading.act("writes", f"merges rows into {name[:60]}")
    if "DELETE" in keys:
        statement.irreversible(f"deletes some rows of {name[:60]}")
    statement.changed(name)
    statement.added(name)
    return place + 1


# -- code ------------------------------------------------------------------------------------------------


def _execute(statement: Statement, place: int) -> int:
    following = statement.key(place + 1)
    reading = statement.reading
    if following in {"AS", "ON", "TO", ","} or statement.key(place - 1) in {"GRANT", ",", "WITH"}:
        if following == "AS" and place == 0:
            reading.act("escalates", "takes on the rights of another user")
        return place + 1 if following == "AS" else 0
    code = statement.string(place + 1, place + 4) if following in {"", "(", "IMMEDIATE"} else None
    if code is not None:
        dynamic(statement, code, place)
        return place + 1
    if following in {"(", "IMMEDIATE"}:
        reading.hides("statements that are put together while running")
        return place + 1
    return _procedure(statement, place)


def dynamic(statement: Statement, code: str, place: int) -> None:
    """Read statements in a string; what is joined to it keeps its meaning from us."""
    joined = not {"||", "+", "CONCAT"}.isdisjoint(statement.keys(place))
    statement.reading.nested("sql", f"{code} joined" if joined else code)
    if joined:
        statement.reading.hides("statements that are put together while running")


def _procedure(statement: Statement, place: int) -> int:
    """Read EXEC and CALL of a procedure."""
    at = place + 1
    if statement.key(at) in {"FUNCTION", "PROCEDURE"}:
        at += 1
    if statement.key(at + 1) == "=":
        at += 2
    name, end = statement.name(at)
    if not name:
        return 0
    strings = [word.text for word in statement.words[end : end + _MAX_FUNCTIONS] if word.is_string]
    if not call(statement, name, strings):
        statement.reading.act("runs", f"runs the procedure {name[:60]}")
    return place + 1


def _do(statement: Statement, place: int) -> int:
    if place or statement.string(0) is None:
        return 0
    definitions.run_body(statement, statement.string(0), 0)
    return len(statement)


def _prepare(statement: Statement, place: int) -> int:
    if place:
        return 0
    code = statement.string(place)
    if code is not None:
        dynamic(statement, code, place)
    elif statement.after("AS", place):
        scan(Statement(statement.reading, statement.words[statement.after("AS", place) :]))
        return len(statement)
    else:
        statement.reading.hides("statements that are put together while running")
    return place + 1


def _kill(statement: Statement, place: int) -> int:
    if place:
        return 0
    statement.reading.act("runs", "ends connections or the server")
    return len(statement)


def _purge(statement: Statement, place: int) -> int:
    if place or statement.key(1) not in {"BINARY", "MASTER", "REPLICA", "SLAVE"}:
        return 0
    statement.reading.act("tampers", "deletes the record of changes")
    return len(statement)


def _rename(statement: Statement, place: int) -> int:
    if place:
        return 0
    statement.reading.act("escalates" if statement.key(1) == "USER" else "writes", "gives another name")
    statement.changed(statement.name(2)[0])
    return len(statement)


def _tidy(statement: Statement, place: int) -> int:
    if place:
        return 0
    statement.reading.act("writes", f"{statement.key(0)}: keeps what is stored in order")
    return len(statement)


def _reassign(statement: Statement, place: int) -> int:
    if place or statement.key(1) != "OWNED":
        return 0
    statement.reading.act("escalates", "hands over what somebody owns")
    return len(statement)


# -- statements whose first word decides ------------------------------------------------------------------


def _set(statement: Statement) -> int:
    keys = statement.keys(0, 4)
    if "ROLE" in keys or "AUTHORIZATION" in keys or "PASSWORD" in keys:
        statement.reading.act("escalates", f"SET {keys[1]}: other rights than before")
        if "PASSWORD" in keys and statement.string(0) is not None:
            statement.column("password")
        return 0
    start = 1
    while statement.key(start) in {"GLOBAL", "PERSIST", "SESSION", "LOCAL", "@@GLOBAL", "@", "@@", "."}:
        start += 1
    lasting = bool({"GLOBAL", "PERSIST", "@@GLOBAL"} & set(keys))
    if lasting and statement.key(start - 1) not in {"GLOBAL", "PERSIST", ".", "@@GLOBAL"}:
        start = statement.after("GLOBAL") or start
    definitions.setting(statement, start, lasting=lasting)
    scan(statement, names=False)
    return 0


def _explain(statement: Statement) -> int:
    """Read EXPLAIN; with ANALYZE the statement is run."""
    keys = statement.keys(1, 2 * _NEAR)
    runs = keys[:1] == ["ANALYZE"] or (keys[:1] == ["("] and "ANALYZE" in keys)
    if not runs:
        statement.reading.act("looks", "explains a statement and does not run it")
        return 0
    return statement.after(")") if keys[:1] == ["("] else 2


def _show(statement: Statement) -> int:
    statement.reading.act("looks", "shows what there is")
    return 0


def _pragma(statement: Statement) -> int:
    name = statement.name(1)[0].lower().rpartition(".")[2]
    if statement.after("=") and name not in _SESSION_PRAGMAS:
        statement.reading.act("writes", f"sets {name[:60]}")
    else:
        statement.reading.act("looks", f"asks for {name[:60]}")
    return 0


LEADING: dict[str, Callable[[Statement], int]] = {
    "SET": _set,
    "EXPLAIN": _explain,
    "SHOW": _show,
    "DESCRIBE": _show,
    "DESC": _show,
    "PRAGMA": _pragma,
}
"""Readers of statements whose first word decides; they return where a statement within begins, 0 if there is none."""

_VERBS: dict[str, Callable[[Statement, int], int]] = {
    "DELETE": _delete,
    "UPDATE": _update,
    "INSERT": _insert,
    "REPLACE": _replace,
    "MERGE": _merge,
    "DROP": definitions.drop,
    "TRUNCATE": definitions.truncate,
    "CREATE": definitions.create,
    "ALTER": definitions.alter,
    "GRANT": definitions.rights,
    "REVOKE": definitions.rights,
    "DENY": definitions.rights,
    "COPY": transfers.copy,
    "UNLOAD": transfers.unload,
    "LOAD": transfers.load,
    "INSTALL": transfers.install,
    "BACKUP": transfers.backup,
    "EXPORT": transfers.backup,
    "RESTORE": transfers.restore,
    "IMPORT": transfers.restore,
    "ATTACH": transfers.attach,
    "VACUUM": transfers.vacuum,
    "INTO": transfers.into_file,
    "EXEC": _execute,
    "EXECUTE": _execute,
    "CALL": _procedure,
    "DO": _do,
    "PREPARE": _prepare,
    "KILL": _kill,
    "SHUTDOWN": _kill,
    "PURGE": _purge,
    "RESET": _purge,
    "RENAME": _rename,
    "REASSIGN": _reassign,
    **dict.fromkeys(_WRITING, _tidy),
}


# -- functions and names ----------------------------------------------------------------------------------


def _functions(statement: Statement) -> bool:
    """Add what the functions do that are called anywhere, as far as the catalogue knows them."""
    found = 0
    for place, word in enumerate(statement.words):
        if word.key == "(" and place and found < _MAX_FUNCTIONS:
            name = _called(statement, place)
            if name and call(statement, name, _strings(statement, place + 1)):
                found += 1
    return found > 0


def _called(statement: Statement, place: int) -> str:
    """Return the dotted name that ends before a place."""
    parts: list[str] = []
    at = place - 1
    while at >= 0 and statement.words[at].is_name and len(parts) < _MAX_PARTS:
        parts.insert(0, statement.words[at].text)
        if statement.key(at - 1) != ".":
            break
        at -= 2
    return ".".join(parts)


def _strings(statement: Statement, start: int) -> list[str]:
    """Return the arguments of a call as far as they are single strings; the others are empty."""
    arguments: list[str] = []
    alone, depth = "", 0
    for place in range(start, min(len(statement), start + 64)):
        word = statement.words[place]
        if word.key in {",", ")"} and depth == 0:
            arguments.append(alone)
            alone = ""
            if word.key == ")":
                break
            continue
        depth += (word.key == "(") - (word.key == ")")
        alone = word.text if word.is_string and statement.key(place - 1) in {"(", ",", "BULK", ""} else alone
        if word.key in {"||", "+"}:
            alone = ""
    return arguments


def call(statement: Statement, name: str, strings: list[str]) -> bool:
    """Add what a function or procedure of the catalogue does; return whether it is there."""
    name = name.lower()
    calls = statement.reading.catalogue.calls["sql"]
    entries = calls.find(name) or calls.find(name.rpartition(".")[2])
    for entry in entries:
        if entry.ranks is not None:
            statement.reading.add(entry.ranks, f"{name}: {entry.note}", kinds=entry.kinds)
        for deed in entry.does(name):
            _deed(statement, name, deed, strings)
    return bool(entries)


def _deed(statement: Statement, name: str, deed: Deed, strings: list[str]) -> None:
    reading = statement.reading
    given = strings[deed.argument] if deed.argument is not None and deed.argument < len(strings) else ""
    if deed.code:
        if given:
            reading.act("runs", f"{name} runs {deed.code}")
            reading.nested(deed.code, given)
        else:
            reading.act(deed.act, f"{name} runs {deed.code} that is put together while running")
    elif given and deed.act in {"reads", "writes", "deletes"}:
        {"reads": transfers.imports, "writes": transfers.exports}.get(deed.act, transfers.exports)(
            reading, given
        )
    elif deed.act in {"fetches", "sends"}:
        (reading.fetches if deed.act == "fetches" else reading.sends)(host_of(given), given or name)
    else:
        reading.act(deed.act, f"calls {name[:60]}")


def _names(statement: Statement, done: Container[int]) -> bool:
    """Add what the names tell in words that no verb has read; return whether rows are read."""
    found = False
    place = 0
    defines = statement.key(0) in {"CREATE", "LOCK", "COMMENT"}
    while place < len(statement) and statement.key(0) != "PREPARE":
        word = statement.words[place]
        if word.key in _TABLE_AFTER and place not in done and statement.key(place - 1) != "DELETE":
            names, place = statement.names(place + 1)
            for name in names:
                statement.table(name)
            found = found or bool(names)
            continue
        if word.is_name and place not in done and not defines:
            statement.column(word.text)
        place += 1
    return found
