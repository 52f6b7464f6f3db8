"""Places on a host: what it is to read, to change or to delete a file there, if nobody asked for it."""

from __future__ import annotations

import re

from safetydrift.effects.catalogue.entries import anywhere, canonical_path
from safetydrift.effects.catalogue.globs import Globs
from safetydrift.effects.catalogue.harms import Harm, read_harm
from safetydrift.effects.catalogue.path_index import PathIndex
from safetydrift.effects.operations import CERTAIN, LIKELY, NONE, POSSIBLE
from safetydrift.errors import CatalogueError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from safetydrift.effects.catalogue.plain import Entry

_HOME = re.compile(r"(?:[a-z]:)?/(?:home|users)/[^/]+|~\w*", re.IGNORECASE)
_EVERYTHING = re.compile(r"(?:^|/)\.?\*+(?:\.\*+)?/*$")
MAX_PLACE = 1024
"""Longer paths are not looked up."""
_MAX_REMEMBERED = 2048
_NO_HARM = Harm(role="path")


class PlaceEntry:
    """What some files are for.

    Attributes
    ----------
    match
        Globs by which the entry is found: those for places, as in `PathEntry`, and those for names.
    what
        What the files are, in words.
    read, change
        The harm that reading and that changing or deleting them is; None where the entry says nothing about it and
        the entries after it are asked.
    """

    __slots__ = ("_named", "_placed", "change", "match", "read", "what")

    def __init__(self, entry: Entry) -> None:
        places, names = entry.texts("match"), entry.texts("named")
        if not places and not names:
            raise CatalogueError(f"{entry.where}: lacks 'match' or 'named'")
        entry.where = f"{entry.where} ({(*places, *names)[0]})"
        self._placed = Globs([anywhere(pattern) for pattern in places])
        self._named = Globs(names, fold=True)
        self.match = Globs(
            [*[anywhere(pattern) for pattern in places], *[f"*{name.lower()}*" for name in names]]
        )
        self.what = entry.text("what", required=True)
        self.read = _about(entry, "read", "read {target}, " + self.what)
        self.change = _about(entry, "change", "change {target}, " + self.what)
        entry.done()

    def holds(self, canonical: str, name: str) -> bool:
        """Return whether it speaks of a canonical path whose last part is this name."""
        return canonical in self._placed or name in self._named


class Deletions:
    """How certain it is that deleting a path loses what somebody wanted to keep.

    Attributes
    ----------
    scratch
        Globs for paths whose content is made again, or was not meant to last.
    broad
        Globs for paths below which everything of a host or a user stands.
    system
        Globs for paths of the host that it cannot run without.
    kept
        Globs for paths that hold what nothing else holds: backups, databases, histories of version control.
    made
        Globs for names of files that programs mostly make.
    """

    __slots__ = ("broad", "kept", "made", "scratch", "system")

    def __init__(self, entry: Entry) -> None:
        self.scratch = Globs([anywhere(pattern) for pattern in entry.texts("scratch")])
        self.broad = Globs(entry.texts("broad"), fold=True)
        self.system = Globs(entry.texts("system"), fold=True)
        self.kept = Globs([anywhere(pattern) for pattern in entry.texts("kept")])
        self.made = Globs([anywhere(pattern) for pattern in entry.texts("made")])
        entry.done()

    def certainty(self, path: str, *, whole: bool) -> int:
        """Return how certain the harm is.

        Parameters
        ----------
        whole
            Whether folders go with everything below them.
        """
        bare = path.replace("\\", "/")
        everything = _EVERYTHING.search(bare)
        if everything:
            bare = bare[: everything.start()] or ("/" if everything[0][0] == "/" else ".")
            whole = True
        bare = bare.rstrip("/") or bare[:1]
        canonical = canonical_path(path)
        if bare in self.broad or _HOME.fullmatch(bare):
            return CERTAIN if whole else LIKELY
        if canonical in self.scratch and "/../" not in canonical:
            return NONE
        if bare in self.system or canonical in self.kept:
            return CERTAIN if whole else LIKELY
        return POSSIBLE if canonical in self.made else LIKELY


class HostsEntry:
    """What hosts are known for.

    Attributes
    ----------
    registries
        Globs for hosts that packages are published on.
    drops
        Globs for hosts to which anybody can hand something that anybody else then reads.
    """

    __slots__ = ("drops", "registries")

    def __init__(self, entry: Entry) -> None:
        self.registries = Globs(entry.texts("registries"))
        self.drops = Globs(entry.texts("drops"))
        entry.done()


class Places:
    """The entries in the order they are tried, and what deleting means anywhere."""

    __slots__ = ("_index", "_remembered", "deletions", "entries")

    def __init__(self, entries: Iterable[PlaceEntry], deletions: Deletions) -> None:
        self.entries = tuple(entries)
        self.deletions = deletions
        self._index = PathIndex(self.entries)
        self._remembered: dict[str, tuple[Harm, Harm]] = {}

    def read(self, path: str) -> Harm:
        """Return the harm of reading a file; one without harm if its place tells of none."""
        return self._told(path)[0]

    def change(self, path: str) -> Harm:
        """Return the harm of changing or deleting a file; one without harm if its place tells of none."""
        return self._told(path)[1]

    def _told(self, path: str) -> tuple[Harm, Harm]:
        told = self._remembered.get(path)
        if told is None:
            told = self._look(path) if len(path) <= MAX_PLACE else (_NO_HARM, _NO_HARM)
            if len(self._remembered) >= _MAX_REMEMBERED:
                self._remembered.clear()
            self._remembered[path] = told
        return told

    def _look(self, path: str) -> tuple[Harm, Harm]:
        canonical = canonical_path(path)
        name = canonical.rstrip("/").rpartition("/")[2]
        read = change = None
        for entry in self._index.candidates(canonical):
            if entry.holds(canonical, name):
                read = entry.read if read is None else read
                change = entry.change if change is None else change
                if read is not None and change is not None:
                    break
        return read or _NO_HARM, change or _NO_HARM


def _about(entry: Entry, key: str, note: str) -> Harm | None:
    """Return what an entry says of reading or changing."""
    if entry.get(key) is None:
        return None
    part = entry.part(key)
    harm = read_harm(part, action=False)
    part.done()
    return Harm("", harm.harm, harm.certainty, harm.note or note, "path")
