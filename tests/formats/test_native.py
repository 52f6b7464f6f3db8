"""Our own format loses nothing and guesses nothing."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safetydrift.errors import TraceFormatError
from safetydrift.formats import read_traces, write_traces
from safetydrift.formats.native import TRACE_FORMAT, Native
from safetydrift.trace import Ending, Label, Step, ToolCall, Trace

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
COUNT = st.none() | st.integers(0, 10**6)
CALLS = st.builds(
    ToolCall,
    TEXT,
    st.dictionaries(TEXT, JSON, max_size=3),
    TEXT,
    st.none() | TEXT,
    st.none() | st.dictionaries(TEXT, st.booleans(), max_size=2),
)
STEPS = st.builds(Step, CALLS, st.none() | TEXT, st.none() | TEXT, st.integers(0, 99), TEXT)
LABELS = st.builds(
    Label,
    st.none() | st.booleans(),
    onset=COUNT,
    exposure=COUNT,
    attempt=COUNT,
    attack=TEXT,
    goal=TEXT,
    unusable=TEXT,
    origin=TEXT,
)
TRACES = st.builds(
    Trace,
    TEXT,
    st.lists(STEPS, max_size=3).map(tuple),
    source=TEXT,
    task=TEXT,
    category=TEXT,
    model=TEXT,
    prompt=TEXT,
    ending=st.sampled_from(Ending),
    label=LABELS,
)


@given(st.lists(TRACES, max_size=3))
def test_written_traces_come_back_as_they_were(tmp_path_factory, traces):
    path = tmp_path_factory.getbasetemp() / "round.jsonl"
    assert write_traces(traces, path) == len(traces)
    assert list(read_traces(path)) == traces


@settings(max_examples=5)
@given(st.lists(TRACES, min_size=1, max_size=2))
@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_compression_changes_nothing(tmp_path_factory, suffix, traces):
    path = tmp_path_factory.getbasetemp() / f"round.jsonl{suffix}"
    write_traces(traces, path)
    assert list(read_traces(path)) == traces


def test_defaults_are_left_out():
    stream = io.BytesIO()
    write_traces([Trace("a", (Step(ToolCall("t")),))], stream)
    assert json.loads(stream.getvalue()) == {"format": TRACE_FORMAT, "id": "a", "steps": [{"tool": "t"}]}


def test_a_file_is_complete_or_absent(tmp_path):
    def failing():
        yield Trace("a", ())
        raise KeyError

    with pytest.raises(KeyError):
        write_traces(failing(), tmp_path / "x.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_the_same_traces_give_the_same_bytes(tmp_path):
    for name in ("a.gz", "b.gz"):
        write_traces([Trace("a", ())], tmp_path / name)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


@pytest.mark.parametrize("n_before", [0, 1])
def test_another_version_is_refused_by_name(run_of, write, n_before):
    path = write(*[run_of["native"]()] * n_before, run_of["native"]() | {"format": "safetydrift.trace/2"})
    with pytest.raises(TraceFormatError, match=r"safetydrift\.trace/2"):
        list(read_traces(path))


@pytest.mark.parametrize("n_before", [0, 1])
def test_a_misspelt_field_is_an_error(run_of, write, n_before):
    path = write(*[run_of["native"]()] * n_before, run_of["native"]() | {"lable": {"violated": True}})
    with pytest.raises(TraceFormatError, match=f":{n_before + 1}: .*lable"):
        list(read_traces(path))


def test_a_later_line_without_the_version_is_an_error(run_of, write):
    path = write(run_of["native"](), {"id": "x", "steps": []})
    with pytest.raises(TraceFormatError, match="format"):
        list(read_traces(path))


def test_a_number_too_large_for_a_machine_word_survives(tmp_path):
    trace = Trace("a", (Step(ToolCall("t", {"n": 2**100})),))
    write_traces([trace], tmp_path / "x.jsonl")
    assert list(read_traces(tmp_path / "x.jsonl")) == [trace]


def test_a_record_without_an_id_is_named_after_its_place():
    assert Native().read({"format": TRACE_FORMAT}, "f.jsonl:3").id == "f.jsonl:3"
