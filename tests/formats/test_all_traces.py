"""Every shared trace, read in full: what `make test-long` adds to the samples of the ordinary suite."""

import lzma
from collections import Counter

import msgspec
import pytest

from safetydrift.formats import read_traces
from safetydrift.formats.corpus import corpus_manifest

pytestmark = [pytest.mark.long, pytest.mark.shared]


@pytest.mark.parametrize("source", ["agentdojo", "agentdyn", "odcv_bench", "openagentsafety", "tau_bench"])
def test_every_record_of_a_source_is_read(shared_traces, source):
    reader = read_traces([shared_traces / source])
    calls = sum(len(trace.steps) for trace in reader)
    expected = corpus_manifest()["sources"][source]
    assert (reader.report.traces, calls) == (expected["runs"], expected["steps"])
    assert (reader.report.n_bad, reader.report.duplicate_ids) == (0, 0)


@pytest.mark.parametrize(("source", "differing_counts"), [("agentdojo", 0), ("agentdyn", 99)])
def test_onsets_are_those_derived_independently(shared_traces, source, differing_counts):
    with lzma.open(shared_traces / source / "onset_derived.jsonl.xz", "rb") as lines:
        derived = {record["path"]: record for record in map(msgspec.json.decode, lines)}
    differing: Counter[str] = Counter()
    for trace in read_traces([shared_traces / source]):
        record = derived.get(trace.id)
        if record is None or trace.label.unusable:
            continue
        ours = trace.label.onset if trace.label.violated else trace.label.attempt
        differing["first match"] += ours != record["first_match_call"]
        # The other 99 ran programs of theirs, whose failed calls appear in results only.
        differing["calls"] += len(trace.steps) != record["n_calls"]
    assert differing["first match"] == 0
    assert differing["calls"] == differing_counts
