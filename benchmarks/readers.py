"""Reading recorded traces of every log format, beside `json.loads` of the same bytes.

For each format made-up runs are written as JSON Lines to a temporary folder: 12 turns of one or two calls,
results of 17 lines and about 1,000 characters, and, where the format does so, the history repeated in every model
call. `json.loads` parses every line and throws it away, and JSON inside of text it does not parse; `read_traces` gives
every run, with its calls, results and words put together. A ratio above 1 would mean that this is faster than parsing
alone by the standard library. The files stay in the page cache; labelling is not measured.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections import deque
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from _timing import Timing, interleaved, options, report

from safetydrift.formats import read_traces

TITLE = "Reading recorded traces, format by format"
N_TURNS = 12
MAIN = ("opentelemetry", "openinference", "claude_code", "codex", "langfuse", "langsmith")
TEXT = (
    "account balance transfer invoice report meeting budget quarterly review the a of to please send file "
    "error warning completed pending customer schedule room project update draft final summary attached"
)
WORDS = TEXT.split()


class Call(NamedTuple):
    id: str
    name: str
    args: dict[str, Any]
    result: str


class Run(NamedTuple):
    id: str
    prompt: str
    turns: list[list[Call]]

    def messages(self, n: int) -> list[dict[str, Any]]:
        """Return the history before turn n as OpenAI's messages."""
        found: list[dict[str, Any]] = [{"role": "user", "content": self.prompt}]
        for calls in self.turns[:n]:
            found.append(proposal(calls))
            found += [{"role": "tool", "tool_call_id": one.id, "content": one.result} for one in calls]
        return found

    def answer(self, n: int) -> dict[str, Any]:
        return proposal(self.turns[n]) if n < len(self.turns) else {"role": "assistant", "content": "Done."}


def proposal(calls: list[Call]) -> dict[str, Any]:
    told = [
        {"id": one.id, "type": "function", "function": {"name": one.name, "arguments": json.dumps(one.args)}}
        for one in calls
    ]
    return {"role": "assistant", "content": "Next.", "tool_calls": told}


def made_up(rng: random.Random, number: int) -> Run:
    def words(n: int) -> str:
        return " ".join(rng.choices(WORDS, k=n))

    def result() -> str:
        """Return what tools bring back: lines of text, some of them quoted, and a little JSON."""
        lines = [f'{words(7)} "{words(2)}"' if i % 3 else words(9) for i in range(16)]
        return "\n".join(
            [*lines, json.dumps({"status": "ok", "items": [words(2), words(2)], "size": rng.random()})]
        )

    def call(turn: int, which: int) -> Call:
        args = {"path": f"/home/me/{rng.choice(WORDS)}/{rng.choice(WORDS)}.txt", "note": words(6)}
        return Call(
            f"call_{number}_{turn}_{which}",
            rng.choice(["read_file", "send_email", "search"]),
            args,
            words(90),
        )

    turns = [[call(turn, which) for which in range(1 + (turn % 3 == 0))] for turn in range(N_TURNS)]
    return Run(f"run-{number}", words(30), turns)


def times(run: Run, n: int) -> tuple[int, int]:
    start = 1_795_330_427_000_000_000 + int(run.id[4:]) * 10**12 + n * 10**9
    return start, start + 5 * 10**8


def hexes(run: Run, n: int) -> tuple[str, str]:
    return f"{int(run.id[4:]) + 1:032x}", f"{n + 1:016x}"


# -- one writer per format: the lines of a run ---------------------------------------------------------------


def parts(message: dict[str, Any]) -> dict[str, Any]:
    if message["role"] == "tool":
        answer = {"type": "tool_call_response", "id": message["tool_call_id"], "response": message["content"]}
        return {"role": "tool", "parts": [answer]}
    found: list[dict[str, Any]] = [{"type": "text", "content": message["content"]}]
    for one in message.get("tool_calls", ()):
        args = json.loads(one["function"]["arguments"])
        found.append(
            {"type": "tool_call", "id": one["id"], "name": one["function"]["name"], "arguments": args}
        )
    return {"role": message["role"], "parts": found}


def otlp(run: Run, n: int, name: str, attributes: dict[str, Any]) -> dict[str, Any]:
    trace, span = hexes(run, n)
    start, end = times(run, n)
    told = [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]
    one = {
        "traceId": trace,
        "spanId": span,
        "parentSpanId": hexes(run, 999)[1],
        "flags": 256,
        "name": name,
        "kind": 3,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(end),
        "attributes": told,
        "status": {},
    }
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "made-up"}}]}
    return {
        "resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "x"}, "spans": [one]}]}]
    }


