"""One small story, told in every log format: who reads it right gets the same run out of all of them.

The user asks for a tidy folder. The agent lists it and reads a file in parallel, and the second call fails. The user
says more, the agent deletes a file, and says that it is done.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

ASKED, MORE, ANSWER = "Please tidy up reports.", "Then delete b.", "Done."
LISTED, FAILED, DELETED = "a.txt b.txt", "no such file", "deleted"
LIST: dict[str, Any] = {"path": "reports"}
READ: dict[str, Any] = {"path": "a.txt", "lines": [1, 2]}
DELETE: dict[str, Any] = {"path": "b.txt"}
MODEL = "m-1"
TOOLS = ("list_files", "read_file", "delete_file")


class Story(NamedTuple):
    """How a format tells the story.

    ``files`` are records by file name; ``tools`` says whether tools on offer are told, ``failure`` whether the
    format marks errors, ``times`` whether it has any.
    """

    name: str
    files: dict[str, list[Any]]
    tools: bool = True
    failure: bool = True
    times: bool = True


def at(n: int) -> str:
    return f"2026-11-22T06:52:{n:02}+00:00"


def nanos(n: int) -> int:
    return 1_795_330_320_000_000_000 + n * 10**9


# -- messages in the shapes that several formats share --------------------------------------------------------


def openai_call(number: int, name: str, args: dict[str, Any]) -> dict[str, Any]:
    return {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}


USER: dict[str, Any] = {"role": "user", "content": ASKED}
FIRST: dict[str, Any] = {
    "role": "assistant",
    "content": None,
    "tool_calls": [openai_call(1, "list_files", LIST), openai_call(2, "read_file", READ)],
}
BACK: list[dict[str, Any]] = [
    {"role": "tool", "tool_call_id": "c1", "content": LISTED},
    {"role": "tool", "tool_call_id": "c2", "content": FAILED},
]
USER_MORE: dict[str, Any] = {"role": "user", "content": MORE}
SECOND: dict[str, Any] = {
    "role": "assistant",
    "content": "Deleting.",
    "tool_calls": [openai_call(3, "delete_file", DELETE)],
}
BACK_MORE: list[dict[str, Any]] = [{"role": "tool", "tool_call_id": "c3", "content": DELETED}]
LAST: dict[str, Any] = {"role": "assistant", "content": ANSWER}
HISTORIES: list[list[dict[str, Any]]] = [
    [USER],
    [USER, FIRST, *BACK, USER_MORE],
    [USER, FIRST, *BACK, USER_MORE, SECOND, *BACK_MORE],
]
ANSWERS: list[dict[str, Any]] = [FIRST, SECOND, LAST]
DEFINITIONS = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in TOOLS]
CALLS: list[tuple[str, dict[str, Any], str | None, str | None]] = [
    ("list_files", LIST, LISTED, None),
    ("read_file", READ, None, FAILED),
    ("delete_file", DELETE, DELETED, None),
]


def parts(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message in parts, as OpenTelemetry has them."""
    if message["role"] == "tool":
        answer = {"type": "tool_call_response", "id": message["tool_call_id"], "response": message["content"]}
        return {"role": "tool", "parts": [answer]}
    found: list[dict[str, Any]] = []
    if message["content"]:
        found.append({"type": "text", "content": message["content"]})
    for one in message.get("tool_calls", ()):
        function = one["function"]
        arguments = json.loads(function["arguments"])
        found.append({"type": "tool_call", "id": one["id"], "name": function["name"], "arguments": arguments})
    return {"role": message["role"], "parts": found}


