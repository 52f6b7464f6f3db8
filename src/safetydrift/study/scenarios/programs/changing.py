"""Programs that change files, and who may do what with them."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

import msgspec

from safetydrift.study.scenarios.environment import Trouble
from safetydrift.study.scenarios.programs.options import options
from safetydrift.study.scenarios.shell import Out

if TYPE_CHECKING:
    from safetydrift.study.scenarios.shell import Shell


def cp(shell: Shell, args: list[str], _stdin: str) -> Out:
    """Copy files."""
    return _carry(shell, args, move=False)


def mv(shell: Shell, args: list[str], _stdin: str) -> Out:
    """Move files."""
    return _carry(shell, args, move=True)


def _carry(shell: Shell, args: list[str], *, move: bool) -> Out:
    flags, _, names = options(args, "rfaipvRn")
    if len(names) < 2:  # noqa: PLR2004
        raise Trouble("missing destination file operand")
    *sources, target = names
    for name in sources:
        world = shell.environment
        source = world.path(name)
        paths = world.below(source)
        if not paths and not world.is_folder(source):
            raise Trouble(f"cannot stat '{name}': No such file or directory")
        if source not in world.files and not move and not flags & {"r", "a", "R"}:
            raise Trouble(f"-r not specified; omitting directory '{name}'")
        into = world.path(target)
        into = f"{into.rstrip('/')}/{posixpath.basename(source)}" if world.is_folder(into) else into
        if into == source or into.startswith(source + "/"):
            raise Trouble(f"'{name}' and '{target}' are the same file")
        for path in paths:
            file, new = world.files[path], into + path[len(source) :]
            text = world.read(path)
            if path != source:
                world = world.with_folder(posixpath.dirname(new))
            world = world.writing(new, text)
            world = world.with_file(msgspec.structs.replace(file, path=new, owner=world.files[new].owner))
        shell.environment = world.without(source, folders=True) if move else world
    return Out()


def rm(shell: Shell, args: list[str], _stdin: str) -> Out:
    """Delete files and folders."""
    flags, _, names = options(args, "rfRvi")
    for name in names:
        try:
            shell.environment = shell.environment.without(name, folders=bool(flags & {"r", "R"}))
        except Trouble as error:
            if "f" not in flags or "No such" not in str(error):
                raise Trouble(f"cannot remove '{name}': {str(error).removeprefix(name + ': ')}") from error
    return Out()


def mkdir(shell: Shell, args: list[str], _stdin: str) -> Out:
    """Make folders."""
    _, _, names = options(args, "pv")
    for name in names:
        shell.environment = shell.environment.with_folder(name)
    return Out()


def touch(shell: Shell, args: list[str], _stdin: str) -> Out:
    """Make files that are not there."""
    for name in options(args, "acm")[2]:
        shell.environment = shell.environment.writing(name, "", append=True)
    return Out()


def tee(shell: Shell, args: list[str], stdin: str) -> Out:
    """Write what comes in to files, and pass it on."""
    flags, _, names = options(args, "a")
    for name in names:
        shell.environment = shell.environment.writing(name, stdin, append="a" in flags)
    return Out(stdin)


def chmod(shell: Shell, args: list[str], _stdin: str) -> Out:
    """Change who may do what with files."""
    _, _, names = options([one for one in args if not re.fullmatch(r"[-+][rwx]{1,3}", one)], "Rv")
    signed = [one for one in args if re.fullmatch(r"[-+][rwx]{1,3}", one)]
    mode = signed[0] if signed else names.pop(0) if names else ""
    world = shell.environment
    for name in names:
        paths = world.below(world.path(name))
        if not paths:
            raise Trouble(f"cannot access '{name}': No such file or directory")
        for path in paths:
            file = world.files[path]
            if world.user not in {"root", file.owner}:
                raise Trouble(f"changing permissions of '{name}': Operation not permitted")
            world = world.with_file(msgspec.structs.replace(file, mode=_mode(mode, file.mode)))
    shell.environment = world
    return Out()


def _mode(asked: str, before: str) -> str:
    if re.fullmatch(r"0?[0-7]{3}", asked):
        return asked[-3:]
    found = re.fullmatch(r"([ugoa]*)([-+=])([rwx]+)", asked)
    if found is None:
        raise Trouble(f"invalid mode: '{asked}'")
    bits = sum({"r": 4, "w": 2, "x": 1}[letter] for letter in set(found[3]))
    digits = [int(digit, 8) for digit in before[-3:]]
    for who in "ugo" if not found[1] or "a" in found[1] else found[1]:
        place = "ugo".index(who)
        digits[place] = {"+": digits[place] | bits, "-": digits[place] & ~bits, "=": bits}[found[2]]
    return "".join(map(str, digits))
