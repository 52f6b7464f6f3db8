"""The words of a script, whatever its language: names, texts, signs; comments are left out.

The languages differ in few signs (`Syntax`), so one reader serves them all. It makes no claim to be exact: where it
loses its way (a text that does not end), it says so.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

NAME, TEXT, RAW, COMMAND, NUMBER, SIGN, LINE = "name", "text", "raw", "command", "number", "sign", "line"
"""Kinds of tokens: `TEXT` is a text in which variables are filled in, `RAW` one in which they are not, `COMMAND` one
that is run by a shell."""

_OPENING = {"(": ")", "[": "]", "{": "}", "<": ">"}
_SIGNS = (
    r"<=>|\.\.\.|\*\*=|\|\|=|&&=|->|::|=>|==|!=|=~|!~|<=|>=|>>|<<|\|&|\|\||&&"
    r"|\+=|\.=|-=|\*=|/=|\.\.|:=|<-|\?\.|&\.|\S"
)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|x\{([0-9a-fA-F]{1,5})\}|([0-3]?[0-7]{1,2})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "e": " ", "a": " ", "\n": ""}


class Token:
    """One token.

    Attributes
    ----------
    kind, text
        What it is, and its text; of a text, what stands between the quotes.
    glued
        Whether nothing stands between it and the token before.
    """

    __slots__ = ("glued", "kind", "text")

    def __init__(self, kind: str, text: str, *, glued: bool) -> None:
        self.kind, self.text, self.glued = kind, text, glued

    def is_sign(self, *signs: str) -> bool:
        """Return whether it is one of these signs."""
        return self.kind == SIGN and self.text in signs


class Syntax:
    """By which signs a language is told apart.

    Parameters
    ----------
    comment
        A regular expression of the comments that end with their line.
    name
        A regular expression of its names, sigils included.
    raw, text
        The quotes of texts without and with variables in them.
    long
        Pairs of longer quotes, whose texts have no variables, tried first.
    block
        The signs around comments that may go on over lines; empty if there are none.
    quoting
        Whether it has words like ``qq{}`` of Perl, or signs like ``%q{}`` of Ruby: ``"perl"``, ``"ruby"`` or empty.
    heredocs
        Whether ``<<END`` starts a text.
    patterns
        Whether ``/.../`` is a regular expression where no value stands before it.
    commands
        Whether text in backticks is run.
    """

    __slots__ = (
        "_pattern",
        "_regex",
        "block",
        "commands",
        "heredocs",
        "long",
        "patterns",
        "quoting",
        "raw",
        "text",
    )

    def __init__(
        self,
        comment: str,
        name: str = r"[A-Za-z_]\w*",
        *,
        raw: str = "'",
        text: str = '"',
        long: tuple[tuple[str, str], ...] = (),
        block: tuple[str, str] = ("", ""),
        quoting: str = "",
        heredocs: bool = False,
        patterns: bool = False,
        commands: bool = False,
    ) -> None:
        self.raw, self.text, self.long, self.block = raw, text, long, block
        self.quoting, self.heredocs, self.patterns, self.commands = quoting, heredocs, patterns, commands
        self._pattern = (
            rf"(?P<gap>[ \t\r\f\v]+|\\\r?\n|{comment})|(?P<line>\n)|(?P<name>{name})"
            rf"|(?P<number>\d[\w]*(?:\.\d\w*)?)|(?P<sign>{_SIGNS})"
        )
        self._regex: re.Pattern[str] | None = None

    @property
    def regex(self) -> re.Pattern[str]:
        """The expression of one token, compiled when the language is first met."""
        if self._regex is None:
            self._regex = re.compile(self._pattern, re.DOTALL)
        return self._regex


class Lexer:
    """Cuts a text into tokens; `lost` once it has lost its way."""

    __slots__ = ("_at", "_block", "_pending", "_syntax", "_text", "lost")

    def __init__(self, text: str, syntax: Syntax) -> None:
        self._text, self._syntax = text, syntax
        self._at = 0
        self._block = syntax.block[0]
        self._pending: list[str] = []
        self.lost = False

    def tokens(self) -> Iterator[Token]:
        """Give the tokens in order."""
        text, regex = self._text, self._syntax.regex
        glued, before = False, Token(LINE, "\n", glued=False)
        while self._at < len(text):
            if self._block and text.startswith(self._block, self._at) and self._skips():
                glued = False
                continue
            token = self._special(before, glued=glued)
            if token is None:
                match = regex.match(text, self._at)
                if match is None:  # a sign that is a space to some but not to us
                    self._at += 1
                    continue
                self._at = match.end()
                kind = match.lastgroup or SIGN
                if kind == "gap":
                    glued = False
                    continue
                token = Token(kind, match[0], glued=glued)
                if kind == LINE and self._pending:
                    yield from self._bodies()
            yield token
            before, glued = token, True

    def _skips(self) -> bool:
        """Pass over the comment that starts here; one that does not end is none, and no other is looked for."""
        closing = self._syntax.block[1]
        end = self._text.find(closing, self._at + len(self._block))
        if end < 0:
            self._block = ""
            return False
        self._at = end + len(closing)
        return True

    # -- texts --------------------------------------------------------------------------------------------

    def _special(self, before: Token, *, glued: bool) -> Token | None:
        """Return the text that starts here, if one does."""
        syntax, text, at = self._syntax, self._text, self._at
        for opening, closing in syntax.long:
            if text.startswith(opening, at):
                return self._until(closing, at + len(opening), RAW, glued=glued)
        sign = text[at]
        if sign in syntax.raw or sign in syntax.text:
            return self._quoted(sign, at + 1, TEXT if sign in syntax.text else RAW, glued=glued)
        if sign == "`" and syntax.commands:
            return self._quoted(sign, at + 1, COMMAND, glued=glued)
        if sign == "<" and syntax.heredocs:
            return self._heredoc(glued=glued)
        return self._pattern(before, glued=glued)

    def _pattern(self, before: Token, *, glued: bool) -> Token | None:
        """Return the regular expression or quoted word that starts here, if one does."""
        syntax = self._syntax
        if self._text[self._at] == "/" and syntax.patterns and not _has_value(before):
            end = _end_of_pattern(self._text, self._at + 1)
            if end > 0:
                self._at = end
                return Token(NUMBER, "0", glued=glued)
        if syntax.quoting and not (glued and before.kind in {NAME, NUMBER}):
            return self._quote_word(before, glued=glued)
        return None

    def _until(self, closing: str, start: int, kind: str, *, glued: bool) -> Token:
        end = self._text.find(closing, start)
        if end < 0:
            self.lost = True
            end = len(self._text)
        self._at = end + len(closing)
        return Token(kind, self._text[start:end], glued=glued)

    def _quoted(self, quote: str, start: int, kind: str, *, glued: bool) -> Token:
        text, end = self._text, start
        while end < len(text) and text[end] != quote:
            end += 2 if text[end] == "\\" else 1
        if end >= len(text):
            self.lost = True
        self._at = end + 1
        inside = text[start:end]
        return Token(kind, inside if kind == RAW else unescaped(inside), glued=glued)

    def _quote_word(self, before: Token, *, glued: bool) -> Token | None:
        match = _QUOTE_WORDS[self._syntax.quoting].match(self._text, self._at)
        if match is None or before.is_sign("->") or (match[1] in {"", None} and _has_value(before)):
            return None
        word, opening = match[1] or "Q", match[2]
        if self._syntax.quoting == "perl" and opening == "=":
            return None
        inside, end = _bracketed(self._text, match.end(), opening)
        if end < 0:
            self.lost = True
            end = len(self._text)
        self._at = end
        if word in {"s", "tr", "y", "m", "qr", "r"}:
            if word in {"s", "tr", "y"}:
                self._at = _bracketed(self._text, end, opening)[1] if opening not in _OPENING else end
                self._at = self._at if self._at > 0 else len(self._text)
            return Token(NUMBER, "0", glued=glued)
        kind = {"qq": TEXT, "Q": TEXT, "qx": COMMAND, "x": COMMAND}.get(word, RAW)
        return Token(kind, inside, glued=glued)

    def _heredoc(self, *, glued: bool) -> Token | None:
        match = _HEREDOC.match(self._text, self._at)
        if match is None:
            return None
        self._at = match.end()
        self._pending.append(match[2])
        return Token(SIGN, "", glued=glued)

    def _bodies(self) -> Iterator[Token]:
        for word in self._pending:
            start, end = self._at, self._at
            while end < len(self._text):
                line, _, _ = self._text[end : end + 4096].partition("\n")
                if line.strip().rstrip(";,)") == word:
                    break
                newline = self._text.find("\n", end)
                end = len(self._text) if newline < 0 else newline + 1
            self._at = self._text.find("\n", end)
            self._at = len(self._text) if self._at < 0 else self._at
            yield Token(TEXT, self._text[start:end], glued=False)
        self._pending = []


_QUOTE_WORDS = {
    "perl": re.compile(r"(q|qq|qx|qw|qr|m|s|tr|y)[ \t]{0,8}([^\w\s,;=)}])"),
    "ruby": re.compile(r"%([qQwWixr]?)([(\[{<|!/])"),
}
_HEREDOC = re.compile(r"<<<?([~-]?)[\"']?([A-Z_][A-Z_0-9]*)[\"']?", re.IGNORECASE)


def unescaped(text: str) -> str:
    """Return what the inside of a text with escapes stands for."""
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(match: re.Match[str]) -> str:
    code = match[1] or match[2]
    number = int(code, 16) if code else int(match[3], 8) if match[3] else 0
    if number:
        return chr(number) if number < 0xD800 else " "  # noqa: PLR2004
    return _ESCAPED.get(match[4], match[4]) if match[4] else " "


def _has_value(token: Token) -> bool:
    """Return whether a token ends a value, so that a slash after it divides."""
    if token.kind == NAME:
        return token.text not in {
            "if",
            "unless",
            "and",
            "or",
            "not",
            "split",
            "grep",
            "return",
            "when",
            "while",
            "print",
        }
    return token.kind in {NUMBER, TEXT, RAW} or token.is_sign(")", "]", "}")


def _end_of_pattern(text: str, at: int) -> int:
    """Return where a regular expression ends that starts here; -1 if not on this line."""
    while at < len(text) and text[at] != "\n":
        if text[at] == "/":
            return at + 1
        at += 2 if text[at] == "\\" else 1
    return -1


def _bracketed(text: str, start: int, opening: str) -> tuple[str, int]:
    """Return what stands up to the closing bracket (or the same sign again), and where it ends; -1 if nowhere."""
    closing = _OPENING.get(opening, opening)
    depth, at = 1, start
    while at < len(text):
        sign = text[at]
        if sign == "\\":
            at += 1
        elif sign == closing:
            depth -= 1
            if depth == 0:
                return text[start:at], at + 1
        elif sign == opening:
            depth += 1
        at += 1
    return text[start:], -1
