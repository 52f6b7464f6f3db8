"""What every trace format promises in which a record is a run; `test_stories` has the logs."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.formats.conftest import all_samples

from safetydrift.errors import TraceFormatError
from safetydrift.formats import read_traces
from safetydrift.formats.reading import FORMATS, RECORD_FORMATS
from safetydrift.trace import Trace


def test_every_format_has_a_sample_here():
    assert {one.name for one in RECORD_FORMATS} == {sample[0] for sample in all_samples()}


def test_no_tool_call_is_dropped(sample, formats):
    name, record, n_calls, _ = sample
    assert len(formats[name].read(record, "f:1").steps) == n_calls


def test_reading_is_deterministic_and_leaves_the_record_alone(sample, formats):
    name, record, _, _ = sample
    before = copy.deepcopy(record)
    assert formats[name].read(record, "f:1") == formats[name].read(record, "f:1")
    assert record == before


def test_a_record_belongs_to_one_format_only(sample):
    name, record, _, _ = sample
    assert [one.name for one in FORMATS if one.recognises(record)] == [name]


def test_the_records_own_id_is_kept_and_others_get_file_and_line(sample, formats):
    name, record, _, own = sample
    id_ = formats[name].read(record, "some file.jsonl:12").id
    assert id_.startswith(own or ("some file/" if name == "tau_bench" else "some file.jsonl:12"))


def test_a_trace_can_be_pickled(sample, formats):
    name, record, _, _ = sample
    trace = formats[name].read(record, "f:1")
    assert pickle.loads(pickle.dumps(trace)) == trace  # noqa: S301


def test_the_first_step_carries_the_task(sample, formats):
    name, record, _, _ = sample
    trace = formats[name].read(record, "f:1")
    assert trace.steps[0].said == trace.prompt


def test_turns_never_go_back(sample, formats):
    name, record, _, _ = sample
    turns = [step.turn for step in formats[name].read(record, "f:1").steps]
    assert turns == sorted(turns)


def test_detection_and_an_explicit_format_agree(sample, write):
    path = write(sample[1])
    assert list(read_traces(path)) == list(read_traces(path, format=sample[0]))


def test_lines_arrays_and_documents_hold_the_same_traces(sample, tmp_path):
    record = sample[1]
    contents = {
        "a.jsonl": json.dumps(record) + "\n" + json.dumps(record),
        "b.json": json.dumps([record, record], indent=1),
        "c.json": json.dumps([record, record]),
        "d.jsonl": json.dumps([record, record]),
    }
    for file, text in contents.items():
        path = tmp_path / file
        path.write_text(text)
        assert [len(trace.steps) for trace in read_traces(path)] == [sample[2]] * 2, file
    (path := tmp_path / "one.json").write_text(json.dumps(record, indent=1))
    assert [len(trace.steps) for trace in read_traces(path)] == [sample[2]]


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def _mutated(value: Any, steps: list[int], replacement: Any) -> Any:
    """Return a copy of a JSON value with one place, found by the steps, replaced."""
    if not steps or not isinstance(value, (dict, list)) or not value:
        return replacement
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = keys[steps[0] % len(keys)]
    result = copy.copy(value)
    result[key] = _mutated(value[key], steps[1:], replacement)
    return result


@pytest.mark.parametrize("name", [one.name for one in RECORD_FORMATS])
@given(record=ANYTHING)
def test_any_json_is_a_trace_or_a_reason(name, record):
    _read_or_reason({one.name: one for one in RECORD_FORMATS}[name], record)


@given(record=ANYTHING)
def test_any_json_is_recognised_without_an_error(record):
    assert all(one.recognises(record) in {True, False} for one in FORMATS)


@given(data=st.data(), steps=st.lists(st.integers(0, 40), min_size=1, max_size=9), replacement=ANYTHING)
def test_a_record_with_one_part_replaced_is_a_trace_or_a_reason(sample, data, steps, replacement):
    name, record, _, _ = sample
    _read_or_reason({one.name: one for one in RECORD_FORMATS}[name], _mutated(record, steps, replacement))


def _read_or_reason(one: Any, record: Any) -> None:
    one.recognises(record)
    try:
        trace = one.read(record, "f:1")
    except (ValueError, RecursionError) as error:
        assert str(error)  # noqa: PT017
    else:
        assert isinstance(trace, Trace)


def test_an_unknown_format_name_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="agentdojo, openhands, odcv, tau_bench, chat"):
        read_traces("x", format="nonsense")


def test_a_later_record_of_another_format_is_bad(sample, run_of, write):
    name, record, _, _ = sample
    other = run_of["tau_bench"]() if name != "tau_bench" else run_of["odcv"]()
    path = write(record, other)
    with pytest.raises(TraceFormatError, match=f"{path}:2: not a trace of format {name}"):
        list(read_traces(path))
