"""Texts that came into a run, and the places where a value stands in them.

A value that decides what a call does (an account, a recipient, a host, a path) has authority only if somebody entitled
to decide it wrote it somewhere. So every text that comes back from a tool is kept with a label that says who vouches
for it, and `SourceText.find` says where in it a value stands: in which field, beside which words, and whether the
passage around it speaks to the agent.

In memory the text itself is kept, bounded; what a store keeps are keyed digests of its words, line by line.
"""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from safetydrift.authority.text import Value

MAX_KEPT = 64 * 1024
"""Of a longer text, its beginning and its end are kept, half each, in characters."""
MAX_LINES = 512
"""Lines of a text that a store keeps; what stands between the first and the last is forgotten."""
MAX_PLACES = 8
"""Places of a value in one text that are looked at."""
AROUND = 160
"""Characters before and after a value that are taken for its passage, within the paragraph."""
DIGEST = 8
"""Bytes of a digest."""

UNREAD, UNTRUSTED, SELF, RECORD, OPERATOR = range(5)
"""Who vouches for a text: nobody could read it; anybody may have written it; the agent itself; a system of record of the
user's own; the operator. In ascending order of integrity (Biba, 1977)."""

PROSE, FREE, DATA, IDENTITY = range(4)
"""The field in which a value stands: none that can be told; one in which people write what they like; one that a system
fills in; one that says who somebody is (a sender, a participant)."""

_LINE = re.compile(r"\n")
_KEY = re.compile(r"(?:^|[{,])[ \t]{0,4}(?:- )?[\"']?([A-Za-z][\w \-]{0,30}?)[\"']?[ \t]*[:=]", re.MULTILINE)
_FREE = frozenset(
    "body content contents text message msg description desc note notes memo comment comments subject title summary "
    "review reviews details snippet instructions reason caption bio about html markdown answer question reply "
    "feedback remarks purpose reference output stdout".split()
)
_IDENTITY = frozenset(
    "sender from author owner participants attendees organizer organiser user username name contact recipient "
    "recipients to cc created_by assignee reporter email members".split()
)
_WORD = re.compile(r"\w{2,}")


class Place(Struct, frozen=True, gc=False):
    """Where a value stands in what a run has read.

    Parameters
    ----------
    number
        The call that brought the text, counted from 1.
    integrity
        `UNREAD` to `OPERATOR`.
    pointed
        How directly the user pointed to the text: 2 named by them, 1 reached from such a text, 0 not at all.
    field
        `PROSE` to `IDENTITY`.
    speaks
        Whether the passage around it speaks to the agent.
    near
        How many different words of the user stand around it, at most 4.
    whole
        Whether the value stands there as a whole; else only what identifies it (the host of a URL) does.
    """

    number: int
    integrity: int
    pointed: int
    field: int
    speaks: bool
    near: int
    whole: bool = True


class Line(Struct, frozen=True, array_like=True, gc=False):
    """One line of a text as a store keeps it: digests of what stands in it, in `DIGEST` bytes each."""

    field: int
    speaks: bool
    near: int
    digests: bytes


