"""The ledger of a run: what the user asked for, what came in and from whom, what was made, and what was done.

A small immutable value of bounded size. Texts stand in it as they are while the run stays in this process; what a store
keeps (`Ledger.kept`) are keyed digests.
"""

from __future__ import annotations

from functools import lru_cache
from posixpath import normpath
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from safetydrift.authority.concerns import ACTION_NAMES
from safetydrift.authority.kept import Digester
from safetydrift.authority.request import Request
from safetydrift.authority.texts import SourceText, needles_of
from safetydrift.effects.operations import Operation
from safetydrift.states.bounded import Count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from safetydrift.authority.texts import Place

MAX_TEXTS = 48
"""Texts that are remembered; of more, those that vouch for least are forgotten first."""
MAX_CHARACTERS = 512 * 1024
"""Characters of all of them."""
MAX_FILES = 256
"""Files that are remembered; of more, those without a label are forgotten first."""
MAX_ABOVE = 24
"""Folders above a path that are looked up."""
MAX_LATENT = 4
"""Harmful operations of a script that are remembered until it is run."""

FileDigest = Annotated[bytes, Meta(max_length=8)]


class KnownFile(Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """What is known of a file.

    Parameters
    ----------
    made
        Whether the run made it: it was written before anything that came back spoke of it.
    level
        What is in it: 0 nothing known, 1 sensitive data, 2 credentials.
    untrusted
        Whether its content came from outside.
    latent
        Of a script that the run wrote, what it does that may harm.
    """

    made: bool = False
    level: Annotated[int, Meta(ge=0, le=2)] = 0
    untrusted: bool = False
    latent: Annotated[tuple[Operation, ...], Meta(max_length=MAX_LATENT)] = ()

    @property
    def labelled(self) -> bool:
        """Whether forgetting it would forget more than that it was made."""
        return self.level > 0 or self.untrusted or bool(self.latent)


class Ledger(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a run has shown so far of who asked for what.

    Parameters
    ----------
    request
        What the user asked for.
    texts
        What came back from tools, the newest last.
    files
        What is known of files, by the keyed digests of their paths.
    done
        How often each action has been done, in the order of `safetydrift.effects.operations.ACTIONS`.
    calls
        Calls whose results have come back.
    exposure
        0 while nothing from outside was read, 1 after that, 2 once something of it has spoken to the agent.
    held
        The most sensitive of what was read: 0 nothing known, 1 sensitive data, 2 credentials.
    taken
        The same of what the user did not point to.
    """

    request: Request
    texts: Annotated[tuple[SourceText, ...], Meta(max_length=MAX_TEXTS)] = ()
    files: Annotated[dict[FileDigest, KnownFile], Meta(max_length=MAX_FILES)] = {}
    done: Annotated[tuple[Count, ...], Meta(max_length=len(ACTION_NAMES))] = (0,) * len(ACTION_NAMES)
    calls: Count = 0
    exposure: Annotated[int, Meta(ge=0, le=2)] = 0
    held: Annotated[int, Meta(ge=0, le=2)] = 0
    taken: Annotated[int, Meta(ge=0, le=2)] = 0

    @classmethod
    def empty(cls, salt: bytes) -> Ledger:
        """Return the ledger of a run in which nothing has happened yet; ``salt`` keys its digests."""
        return cls(Request.empty(salt))

    @property
    def digest(self) -> Digester:
        """What makes the keyed digests of this run."""
        return _digester(self.request.salt)

    def hear(self, text: str) -> Ledger:
        """Return the ledger after the user has said something."""
        return replace(self, request=self.request.hear(text, follow_up=self.request.turns > 0))

    def inherited(self) -> Ledger:
        """Return the ledger with which a part of the run begins: the user's words, and nothing else."""
        return Ledger(self.request)

    def with_text(self, text: SourceText) -> Ledger:
        """Return the ledger after a text has come in."""
        texts = (*self.texts, text)
        while len(texts) > MAX_TEXTS or (
            len(texts) > 1 and sum([len(one.text) for one in texts]) > MAX_CHARACTERS
        ):
            worth = [_worth(one) for one in texts[:-1]]
            least = worth.index(min(worth))
            texts = texts[:least] + texts[least + 1 :]
        return replace(self, texts=texts)

    def with_files(self, files: Iterable[tuple[bytes, KnownFile]]) -> Ledger:
        """Return the ledger with what has become known of some files."""
        known = dict(self.files)
        for name, file in files:
            known.pop(name, None)
            if len(known) >= MAX_FILES:
                plain = next((each for each, one in known.items() if not one.labelled), None)
                known.pop(next(iter(known)) if plain is None else plain)
            known[name] = file
        return replace(self, files=known)

    def times(self, action: str) -> int:
        """Return how often an action has been done."""
        return self.done[ACTION_NAMES.index(action)]

    def places(self, value: str) -> list[Place]:
        """Return where a value stands in what came in, at most one place per text, the newest text first."""
        needles = needles_of(value)
        if needles is None or not self.texts:
            return []
        found = [text.find(needles, self.request.shares, self.digest) for text in reversed(self.texts)]
        return [place for place in found if place is not None]

    def file(self, path: str) -> KnownFile | None:
        """Return what is known of a file, or of the nearest folder above it that is known."""
        if self.files:
            for name in _upwards(path):
                found = self.files.get(self.digest(name))
                if found is not None:
                    return found
        return None

    def file_digest(self, path: str) -> bytes:
        """Return the digest by which a file is known."""
        return self.digest(_clean(path))

    def kept(self) -> Ledger:
        """Return the ledger as a store keeps it, without any text."""
        texts = tuple([text.kept(self.request.shares, self.digest) for text in self.texts])
        files = {name: kept_file(file) for name, file in self.files.items()}
        return replace(self, texts=texts, files=files)


def _worth(text: SourceText) -> int:
    """Return by what it is decided which text is forgotten: one that speaks to the agent last of all."""
    speaks = bool(text.speaks) or (bool(text.lines) and any(line.speaks for line in text.lines))
    return 16 * speaks + 4 * text.pointed + text.integrity


def kept_file(file: KnownFile) -> KnownFile:
    """Return what a store keeps of a file: of a script, what kind of harm it does, and not to what."""
    if not file.latent:
        return file
    return replace(file, latent=tuple([replace(one, target="", note="", carries=()) for one in file.latent]))


def _clean(path: str) -> str:
    path = path.strip().rstrip("/") or "/"
    return normpath(path)


def _upwards(path: str) -> Iterator[str]:
    """Yield a path and the folders above it."""
    path = _clean(path)
    for _ in range(MAX_ABOVE):
        yield path
        path, slash, _ = path.rpartition("/")
        if not slash or not path:
            return


@lru_cache(64)
def _digester(salt: bytes) -> Digester:
    return Digester(salt)
