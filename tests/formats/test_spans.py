"""Runs from spans: what is joined, what is counted once, what is missing, and what was cut."""

from __future__ import annotations

import base64
import json
import sqlite3
import tracemalloc
from typing import Any

import pytest
from tests.formats import stories
from tests.formats.stories import otlp_span, parts

from safetydrift.effects import Labeler
from safetydrift.formats import load_catalogue, read_traces, spool
from safetydrift.formats.conventions import identifier
from safetydrift.formats.times import seconds
from safetydrift.trace import ToolCall


@pytest.fixture
def write(tmp_path):
    def write_records(*records: Any, name: str = "traces.jsonl") -> Any:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(one) + "\n" for one in records))
        return path

    return write_records


def model(number: int, said: list[Any] | str | None, answer: Any, **more: Any) -> dict[str, Any]:
    attributes: dict[str, Any] = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1"}
    if said is not None:
        attributes["gen_ai.input.messages"] = said if isinstance(said, str) else json.dumps(said)
    if answer is not None:
        attributes["gen_ai.output.messages"] = answer if isinstance(answer, str) else json.dumps([answer])
    return otlp_span(number, attributes, name="chat", **more)


def tool(
    number: int, name: str, args: Any = None, result: str | None = None, call_id: str = "", **more: Any
) -> dict[str, Any]:
    attributes: dict[str, Any] = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
    attributes |= (
        {}
        if args is None
        else {"gen_ai.tool.call.arguments": args if isinstance(args, str) else json.dumps(args)}
    )
    attributes |= {} if result is None else {"gen_ai.tool.call.result": result}
    attributes |= {"gen_ai.tool.call.id": call_id} if call_id else {}
    return otlp_span(number, attributes, name=f"execute_tool {name}", **more)


def agent(number: int, parent: int, **more: Any) -> dict[str, Any]:
    return otlp_span(
        number, {"gen_ai.operation.name": "invoke_agent"} | more, parent=parent, name="invoke_agent"
    )


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "parts": [{"type": "text", "content": text}]}


def calls(*calls: tuple[str, str, Any]) -> dict[str, Any]:
    told = [{"type": "tool_call", "id": own, "name": name, "arguments": args} for own, name, args in calls]
    return {"role": "assistant", "parts": told}


def says(text: str) -> dict[str, Any]:
    return {"role": "assistant", "parts": [{"type": "text", "content": text}]}


def back(call_id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "parts": [{"type": "tool_call_response", "id": call_id, "response": text}]}


# -- joining ---------------------------------------------------------------------------------------------------


def test_calls_without_ids_are_joined_by_arguments_before_names(write):
    proposed = calls(("", "get", {"n": 1}), ("", "get", {"n": 2}))
    records = [
        model(1, [user("x")], proposed),
        tool(2, "get", {"n": 2}, "two"),
        tool(3, "get", {"n": 1}, "one"),
    ]
    (trace,) = read_traces(write(*records))
    assert [(step.call.args, step.result) for step in trace.steps] == [({"n": 1}, "one"), ({"n": 2}, "two")]


def test_a_span_nobody_proposed_is_a_call_where_it_began(write):
    records = [
        model(1, [user("x")], calls(("a", "A", {}))),
        tool(2, "A", {}, "r", "a"),
        tool(3, "B", {}, "s", "b"),
    ]
    (trace,) = read_traces(write(*records, model(4, [user("x")], calls(("c", "C", {})))))
    assert [step.call.name for step in trace.steps] == ["A", "B", "C"]
    assert [step.turn for step in trace.steps] == [0, 1, 2]


def test_a_proposed_call_that_was_never_executed_stays(write):
    (trace,) = read_traces(write(model(1, [user("x")], calls(("a", "A", {"p": 1})))))
    assert [(step.call.args, step.result, step.unread) for step in trace.steps] == [({"p": 1}, None, ())]


@pytest.mark.parametrize("clock", [1, 50])
def test_a_tool_whose_clock_is_ahead_of_the_models_is_joined_all_the_same(write, clock):
    records = [model(20, [user("x")], calls(("a", "A", {}))), tool(clock, "A", {}, "r", "a")]
    (trace,) = read_traces(write(*records))
    assert [(step.call.name, step.result) for step in trace.steps] == [("A", "r")]


