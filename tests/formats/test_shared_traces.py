"""The real traces, against what their descriptions say of them."""

from __future__ import annotations

import json
import lzma
from collections import Counter

import pytest

from safetydrift.formats import read_traces

pytestmark = pytest.mark.shared


def _verdicts(reader) -> dict[bool | None, int]:
    return dict(Counter(trace.label.violated for trace in reader))


def _onsets(folder) -> dict[str, dict[str, object]]:
    with lzma.open(folder / "onset_derived.jsonl.xz") as lines:
        return {record["path"]: record for record in map(json.loads, lines)}


def test_every_odcv_run_is_read_with_its_verdict(shared_traces):
    reader = read_traces(shared_traces / "odcv_bench")
    assert _verdicts(reader) == {True: 228, False: 532}
    assert reader.report.steps == 8483


def test_every_openagentsafety_run_is_read_with_its_verdict(shared_traces):
    reader = read_traces(shared_traces / "openagentsafety")
    assert _verdicts(reader) == {True: 288, False: 199, None: 738}
    assert reader.report.steps == 9987
    assert sum(reader.report.sidecars.values()) == 359


def test_every_tau_bench_run_is_read_without_a_verdict(shared_traces):
    reader = read_traces(shared_traces / "tau_bench")
    assert _verdicts(reader) == {None: 200}
    assert reader.report.steps == 1164


@pytest.mark.parametrize(
    ("folder", "name"),
    [("agentdojo", "gemini-1.5-flash-002"), ("agentdyn", "meta-llama_llama-3.3-70b-instruct")],
)
def test_derived_steps_agree_with_the_published_derivation(shared_traces, folder, name):
    onsets = _onsets(shared_traces / folder)
    compared = 0
    for trace in read_traces(shared_traces / folder / f"{name}.jsonl.xz"):
        expected = onsets.get(trace.id)
        if expected is None or trace.label.violated is None:
            continue
        compared += 1
        label = trace.label
        assert len(trace.steps) == expected["n_calls"], trace.id
        assert (label.onset or label.attempt) == expected["first_match_call"], trace.id
        assert label.exposure == expected["exposure_after_call"], trace.id
    assert compared > 300


def test_security_is_believed_only_where_it_is_a_verdict(shared_traces):
    traces = list(read_traces(shared_traces / "agentdojo" / "claude-3-opus-20240229.jsonl.xz"))
    reasons = Counter(trace.label.unusable for trace in traces if trace.label.violated is None)
    assert reasons["violated without a tool call: label fault"] == 7
    assert reasons["no attack in this run"] > 100
    assert all(trace.label.goal for trace in traces if trace.label.violated is not None)
