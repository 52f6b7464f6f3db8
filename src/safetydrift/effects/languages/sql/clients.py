r"""Commands of the clients that statements are typed into: ``\!`` of psql, ``.shell`` of sqlite3.

They stand at the beginning of a line, and some can do more than any statement.
"""

from __future__ import annotations

import re

from safetydrift.effects.languages.sql.places import exports, imports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from safetydrift.effects.reading import Reading

MAX_COMMANDS = 64
_COMMAND = re.compile(
    r"[ \t]*(\\[a-z!.?+]+|\\[A-Z]|\.[a-z_]+|!!?|(?:system|source|host|tee|pager|delimiter|go|/)(?=\s|$))(.*)",
    re.IGNORECASE,
)
_WORDY = re.compile(r"system|source|host|tee|pager|delimiter")
_MAY_COMMAND = re.compile(rf"[\\.!/]|go|{_WORDY.pattern}", re.IGNORECASE)
_TAIL = re.compile(r"\\(gexec|gset|gdesc|gx|g|G|watch|crosstabview)\b[ \t]*([^\\]*)$")
_SHOWN = frozenset(("stdout", "off", "on", "-e", "-x", ""))


def read_client(reading: Reading, text: str) -> str:
    """Add what the commands of clients in a text do, and return the statements that are left."""
    if not _MAY_COMMAND.search(text):
        return text
    left: list[str] = []
    fresh, met = True, 0
    for line in text.splitlines():
        match = _COMMAND.fullmatch(line)
        if match and met < MAX_COMMANDS and (fresh or not _WORDY.fullmatch(match[1].lower())):
            met += 1
            left.append(_command(reading, match[1].lower(), match[2].strip()))
        else:
            left.append(_tail(reading, line) if "\\" in line else line)
        fresh = not left[-1].strip() or left[-1].rstrip().endswith(";")
    return "\n".join(left)


def _command(reading: Reading, name: str, rest: str) -> str:
    """Add what one command does; return the statement that it holds or ends, if it does."""
    if name.startswith("\\") and rest.count("`") > 1:
        reading.nested("shell", rest.split("`", 2)[1])
    if name in {"go", "/", "\\g"}:
        return ";"
    if name == "\\copy":
        return f"COPY {rest};"
    if name == ".dump" and rest:
        return f"TABLE {rest};"
    _COMMANDS.get(name, _talk)(reading, rest)
    return ""


def _talk(reading: Reading, _rest: str) -> None:
    reading.act("looks", "a command that speaks to the client alone")


def _shell(reading: Reading, rest: str) -> None:
    reading.act("runs", "hands a command to the shell")
    reading.nested("shell", rest)


def _run(reading: Reading, rest: str) -> None:
    if rest.startswith("|"):
        reading.nested("shell", rest[1:])
        reading.hides("runs the output of a command as SQL")
    else:
        reading.reads(rest.strip("'\""))
        reading.act("runs", "runs the statements of a file")


def _out(reading: Reading, rest: str) -> None:
    target = rest.split(None, 1)[-1].strip("'\"") if rest else ""
    if "|" in rest:
        reading.nested("shell", rest.partition("|")[2])
    elif target not in _SHOWN:
        exports(reading, target)
    else:
        reading.act("looks", "shows the rows")


def _copy(reading: Reading, rest: str) -> None:
    reading.act("reads", "copies the whole database")
    if rest:
        _out(reading, rest)


def _import(reading: Reading, rest: str) -> None:
    words = [word for word in rest.split() if not word.startswith("-")]
    reading.act("writes", "fills a table or the database from a file")
    if rest.startswith(("|", "'|", '"|')):
        reading.nested("shell", rest.lstrip("'\"|"))
    elif words:
        imports(reading, words[0].strip("'\""))


def _restore(reading: Reading, _rest: str) -> None:
    reading.add(
        reading.catalogue.acts["deletes"].ranks, "puts a file in the place of the database, or of a part"
    )


def _archive(reading: Reading, rest: str) -> None:
    for act in ("reads", "writes"):
        reading.act(act, f"packs or unpacks files: {rest[:60]}")


def _load(reading: Reading, rest: str) -> None:
    reading.act("runs", f"loads a library, or opens an editor: {rest[:60]}")


def _password(reading: Reading, _rest: str) -> None:
    reading.act("escalates", "changes a password")


_COMMANDS: dict[str, Callable[[Reading, str], None]] = {
    **dict.fromkeys(("\\!", ".shell", ".system", "system", "host", "!", "!!", "pager", "\\p"), _shell),
    **dict.fromkeys(("\\i", "\\ir", "\\include", "\\include_relative", "\\.", ".read", "source"), _run),
    **dict.fromkeys(("\\o", "\\out", "\\w", "\\write", ".output", ".once", ".log", ".excel", "tee"), _out),
    **dict.fromkeys((".save", ".backup", ".clone", ".dump", ".sha3sum", "\\lo_export"), _copy),
    **dict.fromkeys((".import", "\\lo_import"), _import),
    **dict.fromkeys((".restore", "\\lo_unlink"), _restore),
    **dict.fromkeys((".archive", ".ar"), _archive),
    **dict.fromkeys((".load", "\\e", "\\edit"), _load),
    "\\password": _password,
}


def _tail(reading: Reading, line: str) -> str:
    r"""Return a line without the command that ends its statement: ``\g``, ``\gexec``, ``\G``."""
    match = _TAIL.search(line)
    if match is None or line.count("'", 0, match.start()) % 2:
        return line
    rest = match[2].strip()
    if match[1] == "gexec":
        reading.hides("runs the rows of a query as statements")
    elif match[1] in {"g", "gx"} and rest.startswith("|"):
        reading.nested("shell", rest[1:])
    elif match[1] in {"g", "gx"} and rest and not rest.startswith(("(", ";", "--")):
        exports(reading, rest.split()[0])
    return line[: match.start()] + ";"
