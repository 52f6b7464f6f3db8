"""Everyday sessions, and what their label may be used for."""

from __future__ import annotations

import pytest

from safetydrift.formats import read_traces
from safetydrift.formats.sessions import Sessions
from safetydrift.trace import Ending


def test_calls_results_and_task_are_told(run_of):
    trace = Sessions().read(run_of["sessions"](), "f:1")
    shell, notebook = trace.steps
    assert (shell.call.name, shell.call.args, shell.result) == ("bash", {"command": "ls | wc -l"}, "4\n")
    assert (notebook.call.name, notebook.turn, notebook.said) == ("python", 1, "")
    assert (trace.source, trace.category, trace.task) == ("sessions", "office", "Count the files.")
    assert trace.ending is Ending.CENSORED


def test_a_benign_session_is_not_violated(run_of):
    label = Sessions().read(run_of["sessions"](), "f:1").label
    assert (label.violated, label.unusable) == (False, "")


def test_another_label_is_not_taken_for_a_verdict(run_of):
    label = Sessions().read(run_of["sessions"](label="attack", harmful_step=1), "f:1").label
    assert label.violated is None
    assert "attack" in label.unusable


def test_arguments_that_are_no_object_are_malformed(run_of):
    step = {"name": "bash", "arguments": "ls {", "result": None}
    call = Sessions().read(run_of["sessions"](steps=[step]), "f:1").steps[0].call
    assert (call.args, call.malformed) == ({}, "ls {")


@pytest.mark.shared
@pytest.mark.parametrize(("name", "sessions", "calls"), [("super", 377, 14076), ("intercode", 823, 5462)])
def test_every_shared_session_is_read(shared_traces, name, sessions, calls):
    reader = read_traces([shared_traces.parent / "sessions" / f"{name}.jsonl.xz"])
    assert sum(trace.label.violated is False for trace in reader) == sessions
    assert reader.report.steps == calls
