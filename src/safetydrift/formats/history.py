"""What is new in what goes into a model, which repeats all that went before.

A run of n model calls repeats its history n times. So where an input begins like the one before, only what follows is
looked at, and messages are told apart by their bytes before they are read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from safetydrift.formats.messages import AGENT, USER, Message, decoded, messages_of, tools_of

if TYPE_CHECKING:
    from collections.abc import Hashable

MAX_SEGMENTS = 16
MAX_DIGITS = 9
_NUMBERED = re.compile(r"([0-9]{1,9})[.](.+)", re.DOTALL)


class Flat(list[tuple[str, Any]]):
    """A list whose things were flattened into attributes: names that begin with a number, and their values."""

    def things(self, begin: int = 0) -> list[tuple[int, tuple[tuple[str, Any], ...]]]:
        """Return, from an attribute on, every thing's number and its parts."""
        found: dict[int, list[tuple[str, Any]]] = {}
        for name, value in self[begin:]:
            numbered = _NUMBERED.match(name)
            if numbered is not None:
                found.setdefault(int(numbered[1]), []).append((numbered[2], value))
        return [(number, tuple(found[number])) for number in sorted(found)]

    def whole(self) -> list[Any]:
        """Return the things put together again."""
        return [nested(parts) for _, parts in self.things()]


def nested(parts: tuple[tuple[str, Any], ...]) -> Any:
    """Return a thing from its parts, whose names tell by points and numbers where they belong.

    Examples
    --------
    >>> nested((("role", "user"), ("contents.0.text", "a"), ("contents.1.text", "b")))
    {'role': 'user', 'contents': [{'text': 'a'}, {'text': 'b'}]}
    """
    tree: dict[str, Any] = {}
    for name, value in parts:
        *path, leaf = name.split(".", MAX_SEGMENTS)
        node = tree
        for segment in path:
            inner = node.setdefault(segment, {})
            node = inner if isinstance(inner, dict) else node.setdefault(f"{segment}.", {})
        is_blocks = leaf == "content" and isinstance(value, str) and value.startswith('[{"type":')
        node[leaf] = decoded(value)[0] if is_blocks else value
    return _listed(tree)


def _listed(node: Any) -> Any:
    if not isinstance(node, dict):
        return node
    if node and all(key.isdecimal() and len(key) <= MAX_DIGITS for key in node):
        return [_listed(node[key]) for key in sorted(node, key=int)]
    return {key: _listed(value) for key, value in node.items()}


def _number(name: str) -> int:
    found = _NUMBERED.match(name)
    return -1 if found is None else int(found[1])


class _Box(msgspec.Struct):
    """A request to a model: what most of them call what matters here."""

    messages: msgspec.Raw = msgspec.Raw()
    model: Any = None
    tools: msgspec.Raw = msgspec.Raw()


_BY_AGENT = re.compile(rb'\s*\{\s*"role"\s*:\s*"(?:assistant|model)"')
_list = msgspec.json.Decoder(list[msgspec.Raw]).decode
_box = msgspec.json.Decoder(_Box).decode


class _Known(NamedTuple):
    """What is remembered of a message: its key, and whether it is the agent's."""

    key: int
    is_agents: bool


