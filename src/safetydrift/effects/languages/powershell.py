"""What PowerShell tells by its phrases and the programs that it runs; a reader of its own has its commands."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from safetydrift.effects.reading import Reading

    Reader = Callable[[Reading, str], None]

_RULES = "<powershell>"
"""The name under which the catalogue has the rules about phrases."""
_MAX_TEXT = 16 * 1024
_MAX_COMMANDS = 64
_STATEMENT = re.compile(r"""(?:"(?:[^"`]|`.)*+"|'[^']*+'|[^;\r\n"'])+""")
_COMMAND = re.compile(r"""(?:"(?:[^"`]|`.)*+"|'[^']*+'|[^;|&{}()\r\n"'])+""")
_OWN = frozenset(
    (
        "cat", "cd", "chdir", "clc", "clear", "cls", "compare", "copy", "cp", "curl", "del", "diff", "dir", "echo",
        "erase", "exit", "for", "function", "h", "history", "iex", "if", "kill", "ls", "man", "md", "measure",
        "mkdir", "more", "mount", "move", "mv", "popd", "ps", "pushd", "pwd", "r", "rd", "ren", "return", "rm",
        "rmdir", "sc", "select", "set", "sleep", "sort", "start", "switch", "tee", "trap", "type", "until", "wget",
        "where", "while", "write",
    )
)  # fmt: skip
"""Names of programs that PowerShell takes for commands of its own."""


def with_programs(reader: Reader) -> Reader:
    """Return a reader of PowerShell that first adds what its phrases tell, and what the programs do that it runs."""

    def read(reading: Reading, text: str) -> None:
        beginning = text[:_MAX_TEXT]
        _phrases(reading, beginning)
        for command in _COMMAND.findall(beginning)[:_MAX_COMMANDS]:
            if _is_program(reading, command):
                reading.nested("cmd", command.strip())
        reader(reading, text)

    return read


def _phrases(reading: Reading, text: str) -> None:
    whole = " ".join(text.split())
    statements = [" ".join(statement.split()) for statement in _STATEMENT.findall(text)]
    for rule in reading.catalogue.rules.of(_RULES, ""):
        reading.pay(len(whole))
        if rule.holds((), (whole,)):
            target = next((statement for statement in statements if rule.holds((), (statement,))), whole)
            reading.does(rule.harm, target, certainty=rule.certainty(target, (whole,)))


def _is_program(reading: Reading, command: str) -> bool:
    """Return whether a command runs a program that is known outside PowerShell."""
    first = next(iter(command.split(maxsplit=1)), "")
    name = first.rpartition("\\")[2].rpartition("/")[2].lower()
    plain = name.removesuffix(".exe")
    return plain in reading.catalogue.programs and (plain != name or name not in _OWN)
