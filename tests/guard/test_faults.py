"""Faults put into a guard: every one ends as the policy says, and says so."""

import subprocess
import sys

import pytest

from safetydrift.errors import ModelFileError
from safetydrift.guard import DecisionLog, Guard, GuardPolicy
from safetydrift.guard.decision_log import records, verify
from safetydrift.guard.stores.sqlite import SQLiteStore
from safetydrift.monitor.verdict import Intervention
from safetydrift.trace import ToolCall

CALL = ToolCall("get_balance", {})


class Unprintable:
    def __repr__(self):
        raise RuntimeError("no")


def broken(monkeypatch, guard, where):
    """Break a part of a guard."""

    def fails(*_, **__):
        raise RuntimeError("AKIAIOSFODNN7EXAMPLE is broken")

    target, name = {
        "labeler": (type(guard.monitor.labeler), "read_call"),
        "monitor": (type(guard.monitor), "foresee"),
        "store": (type(guard.store), "read"),
        "redactor and monitor": (type(guard.monitor), "foresee"),
    }[where]
    monkeypatch.setattr(target, name, fails)
    if where.startswith("redactor"):
        monkeypatch.setattr(type(guard.redactor), "text", fails)


@pytest.mark.parametrize("where", ["labeler", "monitor", "store", "redactor and monitor"])
@pytest.mark.parametrize("outcome", [Intervention.BLOCK, Intervention.ASK, Intervention.ALLOW])
@pytest.mark.filterwarnings("ignore:the guard fails open")
def test_an_exception_anywhere_gets_what_the_policy_says(make, monkeypatch, where, outcome):
    guard = make(GuardPolicy(on_error=outcome))
    guard.session("run")
    with monkeypatch.context() as patch:
        broken(patch, guard, where)
        decision = guard.propose("run", CALL, "c1")
    assert decision.intervention is outcome
    assert decision.rule == "on_error"
    assert "RuntimeError" in decision.error
    assert "AKIAIOSFODNN7EXAMPLE" not in decision.error + decision.reason
    again = guard.propose("run", CALL, "c1")
    assert (again.intervention, again.repeated) == (outcome, True)


@pytest.mark.parametrize(
    "call",
    [
        ToolCall("bash", {"command": Unprintable()}),
        ToolCall("bash", {Unprintable(): 1}),  # type: ignore[dict-item]
    ],
)
def test_arguments_that_break_when_touched_stop_the_call(make, call):
    guard = make()
    guard.session("run")
    assert guard.propose("run", call, "c1").refused


@pytest.mark.parametrize(
    "given", [(None,), (5, "x"), ("", None), ("x" * 10_000_000,), ("bash", {1: 2})], ids=range(5)
)
def test_calls_of_any_shape_are_judged(make, given):
    guard = make()
    guard.session("run")
    decision = guard.propose("run", ToolCall(*given))
    assert not decision.error
    guard.confirm("run", decision.call_id, {"any": [object()]})
    assert guard.current("run")[0].steps == 1


def test_a_decision_that_takes_too_long_is_none(make):
    guard = make(GuardPolicy(timeout=1e-9, on_timeout=Intervention.ASK))
    guard.session("run")
    decision = guard.propose("run", CALL, "c1")
    assert decision.asks
    assert decision.rule == "on_timeout"
    assert guard.current("run")[0].steps == 0


def test_a_damaged_model_starts_no_guard(tmp_path):
    (tmp_path / "model.json").write_text("{}")
    with pytest.raises(ModelFileError):
        Guard.load(tmp_path / "model.json")


def test_a_result_that_cannot_be_recorded_makes_the_run_doubtful(make, store, monkeypatch):
    guard = make(None, store)
    guard.session("whole")
    guard.session("part", parent="whole")
    guard.propose("part", CALL, "c1")
    with monkeypatch.context() as patch:
        patch.setattr(type(guard.monitor), "read_result", lambda *_: 1 / 0)
        assert guard.confirm("part", "c1", "x") is None
    for key in ("part", "whole"):
        later = guard.propose(key, CALL, "c2")
        assert later.rule == "on_lost_state"
        assert "could not be recorded" in later.error


KILLED = """
import os, signal, sys
from safetydrift.formats import load_model
from safetydrift.guard import DecisionLog, Guard
from safetydrift.guard.stores.sqlite import SQLiteStore
from safetydrift.trace import ToolCall
guard = Guard(load_model(), store=SQLiteStore(sys.argv[1]), log=DecisionLog(sys.argv[2], buffer=1))
guard.session("run", "What do I have?")
assert guard.propose("run", ToolCall("get_balance", {}), "c1").allowed
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_process_killed_between_proposal_and_result_leaves_the_call_reserved(tmp_path, make):
    state, log = tmp_path / "s", tmp_path / "log"
    subprocess.run([sys.executable, "-c", KILLED, str(state), str(log)], check=False)
    assert verify(log).holds
    assert [record["call_id"] for record in records(log) if record["event"] == "decision"] == ["c1"]
    guard = make(None, SQLiteStore(state), log=DecisionLog(log, buffer=1))
    assert list(guard.store.read("run")[0].reserved) == ["c1"]
    again = guard.propose("run", CALL, "c1")
    assert again.allowed
    assert again.repeated
    guard.confirm("run", "c1", "5")
    assert guard.current("run")[0].steps == 1


PROGRAM = """
import sys
before = set(sys.modules)
from safetydrift import ToolCall
from safetydrift.guard import Guard
guard = Guard.load(store=sys.argv[1] or None, log=sys.argv[2])
guard.session("run", "look around")
assert guard.propose("run", ToolCall("bash", {"command": "ls"}), "c1").allowed
guard.confirm("run", "c1", "a b")
guard.close()
print(*(set(sys.modules) - before))
"""


@pytest.mark.parametrize("kept", ["", "s.sqlite"])
def test_a_guard_imports_nothing_heavy(tmp_path, kept):
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / kept) if kept else "", str(tmp_path / "log")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    heavy = {"numpy", "scipy", "matplotlib", "rich", "click", "asyncio", "dataclasses", "tomllib"}
    assert not heavy & set(done.stdout.split())
