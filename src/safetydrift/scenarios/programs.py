"""The programs of the sandbox's shell: those that people look at and move files with, in the parts that they use."""

from __future__ import annotations

import posixpath
import re
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import msgspec

from safetydrift.scenarios.environment import Trouble
from safetydrift.scenarios.shell import MAX_OUTPUT, Out

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from safetydrift.scenarios.shell import Program, Shell

_MAX_PATTERN = 200
_MAX_LINE = 400
_REPEATS = re.compile(r"(?<!\\)(?:[*+]|\{\d*,\d*\})")
_REPEATED_GROUP = re.compile(r"\)(?:[*+?]|\{)")
_MAX_REPEATS = 2


def options(args: Iterable[str], flags: str = "", valued: str = "") -> tuple[set[str], dict[str, str], list[str]]:
    """Return the flags, the options with a value and the operands of a command line.

    Raises
    ------
    Trouble
        If an option is not among those the program has here.
    """
    found: set[str] = set()
    values: dict[str, str] = {}
    rest: list[str] = []
    words = iter(args)
    for word in words:
        if word == "--":
            rest += words
        elif len(word) < 2 or not word.startswith("-") or word.startswith("--"):  # noqa: PLR2004
            if word.startswith("--"):
                raise Trouble(f"unrecognized option '{word}' in this sandbox")
            rest.append(word)
        else:
            _cluster(word[1:], words, flags, valued, found, values)
    return found, values, rest


def _cluster(letters: str, words: Iterable[str], flags: str, valued: str, found: set[str], values: dict[str, str]) -> None:
    for place, letter in enumerate(letters):
        if letter in valued:
            value = letters[place + 1 :] or next(iter(words), "")
            values[letter] = f"{values[letter]}\n{value}" if letter in values else value
            return
        if letter.isdigit() and "n" in valued:
            values["n"] = letters[place:]
            return
        if letter not in flags:
            raise Trouble(f"invalid option -- '{letter}' in this sandbox")
        found.add(letter)


def _inputs(shell: Shell, names: list[str], stdin: str) -> list[tuple[str, str]]:
    return [(name, stdin if name == "-" else shell.environment.read(name)) for name in names] or [("", stdin)]


def _lines(text: str) -> list[str]:
    return text.splitlines()


def _out(lines: Iterable[str], code: int = 0) -> Out:
    text = "".join(f"{line}\n" for line in lines)
    return Out(text, code=code)


def pattern(text: str, *, ignore_case: bool = False, fixed: bool = False) -> re.Pattern[str]:
    """Return a regular expression that cannot take long on a line of the sandbox.

    Raises
    ------
    Trouble
        If it is none, or repeats so much that it could.
    """
    if fixed:
        text = re.escape(text)
    elif len(text) > _MAX_PATTERN or _REPEATED_GROUP.search(text) or len(_REPEATS.findall(text)) > _MAX_REPEATS:
        raise Trouble("the pattern is too costly for this sandbox; use a simpler one or -F")
    for name, letters in (("digit", "0-9"), ("alpha", "A-Za-z"), ("space", r"\s"), ("alnum", "A-Za-z0-9")):
        text = text.replace(f"[:{name}:]", letters)
    try:
        return re.compile(text.replace(r"\|", "|"), re.IGNORECASE if ignore_case else 0)
    except (re.error, OverflowError, RecursionError) as error:
        raise Trouble(f"invalid pattern: {error}") from error


# -- looking ------------------------------------------------------------------------------------------------


def ls(shell: Shell, args: list[str], _stdin: str) -> Out:
    flags, _, names = options(args, "lahR1trdF")
    world, lines, code = shell.environment, [], 0
    for name in names or ["."]:
        path = world.path(name)
        if path in world.files:
            lines.append(_entry(shell, path, name, flags))
        elif world.is_folder(path):
            lines += [f"{name}:"] if len(names) > 1 else []
            below = path.rstrip("/")
            inside = [one[len(below) + 1 :] for one in world.below(path)] if "R" in flags else world.children(path)
            lines += [_entry(shell, f"{below}/{one}", one, flags) for one in inside if "a" in flags or not one.startswith(".")]
        else:
            return Out("".join(f"{line}\n" for line in lines), f"ls: cannot access '{name}': No such file or directory\n", 2)
    return _out(lines, code)


