"""The operands and options of a program: where they start, and which files they name."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from safetydrift.effects.languages.shell.archives import pack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from safetydrift.effects.catalogue.entries import ProgramEntry
    from safetydrift.effects.reading import Reading

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_WILD = re.compile(r"[*?\[]")
_HARMLESS = frozenset(("shm", "pts", "fd", "mqueue", "log", "ptmx"))
"""What under ``/dev`` is no device whose content is lost when it is written."""
DEVICES = ("/dev/tcp/", "/dev/udp/")
"""How the names of connections begin that are used like files."""
_PRICE = 64
_BARE_OPTION = 3
_CLUSTER = 7
_RECURSIVE = re.compile(r"-[a-zA-Z]*[rR][a-zA-Z]*|--recursive")
_CUTTING = frozenset(("truncate", "gtruncate"))
_ALWAYS_WHOLE = frozenset(("rimraf", "deltree", "srm", "wipe", "bleachbit", "tmpreaper", "tmpwatch"))
_LETTERS = re.compile(r"[A-Za-z0-9]")


def first_operand(entry: ProgramEntry, words: list[str]) -> int:
    """Return where the operands start, after options, their values and, of a wrapper, assignments."""
    at = 1
    while at < len(words):
        word = words[at]
        if word == "--":
            return at + 1
        if (word.startswith("-") and word != "-") or is_slashed(entry, word):
            at += 2 if word in entry.valued else 1
        elif entry.wraps and _ASSIGNMENT.match(word):
            at += 1
        else:
            break
    return at


def is_slashed(entry: ProgramEntry, word: str) -> bool:
    """Return whether a word is an option of Windows."""
    return entry.slashes and word[:1] == "/" and "/" not in word[1:]


def add_operands(reading: Reading, entry: ProgramEntry, words: list[str], paths: str) -> None:
    """Add what a program does to the files that its words name; `paths` says what they are."""
    if not paths:
        return
    if paths == "packed":
        pack(reading, words)
        return
    if paths == "deleted":
        paths = _how_deleted(words)
    skip = entry.skip + entry.operand_code
    if skip and entry.skip_unless.any_of(words[1:]):
        skip = 0
    operands: list[str] = []
    value = only_operands = False
    for word in words[1:]:
        if value or (word.startswith("-") and not only_operands and word != "-"):
            if value or len(word) > _BARE_OPTION:
                reading.names(word)
            only_operands = word == "--" and not value
            value = not value and word in entry.valued
        elif skip:
            skip -= 1
        else:
            operands.append(word)
    _USES[paths](reading, operands)
    for word in operands:
        named_by_glob(reading, word)


def _read(reading: Reading, operands: list[str]) -> None:
    for word in operands:
        if word not in reading.catalogue.shell.discard and word != "-":
            reading.reads(word)


def _named(reading: Reading, operands: list[str]) -> None:
    for word in operands:
        reading.names(word)


def _located(reading: Reading, operands: list[str]) -> None:
    _named(reading, [word for word in operands if "/" in word])


def _deleted(reading: Reading, operands: list[str]) -> None:
    for word in operands:
        reading.deletes(word)


def _removed(reading: Reading, operands: list[str]) -> None:
    for word in operands:
        reading.deletes(word, whole=True)


def _emptied(reading: Reading, operands: list[str]) -> None:
    for word in operands:
        reading.empties(word)


def _how_deleted(words: list[str]) -> str:
    """Return what becomes of the operands of a program that deletes: folders go with all they hold, files are cut."""
    name = words[0].rpartition("/")[2]
    if name in _CUTTING:
        return "emptied"
    whole = any(_RECURSIVE.fullmatch(word) for word in words[1:])
    return "removed" if whole or name in _ALWAYS_WHOLE else "deleted"


def _written(reading: Reading, operands: list[str]) -> None:
    for word in operands:
        add_written(reading, word)


def _touched(reading: Reading, operands: list[str]) -> None:
    for word in operands:
        reading.touches(word)


def _edited(reading: Reading, operands: list[str]) -> None:
    _read(reading, operands)
    _written(reading, operands)


def _copied(reading: Reading, operands: list[str]) -> None:
    for word in operands[:-1]:
        reading.reads(word)
    for word in operands[-1:]:
        add_written(reading, word, "move")


def _moved(reading: Reading, operands: list[str]) -> None:
    for word in operands[:-1]:
        reading.moves(word)
    for word in operands[-1:]:
        add_written(reading, word, "move")


def add_written(reading: Reading, path: str, action: str = "edit") -> None:
    """Add that a file is written; what is written to a device is gone."""
    if path in reading.catalogue.shell.discard:
        return
    if path.startswith(DEVICES):
        reading.connects(endpoint(path), f"writes to {path[:60]}, a network connection")
        return
    reading.writes(path, action)
    if path.startswith("/dev/") and path.split("/")[2] not in _HARMLESS:
        reading.deletes(path, whole=True)


def endpoint(device: str) -> str:
    """Return the host and the port that a device of the network stands for."""
    return ":".join(device.split("/")[3:5])


def outputs_of(entry: ProgramEntry, words: list[str]) -> list[str]:
    """Return the files that options tell a program to write."""
    found: list[str] = []
    if not entry.outputs:
        return found
    for at, word in enumerate(words[1:], 1):
        if word in entry.outputs or _last_of_cluster(entry, word) in entry.outputs:
            _, equals, path = word.partition("=")
            if not equals:
                path = words[at + 1] if at + 1 < len(words) else ""
            if path and path != "-":
                found.append(path)
    return found


def _last_of_cluster(entry: ProgramEntry, word: str) -> str:
    """Return the last of several options in one word, ``-o`` of ``-sLo``; of programs that reach hosts alone."""
    cluster = entry.hosts and word[:1] == "-" and 2 < len(word) <= _CLUSTER and word[1:].isalpha()  # noqa: PLR2004
    return f"-{word[-1]}" if cluster else ""


def named_by_glob(reading: Reading, word: str) -> None:
    """Add what is told by a well-known file that a pattern may stand for: ``/etc/sh?dow``."""
    if not _WILD.search(word) or len(word) > 128:  # noqa: PLR2004
        return
    rooted = word.startswith("/")
    if not rooted and len(_LETTERS.findall(word)) < 2:  # noqa: PLR2004
        return
    reading.pay(_PRICE)
    parts = word.lower().strip("/").split("/")
    for path in reading.catalogue.shell.known:
        known = path.strip("/").split("/")
        if len(known) < len(parts) or (rooted and (len(known) != len(parts) or not path.startswith("/"))):
            continue
        if all(map(fnmatchcase, known[-len(parts) :], parts)):
            reading.names(path)


_USES: dict[str, Callable[[Reading, list[str]], None]] = {
    "files": _read,
    "words": _named,
    "paths": _located,
    "deleted": _deleted,
    "removed": _removed,
    "emptied": _emptied,
    "written": _written,
    "edited": _edited,
    "touched": _touched,
    "copied": _copied,
    "moved": _moved,
}
