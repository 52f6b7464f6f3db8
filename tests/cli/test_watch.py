"""Watching: what a log says of runs, while it grows, is rotated, cut off, torn and hostile."""

import io
import json
import sys
from math import isnan, nan

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from safetydrift.cli import watch as command
from safetydrift.cli.app import app
from safetydrift.cli.output import finite
from safetydrift.errors import DecisionLogError
from safetydrift.guard import following
from safetydrift.guard.following import Follower, Sessions


def decision(key="run", tool="read_inbox", intervention="allow", **more):
    about = {"event": "decision", "key": key, "tool": tool, "intervention": intervention, "at": 1e9}
    return about | {"call_id": "c1", "probability": 0.25, "threshold": 0.5, "category": "banking"} | more


def lines(*records):
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "decisions.jsonl"


def taken(*records):
    sessions = Sessions()
    for record in records:
        sessions.take(record)
    return sessions


def tools(records):
    return [record["tool"] for record in records]


def test_a_log_is_followed_from_before_it_is_there(path):
    with Follower(path) as follower:
        assert follower.new() == []
        assert not follower.found
        path.write_bytes(lines(decision(tool="a"))[:-5])
        assert follower.new() == []
        path.write_bytes(lines(decision(tool="a")))
        assert tools(follower.new()) == ["a"]
        with path.open("ab") as file:
            file.write(b'{"torn\n\n[]\n\xff\n' + lines(decision(tool="b")))
        assert tools(follower.new()) == ["b"]
        assert follower.new() == []


def test_a_rotated_log_is_read_to_its_end_and_then_the_new_one(path):
    path.write_bytes(lines(decision(tool="a")))
    with Follower(path) as follower:
        follower.new()
        old = path.rename(path.with_suffix(".1"))
        assert follower.new() == []
        with old.open("ab") as file:
            file.write(lines(decision(tool="b")))
        path.write_bytes(lines(decision(tool="c")))
        assert tools(follower.new()) == ["b", "c"]


def test_a_log_that_was_cut_off_begins_anew(path):
    path.write_bytes(lines(decision(tool="a"), decision(tool="b")))
    with Follower(path) as follower:
        follower.new()
        path.write_bytes(lines(decision(tool="c")))
        assert tools(follower.new()) == ["c"]


def test_of_a_long_log_the_end_is_read(path):
    path.write_bytes(lines(*[decision(tool=str(number)) for number in range(100)]))
    with Follower(path, before=500) as follower:
        found = tools(follower.new())
    assert 0 < len(found) < 5
    assert found[-1] == "99"


def test_a_line_without_end_is_passed_over(path, monkeypatch):
    monkeypatch.setattr(following, "MAX_LINE", 400)
    path.write_bytes(b"x" * 1000)
    with Follower(path) as follower:
        assert follower.new() == []
        with path.open("ab") as file:
            file.write(b"y" * 100 + b"\n" + lines(decision(tool="b")))
        assert tools(follower.new()) == ["b"]


def test_a_run_is_what_its_records_say():
    sessions = taken(
        {"event": "begin", "at": 1.0},
        decision(probability=0.1, call_id="1"),
        decision(probability=None, call_id="2", leads_to=7, risk="mild"),
        decision(probability=0.4, call_id="3", intervention="ask", reason="too much", tool="send"),
        {"event": "answer", "key": "run", "call_id": "3", "intervention": "block", "answered_by": "me"},
        decision("other", intervention="allow", shadow="block", rule="never 1"),
        {"event": "doubt", "key": "run", "call_id": "3", "detail": "the disk is full"},
    )
    run, other = sessions.latest()
    assert (run.key, run.category, run.calls, run.risk, run.state) == ("run", "banking", 3, "mild", 7)
    assert run.outcomes == {"allow": 2, "ask": 0, "block": 1}
    assert [one.intervention for one in run.recent] == ["allow", "allow", "block"]
    assert run.probability == 0.4
    assert isnan(run.course[1])
    said = " ".join(words for _, words in run.alarms)
    for word in ("too much", "answered by me", "disk is full"):
        assert word in said
    assert "would block" in other.alarms[0][1]
    assert isnan(taken(decision(probability=nan)).latest()[0].probability)