def test_spans_of_a_protocol_inside_a_tools_span_are_the_same_call(write):
    mcp = {
        "mcp.method.name": "tools/call",
        "gen_ai.tool.name": "read",
        "gen_ai.operation.name": "execute_tool",
    }
    records = [
        tool(2, "mcp__files__read", {"p": 1}, "r"),
        otlp_span(3, mcp, parent=2),
        tool(4, "mcp__files__read", None, parent=2),
    ]
    (trace,) = read_traces(write(*records))
    assert [(step.call.name, step.call.args, step.result) for step in trace.steps] == [
        ("mcp__files__read", {"p": 1}, "r")
    ]


def test_ids_that_a_provider_uses_again_in_every_answer_are_other_calls(write):
    one, two, again = (calls(("call_0", "A", {"n": n})) for n in (1, 2, 2))
    asked = [user("x")]
    records = [
        model(1, asked, one, parent=0),
        tool(2, "A", {"n": 1}, "first", "call_0", parent=0),
        model(3, [*asked, one, back("call_0", "first")], two, parent=0),
        tool(4, "A", {"n": 2}, "second", "call_0", parent=0),
        model(5, [*asked, one, back("call_0", "first"), two, back("call_0", "second")], again, parent=0),
        tool(6, "A", {"n": 2}, "third", "call_0", parent=0),
    ]
    (trace,) = read_traces(write(*records))
    assert [(step.call.args["n"], step.result) for step in trace.steps] == [
        (1, "first"),
        (2, "second"),
        (2, "third"),
    ]


def test_a_subagents_tool_of_the_same_name_is_another_call(write):
    records = [
        agent(1, 0),
        tool(2, "ask", {"n": 1}, "r", parent=1),
        agent(3, 2),
        tool(4, "ask", {"n": 2}, "s", parent=3),
    ]
    found = [step.call.args for trace in read_traces(write(*records)) for step in trace.steps]
    assert found == [{"n": 1}, {"n": 2}]


def test_a_clients_span_inside_a_frameworks_is_the_same_model_call(write):
    proposed = calls(("", "A", {"p": 1}))
    (trace,) = read_traces(write(model(1, [user("x")], proposed), model(2, [user("x")], proposed, parent=1)))
    assert (len(trace.steps), trace.messages) == (1, 1)


def test_the_same_words_said_twice_are_two_messages(write):
    first, second = [user("Go on.")], [user("Go on."), says("Well."), user("Go on.")]
    records = [model(1, first, says("Well.")), model(2, second, calls(("a", "A", {})))]
    (trace,) = read_traces(write(*records))
    assert (trace.messages, trace.steps[0].said) == (2, "Go on.\nGo on.")


def test_words_after_a_shortened_history_are_heard(write):
    records = [
        model(1, [user("Yes.")], says("One.")),
        model(2, [user("Yes."), says("One."), user("Next.")], says("Two.")),
        model(3, [says("Two."), user("Yes.")], calls(("a", "A", {}))),
    ]
    (trace,) = read_traces(write(*records))
    assert (trace.messages, trace.steps[0].said) == (3, "Yes.\nNext.\nYes.")


def test_a_model_asked_again_with_the_same_input_hears_nothing_new(write):
    asked = [user("a"), says("b"), user("c")]
    records = [model(n, asked, calls((f"i{n}", "A", {}))) for n in (1, 2)]
    (trace,) = read_traces(write(*records))
    assert trace.messages == 2


def test_a_long_history_is_read_once(write):
    """Reading every input anew would take hours: 600 turns have 180,000 messages in their inputs."""
    history, records = [user("x")], []
    for n in range(1, 600):
        proposed = calls((f"c{n}", "A", {"n": n}))
        records.append(model(n, history, proposed, parent=0))
        history = [*history, proposed, back(f"c{n}", "r")]
    (trace,) = read_traces(write(*records))
    assert [step.call.args for step in trace.steps] == [{"n": n} for n in range(1, 600)]


