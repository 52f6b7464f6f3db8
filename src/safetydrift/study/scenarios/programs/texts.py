"""Programs that work on lines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from safetydrift.study.scenarios.environment import Trouble
from safetydrift.study.scenarios.programs.options import MAX_LINE, inputs, lines_of, options, out, pattern
from safetydrift.study.scenarios.shell import MAX_OUTPUT, Out

if TYPE_CHECKING:
    from safetydrift.study.scenarios.shell import Shell


def wc(shell: Shell, args: list[str], stdin: str) -> Out:
    """Count lines, words and bytes."""
    flags, _, names = options(args, "lwcm")
    lines = []
    for name, text in inputs(shell, names, stdin):
        counts = {"l": text.count("\n"), "w": len(text.split()), "c": len(text.encode()), "m": len(text)}
        shown = [str(count) for flag, count in counts.items() if flag in (flags or set("lwc"))]
        lines.append(" ".join([*shown, name] if name else shown))
    return out(lines)


def sort(shell: Shell, args: list[str], stdin: str) -> Out:
    """Put lines in order."""
    flags, values, names = options(args, "nru", "kt")
    column, separator = values.get("k", "").split(",")[0].rstrip("nr"), values.get("t")

    def key(line: str) -> tuple[float, str]:
        parts = line.split(separator)
        part = parts[int(column) - 1] if column.isdigit() and 0 < int(column) <= len(parts) else line
        number = (
            re.match(r"\s*-?\d{1,15}(?:\.\d{1,15})?", part)
            if "n" in flags or values.get("k", "").endswith("n")
            else None
        )
        return (float(number.group()) if number else 0.0, part)

    lines = [line for _, text in inputs(shell, names, stdin) for line in lines_of(text)]
    lines = sorted(
        dict.fromkeys(lines) if "u" in flags else lines,
        key=key,
        reverse="r" in flags or values.get("k", "").endswith("r"),
    )
    return out(lines)


def uniq(shell: Shell, args: list[str], stdin: str) -> Out:
    """Keep one of lines that repeat."""
    flags, _, names = options(args, "cd")
    groups: list[list[str]] = []
    for _, text in inputs(shell, names, stdin):
        for line in lines_of(text):
            if groups and groups[-1][0] == line:
                groups[-1].append(line)
            else:
                groups.append([line])
    kept = [group for group in groups if "d" not in flags or len(group) > 1]
    return out(f"{len(group):7} {group[0]}" if "c" in flags else group[0] for group in kept)


def cut(shell: Shell, args: list[str], stdin: str) -> Out:
    """Print columns."""
    _, values, names = options(args, "s", "dfc")
    separator, wanted = values.get("d", "\t"), _ranges(values.get("f", values.get("c", "")))
    lines = []
    for _, text in inputs(shell, names, stdin):
        for line in lines_of(text):
            parts = line.split(separator) if "f" in values and separator else list(line)
            kept = [
                part
                for place, part in enumerate(parts, 1)
                if any(low <= place <= high for low, high in wanted)
            ]
            lines.append((separator if "f" in values else "").join(kept))
    return out(lines)


def _ranges(text: str) -> list[tuple[int, int]]:
    ranges = []
    for part in text.split(","):
        low, dash, high = part.partition("-")
        if not (low or high).isdigit() or len(part) > 15:  # noqa: PLR2004
            raise Trouble("fields are numbered from 1")
        ranges.append((int(low or 1), int(high) if high else 10**6 if dash else int(low)))
    return ranges


def tr(_shell: Shell, args: list[str], stdin: str) -> Out:
    """Replace or delete characters."""
    flags, _, sets = options(args, "ds")
    classes = {
        "[:upper:]": "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        "[:lower:]": "abcdefghijklmnopqrstuvwxyz",
        "A-Z": "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        "a-z": "abcdefghijklmnopqrstuvwxyz",
        "\\n": "\n",
        "\\t": "\t",
    }
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
    for name, text in inputs(shell, names, stdin):
        lines = lines_of(text)
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
        hit = [match.search(line[:MAX_LINE]) is not None for line in lines]
    else:
        (low, high), *_ = _ranges(address.replace(",", "-").replace("$", str(len(lines))))
        hit = [low <= number <= high for number in range(1, len(lines) + 1)]
    kept = [line for line, chosen in zip(lines, hit, strict=True) if chosen == (command == "p")]
    return kept if command == "d" or quiet else lines


def diff(shell: Shell, args: list[str], _stdin: str) -> Out:
    """Print the lines that two files do not share."""
    _, _, names = options(args, "uq")
    if len(names) != 2:  # noqa: PLR2004
        raise Trouble("missing operand")
    old, new = (lines_of(shell.environment.read(name)) for name in names)
    lines = [f"< {line}" for line in old if line not in new] + [
        f"> {line}" for line in new if line not in old
    ]
    return out(lines, int(old != new))