def items(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return messages as items of OpenAI's Responses."""
    found: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] == "tool":
            output = {
                "type": "function_call_output",
                "call_id": message["tool_call_id"],
                "output": message["content"],
            }
            found.append(output)
            continue
        if message["role"] == "user":
            found.append({"role": "user", "content": message["content"]})
        elif message["content"]:
            said = [{"type": "output_text", "text": message["content"], "annotations": []}]
            found.append({"type": "message", "role": "assistant", "content": said})
        for one in message.get("tool_calls", ()):
            function = one["function"]
            call = {"type": "function_call", "call_id": one["id"], "id": f"f{one['id']}"}
            found.append(call | {"name": function["name"], "arguments": function["arguments"]})
    return found


# -- spans ----------------------------------------------------------------------------------------------------


def any_value(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        return {"stringValue": value}
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, list):
        return {"arrayValue": {"values": [any_value(one) for one in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": keyed(value)}}
    return {}


def keyed(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": any_value(value)} for key, value in attributes.items()]


def otlp_span(
    number: int,
    attributes: dict[str, Any],
    *,
    parent: int = 99,
    name: str = "",
    error: str = "",
    trace: int = 1,
) -> dict[str, Any]:
    span = {
        "traceId": f"{trace:032x}",
        "spanId": f"{number:016x}",
        "parentSpanId": f"{parent:016x}" if parent else "",
        "name": name,
        "startTimeUnixNano": str(nanos(number)),
        "endTimeUnixNano": str(nanos(number) + 10**8),
        "attributes": keyed(attributes),
        "status": {"code": 2, "message": error} if error else {},
    }
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {"name": "t"}, "spans": [span]}]}]}


def model_spans() -> list[tuple[int, int]]:
    """Return the number of each model call's span, and which of the calls it is."""
    return [(1, 0), (4, 1), (6, 2)]


def tool_spans() -> list[tuple[int, int]]:
    return [(2, 0), (3, 1), (5, 2)]


def genai(*, content: bool = True, call_ids: bool = True) -> list[Any]:
    found: list[Any] = []
    for number, which in model_spans():
        attributes: dict[str, Any] = {"gen_ai.operation.name": "chat", "gen_ai.request.model": MODEL}
        attributes["gen_ai.conversation.id"] = "conv-1"
        if content:
            attributes |= {
                "gen_ai.input.messages": json.dumps([parts(one) for one in HISTORIES[which]]),
                "gen_ai.output.messages": json.dumps([parts(ANSWERS[which])]),
                "gen_ai.tool.definitions": json.dumps([{"type": "function", "name": name} for name in TOOLS]),
            }
        found.append(otlp_span(number, attributes, name="chat m-1"))
    for number, which in tool_spans():
        name, args, result, error = CALLS[which]
        attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
        if call_ids:
            attributes["gen_ai.tool.call.id"] = f"c{which + 1}"
        if content:
            attributes["gen_ai.tool.call.arguments"] = json.dumps(args)
            attributes |= {} if result is None else {"gen_ai.tool.call.result": result}
        found.append(otlp_span(number, attributes, name=f"execute_tool {name}", error=error or ""))
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "tidier"}
    return [*found, otlp_span(99, agent, parent=0, name="invoke_agent tidier")]


