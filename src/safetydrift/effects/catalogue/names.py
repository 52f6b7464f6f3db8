"""The names of tools as words: which verb a name has and what it speaks of, however it is written."""

from __future__ import annotations

from itertools import pairwise

from safetydrift.effects.catalogue.tables import words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_PARTS = 3
_SERVER = "mcp__"
_ALSO = frozenset(("and", "or", "then"))
_OBJECTS = frozenset(
    (
        "book", "call", "comment", "contact", "email", "file", "log", "mail", "message", "note", "order", "phone",
        "record", "report", "review", "sms", "text",
    )
)  # fmt: skip
"""Words that are verbs as well as what verbs are done to."""
_PLAIN_VERBS = frozenset(
    (
        "add", "append", "cancel", "check", "close", "count", "create", "delete", "describe", "download", "edit",
        "fetch", "find", "forward", "get", "insert", "list", "load", "modify", "move", "open", "publish", "query",
        "read", "remove", "rename", "retrieve", "save", "search", "send", "share", "show", "submit", "update",
        "upload", "view", "write",
    )
)  # fmt: skip
"""Words that are always verbs."""


class NameWords:
    """The words of a tool's name, each in the singular and in small letters.

    ``mcp__<server>__`` before it says what the tool is about, but never what it does: that is told by its own words.
    Two words in a row count as one too, so that ``log_in`` is a ``login`` and ``apiKey`` an ``api_key``.

    Attributes
    ----------
    order
        The tool's own words, in order.
    own
        The same, with the pairs of neighbours.
    every
        With the words of the server.
    """

    __slots__ = ("every", "order", "own")

    def __init__(self, name: str) -> None:
        parts = name.split("__", 2)
        served = name.startswith(_SERVER) and len(parts) == _PARTS
        self.order = _split(parts[2] if served else name)
        self.own = frozenset(self.order).union(_joined(self.order))
        server = _split(parts[1]) if served else []
        self.every = self.own.union(server, _joined(server))

    def verbs(self, known: Collection[str]) -> frozenset[str]:
        """Return the first of the words that is a known verb, also as two in one, and those that ``and`` adds to it."""
        found: set[str] = set()
        start = self._after_object()
        for at, word in enumerate(self.order[start:], start):
            if found and self.order[at - 1] not in _ALSO:
                continue
            pair = "".join(self.order[at : at + 2])
            if pair in known:
                found.add(pair)
            elif word in known:
                found.add(word)
        return frozenset(found)

    def _after_object(self) -> int:
        """Return where a verb stands behind its object, as in ``EmailSearch``; 0 if the name does not begin so."""
        if self.order[:1] and self.order[0] in _OBJECTS:
            for at, word in enumerate(self.order[1:], 1):
                if word in _ALSO:
                    break
                if word in _PLAIN_VERBS:
                    return at
        return 0


def as_words(texts: Iterable[str]) -> frozenset[str]:
    """Return words in the form in which `NameWords` has them."""
    return frozenset(["".join(_split(text)) for text in texts])


def _split(name: str) -> list[str]:
    return [word for word in words(name).split("_") if word]


def _joined(order: list[str]) -> list[str]:
    return [one + other for one, other in pairwise(order)]