def test_what_is_remembered_has_bounds(monkeypatch):
    monkeypatch.setattr(following, "MAX_SESSIONS", 3)
    sessions = taken(*[decision(str(number), intervention=str(number)) for number in range(9)])
    assert [run.key for run in sessions.latest()] == ["8", "7", "6"]
    run = taken(*[decision(intervention=str(number)) for number in range(99)]).latest()[0]
    assert len(run.outcomes) + len(run.recent) + len(run.alarms) <= 3 * following.RECENT
    assert len(run.course) == following.COURSE


ANYTHING = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers())
EVENTS = st.sampled_from(["decision", "answer", "doubt", "begin"])


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(sorted(decision() | {"risk": 1, "leads_to": 1, "error": 1})), ANYTHING
        ).flatmap(lambda record: st.builds(lambda event: record | {"key": "run", "event": event}, EVENTS))
    )
)
def test_no_record_breaks_the_view_or_reaches_the_terminal_unread(records):
    sessions = taken(*records)
    out = io.StringIO()
    with Follower("/nowhere") as follower:
        Console(file=out, width=100).print(command.frame(follower, sessions, 3))
        json.dumps(finite(command.plain(follower, sessions, 3)), allow_nan=False)
    assert all(char.isprintable() or char == "\n" for char in out.getvalue())


def test_control_characters_of_agents_do_not_reach_the_terminal(path):
    path.write_bytes(lines(decision("k\x1b]0;own\x07\nfake", tool="\x1b[2Jrm\u202e", category="\x9b31m")))
    done = CliRunner().invoke(app, ["watch", "--log", str(path), "--once"])
    assert done.exit_code == 0
    assert not any(char in done.output for char in "\x1b\x07\x9b\u202e")
    assert "fake" in done.output.splitlines()[2]


def test_one_frame_is_printed(path):
    path.write_bytes(
        lines(
            *[decision(str(number)) for number in range(3)],
            decision(intervention="block", leads_to=3, risk="critical"),
        )
    )
    done = CliRunner().invoke(app, ["watch", "--state", str(path.parent), "-n", "2"])
    assert done.exit_code == 0, done.output
    for word in (
        "4 runs",
        "state 3",
        "banking",
        "25.0 %",
        "▃",
        "block",
        "! ",
        "2 runs that were silent longer",
    ):
        assert word in done.output
    told = json.loads(CliRunner().invoke(app, ["watch", "--log", str(path), "--once", "--json"]).output)
    assert told["runs"] == 4
    assert told["latest"][0]["outcomes"] == {"block": 1}


def test_once_without_a_log_is_refused(path):
    done = CliRunner().invoke(app, ["watch", "--log", str(path), "--once"])
    assert isinstance(done.exception, DecisionLogError)


def growing(path, monkeypatch, *, times):
    """Let the log grow each time the watcher sleeps, and then end it."""
    naps = iter(range(times))

    def nap(_seconds):
        number = next(naps, None)
        if number is None:
            raise KeyboardInterrupt
        with path.open("ab") as file:
            file.write(lines(decision(tool=f"tool_{number}", at=1e300)))

    monkeypatch.setattr(command, "sleep", nap)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_the_log_as_it_grows(path, monkeypatch):
    growing(path, monkeypatch, times=2)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("TERM", "xterm")
    command.watch.main(["--log", str(path)], standalone_mode=False)
    monkeypatch.undo()
    shown = terminal.getvalue()
    assert "no log yet" in shown
    assert shown.index("tool_0") < shown.index("tool_1")


def test_scripts_read_a_line_per_frame(path, monkeypatch):
    growing(path, monkeypatch, times=3)
    done = CliRunner().invoke(app, ["watch", "--log", str(path), "--json"])
    frames = [json.loads(line) for line in done.output.splitlines()]
    assert [frame["latest"][0]["calls"] for frame in frames] == [1, 2, 3]
