"""Sources: how much of a call's arguments injected instructions said, and how much the user did.

Where `safetydrift.effects.history.provenance` asks for the one most worrying value among those that decide, this weighs
all words of the arguments, free text included. It is asked only once orders have been read, so that a run in which
nobody gives orders pays nothing for it.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from typing import TYPE_CHECKING

from safetydrift.effects.history.provenance import ORIGINS, decides
from safetydrift.effects.history.words import digests, words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from safetydrift.effects.history.history import History

SHARES, COUNTS, MOST = 6, 7, 4
N_SOURCES = SHARES * SHARES * COUNTS * len(ORIGINS) * (MOST + 1)
"""How many numbers `sources_of` can return."""
_SHARES = (1e-9, 0.15, 0.35, 0.6, 0.85)
_COUNTS = (1, 2, 3, 5, 9, 17)


def sources_of(texts: Iterable[tuple[str, str]], values: Iterable[str], history: History) -> int:
    """Return where the words of a call's arguments come from, as a number below `N_SOURCES`.

    Parameters
    ----------
    texts
        What `safetydrift.effects.history.provenance.scalars` found in the arguments.
    values
        Those that decide what the call does (`safetydrift.effects.history.provenance.decisive`).

    Returns
    -------
    int
        0 as long as no orders have been read. Else, packed by `unpacked`: the share of words that only orders said,
        the share that the user said, the number of the former, the most worrying origin of a deciding value, and the
        number of deciding values that stand in orders; each in a few bands.
    """
    if not history.instructed:
        return 0
    found = _digests("\n".join([text for _, text in texts]))
    said = found & _of_words(history.said)
    injected = (found - said) & _union(history.instructed)
    origins = [ORIGINS.index(history.origin(value)) for value in values]
    total = max(len(found), 1)
    return packed(
        bisect_right(_SHARES, len(injected) / total),
        bisect_right(_SHARES, len(said) / total),
        bisect_right(_COUNTS, len(injected)),
        max(origins, default=0),
        min(origins.count(len(ORIGINS) - 1), MOST),
    )


def packed(injected: int, said: int, count: int, worst: int, instructed: int) -> int:
    """Return the number of a combination of bands."""
    return injected + SHARES * (said + SHARES * (count + COUNTS * (worst + len(ORIGINS) * instructed)))


def unpacked(sources: int) -> tuple[int, int, int, int, int]:
    """Return the bands that a number stands for, in the order of `packed`.

    Examples
    --------
    >>> unpacked(packed(5, 0, 3, 4, 1))
    (5, 0, 3, 4, 1)
    """
    rest, injected = divmod(sources, SHARES)
    rest, said = divmod(rest, SHARES)
    rest, count = divmod(rest, COUNTS)
    instructed, worst = divmod(rest, len(ORIGINS))
    return injected, said, count, worst, instructed


@lru_cache(512)
def _digests(text: str) -> frozenset[int]:
    return frozenset(digests([word for word in words(text) if decides(word)]))


@lru_cache(64)
def _of_words(said: frozenset[str]) -> frozenset[int]:
    return frozenset(digests(said))


@lru_cache(64)
def _union(sets: tuple[frozenset[int], ...]) -> frozenset[int]:
    return frozenset().union(*sets)
