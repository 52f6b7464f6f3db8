"""What commands print whose output follows from the command alone: ``echo``, ``printf``, decoders of literals.

So ``echo cm0gLXJmIC8= | base64 -d | sh`` is read as what it runs. Nothing is executed: these are plain functions on
texts, and what they cannot follow has no known output.
"""

from __future__ import annotations

import re

from safetydrift.effects.languages.shell.values import Computed, joined, like

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Output = Callable[[Sequence[str], str | None], str | None]

MAX_OUTPUT = 32 * 1024
"""Longer output counts as unknown."""
_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|0?([0-7]{1,3})|c(.)|(.))", re.DOTALL
)
_SIMPLE = {
    "a": "\a",
    "b": "\b",
    "e": "\33",
    "E": "\33",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}
_FORMAT = re.compile(r"%(?:%|[-+ #0]{0,4}\d{0,4}(?:\.\d{0,4})?([a-zA-Z]))")
_SUBSTITUTE = re.compile(r"s([^\w\s\\])(.{0,200}?)\1(.{0,200}?)\1([gI]{0,2})")
_NO_LITERAL = re.compile(r"[\\\[\].*^$&]")
_RANGE = re.compile(r"(.)-(.)", re.DOTALL)
_CLASSES = {
    "[:upper:]": "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "[:lower:]": "abcdefghijklmnopqrstuvwxyz",
    "[:digit:]": "0123456789",
    "[:space:]": " \t\n\r\f\v",
    "[:blank:]": " \t",
}


def output(words: Sequence[str], fed: str | None) -> str | None:
    """Return what a command prints, None where that is not known.

    Parameters
    ----------
    words
        Program and arguments.
    fed
        What it is fed, None where that is not known.
    """
    prints = _PRINTS.get(words[0].rpartition("/")[2])
    if prints is None or isinstance(words[0], Computed):
        return None
    text = prints(words[1:], fed)
    return text if text is None or len(text) <= MAX_OUTPUT else None


def unescaped(text: str) -> str:
    r"""Return a text with the escapes of ``$'...'``, ``echo -e`` and ``printf`` replaced."""
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(_unescape, text)
    if not plain.isascii() and all(ord(char) < 256 for char in plain):  # noqa: PLR2004  # escaped bytes
        plain = plain.encode("latin-1").decode("utf-8", "replace")
    return like(plain, (text,))


