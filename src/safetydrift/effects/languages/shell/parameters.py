"""Parameter expansion: ``${name}`` with all its operators, on values that are known."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from safetydrift.effects.languages.shell.values import Carried, Computed, like

PRESET: dict[str, tuple[str, ...]] = {
    "IFS": (" \t\n",),
    "0": ("bash",),
    "SHELL": ("/bin/bash",),
    "BASH": ("/bin/bash",),
    "HOME": ("~",),
}
"""Variables that a shell has of its own, with what they hold nearly everywhere."""
_SET = frozenset(
    ("PATH", "PWD", "USER", "LOGNAME", "TERM", "LANG", "HOSTNAME", "UID", "PPID", "RANDOM", "SECONDS")
)
"""Variables that are set, although nobody knows to what; a default in their place is not used."""
_ROOTED = frozenset(("HOME", "PWD", "PATH", "SHELL", "BASH"))
_WHOLE = re.compile(r"\$\{([!#]?)(\w+|[@*#?$!-])(?:\[[^\]]{0,256}\])?(.*)\}", re.DOTALL)
_OPERATOR = re.compile(r":?[-=?+]|##?|%%?|//?[#%]?|\^\^?|,,?|:|@", re.DOTALL)
_SLICE = re.compile(r"\s*(-?\d{1,6}|\(-\d{1,6}\)|)\s*(?::\s*(-?\d{1,6})\s*)?")
_MAX_TRIMMED = 256


class Parameter:
    """A parameter as it is written: ``$name``, ``${!name}``, ``${#name}``, ``${name OPERATOR operand}``."""

    __slots__ = ("indirect", "length", "name", "operand", "operator")

    def __init__(self, written: str) -> None:
        self.name, self.operator, self.operand = written[1:], "", ""
        self.indirect = self.length = False
        match = _WHOLE.fullmatch(written)
        if match is not None:
            self.name = match[2]
            self.indirect, self.length = match[1] == "!", match[1] == "#"
            operator = _OPERATOR.match(match[3])
            if operator is not None:
                self.operator, self.operand = operator[0], match[3][operator.end() :]
            elif match[3]:
                self.operator = "?"

    def with_operand(self, operand: str) -> Parameter:
        """Return the same parameter with another operand."""
        other = Parameter(f"${self.name}")
        other.indirect, other.length = self.indirect, self.length
        other.operator, other.operand = self.operator, operand
        return other


def applied(parameter: Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Return the possible values of an expansion; nothing where they cannot be told.

    Parameters
    ----------
    values
        The possible values of the parameter itself; nothing if it is not set in the text.
    """
    operator, operand = parameter.operator, parameter.operand
    if parameter.length:
        return ()
    if operator in {":-", "-", ":=", "="}:
        return _defaulted(parameter, values)
    if operator in {":+", "+"}:
        return (_plain(operand),)
    if operator == ":" and parameter.name in _ROOTED and operand == "0:1":
        return ("/",)
    change = _CHANGES.get(operator[:1])
    if change is None or parameter.name in PRESET:
        return () if operator else values
    changed = [change(value, operator, operand) for value in values]
    return tuple([like(new, (value,)) for new, value in zip(changed, values, strict=True) if new is not None])


def _defaulted(parameter: Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    default = _plain(parameter.operand)
    if parameter.name in _SET:
        return (Computed(default),)
    kept = tuple([value for value in values if value or parameter.operator[0] != ":"])
    return kept or (default,)


def _plain(text: str) -> str:
    """Return an operand without its quotes and backslashes."""
    plain = like(text.replace('"', "").replace("'", "").replace("\\", ""), (text,))
    return Carried(plain) if "$(" in plain or "`" in plain else plain


def _trim_start(value: str, operator: str, pattern: str) -> str | None:
    lengths = range(min(len(value), _MAX_TRIMMED) + 1)
    for length in reversed(lengths) if operator == "##" else lengths:
        if _fits(value[:length], pattern):
            return value[length:]
    return value


def _trim_end(value: str, operator: str, pattern: str) -> str | None:
    lengths = range(min(len(value), _MAX_TRIMMED) + 1)
    for length in reversed(lengths) if operator == "%%" else lengths:
        if _fits(value[len(value) - length :], pattern):
            return value[: len(value) - length]
    return value


def _fits(text: str, pattern: str) -> bool:
    pattern = _plain(pattern)
    return text == pattern or (len(pattern) < 64 and pattern.count("*") <= 2 and fnmatchcase(text, pattern))  # noqa: PLR2004


def _replace(value: str, operator: str, operand: str) -> str | None:
    old, _, new = operand.partition("/")
    old, new = _plain(old), _plain(new)
    if not old or any(sign in old for sign in "*?[$") or "$" in new or operator[-1] in "#%":
        return None
    return value.replace(old, new) if operator == "//" else value.replace(old, new, 1)


def _slice(value: str, operator: str, operand: str) -> str | None:  # noqa: ARG001
    match = _SLICE.fullmatch(operand)
    if match is None:
        return None
    start = int(match[1].strip("()") or 0)
    rest = value[start:]
    return rest if match[2] is None else rest[: int(match[2])]


def _upper(value: str, operator: str, operand: str) -> str | None:
    if operand:
        return None
    return value.upper() if operator == "^^" else value[:1].upper() + value[1:]


def _lower(value: str, operator: str, operand: str) -> str | None:
    if operand:
        return None
    return value.lower() if operator == ",," else value[:1].lower() + value[1:]


_CHANGES = {"#": _trim_start, "%": _trim_end, "/": _replace, ":": _slice, "^": _upper, ",": _lower}
