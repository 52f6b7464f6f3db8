"""What a run has shown so far, as far as later calls are judged by it.

A history is a small immutable value of bounded size: what the user said, the words of what came back (as digests),
and fingerprints of what was sensitive. It holds no text that came back from a tool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from safetydrift.effects.history.delegation import MAX_DELEGATED, delegated_by
from safetydrift.effects.history.fingerprints import Fingerprints, passages_of
from safetydrift.effects.history.words import digests, parts_of, word_digests, words
from safetydrift.states.bounded import Digest

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_SAID = 8192
"""Words of the user that are remembered; the first ones stay."""
MAX_SEEN = 32768
"""Digests of words that are remembered of what came back; the oldest results are forgotten first."""
MAX_TEXTS = 64
"""Sensitive texts and results that are remembered."""

NAMED, OWN, UNKNOWN, FOREIGN, INSTRUCTED = "named", "own", "unknown", "foreign", "instructed"
"""Where a value comes from: the user or the operator; the operator's own records; nowhere seen; content from outside;
a passage of such content that speaks to the agent."""

Digests = Annotated[frozenset[Digest], Meta(max_length=MAX_SEEN)]
Seen = Annotated[tuple[Digests, ...], Meta(max_length=MAX_TEXTS)]


class History(Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """What the run has shown so far.

    Parameters
    ----------
    task_known
        Whether the user's task is known at all; without it, nothing can be said about who named a value.
    said
        Words of the user.
    own, foreign, instructed
        Words of results that were the operator's own, came from outside, and stood in passages from outside that
        speak to the agent; one set of digests per result, the newest last.
    sensitive
        Fingerprints of what was sensitive, the newest last.
    repeatable
        Digests of the passages of the user's own words: carrying these out is no leak.
    delegated
        Files in which the task stands by the user's words, and which have not been read yet.
    unread
        Whether something came back that nobody could read: what is seen nowhere else may stand there.

    Examples
    --------
    >>> history = History().hears("Pay the bill of ACME to DE89370400440532013000, please")
    >>> history.origin("DE89370400440532013000"), history.origin("GB33BUKB20201555555555")
    ('named', 'unknown')
    """

    task_known: bool = False
    said: Annotated[frozenset[str], Meta(max_length=MAX_SAID)] = frozenset()
    own: Seen = ()
    foreign: Seen = ()
    instructed: Seen = ()
    sensitive: Annotated[tuple[Fingerprints, ...], Meta(max_length=MAX_TEXTS)] = ()
    repeatable: Digests = frozenset()
    delegated: Annotated[frozenset[str], Meta(max_length=MAX_DELEGATED)] = frozenset()
    unread: bool = False

    def hears(self, text: str) -> History:
        """Return the history after the user has said something."""
        news = words(text)
        if news <= self.said and self.task_known:
            return self
        said = self.said | news if len(self.said) + len(news) <= MAX_SAID else self.said
        repeatable = self.repeatable | passages_of(text)
        repeatable = repeatable if len(repeatable) <= MAX_SEEN else self.repeatable
        delegated = self.delegated | delegated_by(text)
        delegated = delegated if len(delegated) <= MAX_DELEGATED else self.delegated
        return replace(self, task_known=True, said=said, repeatable=repeatable, delegated=delegated)

    def hears_through(self, files: frozenset[str], text: str) -> History:
        """Return the history after files that the user delegated to have said something; what they name is no task."""
        return replace(self.hears(text), delegated=self.delegated - files)

    def sees(
        self,
        text: str,
        *,
        own: bool = False,
        passages: Sequence[str] = (),
        sensitive: Fingerprints | None = None,
    ) -> History:
        """Return the history after a result has come back.

        Parameters
        ----------
        text
            The result.
        own
            Whether it is the operator's own record rather than content from outside.
        passages
            The parts of it that speak to the agent.
        sensitive
            Its fingerprints, if it is sensitive.
        """
        seen = word_digests(text)
        return History(
            self.task_known,
            self.said,
            _newest(self.own, seen) if own else self.own,
            self.foreign if own else _newest(self.foreign, seen),
            _newest(self.instructed, *map(word_digests, passages)) if passages else self.instructed,
            (*self.sensitive, sensitive)[-MAX_TEXTS:] if sensitive else self.sensitive,
            self.repeatable,
            self.delegated,
            self.unread,
        )

    def heard_since(self, before: History) -> tuple[int, ...]:
        """Return digests of the words that the user has said since an earlier moment, in person or through a file."""
        return () if self.said is before.said else digests(self.said - before.said)

    def injected_since(self, before: History) -> frozenset[int]:
        """Return digests of the words that passages which speak to the agent have brought since an earlier moment."""
        if self.instructed is before.instructed:
            return frozenset()
        return frozenset().union(*self.instructed).difference(*before.instructed)

    def origin(self, value: str) -> str:
        """Return where a value comes from: the source that speaks most for it, an instruction before mere content."""
        parts = parts_of(value)
        if not parts[0] or _said(parts, self.said):
            return NAMED
        crcs = digests(parts)
        for origin, seen in ((INSTRUCTED, self.instructed), (OWN, self.own), (FOREIGN, self.foreign)):
            if any(_has(crcs, one) for one in seen):
                return origin
        return INSTRUCTED if self.unread else UNKNOWN


def _said(parts: Sequence[str], known: frozenset[str]) -> bool:
    return parts[0] in known or (len(parts) > 1 and known.issuperset(parts[1:]))


def _has(crcs: Sequence[int], seen: frozenset[int]) -> bool:
    return crcs[0] in seen or (len(crcs) > 1 and seen.issuperset(crcs[1:]))


def _newest(before: Seen, *news: frozenset[int]) -> Seen:
    """Return the sets with new ones, without the oldest that no longer fit."""
    sets = [one for one in (*before, *news) if one][-MAX_TEXTS:]
    size = sum(map(len, sets))
    while sets and size > MAX_SEEN:
        size -= len(sets.pop(0))
    return tuple(sets)
