"""Regular expressions whose work is bounded, and one expression that finds which of many words a text holds.

Texts come from anybody, so an expression may not be one that some text makes arbitrarily slow. Python's engine
backtracks; what it can try from one place is at most the product of the choices an expression leaves open: how often
a repetition is taken, which alternative is. Patterns of the catalogue must keep that product small, which is read off
the expression before it is ever used. Repetitions without an upper end and references back are refused.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_CHOICES = 8192
"""How many ways through an expression there may be from one place in the text."""
MAX_REPEATS = 8192
"""The highest upper end of a repetition."""
MAX_EXPRESSION = 2000
"""Longer expressions are refused, in characters."""

_TOKEN = re.compile(
    r"""
      (?P<escape> \\ (?: [dDwWsSbBntr] | [^\w\s] ) )
    | (?P<set> \[ \^?+ \]?+ (?: \\[dDwWsSntr] | \\[^\w\s] | [^\]\\\[] )* \] )
    | (?P<open> \( (?: \?: | \?> | \?= | \?! | \?<= | \?<! | \?P<value> ) )
    | (?P<close> \) )
    | (?P<bar> \| )
    | (?P<repeat> (?: \{ (?P<least> \d{1,4} ) (?P<upto> , (?P<most> \d{1,4} ) )? \} | \? ) (?P<manner> [?+]? ) )
    | (?P<plain> [^\\\[\]{}()|*+?] )
    """,
    re.VERBOSE,
)
_RANGE = re.compile(r"(\\?.)-(\\?[^\]])", re.DOTALL)
_LOOKS = frozenset({"(?=", "(?!", "(?<=", "(?<!"})


class _Group:
    """A group being read: the choices of its finished alternatives, of the current one, and of its last part."""

    __slots__ = ("choices", "finished", "last", "look")

    def __init__(self, *, look: str = "") -> None:
        self.finished, self.choices, self.last, self.look = 0, 1, 0, look

    def add(self, choices: int) -> None:
        """Add a part with so many ways through it."""
        self.choices *= max(self.last, 1)
        self.last = choices

    def repeat(self, least: int, most: int, manner: str) -> None:
        """Repeat the last part."""
        if not self.last:
            raise ValueError("a repetition of nothing")
        if least > most or not 0 < most <= MAX_REPEATS:
            raise ValueError(f"a repetition from {least} to {most} times")
        inner = self.last
        if manner == "+":
            ways = inner * most if inner > 1 else 1
        else:
            ways = (most - least + 1) * (inner**most if inner > 1 else 1)
        self.choices *= ways
        self.last = 0

    def next_alternative(self) -> None:
        self.finished += self.choices * max(self.last, 1)
        self.choices, self.last = 1, 0

    def total(self) -> int:
        return self.finished + self.choices * max(self.last, 1)


def require_bounded(regex: str) -> int:
    """Check that an expression is one whose work is bounded.

    Returns
    -------
    int
        How many ways through it there are at most from one place in a text.

    Raises
    ------
    ValueError
        If it is not, with the reason in words.
    """
    if len(regex) > MAX_EXPRESSION:
        raise ValueError(f"has more than {MAX_EXPRESSION} characters")
    groups, position = [_Group()], 0
    values = 0
    while position < len(regex):
        token = _TOKEN.match(regex, position)
        if token is None:
            raise ValueError(f"cannot take {regex[position : position + 12]!r}: {_REFUSED}")
        values += token["open"] == "(?P<value>"
        _take(token, groups)
        position = token.end()
        if groups[-1].choices * groups[-1].last > MAX_CHOICES or groups[-1].choices > MAX_CHOICES:
            raise ValueError(
                f"leaves more than {MAX_CHOICES} choices open; shorten or nest less, or use {{m,n}}+"
            )
    if len(groups) != 1:
        raise ValueError("a group is not closed")
    if values > 1:
        raise ValueError("has more than one group 'value'")
    if groups[0].total() > MAX_CHOICES:
        raise ValueError(f"leaves more than {MAX_CHOICES} choices open")
    return groups[0].total()


_REFUSED = (
    "repetitions need an upper end ({0,40} instead of *), groups are (?:..), (?>..), (?P<value>..) or look around, "
    "and there are no references back"
)


def _take(token: re.Match[str], groups: list[_Group]) -> None:
    """Account for one token."""
    kind = token.lastgroup if token["repeat"] is None else "repeat"
    if kind == "open":
        groups.append(_Group(look=token["open"]))
    elif kind == "close":
        _close(groups)
    elif kind == "bar":
        groups[-1].next_alternative()
    elif kind == "repeat":
        groups[-1].repeat(*_ends(token))
    else:
        if kind == "set":
            _check_set(token["set"])
        if token[0] in {"^", "$"}:
            raise ValueError("patterns stand anywhere in a text: no '^' or '$'")
        groups[-1].add(0 if token[0] in {r"\b", r"\B"} else 1)


def _ends(token: re.Match[str]) -> tuple[int, int, str]:
    if token["least"] is None:
        return 0, 1, token["manner"]
    least = int(token["least"])
    return least, int(token["most"]) if token["upto"] else least, token["manner"]


def _close(groups: list[_Group]) -> None:
    if len(groups) == 1:
        raise ValueError("a group is closed that was not opened")
    group = groups.pop()
    looks_back = group.look in {"(?<=", "(?<!"}
    if looks_back and group.total() != 1:
        raise ValueError("what looks back has to be of one length")
    # What looks around takes nothing and cannot be repeated; as a part it only adds its own choices.
    if group.look in _LOOKS:
        groups[-1].add(0)
        groups[-1].choices *= group.total()
    else:
        groups[-1].add(group.total())


def _check_set(text: str) -> None:
    inside = text[1:-1].removeprefix("^")
    if re.search(r"--|&&|\|\||~~", inside):
        raise ValueError(f"the set {text!r} has doubled signs, which may come to mean something else")
    for low, high in _RANGE.findall(inside):
        low_sign, high_sign = low[-1], high[-1]
        named = (len(low) > 1 and low_sign.isalpha()) or (len(high) > 1 and high_sign.isalpha())
        if named or low_sign > high_sign:
            raise ValueError(f"the set {text!r} has a range that is none")


def literal(text: str) -> str:
    """Return an expression that matches a text as it is."""
    return re.escape(text)


class Marks:
    """Which of many literal texts occur: one pass for the rare signs in them, few plain searches for the rest.

    A regular expression over many words is slow because most of their first letters are everywhere. Most marks of
    secrets have a sign that is rare in ordinary text (an underscore, a capital); the expression looks for that sign
    and then at what stands around it.

    Parameters
    ----------
    marks
        The texts.
    stems
        Texts that many marks have a part of: such a mark is only looked for where its stem occurs.
    signs
        Whether signs lead; otherwise only stems do.
    """

    __slots__ = ("_alike", "_find", "_searched")

    def __init__(self, marks: Iterable[str], stems: Iterable[str] = (), *, signs: bool = True) -> None:
        led: dict[str, list[tuple[str, str, str]]] = {}
        by_stem: dict[str, list[str]] = {}
        known = tuple(stems)
        for mark in sorted(set(marks)):
            at = _rarest(mark) if signs else -1
            if at >= 0:
                led.setdefault(mark[at], []).append((mark[:at], mark[at + 1 :], mark))
            else:
                stem = next((stem for stem in known if stem in mark), mark)
                by_stem.setdefault(stem, []).append(mark)
        order: list[str] = []
        expression = "|".join([_around(sign, parts, order) for sign, parts in led.items()])
        self._find = re.compile(expression).finditer if led else None
        self._alike = [(), *[_alike(mark, led) for mark in order]]
        self._searched = tuple([(stem, tuple(some)) for stem, some in by_stem.items()])

    def present(self, text: str) -> set[str]:
        """Return the marks that may occur in a text: all that do, and perhaps a few more."""
        found: set[str] = set()
        if self._find:
            for number in {match.lastindex for match in self._find(text)}:
                found.update(self._alike[number or 0])
        for stem, marks in self._searched:
            if stem in text:
                found.update([mark for mark in marks if mark in text])
        return found


def _rarest(mark: str) -> int:
    """Return where the sign stands that leads to a mark: the one that is rarest in ordinary texts; -1 for none."""
    for signs in ("$&?_=", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "-", ":/", "."):
        for at, sign in enumerate(mark):
            if sign in signs:
                return at
    return -1


def _around(sign: str, parts: list[tuple[str, str, str]], order: list[str]) -> str:
    """Return an expression that takes a sign and looks whether a mark stands around it, in one group per mark.

    The marks are appended to `order` as their groups are numbered.
    """
    by_letter: dict[str, list[str]] = {}
    for before, after, mark in sorted(parts, key=lambda part: part[0][-1:]):
        order.append(mark)
        look = f"(?<={re.escape(before + sign)})" if len(before) > 1 else ""
        by_letter.setdefault(before[-1:], []).append(f"{look}(?={re.escape(after)}())")
    alone = by_letter.pop("", [])
    looks = [f"(?<={re.escape(letter + sign)})(?:{'|'.join(some)})" for letter, some in by_letter.items()]
    if looks:
        # One look at the letter before, whichever mark it is, turns most signs away.
        letters = "".join(map(re.escape, by_letter))
        alone.append(f"(?<=[{letters}]{re.escape(sign)})(?:{'|'.join(looks)})")
    return f"{re.escape(sign)}(?:{'|'.join(alone)})"


def _alike(mark: str, led: dict[str, list[tuple[str, str, str]]]) -> tuple[str, ...]:
    """Return the marks that may stand where one was found: the others that agree with it around the same sign."""
    parts = led[mark[_rarest(mark)]]
    before, after = next((one, other) for one, other, name in parts if name == mark)
    return tuple(
        [
            name
            for one, other, name in parts
            if (one.endswith(before) or before.endswith(one))
            and (other.startswith(after) or after.startswith(other))
        ]
    )
