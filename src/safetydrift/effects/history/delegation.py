"""Delegation: a user who says that the task stands in a file speaks through that file.

"Complete the task in task.md" leaves nothing to go by but what the file says. Its first reading is heard as
the user's own words. Only what the user wrote delegates, and only to a file that is said to hold the task itself:
"summarise report.txt" does not.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_DELEGATED = 8
"""Files that are waited for."""
_MAX_TEXT = 4096
_TASK_IN_FILE = re.compile(
    r"\b(?:tasks?|instructions?|assignments?|brief)\b[^\n]{0,40}?\b(?:in|at|from)\b[ :`'\"]{1,3}"
    r"([\w./~\-]{1,200}\.(?:md|txt|rst|html?|docx?|pdf|json|ya?ml))\b",
    re.IGNORECASE,
)
_READERS = frozenset({"cat", "less", "more", "head"})


def delegated_by(text: str) -> frozenset[str]:
    """Return the files in which, by the user's words, the task stands.

    Examples
    --------
    >>> sorted(delegated_by("Complete the task provided in /instruction/task.md"))
    ['/instruction/task.md']
    >>> delegated_by("Summarise report.txt and mail it to Ann")
    frozenset()
    """
    return frozenset(_TASK_IN_FILE.findall(text[:_MAX_TEXT])[:MAX_DELEGATED])


def shown_by(values: Iterable[str], files: frozenset[str]) -> list[str]:
    """Return which of some files a call shows and nothing else: named alone, or behind a program that shows files."""
    found = []
    for value in values:
        words = value.split(maxsplit=2)
        if words and words[-1] in files and (len(words) == 1 or (len(words) == 2 and words[0] in _READERS)):  # noqa: PLR2004
            found.append(words[-1])
    return found[:MAX_DELEGATED]
