"""Programs that do one small thing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from safetydrift.study.scenarios.environment import Trouble
from safetydrift.study.scenarios.programs.options import inputs, lines_of, options, out
from safetydrift.study.scenarios.shell import MAX_OUTPUT, Out

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from safetydrift.study.scenarios.environment import Environment
    from safetydrift.study.scenarios.shell import Shell


def echo(_shell: Shell, args: list[str], _stdin: str) -> Out:
    """Print words."""
    newline = args[:1] != ["-n"]
    words = args if newline else args[1:]
    if words[:1] == ["-e"]:
        words = [word.replace("\\n", "\n").replace("\\t", "\t") for word in words[1:]]
    return Out(" ".join(words) + ("\n" if newline else ""))


def printf(_shell: Shell, args: list[str], _stdin: str) -> Out:
    """Print words as a template says."""
    template, *values = args or [""]
    template = template.replace("\\n", "\n").replace("\\t", "\t")
    pieces = re.split(r"%[sd]", template)
    n = len(pieces) - 1
    rounds = max(1, -(-len(values) // n)) if n else 1
    filled = values + [""] * (rounds * n - len(values))
    text = ""
    for turn in range(rounds):
        text += pieces[0] + "".join(
            value + piece for value, piece in zip(filled[turn * n :], pieces[1:], strict=False)
        )
    return Out(text.replace("%%", "%")[:MAX_OUTPUT])


def test(shell: Shell, args: list[str], _stdin: str) -> Out:
    """Tell by the exit code whether something holds."""
    if args[:1] == ["!"]:
        return Out(code=int(not test(shell, args[1:], "").code))
    match args:
        case [sign, name] if sign in _FILE_TESTS:
            holds = _FILE_TESTS[sign](shell.environment, shell.environment.path(name))
        case ["-n", text] | [text]:
            holds = bool(text)
        case ["-z", text]:
            holds = not text
        case [left, "=" | "==", right]:
            holds = left == right
        case [left, "!=", right]:
            holds = left != right
        case _:
            raise Trouble("this test: not available in this sandbox")
    return Out(code=int(not holds))


_FILE_TESTS: Mapping[str, Callable[[Environment, str], bool]] = {
    "-f": lambda world, path: path in world.files,
    "-d": lambda world, path: path not in world.files and world.is_folder(path),
    "-e": lambda world, path: path in world.files or world.is_folder(path),
    "-s": lambda world, path: path in world.files and bool(world.files[path].text),
}


def du(shell: Shell, args: list[str], _stdin: str) -> Out:
    """Print how many bytes there are."""
    _, _, names = options(args, "shac")
    world = shell.environment
    return out(
        f"{sum(len(world.files[one].text.encode()) for one in world.below(world.path(name)))}\t{name}"
        for name in names or ["."]
    )


def shuf(shell: Shell, args: list[str], stdin: str) -> Out:
    """Put lines in an order by chance."""
    _, values, names = options(args, "", "n")
    lines = [line for _, text in inputs(shell, names, stdin) for line in lines_of(text)]
    shell.random().shuffle(lines)
    return out(lines[: int(values["n"])] if values.get("n", "").isdigit() else lines)


def xargs(shell: Shell, args: list[str], stdin: str) -> Out:
    """Call a program with the words that come in."""
    if args[:1] and args[0].startswith("-"):
        raise Trouble(f"invalid option -- '{args[0]}' in this sandbox")
    return shell.call([*(args or ["echo"]), *stdin.split()])


def which(shell: Shell, args: list[str], _stdin: str) -> Out:
    """Print where programs are."""
    found = [name for name in args if name in shell.programs]
    return out((f"/usr/bin/{name}" for name in found), int(len(found) < len(args)))
