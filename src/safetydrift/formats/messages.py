"""Messages in the shapes that frameworks record them in, read as one.

The shapes: parts of the OpenTelemetry conventions, messages of the OpenAI and Anthropic interfaces, items of OpenAI's
Responses, LangChain's messages (plain or serialised), Gemini's contents, and OpenInference's wrappers. What is read
is decoded JSON of which nothing is certain, so every value is looked at before it is used.
"""

from __future__ import annotations

import ast
import json
import warnings
from typing import TYPE_CHECKING, Any

import msgspec

from safetydrift.formats.format import proposed
from safetydrift.trace import ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_DEPTH = 8
MAX_LITERAL = 1 << 16
MAX_LOOKED_AT = 64
AGENT, USER, TOOL, SYSTEM = "agent", "user", "tool", "system"
_ROLES = {
    "assistant": AGENT,
    "ai": AGENT,
    "AIMessage": AGENT,
    "AIMessageChunk": AGENT,
    "model": AGENT,
    "agent": AGENT,
    "user": USER,
    "human": USER,
    "HumanMessage": USER,
    "HumanMessageChunk": USER,
    "tool": TOOL,
    "function": TOOL,
    "ToolMessage": TOOL,
    "FunctionMessage": TOOL,
    "ipython": TOOL,
    "system": SYSTEM,
    "developer": SYSTEM,
    "SystemMessage": SYSTEM,
}
_TEXTS = frozenset({"text", "input_text", "output_text", "Text", "summary_text"})
_CALLS = frozenset(
    {"tool_use", "server_tool_use", "mcp_tool_use", "tool_call", "server_tool_call", "function_call"}
)
_RESULTS = ("tool_result", "tool_call_response", "function_response")
_NO_ITEM_CALLS = frozenset({"tool_call", "server_tool_call"})
_ASKED = ("prompt", "question", "query", "input", "text")
_SAYS: dict[str, tuple[str, ...]] = {
    USER: _ASKED,
    AGENT: ("output", "text", "answer", "response", "result"),
    TOOL: ("output", "text", "result"),
}
"""Under which names a request or a response says something that is no message."""
_CONTENTS = ("content", "parts", "contents")
_GIVEN = ("arguments", "args", "input")
_LISTS = ("tool_calls", "invalid_tool_calls")
_CALLING = frozenset({"tool_calls", "invalid_tool_calls", "function_call", "additional_kwargs"})
_PICTURES = ("image", "image_url", "audio", "file", "screenshot")
_BEGINS = frozenset('{["')
_SPEAKING = frozenset({"messages", "role", "content", "contents", *_ASKED})
_OTHER_ITEMS = frozenset({"mcp_approval_request", "mcp_approval_response", "reasoning"})
_NO_ARGUMENTS = frozenset(
    {"id", "type", "status", "call_id", "output", "outputs", "result", "results", "metadata"}
)


class Result:
    """What came back for a call, as a message tells it."""

    __slots__ = ("call_id", "error", "refused_by", "text")

    def __init__(self, call_id: str, text: str, error: str | None = None, refused_by: str = "") -> None:
        self.call_id, self.text, self.error, self.refused_by = call_id, text, error, refused_by


class Message:
    """What one message says, proposes and brings back."""

    __slots__ = ("calls", "is_item", "results", "role", "texts", "tools")

    def __init__(self, role: str, *, is_item: bool = False) -> None:
        self.role, self.is_item = role, is_item
        self.texts: list[str] = []
        self.calls: list[ToolCall] = []
        self.results: list[Result] = []
        self.tools: list[str] = []

    @property
    def text(self) -> str:
        """The words, without calls and results."""
        return "\n".join(self.texts)

    @property
    def key(self) -> int:
        """A number that equal messages share."""
        calls = tuple([(one.id, one.name, "" if one.id else repr(one.args)) for one in self.calls])
        return hash((self.role, self.text, calls, tuple([(one.call_id, one.text) for one in self.results])))


def decoded(value: object) -> tuple[object, bool]:
    """Return what JSON text says, and whether all of it was there; other values and other text as they are.

    Of an array that was cut, the elements before the cut are returned.
    """
    if isinstance(value, (bytes, msgspec.Raw)):
        value = bytes(value).decode("utf-8", "replace")
        if value == "null" or not value:
            return None, True
    if not isinstance(value, str) or value[:1] not in _BEGINS:
        return value, True
    try:
        return msgspec.json.decode(value), True
    except RecursionError:
        return value, False
    except msgspec.DecodeError as error:
        is_cut = "truncated" in str(error)
        return (is_cut and value[0] == "[" and _salvaged(value)) or value, not is_cut


