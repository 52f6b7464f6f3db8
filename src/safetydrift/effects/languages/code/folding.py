"""Functions of constant texts that the readers of code work out themselves: decoding, joining, replacing."""

from __future__ import annotations

import base64
import binascii
import codecs
import zlib

from safetydrift.effects.languages.code.values import (
    HOLE,
    MAX_TEXT,
    UNKNOWN,
    Library,
    Several,
    as_text,
    joined,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Fold = Callable[[object, list[object]], object]
    """Of the object whose method it is (UNKNOWN if it is none), and the arguments, the value."""


def fold(name: str, receiver: object, arguments: list[object]) -> object:
    """Return the value of a function of constants; UNKNOWN where it cannot be told. Never raises."""
    try:
        value = _FOLDS[name](receiver, arguments)
    except (ValueError, TypeError, IndexError, OverflowError, zlib.error, LookupError):
        return UNKNOWN
    return UNKNOWN if isinstance(value, str) and len(value) > MAX_TEXT else value


def _subject(receiver: object, arguments: list[object]) -> str:
    """Return the constant text that is worked on: the first argument, or else the receiver."""
    for value in (*arguments[:1], receiver):
        if isinstance(value, str) and HOLE not in value:
            return value
    raise ValueError


def _bytes(receiver: object, arguments: list[object]) -> bytes:
    return _subject(receiver, arguments).encode("latin-1")


def _readable(data: bytes) -> str:
    """Return bytes as text, byte by byte, so that nothing of them is lost should they be decoded further."""
    return data.decode("latin-1")


def _base64(receiver: object, arguments: list[object]) -> object:
    data = "".join(_subject(receiver, arguments).split()).replace("-", "+").replace("_", "/")
    return _readable(base64.b64decode(data + "=" * (-len(data) % 4)))


def _base32(receiver: object, arguments: list[object]) -> object:
    return _readable(base64.b32decode(_bytes(receiver, arguments), casefold=True))


def _hex(receiver: object, arguments: list[object]) -> object:
    return _readable(binascii.unhexlify("".join(_subject(receiver, arguments).split())))


def _rot13(receiver: object, arguments: list[object]) -> object:
    return codecs.encode(_subject(receiver, arguments), "rot13")


def _inflate(receiver: object, arguments: list[object]) -> object:
    data = _bytes(receiver, arguments)
    for window in (zlib.MAX_WBITS | 32, -zlib.MAX_WBITS):
        try:
            return _readable(zlib.decompressobj(window).decompress(data, MAX_TEXT))
        except zlib.error:
            continue
    return UNKNOWN


def _percent(receiver: object, arguments: list[object]) -> object:
    from urllib.parse import unquote  # noqa: PLC0415  # few texts need it

    return unquote(_subject(receiver, arguments))


def _unfold(receiver: object, arguments: list[object]) -> object:
    """Decode by the codec that is named: ``codecs.decode(text, "rot13")``, ``Buffer.from(text, "base64")``."""
    texts = [value for value in arguments if isinstance(value, str)]
    if isinstance(receiver, str):
        texts.insert(0, receiver)
    codec = texts[1].lower().replace("-", "").replace("_", "") if len(texts) > 1 else ""
    name = {"hex": "hex", "base64": "base64", "base64url": "base64", "rot13": "rot13"}.get(codec, "same")
    if codec in {"zlib", "zip", "zlibcodec"}:
        name = "inflate"
    return _FOLDS[name](UNKNOWN, list(texts))


def _same(receiver: object, arguments: list[object]) -> object:
    if isinstance(receiver, str | Several):
        return receiver
    if arguments and isinstance(arguments[0], Several):
        return _characters(receiver, arguments)
    return arguments[0] if arguments and not isinstance(arguments[0], Library) else UNKNOWN


def _path(_receiver: object, arguments: list[object]) -> object:
    if not arguments:
        return UNKNOWN
    return joined(list(arguments), "/")


def _home(_receiver: object, _arguments: list[object]) -> object:
    return "~"


def _join(receiver: object, arguments: list[object]) -> object:
    """Join the items of a list: ``" ".join(items)``, ``items.join(" ")``, ``implode(" ", items)``."""
    given = (receiver, *arguments)
    items = next((value for value in given if isinstance(value, Several)), None)
    between = next((value for value in given if isinstance(value, str)), "")
    if items is None:
        return UNKNOWN
    words = [as_text(choices[0] if choices else UNKNOWN) for choices in items.items]
    text = between.join([*words, HOLE] if items.open_ended else words)
    return text if text.strip(HOLE) or not text else UNKNOWN


def _split(receiver: object, arguments: list[object]) -> object:
    texts = [value for value in (receiver, *arguments) if isinstance(value, str)]
    between = texts[1] if len(texts) > 1 else None
    return Several([(part,) for part in (texts[0].split(between) if between else texts[0].split())[:256]])


def _replace(receiver: object, arguments: list[object]) -> object:
    if not isinstance(receiver, str):
        return UNKNOWN
    old, new = as_text(arguments[0]), as_text(arguments[1])
    if not old or old == HOLE or len(new) * receiver.count(old) > MAX_TEXT:
        return UNKNOWN
    return receiver.replace(old, new)


def _reverse(receiver: object, arguments: list[object]) -> object:
    for value in (receiver, *arguments[:1]):
        if isinstance(value, str):
            return value[::-1]
        if isinstance(value, Several) and not value.open_ended:
            return Several(value.items[::-1])
    return UNKNOWN


def _characters(_receiver: object, arguments: list[object]) -> object:
    """Return the text of character codes: ``chr(97)``, ``String.fromCharCode(97, 98)``, ``bytes([97, 98])``."""
    codes = list(arguments)
    if len(codes) == 1 and isinstance(codes[0], Several):
        codes = [choices[0] if choices else UNKNOWN for choices in codes[0].items]
    return "".join(_character(code) for code in codes)


def _character(code: object) -> str:
    if isinstance(code, int) and 0 < code < 0x110000:  # noqa: PLR2004
        return chr(code)
    return HOLE


def _format(receiver: object, arguments: list[object]) -> object:
    """Fill ``{}`` and ``%s`` with the arguments in turn; what is not in turn is not known."""
    template = receiver if isinstance(receiver, str) else as_text(arguments[0])
    given = [as_text(value) for value in (arguments if isinstance(receiver, str) else arguments[1:])]
    return filled(template, given)


def filled(template: str, given: list[str]) -> object:
    """Return a template with its places filled in turn; named places and those left over become holes."""
    text, turn, at = [], 0, 0
    while at < len(template):
        start = min((p for p in (template.find("{", at), template.find("%", at)) if p >= 0), default=-1)
        if start < 0 or start + 1 >= len(template):
            break
        text.append(template[at:start])
        if template[start + 1] == template[start]:
            text.append(template[start])
            at = start + 2
            continue
        end = _end_of_place(template, start)
        plain = template[start + 1 : end] in {"}", "s", "d"}
        text.append(given[turn] if plain and turn < len(given) else HOLE)
        turn += 1
        at = end
    return "".join([*text, template[at:]])


def _end_of_place(template: str, start: int) -> int:
    if template[start] == "{":
        end = template.find("}", start)
        return len(template) if end < 0 else end + 1
    at = start + 1
    if template[at] == "(":
        end = template.find(")", at)
        at = len(template) if end < 0 else end + 1
    while at < len(template) and template[at] in "0123456789.-+# *":
        at += 1
    return min(at + 1, len(template))


def _module(_receiver: object, arguments: list[object]) -> object:
    name = _subject(UNKNOWN, arguments)
    return Library(name.removeprefix("node:").replace("/", ".")) if name[:1] not in {".", "/"} else UNKNOWN


_FOLDS: dict[str, Fold] = {
    "base32": _base32,
    "base64": _base64,
    "characters": _characters,
    "format": _format,
    "hex": _hex,
    "home": _home,
    "inflate": _inflate,
    "join": _join,
    "module": _module,
    "path": _path,
    "percent": _percent,
    "replace": _replace,
    "reverse": _reverse,
    "rot13": _rot13,
    "same": _same,
    "split": _split,
    "unfold": _unfold,
}
