"""What is kept of a request: clauses and delegations, their words and values as keyed digests."""

from __future__ import annotations

from hashlib import blake2b

import msgspec

DIGEST = 8
"""Bytes of a digest."""
MAX_MEMO = 8192
"""Digests that are remembered by one `Digester`."""
PROVISIONAL, EXCEPTED, QUESTION, DIRECTED, PINNED, NUMBERED = 1, 2, 4, 8, 16, 32
"""Flags of a clause: what it forbids is forbidden for now alone; it is an exception from the one before; it is
about the act alone; it forbids towards those that it names; values or numbers say which object is meant."""


class Clause(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One clause of what was heard.

    Parameters
    ----------
    asked, refused, goals, scope, kinds, flags
        Actions, goals, scopes and kinds of objects as bit masks, and what else is true of it.
    turn
        The number of the message, from 0.
    words, parties, names, places_named, parts, keys, places
        Digests, one after the other: see `safetydrift.authority.objects.Objects`.
    carried_words, carried_keys, carried_parties
        Digests of what, and of whom, the clause refers back to.
    """

    asked: int = 0
    refused: int = 0
    goals: int = 0
    scope: int = 0
    kinds: int = 0
    flags: int = 0
    turn: int = 0
    words: bytes = b""
    parties: bytes = b""
    names: bytes = b""
    places_named: bytes = b""
    parts: bytes = b""
    keys: bytes = b""
    places: bytes = b""
    carried_words: bytes = b""
    carried_keys: bytes = b""
    carried_parties: bytes = b""


class Delegation(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A source that the user pointed to, and for what.

    Parameters
    ----------
    clause
        The number of the clause, from 0.
    actions
        The actions for which the source may supply values, by name; those that `whole` adds are not among them.
    whole
        Whether the user asked for everything that the source asks for.
    many
        Whether it may supply more than one act or value.
    kinds
        Kinds of the source (mail, page, contacts, ...), by name.
    keys, words
        Digests of the values and of the words that single it out.
    """

    clause: int
    actions: tuple[str, ...]
    whole: bool
    many: bool
    kinds: tuple[str, ...]
    keys: bytes
    words: bytes


class Kept(msgspec.Struct, frozen=True):
    """The parts of a request.

    Parameters
    ----------
    salt
        The key of the digests, at most 64 bytes; one per session.
    clauses
        What was asked for, forbidden and spoken about, in order.
    delegations
        Sources that the user pointed to, in order.
    words, keys
        Digests of all words and of the keys of all values, one after the other.
    turns
        Messages heard.
    refused_beyond
        Actions that were forbidden when no more clauses were kept, as a bit mask: they are forbidden on everything.
    """

    salt: bytes
    clauses: tuple[Clause, ...] = ()
    delegations: tuple[Delegation, ...] = ()
    words: bytes = b""
    keys: bytes = b""
    turns: int = 0
    refused_beyond: int = 0


class Digester:
    """Keyed digests of words and keys.

    Parameters
    ----------
    salt
        The key.
    """

    __slots__ = ("_keyed", "_memo")

    def __init__(self, salt: bytes) -> None:
        self._keyed = blake2b(key=salt[:64], digest_size=DIGEST)
        self._memo: dict[str, bytes] = {}

    def __call__(self, text: str) -> bytes:
        """Return the digest of a text."""
        digest = self._memo.get(text)
        if digest is None:
            keyed = self._keyed.copy()
            keyed.update(text.encode("utf-8", "surrogatepass"))
            digest = keyed.digest()
            if len(self._memo) < MAX_MEMO:
                self._memo[text] = digest
        return digest


def split(blob: bytes) -> list[bytes]:
    """Return the digests of a row of them."""
    return [blob[at : at + DIGEST] for at in range(0, len(blob), DIGEST)]
