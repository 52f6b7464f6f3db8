"""The decision log: complete, chained, redacted, and whole again after a writer was killed."""

import json
import os
import signal
import stat
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safetydrift.errors import DecisionLogError
from safetydrift.guard import Decision, DecisionLog, GuardPolicy, Rule
from safetydrift.guard import decision_log as module
from safetydrift.guard.decision_log import records, verify
from safetydrift.guard.redacting import Redactor
from safetydrift.monitor.session import TrajectoryState
from safetydrift.monitor.verdict import Basis, Intervention, Verdict
from safetydrift.trace import ToolCall

CALL = ToolCall("bash", {"command": "ls", "password": "hunter2hunter2"})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "decisions.jsonl"


def decisions(make, path, number=5, policy=None, **options):
    guard = make(policy, log=DecisionLog(path, **options))
    guard.session("run", "Look around")
    for one in range(number):
        guard.propose("run", CALL, f"c{one}")
        guard.confirm("run", f"c{one}", "x")
    return guard


def test_every_decision_is_one_record(make, path):
    decisions(make, path).close()
    found = list(records(path))
    assert [record["event"] for record in found] == ["begin"] + 5 * ["decision"]
    last = found[-1]
    for name in (
        "state",
        "probability",
        "threshold",
        "rule",
        "policy",
        "latency",
        "low",
        "high",
        "at",
        "horizon",
    ):
        assert name in last
    assert verify(path).holds
    assert verify(path).records == 6


def test_arguments_are_not_written_unless_asked_and_secrets_never(make, path, tmp_path):
    decisions(make, path).close()
    assert '"ls"' not in path.read_text()
    with_arguments = tmp_path / "more.jsonl"
    decisions(make, with_arguments, arguments=True).close()
    assert "ls" in with_arguments.read_text()
    assert "hunter2" not in path.read_text() + with_arguments.read_text()


def test_an_objection_says_why_and_is_written_at_once(make, path):
    policy = GuardPolicy(never=(Rule(Intervention.BLOCK, tools=("bash",), reason="not here"),))
    decisions(make, path, 1, policy)
    (record,) = [record for record in records(path) if record["event"] == "decision"]
    assert "not here" in record["reason"]
    assert record["explanation"]


def test_a_shadow_and_a_fail_open_policy_are_told(make, path):
    policy = GuardPolicy(
        never=(Rule(Intervention.BLOCK, tools=("bash",)),), shadow=True, on_error=Intervention.ALLOW
    )
    with pytest.warns(RuntimeWarning, match="fails open"):
        guard = decisions(make, path, 1, policy)
    guard.close()
    found = list(records(path))
    assert any(record["event"] == "fails open" for record in found)
    assert any(record.get("shadow") == "block" for record in found)


def test_what_waits_is_bounded_and_written_in_the_end(make, path):
    guard = decisions(make, path, 10, buffer=4, delay=1e9)
    assert len(list(records(path))) == 1 + 8
    guard.recorder.log.flush()
    assert len(list(records(path))) == 1 + 10


def test_a_log_is_its_owners_alone(path):
    DecisionLog(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_closed_log_takes_nothing_and_then_nothing_is_allowed(make, path):
    guard = decisions(make, path, 1, buffer=1)
    guard.recorder.log.close()
    decision = guard.propose("run", CALL, "late")
    assert decision.refused
    assert "DecisionLogError" in decision.error
    assert guard.propose("run", CALL, "late").refused
    assert guard.current("run")[0].steps == 1


def test_a_full_disk_stops_calls_and_leaves_no_half_line(make, path, monkeypatch):
    guard = decisions(make, path, 3, buffer=1)
    whole, write = path.read_bytes(), os.write

    def full(file, data):
        if len(data) > 40:
            return write(file, bytes(data[:40]))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    assert guard.propose("run", CALL, "late").refused
    monkeypatch.undo()
    assert path.read_bytes() == whole
    assert guard.propose("run", CALL, "later").allowed
    assert verify(path).holds


# -- the chain ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lines(model, tmp_path_factory):
    from safetydrift.guard import Guard  # noqa: PLC0415

    path = tmp_path_factory.mktemp("log") / "log.jsonl"
    guard = Guard(model, log=DecisionLog(path))
    guard.session("run")
    for number in range(6):
        guard.propose("run", CALL, f"c{number}")
    guard.close()
    return path.read_bytes().splitlines(keepends=True)


def broken(tmp_path, lines):
    (tmp_path / "x.jsonl").write_bytes(b"".join(lines))
    return verify(tmp_path / "x.jsonl")


def test_a_line_taken_out_put_in_or_moved_is_found(tmp_path, lines):
    for wrong in (
        lines[:2] + lines[3:],
        lines[:3] + lines[2:],
        [lines[1], lines[0], *lines[2:]],
        lines[1:],
        [*lines[:3], b"no record\n", *lines[3:]],
    ):
        assert not broken(tmp_path, wrong).holds
    assert broken(tmp_path, lines).holds


def test_a_line_cut_off_at_the_end_shows_in_the_digest(tmp_path, lines):
    assert broken(tmp_path, lines[:-1]).digest != broken(tmp_path, lines).digest


@settings(max_examples=60)
@given(st.data())
def test_a_changed_value_is_found(tmp_path_factory, lines, data):
    at = data.draw(st.integers(0, len(lines) - 1))
    record = json.loads(lines[at])
    name = data.draw(st.sampled_from(sorted(record)))
    record[name] = data.draw(
        st.sampled_from(["x", 7, None, 0.25]).filter(lambda value: value != record[name])
    )
    changed = json.dumps(record, sort_keys=True, separators=(",", ":")).encode() + b"\n"
    folder = tmp_path_factory.mktemp("changed")
    assert not broken(folder, [*lines[:at], changed, *lines[at + 1 :]]).holds


def test_a_torn_line_is_kept_and_sealed(make, path):
    decisions(make, path, 2).close()
    with path.open("ab") as file:
        file.write(b'{"at":17,"event":"deci')
    torn = verify(path)
    assert torn.holds
    assert torn.torn
    decisions(make, path, 1).close()
    sealed = verify(path)
    assert sealed.holds
    assert (sealed.sealed, sealed.torn) == (1, False)


def test_a_file_that_is_no_log_is_not_continued(make, path):
    path.write_text("a list of errands\n")
    with pytest.raises(DecisionLogError, match="no record"):
        DecisionLog(path).event("x")


def test_a_log_that_cannot_be_opened_or_read_is_an_error(tmp_path):
    with pytest.raises(DecisionLogError):
        DecisionLog(tmp_path)
    with pytest.raises(DecisionLogError):
        verify(tmp_path / "none")


WRITER = """
import sys
from safetydrift.guard.decision_log import DecisionLog
log = DecisionLog(sys.argv[1], buffer=1)
for number in range(int(sys.argv[2])):
    log.event("decision", key=sys.argv[3], call_id=str(number), detail="x" * 2000)
    if number == 20:
        print("under way", flush=True)
"""


def writer(path, number, name):
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(number), name], stdout=subprocess.PIPE, text=True
    )


