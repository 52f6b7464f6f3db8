"""The words of SQL.

Nobody says which database a text is for, so strings, names and comments of all dialects are known. Where standard SQL
and MySQL differ in where a string or comment ends, the text is cut both ways, and both are read.
"""

from __future__ import annotations

import re

from safetydrift.effects.expressions import compiled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

STRING, QUOTED = "'", '"'
"""What stands for a string, and for a name in quotes, among the key words."""
_STANDARD = compiled(
    r"""
    (?P<space> \s+ | --[^\n]*+ | /\*(?:[^*]|\*(?!/))*+\*/ )
    | (?P<escaped> [eE]'(?:[^'\\]|\\.|'')*+' )
    | (?P<string> (?:[nNxXbB]|[uU]&)?'(?:[^']|'')*+' )
    | (?P<heredoc> \$\w*+\$ )
    | (?P<name> "(?:[^"]|"")*+" | `(?:[^`]|``)*+` | \[[^\W\d][^\]\[(),'"\n]*+\] )
    | (?P<torn> ['"`] | /\* )
    | (?P<word> [^\W\d][\w$]*+ | @{1,2}\w++ | \#{1,2}\w++ | \d[\w.]*+ | \|\| | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_MYSQL = compiled(
    r"""
    (?P<space> \s+ | --(?=\s)[^\n]*+ | \#[^\n]*+ | /\*(?:[^*]|\*(?!/))*+\*/ )
    | (?P<escaped> [eEnNxXbB]?(?: '(?:[^'\\]|\\.|'')*+' | "(?:[^"\\]|\\.|"")*+" ) )
    | (?P<name> `(?:[^`]|``)*+` )
    | (?P<torn> ['"`] | /\* )
    | (?P<word> [^\W\d][\w$]*+ | @{1,2}\w++ | \d[\w.]*+ | \|\| | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_DIFFERS = re.compile(r"\\['\"]|#|--(?=\S)|/\*M?!")
_EXECUTED = re.compile(r"/\*M?!\d*+")
_TORN = re.compile(r"\w+|[;(),.*=\[\]]")
_END, _LOST = -1, -2
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


class Words:
    """The words of a text.

    Attributes
    ----------
    keys
        Each word in capitals if it may be a key word; else `STRING` or `QUOTED`.
    texts
        Each word, without quotes.
    whole
        Whether all quotes match; if they do not, the text is cut as if it had none.
    """

    __slots__ = ("keys", "texts", "whole")

    def __init__(self, text: str, pattern: re.Pattern[str]) -> None:
        self.keys: list[str] = []
        self.texts: list[str] = []
        self.whole = self._cut(text, pattern)
        if not self.whole:
            self.texts = _TORN.findall(text)
            self.keys = [word.upper() for word in self.texts]

    def _cut(self, text: str, pattern: re.Pattern[str]) -> bool:
        place = 0
        while place >= 0:
            place = self._cut_up_to_a_heredoc(text, pattern, place)
        return place == _END

    def _cut_up_to_a_heredoc(self, text: str, pattern: re.Pattern[str], place: int) -> int:
        """Cut a text from a place on; return the place behind the first text in dollars, or how it ended."""
        keys, texts = self.keys.append, self.texts.append
        for match in pattern.finditer(text, place):
            kind, found = match.lastgroup, match[0]
            if kind == "word":
                keys(found.upper())
                texts(found)
            elif kind == "heredoc":
                close = text.find(found, match.end())
                keys(STRING)
                texts(text[match.end() : close])
                return close + len(found) if close >= 0 else _LOST
            elif kind == "torn":
                return _LOST
            elif kind != "space":
                keys(QUOTED if kind == "name" else STRING)
                texts(_inside(found, escapes=kind == "escaped"))
        return _END


def _inside(found: str, *, escapes: bool) -> str:
    """Return what stands between the quotes of a name or a string."""
    quote = found[-1]
    start = 1 if quote == "]" else found.index(quote) + 1
    inner = found[start:-1].replace(quote * 2, quote)
    return _ESCAPE.sub(r"\1", inner) if escapes else inner


def readings(text: str) -> Iterator[Words]:
    """Yield the words of a text without comments; a second time where MySQL cuts it differently."""
    yield Words(text, _STANDARD)
    if _DIFFERS.search(text):
        yield Words(_opened(text), _MYSQL)


def _opened(text: str) -> str:
    """Return a text without the signs around comments that MySQL runs."""
    parts, done = [], 0
    while (match := _EXECUTED.search(text, done)) and (end := text.find("*/", match.end())) >= 0:
        parts += [text[done : match.start()], text[match.end() : end]]
        done = end + 2
    return " ".join([*parts, text[done:]])