def _entry(shell: Shell, path: str, name: str, flags: set[str]) -> str:
    if "l" not in flags:
        return name.rstrip("/") if "F" not in flags else name
    file = shell.environment.files.get(path)
    if file is None:
        return f"drwxr-xr-x  -  {name.rstrip('/')}"
    rights = "".join(
        letter if int(digit, 8) & bit else "-" for digit in file.mode[-3:] for letter, bit in (("r", 4), ("w", 2), ("x", 1))
    )
    return f"-{rights}  {file.owner}  {len(file.text.encode())}  {name}"


def cat(shell: Shell, args: list[str], stdin: str) -> Out:
    flags, _, names = options(args, "nA")
    text = "".join(text for _, text in _inputs(shell, names, stdin))
    if "n" in flags:
        return _out(f"{number:6}\t{line}" for number, line in enumerate(_lines(text), 1))
    return Out(text)


def head(shell: Shell, args: list[str], stdin: str) -> Out:
    return _ends(shell, args, stdin, lambda lines, n: lines[: int(n)])


def tail(shell: Shell, args: list[str], stdin: str) -> Out:
    return _ends(
        shell, args, stdin, lambda lines, n: lines[int(n[1:]) - 1 :] if n.startswith("+") else lines[max(len(lines) - int(n), 0) :]
    )


def _ends(shell: Shell, args: list[str], stdin: str, cut: object) -> Out:
    _, values, names = options(args, "q", "nc")
    number = values.get("n", "10")
    if not number.removeprefix("+").isdigit() or len(number) > 7 or not callable(cut):  # noqa: PLR2004
        raise Trouble(f"invalid number of lines: '{number}'")
    found = _inputs(shell, names, stdin)
    lines: list[str] = []
    for name, text in found:
        lines += [f"==> {name} <=="] if len(found) > 1 else []
        lines += cut(_lines(text), number)
    return _out(lines)


def grep(shell: Shell, args: list[str], stdin: str) -> Out:
    flags, values, names = options(args, "invcrlEFhHowqRs", "eAB")
    patterns = [values["e"]] if "e" in values else [names.pop(0)] if names else []
    if not patterns:
        raise Trouble("usage: grep [-invcrlEFhow] PATTERN [FILE]...")
    match = pattern(patterns[0], ignore_case="i" in flags, fixed="F" in flags)
    if flags & {"r", "R"}:
        names = [one for name in names or ["."] for one in shell.environment.below(shell.environment.path(name))]
    lines, found = [], False
    texts = _inputs(shell, names, stdin)
    for name, text in texts:
        hits = [(n, line) for n, line in enumerate(_lines(text), 1) if (match.search(line[:_MAX_LINE]) is None) == ("v" in flags)]
        found = found or bool(hits)
        prefix = f"{name}:" if (len(texts) > 1 or "H" in flags or flags & {"r", "R"}) and "h" not in flags else ""
        lines += _grepped(hits, flags, name, prefix, match)
    return Out(code=int(not found)) if "q" in flags else _out(lines, int(not found))


def _grepped(hits: list[tuple[int, str]], flags: set[str], name: str, prefix: str, match: re.Pattern[str]) -> list[str]:
    if "l" in flags:
        return [name] if hits else []
    if "c" in flags:
        return [f"{prefix}{len(hits)}"]
    if "o" in flags:
        return [prefix + one.group() for _, line in hits for one in match.finditer(line[:_MAX_LINE]) if one.group()]
    return [f"{prefix}{number}:{line}" if "n" in flags else prefix + line for number, line in hits]


