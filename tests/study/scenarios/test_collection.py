"""The scenarios under Inspect, with the simulated agent: the task, its scorer, collection and what it leaves behind."""

import json
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
from safetydrift.study.scenarios.collection import Collected, collect  # noqa: E402
from safetydrift.study.scenarios.sandbox import Sandbox  # noqa: E402
from safetydrift.trace import Ending  # noqa: E402


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


def began(folder, *options):
    """Begin to collect in a process of its own, and wait until some runs have ended."""
    words = [
        "study",
        "collect",
        "-o",
        folder,
        "--category",
        "database_administration",
        "--epochs",
        "12",
        *options,
    ]
    running = subprocess.Popen(
        [sys.executable, "-m", "safetydrift", *map(str, words)],
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell that runs the tests in the background has them ignore interruptions, and their children with them.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not any(
        log.stat().st_size > 20_000 for log in folder.glob("*.eval")
    ):
        time.sleep(0.05)
    return running


def goes_on(folder, kept):
    """Check that the same call makes the runs that are missing, and no others."""
    done = collect(folder, "simulated/mixed", category="database_administration", epochs=12)
    assert (done.complete, done.interrupted, done.runs) == (True, False, 60)
    reader = read_traces(folder)
    ids = {trace.id for trace in reader}
    assert len(ids) == 60
    assert kept <= ids
    assert reader.report.duplicate_ids == 0


def test_a_collection_that_is_killed_goes_on(tmp_path):
    with began(tmp_path, "-q") as running:
        os.killpg(running.pid, signal.SIGKILL)
        running.communicate()
    kept = {trace.id for trace in read_traces(tmp_path)}
    assert 0 < len(kept) < 60
    goes_on(tmp_path, kept)


def test_an_interrupted_collection_says_so_and_goes_on(tmp_path):
    with began(tmp_path, "--json") as running:
        running.send_signal(signal.SIGINT)
        told, remarks = running.communicate(timeout=60)
    assert running.returncode == 130, remarks
    assert json.loads(told)["complete"] is False
    assert "not every run was made; the same command goes on" in remarks
    traces = list(read_traces(tmp_path))
    assert json.loads(told)["runs"] == len(traces) < 60
    goes_on(tmp_path, {trace.id for trace in traces if trace.ending is Ending.COMPLETED})


def test_what_was_interrupted_is_not_taken_for_whole(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        Collected(complete=False, interrupted=True, runs=3, logs=()).whole()
    with pytest.raises(ScenarioError, match="only 3 runs were made"):
        Collected(complete=False, interrupted=False, runs=3, logs=()).whole()
    assert Collected(complete=True, interrupted=False, runs=3, logs=(tmp_path,)).whole() == (tmp_path,)
