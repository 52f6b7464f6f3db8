"""What a catalogue says about texts: patterns of secrets, of identifiers, of words that call data sensitive."""

from __future__ import annotations

from safetydrift.effects.catalogue.globs import Globs
from safetydrift.effects.content.identifiers import CHECKS
from safetydrift.effects.content.patterns import literal, require_bounded
from safetydrift.effects.content.secrets import DETECTORS
from safetydrift.errors import CatalogueError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from safetydrift.effects.catalogue.plain import Entry
    from safetydrift.effects.catalogue.scales import Scales

_MIN_DIGITS = 9
_LISTS = ("placeholders", "stems", "patterns")


class ContentPattern:
    """A pattern of text that tells what the text holds.

    Attributes
    ----------
    what, many
        What is found, in words: one of them, and several of them.
    level
        The level of data that it means, and its rank on that scale.
    marks
        Literal beginnings of a find: a text without any of them is not looked at, and the expression is tried only
        where a mark stands. In small letters if `fold`.
    fold
        Whether the case of letters is ignored.
    digits
        Instead of marks: looked for around every run of at least so many digits. 0 where marks lead.
    regex
        A regular expression whose work is bounded (`require_bounded`). The group ``value``, if there is one, is the
        secret itself. With a detector it only says where the detector has to look.
    detector
        A detector of the library detect-secrets; empty where the expression decides alone.
    near
        Words in small letters, one of which has to stand close by.
    check
        What the value has to pass besides, one of `CHECKS`; empty for nothing.
    """

    __slots__ = (
        "check",
        "detector",
        "digits",
        "fold",
        "level",
        "many",
        "marks",
        "near",
        "rank",
        "regex",
        "what",
    )

    def __init__(self, entry: Entry, scales: Scales) -> None:
        self.what = entry.text("what", required=True)
        entry.where = f"{entry.where} ({self.what})"
        self.many = entry.text("many") or f"{self.what}s"
        self.level = entry.text("level", required=True)
        levels = scales.levels("data")
        if self.level not in levels[1:]:
            raise CatalogueError(
                f"{entry.where}: level is one of {', '.join(levels[1:])}, got {self.level!r}"
            )
        self.rank = levels.index(self.level)
        self.fold = entry.flag("fold")
        self.digits = entry.count("digits")
        self._read_expression(entry)
        self.detector = _known(entry, "detector", DETECTORS)
        self.near = tuple([word.lower() for word in entry.texts("near")])
        self.check = _known(entry, "check", CHECKS)
        entry.text("note")
        entry.done()

    def _read_expression(self, entry: Entry) -> None:
        """Read words, or an expression with what leads to it."""
        words, marks, regex = entry.texts("words"), entry.texts("marks"), entry.text("regex")
        if bool(words) == bool(regex):
            raise CatalogueError(f"{entry.where}: needs either 'words' or 'regex'")
        if (marks or words) and self.digits:
            raise CatalogueError(f"{entry.where}: digits take the place of marks")
        if not (marks or words or self.digits):
            raise CatalogueError(
                f"{entry.where}: lacks 'marks', one of which every find begins with, or 'digits'"
            )
        if self.digits and self.digits < _MIN_DIGITS:
            raise CatalogueError(f"{entry.where}: digits: at least {_MIN_DIGITS}, got {self.digits}")
        if words:
            marks, regex = words, f"(?:{'|'.join([literal(self._folded(word)) for word in words])})(?!\\w)"
        else:
            try:
                require_bounded(regex)
            except ValueError as error:
                raise CatalogueError(f"{entry.where}: regex: {error}") from error
        self.marks = tuple([self._folded(mark) for mark in marks])
        self.regex = regex

    def _folded(self, text: str) -> str:
        return text.lower() if self.fold else text


class Content:
    """What texts may hold.

    Attributes
    ----------
    patterns
        In the order they are tried.
    placeholders
        Globs for values that only stand for a secret; the case of letters is ignored.
    stems
        What many marks have in common; they only make the search for marks faster.
    mail_addresses, phone_numbers
        From how many distinct ones on a text is a list of people; 0 where that is not looked at.
    people
        The level of data of a list of people, and its rank.
    """

    __slots__ = ("levels", "mail_addresses", "patterns", "people", "phone_numbers", "placeholders", "stems")

    def __init__(self, entry: Entry | None, scales: Scales) -> None:
        self.levels = scales.levels("data") if "data" in scales.names else ("none",)
        self.placeholders = Globs(entry.texts("placeholders") if entry else (), fold=True)
        self.stems = tuple(entry.texts("stems")) if entry else ()
        self.mail_addresses = entry.count("mail_addresses") if entry else 0
        self.phone_numbers = entry.count("phone_numbers") if entry else 0
        self.people = self.levels[-1]
        self.patterns: tuple[ContentPattern, ...] = ()
        if entry is None:
            return
        self.people = entry.text("people") or self.people
        if self.people not in self.levels:
            raise CatalogueError(f"{entry.where}: people: no level {self.people!r} of data")
        self.patterns = tuple([ContentPattern(part, scales) for part in entry.parts("patterns")])
        entry.done()


def merged_content(base: dict[str, Any], upper: dict[str, Any]) -> dict[str, Any]:
    """Return the content section with additions on top: their lists come first, their numbers replace those below."""
    return base | upper | {key: [*upper.get(key, []), *base.get(key, [])] for key in _LISTS}


def _known(entry: Entry, key: str, known: dict[str, Any]) -> str:
    name = entry.text(key)
    if name and name not in known:
        raise CatalogueError(f"{entry.where}: unknown {key} {name!r}; known: {', '.join(sorted(known))}")
    return name