def _unescape(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    if code is not None:
        number = int(code, 16)
    elif match[4] is not None:
        number = int(match[4], 8) & 0xFF
    elif match[5] is not None:
        number = ord(match[5]) & 0x1F
    else:
        return _SIMPLE.get(match[6], match[6] if match[6] in "\\'\"?" else match[0])
    return chr(number) if number <= 0x10FFFF else ""  # noqa: PLR2004


def _echo(words: Sequence[str], fed: str | None) -> str:  # noqa: ARG001
    at, flags = 0, ""
    while at < len(words) and len(words[at]) > 1 and words[at][0] == "-" and not words[at].strip("-neE"):
        flags += words[at]
        at += 1
    text = joined(words[at:], " ")
    if "e" in flags:
        text = unescaped(text)
    return text if "n" in flags else like(text + "\n", (text,))


def printf(words: Sequence[str], fed: str | None = None) -> str | None:  # noqa: ARG001
    """Return what ``printf`` prints; conversions to numbers are left out."""
    if words[:1] == ["--"]:
        words = words[1:]
    if not words:
        return None
    form, rest = unescaped(words[0]), list(words[1:])
    used = list(words)
    pieces: list[str] = []
    for _ in range(64):
        before = len(rest)
        pieces.append(_FORMAT.sub(lambda match: _converted(match, rest), form))
        if not rest or len(rest) == before:
            break
    return like("".join(pieces), used)


def _converted(match: re.Match[str], rest: list[str]) -> str:
    if match[1] is None:
        return "%"
    value = rest.pop(0) if rest else ""
    if match[1] == "b":
        return unescaped(value)
    return value[:1] if match[1] == "c" else value


def _nothing(words: Sequence[str], fed: str | None) -> str:  # noqa: ARG001
    return ""


def _cat(words: Sequence[str], fed: str | None) -> str | None:
    files = {word for word in words if not word.startswith("-")}
    return fed if not files else "" if files == {"/dev/null"} else None


def _fed(words: Sequence[str], fed: str | None) -> str | None:  # noqa: ARG001
    return fed


def _encoded(words: Sequence[str], fed: str | None) -> str | None:
    """``base64 -d``, ``base32 -d``; a file's content is not known."""
    flags = [word for word in words if word.startswith("-") and word != "-"]
    operands = [word for word in words if not word.startswith("-") and not word.isdigit()]
    if fed is None or isinstance(fed, Computed) or operands:
        return None
    if any(flag in {"-d", "-D", "--decode", "-di", "-id", "-i", "--ignore-garbage"} for flag in flags):
        return decoded(fed)
    from base64 import b64encode  # noqa: PLC0415  # few commands encode

    return b64encode(fed.encode()).decode() + "\n"


def decoded(text: str) -> str | None:
    """Return what Base64 or Base32 stands for, None where it is neither or no text."""
    from base64 import b32decode, b64decode  # noqa: PLC0415  # few commands decode

    compact = "".join(text.split()).rstrip("=")
    for decode, width in ((b64decode, 4), (b32decode, 8)):
        try:
            return _as_text(decode(compact + "=" * (-len(compact) % width)))
        except ValueError:
            continue
    return None


def _base32(words: Sequence[str], fed: str | None) -> str | None:
    if fed is None or isinstance(fed, Computed) or not {"-d", "--decode", "-D"}.intersection(words):
        return None
    from base64 import b32decode  # noqa: PLC0415  # few commands decode

    compact = "".join(fed.split()).rstrip("=")
    try:
        return _as_text(b32decode(compact + "=" * (-len(compact) % 8)))
    except ValueError:
        return None


def _as_text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _xxd(words: Sequence[str], fed: str | None) -> str | None:
    flags = "".join(word for word in words if word.startswith("-"))
    if fed is None or isinstance(fed, Computed) or "r" not in flags or "p" not in flags:
        return None
    try:
        return _as_text(bytes.fromhex("".join(fed.replace("\\x", "").replace("0x", "").split())))
    except ValueError:
        return None


def _openssl(words: Sequence[str], fed: str | None) -> str | None:
    plain = {"base64", "-base64", "-a"}.intersection(words)
    return _encoded(["-d"], fed) if plain and "-d" in words and len(words) <= 5 else None  # noqa: PLR2004


def _tr(words: Sequence[str], fed: str | None) -> str | None:
    sets = [_characters(word) for word in words if not word.startswith("-") or word == "-"]
    flags = "".join(word[1:] for word in words if word.startswith("-") and word != "-")
    if fed is None or any(isinstance(word, Computed) for word in words) or not sets or flags.strip("ds"):
        return None
    if "d" in flags:
        return like(fed.translate(dict.fromkeys(map(ord, sets[0]))), (fed,))
    if len(sets) < 2 or not sets[1]:  # noqa: PLR2004
        return fed if "s" in flags else None
    target = sets[1] + sets[1][-1] * len(sets[0])
    return like(fed.translate({ord(one): other for one, other in zip(sets[0], target, strict=False)}), (fed,))


def _characters(text: str) -> str:
    """Return the characters that a set of ``tr`` names."""
    text = unescaped(text[:256])
    for name, members in _CLASSES.items():
        text = text.replace(name, members)
    return _RANGE.sub(
        lambda match: "".join(map(chr, range(ord(match[1]), min(ord(match[2]), 0x17F) + 1))), text
    )


def _rev(words: Sequence[str], fed: str | None) -> str | None:
    if fed is None or words:
        return None
    return like("\n".join(line[::-1] for line in fed.split("\n")), (fed,))


def _sed(words: Sequence[str], fed: str | None) -> str | None:
    """Only the replacement of a literal by a literal."""
    words = [word for word in words if word not in {"-e", "-E", "-r"}]
    match = _SUBSTITUTE.fullmatch(words[0]) if len(words) == 1 else None
    if fed is None or match is None or _NO_LITERAL.search(match[2]) or "\\" in match[3] or "&" in match[3]:
        return None
    count = -1 if "g" in match[4] else 1
    return like(
        "\n".join(line.replace(match[2], match[3], count) for line in fed.split("\n")), (fed, words[0])
    )


_PRINTS: dict[str, Output] = {
    "echo": _echo,
    "printf": printf,
    "print": _echo,
    "cat": _cat,
    ":": _nothing,
    "true": _nothing,
    "tee": _fed,
    "base64": _encoded,
    "base32": _base32,
    "xxd": _xxd,
    "openssl": _openssl,
    "tr": _tr,
    "rev": _rev,
    "sed": _sed,
}
