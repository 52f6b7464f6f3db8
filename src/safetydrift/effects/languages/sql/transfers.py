"""Statements that carry rows into files and out of them, to other servers, and through programs.

As in `definitions`, each function returns the place from which to read on, or 0 if the word is no verb there.
"""

from __future__ import annotations

from safetydrift.effects.languages.addresses import host_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from safetydrift.effects.languages.sql.statement import Statement
    from safetydrift.effects.reading import Reading


def exports(reading: Reading, target: str) -> None:
    """Add that rows are written to a file, or sent to an address."""
    host = share(target)
    if host:
        reading.sends(host, target)
    else:
        reading.writes(target)


def imports(reading: Reading, source: str) -> None:
    """Add that a file, or what stands at an address, is read."""
    host = share(source)
    if host:
        reading.fetches(host, source)
    else:
        reading.reads(source)


def share(place: str) -> str:
    """Return the host of an address, or of a share of Windows; empty for a local path."""
    if "://" in place:
        return host_of(place) or "?"
    if place.startswith(("\\\\", "//")):
        return host_of("//" + place.lstrip("\\/").replace("\\", "/")) or "?"
    return ""


def copy(statement: Statement, place: int) -> int:
    """Read COPY between a table and a file, a program or an address; without a direction it is no verb."""
    into = statement.key(place + 1) == "INTO"
    directions = {} if place and not into else _directions(statement, place)
    to, from_ = directions.get("TO", 0), directions.get("FROM", 0)
    if not (to or from_):
        return 0
    if to:
        _copy_out(statement, place, to)
    elif into and (target := statement.string(place + 2, place + 4)) is not None:
        exports(statement.reading, target)
    else:
        _copy_in(statement, place, from_)
    return len(statement) if statement.key(place + 1) != "(" else place + 1


def _directions(statement: Statement, place: int) -> dict[str, int]:
    """Return the places behind the first TO and the first FROM outside brackets."""
    found: dict[str, int] = {}
    depth = 0
    for at, key in enumerate(statement.keys(place), place):
        depth += (key == "(") - (key == ")")
        if depth == 0 and key in {"TO", "FROM"}:
            found.setdefault(key, at + 1)
    return found


def _copy_out(statement: Statement, place: int, to: int) -> None:
    reading = statement.reading
    if statement.key(place + 1) != "(":
        statement.table(statement.name(place + 1)[0])
    target = statement.string(to, to + 2)
    if statement.key(to) == "PROGRAM":
        program(reading, target)
    elif target is not None:
        exports(reading, target)
    else:
        reading.act("reads", "copies rows to the client")


def _copy_in(statement: Statement, place: int, from_: int) -> None:
    reading = statement.reading
    name = statement.name(place + 1)[0]
    reading.act("writes", f"fills {name[:60]}")
    statement.added(name)
    source = statement.string(from_, from_ + 2)
    if statement.key(from_) == "PROGRAM":
        program(reading, source)
    elif source is not None:
        imports(reading, source)
    elif statement.key(place + 1) == "INTO":
        statement.table(statement.name(from_)[0])


def program(reading: Reading, command: str | None) -> None:
    """Add a shell command that the server runs."""
    if command is None:
        reading.hides("a program whose command is put together")
    else:
        reading.act("runs", "runs a program on the server")
        reading.nested("shell", command)


def unload(statement: Statement, place: int) -> int:
    """Read UNLOAD, which sends the rows of a query to a store."""
    to = statement.after("TO", place)
    if not to:
        return 0
    query = statement.string(place, to)
    if query is not None:
        statement.reading.nested("sql", query)
    target = statement.string(to)
    if target is not None:
        exports(statement.reading, target)
    return to


def load(statement: Statement, place: int) -> int:
    """Read LOAD DATA, which reads a file into a table, and LOAD, which loads a library."""
    reading = statement.reading
    if statement.key(place + 1) in {"DATA", "XML"}:
        source = statement.string(place)
        if source is not None:
            imports(reading, source)
        name = statement.name(statement.after("TABLE", place) or len(statement))[0]
        reading.act("writes", f"fills {name[:60]}")
        statement.added(name)
        return len(statement)
    if place:
        return 0
    reading.act("runs", "loads a library into the database")
    return len(statement)


def install(statement: Statement, place: int) -> int:
    """Read INSTALL, which downloads code that the database then runs."""
    if place:
        return 0
    statement.reading.fetches("", statement.string(0) or statement.name(1)[0])
    statement.reading.act("runs", "installs code in the database")
    return len(statement)


def backup(statement: Statement, place: int) -> int:
    """Read BACKUP and EXPORT, which write a whole database to a file."""
    if place or statement.key(1) not in {"DATABASE", "LOG", "TABLE", "TO", ""}:
        return 0
    statement.reading.act("reads", "reads a whole database")
    target = statement.string(1)
    if target is not None:
        exports(statement.reading, target)
    else:
        statement.reading.act("writes", "writes a copy of a database")
    return len(statement)


def restore(statement: Statement, place: int) -> int:
    """Read RESTORE and IMPORT, which put a whole database in the place of what is there."""
    if place:
        return 0
    source = statement.string(1)
    if source is not None:
        imports(statement.reading, source)
    if statement.key(0) == "IMPORT":
        statement.reading.act("writes", "fills a database")
    else:
        statement.irreversible("puts an older state in the place of a database")
    return len(statement)


def attach(statement: Statement, place: int) -> int:
    """Read ATTACH, which opens the file of another database, or a connection to one."""
    if place:
        return 0
    source = statement.string(1)
    if source is None or source in {":memory:", ""}:
        statement.reading.act("looks", "attaches a database")
    elif "host=" in source or "://" in source:
        statement.reading.fetches(host_of(source), source)
    else:
        statement.reading.reads(source)
    return len(statement)


def vacuum(statement: Statement, place: int) -> int:
    """Read VACUUM, which tidies up, and VACUUM INTO, which writes a copy of the database."""
    if place:
        return 0
    target = statement.string(1)
    statement.reading.act("writes", "tidies the database up")
    if target is not None:
        statement.reading.act("reads", "reads a whole database")
        exports(statement.reading, target)
    return len(statement)


def into_file(statement: Statement, place: int) -> int:
    """Read INTO OUTFILE and INTO DUMPFILE, which write the rows of a query to a file of the server."""
    if statement.key(place + 1) not in {"OUTFILE", "DUMPFILE"}:
        return 0
    target = statement.string(place + 1)
    if target is not None:
        exports(statement.reading, target)
    else:
        statement.reading.hides("rows written to a file whose name is put together")
    return place + 2
