"""Files as they come: compressed, cut, oversized, hostile."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import sys
import tracemalloc

import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

from safetydrift.errors import MissingExtraError, TraceFormatError
from safetydrift.formats import read_traces
from safetydrift.trace import Trace

RUN = {"format": "safetydrift.trace/1", "id": "a", "steps": [{"tool": "t"}]}
LINE = json.dumps(RUN).encode() + b"\n"
DESK = {"task_id": 0, "trial": 0, "reward": 1.0, "traj": []}


def _error(path, **options) -> str:
    with pytest.raises(TraceFormatError) as caught:
        list(read_traces(path, **options))
    return str(caught.value)


@pytest.mark.parametrize("compress", [bytes, gzip.compress, lzma.compress, zstd.compress])
def test_compression_is_told_by_content(tmp_path, compress):
    (path := tmp_path / "x.jsonl").write_bytes(compress(LINE * 3))
    assert len(list(read_traces(path))) == 3


def test_a_missing_zstd_package_names_its_extra(tmp_path, monkeypatch):
    (path := tmp_path / "x.jsonl").write_bytes(zstd.compress(LINE))
    monkeypatch.setitem(sys.modules, "backports.zstd", None)
    monkeypatch.delattr("backports.zstd", raising=False)
    with pytest.raises(MissingExtraError, match=r"safetydrift\[zstd\]"):
        list(read_traces(path, skip_bad=True))


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        (b'{"format": "safetydrift.trace/1", ', 2, "not JSON"),
        (b'{"steps": [{"turn": NaN}]}', 2, "not JSON"),
        (b'{"id": "\xff"}', 2, "not UTF-8"),
        (b'{"steps": [{"args": ' + b'{"a": ' * 100_000, 2, "nested too deeply"),
        (b'{"format": "safetydrift.trace/1", "steps": 4}', 2, "Expected `array`, got `int`"),
        (
            b'{"format": "safetydrift.trace/1", "steps": [{"tool": null}]}',
            2,
            r"Expected `str`, got `null` - at `\$.steps\[0\].tool`",
        ),
        (b"3", 2, "Expected `object`"),
        (b"\x00\x01", 2, "not JSON"),
    ],
)
def test_a_bad_line_is_named_by_file_line_and_reason_or_skipped(tmp_path, content, line, reason):
    (path := tmp_path / "x.jsonl").write_bytes(LINE + content + b"\n" + LINE)
    with pytest.raises(TraceFormatError, match=reason) as caught:
        list(read_traces(path))
    assert (caught.value.path, caught.value.line) == (str(path), line)
    reader = read_traces(path, skip_bad=True)
    assert len(list(reader)) == 2
    assert (reader.report.n_bad, reader.report.records, reader.report.traces) == (1, 3, 2)
    assert str(reader.report.bad[0]) == str(caught.value)


def test_an_overlong_line_is_skipped_without_being_held(tmp_path):
    path = tmp_path / "x.jsonl.gz"
    with gzip.open(path, "wb") as file:
        file.write(LINE + b'{"a": "')
        for _ in range(64):
            file.write(b"x" * (1 << 20))
        file.write(b'"}\n' + LINE)
    tracemalloc.start()
    reader = read_traces(path, skip_bad=True, max_record_bytes=1000)
    assert len(list(reader)) == 2
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20
    assert [(bad.line, bad.reason) for bad in reader.report.bad] == [
        (2, "the record is longer than 1000 bytes")
    ]


def test_an_overlong_document_is_refused(tmp_path):
    (path := tmp_path / "x.json").write_text(json.dumps([RUN] * 20, indent=1))
    assert "the document is longer than 500 bytes" in _error(path, max_record_bytes=500)


def test_a_line_at_the_limit_is_read(tmp_path):
    (path := tmp_path / "x.jsonl").write_bytes(LINE * 2)
    assert len(list(read_traces(path, max_record_bytes=len(LINE) - 1))) == 2
    assert "longer" in _error(path, max_record_bytes=len(LINE) - 2)


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress, zstd.compress])
def test_a_cut_stream_gives_what_came_before_and_says_that_the_rest_is_lost(tmp_path, compress):
    noise = b"".join(json.dumps(RUN | {"id": os.urandom(400).hex()}).encode() + b"\n" for _ in range(100))
    whole = compress(noise)
    (path := tmp_path / "x.jsonl").write_bytes(whole[: len(whole) // 2])
    reader = read_traces(path, skip_bad=True)
    n = len(list(reader))
    assert n < 100
    assert reader.report.n_bad == 1
    assert "the rest of the file is lost" in reader.report.bad[0].reason
    assert "the rest of the file is lost" in _error(path)


def test_an_empty_file_is_reported_and_no_error(tmp_path):
    for name, content in (
        ("a.jsonl", b""),
        ("b.json", b"\n \n"),
        ("c.json", b"[]"),
        ("d.xz", lzma.compress(b"")),
    ):
        (path := tmp_path / name).write_bytes(content)
        reader = read_traces(path)
        assert list(reader) == []
        assert reader.report.empty == [str(path)]


def test_folders_are_walked_in_order_and_what_is_passed_over_is_named(tmp_path):
    (tmp_path / "b").mkdir()
    for name in ("z.jsonl", "b/a.ndjson", "a.json"):
        (tmp_path / name).write_bytes(json.dumps(RUN | {"id": name}).encode())
    (tmp_path / "README.md").write_text("x")
    (tmp_path / "b" / "up").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe.json")
    reader = read_traces(tmp_path)
    assert [trace.id for trace in reader] == ["a.json", "z.jsonl", "b/a.ndjson"]
    assert {os.path.basename(path): reason for path, reason in reader.report.passed_over.items()} == {  # noqa: PTH119
        "README.md": "not .jsonl, .ndjson, .json, .eval",
        "up": "a link to a folder",
        "pipe.json": "not a regular file",
    }


def test_a_named_file_is_read_whatever_it_is_called(tmp_path):
    (path := tmp_path / "traces.txt").write_bytes(LINE)
    assert len(list(read_traces(str(path)))) == 1


def test_a_missing_file_is_a_reason(tmp_path):
    assert "cannot be read: No such file" in _error(tmp_path / "nowhere.json")
    assert "cannot be read" in _error("nul\0byte.json")


def test_sidecars_are_counted_and_not_taken_for_traces(write):
    onset = {"path": "p", "n_calls": 1, "exposure_after_call": None, "first_match_call": None}
    tasks = {"task": "t", "task.md": "x", "checkpoints.md": "y"}
    for record in (onset, tasks):
        for name in (None, "agentdojo"):
            reader = read_traces(
                path := write(record, record, record | {"label": 1}), skip_bad=True, format=name
            )
            assert list(reader) == []
            assert reader.report.sidecars == {str(path): 2}
            assert reader.report.n_bad == 1


def test_an_unknown_record_lists_the_formats(write):
    message = _error(write({"hello": 1}))
    assert (
        "not a record of a known format (native, agentdojo, openhands, odcv, tau_bench, chat, inspect, sessions, "
        "responses, scout, claude_code, codex, gemini_cli, atif, opentelemetry, openai_agents, langfuse, langsmith, "
        "mlflow)" in message
    )


def test_detection_waits_for_the_first_good_record(write):
    assert len(list(read_traces(write({"hello": 1}, RUN, RUN), skip_bad=True))) == 2


def test_a_bad_record_in_an_array_is_named_by_its_number(tmp_path):
    (path := tmp_path / "x.json").write_text(json.dumps([DESK, DESK | {"traj": 4}, DESK], indent=1))
    assert "x.json: record 2: not a trace of format tau_bench" in _error(path)
    assert len(list(read_traces(path, skip_bad=True))) == 2


def test_a_byte_order_mark_is_no_error(tmp_path):
    (path := tmp_path / "x.jsonl").write_bytes(b"\xef\xbb\xbf" + LINE)
    assert len(list(read_traces(path))) == 1


def test_carriage_returns_and_line_separators_do_not_split_records(tmp_path):
    record = json.dumps(RUN | {"prompt": "a\u2028b\x85c"}, ensure_ascii=False).encode()
    (path := tmp_path / "x.jsonl").write_bytes(record + b"\r\n\r\n" + record)
    assert [trace.prompt for trace in read_traces(path)] == ["a\u2028b\x85c"] * 2


def test_repeated_ids_are_counted(write):
    reader = read_traces(write(RUN, RUN, RUN | {"id": "b"}))
    assert len(list(reader)) == 3
    assert reader.report.duplicate_ids == 1


def test_iterating_again_reads_again(write):
    reader = read_traces(write(RUN))
    assert list(reader) == list(reader)
    assert reader.report.traces == 1


def test_only_the_first_thousand_bad_records_are_kept_and_all_are_counted(write):
    reader = read_traces(write(*[{"x": 1}] * 1200), skip_bad=True)
    assert list(reader) == []
    assert (len(reader.report.bad), reader.report.n_bad) == (1000, 1200)


def test_progress_grows_to_the_size_on_disk(tmp_path):
    for name in ("a.jsonl.xz", "b.jsonl.xz"):
        (tmp_path / name).write_bytes(
            lzma.compress(b"".join(os.urandom(30).hex().encode() + b"\n" for _ in range(999)))
        )
    seen: list[tuple[int, int]] = []
    list(read_traces(tmp_path, skip_bad=True, progress=lambda done, total: seen.append((done, total))))
    size = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert len(seen) > 4
    assert {total for _, total in seen} == {size}
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1][0] == size


@given(content=st.binary(max_size=300), suffix=st.sampled_from([".json", ".jsonl", ".xz"]))
def test_any_bytes_are_traces_or_an_error_with_a_place(tmp_path_factory, content, suffix):
    _traces_or_errors(tmp_path_factory.getbasetemp() / f"fuzz{suffix}", content)


COMPRESSED = [compress(LINE * 5) for compress in (gzip.compress, lzma.compress, zstd.compress, bytes)]


@given(
    content=st.sampled_from(COMPRESSED), at=st.integers(0, 200), byte=st.integers(0, 255), cut=st.booleans()
)
def test_a_damaged_file_is_traces_or_an_error_with_a_place(tmp_path_factory, content, at, byte, cut):
    at %= len(content)
    damaged = content[:at] if cut else content[:at] + bytes([byte]) + content[at + 1 :]
    _traces_or_errors(tmp_path_factory.getbasetemp() / "damaged.jsonl", damaged)


def _traces_or_errors(path, content) -> None:
    path.write_bytes(content)
    reader = read_traces(path, skip_bad=True)
    assert all(isinstance(trace, Trace) for trace in reader)
    try:
        list(read_traces(path))
    except TraceFormatError as error:
        assert error.path == str(path)  # noqa: PT017
        assert reader.report.n_bad > 0
    else:
        assert reader.report.n_bad == 0