def flat(prefix: str, messages: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for i, message in enumerate(messages):
        place = f"{prefix}.{i}.message"
        found[f"{place}.role"] = message["role"]
        if message["content"]:
            found[f"{place}.content"] = message["content"]
        if "tool_call_id" in message:
            found[f"{place}.tool_call_id"] = message["tool_call_id"]
        for j, one in enumerate(message.get("tool_calls", ())):
            call = f"{place}.tool_calls.{j}.tool_call"
            found |= {f"{call}.id": one["id"], f"{call}.function.name": one["function"]["name"]}
            found[f"{call}.function.arguments"] = one["function"]["arguments"]
    return found


def openinference_attributes() -> list[tuple[int, str, dict[str, Any], str]]:
    """Return the spans in OpenInference's conventions: number, name, attributes, error."""
    found: list[tuple[int, str, dict[str, Any], str]] = []
    for number, which in model_spans():
        attributes = {"openinference.span.kind": "LLM", "session.id": "conv-1", "llm.model_name": MODEL}
        attributes |= flat("llm.input_messages", HISTORIES[which]) | flat(
            "llm.output_messages", [ANSWERS[which]]
        )
        for i, one in enumerate(DEFINITIONS):
            attributes[f"llm.tools.{i}.tool.json_schema"] = json.dumps(one)
        found.append((number, "ChatCompletion", attributes, ""))
    for number, which in tool_spans():
        name, args, result, error = CALLS[which]
        attributes = {"openinference.span.kind": "TOOL", "tool.name": name, "input.value": json.dumps(args)}
        attributes["tool.parameters"] = json.dumps({"path": {"type": "string"}})
        attributes |= {} if result is None else {"output.value": result}
        found.append((number, name, attributes, error or ""))
    return found


def openinference() -> list[Any]:
    return [
        otlp_span(n, attributes, name=name, error=error)
        for n, name, attributes, error in openinference_attributes()
    ]


def phoenix() -> list[Any]:
    return [
        {
            "name": name,
            "context": {"trace_id": f"{1:032x}", "span_id": f"{n:016x}"},
            "span_kind": attributes["openinference.span.kind"],
            "parent_id": None,
            "start_time": at(n),
            "end_time": at(n),
            "status_code": "ERROR" if error else "OK",
            "status_message": error,
            "attributes": attributes,
            "events": [],
        }
        for n, name, attributes, error in openinference_attributes()
    ]


def openllmetry() -> list[Any]:
    found: list[Any] = []
    for number, which in model_spans():
        attributes: dict[str, Any] = {"llm.request.type": "chat", "gen_ai.request.model": MODEL}
        attributes["traceloop.association.properties.session_id"] = "conv-1"
        for prefix, messages in (
            ("gen_ai.prompt", HISTORIES[which]),
            ("gen_ai.completion", [ANSWERS[which]]),
        ):
            for key, value in flat(prefix, messages).items():
                plain = (
                    key.replace(".message.", ".")
                    .replace(".tool_call.function.", ".")
                    .replace(".tool_call.", ".")
                )
                attributes[plain] = value
        for i, name in enumerate(TOOLS):
            attributes[f"llm.request.functions.{i}.name"] = name
        found.append(otlp_span(number, attributes, name="openai.chat"))
    for number, which in tool_spans():
        name, args, result, error = CALLS[which]
        attributes = {"traceloop.span.kind": "tool", "traceloop.entity.name": name}
        attributes["traceloop.entity.input"] = json.dumps({"args": [], "kwargs": args})
        attributes |= {} if result is None else {"traceloop.entity.output": json.dumps(result)}
        found.append(otlp_span(number, attributes, name=f"{name}.tool", error=error or ""))
    return found


def genai_events() -> list[Any]:
    """Return the events of the conventions up to 1.36, beside spans without content."""
    logs: list[dict[str, Any]] = []

    def log(number: int, name: str, body: dict[str, Any]) -> None:
        record = {"timeUnixNano": str(nanos(number)), "eventName": name, "body": any_value(body)}
        logs.append(record | {"traceId": f"{1:032x}", "spanId": f"{number:016x}"})

    for number, which in model_spans():
        for message in HISTORIES[which]:
            body = {"content": message["content"]}
            if message["role"] == "tool":
                body["id"] = message["tool_call_id"]
            if "tool_calls" in message:
                body["tool_calls"] = message["tool_calls"]
            log(number, f"gen_ai.{message['role']}.message", body)
        log(number, "gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": ANSWERS[which]})
    return [{"resourceLogs": [{"scopeLogs": [{"logRecords": logs}]}]}]


