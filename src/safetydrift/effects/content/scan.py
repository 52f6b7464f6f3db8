"""What a text holds, by the patterns of the catalogue; findings tell kind and place, never the text itself.

Most texts hold nothing, so the way to "nothing" is short: one pass for all literal marks, one in small letters, one for
long runs of digits. Only what these point at is looked at closely, at those places.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from safetydrift.effects.content.identifiers import holds, mail_addresses, phone_numbers
from safetydrift.effects.content.patterns import Marks
from safetydrift.effects.content.secrets import detected, is_hidden
from safetydrift.effects.escapes import unescaped
from safetydrift.effects.expressions import compiled

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from safetydrift.effects.catalogue import Catalogue
    from safetydrift.effects.catalogue.content import ContentPattern

MAX_SCANNED = 256 * 1024
"""Of a longer text the beginning and the end are scanned, in characters."""
HEAD, TAIL = 192 * 1024, 64 * 1024
MAX_FINDINGS = 64
"""More findings than this are not told."""
MAX_PLACES = 1000
"""A pattern is tried at no more places of a text than this."""
MAX_WINDOWS = 32
"""A detector of the library is asked no more often than this about a text."""
_NEAR_BEFORE, _NEAR_AFTER = 80, 40
_RUN_BEFORE, _RUN_AFTER = 12, 122
_BEYOND = 8  # what leads to a detector may end shortly before the secret
_PHONE_MARKS = ("phone",)

# A date alone is passed over here: it is what most such runs are.
_DIGITS = re.compile(r"[0-9](?<![0-9][0-9])(?![0-9]{3}-[0-9][0-9]-[0-9][0-9](?![0-9 .-]))[0-9 .-]{8,80}")
_MIN_DIGITS = 9


class Finding(Struct, frozen=True, gc=False):
    """Something sensitive in a text.

    Attributes
    ----------
    what, many
        What it is, in words: one of them, and several of them.
    level
        The level of data that it means.
    start, end
        Where the sensitive value itself stands, in characters.
    """

    what: str
    level: str
    start: int
    end: int
    many: str


class Findings(Struct, frozen=True, gc=False):
    """What a text was found to hold.

    Attributes
    ----------
    level
        The highest level of data among the findings; the lowest of the scale where there are none.
    items
        The findings in the order of the text, none inside another; at most `MAX_FINDINGS`.
    complete
        Whether all of the text was scanned and all findings are told.
    """

    level: str
    items: tuple[Finding, ...] = ()
    complete: bool = True

    def __bool__(self) -> bool:
        return bool(self.items)

    def reasons(self) -> tuple[str, ...]:
        """Return what the text holds, in short words: ``holds 2 payment card numbers``."""
        counts: dict[str, int] = {}
        many: dict[str, str] = {}
        for item in self.items:
            counts[item.what] = counts.get(item.what, 0) + 1
            many[item.what] = item.many
        return tuple([f"holds {n} {many[what] if n > 1 else what}" for what, n in counts.items()])


class ScannedText:
    """A text with what several patterns ask of it.

    Attributes
    ----------
    text, small
        As it is, and in small letters; both of the same length.
    """

    __slots__ = ("_runs", "small", "text")

    def __init__(self, text: str, small: str) -> None:
        self.text, self.small = text, small
        self._runs: list[tuple[int, int]] | None = None

    def places(self, pattern: ContentPattern) -> list[int]:
        """Return where a pattern has to be tried, at most `MAX_PLACES`."""
        if pattern.near and not any(word in self.small for word in pattern.near):
            return []
        if pattern.digits:
            return [start for start, digits in self.digit_runs() if digits >= pattern.digits]
        searched = self.small if pattern.fold else self.text
        places: list[int] = []
        for mark in pattern.marks:
            at = searched.find(mark)
            while at >= 0 and len(places) < MAX_PLACES:
                places.append(at)
                at = searched.find(mark, at + 1)
        return places

    def digit_runs(self) -> list[tuple[int, int]]:
        """Return where runs of nine digits and more start, and how many they have; at most `MAX_PLACES`."""
        if self._runs is None:
            runs = zip(_DIGITS.finditer(self.text), range(MAX_PLACES), strict=False)
            counted = [(run.start(), _count(run[0])) for run, _ in runs]
            self._runs = [(start, digits) for start, digits in counted if digits >= _MIN_DIGITS]
        return self._runs


class Scanner:
    """Looks for what a catalogue says texts may hold.

    Parameters
    ----------
    catalogue
        Whose section ``[content]`` holds the patterns.

    Attributes
    ----------
    content
        The section it goes by.

    Examples
    --------
    >>> from safetydrift.formats.catalogue_file import load_catalogue
    >>> scanner = Scanner(load_catalogue())
    >>> scanner.scan("paid from DE89 3704 0044 0532 0130 00").reasons()
    ('holds 1 IBAN',)
    >>> scanner.scan("the meeting is at noon").level
    'none'
    """

    __slots__ = (
        "_compiled",
        "_exact",
        "_folded",
        "_led_by",
        "_nothing",
        "_numbers",
        "_rank",
        "_top",
        "content",
    )

    def __init__(self, catalogue: Catalogue) -> None:
        content = self.content = catalogue.content
        self._rank = {level: rank for rank, level in enumerate(content.levels)}
        self._top = len(content.levels) - 1
        self._nothing = Findings(content.levels[0])
        self._compiled: dict[str, re.Pattern[str]] = {}
        self._led_by: dict[tuple[bool, str], list[int]] = {}
        self._numbers = [n for n, pattern in enumerate(content.patterns) if pattern.digits]
        for n, pattern in enumerate(content.patterns):
            for mark in pattern.marks:
                self._led_by.setdefault((pattern.fold, mark), []).append(n)
        self._exact = Marks([mark for fold, mark in self._led_by if not fold])
        phones = _PHONE_MARKS if content.phone_numbers else ()
        self._folded = Marks(
            [mark for fold, mark in self._led_by if fold] + list(phones), content.stems, signs=False
        )

    def scan(self, text: str) -> Findings:
        """Return what a text holds; of one longer than `MAX_SCANNED` only the beginning and the end are looked at."""
        if len(text) <= MAX_SCANNED:
            return self._scan(text)
        head, tail = self._scan(text[:HEAD]), self._scan(text[-TAIL:])
        shift = len(text) - TAIL
        moved = [replace(item, start=item.start + shift, end=item.end + shift) for item in tail.items]
        return self._told([*head.items, *moved], complete=False)

    def _scan(self, text: str) -> Findings:
        text = unescaped(text)
        small = in_small_letters(text)
        exact, folded = self._exact.present(text), self._folded.present(small)
        digits = _DIGITS.search(text) is not None
        crowd = self.content.mail_addresses
        crowd = crowd if crowd and text.count("@") >= crowd else 0
        if not (exact or folded or digits or crowd):
            return self._nothing
        seen = ScannedText(text, small)
        digits = digits and bool(seen.digit_runs())
        found: list[Finding] = []
        complete = True
        for n in self._led(exact, folded, digits=digits):
            pattern = self.content.patterns[n]
            more, all_seen = self.finds(pattern, seen, found)
            found += more
            complete = complete and all_seen
        found += self._people(text, crowd, folded)
        return self._told(found, complete=complete) if found or not complete else self._nothing

    def _led(self, exact: set[str], folded: set[str], *, digits: bool) -> list[int]:
        """Return the positions of the patterns that something in a text leads to; the detectors come last."""
        led = set(self._numbers) if digits else set()
        for fold, marks in ((False, exact), (True, folded)):
            for mark in marks:
                led.update(self._led_by.get((fold, mark), ()))
        return sorted(led, key=lambda n: (bool(self.content.patterns[n].detector), n))

    def finds(
        self, pattern: ContentPattern, seen: ScannedText, before: Iterable[Finding] = ()
    ) -> tuple[list[Finding], bool]:
        """Return what one pattern finds, and whether it was tried at every place.

        Parameters
        ----------
        before
            What has been found already; a detector is not asked about it again.
        """
        found: list[Finding] = []
        places = seen.places(pattern)
        complete = len(places) < MAX_PLACES
        asked = 0
        for place in places:
            for match in self._matches(pattern, seen.small if pattern.fold else seen.text, place):
                spans: Iterable[tuple[int, int]] = [match.span(match.lastgroup or 0)]
                if pattern.detector:
                    if _covered((match.start(), match.end() + _BEYOND), before):
                        continue
                    asked += 1
                    if asked > MAX_WINDOWS:
                        return found, False
                    spans = detected(pattern.detector, seen.text, *match.span())
                found += self._accepted(pattern, seen, spans)
                if len(found) > MAX_FINDINGS:
                    return found, False
        return found, complete

    def _matches(self, pattern: ContentPattern, searched: str, place: int) -> Iterator[re.Match[str]]:
        expression = self._compiled.get(pattern.regex)
        if expression is None:
            expression = self._compiled[pattern.regex] = compiled(pattern.regex)
        if pattern.digits:
            yield from expression.finditer(searched, max(place - _RUN_BEFORE, 0), place + _RUN_AFTER)
        else:
            match = expression.match(searched, place)
            if match is not None:
                yield match

    def _accepted(
        self, pattern: ContentPattern, seen: ScannedText, spans: Iterable[tuple[int, int]]
    ) -> Iterator[Finding]:
        """Yield a finding for every span whose value is a real one."""
        for start, end in spans:
            value = seen.text[start:end]
            if not value or (pattern.rank == self._top and self._stands_for_one(value)):
                continue
            close = seen.small[max(start - _NEAR_BEFORE, 0) : end + _NEAR_AFTER]
            if pattern.near and not any(word in close for word in pattern.near):
                continue
            size = holds(pattern.check, value) if pattern.check else len(value)
            if size:
                yield Finding(
                    pattern.what, pattern.level, start, start + size, pattern.many or f"{pattern.what}s"
                )

    def _stands_for_one(self, value: str) -> bool:
        """Return whether a value only stands for a secret: masked, or a placeholder."""
        return is_hidden(value) or value in self.content.placeholders

    def _people(self, text: str, crowd: int, folded: set[str]) -> list[Finding]:
        """Return a finding if a text lists many people."""
        content = self.content
        spans = {}
        if crowd:
            spans["list of mail addresses"] = mail_addresses(text, crowd, MAX_PLACES)
        few = content.phone_numbers
        if few and (not folded.isdisjoint(_PHONE_MARKS) or text.count("+") >= few):
            spans["list of phone numbers"] = phone_numbers(text, few)
        return [
            Finding(what, content.people, *span, what.replace("list", "lists"))
            for what, span in spans.items()
            if span is not None
        ]

    def _told(self, found: list[Finding], *, complete: bool) -> Findings:
        """Return the findings in the order of the text; of those that overlap the graver, then the longer one stays."""
        rank = self._rank
        found.sort(key=lambda item: (-rank[item.level], item.start - item.end, item.start))
        complete = complete and len(found) <= MAX_FINDINGS
        kept: list[Finding] = []
        for item in found[: 4 * MAX_FINDINGS]:
            if len(kept) < MAX_FINDINGS and not _covered((item.start, item.end), kept):
                kept.append(item)
        kept.sort(key=lambda item: item.start)
        level = max(kept, key=lambda item: rank[item.level]).level if kept else self._nothing.level
        return Findings(level, tuple(kept), complete=complete)


def in_small_letters(text: str) -> str:
    """Return a text in small letters, of the same length."""
    small = text.lower()
    # One letter, the capital I with a dot, would become two.
    return small if len(small) == len(text) else text.replace("\u0130", "I").lower()


def _count(run: str) -> int:
    return len(run) - run.count(" ") - run.count("-") - run.count(".")


def _covered(span: tuple[int, int], items: Iterable[Finding]) -> bool:
    """Return whether a span touches a finding."""
    start, end = span
    return any(item.start < end and start < item.end for item in items)
