"""The words of shell text: quotes, expansions and the commands nested in them.

Nothing is expanded. A word keeps the text of its expansions and is marked as `Computed`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_NESTING = 24

_BLANK = re.compile(r"(?:[ \t\r\f\v]|\\\n)+")
_PLAIN = re.compile(r"[^\s'\"\\$`;&|<>()]+")
_IN_QUOTES = re.compile(r"[^\"\\$`]+")
_IN_HEREDOC = re.compile(r"[^\\$`]+")
_IN_BRACES = re.compile(r"[^}'\"\\$`]+")
_IN_QUOTED_BRACES = re.compile(r"[^}\"\\$`]+")
_IN_ARITHMETIC = re.compile(r"[^()$`]+")
_TO_APOSTROPHE = re.compile(r"(?:[^'\\]|\\.)*", re.DOTALL)
_TO_BACKTICK = re.compile(r"(?:[^`\\]|\\.)*", re.DOTALL)
_BACKTICK_ESCAPE = re.compile(r"\\([\\$`])")
_VARIABLE = re.compile(r"\$(?:\w+|[@*#?$!-])")


class UnreadableError(ValueError):
    """Shell text that cannot be followed; the message says why."""


class Computed(str):
    """A word that the shell completes when it runs the command; the text is as written."""

    __slots__ = ()


class WordScanner(ABC):
    """Reads words at a moving position; how the commands nested in them are read is left to a subclass."""

    __slots__ = ("at", "computed", "depth", "text")

    def __init__(self, text: str, depth: int) -> None:
        self.text, self.depth = text, depth
        self.at = 0
        self.computed = False

    @abstractmethod
    def commands(self, closer: str) -> None:
        """Read commands from here through the closing character."""

    @abstractmethod
    def inner(self, text: str) -> None:
        """Read commands from another text."""

    @abstractmethod
    def pay(self, characters: int) -> None:
        """Account for characters to be read; refuse when it has been too many."""

    def enter(self) -> None:
        """Go one level deeper; whoever enters lowers `depth` again."""
        self.depth += 1
        if self.depth > _MAX_NESTING:
            raise UnreadableError(f"more than {_MAX_NESTING} levels of nesting")

    def back_to(self, start: int) -> None:
        """Read again from an earlier place; paid for, since nested misreadings would multiply."""
        self.pay(self.at - start)
        self.at = start

    def skip_blanks(self) -> None:
        """Go to the next character that is no blank."""
        match = _BLANK.match(self.text, self.at)
        if match is not None:
            self.at = match.end()

    def skip_comment(self) -> None:
        """Go to the end of the line."""
        end = self.text.find("\n", self.at)
        self.at = len(self.text) if end < 0 else end

    def word(self) -> str:
        """Read a word and remove its quotes; if the position does not move, there is none here."""
        parts: list[str] = []
        self.computed = False
        while self.at < len(self.text):
            plain = _PLAIN.match(self.text, self.at)
            if plain is not None:
                self.at = plain.end()
                parts.append(plain[0])
                continue
            read = _SPECIAL.get(self.text[self.at])
            part = None if read is None else read(self)
            if part is None:
                break
            parts.append(part)
        word = "".join(parts)
        return Computed(word) if self.computed else word

    def heredoc(self) -> None:
        """Read the whole text as an unquoted here-document, for the commands nested in it."""
        self._quoted("", _IN_HEREDOC)

    def arithmetic(self) -> bool:
        """Read through the ``))`` of an arithmetic expression; False if it turns out to be none."""
        self.enter()
        closed = self._to_double_parenthesis()
        self.depth -= 1
        return closed

    # -- quotes -----------------------------------------------------------------------------------------

    def _escaped(self) -> str:
        self.at += 2
        return self.text[self.at - 1 : self.at].replace("\n", "")

    def _single(self) -> str:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise UnreadableError("a quote is not closed")
        start, self.at = self.at + 1, end + 1
        return self.text[start:end]

    def _double(self) -> str:
        self.at += 1
        return self._quoted('"', _IN_QUOTES)

    def _quoted(self, closer: str, plain: re.Pattern[str]) -> str:
        """Read text in which only expansions count, through its closer or, without one, to the end."""
        parts: list[str] = []
        while self.at < len(self.text):
            match = plain.match(self.text, self.at)
            if match is not None:
                parts.append(match[0])
                self.at = match.end()
                continue
            char = self.text[self.at]
            if char == closer:
                self.at += 1
                return "".join(parts)
            parts.append(self._in_quotes(char))
        if closer:
            raise UnreadableError("a quote is not closed" if closer == '"' else f"{closer!r} is missing")
        return "".join(parts)

    def _in_quotes(self, char: str) -> str:
        if char == "\\":
            self.at += 2
            escaped = self.text[self.at - 1 : self.at]
            return "" if escaped == "\n" else escaped if escaped in '$`"\\' else char + escaped
        if char == "$":
            return self._dollar(quoted=True)
        if char == "`":
            return self._backticks()
        return self._single() if char == "'" else self._double()

    # -- expansions -------------------------------------------------------------------------------------

    def _dollar(self, *, quoted: bool = False) -> str:
        start, text = self.at, self.text
        if text.startswith("$((", start):
            self.at += 3
            if self.arithmetic():
                self.computed = True
                return text[start : self.at]
            self.back_to(start)
        if text.startswith("$(", start):
            return self._substitution()
        if text.startswith("${", start):
            return self._braces(_IN_QUOTED_BRACES if quoted else _IN_BRACES)
        if not quoted and text.startswith(("$'", '$"'), start):
            self.at += 1
            return self._special_quote()
        variable = _VARIABLE.match(text, start)
        self.at = variable.end() if variable else start + 1
        self.computed = self.computed or variable is not None
        return text[start : self.at]

    def _special_quote(self) -> str:
        """Read ``$'...'`` or ``$"..."``; the escapes of the former can spell anything: it is computed."""
        if self.text[self.at] == '"':
            return self._double()
        inside = self._enclosed(_TO_APOSTROPHE, "a quote is not closed")
        self.computed = True
        return inside

    def _enclosed(self, inside: re.Pattern[str], problem: str) -> str:
        """Read between two marks of the same kind, of which the first stands here."""
        match = inside.match(self.text, self.at + 1)
        if match is None or match.end() >= len(self.text):
            raise UnreadableError(problem)
        self.at = match.end() + 1
        return match[0]

    def _process(self) -> str | None:
        return self._substitution() if self.text.startswith("(", self.at + 1) else None

    def _substitution(self) -> str:
        start = self.at
        self.at += 2
        self.commands(")")
        self.computed = True
        return self.text[start : self.at]

    def _braces(self, plain: re.Pattern[str]) -> str:
        start = self.at
        self.at += 2
        self.enter()
        self._quoted("}", plain)
        self.depth -= 1
        self.computed = True
        return self.text[start : self.at]

    def _backticks(self) -> str:
        start = self.at
        inside = self._enclosed(_TO_BACKTICK, "a backtick is not closed")
        self.inner(_BACKTICK_ESCAPE.sub(r"\1", inside))
        self.computed = True
        return self.text[start : self.at]

    def _to_double_parenthesis(self) -> bool:
        depth = 0
        while self.at < len(self.text):
            match = _IN_ARITHMETIC.match(self.text, self.at)
            if match is not None:
                self.at = match.end()
                continue
            char = self.text[self.at]
            if char == ")" and depth == 0:
                self.at += 2
                return self.text.startswith("))", self.at - 2)
            if char == "$":
                self._dollar(quoted=True)
            elif char == "`":
                self._backticks()
            else:
                depth += 1 if char == "(" else -1
                self.at += 1
        return False


_SPECIAL: dict[str, Callable[[WordScanner], str | None]] = {
    "'": WordScanner._single,  # noqa: SLF001  # the table is part of the class
    '"': WordScanner._double,  # noqa: SLF001
    "\\": WordScanner._escaped,  # noqa: SLF001
    "$": WordScanner._dollar,  # noqa: SLF001
    "`": WordScanner._backticks,  # noqa: SLF001
    "<": WordScanner._process,  # noqa: SLF001
    ">": WordScanner._process,  # noqa: SLF001
}
