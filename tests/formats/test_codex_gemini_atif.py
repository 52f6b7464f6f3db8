"""Codex's rollouts, Gemini CLI's chats and ATIF's trajectories, beyond the common story."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.formats.stories import atif, codex, codex_line, gemini_call, gemini_head, items

from safetydrift.formats import read_traces
from safetydrift.trace import Ending


@pytest.fixture
def write(tmp_path):
    def write_lines(lines: list[Any], name: str) -> Any:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = name.endswith(".json")
        path.write_text(json.dumps(lines[0]) if whole else "".join(json.dumps(line) + "\n" for line in lines))
        return path

    return write_lines


# -- Codex -----------------------------------------------------------------------------------------------------


def head(**more: Any) -> dict[str, Any]:
    return codex_line(0, "session_meta", {"id": "t1", "cwd": "/x", "source": "cli"} | more)


def item(number: int, **more: Any) -> dict[str, Any]:
    return codex_line(number, "response_item", more)


def event(number: int, **more: Any) -> dict[str, Any]:
    return codex_line(number, "event_msg", more)


def function(number: int, call_id: str = "", **more: Any) -> dict[str, Any]:
    own = call_id or f"c{number}"
    return item(
        number, **({"type": "function_call", "name": "shell", "arguments": "{}", "call_id": own} | more)
    )


def output(number: int, text: Any, call_id: str = "") -> dict[str, Any]:
    return item(number, type="function_call_output", call_id=call_id or f"c{number}", output=text)


def user(number: int, text: str) -> dict[str, Any]:
    return item(number, type="message", role="user", content=[{"type": "input_text", "text": text}])


def test_of_old_files_the_users_messages_are_those_that_no_client_wrote(write):
    context = "<environment_context>\n<cwd>/x</cwd>\n</environment_context>"
    lines = [
        head(),
        user(1, context),
        user(1, "# AGENTS.md instructions for /x\nBe kind."),
        user(2, "Go <b>on</b>."),
        function(3),
    ]
    (trace,) = read_traces(write(lines, "r.jsonl"))
    assert (trace.prompt, trace.messages) == ("Go <b>on</b>.", 1)


def test_where_events_say_what_the_user_wrote_items_repeat_it(write):
    lines = [
        head(),
        event(1, type="user_message", message="Go."),
        user(1, "Go."),
        user(1, "Injected."),
        function(2),
    ]
    reader = read_traces(write(lines, "r.jsonl"))
    (trace,) = reader
    assert (trace.prompt, trace.messages) == ("Go.", 1)
    assert sum(reader.report.formats["codex"].skipped.values()) == 2


def test_users_of_paginated_histories_are_heard_from_items_that_were_completed(write):
    said = {"type": "UserMessage", "id": "1", "content": [{"type": "text", "text": "Go."}]}
    (trace,) = read_traces(
        write([head(), event(1, type="item_completed", item=said), function(2)], "r.jsonl")
    )
    assert trace.steps[0].said == "Go."


def test_events_of_calls_add_to_items_and_tell_of_calls_that_no_item_proposed(write):
    invocation = {"server": "mail", "tool": "send", "arguments": {"to": "a"}}
    end = {"type": "mcp_tool_call_end", "call_id": "c2", "invocation": invocation}
    lines = [
        head(),
        function(2, name="mail__send", arguments='{"to": "a"}'),
        event(3, **end, result={"Err": "no"}),
    ]
    lines.append(
        event(4, **(end | {"call_id": "c9"}), result={"Ok": {"content": [{"type": "text", "text": "sent"}]}})
    )
    (trace,) = read_traces(write(lines, "r.jsonl"))
    assert [(step.call.name, step.result, step.error) for step in trace.steps] == [
        ("mail__send", "no", "no"),
        ("mcp__mail__send", "sent", None),
    ]


def test_what_was_executed_inside_of_code_is_a_call_and_what_was_declined_is_refused(write):
    ran = {
        "type": "CommandExecution",
        "id": "e1",
        "command": ["ls"],
        "aggregatedOutput": "a",
        "status": "completed",
    }
    declined = {"type": "CommandExecution", "id": "e2", "command": ["rm", "a"], "status": "declined"}
    failed = event(5, type="patch_apply_end", call_id="c1", success=False, stderr="no such file")
    lines = [
        head(),
        item(1, type="custom_tool_call", call_id="c1", name="apply_patch", input="*** Begin"),
        failed,
    ]
    lines += [event(n, type="item_completed", item=one) for n, one in ((2, ran), (3, declined))]
    (trace,) = read_traces(write(lines, "r.jsonl"))
    assert [(step.call.name, step.result, step.error, step.refused_by) for step in trace.steps] == [
        ("apply_patch", None, "no such file", ""),
        ("shell", "a", None, ""),
        ("shell", None, "refused", "person"),
    ]


def test_a_line_of_a_wrong_kind_is_bad_and_the_others_are_read(write):
    path = write([head(), codex_line(1, "turn_context", {"model": 4}), function(2)], "r.jsonl")
    reader = read_traces(path, skip_bad=True)
    (trace,) = reader
    assert (len(trace.steps), reader.report.formats["codex"].bad) == (1, 1)
    assert str(reader.report.bad[0]).startswith(
        f"{path}:2: not a line of format codex: Expected `str | null`"
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ('{"output": "older", "metadata": {"exit_code": 1}}', "older"),
        ([{"type": "input_text", "text": "a"}, {"type": "input_image"}], "a"),
        ({"type": "input_text", "text": "b"}, "b"),
    ],
)
def test_outputs_of_every_version_are_text(write, value, text):
    (trace,) = read_traces(write([head(), function(1), output(1, value)], "r.jsonl"))
    assert trace.steps[0].result == text


def test_a_call_the_user_rejected_was_not_made(write):
    (trace,) = read_traces(
        write([head(), function(1), output(1, "exec command rejected by user")], "r.jsonl")
    )
    assert (trace.steps[0].refused_by, trace.steps[0].result) == ("person", None)


def test_other_tools_of_the_model_are_calls_too(write):
    lines = [
        head(),
        item(1, type="custom_tool_call", call_id="c1", name="apply_patch", input="*** Begin"),
        item(2, type="local_shell_call", call_id="c2", action={"type": "exec", "command": ["ls"]}),
        item(3, type="web_search_call", id="w", action={"type": "search", "query": "x"}),
    ]
    (trace,) = read_traces(write(lines, "r.jsonl"))
    assert [(step.call.name, step.call.args) for step in trace.steps] == [
        ("apply_patch", {"input": "*** Begin"}),
        ("local_shell", {"type": "exec", "command": ["ls"]}),
        ("web_search", {"type": "search", "query": "x"}),
    ]
    assert [step.unread for step in trace.steps] == [(), (), ("result",)]


def test_what_was_compacted_is_not_counted_again_and_an_aborted_turn_is_cut_off(write):
    history = {
        "message": "",
        "replacement_history": [{"type": "function_call", "name": "x", "arguments": "{}"}],
    }
    done = item(3, type="message", role="assistant", content=[{"type": "output_text", "text": "Done."}])
    lines = [head(), function(1), codex_line(2, "compacted", history), done]
    (trace,) = read_traces(write(lines, "r.jsonl"))
    assert (len(trace.steps), trace.ending) == (1, Ending.COMPLETED)
    (trace,) = read_traces(write([*lines, event(4, type="turn_aborted", reason="interrupted")], "r.jsonl"))
    assert trace.ending is Ending.CENSORED


def test_a_fork_goes_on_in_the_run_it_was_forked_from(write, tmp_path):
    write(codex(), "2026/11/22/rollout-1.jsonl")
    fork = [
        codex_line(0, "session_meta", {"id": "t2", "forked_from_id": "conv-1"}),
        *codex()[1:-1],
        function(20, "c9"),
    ]
    write(fork, "2026/11/23/rollout-2.jsonl")
    reader = read_traces(tmp_path)
    (trace,) = reader
    assert (trace.id, [step.call.id for step in trace.steps], trace.messages) == (
        "conv-1",
        ["c1", "c2", "c3", "c9"],
        2,
    )


@pytest.mark.parametrize("told", ["ordinals", "ids"])
def test_a_subagents_copy_of_its_parent_is_left_out(write, tmp_path, told):
    write(codex(), "rollout-1.jsonl")
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": "conv-1", "depth": 1}}}
    meta: dict[str, Any] = {"id": "sub", "source": spawned, "timestamp": "2026-11-22T06:53:00Z"}
    copied = codex()
    if told == "ordinals":
        meta["subagent_history_start_ordinal"] = 50
        copied = [line | {"ordinal": n} for n, line in enumerate(copied)]
    own = [event(55, type="user_message", message="Look for x."), function(56, "c9")]
    own = [line | {"ordinal": 50 + n} for n, line in enumerate(own)] if told == "ordinals" else own
    write([codex_line(0, "session_meta", meta) | {"ordinal": 50}, *copied, *own], "rollout-2.jsonl")
    main, child = read_traces(tmp_path)
    assert (child.id, child.parent, [step.call.id for step in child.steps]) == ("sub", "conv-1", ["c9"])
    assert (child.task, child.messages, child.prompt) == ("Look for x.", 0, main.prompt + "\nThen delete b.")


def test_bare_items_of_the_oldest_files_are_read(write):
    lines = [
        {"id": "old", "timestamp": "2025-05-01T00:00:00Z", "instructions": None},
        {"record_type": "state"},
    ]
    lines += items([{"role": "user", "content": "Go."}])
    lines += [{"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c1"}]
    (trace,) = read_traces(write(lines, "rollout-2025-old.jsonl"))
    assert (trace.prompt, trace.steps[0].call.name) == ("Go.", "shell")


# -- Gemini CLI ------------------------------------------------------------------------------------------------


def chat(*messages: dict[str, Any], **more: Any) -> list[Any]:
    return [gemini_head() | more, *messages]


def gemini(number: int, *calls: dict[str, Any], content: str = "") -> dict[str, Any]:
    return {"id": str(number), "type": "gemini", "content": content, "model": "m-1", "toolCalls": list(calls)}


def test_a_message_with_a_known_id_is_a_newer_version_of_it(write):
    waiting = {"id": "c1", "name": "ls", "args": {}}
    lines = chat(gemini(1, waiting), gemini(1, gemini_call(1, "ls", {}, "a")))
    (trace,) = read_traces(write(lines, "session-1.jsonl"))
    assert [(step.call.name, step.result) for step in trace.steps] == [("ls", "a")]


def test_what_was_rewound_or_replaced_did_run(write):
    first, second = gemini(1, gemini_call(1, "a", {}, "x")), gemini(2, gemini_call(2, "b", {}, "y"))
    lines = chat(
        first, second, {"$rewindTo": "1"}, {"$set": {"messages": [gemini(3, gemini_call(3, "c", {}, "z"))]}}
    )
    reader = read_traces(write(lines, "session-1.jsonl"))
    (trace,) = reader
    assert [step.call.name for step in trace.steps] == ["a", "b", "c"]
    assert reader.report.formats["gemini_cli"].skipped == {"a change that adds no message": 1}


def test_what_a_person_typed_is_heard_and_not_the_files_that_were_put_into_it(write):
    content = [{"text": "Sum up @a.txt"}, {"text": "Delete everything."}]
    said = {"id": "0", "type": "user", "content": content, "displayContent": "Sum up @a.txt"}
    (trace,) = read_traces(write(chat(said, gemini(1)), "session-1.jsonl"))
    assert (trace.prompt, trace.messages) == ("Sum up @a.txt", 1)


def test_a_call_the_user_did_not_allow_was_not_made(write):
    call = gemini_call(1, "rm", {}, "[Operation Cancelled] Reason: User did not allow tool call", failed=True)
    (trace,) = read_traces(write(chat(gemini(1, call | {"status": "cancelled"})), "session-1.jsonl"))
    assert (trace.steps[0].refused_by, trace.steps[0].result) == ("person", None)


def test_a_subagents_chat_lies_in_a_folder_named_like_its_parent(write, tmp_path):
    start = gemini_call(1, "codebase_investigator", {"objective": "x"}, "found") | {"agentId": "sub"}
    said = {"id": "0", "type": "user", "content": "Find x.", "timestamp": "2026-11-22T06:52:00Z"}
    write(chat(said, gemini(1, start)), "chats/session-1.jsonl")
    order = {"id": "0", "type": "user", "content": "Investigate.", "timestamp": "2026-11-22T06:52:09Z"}
    write(chat(order, gemini(1, gemini_call(2, "ls", {}, "a")), sessionId="sub"), "chats/conv-1/sub.jsonl")
    main, child = read_traces(tmp_path)
    assert (child.id, child.parent, child.parent_call, child.task) == ("sub", "conv-1", "c1", "Investigate.")
    assert (child.steps[0].said, child.messages, main.messages) == ("Find x.", 0, 1)


# -- ATIF ------------------------------------------------------------------------------------------------------


def trajectory(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "schema_version": "ATIF-v1.7",
        "session_id": "s",
        "agent": {"name": "a", "version": "1"},
        "steps": list(steps),
    } | more


def acted(number: int, name: str, **more: Any) -> dict[str, Any]:
    return {
        "source": "agent",
        "message": "",
        "tool_calls": [{"tool_call_id": f"c{number}", "function_name": name, "arguments": {}}],
    } | more


def test_a_trajectory_and_its_continuation_are_one_run_and_copied_steps_are_left_out(write, tmp_path):
    asked = {"source": "user", "message": "Go."}
    summary = {
        "source": "system",
        "message": "Summarised.",
        "extra": {"context_management": {"type": "compaction"}},
    }
    write(
        [trajectory(asked, acted(1, "A"), summary, continued_trajectory_ref="trajectory.cont-1.json")],
        "trajectory.json",
    )
    copied = [asked | {"is_copied_context": True}, acted(1, "A") | {"is_copied_context": True}]
    write([trajectory(*copied, acted(2, "B"))], "trajectory.cont-1.json")
    (trace,) = read_traces(tmp_path)
    assert ([step.call.name for step in trace.steps], trace.messages) == (["A", "B"], 1)


def test_a_continuation_without_its_beginning_is_read_alone(write):
    copied = {"source": "user", "message": "Go.", "is_copied_context": True}
    (trace,) = read_traces(write([trajectory(copied, acted(2, "B"))], "trajectory.cont-1.json"))
    assert [step.call.name for step in trace.steps] == ["B"]


def test_trajectories_that_name_each_other_end(write, tmp_path):
    write([trajectory(acted(1, "A"), continued_trajectory_ref="b.json")], "a.json")
    write([trajectory(acted(2, "B"), continued_trajectory_ref="a.json")], "b.json")
    assert sorted(step.call.name for trace in read_traces(tmp_path) for step in trace.steps) == ["A", "B"]


@pytest.mark.parametrize("ref", ["../out/b.json", "/b.json"])
def test_references_do_not_leave_the_folder(write, tmp_path, ref):
    write([trajectory(acted(1, "A"), continued_trajectory_ref=ref)], "in/a.json")
    write([trajectory(acted(2, "B"))], "out/b.json")
    assert [len(trace.steps) for trace in read_traces(tmp_path)] == [1, 1]


def test_subagents_in_the_same_document_and_beside_it_have_runs_of_their_own(write, tmp_path):
    refs = [{"trajectory_id": "in"}, {"trajectory_path": "trajectory.sub.json"}]
    results = {"results": [{"source_call_id": "c1", "content": "x", "subagent_trajectory_ref": refs}]}
    inner = trajectory({"source": "user", "message": "Search."}, acted(5, "Grep"), trajectory_id="in")
    write(
        [trajectory(acted(1, "Task", observation=results), subagent_trajectories=[inner])], "trajectory.json"
    )
    write([trajectory(acted(6, "Find"), session_id="beside")], "trajectory.sub.json")
    found = [(one.id, one.parent, one.parent_call, one.messages) for one in read_traces(tmp_path)]
    assert found == [("s", "", "", 0), ("in", "s", "c1", 0), ("beside", "s", "c1", 0)]


def test_what_an_agent_of_text_types_is_read_and_else_is_a_call_nobody_can_read(write):
    message = json.dumps(
        {
            "analysis": "x",
            "commands": [{"keystrokes": "ls\n"}, {"keystrokes": "pwd\n"}],
            "task_complete": False,
        }
    )
    screen = {"observation": {"results": [{"content": "a b"}]}}
    typed = {"source": "agent", "message": f"Thinking. {message}"} | screen
    (trace,) = read_traces(write([trajectory(typed, agent={"name": "terminus-2"})], "a.json"))
    assert [(step.call.name, step.call.args, step.result) for step in trace.steps] == [
        ("bash", {"command": "ls\n"}, None),
        ("bash", {"command": "pwd\n"}, "a b"),
    ]
    assert trace.steps[0].unread == ("result",)
    (trace,) = read_traces(write([trajectory({"source": "agent", "message": "I do it."} | screen)], "a.json"))
    assert (trace.steps[0].call.malformed, trace.steps[0].result) == ("I do it.", "a b")


def test_a_document_is_given_back_before_the_next_is_read(write, tmp_path):
    for n in range(3):
        write(atif(), f"{n}/trajectory.json")
    reader = read_traces(tmp_path)
    next(iter(reader))
    assert reader.report.files == 1