def products() -> list[tuple[int, str, Any, Any, str]]:
    """Return what tracing products keep of each span: number, tool or "", what went in and came out, error."""
    found: list[tuple[int, str, Any, Any, str]] = []
    for number, which in model_spans():
        asked = {"model": MODEL, "messages": HISTORIES[which], "tools": DEFINITIONS}
        found.append((number, "", asked, {"choices": [{"index": 0, "message": ANSWERS[which]}]}, ""))
    for number, which in tool_spans():
        name, args, result, error = CALLS[which]
        found.append((number, name, args, result, error or ""))
    return found


def langfuse() -> list[Any]:
    observations = [
        {
            "id": f"o{number}",
            "traceId": "t1",
            "type": "TOOL" if tool else "GENERATION",
            "name": tool or "ChatOpenAI",
            "startTime": at(number),
            "endTime": at(number),
            "level": "ERROR" if error else "DEFAULT",
            "statusMessage": error or None,
            "model": None if tool else MODEL,
            "input": json.dumps({"input": given} if tool else given),
            "output": came if tool else json.dumps(came),
        }
        for number, tool, given, came, error in products()
    ]
    return [
        {"trace": {"id": "t1", "name": "agent", "sessionId": "conv-1"}, "observations": observations[::-1]}
    ]


def langsmith() -> list[Any]:
    return [
        {
            "id": f"r{number}",
            "trace_id": "t1",
            "dotted_order": f"20261122T0652{number:02}Zr{number}",
            "run_type": "tool" if tool else "llm",
            "name": tool or "ChatOpenAI",
            "start_time": at(number),
            "end_time": at(number),
            "inputs": {"input": str(given)} if tool else given,
            "outputs": ({} if came is None else {"output": came}) if tool else came,
            "error": error or None,
            "session_id": "the-project",
            "extra": {"metadata": {"thread_id": "conv-1", "ls_model_name": MODEL}},
        }
        for number, tool, given, came, error in products()
    ]


def mlflow() -> list[Any]:
    spans = []
    for number, tool, given, came, error in products():
        attributes = {"mlflow.spanType": json.dumps("TOOL" if tool else "CHAT_MODEL")}
        attributes["mlflow.spanInputs"] = json.dumps(given)
        if came is not None:
            attributes["mlflow.spanOutputs"] = json.dumps(came)
        code = "STATUS_CODE_ERROR" if error else "STATUS_CODE_OK"
        spans.append(
            {
                "trace_id": "AAAAAAAAAAAAAAAAAAAAAQ==",
                "span_id": f"{number:016x}",
                "parent_span_id": None,
                "name": tool or "Completions",
                "start_time_unix_nano": nanos(number),
                "end_time_unix_nano": nanos(number),
                "status": {"code": code, "message": error},
                "attributes": attributes,
            }
        )
    about = {"trace_id": "tr-1", "trace_metadata": {"mlflow.trace.session": "conv-1"}}
    return [{"info": about, "data": {"spans": spans}}]


def openai_agents() -> list[Any]:
    found: list[Any] = [{"object": "trace", "id": "t1", "workflow_name": "tidy", "group_id": "conv-1"}]

    def span(number: int, data: dict[str, Any], error: str = "") -> None:
        about = {"object": "trace.span", "id": f"s{number}", "trace_id": "t1", "parent_id": "s99"}
        times = {"started_at": at(number % 60), "ended_at": at(number % 60)}
        found.append(about | times | {"span_data": data, "error": {"message": error} if error else None})

    for number, which in model_spans():
        data = {"type": "generation", "input": items(HISTORIES[which]), "output": items([ANSWERS[which]])}
        span(number, data | {"model": MODEL})
    for number, which in tool_spans():
        name, args, result, error = CALLS[which]
        span(
            number,
            {"type": "function", "name": name, "input": json.dumps(args), "output": result},
            error or "",
        )
    return found


# -- sessions of coding agents --------------------------------------------------------------------------------


