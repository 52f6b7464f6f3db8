"""What is kept of a request: clauses and delegations, their words and values as keyed digests."""

from __future__ import annotations

from hashlib import blake2b

import msgspec

DIGEST = 8
"""Bytes of a digest."""
MAX_MEMO = 8192
"""Digests that are remembered."""

PROVISIONAL, EXCEPTED, QUESTION, DIRECTED, PINNED, NUMBERED = 1, 2, 4, 8, 16, 32
"""Flags of a clause: forbidden for now alone, an exception from the one before, about the act alone, forbidden towards
those that it names, with values that say which object is meant, with a number that does."""


class Clause(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One clause of what was heard.

    Parameters
    ----------
    asked, refused, goals, scope, kinds
        Actions, goals, scopes and kinds of objects, as bit masks.
    flags
        `PROVISIONAL`, `EXCEPTED`, `QUESTION`, `DIRECTED`, `PINNED` and `NUMBERED`.
    turn
        The number of the message, from 0.
    words, parties, names, places_named, parts, keys, places
        Digests, one after the other: see `safetydrift.authority.clauses.Clause`.
    carried_words, carried_keys, carried_parties
        Digests of what, and of whom, the clause refers back to.
    """

    asked: int
    refused: int
    goals: int
    scope: int
    kinds: int
    flags: int
    turn: int
    words: bytes
    parties: bytes
    names: bytes
    places_named: bytes
    parts: bytes
    keys: bytes
    places: bytes
    carried_words: bytes
    carried_keys: bytes
    carried_parties: bytes


class Delegation(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A source that the user pointed to, and for what.

    Parameters
    ----------
    clause
        The number of the clause, from 0.
    actions
        The actions for which the source may supply values, by name; empty where `whole` is true.
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
