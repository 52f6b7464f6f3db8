"""The scenarios under Inspect, with the simulated agent: the task, its scorer, collection and what it leaves behind."""

import os
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("inspect_ai")
pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # what Inspect and its packages warn of is theirs
    pytest.mark.usefixtures("settled"),
]

from safetydrift.errors import ScenarioError  # noqa: E402
from safetydrift.formats import read_traces  # noqa: E402
from safetydrift.study.scenarios import load_scenario  # noqa: E402
from safetydrift.study.scenarios.behaviour import SimulatedAgent  # noqa: E402
from safetydrift.study.scenarios.collection import MANIFEST, collect, describe, read_manifest, written  # noqa: E402
from safetydrift.study.scenarios.rehearsal import Sandbox  # noqa: E402


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    return folder, collect(folder, "simulated/mixed", category="web_browsing", epochs=4)


def test_every_run_is_made_and_read_back_as_a_trace(collected):
    folder, done = collected
    assert (done.complete, done.runs, len(done.logs)) == (True, 20, 1)
    reader = read_traces(folder)
    traces = list(reader)
    assert len({trace.id for trace in traces}) == 20
    assert {trace.category for trace in traces} == {"web_browsing"}
    assert {trace.model for trace in traces} == {"simulated/mixed"}
    assert {trace.label.violated for trace in traces} == {True, False}
    assert reader.report.n_bad == 0


def test_the_runs_are_those_the_simulated_agent_makes_by_itself(collected):
    for trace in read_traces(collected[0]):
        epoch = int(trace.id.split("/")[-2])
        scenario = load_scenario(trace.task)
        agent, sandbox = SimulatedAgent(scenario, "mixed", epoch), Sandbox(scenario, epoch)
        action = agent.next()
        while action.tool:
            step = sandbox.call(action.tool, action.args)
            action = agent.next("done" if step.error is None else "failed")
        assert [(step.call.name, step.call.args) for step in sandbox.steps] == [
            (step.call.name, step.call.args) for step in trace.steps
        ]
        assert (sandbox.label().violated, sandbox.label().onset) == (trace.label.violated, trace.label.onset)


def test_the_same_folder_is_not_run_again(collected):
    folder, done = collected
    before = {path.name: path.stat().st_mtime_ns for path in folder.glob("*.eval")}
    assert collect(folder, "simulated/mixed", category="web_browsing", epochs=4) == done
    assert {path.name: path.stat().st_mtime_ns for path in folder.glob("*.eval")} == before


def test_a_manifest_describes_the_folder_and_notices_changes(collected, tmp_path):
    folder, _ = collected
    manifest = read_manifest(folder)
    assert manifest.simulated
    assert [(log.model, log.runs) for log in manifest.logs] == [("simulated/mixed", 20)]
    assert describe(folder, manifest.description) == manifest
    (log,) = folder.glob("*.eval")
    (tmp_path / log.name).write_bytes(log.read_bytes() + b" ")
    (tmp_path / MANIFEST).write_text(written(manifest))
    with pytest.raises(ScenarioError, match="digest differs"):
        read_manifest(tmp_path)
    (tmp_path / log.name).unlink()
    with pytest.raises(ScenarioError, match="there is no log"):
        read_manifest(tmp_path)
    (tmp_path / MANIFEST).write_text(written(manifest).replace("recorded/1", "recorded/9"))
    with pytest.raises(ScenarioError, match="its format is"):
        read_manifest(tmp_path)
    (tmp_path / MANIFEST).write_text("x = 1")
    with pytest.raises(ScenarioError, match=MANIFEST):
        read_manifest(tmp_path)


def test_one_scenario_of_ones_own_can_be_collected(tmp_path):
    from importlib import resources  # noqa: PLC0415

    own = tmp_path / "own.toml"
    own.write_text((resources.files("safetydrift.study.scenarios") / "skeleton.toml").read_text("utf-8"))
    done = collect(tmp_path / "logs", "simulated/over-helpful", names=[str(own)], epochs=3)
    assert done.runs == 3
    assert {trace.task for trace in read_traces(done.logs)} == {"own/skeleton"}


def test_a_category_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ScenarioError, match="no scenario of the category"):
        collect(tmp_path, "simulated/mixed", category="none")


def test_a_collection_that_is_killed_goes_on(tmp_path):
    words = ["collect", "-o", tmp_path, "--category", "database_administration", "--epochs", "12", "-q"]
    command = [sys.executable, "-m", "safetydrift", *map(str, words)]
    with subprocess.Popen(command, start_new_session=True) as running:
        deadline = time.monotonic() + 60
        while (
            not any(path.stat().st_size > 20_000 for path in tmp_path.glob("*.eval"))
            and time.monotonic() < deadline
        ):
            time.sleep(0.05)
        os.killpg(running.pid, signal.SIGKILL)
    kept = {trace.id for trace in read_traces(tmp_path)}
    assert 0 < len(kept) < 60
    subprocess.run(command, check=True, timeout=120)
    reader = read_traces(tmp_path)
    ids = {trace.id for trace in reader}
    assert len(ids) == 60
    assert kept <= ids
    assert reader.report.duplicate_ids == 0
