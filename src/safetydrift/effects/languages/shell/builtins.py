"""Commands that change what later commands of the same text see: variables, aliases, parameters, files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from safetydrift.effects.languages.addresses import host_of
from safetydrift.effects.languages.shell.outputs import printf
from safetydrift.effects.languages.shell.values import Carried, file_key
from safetydrift.effects.operations import LIKELY

if TYPE_CHECKING:
    from collections.abc import Callable

    from safetydrift.effects.languages.shell.values import Fed, Scope
    from safetydrift.effects.reading import Reading

    Builtin = Callable[["Shell", list[str], Fed | None], None]


class Shell(Protocol):
    """What a builtin asks of the shell that runs it."""

    reading: Reading
    scope: Scope

    def shell_text(self, text: str) -> None:
        """Read shell text within this text, in the same scope."""


def _alias(shell: Shell, words: list[str], fed: Fed | None) -> None:  # noqa: ARG001
    for word in words[1:]:
        name, equals, text = word.partition("=")
        if equals:
            shell.scope.aliases[name] = text
            shell.shell_text(text)


def _read(shell: Shell, words: list[str], fed: Fed | None) -> None:
    names = [word for word in words[1:] if not word.startswith("-")] or ["REPLY"]
    if fed is not None and fed.sources:
        shell.scope.sources.update(dict.fromkeys(names, fed.sources))
    known = fed.text if fed is not None and len(names) == 1 else None
    for name in names:
        values = (Carried(f"${name}"),) if known is None else (known.partition("\n")[0],)
        shell.scope.assign(name, values)


def _printf(shell: Shell, words: list[str], fed: Fed | None) -> None:  # noqa: ARG001
    if len(words) > 3 and words[1] == "-v":  # noqa: PLR2004
        shell.scope.assign(words[2], (printf(words[3:]) or Carried("$(printf)"),))


def _set(shell: Shell, words: list[str], fed: Fed | None) -> None:  # noqa: ARG001
    if "--" in words:
        shell.scope.arguments = tuple(words[words.index("--") + 1 :])


def _copy(shell: Shell, words: list[str], fed: Fed | None) -> None:  # noqa: ARG001
    operands = [word for word in words[1:] if not word.startswith("-")]
    if operands[:1] == ["/dev/null"] and words[0] == "cp":
        shell.reading.empties(operands[-1])
    if len(operands) == 2 and file_key(operands[0]) in shell.scope.files:  # noqa: PLR2004
        shell.scope.files[file_key(operands[1])] = shell.scope.files[file_key(operands[0])]


def _tee(shell: Shell, words: list[str], fed: Fed | None) -> None:
    adds = any(word in {"-a", "--append"} for word in words)
    for word in words[1:]:
        if not word.startswith("-"):
            if fed is not None and fed.text == "" and not adds and file_key(word) not in shell.scope.files:
                shell.reading.empties(word)
            shell.scope.files[file_key(word)] = fed.text if fed is not None else None


def _change_directory(shell: Shell, words: list[str], fed: Fed | None) -> None:  # noqa: ARG001
    target = next((word for word in words[1:] if not word.startswith("-") or word == "-"), "~")
    shell.reading.directory = "" if target == "-" else shell.reading.located(target).rstrip("/") or "/"


def _version_control(shell: Shell, words: list[str], fed: Fed | None) -> None:  # noqa: ARG001
    """Follow a repository to a remote that this very text names."""
    operands = [word for word in words[1:] if not word.startswith("-")]
    if operands[:2] in (["remote", "add"], ["remote", "set-url"]) and len(operands) > 3:  # noqa: PLR2004
        shell.scope.remotes[operands[2]] = operands[3]
    elif operands[:1] == ["push"] and operands[1:2] and operands[1] in shell.scope.remotes:
        address = shell.scope.remotes[operands[1]]
        shell.reading.takes(shell.reading.located("."))
        shell.reading.hands(host_of(address), address, action="push", least=LIKELY)


BUILTINS: dict[str, Builtin] = {
    "alias": _alias,
    "cd": _change_directory,
    "pushd": _change_directory,
    "git": _version_control,
    "read": _read,
    "mapfile": _read,
    "readarray": _read,
    "printf": _printf,
    "set": _set,
    "cp": _copy,
    "mv": _copy,
    "install": _copy,
    "ln": _copy,
    "tee": _tee,
}