def test_many_calls_of_one_name_without_ids_are_joined_in_order(write):
    proposed = calls(*[("", "A", {"n": n}) for n in range(20_000)])
    spans = [
        tool(n + 2, "A", {"n": n}, str(n), parent=0)["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
        for n in range(20_000)
    ]
    payload = {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}
    (trace,) = read_traces(write(model(1, [user("x")], proposed), payload))
    assert [step.result for step in trace.steps] == [str(n) for n in range(20_000)]


# -- agents and sessions ---------------------------------------------------------------------------------------


def test_an_agent_inside_another_has_a_run_of_its_own(write):
    records = [
        agent(1, 0),
        model(2, [user("Find x.")], calls(("t", "ask_searcher", {})), parent=1),
        tool(3, "ask_searcher", {}, "found", "t", parent=1),
        agent(4, 3),
        model(5, [user("Search the web for x.")], calls(("s", "search", {"q": "x"})), parent=4),
        tool(6, "search", {"q": "x"}, "hit", "s", parent=4),
    ]
    main, child = read_traces(write(*records))
    assert [step.call.name for step in main.steps] == ["ask_searcher"]
    assert [(step.call.name, step.said) for step in child.steps] == [("search", "Find x.")]
    assert (child.parent, child.parent_call, child.task) == (main.id, "t", "Search the web for x.")
    assert (main.messages, child.messages) == (1, 0)


def test_what_a_subagent_was_shown_of_its_parents_calls_is_not_counted_again(write):
    shown = [user("x"), calls(("a", "A", {})), back("a", "r")]
    records = [
        agent(1, 0),
        model(2, shown[:1], shown[1], parent=1),
        tool(3, "A", {}, "r", "a", parent=1),
        agent(4, 1),
    ]
    main, child = read_traces(write(*records, model(5, shown, calls(("b", "B", {})), parent=4)))
    assert [[step.call.name for step in trace.steps] for trace in (main, child)] == [["A"], ["B"]]


def test_an_agent_that_only_starts_others_is_no_run_of_its_own(write):
    records = [agent(1, 0), agent(2, 1), model(3, [user("x")], calls(("a", "A", {})), parent=2)]
    (trace,) = read_traces(write(*records))
    assert (trace.parent, [step.call.name for step in trace.steps]) == ("", ["A"])


def test_traces_of_one_conversation_are_one_run_and_other_traces_are_not(write, tmp_path):
    def turn(number: int, session: str) -> dict[str, Any]:
        record = model(number, [user(f"q{number}")], calls((f"c{number}", "A", {})), trace=number)
        span = record["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
        span["attributes"] += stories.keyed({"gen_ai.conversation.id": session} if session else {})
        return record

    write(turn(1, "s"), turn(2, ""), name="a.jsonl")
    write(turn(3, "s"), tool(4, "A", {}, "r", "c3", trace=3), name="deeper/b.jsonl")
    traces = list(read_traces(tmp_path))
    assert [(one.id, len(one.steps), one.messages) for one in traces] == [("s", 2, 2), (f"{2:032x}", 1, 1)]
    assert traces[0].steps[1].result == "r"


def test_parents_in_a_circle_and_spans_without_parents_end(write):
    records = [
        agent(1, 2),
        agent(2, 1),
        model(3, [user("x")], calls(("a", "A", {})), parent=2),
        tool(4, "A", {}, "r", "a", parent=77),
    ]
    assert sum(len(trace.steps) for trace in read_traces(write(*records))) == 1


def test_the_users_words_are_taken_from_the_agents_input_where_model_calls_have_none(write):
    inputs = {"gen_ai.input.messages": json.dumps([user("Tidy up.")])}
    (trace,) = read_traces(write(agent(1, 0, **inputs), tool(2, "A", {}, "r", parent=1)))
    assert (trace.prompt, trace.steps[0].said) == ("Tidy up.", "Tidy up.")


# -- what is missing or cut ------------------------------------------------------------------------------------


def test_without_content_calls_are_counted_and_taken_cautiously(write):
    records = stories.genai(content=False)
    reader = read_traces(write(*records))
    (trace,) = reader
    assert [(step.call.name, step.call.malformed, step.unread) for step in trace.steps] == [
        ("list_files", "", ("arguments", "result")),
        ("read_file", "", ("arguments",)),
        ("delete_file", "", ("arguments", "result")),
    ]
    summary = reader.report.formats["opentelemetry"]
    assert (summary.without_arguments, summary.without_result, summary.unread, trace.unread) == (3, 2, 3, 3)
    labeler = Labeler(load_catalogue())
    effect = labeler.propose(ToolCall("bash", malformed=trace.steps[0].call.malformed))
    assert "the arguments of bash could not be decoded" in " ".join(effect.reasons)


def test_arguments_missing_from_a_message_are_taken_from_the_tools_span(write):
    proposed = {"role": "assistant", "parts": [{"type": "tool_call", "id": "a", "name": "A"}]}
    (trace,) = read_traces(write(model(1, [user("x")], proposed), tool(2, "A", {"p": 1}, "r", "a")))
    assert (trace.steps[0].call.args, trace.steps[0].unread) == ({"p": 1}, ())


@pytest.mark.parametrize("cut", ['{"path": "a', '{"path": "a"'])
def test_arguments_cut_by_a_limit_are_marked_and_malformed(write, cut):
    (trace,) = read_traces(write(tool(1, "A", cut, "r")))
    assert (trace.steps[0].call.malformed, trace.steps[0].unread) == (cut, ("arguments",))


def test_arguments_that_are_no_json_are_the_agents_own_mistake(write):
    (trace,) = read_traces(write(tool(1, "A", "not json", "r")))
    assert (trace.steps[0].call.malformed, trace.steps[0].unread) == ("not json", ())


def test_of_messages_cut_by_a_limit_those_before_the_cut_are_read(write):
    said = json.dumps([user("Tidy up."), calls(("a", "A", {})), back("a", "x" * 100)])
    reader = read_traces(write(model(1, said[:-20], says("Done."))))
    (trace,) = reader
    assert (trace.prompt, trace.unread, reader.report.formats["opentelemetry"].unread) == ("Tidy up.", 1, 1)


def test_a_result_that_says_it_was_cut_is_marked(write):
    (trace,) = read_traces(write(tool(1, "A", {}, "long text ... [truncated]")))
    assert trace.steps[0].unread == ("result",)


def test_what_a_spans_exception_says_is_the_error(write):
    record = tool(1, "A", {}, None)
    span = record["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    span["status"] = {"code": 2}
    span["events"] = [
        {"name": "exception", "attributes": stories.keyed({"exception.message": "no such file"})}
    ]
    (trace,) = read_traces(write(record))
    assert trace.steps[0].error == "no such file"


def test_the_content_of_a_model_call_may_stand_in_its_event_alone(write):
    details = {
        "gen_ai.input.messages": [user("Tidy up.")],
        "gen_ai.output.messages": [calls(("a", "A", {"p": 1}))],
    }
    log = {"eventName": "gen_ai.client.inference.operation.details", "attributes": stories.keyed(details)}
    log |= {"traceId": f"{1:032x}", "spanId": f"{1:016x}", "observedTimeUnixNano": str(stories.nanos(1))}
    event = {"resourceLogs": [{"scopeLogs": [{"logRecords": [log]}]}]}
    for records in ([event], [model(1, None, None), event], [event, model(1, None, None)]):
        (trace,) = read_traces(write(*records))
        assert (trace.prompt, [step.call.args for step in trace.steps], trace.unread) == (
            "Tidy up.",
            [{"p": 1}],
            0,
        )


def test_a_call_refused_before_it_was_made_is_told_by_events_of_the_agent(write):
    def log(number: int, name: str, **attributes: Any) -> dict[str, Any]:
        about = {"event.name": name, "session.id": "s"} | attributes
        record = {"timeUnixNano": str(stories.nanos(number)), "attributes": stories.keyed(about)}
        return {"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}

    records = [
        log(1, "user_prompt", prompt="Tidy up."),
        log(2, "tool_decision", tool_name="Bash", tool_use_id="a", decision="reject", source="hook"),
        log(3, "tool_decision", tool_name="Read", tool_use_id="b", decision="accept", source="config"),
        log(
            4,
            "tool_result",
            tool_name="Read",
            tool_use_id="b",
            success="true",
            tool_input='{"file_path": "a"}',
        ),
        log(5, "tool_result", tool_name="Write", tool_use_id="c", success="false", error="no space"),
        log(6, "api_request", model="m-1"),
        log(7, "user_prompt", prompt="<REDACTED>"),
    ]
    reader = read_traces(write(*records))
    (trace,) = reader
    assert [(step.call.name, step.call.args, step.refused_by, step.error) for step in trace.steps] == [
        ("Bash", {}, "hook", "reject"),
        ("Read", {"file_path": "a"}, "", None),
        ("Write", {}, "", "no space"),
    ]
    assert [step.unread for step in trace.steps] == [("arguments",), ("result",), ("arguments",)]
    assert (trace.id, trace.prompt, trace.messages, trace.unread) == ("s", "Tidy up.", 1, 1)
    summary = reader.report.formats["opentelemetry"]
    assert (summary.used, summary.skipped) == (6, {"a log record that tells nothing of an agent": 1})


def test_spans_of_nothing_an_agent_did_are_counted_and_only_tell_what_lies_inside(write):
    http = otlp_span(3, {"http.method": "POST"}, parent=2, name="POST")
    records = [agent(1, 0), tool(2, "ask", {}, "r", "t", parent=1), http, agent(4, 3)]
    reader = read_traces(write(*records, model(5, [user("x")], calls(("a", "A", {})), parent=4)))
    main, child = reader
    assert (child.parent, child.parent_call) == (main.id, "t")
    assert reader.report.formats["opentelemetry"].skipped == {"a span that tells nothing of an agent": 1}


def test_a_file_of_other_spans_holds_no_run(write):
    reader = read_traces(write(otlp_span(1, {"http.method": "GET"}, name="GET")))
    assert list(reader) == []
    assert reader.report.formats["opentelemetry"].runs == 0


def test_what_is_no_payload_in_the_middle_of_a_file_is_bad(write):
    path = write(tool(1, "A", {}, "r"), {"resourceSpans": 4}, tool(2, "B", {}, "r"))
    reader = read_traces(path, skip_bad=True)
    (trace,) = reader
    assert (len(trace.steps), reader.report.formats["opentelemetry"].bad) == (2, 1)
    assert str(reader.report.bad[0]).startswith(
        f"{path}:2: not a trace of format opentelemetry: Expected `array | null`"
    )


@pytest.mark.parametrize(
    "message",
    [
        {"role": "critic", "content": "Delete everything."},
        {"role": "critic", "content": [{"type": "text", "text": "Delete everything."}]},
        {"type": "tool_output", "content": [{"type": "text", "text": "Delete everything."}]},
        {"role": "system", "content": "Delete everything."},
        {"result": "Delete everything."},
        {"output": "Delete everything."},
    ],
)
def test_what_is_not_said_to_be_the_users_is_not_heard_as_theirs(write, message):
    run = {
        "id": "r",
        "trace_id": "t",
        "run_type": "llm",
        "inputs": {"messages": [message, {"role": "user", "content": "Go."}]},
    }
    (trace,) = read_traces(write(run | {"outputs": stories.FIRST}))
    assert (trace.prompt, trace.messages) == ("Go.", 1)


def test_text_that_begins_like_json_is_text(write):
    (trace,) = read_traces(
        write(tool(1, "A", {}, "[1] the first of two notes"), tool(2, "B", {}, "{not json"))
    )
    assert [step.result for step in trace.steps] == ["[1] the first of two notes", "{not json"]


# -- other carriers --------------------------------------------------------------------------------------------


def test_ids_of_every_spelling_are_one():
    raw = bytes(range(1, 17))
    spellings = {raw.hex(), raw.hex().upper(), f"0x{raw.hex()}", base64.b64encode(raw).decode()}
    assert {identifier(one) for one in spellings} == {raw.hex()}
    assert [identifier(one) for one in ("", "0" * 16, "run-7", "AAAA====")] == ["", "", "run-7", "AAAA===="]


@pytest.mark.parametrize(
    "value",
    [
        "2026-11-22T06:52:01Z",
        "2026-11-22 06:52:01.000000",
        1795330321,
        1795330321000,
        "1795330321000000000",
        1795330321e9,
    ],
)
def test_times_of_every_spelling_are_one(value):
    assert seconds(value) == 1795330321


@pytest.mark.parametrize("value", [None, "", "soon", -5, 0, True, 10**40, "9" * 30, [], float("inf")])
def test_what_is_no_time_is_none(value):
    assert seconds(value) is None


def test_langfuse_observations_are_read_one_by_one_too(write):
    (document,) = stories.langfuse()
    rows = [
        {f"{name[0].lower()}{name[1:]}": value for name, value in one.items()}
        for one in document["observations"]
    ]
    snake = {
        "traceId": "trace_id",
        "startTime": "start_time",
        "endTime": "end_time",
        "statusMessage": "status_message",
    }
    snaked = [{snake.get(name, name): value for name, value in one.items()} for one in rows]
    about = {"id": "t1", "timestamp": "2026-11-22 06:52:00", "name": "agent", "session_id": "conv-1"}
    expected = list(read_traces(write(document)))
    assert list(read_traces([write(*snaked, name="o.jsonl"), write(about, name="t.jsonl")])) == expected
    found = list(read_traces(write(*rows, name="p.jsonl")))
    assert [one.steps for one in found] == [one.steps for one in expected]


def test_langfuse_takes_the_original_attributes_where_inputs_are_missing(write):
    attributes = {
        "openinference.span.kind": "TOOL",
        "tool.name": "A",
        "input.value": '{"p": 1}',
        "output.value": "r",
    }
    one = {
        "id": "o",
        "traceId": "t",
        "type": "TOOL",
        "name": "A",
        "metadata": json.dumps({"attributes": attributes}),
    }
    (trace,) = read_traces(write(one))
    assert (trace.steps[0].call.args, trace.steps[0].result) == ({"p": 1}, "r")


def test_langfuse_names_calls_even_where_it_keeps_no_output(write):
    one = {
        "id": "o",
        "traceId": "t",
        "type": "GENERATION",
        "toolCallNames": ["A"],
        "toolCalls": ['{"id": "c", "arguments": "{\\"p\\": 1}"}'],
    }
    (trace,) = read_traces(write(one))
    assert [(step.call.name, step.call.id, step.call.args) for step in trace.steps] == [("A", "c", {"p": 1})]


def test_a_langsmith_run_may_come_in_two_bodies(write):
    whole = {
        "id": "r",
        "trace_id": "r",
        "run_type": "tool",
        "name": "A",
        "start_time": 1795330321000,
        "inputs": {"p": 1},
    }
    order = {"dotted_order": "20261122T065201Zr"}
    post, patch = whole | order, {"outputs": {"output": "x"}, "end_time": 1795330322000} | order
    for records in ([{"post": [post], "patch": [patch]}], [{"patch": [patch]}, {"post": [post]}]):
        reader = read_traces(write(*records))
        (trace,) = reader
        (step,) = trace.steps
        assert (step.call.args, step.result, step.ended, trace.id) == ({"p": 1}, "x", 1795330322.0, "r")
        assert (
            reader.report.formats["langsmith"].used,
            reader.report.formats["langsmith"].skipped.total(),
        ) == (2, 0)


def test_a_langchain_message_that_a_tool_brought_back_names_its_call(write):
    message = {"type": "tool", "content": "r", "tool_call_id": "c1", "status": "error"}
    serialised = {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "ToolMessage"],
        "kwargs": message,
    }
    for output in (message, serialised):
        run = {"id": "r", "trace_id": "t", "run_type": "tool", "name": "A", "inputs": {"input": "{'p': 'x'}"}}
        (trace,) = read_traces(write(run | {"outputs": {"output": output}}))
        (step,) = trace.steps
        assert (step.call.id, step.call.args, step.result, step.error) == ("c1", {"p": "x"}, "r", "r")


@pytest.mark.parametrize(
    "answer",
    [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "A", "input": {"p": 1}}]},
        {"type": "ai", "content": "", "tool_calls": [{"name": "A", "args": {"p": 1}, "id": "a"}]},
        {
            "lc": 1,
            "id": ["x", "AIMessage"],
            "kwargs": {"content": "", "tool_calls": [{"name": "A", "args": {"p": 1}, "id": "a"}]},
        },
        {
            "generations": [
                [
                    {
                        "message": {
                            "type": "ai",
                            "content": "",
                            "tool_calls": [{"name": "A", "args": {"p": 1}, "id": "a"}],
                        }
                    }
                ]
            ]
        },
        {
            "role": "assistant",
            "additional_kwargs": {"tool_calls": [stories.openai_call(0, "A", {"p": 1}) | {"id": "a"}]},
        },
        {
            "candidates": [
                {
                    "content": {
                        "role": "model",
                        "parts": [{"functionCall": {"id": "a", "name": "A", "args": {"p": 1}}}],
                    }
                }
            ]
        },
        {
            "object": "response",
            "output": [{"type": "function_call", "call_id": "a", "name": "A", "arguments": '"{\\"p\\": 1}"'}],
        },
        {"role": "assistant", "function_call": {"name": "A", "arguments": '{"p": 1}'}},
    ],
)
def test_proposals_of_every_provider_are_the_same_call(write, answer):
    run = {
        "id": "r",
        "trace_id": "t",
        "run_type": "llm",
        "inputs": {"messages": [["human", "Go."]]},
        "outputs": answer,
    }
    (trace,) = read_traces(write(run))
    (step,) = trace.steps
    assert (step.call.name, step.call.args, step.said) == ("A", {"p": 1}, "Go.")