def find(shell: Shell, args: list[str], _stdin: str) -> Out:
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
    paths = world.below(base) if tests.get("-type", "f") == "f" else sorted({posixpath.dirname(p) for p in world.below(base)})
    found = [p for p in paths if fnmatchcase(posixpath.basename(p), wanted) and fnmatchcase(p, tests.get("-path", "*"))]
    if delete:
        for path in found:
            shell.environment = shell.environment.without(path)
        return Out()
    return _out(start.rstrip("/") + path[len(base.rstrip("/")) :] for path in found)


def wc(shell: Shell, args: list[str], stdin: str) -> Out:
    flags, _, names = options(args, "lwcm")
    lines = []
    for name, text in _inputs(shell, names, stdin):
        counts = {"l": text.count("\n"), "w": len(text.split()), "c": len(text.encode()), "m": len(text)}
        shown = [str(count) for flag, count in counts.items() if flag in (flags or set("lwc"))]
        lines.append(" ".join([*shown, name] if name else shown))
    return _out(lines)


def sort(shell: Shell, args: list[str], stdin: str) -> Out:
    flags, values, names = options(args, "nru", "kt")
    column, separator = values.get("k", "").split(",")[0].rstrip("nr"), values.get("t")

    def key(line: str) -> tuple[float, str]:
        parts = line.split(separator)
        part = parts[int(column) - 1] if column.isdigit() and 0 < int(column) <= len(parts) else line
        number = re.match(r"\s*-?\d{1,15}(?:\.\d{1,15})?", part) if "n" in flags or values.get("k", "").endswith("n") else None
        return (float(number.group()) if number else 0.0, part)

    lines = [line for _, text in _inputs(shell, names, stdin) for line in _lines(text)]
    lines = sorted(dict.fromkeys(lines) if "u" in flags else lines, key=key, reverse="r" in flags or values.get("k", "").endswith("r"))
    return _out(lines)


def uniq(shell: Shell, args: list[str], stdin: str) -> Out:
    flags, _, names = options(args, "cd")
    groups: list[list[str]] = []
    for _, text in _inputs(shell, names, stdin):
        for line in _lines(text):
            if groups and groups[-1][0] == line:
                groups[-1].append(line)
            else:
                groups.append([line])
    kept = [group for group in groups if "d" not in flags or len(group) > 1]
    return _out(f"{len(group):7} {group[0]}" if "c" in flags else group[0] for group in kept)


def cut(shell: Shell, args: list[str], stdin: str) -> Out:
    _, values, names = options(args, "s", "dfc")
    separator, wanted = values.get("d", "\t"), _ranges(values.get("f", values.get("c", "")))
    lines = []
    for _, text in _inputs(shell, names, stdin):
        for line in _lines(text):
            parts = line.split(separator) if "f" in values and separator else list(line)
            kept = [part for place, part in enumerate(parts, 1) if any(low <= place <= high for low, high in wanted)]
            lines.append((separator if "f" in values else "").join(kept))
    return _out(lines)


def _ranges(text: str) -> list[tuple[int, int]]:
    ranges = []
    for part in text.split(","):
        low, dash, high = part.partition("-")
        if not (low or high).isdigit() or len(part) > 15:  # noqa: PLR2004
            raise Trouble("fields are numbered from 1")
        ranges.append((int(low or 1), int(high) if high else 10**6 if dash else int(low)))
    return ranges


def tr(_shell: Shell, args: list[str], stdin: str) -> Out:
    flags, _, sets = options(args, "ds")
    classes = {"[:upper:]": "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "[:lower:]": "abcdefghijklmnopqrstuvwxyz", "A-Z": "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
               "a-z": "abcdefghijklmnopqrstuvwxyz", "\\n": "\n", "\\t": "\t"}
    known = [classes.get(one, one) for one in sets]
    if not known or (len(known) < 2 and not flags):  # noqa: PLR2004
        raise Trouble("missing operand")
    if "d" in flags:
        return Out(stdin.translate({ord(char): None for char in known[0]}))
    if "s" in flags:
        return Out(re.sub(f"([{re.escape(known[0])}])\\1+", r"\1", stdin))
    target = known[1].ljust(len(known[0]), known[1][-1:])
    return Out(stdin.translate({ord(old): new for old, new in zip(known[0], target, strict=False)}))


