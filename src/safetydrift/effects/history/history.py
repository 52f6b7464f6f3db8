"""What a run has shown so far, as far as later calls are judged by it.

A history is a small immutable value of bounded size: what the user said, the words of what came back (as digests),
and fingerprints of what was sensitive. It holds no text that came back from a tool.
"""

from __future__ import annotations

from safetydrift.effects.history.delegation import MAX_DELEGATED, delegated_by
from safetydrift.effects.history.fingerprints import Fingerprints, passages_of
from safetydrift.effects.history.packing import pack, pack_words, unpack, unpack_words
from safetydrift.effects.history.words import digests, parts_of, word_digests, words
from safetydrift.errors import SnapshotError
from safetydrift.value import Value, set_field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

MAX_SAID = 8192
"""Words of the user that are remembered; the first ones stay."""
MAX_SEEN = 32768
"""Digests of words that are remembered of what came back; the oldest results are forgotten first."""
MAX_TEXTS = 64
"""Sensitive texts and results that are remembered."""

NAMED, OWN, UNKNOWN, FOREIGN, INSTRUCTED = "named", "own", "unknown", "foreign", "instructed"
"""Where a value comes from: the user or the operator; the operator's own records; nowhere seen; content from outside;
a passage of such content that speaks to the agent."""

if TYPE_CHECKING:
    Seen = tuple[frozenset[int], ...]


class History(Value):
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

    Examples
    --------
    >>> history = History().hears("Pay the bill of ACME to DE89370400440532013000, please")
    >>> history.origin("DE89370400440532013000"), history.origin("GB33BUKB20201555555555")
    ('named', 'unknown')
    """

    __slots__ = (
        "delegated",
        "foreign",
        "instructed",
        "own",
        "repeatable",
        "said",
        "sensitive",
        "task_known",
    )
    task_known: bool
    said: frozenset[str]
    own: Seen
    foreign: Seen
    instructed: Seen
    sensitive: tuple[Fingerprints, ...]
    repeatable: frozenset[int]
    delegated: frozenset[str]

    def __init__(  # noqa: PLR0917  # one is made at every step, and keywords cost
        self,
        task_known: bool = False,
        said: frozenset[str] = frozenset(),
        own: Seen = (),
        foreign: Seen = (),
        instructed: Seen = (),
        sensitive: tuple[Fingerprints, ...] = (),
        repeatable: frozenset[int] = frozenset(),
        delegated: frozenset[str] = frozenset(),
    ) -> None:
        set_field(self, "task_known", task_known)
        set_field(self, "said", said)
        set_field(self, "own", own)
        set_field(self, "foreign", foreign)
        set_field(self, "instructed", instructed)
        set_field(self, "sensitive", sensitive)
        set_field(self, "repeatable", repeatable)
        set_field(self, "delegated", delegated)

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
        return self.replace(task_known=True, said=said, repeatable=repeatable, delegated=delegated)

    def hears_through(self, files: frozenset[str], text: str) -> History:
        """Return the history after files that the user delegated to have said something; what they name is no task."""
        return self.hears(text).replace(delegated=self.delegated - files)

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
        )

    def heard_since(self, before: History) -> tuple[int, ...]:
        """Return digests of the words that the user has said since an earlier moment, himself or through a file."""
        return () if self.said is before.said else digests(self.said - before.said)

    def ordered_since(self, before: History) -> frozenset[int]:
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
        return UNKNOWN

    # -- keeping it ---------------------------------------------------------------------------------------

    def snapshot(self) -> list[Any]:
        """Return the history as plain data that JSON can hold; sets of digests are packed (`packing`)."""
        return [
            self.task_known,
            pack_words(self.said),
            *[[pack(one) for one in seen] for seen in (self.own, self.foreign, self.instructed)],
            [[one.level, pack(one.shingles), pack(one.grams)] for one in self.sensitive],
            pack(self.repeatable),
            sorted(self.delegated),
        ]

    @classmethod
    def restore(cls, parts: Any) -> History:
        """Return a history from what `snapshot` gave; the two judge every later call alike.

        Raises
        ------
        SnapshotError
            If it is no such data, or more than a history remembers.
        """
        try:
            known, said, own, foreign, instructed, sensitive, repeatable, delegated = parts
            if type(known) is not bool or max(map(len, (own, foreign, instructed, sensitive))) > MAX_TEXTS:
                raise SnapshotError("not the history of a run")
            if len(delegated) > MAX_DELEGATED or not all(isinstance(file, str) for file in delegated):
                raise SnapshotError("not the files that a user delegated to")
            return cls(
                known,
                unpack_words(said, MAX_SAID),
                _sets(own),
                _sets(foreign),
                _sets(instructed),
                tuple([_fingerprints(*one) for one in sensitive]),
                unpack(repeatable, MAX_SEEN),
                frozenset(delegated),
            )
        except (TypeError, ValueError) as error:
            raise SnapshotError(f"not the history of a run: {error}") from error


def _sets(packed: Any) -> Seen:
    return tuple([unpack(one, MAX_SEEN) for one in packed])


def _fingerprints(level: Any, shingles: Any, grams: Any) -> Fingerprints:
    if not isinstance(level, str):
        raise SnapshotError("a level is a name")
    return Fingerprints(level, unpack(shingles, MAX_SEEN), unpack(grams, MAX_SEEN))


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
