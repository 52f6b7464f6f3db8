"""Filling the placeholders of grafts: one drawn value per placeholder, the same wherever it stands."""

from __future__ import annotations

import re
import string
from typing import TYPE_CHECKING

from stdnum import iban, luhn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from random import Random

PLACEHOLDER = re.compile(r"(?<![${])\{([a-z]+)(\d?)\}")
"""A name in braces, with a digit for another value of the same kind; ``${name}`` is left to the shell."""

_PATTERN = re.compile(r"\[([dxau])(\d{1,2})\]")
_ALPHABETS = {
    "x": string.hexdigits[:16],
    "a": string.ascii_letters + string.digits,
    "u": string.ascii_uppercase + string.digits,
}
_TRIES = 50
_MAX_DEPTH = 4


class Filling:
    """Values for placeholders, each drawn by ``rng`` when it is first needed, from what it may be filled with."""

    def __init__(self, values: Mapping[str, Sequence[str]], rng: Random) -> None:
        self.rng = rng
        self._values = values
        self._drawn: dict[str, str] = {}

    def __call__(self, text: str, *, quoted: bool = False) -> str:
        """Return a text with its placeholders and patterns filled.

        Quotes and backslashes of values are escaped where they stand in string literals (``quoted``). A placeholder
        that there are no values for is a KeyError.
        """

        def value(match: re.Match[str]) -> str:
            drawn = self.value(match[1], match[2])
            return drawn.replace("\\", "\\\\").replace('"', '\\"') if quoted else drawn

        return _PATTERN.sub(self._pattern, PLACEHOLDER.sub(value, text))

    def value(self, name: str, digit: str = "") -> str:
        """Return what a placeholder stands for; with another digit it is another value."""
        key = name + digit
        if key not in self._drawn:
            taken = {drawn for known, drawn in self._drawn.items() if known.rstrip(string.digits) == name}
            self._drawn[key] = self._another(name, taken)
        return self._drawn[key]

    def _another(self, name: str, taken: set[str]) -> str:
        for _ in range(_TRIES):
            drawn = self._new(name, _MAX_DEPTH)
            if drawn not in taken:
                return drawn
        raise ValueError(f"no {len(taken) + 1} different values for {name!r}")

    def _new(self, name: str, depth: int) -> str:
        if depth == 0:
            raise ValueError(f"the values of {name!r} refer to each other too deeply")
        text = self.rng.choice(self._values[name])
        filled = PLACEHOLDER.sub(lambda match: self._new(match[1], depth - 1), text)
        filled = _PATTERN.sub(self._pattern, filled)
        if name == "iban":
            return filled[:2] + iban.calc_check_digits(filled) + filled[4:]
        if name == "card":
            return filled[:-1] + luhn.calc_check_digit(filled[:-1])
        return filled

    def _pattern(self, match: re.Match[str]) -> str:
        if match[1] == "d":  # a number: it does not begin with a zero
            return str(self.rng.randrange(10 ** (int(match[2]) - 1), 10 ** int(match[2])))
        return "".join(self.rng.choices(_ALPHABETS[match[1]], k=int(match[2])))
