"""Calls in the responses of the Anthropic and OpenAI clients, and the replies to them.

Reads typed response objects and the same as plain tables, so neither client is needed: messages of Anthropic, items of
OpenAI's Responses, and messages of OpenAI's chat completions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from safetydrift.integrations.common import field, proposed, text_of
from safetydrift.trace import ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterator

ANTHROPIC, RESPONSES, CHAT = "anthropic", "responses", "chat"
_OURS = frozenset({"apply_patch_call", "computer_call", "local_shell_call", "shell_call"})
"""Items of Responses that the client executes, besides functions and tools of its own."""
_ARGUMENTS = ("arguments", "action", "actions", "operation", "code", "queries", "input")


class Found(NamedTuple):
    """A call in a response.

    Parameters
    ----------
    call
        The call, as a guard is asked about it.
    call_id
        Its identifier.
    dialect
        One of `ANTHROPIC`, `RESPONSES` and `CHAT`.
    kind
        The type of the block or item it came in.
    made
        Whether the provider has made it already.
    result
        What came back from a call that was made, as text; empty where the response does not say.
    """

    call: ToolCall
    call_id: str
    dialect: str
    kind: str
    made: bool = False
    result: str = ""


def calls_in(response: Any) -> list[Found]:
    """Return the calls of a response, in order.

    Parameters
    ----------
    response
        A whole response, never a part of a stream: a message of Anthropic, a response of OpenAI, a chat completion or
        its message, or a list of blocks or items of one.

    Raises
    ------
    TypeError
        If it is none of these. What a model has written into it raises nothing.
    """
    if isinstance(response, list):
        chat = any(field(part, "role") == "assistant" and field(part, "tool_calls") for part in response)
        return [found for part in response for found in _chat(part)] if chat else list(_blocks(response))
    choices = field(response, "choices")
    if isinstance(choices, list):
        return [found for choice in choices[:1] for found in _chat(field(choice, "message"))]
    output = field(response, "output")
    if isinstance(output, list):
        return list(_blocks(output))
    content = field(response, "content")
    if field(response, "role") == "assistant":
        blocks = list(_blocks(content)) if isinstance(content, list) else []
        return blocks or list(_chat(response))
    raise TypeError(f"a {type(response).__name__} is no response of Anthropic or OpenAI")


def _chat(message: Any) -> Iterator[Found]:
    for one in field(message, "tool_calls") or ():
        kind = field(one, "type") or "function"
        said = field(one, kind)
        call_id = _text(field(one, "id"))
        if kind == "custom":
            call = ToolCall(_text(field(said, "name")), {"input": field(said, "input")}, id=call_id)
        else:
            call = proposed(_text(field(said, "name")), field(said, "arguments"), call_id)
        yield Found(call, call_id, CHAT, kind)


def _blocks(parts: list[Any]) -> Iterator[Found]:
    results = {
        field(part, "tool_use_id"): part
        for part in parts
        if _text(field(part, "type")).endswith("_tool_result")
    }
    for part in parts:
        kind = _text(field(part, "type"))
        call_id = _text(field(part, "call_id")) or _text(field(part, "id"))
        name = _text(field(part, "name"))
        if kind == "tool_use":
            yield Found(proposed(name, field(part, "input"), call_id), call_id, ANTHROPIC, kind)
        elif kind in {"server_tool_use", "mcp_tool_use"}:
            result = text_of(field(results.get(call_id), "content"))
            yield Found(proposed(name, field(part, "input"), call_id), call_id, ANTHROPIC, kind, True, result)  # noqa: FBT003
        elif kind == "function_call":
            yield Found(proposed(name, field(part, "arguments"), call_id), call_id, RESPONSES, kind)
        elif kind == "custom_tool_call":
            call = ToolCall(name, {"input": field(part, "input")}, id=call_id)
            yield Found(call, call_id, RESPONSES, kind)
        elif kind.endswith("_call"):
            yield _hosted(part, kind, name, call_id)


def _hosted(part: Any, kind: str, name: str, call_id: str) -> Found:
    """Return a call of one of OpenAI's own tools: made by the provider, or left to the client."""
    args: dict[str, Any] = {}
    for one in _ARGUMENTS:
        value = field(part, one)
        if value is not None:
            args[one] = value.model_dump(mode="json") if hasattr(value, "model_dump") else value
    arguments = args.pop("arguments", None)
    call = proposed(name or kind.removesuffix("_call"), args if arguments is None else arguments, call_id)
    if kind in _OURS:
        return Found(call, call_id, RESPONSES, kind)
    result = "\n".join(text_of(field(part, one)) for one in ("output", "outputs", "results", "error"))
    return Found(call, call_id, RESPONSES, kind, made=True, result=result.strip())


def reply(found: Found, result: Any, *, failed: bool = False) -> dict[str, Any]:
    """Return what a model is told about one call, as its provider wants it.

    Parameters
    ----------
    result
        A text, or structured content in the provider's own form.
    failed
        Whether the call failed or was refused. Only Anthropic has a mark for it.
    """
    if found.dialect == ANTHROPIC:
        block = {"type": "tool_result", "tool_use_id": found.call_id, "content": result}
        return block | {"is_error": True} if failed else block
    if found.dialect == CHAT:
        return {"role": "tool", "tool_call_id": found.call_id, "content": result}
    return {"type": f"{found.kind}_output", "call_id": found.call_id, "output": result}


def packed(replies: list[tuple[Found, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return replies as messages or items to append to the conversation."""
    if replies and replies[0][0].dialect == ANTHROPIC:
        return [{"role": "user", "content": [block for _, block in replies]}]
    return [item for _, item in replies]


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
