"""AWK: a filter, unless it runs commands, or reads and writes files of its own.

There is no grammar for it among the compiled ones. What matters stands near a few signs: a command in ``system(...)``
or beside ``|``, a file behind ``>`` and ``getline <``.
"""

from __future__ import annotations

import re

from safetydrift.effects.languages.code.values import unescaped
from safetydrift.effects.languages.scripts import name_files
from safetydrift.effects.reading import MAX_TEXT, UnreadableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from safetydrift.effects.reading import Reading

_TOKEN = re.compile(
    r"""
    (?P<gap> [ \t\r]+ | \\\n | \#[^\n]* )
    | (?P<text> "(?:[^"\\\n]|\\.)*+" )
    | (?P<pattern> (?<![\w)\]$"])(?<![\w)\]$"][ ])/(?:[^/\\\n]|\\.)++/ )
    | (?P<name> @?[A-Za-z_]\w* )
    | (?P<number> \d[\w.]* )
    | (?P<sign> \|& | \|\| | && | >> | [<>=!+\-*/%^]= | \n | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_UNKNOWN = "$computed"
_PRICE, _PRICE_OF_SIGN = 6, 100
_FAR = 60
"""No expression is followed further than so many tokens."""
_ENDS = frozenset((";", "\n", "{", "}", ")", "|", "|&", ">", ">>", "<", ",", "||", "&&", "?", ":", "]", "="))
_ENDS_BEFORE = _ENDS - {")"} | {"("}
_PRINTS = frozenset(("print", "printf"))
_NETWORK = ("/inet/", "/inet4/", "/inet6/")


class _Tokens:
    """The tokens of a program, and what its variables may hold."""

    def __init__(self, program: str) -> None:
        self.kinds: list[str] = []
        self.texts: list[str] = []
        self.values: dict[str, list[str]] = {}
        for match in _TOKEN.finditer(program):
            kind = match.lastgroup or ""
            if kind == "text" and self.texts[-1:] == ["="] and len(self.texts) > 1:
                self.values.setdefault(self.texts[-2], []).append(unescaped(match[0][1:-1]))
            if kind != "gap":
                self.kinds.append(kind)
                self.texts.append(match[0])

    def text(self, at: int) -> str:
        """Return the token at a place; empty where there is none."""
        return self.texts[at] if 0 <= at < len(self.texts) else ""

    def before(self, at: int) -> list[str]:
        """Return the texts that the expression before a place may stand for."""
        start, depth = at, 0
        while at - start < _FAR and start > 0 and (depth > 0 or self.texts[start - 1] not in _ENDS_BEFORE):
            start -= 1
            depth += (self.texts[start] == ")") - (self.texts[start] == "(")
        return self._joined(start, at)

    def after(self, at: int) -> list[str]:
        """Return the texts that the expression behind a place may stand for."""
        depth, end = 0, at
        while end - at < _FAR and end < len(self.texts) and (depth > 0 or self.texts[end] not in _ENDS):
            depth += (self.texts[end] == "(") - (self.texts[end] == ")")
            end += 1
        return self._joined(at, end)

    def _joined(self, start: int, end: int) -> list[str]:
        """Return tokens put together: texts as they are, a variable alone by its values, all else unknown."""
        if end - start == 1 and self.texts[start] in self.values:
            return self.values[self.texts[start]][:8]
        parts: list[str] = []
        for kind, text in zip(self.kinds[start:end], self.texts[start:end], strict=True):
            if kind == "text":
                parts.append(unescaped(text[1:-1]))
            elif text not in {"(", ")"} and parts[-1:] != [_UNKNOWN]:
                parts.append(_UNKNOWN)
        return ["".join(parts)] if parts else []

    def prints(self, at: int) -> bool:
        """Return whether a place stands in a statement that prints, outside of brackets."""
        depth = 0
        for place in range(at - 1, max(-1, at - _FAR), -1):
            text = self.texts[place]
            depth += (text == ")") - (text == "(")
            if depth < 0 or text in {";", "\n", "{", "}"}:
                return False
            if text in _PRINTS:
                return True
        return False


def read_awk(reading: Reading, text: str) -> None:
    """Add what running an AWK program would do.

    Raises
    ------
    UnreadableError
        If it is too long, or there is too much in it to be read.
    """
    if len(text) > MAX_TEXT:
        raise UnreadableError(f"AWK code of more than {MAX_TEXT} characters")
    reading.act("looks", "runs awk over what it is fed")
    reading.pay(len(text))
    tokens = _Tokens(text)
    reading.pay(_PRICE * len(tokens.texts))
    name_files(reading, (unescaped(text[1:-1]) for text in tokens.texts if text[:1] == '"'))
    for at, sign in enumerate(tokens.texts):
        if sign in _SIGNS:
            reading.pay(_PRICE_OF_SIGN)
            _SIGNS[sign](reading, tokens, at)
        elif tokens.kinds[at] == "text" and sign[1:-1].startswith(_NETWORK):
            reading.act("connects", f"awk opens {sign[:60]}")


def _piped(reading: Reading, tokens: _Tokens, at: int) -> None:
    read = tokens.text(at + 1) == "getline"
    _command(reading, tokens.before(at) if read else tokens.after(at + 1))


def _called(reading: Reading, tokens: _Tokens, at: int) -> None:
    if tokens.text(at + 1) == "(":
        _command(reading, tokens.after(at + 2))


def _printed(reading: Reading, tokens: _Tokens, at: int) -> None:
    if tokens.prints(at):
        _file(reading, "writes", tokens.after(at + 1))


def _taken(reading: Reading, tokens: _Tokens, at: int) -> None:
    if "getline" in tokens.texts[max(0, at - 3) : at]:
        _file(reading, "reads", tokens.after(at + 1))


def _environment(reading: Reading, tokens: _Tokens, at: int) -> None:
    key = tokens.text(at + 2)
    named = key[:1] == '"' and tokens.text(at + 1) == "["
    reading.names(key.strip('"') if named else "environ")


def _loaded(reading: Reading, tokens: _Tokens, at: int) -> None:
    reading.act("runs", f"awk uses {tokens.text(at + 1)[:60]}")


def _command(reading: Reading, commands: list[str]) -> None:
    for command in commands or [_UNKNOWN]:
        if command.startswith(_NETWORK):
            reading.act("connects", f"awk opens {command[:60]}")
        elif command.startswith(_UNKNOWN):
            reading.hides("awk runs a command that is put together while running")
        else:
            reading.nested("shell", command)


def _file(reading: Reading, act: str, paths: list[str]) -> None:
    for path in paths or [_UNKNOWN]:
        if path in reading.catalogue.shell.discard:
            continue
        if _UNKNOWN in path:
            reading.act(act, "awk, a file named while running")
        elif act == "writes":
            reading.writes(path)
        else:
            reading.reads(path)


_SIGNS: dict[str, Callable[[Reading, _Tokens, int], None]] = {
    "|": _piped,
    "|&": _piped,
    "system": _called,
    ">": _printed,
    ">>": _printed,
    "<": _taken,
    "ENVIRON": _environment,
    "@load": _loaded,
    "@include": _loaded,
}
