"""Provenance: where the values that decide what a call does come from.

A payment, mail, permission or page whose decisive value stands in nothing the user said but in a web page or a received
message is the signature of an injected goal. The values are all short arguments, and the addresses and long numbers
in longer ones; what could come from anywhere (small numbers, dates, truth values) decides nothing.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from safetydrift.effects.history.history import FOREIGN, INSTRUCTED, NAMED, OWN, UNKNOWN
from safetydrift.effects.languages.addresses import addresses_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from safetydrift.effects.boundary import Boundary
    from safetydrift.effects.catalogue.entries import RolesEntry
    from safetydrift.effects.history.history import History

ORIGINS = (NAMED, OWN, UNKNOWN, FOREIGN, INSTRUCTED)
"""In ascending order of concern."""
MAX_VALUES = 64
"""Values of a call that are looked at."""
MAX_DEPTH = 6
"""Arguments nested more deeply are not looked at."""
SHORT = 120
"""Longer arguments are free text, in characters."""

_ANYWHERE = re.compile(
    r"[\d.,:%+\-]{0,4}|[a-z]{1,2}|\d\d?:\d\d(?::\d\d)?|\d{4}-\d\d-\d\d.{0,16}|true|false|none|null|yes|no",
    re.IGNORECASE,
)
_NUMBER = int | float
_BETWEEN = re.compile(r"[,;\r\n]")
_MAIL = re.compile(r"[^\s@<>()\"']+@[^\s@<>()\"']+")
_LONG_NUMBER = re.compile(r"\b[A-Z]{0,2}\d(?:[ -]?[A-Z0-9]){7,33}\b")


def scalars(args: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield every text and number in the arguments with the name it stands under, down to a bounded depth."""
    given = islice(args.items(), 4 * MAX_VALUES)
    waiting: list[tuple[str, object, int]] = [(_named(name), value, 0) for name, value in given][::-1]
    taken = 0
    while waiting and taken < 4 * MAX_VALUES:
        name, value, depth = waiting.pop()
        taken += 1
        if isinstance(value, str):
            yield name, value
        elif isinstance(value, _NUMBER) and not isinstance(value, bool):
            yield name, f"{value:.12g}" if isinstance(value, float) else _digits(value)
        elif depth < MAX_DEPTH and hasattr(value, "items"):
            items = islice(value.items(), MAX_VALUES)
            waiting += [(_named(key), item, depth + 1) for key, item in items][::-1]
        elif depth < MAX_DEPTH and isinstance(value, list | tuple):
            waiting += [(name, item, depth + 1) for item in value[:MAX_VALUES]][::-1]


def decides(value: str) -> bool:
    """Return whether a value could not come from anywhere."""
    return not _ANYWHERE.fullmatch(value)


def decisive(texts: Iterable[tuple[str, str]], roles: RolesEntry) -> Iterator[str]:
    """Yield the values of a call that decide what it does, at most `MAX_VALUES`.

    Parameters
    ----------
    texts
        What `scalars` found in its arguments.
    """
    count = 0
    for name, text in texts:
        prose = len(text) > SHORT or name in roles.prose
        for value in _in_prose(text) if prose else _in_list(text):
            if decides(value.strip()):
                yield value
                count += 1
                if count >= MAX_VALUES:
                    return


def origin_of(values: Iterable[str], history: History, boundary: Boundary) -> tuple[str, str]:
    """Return the most worrying origin among values, and the value; `NAMED` and nothing where there are none."""
    worst, which = 0, ""
    for value in values:
        origin = NAMED if boundary.named(value) else history.origin(value)
        rank = ORIGINS.index(origin)
        if rank > worst:
            worst, which = rank, value
    return ORIGINS[worst], which


def _in_list(text: str) -> Iterator[str]:
    """Yield what a short text names: several receivers one by one, by their addresses without their names."""
    if "@" not in text:
        yield text
        return
    for piece in _BETWEEN.split(text):
        yield from _MAIL.findall(piece) or (piece,)


def _in_prose(text: str) -> Iterator[str]:
    yield from addresses_in(text)
    for match in _LONG_NUMBER.finditer(text[: 64 * SHORT]):
        yield match[0]


def _named(key: object) -> str:
    """Return the name that a key is; what is no text names nothing."""
    return key if isinstance(key, str) else ""


def _digits(number: int) -> str:
    return str(number) if number.bit_length() <= 128 else "?"  # noqa: PLR2004  # longer ones take long to write out