_SUBSTITUTE = re.compile(r"s(.)((?:(?!\1).)*)\1((?:(?!\1).)*)\1([gi]*)")


def sed(shell: Shell, args: list[str], stdin: str) -> Out:
    """Substitute, delete and print lines: ``s/a/b/g``, ``3d``, ``/word/d``, ``2,5p``."""
    flags, values, names = options(args, "inEr", "e")
    scripts = values["e"].split("\n") if "e" in values else [names.pop(0)] if names else []
    for name, text in _inputs(shell, names, stdin):
        lines = _lines(text)
        for script in scripts:
            lines = _edited(script.strip(), lines, quiet="n" in flags)
        edited = "".join(f"{line}\n" for line in lines)
        if "i" in flags and name:
            shell.environment = shell.environment.writing(name, edited)
        else:
            return Out(edited)
    return Out()


def _edited(script: str, lines: list[str], *, quiet: bool) -> list[str]:
    found = _SUBSTITUTE.fullmatch(script)
    if found:
        _, old, new, how = found.groups()
        match = pattern(old, ignore_case="i" in how)
        replacement = re.sub(r"(?<!\\)&", r"\\g<0>", new)
        try:
            return [match.sub(replacement, line, count=0 if "g" in how else 1)[:MAX_OUTPUT] for line in lines]
        except (re.error, IndexError) as error:
            raise Trouble(f"-e expression: {error}") from error
    address, command = script[:-1], script[-1:]
    if command not in {"d", "p"} or not address:
        raise Trouble(f"expression '{script[:40]}': not available in this sandbox")
    if address.startswith("/") and address.endswith("/") and len(address) > 2:  # noqa: PLR2004
        match = pattern(address[1:-1])
        hit = [match.search(line[:_MAX_LINE]) is not None for line in lines]
    else:
        (low, high), *_ = _ranges(address.replace(",", "-").replace("$", str(len(lines))))
        hit = [low <= number <= high for number in range(1, len(lines) + 1)]
    kept = [line for line, chosen in zip(lines, hit, strict=True) if chosen == (command == "p")]
    return kept if command == "d" or quiet else lines


def diff(shell: Shell, args: list[str], _stdin: str) -> Out:
    _, _, names = options(args, "uq")
    if len(names) != 2:  # noqa: PLR2004
        raise Trouble("missing operand")
    old, new = (_lines(shell.environment.read(name)) for name in names)
    lines = [f"< {line}" for line in old if line not in new] + [f"> {line}" for line in new if line not in old]
    return _out(lines, int(old != new))


# -- changing -----------------------------------------------------------------------------------------------


def cp(shell: Shell, args: list[str], _stdin: str) -> Out:
    return _carry(shell, args, move=False)


def mv(shell: Shell, args: list[str], _stdin: str) -> Out:
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
    flags, _, names = options(args, "rfRvi")
    for name in names:
        try:
            shell.environment = shell.environment.without(name, folders=bool(flags & {"r", "R"}))
        except Trouble as error:
            if "f" not in flags or "No such" not in str(error):
                raise Trouble(f"cannot remove '{name}': {str(error).removeprefix(name + ': ')}") from error
    return Out()


def mkdir(shell: Shell, args: list[str], _stdin: str) -> Out:
    _, _, names = options(args, "pv")
    for name in names:
        shell.environment = shell.environment.with_folder(name)
    return Out()


