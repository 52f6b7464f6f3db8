"""Regular expressions that mean the same in every Python that is supported."""

from __future__ import annotations

import re
import sys

_POSSESSIVE_GROUP = re.compile(r"(?<!\\)\)([*?]|\{[0-9,]{1,12}\})\+")
MENDED = (3, 11, 5)
"""The first Python that repeats a group possessively without losing its place (python/cpython#106052)."""


def compiled(expression: str, flags: int = 0) -> re.Pattern[str]:
    """Return an expression ready for use.

    Before Python 3.11.5 a possessively repeated group may fail to match where it should, so there the group may give
    back what it took. It then finds at least as much; how far it looks stays bounded by its repetitions.
    """
    return re.compile(portable(expression, sys.version_info[:3]), flags)


def portable(expression: str, version: tuple[int, ...]) -> str:
    """Return an expression as a version of Python understands it rightly.

    Examples
    --------
    >>> portable("(?:ab){2,5}+c++", (3, 11, 2)), portable("(?:ab){2,5}+c++", (3, 12, 0))
    ('(?:ab){2,5}c++', '(?:ab){2,5}+c++')
    """
    return expression if version >= MENDED else _POSSESSIVE_GROUP.sub(r")\1", expression)
