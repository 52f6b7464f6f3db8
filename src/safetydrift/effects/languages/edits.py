"""Edits in the notations of agents: a file, the lines it had, the lines it is to have.

Some loops hand over an edit where code is expected. None of the notations is code of any language, so nothing of such a
text would run: the lines in it are data.
"""

from __future__ import annotations

import re

_NOTATIONS = re.compile(
    r"\s{0,64}(?:"
    r"edit \d{1,7}(?::\d{1,7})?\r?\n[^\0]{0,65536}^end_of_edit\s{0,64}\Z"
    r"|\*\*\* Begin Patch\r?\n\*\*\* (?:Update|Add|Delete) File: (?P<patched>[^\n]{1,512})"
    r"|(?:EDITING|Editing) `{0,3}(?P<named>[^\n`]{1,512}?)`{0,3}\. CHANGING:"
    r"|(?:```\w{0,16}\n)?(?P<headed>[^\s<>()=\"']{1,512})\r?\n<{3,8} ?(?:BEFORE|SEARCH|ORIGINAL|HEAD)"
    r"|diff --git a/(?P<compared>\S{1,512}) b/"
    r"|--- (?:a/)?(?P<before>\S{1,512})[^\n]{0,64}\r?\n\+\+\+ "
    r")",
    re.MULTILINE,
)
_GROUPS = ("patched", "named", "headed", "compared", "before")


def edited(text: str) -> str | None:
    r"""Return the file that a text is an edit of, empty if it does not say it; None if it is no edit.

    >>> edited("src/a.py\n<<<BEFORE_EDIT>>>\nx = 1\n<<<AFTER_EDIT>>>\nx = 2")
    'src/a.py'
    >>> edited("edit 1:2\nx\nend_of_edit"), edited("x = 1")
    ('', None)
    """
    match = _NOTATIONS.match(text)
    if match is None:
        return None
    return next((match[name].strip() for name in _GROUPS if match[name]), "")