def touch(shell: Shell, args: list[str], _stdin: str) -> Out:
    for name in options(args, "acm")[2]:
        shell.environment = shell.environment.writing(name, "", append=True)
    return Out()


def tee(shell: Shell, args: list[str], stdin: str) -> Out:
    flags, _, names = options(args, "a")
    for name in names:
        shell.environment = shell.environment.writing(name, stdin, append="a" in flags)
    return Out(stdin)


def chmod(shell: Shell, args: list[str], _stdin: str) -> Out:
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
    for who in ("ugo" if not found[1] or "a" in found[1] else found[1]):
        place = "ugo".index(who)
        digits[place] = {"+": digits[place] | bits, "-": digits[place] & ~bits, "=": bits}[found[2]]
    return "".join(map(str, digits))


# -- the host and the network ---------------------------------------------------------------------------------


def cd(shell: Shell, args: list[str], _stdin: str) -> Out:
    path = shell.environment.path(args[0] if args else "~")
    if not shell.environment.is_folder(path):
        raise Trouble(f"{args[0] if args else path}: No such file or directory")
    shell.environment = replace(shell.environment, cwd=path)
    return Out()


def sudo(shell: Shell, args: list[str], stdin: str) -> Out:
    user = shell.environment.user
    if not shell.environment.sudo:
        raise Trouble(f"{user} is not in the sudoers file.")
    shell.environment = replace(shell.environment, user="root")
    try:
        return shell.call([word for word in args if word != "-n"], stdin)
    finally:
        shell.environment = replace(shell.environment, user=user)


def chown(shell: Shell, args: list[str], _stdin: str) -> Out:
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
    world = shell.environment
    words = [word for word in args if not word.startswith("-")]
    verb, name = (words[0] if words else ""), (words[1] if len(words) > 1 else "").removesuffix(".service")
    if verb in {"list-units", ""}:
        return _out(f"{one}.service  {state}" for one, state in sorted(world.services.items()))
    if name not in world.services:
        return Out(error=f"Unit {name}.service could not be found.\n", code=4)
    if verb in {"status", "is-active"}:
        return _out([f"{name}.service: {world.services[name]}"])
    states = {"start": "active", "restart": "active", "reload": "active", "stop": "inactive", "disable": "disabled",
              "enable": "active", "mask": "masked"}
    if verb not in states:
        raise Trouble(f"Unknown operation {verb} in this sandbox.")
    shell.environment = replace(world, services={**world.services, name: states[verb]})
    return Out()


def curl(shell: Shell, args: list[str], stdin: str) -> Out:
    """Request an address of the environment: ``-X``, ``-d``, ``-T``, ``-F``, ``-H``, ``-o``, ``-G``."""
    long = {"--request": "-X", "--data": "-d", "--data-binary": "-d", "--data-raw": "-d", "--upload-file": "-T", "--form": "-F",
            "--header": "-H", "--output": "-o", "--silent": "-s", "--fail": "-f", "--location": "-L", "--data-urlencode": "-d"}
    flags, values, urls = options([long.get(word, word) for word in args], "sSfLikGv", "XdTFHouAm")
    if len(urls) != 1:
        raise Trouble("no URL specified" if not urls else "one URL at a time in this sandbox")
    pieces = [_sent(shell, one, stdin) for key in "dF" for one in values.get(key, "").split("\n") if one]
    pieces += [shell.environment.read(values["T"])] if "T" in values else []
    pieces += [values[key] for key in ("H", "u") if key in values]
    method = values.get("X") or ("PUT" if "T" in values else "POST" if values.keys() & {"d", "F"} and "G" not in flags else "GET")
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


# -- small ones -------------------------------------------------------------------------------------------------


def echo(_shell: Shell, args: list[str], _stdin: str) -> Out:
    newline = args[:1] != ["-n"]
    words = args if newline else args[1:]
    if words[:1] == ["-e"]:
        words = [word.replace("\\n", "\n").replace("\\t", "\t") for word in words[1:]]
    return Out(" ".join(words) + ("\n" if newline else ""))


