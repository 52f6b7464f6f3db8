"""Programs that look at files: what there is, and where something stands."""

from __future__ import annotations

import posixpath
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from safetydrift.study.scenarios.environment import Trouble
from safetydrift.study.scenarios.programs.options import MAX_LINE, inputs, lines_of, options, out, pattern
from safetydrift.study.scenarios.shell import Out

if TYPE_CHECKING:
    import re

    from safetydrift.study.scenarios.shell import Shell


def ls(shell: Shell, args: list[str], _stdin: str) -> Out:
    """List names, with ``-l`` their rights and sizes."""
    flags, _, names = options(args, "lahR1trdF")
    world, lines, code = shell.environment, [], 0
    for name in names or ["."]:
        path = world.path(name)
        if path in world.files:
            lines.append(_entry(shell, path, name, flags))
        elif world.is_folder(path):
            lines += [f"{name}:"] if len(names) > 1 else []
            below = path.rstrip("/")
            inside = (
                [one[len(below) + 1 :] for one in world.below(path)] if "R" in flags else world.children(path)
            )
            lines += [
                _entry(shell, f"{below}/{one}", one, flags)
                for one in inside
                if "a" in flags or not one.startswith(".")
            ]
        else:
            return Out(
                "".join(f"{line}\n" for line in lines),
                f"ls: cannot access '{name}': No such file or directory\n",
                2,
            )
    return out(lines, code)


def _entry(shell: Shell, path: str, name: str, flags: set[str]) -> str:
    if "l" not in flags:
        return name.rstrip("/") if "F" not in flags else name
    file = shell.environment.files.get(path)
    if file is None:
        return f"drwxr-xr-x  -  {name.rstrip('/')}"
    rights = "".join(
        letter if int(digit, 8) & bit else "-"
        for digit in file.mode[-3:]
        for letter, bit in (("r", 4), ("w", 2), ("x", 1))
    )
    return f"-{rights}  {file.owner}  {len(file.text.encode())}  {name}"


def cat(shell: Shell, args: list[str], stdin: str) -> Out:
    """Print files one after the other."""
    flags, _, names = options(args, "nA")
    text = "".join(text for _, text in inputs(shell, names, stdin))
    if "n" in flags:
        return out(f"{number:6}\t{line}" for number, line in enumerate(lines_of(text), 1))
    return Out(text)


def head(shell: Shell, args: list[str], stdin: str) -> Out:
    """Print the first lines."""
    return _ends(shell, args, stdin, lambda lines, n: lines[: int(n)])


def tail(shell: Shell, args: list[str], stdin: str) -> Out:
    """Print the last lines."""
    return _ends(
        shell,
        args,
        stdin,
        lambda lines, n: (
            lines[int(n[1:]) - 1 :] if n.startswith("+") else lines[max(len(lines) - int(n), 0) :]
        ),
    )


def _ends(shell: Shell, args: list[str], stdin: str, cut: object) -> Out:
    _, values, names = options(args, "q", "nc")
    number = values.get("n", "10")
    if not number.removeprefix("+").isdigit() or len(number) > 7 or not callable(cut):  # noqa: PLR2004
        raise Trouble(f"invalid number of lines: '{number}'")
    found = inputs(shell, names, stdin)
    lines: list[str] = []
    for name, text in found:
        lines += [f"==> {name} <=="] if len(found) > 1 else []
        lines += cut(lines_of(text), number)
    return out(lines)


def grep(shell: Shell, args: list[str], stdin: str) -> Out:
    """Print the lines that match."""
    flags, values, names = options(args, "invcrlEFhHowqRs", "eAB")
    patterns = [values["e"]] if "e" in values else [names.pop(0)] if names else []
    if not patterns:
        raise Trouble("usage: grep [-invcrlEFhow] PATTERN [FILE]...")
    match = pattern(patterns[0], ignore_case="i" in flags, fixed="F" in flags)
    if flags & {"r", "R"}:
        names = [
            one for name in names or ["."] for one in shell.environment.below(shell.environment.path(name))
        ]
    lines, found = [], False
    texts = inputs(shell, names, stdin)
    for name, text in texts:
        hits = [
            (n, line)
            for n, line in enumerate(lines_of(text), 1)
            if (match.search(line[:MAX_LINE]) is None) == ("v" in flags)
        ]
        found = found or bool(hits)
        prefix = (
            f"{name}:" if (len(texts) > 1 or "H" in flags or flags & {"r", "R"}) and "h" not in flags else ""
        )
        lines += _grepped(hits, flags, name, prefix, match)
    return Out(code=int(not found)) if "q" in flags else out(lines, int(not found))


def _grepped(
    hits: list[tuple[int, str]], flags: set[str], name: str, prefix: str, match: re.Pattern[str]
) -> list[str]:
    if "l" in flags:
        return [name] if hits else []
    if "c" in flags:
        return [f"{prefix}{len(hits)}"]
    if "o" in flags:
        return [
            prefix + one.group() for _, line in hits for one in match.finditer(line[:MAX_LINE]) if one.group()
        ]
    return [f"{prefix}{number}:{line}" if "n" in flags else prefix + line for number, line in hits]


def find(shell: Shell, args: list[str], _stdin: str) -> Out:
    """Print the paths below a folder whose names fit."""
    world = shell.environment
    start = args.pop(0) if args and not args[0].startswith("-") else "."
    tests = dict(zip(args[::2], args[1::2], strict=False))
    delete = bool(args) and args[-1] == "-delete"
    unknown = tests.keys() - {"-name", "-iname", "-type", "-path", "-delete"}
    if unknown or (len(args) % 2 and not delete):
        raise Trouble(f"unknown predicate '{min(unknown, default=args[-1] if args else '')}' in this sandbox")
    base = world.path(start)
    if base not in world.files and not world.is_folder(base):
        raise Trouble(f"'{start}': No such file or directory")
    wanted = tests.get("-name", tests.get("-iname", "*"))
    paths = (
        world.below(base)
        if tests.get("-type", "f") == "f"
        else sorted({posixpath.dirname(p) for p in world.below(base)})
    )
    found = [
        p
        for p in paths
        if fnmatchcase(posixpath.basename(p), wanted) and fnmatchcase(p, tests.get("-path", "*"))
    ]
    if delete:
        for path in found:
            shell.environment = shell.environment.without(path)
        return Out()
    return out(start.rstrip("/") + path[len(base.rstrip("/")) :] for path in found)