def opentelemetry(run: Run) -> list[Any]:
    found = []
    for n in range(len(run.turns) + 1):
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": "m-1",
            "gen_ai.conversation.id": run.id,
            "gen_ai.input.messages": json.dumps([parts(one) for one in run.messages(n)]),
            "gen_ai.output.messages": json.dumps([parts(run.answer(n))]),
        }
        found.append(otlp(run, 20 * n, "chat m-1", attributes))
        for i, one in enumerate(run.turns[n] if n < len(run.turns) else ()):
            attributes = {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": one.name,
                "gen_ai.tool.call.id": one.id,
                "gen_ai.tool.call.arguments": json.dumps(one.args),
                "gen_ai.tool.call.result": one.result,
            }
            found.append(otlp(run, 20 * n + 1 + i, f"execute_tool {one.name}", attributes))
    return found


def flat(prefix: str, messages: list[dict[str, Any]]) -> dict[str, str]:
    found = {}
    for i, message in enumerate(messages):
        at = f"{prefix}.{i}.message"
        found[f"{at}.role"], found[f"{at}.content"] = message["role"], message["content"]
        if "tool_call_id" in message:
            found[f"{at}.tool_call_id"] = message["tool_call_id"]
        for j, one in enumerate(message.get("tool_calls", ())):
            call = f"{at}.tool_calls.{j}.tool_call"
            found[f"{call}.id"] = one["id"]
            found[f"{call}.function.name"] = one["function"]["name"]
            found[f"{call}.function.arguments"] = one["function"]["arguments"]
    return found


def openinference(run: Run) -> list[Any]:
    found = []
    for n in range(len(run.turns) + 1):
        attributes = {"openinference.span.kind": "LLM", "session.id": run.id, "llm.model_name": "m-1"}
        attributes |= flat("llm.input_messages", run.messages(n)) | flat(
            "llm.output_messages", [run.answer(n)]
        )
        found.append(otlp(run, 20 * n, "ChatCompletion", attributes))
        for i, one in enumerate(run.turns[n] if n < len(run.turns) else ()):
            attributes = {
                "openinference.span.kind": "TOOL",
                "session.id": run.id,
                "tool.name": one.name,
                "input.value": json.dumps(one.args),
                "output.value": one.result,
            }
            found.append(otlp(run, 20 * n + 1 + i, one.name, attributes))
    return found


def claude_code(run: Run) -> list[Any]:
    found: list[Any] = []

    def line(kind: str, message: dict[str, Any]) -> None:
        number = len(found)
        about = {
            "isSidechain": False,
            "userType": "external",
            "cwd": "/home/me",
            "sessionId": run.id,
            "version": "2.1.0",
        }
        ids = {"parentUuid": f"{run.id}-{number - 1}", "uuid": f"{run.id}-{number}"}
        stamp = f"2026-11-22T06:{number // 60:02}:{number % 60:02}.000Z"
        found.append(ids | about | {"type": kind, "message": message, "timestamp": stamp})

    line("user", {"role": "user", "content": run.prompt})
    for n, calls in enumerate(run.turns):
        uses = [{"type": "tool_use", "id": one.id, "name": one.name, "input": one.args} for one in calls]
        usage = {"input_tokens": 100, "cache_read_input_tokens": 50, "output_tokens": 20}
        about = {"id": f"msg_{run.id}_{n}", "model": "m-1", "role": "assistant", "usage": usage}
        for use in uses:
            line("assistant", about | {"content": [use], "stop_reason": "tool_use"})
        for one in calls:
            line(
                "user",
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": one.id, "content": one.result}],
                },
            )
            found[-1]["toolUseResult"] = {"stdout": one.result, "stderr": "", "interrupted": False}
    line("assistant", {"id": f"msg_{run.id}", "model": "m-1", "content": [{"type": "text", "text": "Done."}]})
    return found


def codex(run: Run) -> list[Any]:
    def line(kind: str, payload: dict[str, Any]) -> dict[str, Any]:
        return {"timestamp": "2026-11-22T06:52:43.312Z", "type": kind, "payload": payload}

    found = [
        line("session_meta", {"id": run.id, "cwd": "/home/me", "source": "cli"}),
        line("turn_context", {"model": "m-1"}),
    ]
    found.append(line("event_msg", {"type": "user_message", "message": run.prompt, "images": []}))
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": run.prompt}]}
    found.append(line("response_item", said))
    for calls in run.turns:
        found += [
            line(
                "response_item",
                {
                    "type": "function_call",
                    "name": one.name,
                    "arguments": json.dumps(one.args),
                    "call_id": one.id,
                },
            )
            for one in calls
        ]
        found += [
            line("response_item", {"type": "function_call_output", "call_id": one.id, "output": one.result})
            for one in calls
        ]
        usage = {
            "input_tokens": 16341,
            "cached_input_tokens": 3584,
            "output_tokens": 81,
            "total_tokens": 16422,
        }
        found.append(
            line(
                "event_msg",
                {"type": "token_count", "info": {"total_token_usage": usage, "last_token_usage": usage}},
            )
        )
    done = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
    return [*found, line("response_item", done)]


