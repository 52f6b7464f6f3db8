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

_KEPT = "\t\n\r"
_ASCII: dict[int, int | None] = {code: None for code in (*range(32), 127) if chr(code) not in _KEPT}
_ASCII |= {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}

_INVISIBLE = (
    (0x00AD, 0x00AD),
    (0x034F, 0x034F),
    (0x061C, 0x061C),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF9, 0xFFFB),
    (0x1BCA0, 0x1BCA3),
    (0xE0000, 0xE01EF),
)
"""Ranges of characters that show nothing: joiners, directions, selectors, tags."""
_ACCENTS = (
    (0x0300, 0x036F),
    (0x0483, 0x0489),
    (0x0591, 0x05BD),
    (0x05BF, 0x05BF),
    (0x05C1, 0x05C5),
    (0x05C7, 0x05C7),
    (0x0610, 0x061A),
    (0x0640, 0x0640),
    (0x064B, 0x065F),
    (0x0670, 0x0670),
    (0x06D6, 0x06DC),
    (0x1AB0, 0x1AFF),
    (0x1DC0, 0x1DFF),
    (0x20D0, 0x20FF),
    (0xFE20, 0xFE2F),
)
"""Accents, vowel points and the like, without which the words of their scripts are understood."""
_CONTROLS = ((0x00, 0x08), (0x0B, 0x0C), (0x0E, 0x1F), (0x7F, 0x84), (0x86, 0x9F))
_LOOKALIKES = (
    # small letters by script: Cyrillic, Greek, Armenian, Latin with strokes and small capitals
    ("авекмнорстухіјѕԁһԛԝӏѵг", "abekmhopctyxijsdhqwlvr"),
    ("αβεικνορτυχγωησζμ", "abeikvoptuxywnozm"),
    ("օսոհցք", "ounhgp"),
    ("ıɑɡɩɪøłđħŧƀɓɗɛɔʋƙɴʀʟʜᴀʙᴄᴅᴇɢᴊᴋᴍᴏᴘꜱᴛᴜᴠᴡʏᴢ", "iagiioldhtbbdeovknrlhabcdegjkmopstuvwyz"),
    # Arabic letters that keyboards confuse
    ("ٱىیېکڪةھہۀ", "ايييككهههه"),
    # signs
    ("‐‑‒–—―−﹘➖", "---------"),
    ("’‘‛ʼʹ′`´＇", "'''''''''"),
    ("“”„‟″", '"""""'),
    ("∕⁄╱", "///"),
    ("․‧", ".."),
    ("\u2028\u2029\u0085", "\n\n\n"),
)
_LONGER = {"æ": "ae", "œ": "oe", "þ": "th", "ð": "d"}
_DIGIT_ZEROS = (0x0660, 0x06F0, 0x07C0, 0x0966, 0x09E6, 0x0A66, 0x0AE6, 0x0B66, 0x0BE6, 0x0C66, 0x0CE6, 0x0E50)

COMBINING = (
    "\u0900-\u0903\u093a-\u094f\u0951-\u0957\u0962\u0963\u0981-\u0983\u09bc-\u09cd\u0a01-\u0a03\u0a3c-\u0a4d\u0a81-\u0a83"
    "\u0abc-\u0acd\u0b01-\u0b03\u0b3c-\u0b57\u0b82\u0bbe-\u0bcd\u0c00-\u0c04\u0c3e-\u0c56\u0c81-\u0c83\u0cbc-\u0cd6\u0d00-\u0d03"
    "\u0d3b-\u0d4d\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd\u3099\u309a"
)
"""Vowel signs that belong to the word that they stand in, for the brackets of an expression."""
_WORD = re.compile(rf"(?:[^\W_]|[{COMBINING}])+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_CAPITAL_INSIDE = re.compile(r"[a-z0-9][A-Z]")


def bounded(text: str) -> str:
    """Return a text of at most `MAX_TEXT` characters: of a longer one, its beginning and its end."""
    if len(text) <= MAX_TEXT:
        return text
    half = MAX_TEXT // 2
    return f"{text[: half - 1]}\n{text[-half:]}"


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

    folded = normalize("NFKD", normalize("NFKD", text).casefold()).translate(_table())
    return bounded(normalize("NFC", folded))


@lru_cache(1)
def _table() -> dict[int, int | str | None]:
    """Return what becomes of a character after compatible decomposition and case folding."""
    table: dict[int, int | str | None] = {}
    for first, last in (*_INVISIBLE, *_ACCENTS, *_CONTROLS):
        table.update(dict.fromkeys(range(first, last + 1)))
    for seen, meant in _LOOKALIKES:
        table.update({ord(sign): letter for sign, letter in zip(seen, meant, strict=True)})
    table.update({ord(sign): letters for sign, letters in _LONGER.items()})
    for zero in _DIGIT_ZEROS:
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
    if not _CAPITAL_INSIDE.search(text):
        return {}
    parted = {word: tuple(words_in(_HUMP.sub(" ", word))) for word in _WORD.findall(text)}
    return {fold(word): parts for word, parts in parted.items() if len(parts) > 1}
