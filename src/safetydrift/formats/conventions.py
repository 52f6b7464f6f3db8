"""The attributes that spans carry, by the conventions that name them.

They are OpenTelemetry's conventions for generative AI, now and before, those of OpenInference, OpenLLMetry and MLflow,
and what agents call things in telemetry of their own. What an attribute is called differs by convention and version;
what it says is one of a dozen things. So each thing has a list of names, in the order in which they are believed.
"""

from __future__ import annotations

import base64
import binascii
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from safetydrift.formats.history import MAX_SEGMENTS, Flat
from safetydrift.formats.messages import decoded
from safetydrift.formats.spans import MODEL, OTHER, SUBAGENT, TOOL, Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from safetydrift.formats.format import Place

_KINDS: dict[str, dict[str, str]] = {
    "gen_ai.operation.name": {
        "chat": MODEL,
        "generate_content": MODEL,
        "text_completion": MODEL,
        "execute_tool": TOOL,
        "invoke_agent": SUBAGENT,
        "chain": OTHER,
        "invoke_workflow": OTHER,
        "create_agent": OTHER,
    },
    "openinference.span.kind": {"LLM": MODEL, "TOOL": TOOL, "AGENT": SUBAGENT, "CHAIN": OTHER},
    "mlflow.spanType": {
        "LLM": MODEL,
        "CHAT_MODEL": MODEL,
        "TOOL": TOOL,
        "AGENT": SUBAGENT,
        "CHAIN": OTHER,
        "UNKNOWN": OTHER,
    },
    "traceloop.span.kind": {"tool": TOOL, "agent": SUBAGENT, "task": OTHER, "workflow": OTHER},
    "llm.request.type": {"chat": MODEL, "completion": MODEL},
    "mcp.method.name": {"tools/call": TOOL},
}
_SESSION = (
    "gen_ai.conversation.id",
    "session.id",
    "conversation.id",
    "mlflow.trace.session",
    "langfuse.session.id",
    "traceloop.association.properties.session_id",
    "traceloop.association.properties.thread_id",
)
_MODEL = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "mlflow.llm.model", "model")
_TOOL_NAME = ("gen_ai.tool.name", "tool.name", "traceloop.entity.name", "tool_name", "function_name")
_CALL_ID = ("gen_ai.tool.call.id", "gen_ai.tool.call_id", "tool_call.id", "tool.id", "tool_use_id", "call_id")
_ANY_INPUT = ("input.value", "mlflow.spanInputs", "traceloop.entity.input", "input")
_ANY_OUTPUT = ("output.value", "mlflow.spanOutputs", "traceloop.entity.output", "output")
_ARGUMENTS = (
    "gen_ai.tool.call.arguments",
    "arguments",
    "function_args",
    "tool_parameters",
    "tool_input",
    *_ANY_INPUT,
)
_RESULT = ("gen_ai.tool.call.result", "tool_output", *_ANY_OUTPUT)
_INPUTS = ("gen_ai.input.messages", "gen_ai.prompt", "llm.input_messages", *_ANY_INPUT)
_OUTPUTS = ("gen_ai.output.messages", "gen_ai.completion", "llm.output_messages", *_ANY_OUTPUT)
_TOOLS = ("gen_ai.tool.definitions", "llm.tools", "llm.request.functions", "mlflow.chat.tools")
_ERROR_TYPE = "error.type"
_INTERVENTION, _REASON = "safetydrift.intervention", "safetydrift.reason"
_ANSWERED = "safetydrift.answered"
_REFUSING = frozenset({"block", "suggest", "ask"})
_FLAT = (
    "gen_ai.prompt.",
    "gen_ai.completion.",
    "llm.input_messages.",
    "llm.output_messages.",
    "llm.tools.",
    "llm.request.functions.",
)
NAMED = frozenset({"claude_code.tool"})
"""Spans that are told to be of tools by their name alone."""
_HIDDEN = "__REDACTED__"
_NAMES = frozenset(
    (
        *_KINDS,
        *_SESSION,
        *_MODEL,
        *_TOOL_NAME,
        *_CALL_ID,
        *_ARGUMENTS,
        *_RESULT,
        *_INPUTS,
        *_OUTPUTS,
    )
) | {*_TOOLS, _ERROR_TYPE, _INTERVENTION, _REASON, _ANSWERED, "mcp.tool.name"}
_HEX_LENGTHS, _BASE64_LENGTHS = (16, 32), (12, 24)
_ZEROS = tuple("0" * length for length in _HEX_LENGTHS)


def session_of(attributes: Mapping[str, Any]) -> str:
    """Return the conversation that attributes name, or an empty text."""
    return _text(attributes, _SESSION)