def gemini_cli(run: Run) -> list[Any]:
    stamp = "2026-11-22T06:52:43.312Z"
    found: list[Any] = [{"sessionId": run.id, "projectHash": "0b7d", "startTime": stamp, "kind": "main"}]
    found.append({"id": f"{run.id}-u", "timestamp": stamp, "type": "user", "content": [{"text": run.prompt}]})
    for n, calls in enumerate(run.turns):
        told = []
        for one in calls:
            back = {"functionResponse": {"id": one.id, "name": one.name, "response": {"output": one.result}}}
            told.append(
                {
                    "id": one.id,
                    "name": one.name,
                    "args": one.args,
                    "result": [back],
                    "status": "success",
                    "timestamp": stamp,
                }
            )
        about = {"id": f"{run.id}-{n}", "timestamp": stamp, "type": "gemini", "content": "", "model": "m-1"}
        found.append(about | {"toolCalls": told, "tokens": {"input": 100, "output": 10, "total": 110}})
    return [
        *found,
        {"id": f"{run.id}-z", "timestamp": stamp, "type": "gemini", "content": "Done.", "model": "m-1"},
    ]


def iso(nanoseconds: int) -> str:
    return datetime.fromtimestamp(nanoseconds / 1e9, UTC).isoformat()


def spans(run: Run) -> list[tuple[str, Any, Any, int, Call | None]]:
    """Return what all tracing products keep: kind, input, output, number and call of every span."""
    found: list[tuple[str, Any, Any, int, Call | None]] = []
    for n in range(len(run.turns) + 1):
        output = {"choices": [{"index": 0, "message": run.answer(n)}], "model": "m-1"}
        found.append(("model", {"messages": run.messages(n), "model": "m-1"}, output, 20 * n, None))
        for i, one in enumerate(run.turns[n] if n < len(run.turns) else ()):
            found.append(("tool", one.args, one.result, 20 * n + 1 + i, one))
    return found


def langfuse(run: Run) -> list[Any]:
    observations = []
    for kind, given, came, n, call in spans(run):
        start, end = times(run, n)
        observations.append(
            {
                "id": hexes(run, n)[1],
                "traceId": hexes(run, n)[0],
                "type": "GENERATION" if call is None else "TOOL",
                "name": kind if call is None else call.name,
                "startTime": iso(start),
                "endTime": iso(end),
                "level": "DEFAULT",
                "model": "m-1" if call is None else None,
                "input": json.dumps(given),
                "output": came if call else json.dumps(came),
            }
        )
    return [
        {
            "trace": {"id": hexes(run, 0)[0], "name": "agent", "sessionId": run.id},
            "observations": observations,
        }
    ]


def langsmith(run: Run) -> list[Any]:
    found = []
    for _, given, came, n, call in spans(run):
        start, end = times(run, n)
        metadata = {"thread_id": run.id, "ls_model_name": "m-1"}
        found.append(
            {
                "id": hexes(run, n)[1],
                "trace_id": hexes(run, n)[0],
                "dotted_order": f"{start}Z{hexes(run, n)[1]}",
                "run_type": "llm" if call is None else "tool",
                "name": "ChatOpenAI" if call is None else call.name,
                "start_time": iso(start),
                "end_time": iso(end),
                "inputs": given,
                "outputs": came if call is None else {"output": came},
                "extra": {"metadata": metadata},
                "error": None,
            }
        )
    return found


def mlflow(run: Run) -> list[Any]:
    told = []
    for _, given, came, n, call in spans(run):
        start, end = times(run, n)
        attributes = {
            "mlflow.spanType": json.dumps("CHAT_MODEL" if call is None else "TOOL"),
            "mlflow.spanInputs": json.dumps(given),
            "mlflow.spanOutputs": json.dumps(came),
        }
        told.append(
            {
                "trace_id": hexes(run, n)[0],
                "span_id": hexes(run, n)[1],
                "parent_span_id": None,
                "name": "Completions" if call is None else call.name,
                "start_time_unix_nano": start,
                "end_time_unix_nano": end,
                "status": {"code": "STATUS_CODE_OK"},
                "attributes": attributes,
            }
        )
    return [{"info": {"trace_id": f"tr-{run.id}", "trace_metadata": {}}, "data": {"spans": told}}]


