"""What a search finds, as far as its words tell: the folders it looks into and the names it looks for."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_FINDERS = frozenset(("find", "gfind", "bfs", "walk"))
_NAMING = frozenset(("-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex"))
_FILTERS = frozenset(
    (
        "-mtime",
        "-mmin",
        "-ctime",
        "-atime",
        "-newer",
        "-size",
        "-user",
        "-group",
        "-perm",
        "-empty",
        "-links",
        "-inum",
    )
)
_LISTERS = frozenset(
    ("ls", "echo", "printf", "cat", "readlink", "realpath", "fd", "fdfind", "locate", "git", "grep", "rg")
)
_MAX_FOUND = 16
FOUND = "{}"
"""What stands for a name that only the search tells."""


def found_by(words: Sequence[str]) -> list[str]:
    """Return the paths that a search prints: folders that are found whole, else names with ``*`` and ``{}`` in them.

    >>> found_by(["find", "/srv", "-name", "*.log", "-print0"]), found_by(["find", ".", "-mtime", "+9"])
    (['/srv/*.log'], ['./{}'])
    >>> found_by(["ls", "-1", "logs"])
    ['logs']
    """
    if not words:
        return []
    name = words[0].rpartition("/")[2]
    if name in _FINDERS:
        return _find(words)
    if name in {"git", "grep", "rg", "fd", "fdfind", "locate"}:
        return [FOUND]
    return [word for word in words[1:] if word[:1] != "-"][:_MAX_FOUND] if name in _LISTERS else []


def _find(words: Sequence[str]) -> list[str]:
    first = next((at for at, word in enumerate(words) if at and word[:1] in {"-", "(", "!"}), len(words))
    while first < len(words) and words[first] in {"-L", "-H", "-P"}:
        first = next(
            (at for at in range(first + 1, len(words)) if words[at][:1] in {"-", "(", "!"}), len(words)
        )
    roots = [word for word in words[1:first] if word[:1] != "-"] or ["."]
    names = [
        words[at + 1]
        for at, word in enumerate(words[:-1])
        if word in _NAMING and words[at - 1] not in {"!", "-not"}
    ]
    if not names and not _FILTERS.isdisjoint(words):
        names = [FOUND]
    if not names:
        return roots[:_MAX_FOUND]
    found = [
        name if name.startswith(("/", "~")) else f"{root.rstrip('/')}/{name.removeprefix('./')}"
        for root in roots
        for name in names
    ]
    return found[:_MAX_FOUND]