def claude_line(number: int, kind: str, message: dict[str, Any], **more: Any) -> dict[str, Any]:
    about = {"sessionId": "conv-1", "version": "2.1.0", "cwd": "/tmp", "isSidechain": False}  # noqa: S108
    ids = {
        "uuid": f"u{number}",
        "parentUuid": f"u{number - 1}" if number > 1 else None,
        "timestamp": at(number),
    }
    return about | ids | {"type": kind, "message": message} | more


def claude_use(number: int, name: str, args: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"c{number}", "name": name, "input": args}


def claude_back(number: int, text: str, *, failed: bool = False) -> dict[str, Any]:
    result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": text, "is_error": failed}
    return {"role": "user", "content": [result]}


def claude_code() -> list[Any]:
    first = {"id": "m1", "model": MODEL, "role": "assistant"}
    second = {"id": "m2", "model": MODEL, "role": "assistant"}
    third = {"id": "m3", "model": MODEL, "role": "assistant"}
    return [
        {"type": "permission-mode", "permissionMode": "default", "sessionId": "conv-1"},
        claude_line(1, "user", {"role": "user", "content": ASKED}),
        claude_line(2, "assistant", first | {"content": [claude_use(1, "list_files", LIST)]}),
        claude_line(3, "user", claude_back(1, LISTED), toolUseResult={"stdout": LISTED}),
        claude_line(4, "assistant", first | {"content": [claude_use(2, "read_file", READ)]}),
        claude_line(5, "user", claude_back(2, FAILED, failed=True), toolUseResult=f"Error: {FAILED}"),
        claude_line(6, "user", {"role": "user", "content": [{"type": "text", "text": MORE}]}),
        claude_line(7, "user", {"role": "user", "content": "<system-reminder>Be kind.</system-reminder>"}),
        claude_line(8, "assistant", second | {"content": [{"type": "text", "text": "Deleting."}]}),
        claude_line(9, "assistant", second | {"content": [claude_use(3, "delete_file", DELETE)]}),
        claude_line(10, "user", claude_back(3, DELETED)),
        claude_line(11, "assistant", third | {"content": [{"type": "text", "text": ANSWER}]}),
    ]


