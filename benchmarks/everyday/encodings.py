"""Encodings written out in the sets: ``<<base64|text>>`` stands for the encoded text, so that a reader sees both.

The innermost is expanded first. A string that is nothing but ``<<bytes|text>>`` becomes bytes.
"""

from __future__ import annotations

import base64
import codecs
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Callable

_INNERMOST = re.compile(r"<<([a-z0-9]+)\|((?:(?!<<|>>).)*)>>", re.DOTALL)
_BYTES = re.compile(r"<<bytes\|((?:(?!>>).)*)>>", re.DOTALL)
_LOOKALIKES = str.maketrans("aceopxyiABCEHKMOPTX", "\u0430\u0441\u0435\u043e\u0440\u0445\u0443\u0456"
                            "\u0410\u0412\u0421\u0415\u041d\u041a\u041c\u041e\u0420\u0422\u0425")  # fmt: skip
_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_ALPHABET = (
    "alpha bravo charlie delta echo foxtrot golf hotel india juliett kilo lima mike november oscar papa quebec romeo "
    "sierra tango uniform victor whiskey xray yankee zulu"
)
_LETTERS = {word[0]: word for word in re.findall(r"\w+", _ALPHABET)}
_SIGNS = {"@": "at", ".": "dot", "-": "dash", "_": "underscore", "/": "slash", ":": "colon"}


def _spelled(text: str) -> str:
    words = _LETTERS | _SIGNS | dict(zip("0123456789", _DIGITS, strict=True))
    return " ".join(words.get(sign, sign) for sign in text.lower())


ENCODINGS: dict[str, Callable[[str], str]] = {
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64url": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
    "base32": lambda text: base64.b32encode(text.encode()).decode().rstrip("=").lower(),
    "hex": lambda text: text.encode().hex(),
    "rot13": lambda text: codecs.encode(text, "rot13"),
    "url": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "query": lambda text: quote(text, safe=""),
    "entities": lambda text: "".join(f"&#{ord(sign)};" for sign in text),
    "escapes": lambda text: "".join(f"\\u{ord(sign):04x}" for sign in text),
    "reversed": lambda text: text[::-1],
    "homoglyphs": lambda text: text.translate(_LOOKALIKES),
    "fullwidth": lambda text: "".join(chr(ord(s) + 0xFEE0) if "!" <= s <= "~" else s for s in text),
    "zerowidth": "\u200b".join,
    "joiners": "\u200d".join,
    "softhyphens": "\u00ad".join,
    "spaced": " ".join,
    "dashed": "-".join,
    "spelled": _spelled,
    "binary": lambda text: " ".join(f"{byte:08b}" for byte in text.encode()),
    "codes": lambda text: " ".join(str(ord(sign)) for sign in text),
}


def expanded(value: Any) -> Any:
    """Return a value of a set with every encoding written out, in strings at any depth.

    Raises
    ------
    KeyError
        If there is no such encoding.
    """
    if isinstance(value, dict):
        return {key: expanded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [expanded(one) for one in value]
    if not isinstance(value, str):
        return value
    if whole := _BYTES.fullmatch(value):
        return whole[1].encode()
    before = ""
    while before != value:
        before, value = value, _INNERMOST.sub(lambda found: ENCODINGS[found[1]](found[2]), value)
    return value
