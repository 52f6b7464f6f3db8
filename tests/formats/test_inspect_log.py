"""Samples of Inspect logs, from records and from the archives they come in."""

import json
import zipfile

import pytest

from safetydrift.errors import TraceFormatError
from safetydrift.formats import read_traces
from safetydrift.formats.files import zstd_module
from safetydrift.formats.inspect_log import InspectLog
from safetydrift.trace import Ending


@pytest.fixture
def record(run_of):
    return run_of["inspect"]()


def archive(path, samples, header="header.json", method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as log:
        log.writestr(
            "_journal/start.json" if header is None else header,
            json.dumps({"eval": {"task": "t", "model": "m"}}),
        )
        for number, sample in enumerate(samples, 1):
            log.writestr(f"samples/s_epoch_{number}.json", json.dumps(sample))
    return path


def test_a_sample_is_read_with_its_label(record):
    trace = InspectLog().read(record, "f:1")
    assert (trace.source, trace.task, trace.category, trace.model) == (
        "scenarios",
        "office/tidy",
        "office",
        "lab/model-1",
    )
    assert trace.prompt == "Tidy up, please."
    assert trace.ending is Ending.COMPLETED
    assert (trace.label.violated, trace.label.onset, trace.label.origin) == (False, None, "end-state check")
    read, refused, malformed = trace.steps
    assert (read.result, read.error, read.said) == ("the text", None, "Tidy up, please.")
    assert refused.error == "no"
    assert refused.call.args["body"] == "a long mail"
    assert malformed.call.malformed == "not JSON"


def test_a_violation_keeps_its_onset_and_an_error_makes_it_unusable(run_of):
    scores = {
        "other": {"value": 1},
        "end_state": {"metadata": {"safetydrift": {"violated": True, "onset": 2}}},
    }
    label = InspectLog().read(run_of["inspect"](scores=scores), "f:1").label
    assert (label.violated, label.onset) == (True, 2)
    assert InspectLog().read(run_of["inspect"](error={"message": "x"}), "f:1").label.unusable


def test_another_task_says_nothing_about_violation(run_of):
    record = run_of["inspect"](scores={"accuracy": {"value": "C"}}, metadata={}, uuid="")
    record["eval"]["task"] = "gaia"
    trace = InspectLog().read(record, "f:1")
    assert (trace.source, trace.task, trace.category, trace.id) == (
        "inspect",
        "gaia/office__tidy",
        "gaia",
        "f:1",
    )
    assert trace.label.violated is None


@pytest.mark.parametrize("cut", [{"limit": {"type": "message"}}, {"messages": []}])
def test_a_run_that_was_cut_off_is_censored(run_of, cut):
    assert InspectLog().read(run_of["inspect"](**cut), "f:1").ending is Ending.CENSORED


def test_attached_parts_are_put_back(run_of):
    parts = [{"type": "text", "text": "attachment://d2"}, {"type": "image", "image": "x"}]
    record = run_of["inspect"](messages=[{"role": "user", "content": parts}])
    assert InspectLog().read(record, "f:1").prompt == "Tidy up, please."


@pytest.mark.parametrize("header", ["header.json", None])
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_an_archive_gives_its_samples_also_when_it_was_never_finished(record, tmp_path, header, method):
    archive(tmp_path / "log.eval", [record["sample"]] * 2, header, method)
    (tmp_path / "logs.json").write_text("{}")
    reader = read_traces(tmp_path)
    assert [trace.model for trace in reader] == ["m", "m"]
    assert reader.report.passed_over[str(tmp_path / "logs.json")] == "written by Inspect about its logs"


def test_members_compressed_with_zstandard_are_read(record, tmp_path):
    pytest.importorskip("backports.zstd")
    text = json.dumps(record["sample"]).encode()
    packed = zstd_module().compress(text[:100]) + zstd_module().compress(text[100:])
    path = archive(tmp_path / "log.eval", [])
    with zipfile.ZipFile(path, "a") as log:
        log.writestr("samples/s_epoch_1.json", packed)
    place = path.read_bytes().rindex(b"PK\x01\x02")  # what the directory says of the last member
    data = bytearray(path.read_bytes())
    data[place + 10 : place + 12] = (93).to_bytes(2, "little")
    path.write_bytes(data)
    assert [len(trace.steps) for trace in read_traces(path)] == [3]
    data[place + 10 : place + 12] = (95).to_bytes(2, "little")
    path.write_bytes(data)
    with pytest.raises(TraceFormatError, match="unknown method 95"):
        list(read_traces(path))


def test_what_is_no_log_is_said_to_be_none(record, tmp_path):
    path = tmp_path / "log.eval"
    path.write_bytes(b"nothing")
    with pytest.raises(TraceFormatError, match="not an Inspect log"):
        list(read_traces(path))
    archive(path, [], header="else.json")
    with pytest.raises(TraceFormatError, match="no header"):
        list(read_traces(path))
    archive(path, [record["sample"]])
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(TraceFormatError, match="not an Inspect log"):
        list(read_traces(path))


def test_a_sample_over_the_limit_is_skipped_alone(record, tmp_path):
    long = record["sample"] | {"uuid": "x" * 20_000}
    path = archive(tmp_path / "log.eval", [record["sample"], long])
    reader = read_traces(path, skip_bad=True, max_record_bytes=15_000)
    assert len(list(reader)) == 1
    assert reader.report.n_bad == 1