def test_processes_that_write_at_once_make_one_chain(path):
    writers = [writer(path, 60, str(n)) for n in range(3)]
    for one in writers:
        one.communicate(timeout=60)
    found = verify(path)
    assert found.holds
    assert found.records == 1 + 180


def test_the_chain_holds_after_a_writer_was_killed(path):
    killed = writer(path, 1_000_000, "killed")
    killed.stdout.readline()
    killed.send_signal(signal.SIGKILL)
    killed.communicate(timeout=60)
    writer(path, 30, "next").communicate(timeout=60)
    found = verify(path)
    assert found.holds
    assert not found.torn
    assert sum(record.get("key") == "killed" for record in records(path)) > 20
    assert sum(record.get("key") == "next" for record in records(path)) == 30


GUARD = """
import sys, time
from safetydrift import ToolCall
from safetydrift.guard import DecisionLog, Guard
guard = Guard.load(log=DecisionLog(sys.argv[1], delay=1e9))
guard.session("run", "Look around")
for number in range(200):
    decision = guard.propose("run", ToolCall("read_file", {"path": "notes.txt"}), f"c{number}")
    assert decision.allowed, decision
    guard.confirm("run", f"c{number}", "x")
print("decided", flush=True)
time.sleep(60)
"""


def test_a_killed_guard_loses_no_more_than_may_wait(path):
    killed = subprocess.Popen([sys.executable, "-c", GUARD, str(path)], stdout=subprocess.PIPE, text=True)
    assert killed.stdout is not None
    assert killed.stdout.readline() == "decided\n"
    killed.send_signal(signal.SIGKILL)
    killed.communicate(timeout=60)
    assert verify(path).holds
    assert 200 - 63 <= sum(record["event"] == "decision" for record in records(path)) < 200


WORDS = (
    st.text(max_size=20)
    | st.just('\ud800 \x00 "\\\n')
    | st.text("ab", min_size=2, max_size=3).map(lambda a: a * 8192)
)
NUMBERS = st.sampled_from((0.0, -0.0, 1.0, 1, True)) | st.floats() | st.integers(0, 3) | st.floats(0.0, 1.0)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_call_that_goes_ahead_is_written_as_every_other_record_is(tmp_path_factory, data):
    draw = data.draw
    verdict = Verdict(
        state=draw(st.integers(0, 10**6)),
        risk=draw(WORDS),
        probability=0.5,
        horizon=draw(st.integers(1, 100)),
        within=(),
        eventually=0.5,
        uncertain=0.0,
        basis=draw(st.sampled_from(Basis)),
        alarm=False,
        intervention=Intervention.ALLOW,
        low=draw(NUMBERS),
        high=draw(NUMBERS),
    )
    decision = Decision(
        Intervention.ALLOW,
        rule=draw(WORDS),
        probability=draw(NUMBERS),
        threshold=draw(NUMBERS),
        verdict=verdict,
        latency=draw(NUMBERS),
        key=draw(WORDS | st.integers()),
        call_id=draw(WORDS),
    )
    position = TrajectoryState(draw(WORDS), draw(st.integers(0, 10**6)), draw(st.integers(0)), (0,))
    call = ToolCall(draw(WORDS))
    with DecisionLog(tmp_path_factory.mktemp("log") / "log") as log:
        redactor = Redactor(None)
        log.decision(decision, call, position, "ours", redactor)
        (waiting,) = log._waiting
        plain: Any = waiting
        whole = log._record(decision, call, position, "ours", redactor) | {"at": plain[0]}
        assert type(plain) is tuple
        assert module._chained(plain, 7, "0") == module._chained(whole, 7, "0")


def test_what_waits_is_written_as_it_was_decided(make, path):
    guard = make(log=DecisionLog(path))
    guard.session("run", "Look around")
    guard.propose("run", CALL, "c1")
    guard.policy = GuardPolicy(name="another")
    guard.propose("run", CALL, "c2")
    guard.close()
    found = [record["policy"] for record in records(path) if record["event"] == "decision"]
    assert found[1] == "another"
    assert found[0] != "another"
    assert verify(path).holds