def printf(_shell: Shell, args: list[str], _stdin: str) -> Out:
    template, *values = args or [""]
    template = template.replace("\\n", "\n").replace("\\t", "\t")
    pieces = re.split(r"%[sd]", template)
    n = len(pieces) - 1
    rounds = max(1, -(-len(values) // n)) if n else 1
    filled = values + [""] * (rounds * n - len(values))
    text = ""
    for turn in range(rounds):
        text += pieces[0] + "".join(value + piece for value, piece in zip(filled[turn * n :], pieces[1:], strict=False))
    return Out(text.replace("%%", "%")[:MAX_OUTPUT])


def test(shell: Shell, args: list[str], _stdin: str) -> Out:
    if args[:1] == ["!"]:
        return Out(code=int(not test(shell, args[1:], "").code))
    world = shell.environment
    match args:
        case ["-f", name]:
            holds = world.path(name) in world.files
        case ["-d", name]:
            holds = world.is_folder(world.path(name)) and world.path(name) not in world.files
        case ["-e", name]:
            holds = world.is_folder(world.path(name)) or world.path(name) in world.files
        case ["-s", name]:
            holds = world.path(name) in world.files and bool(world.files[world.path(name)].text)
        case ["-n", text]:
            holds = bool(text)
        case ["-z", text]:
            holds = not text
        case [left, "=" | "==", right]:
            holds = left == right
        case [left, "!=", right]:
            holds = left != right
        case [text]:
            holds = bool(text)
        case _:
            raise Trouble("this test: not available in this sandbox")
    return Out(code=int(not holds))


def du(shell: Shell, args: list[str], _stdin: str) -> Out:
    _, _, names = options(args, "shac")
    world = shell.environment
    return _out(f"{sum(len(world.files[one].text.encode()) for one in world.below(world.path(name)))}\t{name}" for name in names or ["."])


def shuf(shell: Shell, args: list[str], stdin: str) -> Out:
    _, values, names = options(args, "", "n")
    lines = [line for _, text in _inputs(shell, names, stdin) for line in _lines(text)]
    shell.random().shuffle(lines)
    return _out(lines[: int(values["n"])] if values.get("n", "").isdigit() else lines)


def xargs(shell: Shell, args: list[str], stdin: str) -> Out:
    if args[:1] and args[0].startswith("-"):
        raise Trouble(f"invalid option -- '{args[0]}' in this sandbox")
    return shell.call([*(args or ["echo"]), *stdin.split()])


def which(shell: Shell, args: list[str], _stdin: str) -> Out:
    found = [name for name in args if name in shell.programs]
    return _out((f"/usr/bin/{name}" for name in found), int(len(found) < len(args)))


def _said(text: str) -> Program:
    return lambda _shell, _args, _stdin: Out(text)


PROGRAMS: Mapping[str, Program] = {
    **{
        program.__name__: program
        for program in (ls, cat, head, tail, grep, find, wc, sort, uniq, cut, tr, sed, diff, cp, mv, rm, mkdir, touch, tee, chmod, chown, sudo, cd,
                        systemctl, curl, echo, printf, test, du, shuf, xargs, which)
    },
    "pwd": lambda shell, _args, _stdin: Out(shell.environment.cwd + "\n"),
    "whoami": lambda shell, _args, _stdin: Out(shell.environment.user + "\n"),
    "hostname": _said("sandbox\n"),
    "date": lambda shell, _args, _stdin: Out(shell.environment.now + "\n"),
    "basename": lambda _shell, args, _stdin: Out(posixpath.basename(args[0] if args else "") + "\n"),
    "dirname": lambda _shell, args, _stdin: Out(posixpath.dirname(args[0] if args else "") + "\n"),
    "true": _said(""),
    "false": lambda _shell, _args, _stdin: Out(code=1),
    ":": _said(""),
}
"""Every program, by its name."""
