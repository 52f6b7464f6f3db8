"""One story in every log format, whole, out of order, twice, in pieces, compressed and damaged."""

from __future__ import annotations

import copy
import gzip
import json
import pickle
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.formats.stories import ANSWER, ASKED, CALLS, FAILED, MODEL, MORE, TOOLS, Story, stories

from safetydrift.errors import TraceFormatError
from safetydrift.formats import read_traces, write_traces
from safetydrift.formats.reading import FORMATS, LOG_FORMATS
from safetydrift.trace import Ending, Trace

STORIES = stories()
POOLED = {one.name for one in LOG_FORMATS if one.pooled and one.name != "atif"}


@pytest.fixture(params=STORIES)
def story(request) -> Story:
    return STORIES[request.param]


@pytest.fixture
def told(tmp_path):
    """Write the files of a story, or of some records, and return their folder."""

    def tell(files: dict[str, list[Any]], name: str = "told") -> Any:
        folder = tmp_path / name
        for file, records in files.items():
            path = folder / file
            path.parent.mkdir(parents=True, exist_ok=True)
            whole = file.endswith(".json")
            path.write_text(
                json.dumps(records[0]) if whole else "".join(json.dumps(one) + "\n" for one in records)
            )
        return folder

    return tell


def calls_of(trace: Trace) -> list[tuple[str, Any, str | None, str | None]]:
    return [(one.call.name, dict(one.call.args), one.result, one.error) for one in trace.steps]


def test_every_log_format_tells_the_story():
    assert {one.name for one in LOG_FORMATS} <= {one.name for one in STORIES.values()}


def test_every_format_tells_the_same(story, told):
    (trace,) = read_traces(told(story.files))
    found = calls_of(trace)
    # What came back of a failed call stands with the error, or beside it as a result.
    assert [(name, args) for name, args, _, _ in found] == [(name, args) for name, args, _, _ in CALLS]
    assert [found[0][2:], found[2][2:]] == [CALLS[0][2:], CALLS[2][2:]]
    assert (found[1][3] == FAILED) if story.failure else (found[1][2] == FAILED)
    assert [step.said for step in trace.steps] == [ASKED, "", MORE]
    assert [step.turn for step in trace.steps] == [0, 0, 1]
    assert not any(step.unread or step.refused_by for step in trace.steps)
    assert (trace.messages, trace.unread, trace.prompt, trace.model) == (2, 0, ASKED, MODEL)
    assert trace.ending is Ending.COMPLETED
    assert trace.tools == (TOOLS if story.tools else ())
    assert (trace.parent, trace.source) == ("", story.name)
    if story.times:
        starts = [step.started for step in trace.steps]
        assert None not in starts
        assert starts == sorted(starts, key=lambda start: start or 0)
        assert all((step.ended or 0) >= (step.started or 0) for step in trace.steps)


def test_every_item_is_counted_once(story, told):
    reader = read_traces(told(story.files))
    (trace,) = reader
    summary = reader.report.formats[story.name]
    items = sum(items_in(story.name, record) for records in story.files.values() for record in records)
    assert summary.used + sum(summary.skipped.values()) == items
    assert (summary.runs, summary.calls, summary.messages, summary.bad) == (1, 3, 2, 0)
    assert summary.tools == Counter(dict.fromkeys(TOOLS, 1))
    assert set(summary.skipped_at) == set(summary.skipped)
    assert trace.id in {"conv-1", "items.jsonl:1", f"{1:032x}"}


def items_in(name: str, record: Any) -> int:
    """Return how many things of its own a record holds: lines, spans, log records, observations, runs."""
    if name == "opentelemetry" and "context" not in record:
        scopes = [
            scope
            for key in ("Spans", "Logs")
            for one in record.get(f"resource{key}", ())
            for scope in one[f"scope{key}"]
        ]
        return sum(len(scope.get("spans", ())) + len(scope.get("logRecords", ())) for scope in scopes)
    if name == "langfuse":
        return len(record["observations"])
    return len(record["data"]["spans"]) if name == "mlflow" else 1


def test_a_record_belongs_to_one_format_only(story):
    for records in story.files.values():
        assert [one.name for one in FORMATS if one.recognises(records[0])] == [story.name]


def test_reading_is_repeatable_and_detection_agrees_with_asking(story, told):
    folder = told(story.files)
    reader = read_traces(folder)
    first = list(reader)
    assert list(reader) == first == list(read_traces(folder, format=story.name))
    assert pickle.loads(pickle.dumps(first)) == first  # noqa: S301


def test_what_was_read_survives_our_own_format(story, told, tmp_path):
    traces = list(read_traces(told(story.files)))
    write_traces(traces, tmp_path / "own.jsonl")
    assert list(read_traces(tmp_path / "own.jsonl")) == traces