def span_of(
    attributes: dict[str, Any],
    place: Place | None,
    *,
    trace: str,
    span: str,
    parent: str = "",
    name: str = "",
    start: float | None = None,
    end: float | None = None,
    failed: str | None = None,
) -> Span:
    """Return a span from its attributes and from what its carrier says of it.

    Parameters
    ----------
    attributes
        By name, as `collected`. Values are text or decoded JSON.
    trace, span, parent
        Identifiers in any spelling.
    start, end
        In seconds since 1970.
    failed
        The carrier's message if the span ended in an error, else None.
    """
    kind = _kind(attributes, name)
    found = Span(
        identifier(trace),
        identifier(span),
        kind,
        place,
        parent=identifier(parent),
        start=start,
        end=end,
        session=session_of(attributes),
    )
    if kind == TOOL:
        _tool(found, attributes, name)
    elif kind == MODEL:
        found.model = _text(attributes, _MODEL)
        found.inputs, found.outputs = _first(attributes, _INPUTS), _first(attributes, _OUTPUTS)
        found.tools = _first(attributes, _TOOLS)
    else:
        found.inputs = _first(attributes, ("gen_ai.input.messages", *_ANY_INPUT))
        found.outputs = _first(attributes, ("gen_ai.output.messages", *_ANY_OUTPUT))
    if failed is None and kind == TOOL and _ERROR_TYPE in attributes:
        failed = ""
    if failed is not None:
        found.error = failed or _text(attributes, (_ERROR_TYPE,)) or "failed"
    if _INTERVENTION in attributes:
        _decision(found, attributes)
    return found


def _kind(attributes: Mapping[str, Any], name: str) -> str:
    for attribute, kinds in _KINDS.items():
        value = attributes.get(attribute)
        found = kinds.get(value.strip('"')) if isinstance(value, str) else None
        if found is not None:
            return found
    if name in NAMED or "gen_ai.tool.name" in attributes:
        return TOOL
    return MODEL if "gen_ai.output.messages" in attributes or "gen_ai.completion" in attributes else OTHER


def _tool(span: Span, attributes: dict[str, Any], name: str) -> None:
    span.repeats = "mcp.method.name" in attributes
    named = _text(attributes, ("mcp.tool.name", *_TOOL_NAME) if span.repeats else _TOOL_NAME)
    span.name = named or name.removeprefix("execute_tool").removeprefix("tools/call").strip()
    span.call_id = _text(attributes, _CALL_ID)
    span.inputs, span.outputs = _first(attributes, _ARGUMENTS), _first(attributes, _RESULT)


def _decision(span: Span, attributes: Mapping[str, Any]) -> None:
    """Read a decision of our own guard. What went wrong there is the guard's, and the call was refused for it."""
    refused = str(attributes[_INTERVENTION]) in _REFUSING
    by = "person" if attributes.get(_ANSWERED) is True else "guard"
    span.refused_by = by if refused else ""
    span.error = (_text(attributes, (_REASON,)) or f"refused by a {by}") if refused else None


def _first(attributes: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    for name in names:
        value = attributes.get(name)
        if value is not None and value not in ("", _HIDDEN):
            return value
    return None


def _text(attributes: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """Return the first of some attributes that is text; MLflow writes it with its quotation marks."""
    value = _first(attributes, names)
    if isinstance(value, str) and value[:1] == '"':
        value, _ = decoded(value)
    return value if isinstance(value, str) else ""


def identifier(text: str) -> str:
    """Return an id of a trace or span in one spelling: hexadecimal digits in lower case; zeros are none.

    Examples
    --------
    >>> identifier("EREREREREREREREREREREQ=="), identifier("0x00f067aa0ba902b7"), identifier("0000000000000000")
    ('11111111111111111111111111111111', '00f067aa0ba902b7', '')
    """
    if len(text) in _HEX_LENGTHS:
        lower = text.lower()
        return "" if lower in _ZEROS else lower
    if text.endswith("=") and len(text) in _BASE64_LENGTHS:
        try:
            return base64.b64decode(text, validate=True).hex()
        except binascii.Error:
            return text
    return identifier(text[2:]) if text.startswith("0x") else text


def collected(attributes: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return those attributes that are read, by name; lists that were flattened into many as one `Flat`."""
    found: dict[str, Any] = {}
    for name, value in attributes:
        if name in _NAMES:
            found[name] = value
        elif (flat := _flat(name)) is not None:
            some = found.get(flat[0])
            if some is None:
                some = found[flat[0]] = Flat()
            if isinstance(some, Flat):
                plain = value if isinstance(value, (str, int, float)) else msgspec.json.encode(value).decode()
                some.append((flat[1], plain))
    return found


@lru_cache(maxsize=1 << 14)
def _flat(name: str) -> tuple[str, str] | None:
    """Return the list that a flattened attribute is part of, and the rest of its name; None for others."""
    for prefix in _FLAT:
        if name.startswith(prefix):
            return prefix[:-1], name[len(prefix) :]
    return None


def flattened(value: object, name: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield attributes that were nested by the segments of their names under their whole names."""
    if depth < MAX_SEGMENTS and isinstance(value, (dict, list)) and value and name not in _NAMES:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in items:
            yield from flattened(inner, f"{name}.{key}" if name else str(key), depth + 1)
    elif name:
        yield name, value
