"""Fingerprints: whether what goes out contains what was read, without keeping what was read.

Of a sensitive text, digests of all runs of `SHINGLE` words are kept (those that fall on every `KEEP`-th digest, as in
winnowing: Schleimer, Wilkerson and Aiken, 2003); of a secret found in it, digests of all runs of `GRAM` letters and
digits. So case, white space, punctuation, quoting and truncation do not matter, and what is encoded as base64, hex
or for a URL is decoded before it is compared.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as Base64Error
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Annotated
from urllib.parse import unquote_plus
from zlib import crc32

from msgspec import Meta, Struct

from safetydrift.effects.history.words import bounded, letters_of
from safetydrift.states.bounded import Digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SHINGLE = 5
"""Words in a row that make a passage recognisable."""
KEEP = 2
"""One shingle in so many is kept of a text that has more than `ALL_KEPT`."""
ALL_KEPT = 128
GRAM = 10
"""Letters and digits in a row that make a secret recognisable; a shorter secret has to appear whole."""
MAX_SECRET = 4096
"""Of a longer secret, so many characters are remembered."""
MAX_SHINGLES = 1024
MAX_GRAMS = 512
_SHORTEST = 6
_ENOUGH = 2

_BETWEEN_BLANKS = re.compile(r"[^\s\"'`=,;:&?<>()\[\]{}]+")
_ENCODED = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_HEX = re.compile(r"(?:0x|\\x)?[0-9a-fA-F]{2}(?:[ :]?(?:\\x)?[0-9a-fA-F]{2}){7,}")
_HEX_NOISE = re.compile(r"0x|\\x|[ :]")
_MAX_DECODED = 64


class Fingerprints(Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """What is remembered of one sensitive text.

    Parameters
    ----------
    level
        The level of its data.
    shingles
        Digests of runs of words of the text.
    grams
        Digests of runs of letters of the secrets in it.
    """

    level: str
    shingles: Annotated[frozenset[Digest], Meta(max_length=MAX_SHINGLES)]
    grams: Annotated[frozenset[Digest], Meta(max_length=MAX_GRAMS)]

    def __len__(self) -> int:
        return len(self.shingles) + len(self.grams)


def fingerprint(level: str, text: str, secrets: Iterable[str]) -> Fingerprints:
    """Return the fingerprints of a text that was read.

    Parameters
    ----------
    level
        The level of its data.
    text
        What was read; empty if only the secrets in it matter.
    secrets
        The secrets found in it.
    """
    found = _shingles(text)
    shingles = found if len(found) <= ALL_KEPT else [kept for kept in found if kept % KEEP == 0]
    shingles = sorted(shingles)[:MAX_SHINGLES] if len(shingles) > MAX_SHINGLES else shingles
    letters: set[int] = set()
    for secret in secrets:
        letters.update(_grams(_letters(secret[:MAX_SECRET])))
        if len(letters) > MAX_GRAMS:
            break
    return Fingerprints(level, frozenset(shingles), frozenset(sorted(letters)[:MAX_GRAMS]))


def passages_of(text: str) -> frozenset[int]:
    """Return the digests of all passages of a text, of words and of letters."""
    return _shingles(text) | frozenset([crc for run in _runs(bounded(text)) for crc in _grams(run)])


def carries(
    remembered: Iterable[Fingerprints], outgoing: str, repeatable: frozenset[int] = frozenset()
) -> Iterator[str]:
    """Yield the level of every remembered text that an outgoing one contains a passage or a secret of.

    Parameters
    ----------
    repeatable
        Passages that may go out (`passages_of`): what the user said himself.
    """
    forms = tuple(_forms(bounded(outgoing)))
    shingles = frozenset().union(*map(_shingles, forms)) - repeatable
    letters = frozenset([crc for form in forms for run in _runs(form) for crc in _grams(run)]) - repeatable
    for text in remembered:
        if not text.grams.isdisjoint(letters) or len(text.shingles & shingles) >= min(
            _ENOUGH, len(text.shingles) or _ENOUGH
        ):
            yield text.level


@lru_cache(256)
def _shingles(text: str) -> frozenset[int]:
    found = letters_of(bounded(text))
    if len(found) < SHINGLE:
        return frozenset()
    encoded = [word.encode("utf-8", "replace") + b" " for word in found]
    together, ends = b"".join(encoded), list(accumulate(map(len, encoded)))
    return frozenset(
        [
            crc32(together[start:end])
            for start, end in zip((0, *ends), ends[SHINGLE - 1 :])  # noqa: B905  # the last starts begin no run
        ]
    )


def _runs(text: str) -> Iterator[bytes]:
    """Yield the letters of a text as one run, and of each of its short words, for secrets shorter than a run."""
    yield _letters(text)
    for word in _BETWEEN_BLANKS.findall(text):
        letters = _letters(word)
        if len(letters) < GRAM:
            yield letters


def _letters(text: str) -> bytes:
    return "".join(letters_of(text)).encode("utf-8", "replace")


def _grams(letters: bytes) -> Iterator[int]:
    """Yield the digests of all runs of letters; one digest of all of them if they are fewer than a run."""
    if len(letters) < GRAM:
        if len(letters) >= _SHORTEST:
            yield crc32(letters)
        return
    for at in range(len(letters) - GRAM + 1):
        yield crc32(letters[at : at + GRAM])


def _forms(text: str) -> Iterator[str]:
    """Yield a text as it stands, and what is encoded in it."""
    yield text
    if "%" in text:
        yield unquote_plus(text)
    for match in _first(_ENCODED.finditer(text)):
        yield from _from_base64(match)
    for match in _first(_HEX.finditer(text)):
        yield bytes.fromhex(_HEX_NOISE.sub("", match)).decode("utf-8", "replace")


def _first(matches: Iterable[re.Match[str]]) -> Iterator[str]:
    for count, match in enumerate(matches):
        if count >= _MAX_DECODED:
            return
        yield match[0]


def _from_base64(text: str) -> Iterator[str]:
    """Yield what a text may encode: either alphabet, cut off at the end, and from each of its first four letters on.

    What stands before it (a path, a name) shifts where groups of four begin.
    """
    text = text.rstrip("=").replace("-", "+").replace("_", "/")
    for start in range(4):
        usable = (len(text) - start) // 4 * 4
        try:
            yield b64decode(text[start : start + usable]).decode("utf-8", "replace")
        except Base64Error:
            return
