import json
from collections import Counter
from hashlib import sha256

import numpy as np
import pytest
from msgspec.structs import replace

from safetydrift.effects.labeler import Labeler
from safetydrift.effects.labeling import label_trace
from safetydrift.errors import TraceFormatError
from safetydrift.evaluation.replay import replay
from safetydrift.formats import (
    TrajectoryReader,
    load_catalogue,
    load_model,
    load_space,
    read_traces,
    write_traces,
)
from safetydrift.formats.corpus import (
    UNCATALOGUED,
    build_corpus,
    corpus_credits,
    corpus_file,
    corpus_manifest,
)
from safetydrift.monitor.fitting import fit_model
from safetydrift.monitor.foresight import monitor_for
from safetydrift.monitor.settings import FitSettings
from safetydrift.states.trajectory import Notion
from safetydrift.trace import Step, ToolCall, Trace

RECORDED, CATALOGUE = load_space("flow"), load_catalogue()


@pytest.fixture(scope="module")
def runs():
    return list(TrajectoryReader(["corpus"], RECORDED, Labeler(CATALOGUE)))


def test_the_corpus_is_the_one_its_manifest_describes(runs):
    manifest = corpus_manifest()
    assert sha256(corpus_file().read_bytes()).hexdigest() == manifest["runs_sha256"]
    assert manifest["space"]["identity"] == RECORDED.identity
    assert manifest["catalogue"]["identity"] == CATALOGUE.identity
    found = Counter(run.source for run in runs)
    assert found == {source: part["runs"] for source, part in manifest["sources"].items()}
    for source, part in manifest["sources"].items():
        mine = [run for run in runs if run.source == source]
        assert sum(run.n_steps for run in mine) == part["steps"]
        usable = [run.label.violated for run in mine if not run.label.unusable]
        assert (usable.count(True), usable.count(False)) == (part["violated"], part["not_violated"])


def test_the_labels_are_those_the_sources_publish():
    sources = corpus_manifest()["sources"]
    # AgentDojo counts 4,316 of 30,655; seven of them are violated without having made a call.
    assert (sources["agentdojo"]["violated"] + 7, sources["agentdojo"]["not_violated"]) == (
        4316,
        30655 - 4316,
    )
    assert (sources["agentdyn"]["violated"], sources["agentdyn"]["not_violated"]) == (2852, 24639 - 2852)
    assert (sources["odcv_bench"]["violated"], sources["odcv_bench"]["not_violated"]) == (228, 532)
    assert (sources["openagentsafety"]["violated"], sources["openagentsafety"]["not_violated"]) == (288, 199)
    assert sources["tau_bench"]["violated"] == sources["tau_bench"]["not_violated"] == 0


def test_no_text_of_the_originals_is_in_the_corpus(runs):
    known = {*CATALOGUE.tools, UNCATALOGUED}
    assert all(tool in known for run in runs for tool in run.tools)
    assert all(isinstance(word, int) for run in runs for word in run.words)
    assert max(len(text) for run in runs for text in (run.id, run.task, run.category, run.model)) < 200


def test_every_source_is_credited():
    assert set(corpus_credits()) == set(corpus_manifest()["sources"])


def test_the_tables_of_the_shipped_model_are_those_of_the_shipped_corpus(runs):
    shipped = load_model()
    assert shipped.catalogue == CATALOGUE
    assert shipped.space == RECORDED
    assert shipped.notion is Notion.LABEL
    again, _ = fit_model(runs, RECORDED, CATALOGUE, threshold=0.5)
    for category, table in again.tables.items():
        assert table.counts == shipped.tables[category].counts
        for name in ("within", "uncertain", "eventually", "arrival", "expected_steps"):
            ours, theirs = (np.array(getattr(one, name)) for one in (table, shipped.tables[category]))
            np.testing.assert_allclose(ours, theirs, rtol=2e-3, atol=1e-3, equal_nan=True)


@pytest.mark.long
def test_the_risk_score_of_the_shipped_model_is_that_of_the_shipped_corpus(runs):
    shipped = load_model()
    again, _ = fit_model(runs, RECORDED, CATALOGUE, FitSettings(risk_score=True))
    assert again.policy.threshold == pytest.approx(shipped.policy.threshold, abs=5e-3)
    assert again.policy.pending_threshold == pytest.approx(shipped.policy.pending_threshold, abs=5e-3)
    ours, theirs = monitor_for(again), monitor_for(shipped)
    for run in runs[::5000]:
        one, other = replay(run, ours), replay(run, theirs)
        for mine, yours in zip(one.current, other.current, strict=True):
            assert mine.probability == pytest.approx(yours.probability, abs=0.02)


def test_a_corpus_that_could_not_be_built_leaves_the_one_that_is_there(tmp_path):
    for source in ("first", "second"):
        (tmp_path / "in" / source).mkdir(parents=True)
        call = Step(ToolCall("bash", {"command": "ls"}), "x")
        write_traces([Trace(f"{source}/1", (call,), task="t")], tmp_path / "in" / source / "own.jsonl")
    output = tmp_path / "out"
    build_corpus(tmp_path / "in", output, RECORDED, CATALOGUE)
    before = {path.name: path.read_bytes() for path in output.iterdir()}
    assert set(before) == {"manifest.json", "runs.jsonl.xz"}
    assert len(list(TrajectoryReader([output / "runs.jsonl.xz"], RECORDED, Labeler(CATALOGUE)))) == 2
    with (tmp_path / "in" / "second" / "own.jsonl").open("a") as stream:
        stream.write("{not json\n")
    with pytest.raises(TraceFormatError):
        build_corpus(tmp_path / "in", output, RECORDED, CATALOGUE)
    assert {path.name: path.read_bytes() for path in output.iterdir()} == before


def without_names(run):
    return replace(run, moves=tuple(replace(move, tool="") for move in run.moves))


@pytest.mark.shared
def test_deriving_a_part_of_the_corpus_again_gives_the_same_runs(runs, shared_traces, tmp_path):
    shipped = {run.id: run for run in runs}
    for source, name in (
        ("agentdojo", "gpt-4o-mini-2024-07-18.jsonl.xz"),
        ("odcv_bench", "current.gpt-oss-20b-mandated.jsonl.xz"),
        ("tau_bench", "gpt-4o-airline.json.xz"),
    ):
        path = shared_traces / source / name
        assert sha256(path.read_bytes()).hexdigest() == corpus_manifest()["inputs_sha256"][source][name]
        labeler = Labeler(CATALOGUE)
        for trace in read_traces([path]):
            run = label_trace(replace(trace, source=source), labeler, RECORDED)
            assert without_names(run) == without_names(shipped[run.id])


@pytest.mark.shared
def test_a_corpus_can_be_built_of_any_folder_of_sources(shared_traces, tmp_path):
    (tmp_path / "in" / "tau_bench").mkdir(parents=True)
    original = shared_traces / "tau_bench" / "gpt-4o-airline.json.xz"
    (tmp_path / "in" / "tau_bench" / original.name).write_bytes(original.read_bytes())
    manifest = build_corpus(tmp_path / "in", tmp_path / "out", RECORDED, CATALOGUE)
    assert manifest["sources"]["tau_bench"]["runs"] == 200
    assert json.loads((tmp_path / "out" / "manifest.json").read_text()) == manifest
    again = list(TrajectoryReader([tmp_path / "out" / "runs.jsonl.xz"], RECORDED, Labeler(CATALOGUE)))
    assert len(again) == 200
