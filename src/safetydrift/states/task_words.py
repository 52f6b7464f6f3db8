"""The words and the name of a task as numbers: enough to tell tasks apart, too little to read them.

Several words share each number and their order is not kept, so a corpus can hold them where it must hold no text.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Iterable

WORD_BINS = 16_384
"""Into how many bins words are hashed."""

_WORD = re.compile(r"[^\W\d_]{2,40}")
_MOST_CHARACTERS = 20_000


def task_words(text: str) -> tuple[int, ...]:
    """Return the bins of a text's words, in ascending order and each once.

    Parameters
    ----------
    text
        The task in the user's words. Only its first 20,000 characters are read.

    Examples
    --------
    >>> task_words("Pay the bill!") == task_words("the BILL, pay")
    True
    """
    words = set(_WORD.findall(text[:_MOST_CHARACTERS].lower()))
    return bins(crc32(word.encode()) for word in words)


def bins(digests: Iterable[int]) -> tuple[int, ...]:
    """Return the bins of words given by their CRC-32, in ascending order and each once."""
    return tuple(sorted({digest % WORD_BINS for digest in digests}))


def writable(text: str) -> str:
    """Return a text that can be written as UTF-8: lone surrogates, which stand for nothing, are replaced.

    Examples
    --------
    >>> writable(f"a{chr(0xD800)}b")
    'a?b'
    """
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def task_digest(source: str, category: str, task: str) -> str:
    """Return a short digest of a task, 8 hexadecimal digits: names of tasks stay out of model files.

    Examples
    --------
    >>> task_digest("agentdojo", "banking", "user_task_0/injection_task_1")
    'cd64e331'
    """
    return sha256(f"{source}|{category}|{task}".encode()).hexdigest()[:8]
