"""Calls and results as frameworks hand them over: of any type, size and shape."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING

from safetydrift.states.task_words import writable
from safetydrift.trace import ToolCall

if TYPE_CHECKING:
    from typing import Any

MAX_NAME = 256
"""Characters of a tool's name; a longer one is cut, and told apart by a digest."""
MAX_RESULT = 4 << 20
"""Characters of a result that are read: of a longer one, its beginning and its end."""


def plain_call(call: ToolCall) -> ToolCall:
    """Return a call whose name is a text of reasonable length and whose arguments are a table."""
    name: Any = call.name
    args: Any = call.args
    table = type(args) is dict or isinstance(args, Mapping)
    if type(name) is str and len(name) <= MAX_NAME and table and writable(name) == name:
        return call
    malformed = call.malformed
    if not table:
        args, malformed = {}, malformed or "arguments that are no table"
    name = writable(str(name))
    if len(name) > MAX_NAME:
        name = f"{name[:MAX_NAME]}..{_digest(name)}"
    return ToolCall(name, args, call.id, malformed, call.hints)


def call_digest(call: ToolCall) -> str:
    """Return a digest that tells whether two calls are the same."""
    return _digest(f"{call.name}\x1f{call.args!r}\x1f{call.malformed!r}")


def result_digest(result: str | None, error: str | None) -> str:
    """Return a digest that tells whether the same came back from a call."""
    return _digest(f"{result!r}\x1f{error!r}" if error is not None or result is None else result)


def as_text(value: object) -> str:
    """Return what a tool gave as the text that a model would see; never more than `MAX_RESULT` characters."""
    if type(value) is not str and isinstance(value, bytes | bytearray | memoryview):
        value = bytes(value).decode("utf-8", "replace")
    text = value if isinstance(value, str) else _written(value)
    if len(text) <= MAX_RESULT:
        return text
    return f"{text[: MAX_RESULT // 2]}\n{text[-MAX_RESULT // 2 :]}"


def _written(value: object) -> str:
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {value}"
    import json  # noqa: PLC0415  # most results are texts

    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return str(value)


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
