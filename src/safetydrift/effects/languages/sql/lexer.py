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
    | (?P<string> (?!) )
    | (?P<heredoc> (?!) )
    | (?P<name> `(?:[^`]|``)*+` )
    | (?P<torn> ['"`] | /\* )
    | (?P<word> [^\W\d][\w$]*+ | @{1,2}\w++ | \d[\w.]*+ | \|\| | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_DIFFERS = re.compile(r"\\['\"]|#|--(?=\S)|/\*M?!")
_EXECUTED = re.compile(r"/\*M?!\d*")
_TORN = re.compile(r"\w+|[;(),.*=\[\]]")
_DOUBLED = re.compile(r"(['\"`])\1")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


class Word:
    """One word of a statement.

    Attributes
    ----------
    key
        In capitals if it may be a key word, else empty: names in quotes and strings are none.
    text
        Its text, without quotes.
    is_string, is_name
        Whether it is a string, or may be a name.
    start, end
        Where it stands in the text.
    """

    __slots__ = ("end", "is_name", "is_string", "key", "start", "text")

    def __init__(self, text: str, kind: str, start: int, end: int) -> None:
        self.text, self.start, self.end = text, start, end
        self.is_string = kind == "string"
        self.key = text.upper() if kind == "word" else ""
        self.is_name = kind == "name" or (kind == "word" and (text[0].isalpha() or text[0] in "_@#"))

    def __repr__(self) -> str:
        return f"<Word {self.text!r}>"


def lexings(text: str) -> Iterator[tuple[str, list[Word], bool]]:
    """Yield a text, its words without comments, and whether all quotes in it match; twice where dialects differ.

    The second text is as long as the first, with the comments opened that MySQL runs.
    """
    yield _cut(text, _STANDARD)
    if _DIFFERS.search(text):
        yield _cut(_opened(text), _MYSQL)


def _opened(text: str) -> str:
    """Return a text of the same length without the signs around comments that MySQL runs."""
    parts, done = [], 0
    for match in _EXECUTED.finditer(text):
        if match.start() < done:
            continue
        end = text.find("*/", match.end())
        if end < 0:
            break
        parts += [text[done : match.start()], " " * len(match[0]), text[match.end() : end], "  "]
        done = end + 2
    return "".join([*parts, text[done:]])


def _cut(text: str, pattern: re.Pattern[str]) -> tuple[str, list[Word], bool]:
    words: list[Word] = []
    place = 0
    while place < len(text):
        match = pattern.match(text, place)
        if match is None or match.lastgroup == "torn":
            return text, _torn(text), False
        place, kind, found = match.end(), match.lastgroup or "", match[0]
        if kind == "heredoc":
            close = text.find(found, place)
            if close < 0:
                return text, _torn(text), False
            words.append(Word(text[place:close], "string", match.start(), close + len(found)))
            place = close + len(found)
        elif kind != "space":
            words.append(_word(found, kind, match.start()))
    return text, words, True


def _word(found: str, kind: str, start: int) -> Word:
    end = start + len(found)
    if kind == "word":
        return Word(found, kind, start, end)
    if kind == "name":
        return Word(_DOUBLED.sub(r"\1", found[1:-1]), kind, start, end)
    quote = found[-1]
    inner = found[found.index(quote) + 1 : -1].replace(quote * 2, quote)
    return Word(_ESCAPE.sub(r"\1", inner) if kind == "escaped" else inner, "string", start, end)


def _torn(text: str) -> list[Word]:
    """Return the words of a text whose quotes do not match, as if it had none."""
    return [Word(match[0], "word", match.start(), match.end()) for match in _TORN.finditer(text)]
