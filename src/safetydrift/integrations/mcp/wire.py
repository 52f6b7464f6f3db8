"""Messages of JSON-RPC as bytes: read so that every other reader finds the same in them, or not at all."""

from __future__ import annotations

import json

from safetydrift.errors import MessageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

MAX_MESSAGE = 64 << 20
"""Bytes of a message; a longer one is not read."""

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
INTERNAL_ERROR = -32603
HEADER_MISMATCH = -32020
NOT_MADE = frozenset((PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, HEADER_MISMATCH))
"""Errors by which a server says that it did not begin with a call."""

_MESSAGE = frozenset(("jsonrpc", "id", "method", "params", "result", "error"))
_CALL = frozenset(("name", "arguments", "_meta", "task"))
_MAX_SAID = 200


class Doubled(dict[str, "Any"]):
    """A table in which a key stands twice: which of the two counts depends on who reads it."""


def read_strictly(raw: bytes) -> Any:
    """Return the message that every reader would find in some bytes.

    Raises
    ------
    MessageError
        If there is none, or if another reader might find another one: broken JSON or UTF-8, a carriage return in the
        middle (some readers end a line there), a key that stands twice or that others take for one of the protocol's.
    """
    if b"\r" in raw.rstrip(b"\r\n"):
        raise MessageError("a carriage return stands within the message")
    double: list[str] = []
    try:
        message = json.loads(
            raw.decode("utf-8"), object_pairs_hook=_noting(double), parse_constant=_no_number
        )
    except RecursionError:
        raise MessageError("the message is nested too deeply") from None
    except ValueError as error:
        raise MessageError(f"the message is no JSON: {str(error)[:_MAX_SAID]}") from error
    for one in message if isinstance(message, list) else (message,):
        _unambiguous(one, double)
    return message


def read_loosely(raw: bytes) -> Any:
    """Return the message that some reader might find in some bytes; None if no reader would find any.

    Raises
    ------
    MessageError
        If readers might find different messages, or if only this one cannot read it.
    """
    try:
        message = json.loads(
            raw.decode("utf-8", "replace").lstrip("\ufeff"), object_pairs_hook=_table, strict=False
        )
    except json.JSONDecodeError:
        return None
    except (RecursionError, ValueError) as error:
        raise MessageError(f"the message cannot be read: {type(error).__name__}") from error
    for one in message if isinstance(message, list) else (message,):
        if isinstance(one, dict):
            _plain(one, _MESSAGE)
            if isinstance(one.get("result"), Doubled):
                raise MessageError("a key of the result stands twice")
    return message


def _noting(double: list[str]) -> Any:
    def table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = _table(pairs)
        if type(made) is Doubled:
            double.append("a key stands twice")
        return made

    return table


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    return table if len(table) == len(pairs) else Doubled(table)


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def _unambiguous(message: Any, double: list[str]) -> None:
    if not isinstance(message, dict):
        return
    _plain(message, _MESSAGE)
    params = message.get("params")
    if isinstance(params, Doubled):
        raise MessageError("a key of the parameters stands twice")
    if "method" in message and not isinstance(message["method"], str):
        raise MessageError("the method is no text")
    if message.get("method") == "tools/call":
        if double:
            raise MessageError("a key stands twice in a tool call")
        if isinstance(params, dict):
            _plain(params, _CALL)


def _plain(table: dict[str, Any], known: frozenset[str]) -> None:
    if type(table) is Doubled:
        raise MessageError("a key of the message stands twice")
    for key in table:
        if key not in known and key.casefold() in known:
            raise MessageError(f"some readers take {key[:_MAX_SAID]!r} for {key.casefold()!r}")


# -- answers --------------------------------------------------------------------------------------------------


def written(message: Any) -> bytes:
    """Return a message as bytes without line breaks, in ASCII."""
    return json.dumps(message, separators=(",", ":")).encode("ascii")


def refusal(request: dict[str, Any], text: str) -> bytes:
    """Return the answer to a tool call that was not made: a result that says why, to the model."""
    result: dict[str, Any] = {"content": [block(text)], "isError": True}
    if stateless(request):
        result["resultType"] = "complete"
    return written({"jsonrpc": "2.0", "id": request["id"], "result": result})


def block(text: str) -> dict[str, str]:
    """Return a block of content."""
    return {"type": "text", "text": text}


def failure(request_id: Any, code: int, text: str) -> bytes:
    """Return the answer to a request that is none."""
    error = {"code": code, "message": text}
    return written({"jsonrpc": "2.0", "id": request_id, "error": error})


def stateless(request: dict[str, Any]) -> bool:
    """Return whether a request belongs to the revisions without a handshake."""
    return "io.modelcontextprotocol/protocolVersion" in meta(request)


def meta(request: dict[str, Any]) -> dict[str, Any]:
    """Return the ``_meta`` of a request; empty if there is none."""
    params = request.get("params")
    found = params.get("_meta") if isinstance(params, dict) else None
    return found if isinstance(found, dict) else {}


def request_id(message: dict[str, Any]) -> tuple[str, Any] | None:
    """Return an identifier that keeps 1 and "1" apart; None if the message has none that the protocol allows."""
    found = message.get("id")
    if type(found) is int:
        return "int", found
    return ("str", found) if type(found) is str else None


def texts(result: Any) -> str:
    """Return a result as the model reads it: its texts, and what its structure says besides."""
    from safetydrift.integrations.claude_code import as_read  # noqa: PLC0415  # calls without a result need none

    if not isinstance(result, dict):
        return as_read(result)
    content = result.get("content")
    said = [_of_block(one) for one in content] if isinstance(content, list) else []
    structured = result.get("structuredContent")
    if structured is not None:
        more = as_read(structured)
        said += [more] if more not in said else []
    return "\n".join(said)


def _of_block(one: Any) -> str:
    from safetydrift.integrations.claude_code import as_read  # noqa: PLC0415  # as above

    if isinstance(one, dict) and one.get("type") == "text" and isinstance(one.get("text"), str):
        return str(one["text"])
    return as_read(one)


class Lines:
    """Cuts a stream of bytes into lines, their ends included.

    Parameters
    ----------
    most
        Bytes that a line may have.
    """

    __slots__ = ("_looked", "_most", "_skipping", "_waiting")

    def __init__(self, most: int = MAX_MESSAGE) -> None:
        self._most = most
        self._waiting = bytearray()
        self._looked = 0
        self._skipping = False

    def feed(self, data: bytes) -> Iterable[bytes]:
        """Yield the lines that are complete now.

        Raises
        ------
        MessageError
            If a line is too long; what stands before it was yielded, and the line is left out.
        """
        waiting = self._waiting
        if self._skipping:
            end = data.find(b"\n") + 1
            self._skipping = end == 0
            data = data[end:] if end else b""
        waiting += data
        while (end := waiting.find(b"\n", self._looked)) >= 0:
            line = bytes(waiting[: end + 1])
            del waiting[: end + 1]
            self._looked = 0
            if len(line) > self._most:
                raise MessageError(f"a line of more than {self._most} bytes")
            yield line
        self._looked = len(waiting)
        if len(waiting) > self._most:
            waiting.clear()
            self._looked, self._skipping = 0, True
            raise MessageError(f"a line of more than {self._most} bytes")

    def rest(self) -> bytes:
        """Return what came after the last end of a line."""
        return bytes(self._waiting)
