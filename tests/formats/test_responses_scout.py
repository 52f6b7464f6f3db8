"""OpenAI's Responses and Inspect Scout's transcripts, beyond what every format promises."""

from __future__ import annotations

import pytest

from safetydrift.formats import read_traces
from safetydrift.trace import Ending


def test_items_become_calls_with_what_came_back_and_what_was_not_approved(run_of, write):
    (trace,) = read_traces(write(run_of["responses"]()))
    assert [(step.call.name, step.call.args, step.result, step.turn) for step in trace.steps] == [
        ("look", {"at": 1}, "found", 0),
        ("look", {}, "bad arguments", 0),
        ("code_interpreter", {"code": "1 + 1"}, '[{"type":"logs","logs":"2"}]', 1),
        ("send", {}, None, 1),
    ]
    assert trace.steps[1].call.malformed == "{"
    assert (trace.steps[3].refused_by, trace.steps[3].error) == ("person", "not now")
    assert (trace.ending, trace.messages) == (Ending.COMPLETED, 1)


def test_a_list_of_messages_alone_is_a_chat(write):
    messages = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]
    (trace,) = read_traces(write(messages))
    assert trace.source == "chat"


@pytest.mark.parametrize("output", ["unknown", None])
def test_an_output_that_answers_no_call_is_refused(write, output):
    items = [{"type": "function_call", "call_id": "a", "name": "x", "arguments": "{}"}]
    with pytest.raises(ValueError, match="a tool result belongs to no call"):
        list(read_traces(write([*items, {"type": "function_call_output", "call_id": "z", "output": output}])))


def test_a_response_alone_is_read_with_its_model(write):
    call = {"type": "function_call", "call_id": "a", "name": "x", "arguments": "{}"}
    response = {
        "object": "response",
        "id": "resp",
        "model": "m-1",
        "output": [call],
        "tools": [{"name": "x"}],
    }
    (trace,) = read_traces(write(response))
    assert (trace.id, trace.model, trace.tools, len(trace.steps)) == ("resp", "m-1", ("x",), 1)


def test_a_scouts_transcript_says_where_it_comes_from(run_of, write):
    (trace,) = read_traces(write(run_of["scout"]()))
    assert (trace.id, trace.source, trace.task, trace.model) == ("t-9", "phoenix", "tidy", "m-1")
    (cut,) = read_traces(write(run_of["scout"]() | {"limit": "tokens"}))
    assert (trace.ending, cut.ending) == (Ending.COMPLETED, Ending.CENSORED)
