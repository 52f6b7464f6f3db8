"""Texts that came into a run, and the places where a value stands in them.

A value that decides what a call does (an account, a recipient, a host, a path) has authority only if somebody entitled
to decide it wrote it somewhere. So every text that a tool brings back is kept with a label that says who vouches for
it, and `SourceText.find` says where in it a value stands: in which field, among which words, and whether the passage
around it speaks to the agent.

In memory the text itself is kept, bounded; what a store keeps are keyed digests of its words, line by line.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from safetydrift.authority.kept import DIGEST
from safetydrift.authority.text import fold, names
from safetydrift.authority.values import is_shared, keys_of, values_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from safetydrift.authority.kept import Digester

MAX_KEPT = 64 * 1024
"""Of a longer text, its beginning and its end are kept, half each, in characters."""
MAX_LINES = 256
"""Lines of a text that a store keeps: the first and the last."""
MAX_LINE_WORDS = 64
"""Words of a line that a store keeps."""
MAX_PLACES = 6
"""Places of a value in one text that are looked at."""
AROUND = 160
"""Characters before and after a value that are taken for its passage, within the paragraph."""
MAX_NEAR = 4
"""Words of the user around a value that are counted."""

UNREAD, UNTRUSTED, SELF, RECORD = range(4)
"""Who vouches for a text, in ascending order of integrity (Biba, 1977): nobody could read it; anybody may have written
it; the agent itself; a system of record of the user's own."""

PROSE, FREE, DATA, IDENTITY = range(4)
"""The field in which a value stands: none that can be told; one in which people write what they like; one that a system
fills in; one that says who somebody is (a sender, a participant)."""

_KEY = re.compile(
    r"(?:^|[{,])[ \t]{0,4}(?:- )?[\"']?([A-Za-z][\w \-]{0,30}?)[\"']?[ \t]*[:=](?!//)", re.MULTILINE
)
_FREE = frozenset(
    names(
        "body content contents text message msg description desc note notes memo comment comments subject title "
        "summary review reviews details snippet instructions reason caption bio about html markdown answer question "
        "reply feedback remarks purpose reference output stdout"
    )
)
_IDENTITY = frozenset(
    names(
        "sender from author owner participants attendees organizer organiser user username name contact recipient "
        "recipients to cc created_by assignee reporter email members"
    )
)
_TOKEN = re.compile(r"[^\s,;\"'()<>\[\]{}|]{2,128}")
_GROUPS = re.compile(r"(?:[a-z]{2})?\d[\d \t\u00a0\-./()]{6,40}\d")
"""Long numbers in groups, an account's letters before them."""
_SEPARATORS = dict.fromkeys(map(ord, " \t\u00a0-./()"))
_SHORTEST = 3
_COMPACT_SHAPES = frozenset(("account", "phone"))


class Needles(Struct, frozen=True, gc=False):
    """What a value is looked for by.

    Parameters
    ----------
    whole
        Forms of the value as a whole.
    part
        What identifies it alone: the host of a page, the name of a file; empty for most.
    compact
        Of accounts and numbers, the form without separators.
    """

    whole: tuple[str, ...]
    part: str = ""
    compact: str = ""


class Place(Struct, frozen=True, gc=False):
    """Where a value stands in what a run has read.

    Parameters
    ----------
    text
        The text.
    field
        `PROSE` to `IDENTITY`.
    speaks
        Whether the passage around it speaks to the agent.
    near
        How many different words of the user stand around it, at most `MAX_NEAR`.
    whole
        Whether the value stands there as a whole; else only what identifies it (the host of a URL) does.
    """

    text: SourceText
    field: int
    speaks: bool
    near: int
    whole: bool = True

    @property
    def rank(self) -> tuple[bool, bool, int, int, int, int]:
        """By what places are compared: the greatest vouches most for the value."""
        return (not self.speaks, self.whole, self.text.integrity, self.text.pointed, self.field, self.near)


