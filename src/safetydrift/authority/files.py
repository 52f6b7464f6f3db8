"""Files of a run: what it made itself, what was written into them, and whose content they hold.

What a run has made, it may unmake; what is copied, archived or encoded keeps its label; what was written or downloaded
and is run later does what its text says.
"""

from __future__ import annotations

from posixpath import normpath
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from safetydrift.authority.digests import Digest, digest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from safetydrift.effects.operations import Operation

MAX_FILES = 512
"""Files that are remembered; of more, those without a label are forgotten first."""
MAX_CODE = 16 * 1024
"""Characters of a script that are kept, until it is run or a store keeps the run."""
MAX_ABOVE = 24
"""Folders above a path that are looked up."""


class KnownFile(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What is known of a file.

    Parameters
    ----------
    made
        Whether the run made it: it was written before it was ever read or listed.
    level
        The level of the data in it, as a rank; 0 while nothing is known.
    untrusted
        Whether its content came from outside, from somebody that nobody vouched for.
    language
        What it is written in, if it is code that may be run.
    code
        Its text, where the run wrote it; never kept by a store.
    """

    made: bool = False
    level: int = 0
    untrusted: bool = False
    language: str = ""
    code: str = ""

    @property
    def labelled(self) -> bool:
        """Whether forgetting it would forget more than that it was made."""
        return self.level > 0 or self.untrusted or bool(self.code)


class Files(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The files of a run by the keyed digests of their paths.

    Parameters
    ----------
    known
        What is known of each, the one that was touched last at the end.
    """

    known: Annotated[dict[Digest, KnownFile], Meta(max_length=MAX_FILES)] = {}

    def find(self, path: str, key: bytes) -> KnownFile | None:
        """Return what is known of a file, or of the nearest folder above it that is known."""
        for name in _upwards(path):
            found = self.known.get(digest(name, key))
            if found is not None:
                return found
        return None

    def has(self, path: str, key: bytes) -> bool:
        """Return whether a file itself, rather than a folder above it, is known."""
        return digest(_clean(path), key) in self.known

    def with_file(self, path: str, file: KnownFile, key: bytes) -> Files:
        """Return the files with one more, or with a new label on one."""
        known = dict(self.known)
        known.pop(name := digest(_clean(path), key), None)
        if len(known) >= MAX_FILES:
            plain = next((each for each, one in known.items() if not one.labelled), None)
            known.pop(next(iter(known)) if plain is None else plain)
        known[name] = file
        return Files(known)

    def kept(self) -> Files:
        """Return the files as a store keeps them, without any text."""
        if not any(file.code for file in self.known.values()):
            return self
        return Files({name: replace(file, code="") for name, file in self.known.items()})


def _clean(path: str) -> str:
    path = path.strip().rstrip("/") or "/"
    return normpath(path) if path.startswith(("/", "~", ".")) or "/" in path else path


def _upwards(path: str) -> Iterator[str]:
    """Yield a path and the folders above it."""
    path = _clean(path)
    for _ in range(MAX_ABOVE):
        yield path
        path, slash, _ = path.rpartition("/")
        if not slash or not path:
            return
