"""Archives: which of a command's words is the archive, which are packed into it, and where it is unpacked."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from safetydrift.effects.reading import Reading

_LETTERS = re.compile(r"-?[A-Za-z]{1,12}[0-9]?")
_PACKING = frozenset("cruA")
_LONG = {"--create": "c", "--append": "r", "--update": "u", "--extract": "x", "--get": "x", "--list": "t"}
_VALUED = frozenset(
    (
        "-X",
        "-T",
        "-I",
        "-b",
        "-H",
        "-g",
        "-K",
        "-N",
        "-V",
        "--exclude-from",
        "--files-from",
        "-P",
        "-x",
        "-mx",
    )
)
_FOLDERS = frozenset(("-C", "--directory", "-d", "--one-top-level"))
_VERBS = {"a": "c", "u": "c", "x": "x", "e": "x", "d": "c", "l": "t", "t": "t"}
_TAR = frozenset(("tar", "gtar", "bsdtar", "star"))
_BY_VERB = frozenset(("7z", "7za", "7zr", "7zz", "rar", "unrar"))


class Packing:
    """What a command does to an archive.

    Attributes
    ----------
    archive
        Its path, ``-`` where it is handed on or taken in, empty where it cannot be told.
    makes
        Whether it is made or added to.
    members
        What is packed, or the names that are taken out.
    folder
        Where members lie, or are put.
    """

    __slots__ = ("archive", "folder", "makes", "members")

    def __init__(self, words: Sequence[str]) -> None:
        self.archive = self.folder = ""
        self.members: list[str] = []
        name = words[0].rpartition("/")[2]
        mode, rest = _tar(words) if name in _TAR else _other(name, words)
        self.makes = mode in _PACKING
        self._take(rest)
        if not self.archive and self.members and name not in _TAR:
            self.archive = self.members.pop(0)

    def _take(self, words: Sequence[str]) -> None:
        at = 0
        while at < len(words):
            word = words[at]
            following = words[at + 1] if at + 1 < len(words) else ""
            option, equals, value = word.partition("=")
            if word in {"-f", "--file"} or (word[:1] == "-" and word[1:2] != "-" and word.endswith("f")):
                self.archive, at = following, at + 1
            elif option == "--file" and equals:
                self.archive = value
            elif option in _FOLDERS:
                self.folder, at = (value, at) if equals else (following, at + 1)
            elif word in _VALUED:
                at += 1
            elif word[:1] != "-" or word == "-":
                self.members.append(word)
            at += 1

    def add_to(self, reading: Reading) -> None:
        """Add what is read and what is written."""
        if self.makes:
            for member in self.members:
                rooted = member[:1] in {"/", "~", "$"} or not self.folder
                reading.reads(member if rooted else f"{self.folder}/{member}")
            if self.archive not in {"", "-"}:
                reading.writes(self.archive)
            return
        if self.archive not in {"", "-"}:
            reading.reads(self.archive)
        reading.writes(self.folder or ".")


def pack(reading: Reading, words: Sequence[str]) -> None:
    """Add what a command does to the files of an archive."""
    Packing(words).add_to(reading)


def _tar(words: Sequence[str]) -> tuple[str, list[str]]:
    """Return what ``tar`` is to do, and its words with the letters that stand in one put as an option."""
    rest = list(words[1:])
    mode = next((_LONG[word] for word in rest if word in _LONG), "")
    if rest and not mode and _LETTERS.fullmatch(rest[0]):
        letters = rest[0].lstrip("-")
        mode = next((letter for letter in letters if letter in "cruAxt"), "")
        rest[0] = "-f" if "f" in letters else "-z"
    if not mode:
        mode = next(
            (letter for word in rest if word[:1] == "-" for letter in word[1:3] if letter in "cxt"), "x"
        )
    return mode, rest


def _other(name: str, words: Sequence[str]) -> tuple[str, list[str]]:
    if name in _BY_VERB and len(words) > 1:
        return _VERBS.get(words[1], "x"), list(words[2:])
    packs = not name.startswith("un")
    return ("c" if packs else "x"), [word for word in words[1:] if word != "-f"]
