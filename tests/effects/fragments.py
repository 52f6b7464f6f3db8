"""Pieces of text that, repeated or nested, have cost a reader most; and how texts are made of them."""

import random
import tomllib
from pathlib import Path

FRAGMENTS = tomllib.loads((Path(__file__).parent / "fragments.toml").read_text(encoding="utf-8"))
COMMON = FRAGMENTS.pop("common")
_CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}


def repeated(piece, size):
    """Return a text of a size that is nothing but a piece."""
    return piece * (size // len(piece))


def nested(piece, size):
    """Return a text of a size in which what a piece opens is closed again, as deep as it goes."""
    closing = "".join(_CLOSING.get(sign, "") for sign in reversed(piece))
    times = size // (len(piece) + len(closing))
    return f"{piece * times}1{closing * times}"


def mixed(reader, seed):
    """Return a function that makes texts of any size of a few pieces in turn, drawn for a reader."""
    draw = random.Random(f"{reader} {seed}")  # noqa: S311  # no secret
    own = FRAGMENTS[reader]
    pieces = "".join(draw.choice(own if draw.random() < 0.7 else COMMON) for _ in range(draw.randint(1, 4)))
    before, after = ("".join(draw.choices(own, k=draw.randint(0, 2))) for _ in range(2))
    shape = draw.choice((repeated, repeated, nested))
    return lambda size: before + shape(pieces, size) + after
