"""Programs about the machine and its network; both are the environment's."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from safetydrift.study.scenarios.environment import Trouble
from safetydrift.study.scenarios.programs.options import options, out
from safetydrift.study.scenarios.shell import Out

if TYPE_CHECKING:
    from safetydrift.study.scenarios.shell import Shell


def cd(shell: Shell, args: list[str], _stdin: str) -> Out:
    """Go to a folder."""
    path = shell.environment.path(args[0] if args else "~")
    if not shell.environment.is_folder(path):
        raise Trouble(f"{args[0] if args else path}: No such file or directory")
    shell.environment = replace(shell.environment, cwd=path)
    return Out()


def sudo(shell: Shell, args: list[str], stdin: str) -> Out:
    """Run a program as root, where the scenario allows it."""
    user = shell.environment.user
    if not shell.environment.sudo:
        raise Trouble(f"{user} is not in the sudoers file.")
    shell.environment = replace(shell.environment, user="root")
    try:
        return shell.call([word for word in args if word != "-n"], stdin)
    finally:
        shell.environment = replace(shell.environment, user=user)


def chown(shell: Shell, args: list[str], _stdin: str) -> Out:
    """Change who owns files; root alone may."""
    _, _, names = options(args, "Rv")
    world = shell.environment
    if world.user != "root":
        raise Trouble("Operation not permitted")
    owner = names.pop(0).partition(":")[0] if names else ""
    for path in [one for name in names for one in world.below(world.path(name))]:
        world = world.with_file(msgspec.structs.replace(world.files[path], owner=owner))
    shell.environment = world
    return Out()


def systemctl(shell: Shell, args: list[str], _stdin: str) -> Out:
    """Start, stop and look at services of the environment."""
    world = shell.environment
    words = [word for word in args if not word.startswith("-")]
    verb, name = (words[0] if words else ""), (words[1] if len(words) > 1 else "").removesuffix(".service")
    if verb in {"list-units", ""}:
        return out(f"{one}.service  {state}" for one, state in sorted(world.services.items()))
    if name not in world.services:
        return Out(error=f"Unit {name}.service could not be found.\n", code=4)
    if verb in {"status", "is-active"}:
        return out([f"{name}.service: {world.services[name]}"])
    states = {
        "start": "active",
        "restart": "active",
        "reload": "active",
        "stop": "inactive",
        "disable": "disabled",
        "enable": "active",
        "mask": "masked",
    }
    if verb not in states:
        raise Trouble(f"Unknown operation {verb} in this sandbox.")
    shell.environment = replace(world, services={**world.services, name: states[verb]})
    return Out()


def curl(shell: Shell, args: list[str], stdin: str) -> Out:
    """Request an address of the environment: ``-X``, ``-d``, ``-T``, ``-F``, ``-H``, ``-o``, ``-G``."""
    long = {
        "--request": "-X",
        "--data": "-d",
        "--data-binary": "-d",
        "--data-raw": "-d",
        "--upload-file": "-T",
        "--form": "-F",
        "--header": "-H",
        "--output": "-o",
        "--silent": "-s",
        "--fail": "-f",
        "--location": "-L",
        "--data-urlencode": "-d",
    }
    flags, values, urls = options([long.get(word, word) for word in args], "sSfLikGv", "XdTFHouAm")
    if len(urls) != 1:
        raise Trouble("no URL specified" if not urls else "one URL at a time in this sandbox")
    pieces = [_sent(shell, one, stdin) for key in "dF" for one in values.get(key, "").split("\n") if one]
    pieces += [shell.environment.read(values["T"])] if "T" in values else []
    pieces += [values[key] for key in ("H", "u") if key in values]
    method = values.get("X") or (
        "PUT" if "T" in values else "POST" if values.keys() & {"d", "F"} and "G" not in flags else "GET"
    )
    try:
        shell.environment, status, text = shell.environment.requesting(method, urls[0], "\n".join(pieces))
    except Trouble as error:
        return Out(error=f"curl: (6) {error}\n", code=6)
    if status >= 400 and "f" in flags:  # noqa: PLR2004
        return Out(error=f"curl: (22) The requested URL returned error: {status}\n", code=22)
    text = text if text.endswith("\n") else text + "\n"
    if "o" in values:
        shell.environment = shell.environment.writing(values["o"], text)
        return Out()
    return Out(text)


def _sent(shell: Shell, data: str, stdin: str) -> str:
    name, at, path = data.partition("@")
    if not at or (name and not name.endswith("=")):
        return data
    return name + (stdin if path == "-" else shell.environment.read(path.partition(";")[0]))
