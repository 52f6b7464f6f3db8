r"""Commands of the clients that statements are typed into: ``\!`` of psql, ``.shell`` of sqlite3.

They stand at the beginning of a line, and some can do more than any statement.
"""

from __future__ import annotations

import re

from safetydrift.effects.languages.sql.statement import Statement
from safetydrift.effects.languages.sql.transfers import exports, imports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from safetydrift.effects.reading import Reading

_COMMAND = re.compile(
    r"[ \t]*(\\[a-z!.?+]+|\\[A-Z]|\.[a-z_]+|!!?|(?:system|source|host|tee|pager|delimiter|go|/)(?=\s|$))(.*)",
    re.IGNORECASE,
)
_WORDY = frozenset(("system", "source", "host", "tee", "pager", "delimiter"))
_TAIL = re.compile(r"\\(gexec|gset|gdesc|gx|g|G|watch|crosstabview)\b[ \t]*(.*)$")
_SHELL = frozenset(("\\!", ".shell", ".system", "system", "host", "!", "!!"))
_RUN = frozenset(("\\i", "\\ir", "\\include", "\\include_relative", "\\.", ".read", "source"))
_OUT = frozenset(
    (
        *("\\o", "\\out", "\\w", "\\write", ".output", ".once", ".log", ".save", ".backup", ".clone"),
        *(".excel", "tee"),
    )
)
_OUT_COPIES = frozenset((".save", ".backup", ".clone"))
_MAX_COMMANDS = 64


def read_client(reading: Reading, text: str) -> str:
    """Add what the commands of clients in a text do, and return the statements that are left."""
    if not any(sign in text for sign in ("\\", ".", "!", "/")) and not any(
        word in text.lower() for word in _WORDY
    ):
        return _batches(text)
    lines = text.splitlines()
    left: list[str] = []
    fresh, met = True, 0
    for line in lines:
        match = _COMMAND.fullmatch(line)
        if match and met < _MAX_COMMANDS and (fresh or match[1].lower() not in _WORDY):
            met += 1
            _command(reading, match[1], match[2].strip(), left)
        else:
            left.append(_tail(reading, line) if "\\" in line else line)
        fresh = not left or not left[-1].strip() or left[-1].rstrip().endswith(";")
    return "\n".join(left)


def _batches(text: str) -> str:
    """Return a text with a semicolon in the place of each line that says GO."""
    if "go" not in text.lower():
        return text
    return "\n".join(";" if line.strip().lower() == "go" else line for line in text.splitlines())


def _command(reading: Reading, name: str, rest: str, left: list[str]) -> None:
    """Add what one command of a client does; those that hold or end a statement go on as statements."""
    if name.lower() in {"go", "/"} or name in {"\\g", "\\G"}:
        left.append(";")
        return
    lower = name.lower()
    if lower.startswith("\\") and rest.count("`") > 1:
        reading.nested("shell", rest.split("`", 2)[1])
    if lower in _SHELL:
        reading.act("runs", f"{name} hands a command to the shell")
        reading.nested("shell", rest)
    elif lower == "\\copy":
        left.append(f"COPY {rest};")
    elif lower in _RUN:
        _run(reading, rest)
    elif lower in _OUT:
        _out(reading, lower, rest)
    else:
        reader = _OTHERS.get(lower)
        if reader is not None:
            reader(reading, rest)
        else:
            reading.act("looks", f"{name} speaks to the client alone")


def _run(reading: Reading, rest: str) -> None:
    if rest.startswith("|"):
        reading.nested("shell", rest[1:])
        reading.hides("runs the output of a command as SQL")
    else:
        reading.reads(rest.strip("'\""))
        reading.act("runs", "runs the statements of a file")


def _out(reading: Reading, name: str, rest: str) -> None:
    target = rest.split(None, 1)[-1].strip("'\"") if rest else ""
    if name in _OUT_COPIES:
        reading.act("reads", f"{name} copies the whole database")
    if "|" in rest:
        reading.nested("shell", rest.partition("|")[2])
    elif target and target not in {"stdout", "off", "on", "-e", "-x"}:
        exports(reading, target)
    else:
        reading.act("looks", "shows the rows")


def _import(reading: Reading, rest: str) -> None:
    words = [word for word in rest.split() if not word.startswith("-")]
    reading.act("writes", "fills a table from a file")
    if rest.startswith(("|", "'|", '"|')):
        reading.nested("shell", rest.lstrip("'\"|"))
    elif words:
        imports(reading, words[0].strip("'\""))


def _dump(reading: Reading, rest: str) -> None:
    if rest:
        Statement(reading, ()).table(rest)
    else:
        reading.act("reads", "shows the whole database")


def _restore(reading: Reading, rest: str) -> None:
    reading.add(reading.catalogue.acts["deletes"].ranks, f"puts {rest[:60]} in the place of the database")


def _archive(reading: Reading, rest: str) -> None:
    reading.act("reads", f"packs or unpacks files: {rest[:60]}")
    reading.act("writes", f"packs or unpacks files: {rest[:60]}")


_OTHERS: dict[str, Callable[[Reading, str], None]] = {
    ".import": _import,
    ".dump": _dump,
    ".sha3sum": _dump,
    ".restore": _restore,
    ".archive": _archive,
    ".ar": _archive,
    ".load": lambda reading, rest: reading.act("runs", f"loads the library {rest[:60]}"),
    "\\e": lambda reading, _: reading.act("runs", "opens an editor"),
    "\\edit": lambda reading, _: reading.act("runs", "opens an editor"),
    "\\password": lambda reading, _: reading.act("escalates", "changes a password"),
    "\\lo_import": lambda reading, rest: imports(reading, rest.split(None, 1)[0] if rest else ""),
    "\\lo_export": lambda reading, rest: exports(reading, rest.split(None, 1)[-1]),
    "\\lo_unlink": lambda reading, _: reading.act("deletes", "deletes a large object"),
    "pager": lambda reading, rest: reading.nested("shell", rest),
    "\\p": lambda reading, rest: reading.nested("shell", rest),
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