def test_a_file_named_alone_is_read_like_its_folder(story, told):
    folder = told(story.files)
    files = sorted(folder.iterdir())
    assert list(read_traces(files)) == list(read_traces(folder))


def test_compressed_files_hold_the_same(story, told):
    folder = told(story.files)
    traces = list(read_traces(folder))
    for path in list(folder.iterdir()):
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    found = list(read_traces(folder))
    assert [calls_of(one) for one in found] == [calls_of(one) for one in traces]


def test_spans_may_come_in_any_order_twice_and_in_many_files(story, told):
    if story.name not in POOLED:
        pytest.skip("lines of a session are in order")
    records = [one for some in story.files.values() for one in some]
    expected = list(read_traces(told(story.files)))
    rng = random.Random(5)  # noqa: S311
    for attempt in range(5):
        mixed = records * 2
        rng.shuffle(mixed)
        files: dict[str, list[Any]] = {}
        for i, record in enumerate(mixed):
            files.setdefault(f"{i % 3}/part.jsonl", []).append(record)
        reader = read_traces(told(files, f"mixed-{attempt}"))
        assert list(reader) == expected
        assert reader.report.formats[story.name].skipped.total() >= len(records) - 1


def test_records_in_an_array_hold_the_same(story, told):
    if story.name in {"claude_code", "codex"} or story.files.keys() == {"session-1.jsonl"}:
        pytest.skip("its records are lines")
    (_, records), *others = story.files.items()
    arrays = {f"{name}.json": [some] for name, some in others} | {"all.json": [records]}
    assert list(map(calls_of, read_traces(told(arrays, "arrays")))) == list(
        map(calls_of, read_traces(told(story.files)))
    )


def test_a_last_line_that_was_not_written_to_its_end_is_left_out(story, told):
    (file, records), *_ = story.files.items()
    if len(records) < 3 or not file.endswith(".jsonl"):
        pytest.skip("one record")
    path = told({file: records}) / file
    torn = path.read_bytes().rstrip(b"\n")[:-9]
    path.write_bytes(torn)
    reader = read_traces(path)
    list(reader)
    assert reader.report.formats[story.name].skipped["a last line that is not complete"] == 1
    path.write_bytes(torn + b"\n")
    with pytest.raises(TraceFormatError, match="not JSON"):
        list(read_traces(path))


# -- damage ----------------------------------------------------------------------------------------------------

ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def mutated(value: Any, steps: list[int], replacement: Any) -> Any:
    """Return a copy of a JSON value with one place, found by the steps, replaced."""
    if not steps or not isinstance(value, (dict, list)) or not value:
        return replacement
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = keys[steps[0] % len(keys)]
    result = copy.copy(value)
    result[key] = mutated(value[key], steps[1:], replacement)
    return result


@settings(max_examples=150)
@given(
    name=st.sampled_from(sorted(STORIES)),
    which=st.integers(0, 20),
    steps=st.lists(st.integers(0, 40), min_size=1, max_size=12),
    replacement=ANYTHING,
)
def test_a_story_with_one_part_replaced_is_read_or_refused_and_nothing_is_lost(
    tmp_path_factory, name, which, steps, replacement
):
    story = STORIES[name]
    (file, records), *_ = story.files.items()
    place = which % len(records)
    damaged = [mutated(one, steps, replacement) if i == place else one for i, one in enumerate(records)]
    whole = file.endswith(".json")
    path = tmp_path_factory.getbasetemp() / f"mutated-{file}"
    path.write_text(json.dumps(damaged[0]) if whole else "".join(json.dumps(one) + "\n" for one in damaged))
    check(path, story.name)


def check(path: Any, name: str) -> None:
    """Read a file in both ways: it holds traces, or reasons with a place, and every record is accounted for."""
    reader = read_traces(path, skip_bad=True)
    traces = list(reader)
    assert all(isinstance(trace, Trace) for trace in traces)
    report = reader.report
    counted = sum(one.used + one.skipped.total() + one.bad for one in report.formats.values())
    assert counted + report.n_bad + report.sidecars.total() >= report.records, name
    assert (
        report.steps
        == sum(len(trace.steps) for trace in traces)
        == sum(one.calls for one in report.formats.values())
    )
    try:
        strict = list(read_traces(path))
    except TraceFormatError as error:
        assert error.path == str(path)  # noqa: PT017
        assert report.n_bad > 0
    else:
        assert report.n_bad == 0
        assert strict == traces


def test_the_answer_is_no_call(story, told):
    (trace,) = read_traces(told(story.files))
    assert all(ANSWER not in str(step.call) for step in trace.steps)