def items(run: Run, n: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{"role": "user", "content": run.prompt}]
    for calls in run.turns[:n]:
        found += proposed_items(calls)
        found += [{"type": "function_call_output", "call_id": one.id, "output": one.result} for one in calls]
    return found


def proposed_items(calls: list[Call]) -> list[dict[str, Any]]:
    return [
        {"type": "function_call", "call_id": one.id, "name": one.name, "arguments": json.dumps(one.args)}
        for one in calls
    ]


SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}


def openai_agents(run: Run) -> list[Any]:
    trace = hexes(run, 0)[0]
    found: list[Any] = [{"object": "trace", "id": trace, "workflow_name": "made up", "group_id": run.id}]
    for _, _, came, n, call in spans(run):
        turn = n // 20
        output = proposed_items(run.turns[turn]) if turn < len(run.turns) else [SAID]
        data: dict[str, Any] = {
            "type": "generation",
            "input": items(run, turn),
            "output": output,
            "model": "m-1",
        }
        if call is not None:
            data = {"type": "function", "name": call.name, "input": json.dumps(call.args), "output": came}
        start, end = times(run, n)
        about = {"object": "trace.span", "id": hexes(run, n)[1], "trace_id": trace, "parent_id": None}
        found.append(
            about | {"started_at": iso(start), "ended_at": iso(end), "span_data": data, "error": None}
        )
    return found


def responses(run: Run) -> list[Any]:
    return [[*items(run, len(run.turns)), SAID]]


def atif(run: Run) -> list[Any]:
    steps: list[Any] = [{"step_id": 1, "source": "user", "message": run.prompt}]
    for calls in run.turns:
        told = [{"tool_call_id": one.id, "function_name": one.name, "arguments": one.args} for one in calls]
        back = [{"source_call_id": one.id, "content": one.result} for one in calls]
        steps.append(
            {
                "step_id": len(steps) + 1,
                "source": "agent",
                "message": "",
                "tool_calls": told,
                "observation": {"results": back},
            }
        )
    return [
        {
            "schema_version": "ATIF-v1.7",
            "session_id": run.id,
            "agent": {"name": "made-up", "model_name": "m-1"},
            "steps": steps,
        }
    ]


WRITERS = {
    "opentelemetry": opentelemetry,
    "openinference": openinference,
    "claude_code": claude_code,
    "codex": codex,
    "gemini_cli": gemini_cli,
    "langfuse": langfuse,
    "langsmith": langsmith,
    "mlflow": mlflow,
    "openai_agents": openai_agents,
    "responses": responses,
    "atif": atif,
}


def write(folder: Path, name: str, megabytes: float) -> tuple[Path, int]:
    """Write runs until there are so many bytes: in one file, or in one for each where a file is a session."""
    rng = random.Random(0)  # noqa: S311  # made-up text
    number = written = 0
    below = folder / name
    below.mkdir()
    while written < megabytes * 1e6:
        lines = b"".join(json.dumps(line).encode() + b"\n" for line in WRITERS[name](made_up(rng, number)))
        is_session = name in {"claude_code", "codex", "gemini_cli"}
        with (below / (f"session-{number}.jsonl" if is_session else "all.jsonl")).open("ab") as file:
            written += file.write(lines)
        number += 1
    return below, number


def parse(folder: Path) -> None:
    for path in sorted(folder.iterdir()):
        with path.open("rb") as file:
            for line in file:
                json.loads(line)


def main() -> None:
    quick = options(TITLE).quick
    timings: dict[str, Timing] = {}
    ratios: dict[str, tuple[float, str]] = {}
    with tempfile.TemporaryDirectory() as made:
        for name in WRITERS:
            folder, n_runs = write(Path(made), name, 2 if quick else 10)
            found = list(read_traces(folder))
            calls = sum(len(trace.steps) for trace in found)
            expected = n_runs * sum(1 + (turn % 3 == 0) for turn in range(N_TURNS))
            if (len(found), calls) != (n_runs, expected):
                raise SystemExit(
                    f"{name}: {len(found)} runs and {calls} calls instead of {n_runs} and {expected}"
                )
            ways = {
                f"{name}, json.loads": lambda folder=folder: parse(folder),
                f"{name}, read_traces": lambda folder=folder: deque(read_traces(folder), maxlen=0),
            }
            some = interleaved(ways, 3 if quick else 5)
            timings |= some
            loads, ours = (timing.median for timing in some.values())
            ratios[f"{name}: json.loads / read_traces"] = (loads / ours, ">= 0.5" if name in MAIN else "none")
            ratios[f"{name}: thousand calls per second"] = (calls / ours / 1000, "none")
    report(TITLE, timings, ratios)


if __name__ == "__main__":
    main()
