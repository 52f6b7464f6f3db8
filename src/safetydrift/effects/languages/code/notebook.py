"""Cells of notebooks: what IPython understands beyond Python (``!ls``, ``%pip install``, ``%%bash``)."""

from __future__ import annotations

import re

from safetydrift.effects.reading import UnreadableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from safetydrift.effects.reading import Reading

_COMMAND = re.compile(
    r"([ \t]*)(?:([\w.\[\]\"',][\w.\[\]\"', ]{0,99}?)[ \t]{0,9}=[ \t]{0,9})?+(!!?|%%?)[ \t]*(\S.*)"
)
_SHELLS = frozenset(("bash", "sh", "script", "system", "sx", "!", "zsh", "cmd"))
_PROGRAMS = frozenset(("pip", "conda", "mamba", "uv", "cp", "mv", "rm", "mkdir", "rmdir", "cat", "ls", "git"))
_OF_PYTHON = frozenset(("time", "timeit", "capture", "prun", "debug", "python", "python3", "pypy"))
_LANGUAGES = {
    "javascript": "javascript",
    "js": "javascript",
    "perl": "perl",
    "ruby": "ruby",
    "R": "r",
    "sql": "sql",
}
_IDLE = re.compile(
    r"autoreload|cd|config|html|HTML|latex|load_ext|lsmagic|markdown|matplotlib|precision|pwd|reload_ext|reset|svg|whos?|xmode"
)


def cell_program(reading: Reading, text: str) -> str:
    """Add what a cell does that starts with ``%%``; return the Python code left to read."""
    head, _, body = text.lstrip().partition("\n")
    name, _, rest = head[2:].strip().partition(" ")
    if name in _SHELLS:
        program = rest.split()[:1]
        if name == "script" and program and program[0] in _OF_PYTHON:
            return body
        language = _LANGUAGES.get(program[0], "shell") if name == "script" and program else "shell"
        _nested(reading, language, body)
    elif name in _LANGUAGES:
        _nested(reading, _LANGUAGES[name], body)
    elif name in {"writefile", "file"}:
        reading.writes(rest.split()[-1] if rest.split() else "")
    elif name in _OF_PYTHON:
        return f"{rest}\n{body}" if name == "timeit" and not rest.startswith("-") else body
    elif not _IDLE.fullmatch(name):
        reading.act("runs", f"runs the cell command %%{name[:40]}")
        return body
    return ""


def without_commands(reading: Reading, text: str) -> tuple[str, int]:
    """Add what the lines do that are commands of the notebook; return the text without them and their number."""
    lines = text.split("\n")
    found = 0
    for at, line in enumerate(lines):
        match = _COMMAND.match(line) if "!" in line or "%" in line else None
        if match is not None and (not match[2] or match[3] != "%%"):
            found += 1
            lines[at] = match[1] + (f"{match[2]} = None" if match[2] else "pass")
            _command(reading, match[3], match[4])
    return "\n".join(lines), found


def _command(reading: Reading, sign: str, command: str) -> None:
    name, _, rest = command.partition(" ")
    if sign in {"!", "!!"} or name in _PROGRAMS:
        _nested(reading, "shell", command)
    elif name in _SHELLS:
        _nested(reading, "shell", rest)
    elif name in _OF_PYTHON:
        _nested(reading, "python", rest)
    elif name in {"env", "set_env"}:
        if "=" not in rest and len(rest.split()) != 2:  # noqa: PLR2004  # a name and its value
            reading.names(rest.strip() or "environ")
    elif name in {"run", "load"}:
        reading.act("runs", f"runs the file {rest.strip()[:60]}")
    elif not _IDLE.fullmatch(name):
        reading.act("runs", f"runs the command %{name[:40]}")


def _nested(reading: Reading, language: str, text: str) -> None:
    depth = reading.depth
    try:
        reading.nested(language, text)
    except UnreadableError as problem:
        if reading.budget < 0:
            raise
        reading.depth = depth
        reading.hides(str(problem))