def _salvaged(text: str) -> list[object]:
    found: list[object] = []
    at, read = 1, json.JSONDecoder().raw_decode
    try:
        while True:
            while text[at : at + 1] in {" ", ",", "\n", "\t", "\r"}:
                at += 1
            begin, (_, at) = at, read(text, at)
            found.append(msgspec.json.decode(text[begin:at]))
    except (ValueError, RecursionError):
        return found


def text_of_result(value: object, raw: object = None) -> str:
    """Return the text of a result: of blocks of text their texts, of other values their JSON.

    Parameters
    ----------
    raw
        The JSON of the value, where it is at hand.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        for name in ("output", "error", "content"):
            inner = value.get(name)
            if (len(value) == 1 or name == "content") and isinstance(inner, (str, list)):
                return text_of_result(inner)
    if isinstance(value, list) and value and all(isinstance(one, dict) and "type" in one for one in value):
        texts = [text for one in value if isinstance(text := one.get("text"), str)]
        if texts or all(str(one["type"]).endswith(_PICTURES) for one in value):
            return "\n".join(texts)
    if isinstance(raw, str):
        return raw
    return "" if value is None else msgspec.json.encode(value).decode()


def arguments_of(value: object) -> object:
    """Return the arguments that a tool's input holds, without the wrappers that frameworks put around them.

    A Python literal of a dict is read as one, for some frameworks write inputs with `str`.
    """
    value, _ = decoded(value)
    if isinstance(value, str):
        return _literal(value)
    if isinstance(value, dict):
        if value.keys() == {"input"}:
            inner, _ = decoded(value["input"])
            inner = _literal(inner) if isinstance(inner, str) else inner
            return inner if isinstance(inner, dict) else value
        named = value.get("kwargs")
        if value.keys() <= {"args", "kwargs"} and isinstance(named, dict) and not value.get("args"):
            return named
    return value


def _literal(text: str) -> object:
    if not text.startswith("{") or len(text) > MAX_LITERAL:
        return text
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the parser warns of escapes it does not know
            value = msgspec.json.decode(msgspec.json.encode(ast.literal_eval(text)))
        return value if isinstance(value, dict) else text
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return text


def call_of(name: object, arguments: object, call_id: object = "") -> ToolCall:
    """Return a proposed call; without a name, or without arguments on record, it is malformed."""
    named = name if isinstance(name, str) else ""
    own = call_id if isinstance(call_id, str) else ""
    if arguments is None or not named:
        raw = "" if arguments is None else msgspec.json.encode(arguments).decode()
        return ToolCall(named, id=own, malformed=raw)
    return proposed(named, arguments, own)


def messages_of(value: object, role: str) -> list[Message]:
    """Return the messages in a value: a message, a list, or what a framework wraps around them.

    Parameters
    ----------
    value
        Decoded JSON, or text.
    role
        Who says what names no role: `USER` for what goes into a model, `AGENT` for what comes out.
    """
    found: list[Message] = []
    for one in _each(value, role, 0):
        last = found[-1] if found else None
        if last is not None and _same_turn(last, one):
            last.texts += one.texts
            last.calls += one.calls
            last.results += one.results
        else:
            found.append(one)
    return found


def _same_turn(last: Message, one: Message) -> bool:
    """Return whether two items belong to one answer of the model; messages are whole answers."""
    return one.role == last.role == AGENT and (one.is_item or last.is_item) and not (one.texts and last.calls)


def tools_of(value: object) -> list[str]:
    """Return the names in a list of tool definitions of any shape, or in the request that holds one."""
    value, _ = decoded(value)
    if isinstance(value, dict):
        value = value.get("tools") or value.get("functions")
        if isinstance(value, dict):
            value = list(value.values())
    names: list[str] = []
    for one in value if isinstance(value, list) else ():
        inner = decoded(one)[0]
        if isinstance(inner, str):
            names.append(inner)
        elif isinstance(inner, dict):
            inner = decoded(inner["tool.json_schema"])[0] if "tool.json_schema" in inner else inner
            names += _tool_names(inner)
    return names


def _tool_names(value: object) -> Iterator[str]:
    if not isinstance(value, dict):
        return
    for name in ("tool", "function", "json_schema"):
        inner = decoded(value.get(name))[0]
        if isinstance(inner, dict):
            yield from _tool_names(inner)
            return
    declared = value.get("functionDeclarations") or value.get("function_declarations")
    for one in declared if isinstance(declared, list) else (value,):
        if isinstance(one, dict) and isinstance(one.get("name"), str):
            yield one["name"]


def _each(value: object, role: str, depth: int) -> Iterator[Message]:
    if depth > MAX_DEPTH:
        return
    if isinstance(value, str):
        if value:
            message = Message(role)
            message.texts.append(value)
            yield message
    elif isinstance(value, list):
        if len(value) == 2 and isinstance(value[0], str) and value[0] in _ROLES:  # noqa: PLR2004  # ("user", "..")
            yield from _each({"role": value[0], "content": value[1]}, role, depth + 1)
            return
        for one in value:
            yield from _each(one, role, depth + 1)
    elif isinstance(value, dict):
        yield from _of_dict(value, role, depth)


def _unserialised(value: dict[str, Any]) -> dict[str, Any]:
    """Return what LangChain serialised, with the name of its class for a type."""
    names, fields = value.get("id"), value.get("kwargs")
    if "lc" not in value or not isinstance(fields, dict) or not isinstance(names, list):
        return value
    return fields | {"type": names[-1] if names else None}


def _of_dict(value: dict[str, Any], role: str, depth: int) -> Iterator[Message]:
    own = _role(value.get("role"))
    if not own and is_item(value):
        yield read_item(value)
        return
    if not own:
        value = _unserialised(value)
        kind = value.get("type")
        own = _ROLES.get(kind, "") if isinstance(kind, str) else ""
    if own:
        yield _message(value, own)
    elif (inner := _wrapped(value)) is not None:
        yield from _each(inner, role, depth + 1)
    elif "type" not in value and any(isinstance(value.get(name), list) for name in _CONTENTS):
        yield _message(value, role)
    else:
        said = next((text for name in _SAYS[role] if isinstance(text := value.get(name), str)), "")
        yield from _each(said, role, depth + 1)


def _role(name: object) -> str:
    """Return the role of a name; one that nobody knows is neither the user's nor the agent's."""
    return _ROLES.get(name, SYSTEM) if isinstance(name, str) and name else ""


def _wrapped(value: dict[str, Any]) -> object:
    """Return the messages that a request or a response holds, or None if it holds none."""
    for name in ("message", "content"):
        if isinstance(value.get(name), dict):
            return value[name]
    for name in ("messages", "choices", "generations", "candidates", "contents", "output", "input"):
        inner, _ = decoded(value.get(name))
        if inner and isinstance(inner, (list, dict)):
            if name == "input" and isinstance(inner, dict) and inner.keys().isdisjoint(_SPEAKING):
                continue
            return inner
    return None


def _message(value: dict[str, Any], role: str) -> Message:
    message = Message(role)
    for name in _CONTENTS:
        content = value.get(name)
        if content is None:
            continue
        if isinstance(content, str):
            message.texts.append(content)
        elif isinstance(content, dict) and role == TOOL and "tool_call_id" not in value:
            message.tools += tools_of([content])  # LangChain's callbacks list the tools among the messages
            message.role = SYSTEM
        for block in content if isinstance(content, list) else ():
            _add_block(message, block)
    _add_calls(message, value)
    if message.role == TOOL and not message.results:
        error = message.text if value.get("status") == "error" or value.get("error") else None
        call_id = value.get("tool_call_id") or value.get("id")
        message.results.append(Result(call_id if isinstance(call_id, str) else "", message.text, error))
        message.texts.clear()
    message.texts = [text for text in message.texts if text]
    return message


def _add_calls(message: Message, value: dict[str, Any]) -> None:
    if value.keys().isdisjoint(_CALLING):
        return
    extra = value.get("additional_kwargs")
    taken = {call.id for call in message.calls if call.id}
    for source in (value, extra) if isinstance(extra, dict) else (value,):
        for name in _LISTS:
            calls = source.get(name)
            for one in calls if isinstance(calls, list) else ():
                call = _call(one)
                if call is not None and not (call.id and call.id in taken):
                    taken.add(call.id)
                    message.calls.append(call)
        older = source.get("function_call")
        if isinstance(older, dict) and not message.calls:
            message.calls.append(call_of(older.get("name"), older.get("arguments")))


def _call(wrapped: object) -> ToolCall | None:
    if not isinstance(wrapped, dict):
        return None
    value = wrapped.get("tool_call", wrapped)
    value = value if isinstance(value, dict) else wrapped
    call_id = value.get("id") or value.get("call_id") or value.get("tool_call_id")
    function = value.get("function")
    if isinstance(function, dict):
        return call_of(function.get("name"), _given(function), call_id)
    if isinstance(custom := value.get("custom"), dict):
        return call_of(custom.get("name"), {"input": custom.get("input")}, call_id)
    return call_of(value.get("name"), _given(value), call_id)


def _given(value: dict[str, Any]) -> object:
    for name in _GIVEN:
        given = value.get(name)
        if given is not None:
            return given
    return None


def _add_block(message: Message, wrapped: object) -> None:
    if isinstance(wrapped, str):
        message.texts.append(wrapped)
        return
    if not isinstance(wrapped, dict):
        return
    inner = wrapped.get("message_content")
    block: dict[str, Any] = inner if isinstance(inner, dict) else wrapped
    kind = block.get("type")
    if isinstance(kind, str) and kind in _TEXTS:
        text = block.get("text", block.get("content"))
        if isinstance(text, str):
            message.texts.append(text)
    elif isinstance(kind, str) and is_call_block(kind):
        given = _given(block) if kind != "server_tool_call" else block.get(kind, _given(block))
        message.calls.append(call_of(block.get("name"), given, block.get("id") or block.get("call_id")))
    elif isinstance(kind, str) and kind.endswith(_RESULTS):
        message.results.append(_result_block(block))
    elif isinstance(part := block.get("functionCall", block.get("function_call")), dict):
        message.calls.append(call_of(part.get("name"), part.get("args", {}), part.get("id")))
    elif isinstance(part := block.get("functionResponse", block.get("function_response")), dict):
        message.results.append(_result_block(part))
    elif kind is None and isinstance(text := block.get("text"), str):
        message.texts.append(text)


def is_call_block(kind: str) -> bool:
    """Return whether a block of content of this type is a proposed call."""
    return kind in _CALLS


def _result_block(block: dict[str, Any]) -> Result:
    call_id = block.get("tool_use_id") or block.get("id") or block.get("call_id")
    names = ("response", "result", "content", "output", "server_tool_call_response")
    value = next((block[name] for name in names if block.get(name) is not None), None)
    text = text_of_result(value)
    failed = block.get("is_error") is True or has_failed(value)
    return Result(call_id if isinstance(call_id, str) else "", text, text if failed else None)


def has_failed(value: object) -> bool:
    """Return whether a result says of itself that it is an error."""
    return isinstance(value, dict) and (value.get("isError") is True or value.keys() == {"error"})


# -- items of OpenAI's Responses ------------------------------------------------------------------------------


def is_item(value: object) -> bool:
    """Return whether a value is an item of OpenAI's Responses other than a message."""
    kind = value.get("type") if isinstance(value, dict) else None
    if not isinstance(kind, str) or kind in _NO_ITEM_CALLS:
        return False
    return kind.endswith(("_call", "_output")) or kind in _OTHER_ITEMS


