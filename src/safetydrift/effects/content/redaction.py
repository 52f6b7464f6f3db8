"""Taking secrets out of texts before they are sent to a model elsewhere.

A floor, to be replaced by a better scanner: a judge takes any function from text to text. What is found here is
told by its form alone, in time linear in the length of the text.
"""

from __future__ import annotations

import re
from collections import Counter
from math import log2

MAX_TEXT = 1 << 20
"""Characters of one text that are looked at; what follows is taken out."""
_NAMED = (
    r"(?i:pass(?:word|wd|phrase)|secret|token|credential|auth(?:orization)?|(?:api|access|private)[_-]?key)"
)
_ASSIGNED = re.compile(
    rf"(?P<name>{_NAMED}[A-Za-z0-9_-]{{0,32}}[\"']?[ \t]{{0,4}}[:=][ \t]{{0,4}}[\"']?(?:(?:Bearer|Basic)[ \t])?)"
    r"(?P<value>[^\s\"'&;,]{3,4096})"
)
_IN_ADDRESS = re.compile(r"(?<=://)(?P<user>[^\s/:@]{0,128}):(?P<value>[^\s/@]{1,256})@")
_RUN = re.compile(r"[A-Za-z0-9_+=-]{20,}")
_IS_NAMED = re.compile(_NAMED)
_BLOCK = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----")
_BLOCK_END = "-----END "
_BITS, _DIGITS = 3.3, 3


def redact_secrets(text: str) -> str:
    """Return a text in which what looks like a secret is replaced by a remark of its length.

    Private key blocks, values assigned to a telling name, passwords in addresses, and long runs of letters and
    digits that look random.

    Examples
    --------
    >>> redact_secrets("curl -H 'Authorization: Bearer abcdef123456' https://me:hunter2@example.org")
    "curl -H 'Authorization: Bearer [12 characters redacted]' https://me:[7 characters redacted]@example.org"
    """
    text = _without_blocks(_bounded(text))
    text = _ASSIGNED.sub(lambda found: found["name"] + remark(found["value"]), text)
    text = _IN_ADDRESS.sub(lambda found: f"{found['user']}:{remark(found['value'])}@", text)
    return _RUN.sub(lambda found: remark(found[0]) if _is_random(found[0]) else found[0], text)


def _bounded(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]} {remark(text[MAX_TEXT:])}"


def names_a_secret(name: str) -> bool:
    """Return whether a key of plain data announces a secret value."""
    return _IS_NAMED.search(name[:MAX_TEXT]) is not None


def remark(secret: str) -> str:
    """Return what stands in place of a secret."""
    return f"[{len(secret)} characters redacted]"


def _without_blocks(text: str) -> str:
    pieces, start = [], 0
    while found := _BLOCK.search(text, start):
        end = text.find(_BLOCK_END, found.end())
        stop = len(text) if end < 0 else end
        pieces += [text[start : found.end()], remark(text[found.end() : stop])]
        start = stop
    return "".join([*pieces, text[start:]])


def _is_random(run: str) -> bool:
    """Return whether a run of characters has letters and digits, and as many bits a character as keys have."""
    run = run[:256]
    digits = sum(map(str.isdigit, run))
    if digits < _DIGITS or digits == len(run):
        return False
    counts = Counter(run).values()
    return -sum(n / len(run) * log2(n / len(run)) for n in counts) >= _BITS