class SourceText(Struct):
    """One text that came into a run.

    Parameters
    ----------
    number
        The call that brought it, counted from 1.
    integrity
        `UNREAD` to `OPERATOR`.
    pointed
        As in `Place`.
    text
        What it says, folded (`safetydrift.authority.text.fold`); empty once a store has kept it.
    speaks
        Spans of ``text`` that speak to the agent, in characters.
    lines
        What a store keeps of it.
    """

    number: int
    integrity: int
    pointed: int
    text: str = ""
    speaks: tuple[tuple[int, int], ...] = ()
    lines: tuple[Line, ...] = ()

    def find(self, value: Value, near: Callable[[str], int], key: bytes) -> Place | None:
        """Return the place that speaks most for a value; None where the text does not hold it.

        Parameters
        ----------
        value
            What is looked for, in its normal form.
        near
            Counts the user's words in a passage.
        key
            Of the digests, for a text that a store has kept.
        """
        if not self.text:
            return self._find_digest(value, key)
        best: Place | None = None
        for start, end, whole in self._occurrences(value):
            place = Place(
                self.number, self.integrity, self.pointed, self._field(start), self._speaks(start, end),
                near(self._around(start, end)), whole,
            )  # fmt: skip
            best = place if best is None or _better(place, best) else best
        return best

    def kept(self, near: Callable[[str], int], key: bytes, forms: Callable[[str], Sequence[str]]) -> SourceText:
        """Return the text as a store keeps it: keyed digests of the words of every line instead of the text.

        Parameters
        ----------
        forms
            Gives the normal forms of everything in a line that a value may be compared with.
        """
        if not self.text:
            return self
        lines = []
        for start, end in self._lines():
            found = b"".join(sorted({digest(form, key) for form in forms(self.text[start:end])}))
            lines.append(
                Line(self._field(end), self._speaks(start, end), near(self.text[start:end]), found)
            )
        return SourceText(self.number, self.integrity, self.pointed, lines=tuple(lines))

    # -- inside -----------------------------------------------------------------------------------------------

    def _occurrences(self, value: Value) -> Iterator[tuple[int, int, bool]]:
        found = False
        for needle, whole in value.needles:
            for start in _starts(self.text, needle):
                found = True
                yield start, start + len(needle), whole
            if found:
                return
        if value.compact and value.compact in compact(self.text):
            match = re.search(value.spaced, self.text)
            if match is not None:
                yield match.start(), match.end(), True

    def _find_digest(self, value: Value, key: bytes) -> Place | None:
        best: Place | None = None
        for needle, whole in (*value.needles, *([(value.compact, True)] if value.compact else [])):
            wanted = digest(needle, key)
            for line in self.lines:
                if _holds(line.digests, wanted):
                    place = Place(
                        self.number, self.integrity, self.pointed, line.field, line.speaks, line.near, whole
                    )
                    best = place if best is None or _better(place, best) else best
            if best is not None:
                return best
        return best

    def _lines(self) -> Iterator[tuple[int, int]]:
        ends = [match.start() for match in _LINE.finditer(self.text)][: 4 * MAX_LINES]
        spans = list(zip([0, *[end + 1 for end in ends]], [*ends, len(self.text)], strict=True))
        spans = spans if len(spans) <= MAX_LINES else spans[: MAX_LINES // 2] + spans[-MAX_LINES // 2 :]
        return iter([span for span in spans if span[0] < span[1]])

    def _around(self, start: int, end: int) -> str:
        text = self.text
        first = text.rfind("\n\n", max(0, start - AROUND), start)
        last = text.find("\n\n", end, end + AROUND)
        return text[max(0, start - AROUND) if first < 0 else first : end + AROUND if last < 0 else last]

    def _speaks(self, start: int, end: int) -> bool:
        return any(first < end and start < last for first, last in self.speaks)

    def _field(self, at: int) -> int:
        """Return the kind of the field that a place belongs to, by the last key that stands before it.

        Only keys that are indented by less than four blanks count, and those of JSON: what somebody wrote into a field is
        indented further where a system prints it over several lines.
        """
        last = None
        for match in _KEY.finditer(self.text, max(0, at - 4 * AROUND), at):
            last = match
        if last is None:
            return PROSE
        name = last[1].strip().replace(" ", "_").lower()
        return FREE if name in _FREE else IDENTITY if name in _IDENTITY else DATA


def _better(one: Place, other: Place) -> bool:
    """Return whether a place speaks more for a value than another one."""
    return (one.whole, not one.speaks, one.field, one.near) > (other.whole, not other.speaks, other.field, other.near)


def _starts(text: str, needle: str) -> Iterator[int]:
    """Yield where a text holds a needle as a word of its own."""
    at, count = text.find(needle), 0
    while at >= 0 and count < MAX_PLACES:
        end = at + len(needle)
        before, after = text[at - 1 : at], text[end : end + 1]
        glued = (needle[0].isalnum() and before.isalnum()) or (needle[-1].isalnum() and after.isalnum())
        if not glued:
            count += 1
            yield at
        at = text.find(needle, at + 1)


@lru_cache(64)
def compact(text: str) -> str:
    """Return a text without what may stand between the groups of a number: blanks, hyphens, dots, brackets."""
    return text.translate(_SEPARATORS)


_SEPARATORS = dict.fromkeys(map(ord, " \t\u00a0-./()"))


@lru_cache(4096)
def digest(word: str, key: bytes) -> bytes:
    """Return the keyed digest of a word (BLAKE2b), `DIGEST` bytes."""
    return blake2b(word.encode("utf-8", "surrogatepass"), digest_size=DIGEST, key=key).digest()


def _holds(digests: bytes, wanted: bytes) -> bool:
    at = digests.find(wanted)
    while at >= 0 and at % DIGEST:
        at = digests.find(wanted, at + 1)
    return at >= 0
