"""Line breaks and tabs as JSON and Python write them: a backslash and a letter.

Tools return text inside of JSON or of a printed list. There a line begins behind a backslash and an ``n``, which would
pass for the first letter of its first word.
"""

from __future__ import annotations


def unescaped(text: str) -> str:
    r"""Return a text of the same length in which line breaks and tabs that are written out are blanks.

    Examples
    --------
    >>> unescaped(r"['one\nTwo']")
    "['one \nTwo']"
    """
    if "\\" not in text:
        return text
    return text.replace("\\n", " \n").replace("\\r", " \r").replace("\\t", " \t")