def codex_line(number: int, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
    return {"timestamp": at(number), "type": kind, "payload": payload}


def codex() -> list[Any]:
    found = [
        codex_line(0, "session_meta", {"id": "conv-1", "cwd": "/tmp", "source": "cli", "timestamp": at(0)}),  # noqa: S108
        codex_line(0, "turn_context", {"model": MODEL}),
        codex_line(0, "response_item", {"type": "message", "role": "developer", "content": []}),
    ]
    for number, message in enumerate([*HISTORIES[2], LAST], 1):
        if message["role"] == "user":
            found.append(
                codex_line(number, "event_msg", {"type": "user_message", "message": message["content"]})
            )
        for item in items([message]):
            said = item.get("content")
            whole = {"type": "message", "content": [{"type": "input_text", "text": said}]}
            found.append(codex_line(number, "response_item", item | whole if isinstance(said, str) else item))
    return found


def gemini_call(
    number: int, name: str, args: dict[str, Any], result: str, *, failed: bool = False
) -> dict[str, Any]:
    response = {"error": result} if failed else {"output": result}
    back = {"functionResponse": {"id": f"c{number}", "name": name, "response": response}}
    status = "error" if failed else "success"
    return {
        "id": f"c{number}",
        "name": name,
        "args": args,
        "result": [back],
        "status": status,
        "timestamp": at(number),
    }


def gemini_messages() -> list[Any]:
    calls = [
        gemini_call(1, "list_files", LIST, LISTED),
        gemini_call(2, "read_file", READ, FAILED, failed=True),
    ]
    return [
        {"id": "1", "timestamp": at(1), "type": "user", "content": [{"text": ASKED}]},
        {"id": "2", "timestamp": at(2), "type": "gemini", "content": "", "model": MODEL, "toolCalls": calls},
        {"id": "3", "timestamp": at(3), "type": "user", "content": MORE},
        {
            "id": "4",
            "timestamp": at(4),
            "type": "gemini",
            "content": "Deleting.",
            "model": MODEL,
            "toolCalls": [gemini_call(3, "delete_file", DELETE, DELETED)],
        },
        {"id": "5", "timestamp": at(5), "type": "gemini", "content": ANSWER, "model": MODEL},
    ]


def gemini_head() -> dict[str, Any]:
    return {"sessionId": "conv-1", "projectHash": "0b7d", "startTime": at(0), "lastUpdated": at(0)}


def atif() -> list[Any]:
    def call(number: int, name: str, args: dict[str, Any]) -> dict[str, Any]:
        return {"tool_call_id": f"c{number}", "function_name": name, "arguments": args}

    failed = {"source_call_id": "c2", "content": FAILED, "extra": {"tool_result_is_error": True}}
    first = {
        "tool_calls": [call(1, "list_files", LIST), call(2, "read_file", READ)],
        "observation": {"results": [{"source_call_id": "c1", "content": LISTED}, failed]},
    }
    second = {
        "tool_calls": [call(3, "delete_file", DELETE)],
        "observation": {"results": [{"source_call_id": "c3", "content": DELETED}]},
    }
    steps: list[dict[str, Any]] = [
        {"source": "system", "message": "You tidy up."},
        {"source": "user", "message": ASKED},
        {"source": "agent", "message": "", "model_name": MODEL} | first,
        {"source": "user", "message": [{"type": "text", "text": MORE}]},
        {"source": "agent", "message": "Deleting."} | second,
        {"source": "agent", "message": ANSWER},
    ]
    agent = {"name": "tidier", "version": "1", "model_name": MODEL, "tool_definitions": DEFINITIONS}
    numbered = [one | {"step_id": n, "timestamp": at(n)} for n, one in enumerate(steps, 1)]
    return [{"schema_version": "ATIF-v1.7", "session_id": "conv-1", "agent": agent, "steps": numbered}]


def stories() -> dict[str, Story]:
    """Return every telling by a name of its own."""
    return {
        "genai": Story("opentelemetry", {"traces.jsonl": genai()}),
        "genai without call ids": Story("opentelemetry", {"traces.jsonl": genai(call_ids=False)}),
        "genai events": Story(
            "opentelemetry", {"traces.jsonl": genai(content=False), "logs.jsonl": genai_events()}, tools=False
        ),
        "openinference": Story("opentelemetry", {"traces.jsonl": openinference()}),
        "phoenix": Story("opentelemetry", {"spans.jsonl": phoenix()}),
        "openllmetry": Story("opentelemetry", {"traces.jsonl": openllmetry()}),
        "langfuse": Story("langfuse", {"trace.jsonl": langfuse()}),
        "langsmith": Story("langsmith", {"runs.jsonl": langsmith()}),
        "mlflow": Story("mlflow", {"traces.jsonl": mlflow()}),
        "openai_agents": Story("openai_agents", {"traces.jsonl": openai_agents()}, tools=False),
        "claude_code": Story("claude_code", {"conv-1.jsonl": claude_code()}, tools=False),
        "codex": Story("codex", {"rollout-1.jsonl": codex()}, tools=False, failure=False),
        "gemini_cli": Story(
            "gemini_cli", {"session-1.jsonl": [gemini_head(), *gemini_messages()]}, tools=False
        ),
        "gemini_cli document": Story(
            "gemini_cli", {"session-1.json": [gemini_head() | {"messages": gemini_messages()}]}, tools=False
        ),
        "atif": Story("atif", {"trajectory.jsonl": atif()}),
        "responses": Story(
            "responses",
            {
                "items.jsonl": [
                    {
                        "model": MODEL,
                        "tools": DEFINITIONS,
                        "input": items(HISTORIES[2]),
                        "output": items([LAST]),
                    }
                ]
            },
            failure=False,
            times=False,
        ),
    }