class History:
    """Tells what is new in the inputs of one agent's model calls.

    Attributes
    ----------
    told
        How often every message occurred at most in one input.
    unread
        How many inputs could not be read, or not to their end.
    model, tools
        The model that a request named, and the tools it offered.
    """

    def __init__(self, outer: History | None = None) -> None:
        self.told: dict[int, int] = {} if outer is None else outer.told.copy()
        self.unread = 0
        self.model = ""
        self.tools: list[str] = []
        self._tools: bytes = b""
        self._answered: set[tuple[int, ...]] = set()
        self._known: dict[Hashable, tuple[_Known, ...]] = {}
        self._read: dict[Hashable, list[Message]] = {}
        self._before: Any = None
        self._counts: dict[int, int] = {}
        self._tail: list[int] = []
        self._echo: Message | None = None

    def tell(self, message: Message) -> None:
        """Note a message that came out of a model, and will go into the next call."""
        key = message.key
        self.told[key] = self.told.get(key, 0) + 1
        self._echo = message

    def fresh(self, value: object) -> list[Message]:
        """Return the messages of an input that were not told before.

        A message is new if it occurs more often than ever before, or if it follows the model's latest answer and
        this answer was not followed by the same before: a history may have been shortened.
        """
        entries = self._entries(value)
        last = i = -1
        for entry in entries:
            for one in self._look(entry):
                i += 1
                if one.is_agents:
                    last = i
                    self._tail = [one.key]
                elif self._tail:
                    self._tail.append(one.key)
        follows = False
        if self._tail and self._tail[0] in self.told:
            tail = tuple(self._tail)
            follows = tail not in self._answered
            self._answered.add(tail)
        found = self._new(entries, last if follows else i)
        self._read.clear()
        return found

    def _new(self, entries: list[Hashable], last: int) -> list[Message]:
        """Return the messages that occur more often than ever, and all after the last."""
        found: list[Message] = []
        i = -1
        for entry in entries:
            for number, one in enumerate(self._known[entry]):
                i += 1
                count = self._counts[one.key] = self._counts.get(one.key, 0) + 1
                told = self.told.get(one.key, 0)
                if count > told:
                    self.told[one.key] = count
                if count > told or i > last:
                    found.append((self._read.get(entry) or _read(entry))[number])
        return found

    def _look(self, entry: Hashable) -> tuple[_Known, ...]:
        found = self._known.get(entry)
        if found is not None:
            return found
        if self._echo is not None and isinstance(entry, bytes) and _is_echo(entry, self._echo):
            found = (_Known(self._echo.key, is_agents=True),)
            self._echo = None
        else:
            messages = self._read.get(entry)
            if messages is None:
                messages = self._read[entry] = _read(entry)
            found = tuple([_Known(one.key, one.role == AGENT) for one in messages])
        self._known[entry] = found
        return found

    def _entries(self, value: object) -> list[Hashable]:
        """Return the messages that an input has beyond the one before, or all if it does not begin like that.

        What they are read from tells them apart: bytes of JSON, the parts of a flattened one, or a number.
        """
        if isinstance(value, Flat):
            return self._of_flat(value)
        if isinstance(value, (bytes, msgspec.Raw)):
            value = bytes(value).decode("utf-8", "replace")
        array = self._array(value) if isinstance(value, str) else ""
        if len(array) > 1:
            before = self._before
            is_longer = isinstance(before, str) and array.startswith(before)
            rest = f"[{array[len(before) :].lstrip(', ')}" if is_longer else array
            try:
                raws = _list(rest)
            except (msgspec.DecodeError, RecursionError):
                raws = None  # reading it as a whole tells what is wrong with it
            if raws is not None and (not raws or bytes(raws[0])[:1] == b"{"):
                if not is_longer:
                    self._forget()
                self._before = array[:-1] if raws or is_longer else None
                return [bytes(raw) for raw in raws]
        self._forget()
        return self._whole(value)

    def _of_flat(self, value: Flat) -> list[Hashable]:
        size = len(self._before) if isinstance(self._before, Flat) else 0
        begin = size if size and value[:size] == self._before else 0
        things = value.things(begin)
        if begin and things and things[0][0] <= _number(value[begin - 1][0]):
            begin, things = 0, value.things()
        if not begin:
            self._forget()
        self._before = value
        return [parts for _, parts in things]

    def _array(self, text: str) -> str:
        """Return the array of messages that an input is or holds, or an empty text."""
        if text[:1] == "[":
            return text.rstrip()
        if text[:1] != "{":
            return ""
        try:
            box = _box(text)
        except (msgspec.DecodeError, RecursionError):
            return ""
        if not self.model and isinstance(box.model, str):
            self.model = box.model
        if (raw := bytes(box.tools)) != self._tools:
            self._tools = raw
            self.tools = tools_of(raw)
        array = bytes(box.messages).decode("utf-8", "replace")
        return array if array[:1] == "[" else ""

    def _forget(self) -> None:
        self._before = None
        self._counts = {}
        self._tail = []

    def _whole(self, value: object) -> list[Hashable]:
        read, complete = decoded(value)
        found = messages_of(read, USER)
        self.unread += not complete or (not found and read not in (None, "", [], {}))
        if isinstance(read, dict):
            self.model = self.model or (named if isinstance(named := read.get("model"), str) else "")
        self._read = {one.key: [one] for one in found}
        return [one.key for one in found]


def _is_echo(data: bytes, told: Message) -> bool:
    """Return whether a message is surely the one that came out of the model before: it has all ids of its calls."""
    if not told.calls or _BY_AGENT.match(data) is None:
        return False
    return all(call.id and call.id.encode() in data for call in told.calls)


def _read(entry: Hashable) -> list[Message]:
    if isinstance(entry, bytes):
        return messages_of(msgspec.json.decode(entry), USER)
    return messages_of(nested(entry), USER) if isinstance(entry, tuple) else []