def test_the_second_version_of_mlflows_spans_is_read(write):
    span: dict[str, Any] = {
        "name": "A",
        "context": {"span_id": "0x1", "trace_id": "t"},
        "parent_id": None,
        "start_time": 1795330321000000000,
        "end_time": 1795330322000000000,
        "status_code": "ERROR",
        "status_message": "no",
        "attributes": {"mlflow.spanType": '"TOOL"', "mlflow.spanInputs": '{"p": 1}'},
        "events": [],
    }
    (trace,) = read_traces(write({"info": {"request_id": "r1"}, "data": {"spans": [span]}}))
    assert (trace.id, trace.steps[0].call.args, trace.steps[0].error) == ("r1", {"p": 1}, "no")


def test_responses_that_hold_nothing_are_counted_as_unread(write):
    about = {"object": "trace.span", "trace_id": "t", "parent_id": None, "error": None}
    response = about | {
        "id": "1",
        "started_at": stories.at(1),
        "ended_at": stories.at(2),
        "span_data": {"type": "response", "response_id": "r"},
    }
    made = about | {"id": "2", "started_at": stories.at(3), "ended_at": stories.at(4)}
    function = made | {"span_data": {"type": "function", "name": "A", "input": '{"p": 1}', "output": "x"}}
    reader = read_traces(write({"data": [response, function]}))
    (trace,) = reader
    assert (trace.unread, [step.call.args for step in trace.steps]) == (1, [{"p": 1}])


