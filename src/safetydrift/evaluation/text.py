"""Text from files of others, as it is shown."""

from __future__ import annotations


def printable(text: str, longest: int | None = None) -> str:
    """Return text on one line, without what a terminal or a page would obey; if need be cut to a length."""
    shown = "".join([char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text])
    return shown if longest is None or len(shown) <= longest else shown[: longest - 1] + "…"
