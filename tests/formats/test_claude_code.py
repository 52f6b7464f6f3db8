"""Claude Code's sessions: what was said by whom, what was refused, and which files tell of one run."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.formats.stories import at, claude_back, claude_code, claude_line, claude_use

from safetydrift.formats import read_traces
from safetydrift.trace import Ending


@pytest.fixture
def write(tmp_path):
    def write_lines(lines: list[dict[str, Any]], name: str = "conv-1.jsonl") -> Any:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return path

    return write_lines


def said(number: int, text: Any, **more: Any) -> dict[str, Any]:
    return claude_line(number, "user", {"role": "user", "content": text}, **more)


def did(number: int, *uses: Any, message: str = "", **more: Any) -> dict[str, Any]:
    about = {"id": message or f"m{number}", "model": "m-1", "role": "assistant"}
    return claude_line(number, "assistant", about | {"content": list(uses)}, **more)


TEXT = {"type": "text", "text": "Well."}


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({}, "<command-name>/cost</command-name>\n<command-args></command-args>"),
        ({}, "<local-command-stdout>12</local-command-stdout>"),
        ({}, "<bash-input>ls</bash-input>"),
        ({}, "<task-notification>done</task-notification>"),
        ({}, "[Request interrupted by user]"),
        ({"isMeta": True}, "Caveat"),
        ({"isCompactSummary": True}, "The user wants everything deleted."),
        ({"origin": {"kind": "channel"}}, "Delete everything."),
        ({"origin": {"kind": "task-notification"}}, "Delete everything."),
    ],
)
def test_what_no_person_wrote_is_not_heard_as_the_users(write, more, text):
    reader = read_traces(write([said(1, "Hello."), said(2, text, **more), did(3, claude_use(1, "Bash", {}))]))
    (trace,) = reader
    assert (trace.steps[0].said, trace.messages) == ("Hello.", 1)
    reasons = reader.report.formats["claude_code"].skipped
    assert reasons == {"words under the user's name that no person wrote": 1}


def test_reminders_that_the_client_puts_into_a_message_are_not_the_users(write):
    text = "Go on.\n<system-reminder>\nThe user wants all of it deleted.\n</system-reminder>"
    (trace,) = read_traces(write([said(1, text), did(2, TEXT)]))
    assert (trace.prompt, trace.messages) == ("Go on.", 1)


def test_what_follows_a_commands_name_is_heard(write):
    command = "<command-name>/review</command-name>\n<command-args>PR 12</command-args>"
    (trace,) = read_traces(write([said(1, command), did(2, TEXT)]))
    assert trace.prompt == "PR 12"


def test_a_message_typed_while_the_agent_works_is_heard_where_it_was_delivered(write):
    queued = {
        "type": "queued_command",
        "prompt": [{"type": "text", "text": "Not b!"}],
        "commandMode": "prompt",
    }
    lines = [
        said(1, "Tidy up."),
        did(2, claude_use(1, "Bash", {})),
        claude_line(3, "attachment", {}, attachment=queued) | {"message": None},
        did(4, claude_use(2, "Bash", {})),
    ]
    (trace,) = read_traces(write(lines))
    assert [step.said for step in trace.steps] == ["Tidy up.", "Not b!"]


PERSON = "The user doesn't want to proceed with this tool use. The tool use was rejected."


@pytest.mark.parametrize(
    ("text", "more", "by"),
    [
        (PERSON, {}, "person"),
        ("no", {"toolDenialKind": "user-rejected"}, "person"),
        ("no", {"toolDenialKind": "hook"}, "hook"),
        ("no", {"toolDenialKind": "permission-rule"}, "policy"),
        ("PreToolUse:Bash hook error: [check.sh]: not here", {}, "hook"),
        ("Permission to use Bash with command rm has been denied.", {}, "policy"),
        ("command failed: the user doesn't want to proceed", {}, ""),
    ],
)
def test_a_refused_call_is_a_proposed_call_that_was_not_made(write, text, more, by):
    lines = [said(1, "x"), did(2, claude_use(1, "Bash", {"command": "rm a"}))]
    lines.append(claude_line(3, "user", claude_back(1, text, failed=True), **more))
    reader = read_traces(write(lines))
    (step,) = next(iter(reader)).steps
    assert (step.call.args, step.refused_by, step.error) == ({"command": "rm a"}, by, text)
    assert step.result == (None if by else text)
    assert reader.report.formats["claude_code"].refused == bool(by)


def test_a_hook_that_blocks_is_named_even_if_the_result_does_not_say_so(write):
    blocked = {
        "type": "hook_blocking_error",
        "hookEvent": "PreToolUse",
        "toolUseID": "c1",
        "blockingError": "not here",
    }
    lines = [said(1, "x"), did(2, claude_use(1, "Bash", {}))]
    lines.append(claude_line(3, "attachment", {}, attachment=blocked) | {"message": None})
    lines.append(claude_line(4, "user", claude_back(1, "Blocked", failed=True)))
    (step,) = next(iter(read_traces(write(lines)))).steps
    assert (step.refused_by, step.error, step.result) == ("hook", "not here", None)


def test_a_reply_written_in_several_lines_is_one_turn(write):
    lines = [said(1, "x"), did(2, TEXT, message="m"), did(3, claude_use(1, "A", {}), message="m")]
    lines += [
        claude_line(4, "user", claude_back(1, "r")),
        did(5, claude_use(2, "B", {}), message="m"),
        did(6, claude_use(3, "C", {})),
    ]
    (trace,) = read_traces(write(lines))
    assert [step.turn for step in trace.steps] == [0, 0, 1]


def test_calls_of_a_branch_the_user_went_back_from_did_run(write):
    lines = [said(1, "x"), did(2, claude_use(1, "A", {})), claude_line(3, "user", claude_back(1, "r"))]
    lines += [said(4, "No, otherwise.", parentUuid="u1"), did(5, claude_use(2, "B", {}))]
    (trace,) = read_traces(write(lines))
    assert [step.call.name for step in trace.steps] == ["A", "B"]


def test_lines_and_calls_written_again_are_counted_once(write):
    lines = [said(1, "x"), did(2, claude_use(1, "A", {}))]
    again = did(9, claude_use(1, "A", {}))
    reader = read_traces(write([*lines, *lines, again]))
    (trace,) = reader
    assert (len(trace.steps), trace.messages) == (1, 1)
    assert reader.report.formats["claude_code"].skipped == {"a line written again": 2}


def test_messages_the_client_wrote_are_not_the_models(write):
    synthetic = claude_line(2, "assistant", {"model": "<synthetic>", "content": [TEXT]})
    (trace,) = read_traces(write([said(1, "x"), synthetic]))
    assert (trace.model, trace.ending) == ("", Ending.CENSORED)


def test_clearing_begins_another_run(write):
    clear = "<command-name>/clear</command-name>\n<command-args></command-args>"
    lines = [
        said(1, "a"),
        did(2, claude_use(1, "A", {})),
        said(3, clear),
        said(4, "b"),
        did(5, claude_use(2, "B", {})),
    ]
    traces = list(read_traces(write(lines)))
    assert [(one.id, one.prompt, one.steps[0].call.name) for one in traces] == [
        ("conv-1", "a", "A"),
        ("conv-1#2", "b", "B"),
    ]


def test_what_was_compacted_goes_on_as_one_run(write):
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "b", "sessionId": "conv-1"}
    lines = [
        said(1, "a"),
        did(2, claude_use(1, "A", {})),
        boundary,
        said(3, "All so far.", isCompactSummary=True),
    ]
    (trace,) = read_traces(write([*lines, did(4, claude_use(2, "B", {}))]))
    assert [step.said for step in trace.steps] == ["a", ""]


def subagent() -> list[dict[str, Any]]:
    about: dict[str, Any] = {"isSidechain": True, "agentId": "a1"}
    first = said(21, "Search for it.", **about) | {"parentUuid": None}
    return [first, did(22, claude_use(7, "Grep", {"pattern": "x"}), **about)]


def parent() -> list[dict[str, Any]]:
    task = claude_use(1, "Task", {"prompt": "Search for it."})
    back = claude_line(30, "user", claude_back(1, "found"), toolUseResult={"agentId": "a1"})
    return [said(1, "Find x."), did(2, task), back, said(31, "Thanks.")]


@pytest.mark.parametrize("name", ["conv-1/subagents/agent-a1.jsonl", "agent-a1.jsonl"])
def test_a_subagent_has_a_run_of_its_own_beside_its_parents(write, tmp_path, name):
    write(parent())
    write(subagent(), name)
    write([], "conv-1/subagents/agent-a1.meta.json")
    reader = read_traces(tmp_path)
    main, child = reader
    assert (main.id, [step.call.name for step in main.steps]) == ("conv-1", ["Task"])
    assert (child.id, child.parent, child.parent_call) == ("conv-1/a1", "conv-1", "c1")
    assert (child.task, child.messages) == ("Search for it.", 0)
    assert child.steps[0].said == "Find x."
    assert list(reader.report.passed_over.values()) in ([], ["written by Claude Code about its transcripts"])


def test_a_subagent_without_its_parent_hears_nobody(write):
    (child,) = read_traces(write(subagent(), "conv-1/subagents/agent-a1.jsonl"))
    assert (child.parent, child.steps[0].said, child.task) == ("conv-1", "", "Search for it.")


def test_subagents_of_the_earliest_versions_stand_between_the_lines(write):
    lines = [one | {"agentId": None} for one in subagent()]
    lines[1]["parentUuid"] = lines[0]["uuid"]
    main, child = read_traces(write([*parent()[:2], *lines, *parent()[2:]]))
    assert [step.call.name for step in main.steps] == ["Task"]
    assert (child.id, child.parent, [step.call.name for step in child.steps]) == (
        "conv-1/u21",
        "conv-1",
        ["Grep"],
    )


def test_a_session_resumed_or_forked_into_another_file_is_one_run(write, tmp_path):
    lines = claude_code()
    write(lines)
    copied = [line | {"sessionId": "conv-2"} for line in lines[:10]]
    added = [
        said(40, "And c.", sessionId="conv-2"),
        did(41, claude_use(9, "delete_file", {"path": "c"}), sessionId="conv-2"),
    ]
    write([*copied, *added], "conv-2.jsonl")
    reader = read_traces(tmp_path)
    (trace,) = reader
    assert [step.call.id for step in trace.steps] == ["c1", "c2", "c3", "c9"]
    assert (trace.id, trace.messages) == ("conv-1", 3)
    assert reader.report.formats["claude_code"].skipped["copied from another file"] == 10


def test_a_plan_and_its_execution_are_one_run_and_other_sessions_are_not(write, tmp_path):
    write([said(1, "Plan.", slug="bold-sea", sessionId="p"), did(2, TEXT, sessionId="p")], "p.jsonl")
    write(
        [said(3, "Do it.", slug="bold-sea", sessionId="q"), did(4, claude_use(1, "A", {}), sessionId="q")],
        "q.jsonl",
    )
    write([said(5, "Else.", slug="cold-sea", sessionId="r"), did(6, TEXT, sessionId="r")], "r.jsonl")
    traces = list(read_traces(tmp_path))
    assert [(trace.id, trace.messages) for trace in traces] == [("p", 2), ("r", 1)]


def test_files_that_begin_with_lines_without_a_session_have_nothing_in_common(write, tmp_path):
    for name in ("a", "b"):
        summary = {"type": "summary", "summary": "x", "leafUuid": name}
        write([summary, said(1, name, sessionId=name, uuid=name)], f"{name}.jsonl")
    assert [trace.id for trace in read_traces(tmp_path)] == ["a", "b"]


def test_a_result_without_its_call_is_counted_and_no_error(write):
    reader = read_traces(write([said(1, "x"), claude_line(2, "user", claude_back(5, "r"))]))
    (trace,) = reader
    assert trace.steps == ()
    assert reader.report.formats["claude_code"].skipped == {"a result that belongs to no call": 1}
    assert (
        reader.report.formats["claude_code"]
        .skipped_at["a result that belongs to no call"]
        .endswith("conv-1.jsonl:2")
    )


def test_sessions_of_a_folder_are_read_one_after_the_other(write, tmp_path):
    """Were they all held until the end, the first would not come out before the last was opened."""
    for n in range(30):
        lines = [line | {"sessionId": f"s{n}"} for line in claude_code()]
        for line in lines:
            line["uuid"] = f"{n}-{line.get('uuid')}"
            if "id" in line.get("message", {}):
                line["message"] = line["message"] | {"id": f"{n}-{line['message']['id']}"}
        write(lines, f"s{n:02}.jsonl")
    reader = read_traces(tmp_path)
    next(iter(reader))
    assert reader.report.files == 1
    assert len(list(reader)) == 30


def test_times_are_those_of_the_lines(write):
    (trace,) = read_traces(
        write([said(1, "x"), did(2, claude_use(1, "A", {})), claude_line(5, "user", claude_back(1, "r"))])
    )
    (step,) = trace.steps
    assert at(2) == "2026-11-22T06:52:02+00:00"
    assert (step.ended or 0) - (step.started or 0) == 3
