"""Files that others wrote, in every log format: what is in them was counted by hand from their raw text."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.formats.test_stories import ANYTHING, check, mutated

from safetydrift.errors import TraceFormatError
from safetydrift.formats import read_traces
from safetydrift.formats.reading import FORMATS, LOG_FORMATS

pytestmark = pytest.mark.shared


class Count(NamedTuple):
    """Runs, calls, calls with and without arguments, and messages of users."""

    format: str
    runs: int
    calls: int
    with_arguments: int
    without: int
    messages: int


SESSION = "claude-code/agent-sessions/0a1b2c3d-4e5f-4061-8071-2a3b4c5d6e7f"
TERMINUS = "atif/scout/terminus_2_hello-world-context-summarization-linear-history.trajectory"
BY_HAND = {
    # Its many lines whose fields are all "[trimmed for fixture]" have one and the same uuid, so they are one line
    # written again. The sidechain of its first lines is a subagent's, so that "Hello" is no person's; a queued
    # command is.
    "claude-code/agent-sessions/small.jsonl": Count("claude_code", 2, 2, 2, 0, 1),
    f"{SESSION}.jsonl": Count("claude_code", 1, 1, 1, 0, 1),
    f"{SESSION}/subagents/agent-a0ad4f44468bdf20d.jsonl": Count("claude_code", 1, 1, 1, 0, 0),
    "claude-code/scout/clear_split_session.jsonl": Count("claude_code", 2, 0, 0, 0, 2),
    "claude-code/scout/compaction_session.jsonl": Count("claude_code", 1, 0, 0, 0, 2),
    "claude-code/scout/simple_conversation.jsonl": Count("claude_code", 1, 0, 0, 0, 2),
    "claude-code/scout/slug_session_1.jsonl": Count("claude_code", 1, 0, 0, 0, 1),
    "claude-code/scout/slug_session_2.jsonl": Count("claude_code", 1, 0, 0, 0, 1),
    "claude-code/scout/tool_call_conversation.jsonl": Count("claude_code", 1, 1, 1, 0, 1),
    # Eight items are calls; of the last the arguments are null. Two calls of MCP have an event alone: call-5, and the
    # first whose id is "[trimmed for fixture]". Three events say what the user wrote, and one completed item.
    "codex/agent-sessions/small.jsonl": Count("codex", 1, 10, 9, 1, 4),
    "codex/agent-sessions/codex_050_legacy.jsonl": Count("codex", 0, 0, 0, 0, 0),
    "codex/defenseclaw/tool-result.logs.json": Count("opentelemetry", 1, 1, 1, 0, 0),
    "gemini-cli/agent-sessions/jsonl_v040.jsonl": Count("gemini_cli", 1, 1, 1, 0, 1),
    "gemini-cli/agent-sessions/small.json": Count("gemini_cli", 1, 0, 0, 0, 1),
    "gemini-cli/agent-sessions/large.json": Count("gemini_cli", 1, 2, 2, 0, 2),
    "atif/scout/openhands_hello-world.trajectory.json": Count("atif", 1, 2, 2, 0, 1),
    # Terminus writes its commands as text: three here; two in the continuation, whose other user steps are copied.
    f"{TERMINUS}.json": Count("atif", 1, 3, 3, 0, 1),
    f"{TERMINUS}.cont-1.json": Count("atif", 1, 2, 2, 0, 0),
    "openinference/generated/openinference-agent-run.otlp.jsonl": Count("opentelemetry", 1, 2, 2, 0, 1),
    "openinference/openinference-genai/openinference_client_span_input_output_only.json": Count(
        "opentelemetry", 1, 1, 1, 0, 1
    ),
    "openinference/openinference-genai/openinference_client_span_tool_calls.json": Count(
        "opentelemetry", 1, 1, 1, 0, 1
    ),
    # The subagent was shown the calls of the agent that started it, and made none itself.
    "otel-genai/generated/agent-run.otlp.jsonl": Count("opentelemetry", 2, 3, 3, 0, 1),
    "otel-genai/generated/agent-run.logs.otlp.jsonl": Count("opentelemetry", 1, 3, 3, 0, 1),
    "otel-genai/openinference-genai/otel_genai_client_span_tool_calls.json": Count(
        "opentelemetry", 1, 1, 1, 0, 1
    ),
    "otel-genai/openinference-genai/otel_genai_deprecated_client_span_tool_calls.json": Count(
        "opentelemetry", 1, 1, 1, 0, 1
    ),
    "otel-genai/openinference-genai/otel_genai_tool_execution_span.json": Count(
        "opentelemetry", 1, 1, 1, 0, 0
    ),
    "otel-genai/opentelemetry-proto/trace.json": Count("opentelemetry", 0, 0, 0, 0, 0),
    "otel-genai/defenseclaw/claude-code-tool.span.json": Count("opentelemetry", 1, 1, 0, 1, 0),
    "langfuse/openai-agents-2025-09-30.trace.json": Count("langfuse", 1, 1, 1, 0, 1),
    "langfuse/claude-agent-2025-12-22.trace.json": Count("langfuse", 1, 2, 2, 0, 1),
    # The framework tells its system prompt as a second message of the user.
    "langfuse/langgraph-python-2025-08-22.trace.json": Count("langfuse", 1, 1, 1, 0, 2),
    "langsmith/generated/runs.jsonl": Count("langsmith", 1, 2, 2, 0, 1),
    "langsmith/langsmith-sdk/langsmith_js_wrap_openai_default.json": Count("langsmith", 1, 0, 0, 0, 1),
    "langsmith/langsmith-sdk/langsmith_py_wrap_openai_.json": Count("langsmith", 1, 0, 0, 0, 1),
    "mlflow/generated/trace.json": Count("mlflow", 1, 2, 2, 0, 1),
    "mlflow/generated/traces.json": Count("mlflow", 1, 2, 2, 0, 1),
    "openai-agents/generated/agents-sdk-trace.jsonl": Count("openai_agents", 1, 2, 2, 0, 1),
    "openai-agents/generated/responses-items.json": Count("responses", 1, 2, 2, 0, 1),
}
SCHEMAS = "otel-genai/schemas/"


@pytest.fixture(scope="module")
def fixtures(shared_traces):
    return shared_traces.parent / "fixtures"


def test_every_fixture_was_counted(fixtures):
    files = {str(path.relative_to(fixtures)) for path in fixtures.rglob("*.json*")}
    notes = {name for name in files if name.startswith(SCHEMAS) or name.endswith(".meta.json")}
    assert files - notes == set(BY_HAND)


@pytest.mark.parametrize("file", BY_HAND)
def test_what_is_read_is_what_was_counted_by_hand(fixtures, file):
    expected = BY_HAND[file]
    reader = read_traces(fixtures / file)
    traces = list(reader)
    steps = [step for trace in traces for step in trace.steps]
    missing = sum("arguments" in step.unread for step in steps)
    (name,) = reader.report.formats
    said = sum(trace.messages for trace in traces)
    assert Count(name, len(traces), len(steps), len(steps) - missing, missing, said) == expected
    (summary,) = reader.report.formats.values()
    assert (summary.runs, summary.calls, summary.without_arguments, summary.messages) == (
        expected.runs,
        expected.calls,
        expected.without,
        expected.messages,
    )


def test_every_log_format_has_a_fixture():
    assert {one.name for one in LOG_FORMATS} <= {count.format for count in BY_HAND.values()}


@pytest.mark.parametrize("file", BY_HAND)
def test_a_fixture_belongs_to_one_format_only(fixtures, file):
    text = (fixtures / file).read_text()
    record = json.loads(text if file.endswith(".json") else text.splitlines()[0])
    assert [one.name for one in FORMATS if one.recognises(record)] == [BY_HAND[file].format]


def test_all_of_them_are_read_in_one_go(fixtures):
    reader = read_traces(fixtures, skip_bad=True)
    traces = list(reader)
    # All that was counted, without what is there twice: the spans and their events, and MLflow's trace in two forms.
    assert sum(len(trace.steps) for trace in traces) == 49
    assert reader.report.n_bad == len(list((fixtures / SCHEMAS).rglob("*.json")))
    assert Counter(reader.report.passed_over.values())["written by Claude Code about its transcripts"] == 1


def test_what_failed_and_what_came_back_is_told(fixtures):
    for file in ("openinference/generated/openinference-agent-run.otlp.jsonl", "mlflow/generated/trace.json"):
        (trace,) = read_traces(fixtures / file)
        assert [step.result for step in trace.steps[:1]] == ['["a.txt", "b.txt"]']
        assert "not permitted: reports/b.txt" in (trace.steps[1].error or "")


def test_the_subagents_run_names_its_parent(fixtures):
    main, child = read_traces(fixtures / "otel-genai/generated/agent-run.otlp.jsonl")
    assert (child.parent, child.tools) == (main.id, ("list_files", "delete_file"))
    main, child = read_traces([fixtures / f"{SESSION}.jsonl", fixtures / f"{SESSION}/subagents"])
    assert (main.id, child.parent) == (SESSION.rpartition("/")[2],) * 2


def _records(path: Any) -> list[Any]:
    text = path.read_text()
    return [json.loads(text)] if path.suffix == ".json" else [json.loads(line) for line in text.splitlines()]


@settings(max_examples=200)
@given(
    file=st.sampled_from(sorted(BY_HAND)),
    seed=st.integers(0, 2**32),
    steps=st.lists(st.integers(0, 60), min_size=1, max_size=14),
    replacement=ANYTHING,
)
def test_a_fixture_with_one_part_replaced_is_read_or_refused_and_nothing_is_lost(
    fixtures, tmp_path_factory, *, file, seed, steps, replacement
):
    path = fixtures / file
    records = _records(path)
    place = random.Random(seed).randrange(len(records))  # noqa: S311
    records[place] = mutated(records[place], steps, replacement)
    copy = tmp_path_factory.getbasetemp() / f"mutated{path.suffix}"
    copy.write_text(
        json.dumps(records[0])
        if path.suffix == ".json"
        else "".join(json.dumps(one) + "\n" for one in records)
    )
    check(copy, file)


@settings(max_examples=100)
@given(
    file=st.sampled_from(sorted(BY_HAND)),
    at=st.integers(0, 200_000),
    byte=st.integers(0, 255),
    cut=st.booleans(),
)
def test_a_fixture_with_one_byte_changed_or_cut_short_is_read_or_refused(
    fixtures, tmp_path_factory, *, file, at, byte, cut
):
    content = (fixtures / file).read_bytes()
    at %= len(content)
    copy = tmp_path_factory.getbasetemp() / f"damaged{(fixtures / file).suffix}"
    copy.write_bytes(content[:at] if cut else content[:at] + bytes([byte]) + content[at + 1 :])
    reader = read_traces(copy, skip_bad=True)
    list(reader)
    try:
        list(read_traces(copy))
    except TraceFormatError:
        assert reader.report.n_bad
    else:
        assert not reader.report.n_bad