class Line(Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """One line of a text as a store keeps it: digests of its words, one after the other."""

    field: Annotated[int, Meta(ge=PROSE, le=IDENTITY)]
    speaks: bool
    near: Annotated[int, Meta(ge=0, le=MAX_NEAR)]
    digests: Annotated[bytes, Meta(max_length=DIGEST * MAX_LINE_WORDS)]


class SourceText(Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """One text that came into a run.

    Parameters
    ----------
    number
        The call that brought it, counted from 1.
    integrity
        `UNREAD` to `RECORD`.
    pointed
        How directly the user pointed to it: 2 named by them, 1 reached from such a text, 0 not at all.
    delegated
        The actions for which the user gave it a say; ``("*",)`` for all.
    text
        What it says, folded (`safetydrift.authority.text.fold`); empty once a store has kept it.
    speaks
        Spans of ``text`` that speak to the agent, in characters.
    lines
        What a store keeps of it.
    """

    number: int
    integrity: Annotated[int, Meta(ge=UNREAD, le=RECORD)]
    pointed: Annotated[int, Meta(ge=0, le=2)] = 0
    delegated: Annotated[tuple[str, ...], Meta(max_length=64)] = ()
    text: str = ""
    speaks: tuple[tuple[int, int], ...] = ()
    lines: Annotated[tuple[Line, ...], Meta(max_length=MAX_LINES)] = ()

    def find(self, needles: Needles, near: Callable[[str], int], digest: Digester) -> Place | None:
        """Return the place that vouches most for a value; None where the text does not hold it.

        Parameters
        ----------
        needles
            What is looked for.
        near
            Counts the user's words in a passage.
        digest
            Makes the keyed digests, for a text that a store has kept.
        """
        if not self.text:
            return self._find_digest(needles, digest)
        best: Place | None = None
        for start, end, whole in self._occurrences(needles):
            place = Place(
                self, self._field(start), self._speaks(start, end), near(self._around(start, end)), whole
            )
            best = place if best is None or place.rank > best.rank else best
        return best

    def kept(self, near: Callable[[str], int], digest: Digester) -> SourceText:
        """Return the text as a store keeps it: keyed digests of the words of every line instead of the text."""
        if not self.text:
            return self
        lines, at = [], 0
        for line in self.text.split("\n"):
            found = _forms(line)
            if found:
                end = at + len(line)
                row = b"".join([digest(form) for form in found])
                lines.append(Line(self._field(end), self._speaks(at, end), near(line), row))
            at += len(line) + 1
        if len(lines) > MAX_LINES:
            lines = lines[: MAX_LINES // 2] + lines[-MAX_LINES // 2 :]
        return SourceText(self.number, self.integrity, self.pointed, self.delegated, lines=tuple(lines))

    # -- inside -----------------------------------------------------------------------------------------------

    def _occurrences(self, needles: Needles) -> Iterator[tuple[int, int, bool]]:
        found = False
        for needle in needles.whole:
            for start in _starts(self.text, needle):
                found = True
                yield start, start + len(needle), True
            if found:
                return
        if needles.compact and needles.compact in _compact(self.text):
            spaced = re.compile(r"[ \t\u00a0\-./()]{0,2}".join(map(re.escape, needles.compact)))
            for match in islice(spaced.finditer(self.text), MAX_PLACES):
                found = True
                yield match.start(), match.end(), True
            if found:
                return
        if needles.part:
            for start in _starts(self.text, needles.part):
                yield start, start + len(needles.part), False

    def _find_digest(self, needles: Needles, digest: Digester) -> Place | None:
        best: Place | None = None
        for line in self.lines:
            whole = any(
                all(_holds(line.digests, digest(word)) for word in form.split(" ") if len(word) > 1)
                for form in (*needles.whole, *([needles.compact] if needles.compact else ()))
            )
            if whole or (needles.part and _holds(line.digests, digest(needles.part))):
                place = Place(self, line.field, line.speaks, line.near, whole)
                best = place if best is None or place.rank > best.rank else best
        return best

    def _around(self, start: int, end: int) -> str:
        text = self.text
        first = text.rfind("\n\n", max(0, start - AROUND), start)
        last = text.find("\n\n", end, end + AROUND)
        return text[max(0, start - AROUND) if first < 0 else first : end + AROUND if last < 0 else last]

    def _speaks(self, start: int, end: int) -> bool:
        return any(first < end and start < last for first, last in self.speaks)

    def _field(self, at: int) -> int:
        """Return the kind of the field that a place belongs to, by the last key that stands before it.

        Keys of records stand at the margin; what somebody wrote into a field is indented further where a system prints
        it over several lines.
        """
        last = None
        for match in _KEY.finditer(self.text, max(0, at - 4 * AROUND), at):
            last = match
        if last is None:
            return PROSE
        name = last[1].strip().replace(" ", "_").lower()
        return FREE if name in _FREE else IDENTITY if name in _IDENTITY else DATA


@lru_cache(4096)
def needles_of(value: str) -> Needles | None:
    """Return what a value is looked for by; None for what is too short to come from anywhere in particular.

    Examples
    --------
    >>> needles_of("https://Example.com/a?x=1").part, needles_of("AT68 5453 2054 0000 11").compact
    ('example.com', 'at6854532054000011')
    >>> needles_of("5") is None
    True
    """
    shape, _, form = keys_of(value)[0].partition(":")
    form = fold(form)
    folded = " ".join(fold(value).split())
    whole = tuple(dict.fromkeys([one for one in (folded, form) if len(one) >= _SHORTEST]))
    if not whole:
        return None
    if shape in {"url", "host"}:
        host = form.partition("/")[0].partition("?")[0]
        return Needles(whole, "" if is_shared(host) else host)
    if shape == "path":
        name = form.rstrip("/").rpartition("/")[2]
        return Needles(whole, name if len(name) > _SHORTEST else "")
    if shape in _COMPACT_SHAPES:
        return Needles(whole, compact=form.translate(_SEPARATORS))
    return Needles(whole)


def bounded(text: str) -> str:
    """Return what is kept of a text: of a longer one, its beginning and its end."""
    return text if len(text) <= MAX_KEPT else f"{text[: MAX_KEPT // 2]}\n{text[-MAX_KEPT // 2 :]}"


def _forms(line: str) -> tuple[str, ...]:
    """Return the forms of everything in a line that a value may be compared with."""
    found: dict[str, None] = {}
    for value in values_in(line):
        shape, _, form = value.keys[0].partition(":")
        form = fold(form)
        found[form.translate(_SEPARATORS) if shape in _COMPACT_SHAPES else form] = None
        if shape == "url":
            found[form.partition("/")[0].partition("?")[0]] = None
        elif shape == "path":
            found[form.rstrip("/").rpartition("/")[2]] = None
    for match in _GROUPS.finditer(line):
        found[match[0].translate(_SEPARATORS)] = None
    for match in _TOKEN.finditer(line):
        if len(found) >= MAX_LINE_WORDS:
            break
        found[match[0].strip(".:!?-*`")] = None
    found.pop("", None)
    return tuple(found)[:MAX_LINE_WORDS]


def _starts(text: str, needle: str) -> Iterator[int]:
    """Yield where a text holds a needle as a word of its own."""
    at, count = text.find(needle), 0
    while at >= 0 and count < MAX_PLACES:
        end = at + len(needle)
        glued = (needle[0].isalnum() and at > 0 and text[at - 1].isalnum()) or (
            needle[-1].isalnum() and end < len(text) and text[end].isalnum()
        )
        if not glued:
            count += 1
            yield at
        at = text.find(needle, at + 1)


@lru_cache(64)
def _compact(text: str) -> str:
    """Return a text without what may stand between the groups of a number."""
    return text.translate(_SEPARATORS)


def _holds(digests: bytes, wanted: bytes) -> bool:
    at = digests.find(wanted)
    while at >= 0 and at % DIGEST:
        at = digests.find(wanted, at + 1)
    return at >= 0