def read_item(value: dict[str, Any]) -> Message:
    """Return an item as a message."""
    kind = str(value["type"])
    call_id = value.get("approval_request_id") or value.get("call_id") or value.get("id")
    own = call_id if isinstance(call_id, str) else ""
    if kind.endswith("_output"):
        message = Message(TOOL, is_item=True)
        output = value.get("output", value.get("tools"))
        message.results.append(Result(own, text_of_result(_older_output(output))))
        return message
    if kind == "mcp_approval_response":
        message = Message(TOOL, is_item=True)
        if value.get("approve") is False:
            message.results.append(Result(own, "", str(value.get("reason") or "refused"), "person"))
        return message
    message = Message(AGENT, is_item=True)
    if kind != "reasoning":
        name = value.get("name") or kind.removesuffix("_call")
        message.calls.append(call_of(name, _item_arguments(value), own))
        message.results += _hosted_result(value, own)
    return message


def _older_output(output: object) -> object:
    """Return what came back, of text that holds it beside an exit code."""
    if isinstance(output, str) and output.startswith('{"output":'):
        value, _ = decoded(output)
        if isinstance(value, dict) and value.keys() <= {"output", "metadata"}:
            return value["output"]
    return [output] if isinstance(output, dict) and "type" in output else output


def _item_arguments(value: dict[str, Any]) -> object:
    if value.get("type") == "custom_tool_call":
        return {"input": value.get("input")}
    if "arguments" in value:
        return value["arguments"]
    action = value.get("action")
    if isinstance(action, dict):
        return action
    if value.get("type") == "function_call":
        return None
    return {name: item for name, item in value.items() if name not in _NO_ARGUMENTS}


def _hosted_result(value: dict[str, Any], call_id: str) -> Iterator[Result]:
    """Yield what came back from a tool that the provider ran by itself, which stands in the call."""
    for name in ("output", "outputs", "results"):
        if value.get(name) is not None:
            yield Result(call_id, text_of_result(value[name]))
            return
    if isinstance(error := value.get("error"), (str, dict)):
        text = text_of_result(error)
        yield Result(call_id, text, text)


def are_items(value: object, *, or_messages: bool = False) -> bool:
    """Return whether a list begins like one of items: at least one is no message, unless these will do."""
    some = value[:MAX_LOOKED_AT] if isinstance(value, list) else []
    if or_messages:
        return all(is_item(one) or (isinstance(one, dict) and one.get("type") == "message") for one in some)
    return any(map(is_item, some)) and all(
        is_item(one) or (isinstance(one, dict) and "role" in one) for one in some
    )