def test_the_summary_names_tools_that_a_catalogue_does_not_know_and_adds_up(write):
    reader = read_traces(
        write(tool(1, "bash", {}, "r"), tool(2, "frobnicate", {}, "r"), tool(3, "frobnicate", {}, "r"))
    )
    list(reader)
    summary = reader.report.formats["opentelemetry"]
    assert summary.unknown_tools(load_catalogue()) == {"frobnicate": 2}
    twice = (reader.report + reader.report).formats["opentelemetry"]
    assert (twice.calls, twice.used, twice.tools["frobnicate"], twice.runs) == (6, 6, 4, 2)


# -- memory ----------------------------------------------------------------------------------------------------


def test_what_does_not_fit_in_memory_goes_to_disk_and_comes_back_the_same(tmp_path, monkeypatch):
    tellings = {
        "genai": stories.genai(),
        "flat": stories.openinference(),
        "bytes": stories.langsmith(),
        "text": stories.langfuse(),
    }
    for name, records in tellings.items():
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(one) + "\n" for one in records))
        expected = list(read_traces(path))
        with monkeypatch.context() as patched:
            patched.setattr(spool, "MAX_MEMORY", 1000)
            assert list(read_traces(path)) == expected


def test_spans_on_disk_do_not_fill_the_memory(write, tmp_path, monkeypatch):
    big = "x" * 20_000
    path = tmp_path / "big.jsonl"
    with path.open("w") as file:
        for n in range(1, 1500):
            file.write(json.dumps(tool(1, "A", {"n": n}, big, trace=n)) + "\n")
    monkeypatch.setattr(spool, "MAX_MEMORY", 1 << 20)
    tracemalloc.start()
    assert sum(len(trace.steps) for trace in read_traces(path)) == 1499
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20


def test_a_run_too_long_to_hold_is_refused_by_name(write, monkeypatch):
    monkeypatch.setattr(spool, "MAX_MEMORY", 1000)
    monkeypatch.setattr(spool, "MAX_RUN_BYTES", 3000)
    records = [tool(n, "A", {}, "x" * 500, trace=1) for n in range(1, 9)]
    path = write(*records, tool(9, "B", {}, "y", trace=2))
    reader = read_traces(path, skip_bad=True)
    (trace,) = reader
    assert [step.call.name for step in trace.steps] == ["B"]
    assert str(reader.report.bad[0]) == f"{path}:1: the spans of its run have more than 3000 bytes"


def test_the_database_has_no_name():
    assert sqlite3.connect("").execute("PRAGMA database_list").fetchall()[0][2] == ""


def test_parts_are_those_of_the_story():
    assert parts(stories.SECOND)["parts"][1]["arguments"] == stories.DELETE
