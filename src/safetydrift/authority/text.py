"""One form for text however it is written: case, width, accents, invisible characters and lookalike letters.

Folding is for words. What is looked up by its exact spelling (a host, an address, a path) is brought to one form in
`safetydrift.authority.values`, where a lookalike stays another one.
"""

from __future__ import annotations

import re
from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_TEXT = 64 * 1024
"""Of a longer text, the beginning and the end are read, half each."""
COMBINING = (
    "\u0900-\u0903\u093a-\u094f\u0951-\u0957\u0962\u0963\u0981-\u0983\u09bc-\u09cd\u0a01-\u0a03\u0a3c-\u0a4d\u0a81-\u0a83"
    "\u0abc-\u0acd\u0b01-\u0b03\u0b3c-\u0b57\u0b82\u0bbe-\u0bcd\u0c00-\u0c04\u0c3e-\u0c56\u0c81-\u0c83\u0cbc-\u0cd6\u0d00-\u0d03"
    "\u0d3b-\u0d4d\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd\u3099\u309a"
)
"""Vowel signs that belong to the word that they stand in, for the brackets of an expression."""

_ASCII: dict[int, int | None] = {code: None for code in (*range(32), 127) if chr(code) not in "\t\n\r"}
_ASCII |= {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UNSEEN = re.compile(
    "[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x84\\x86-\\x9f"  # control characters, but not line breaks
    "\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f\\u3164"
    "\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff9-\\ufffb\\U0001bca0-\\U0001bca3\\U000e0000-\\U000e01ef"  # joiners, tags
    "\\u0300-\\u036f\\u0483-\\u0489\\u0591-\\u05bd\\u05bf\\u05c1-\\u05c5\\u05c7\\u0610-\\u061a\\u0640\\u064b-\\u065f\\u0670"
    "\\u06d6-\\u06dc\\u1ab0-\\u1aff\\u1dc0-\\u1dff\\u20d0-\\u20ff\\ufe20-\\ufe2f]"  # accents and vowel points
)
_LOOKALIKES = (
    # small letters by script: Cyrillic, Greek, Armenian, Latin with strokes and small capitals
    ("авекмнорстухіјѕԁһԛԝӏѵг", "abekmhopctyxijsdhqwlvr"),
    ("αβεικνορτυχγωησζμ", "abeikvoptuxywnozm"),
    ("օսոհցք", "ounhgp"),
    ("ıɑɡɩɪøłđħŧƀɓɗɛɔʋƙɴʀʟʜᴀʙᴄᴅᴇɢᴊᴋᴍᴏᴘꜱᴛᴜᴠᴡʏᴢ", "iagiioldhtbbdeovknrlhabcdegjkmopstuvwyz"),
    # Arabic letters that keyboards confuse; hyphens, quotation marks, slashes, dots, line breaks
    ("ٱىیېکڪةھہۀ", "ايييككهههه"),
    ("‐‑‒–—―−﹘➖’‘‛ʼʹ′`´＇“”„‟″", "---------'''''''''" + '"' * 5),
    ("∕⁄╱․‧\u2028\u2029\u0085", "///..\n\n\n"),
)
_LONGER = {"æ": "ae", "œ": "oe", "þ": "th", "ð": "d"}
_ZEROS = "\u0660\u06f0\u07c0\u0966\u09e6\u0a66\u0ae6\u0b66\u0be6\u0c66\u0ce6\u0e50"
"""The digits zero of scripts whose digits are not those of ASCII; the others follow each."""

_WORD = re.compile(rf"(?:[^\W_]|[{COMBINING}])+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def names(text: str) -> tuple[str, ...]:
    """Return the names of a list that is written as one text."""
    return tuple(text.split())


def bounded(text: str) -> str:
    """Return a text of at most `MAX_TEXT` characters: of a longer one, its beginning and its end."""
    half = MAX_TEXT // 2
    return text if len(text) <= MAX_TEXT else f"{text[: half - 1]}\n{text[-half:]}"


def fold(text: str) -> str:
    """Return a text in the form in which words are compared.

    Compatible characters are one (NFKC), case is folded, characters that show nothing and accents are left out, and
    letters that look Latin are Latin. Line breaks and tabs stay. For ASCII only case and control characters change.
    Of texts beyond `MAX_TEXT` characters the beginning and the end are kept. Folding twice changes nothing more.

    Examples
    --------
    >>> fold("Ｐａｙ  Аliсе\u200b, Straße Ñandú")
    'pay  alice, strasse nandu'
    """
    text = bounded(text)
    if text.isascii():
        return text.translate(_ASCII)
    from unicodedata import normalize  # noqa: PLC0415  # ASCII does without

    folded = normalize("NFKD", normalize("NFKD", text).casefold())
    return bounded(normalize("NFC", _UNSEEN.sub("", folded).translate(_table())))


@lru_cache(1)
def _table() -> dict[int, int | str | None]:
    """Return what becomes of a character after compatible decomposition and case folding."""
    table: dict[int, int | str | None] = {ord(sign): letters for sign, letters in _LONGER.items()}
    for seen, meant in _LOOKALIKES:
        table.update({ord(sign): letter for sign, letter in zip(seen, meant, strict=True)})
    for zero in map(ord, _ZEROS):
        table.update({zero + digit: str(digit) for digit in range(10)})
    return table


def words_in(text: str) -> Iterator[str]:
    """Yield the words of a text in order, folded: runs of letters and digits."""
    for match in _WORD.finditer(fold(text)):
        yield match[0]


def humps_of(text: str) -> dict[str, tuple[str, ...]]:
    """Return the parts of words that are written like ``janeLong``, by the folded word.

    Examples
    --------
    >>> humps_of("ask janeLong")
    {'janelong': ('jane', 'long')}
    """
    if _HUMP.search(text) is None:
        return {}
    parted = {word: tuple(words_in(_HUMP.sub(" ", word))) for word in _WORD.findall(text)}
    return {fold(word): parts for word, parts in parted.items() if len(parts) > 1}
