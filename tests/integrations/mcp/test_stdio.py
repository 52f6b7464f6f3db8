"""The proxy as a process and as threads: two sides, either of which may end, die, or say too much."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from safetydrift.integrations.mcp import stdio
from safetydrift.integrations.mcp.stdio import StdioProxy
from safetydrift.integrations.mcp.wire import Lines

FAKE = [sys.executable, str(Path(__file__).with_name("fake_server.py"))]


def call(tool, number=1):
    params = {"name": tool, "arguments": {}}
    return (
        json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}).encode()
        + b"\n"
    )


PING = b'{"jsonrpc":"2.0","id":"p","method":"ping"}\n'


class Running:
    """A proxy on a thread, its client's ends in our hands."""

    def __init__(self, connection, command):
        self.connection = connection
        source, self.to = os.pipe()
        self.of, sink = os.pipe()
        self.reading = os.fdopen(self.of, "rb")
        self.proxy = StdioProxy(connection.exchange, command, source, sink)
        self.code = None
        self._ours = (source, sink)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        self.code = self.proxy.run()
        for descriptor in self._ours:
            os.close(descriptor)

    def say(self, data):
        os.write(self.to, data)

    def heard(self):
        return json.loads(self.reading.readline())

    def end(self):
        os.close(self.to)
        self.to = -1
        return self.join()

    def join(self):
        self.thread.join(20)
        assert not self.thread.is_alive()
        return self.code

    def close(self):
        if self.to >= 0:
            os.close(self.to)
        self.thread.join(20)
        self.reading.close()


@pytest.fixture
def start(connect):
    started = []

    def start(*options, command=FAKE, **more):
        connection = connect(**more)
        running = Running(connection, [*command, *options])
        started.append(running)
        return running

    yield start
    for running in started:
        running.close()


def test_messages_pass_in_both_directions(start):
    running = start()
    running.say(PING + b"\r\n" + call("read_note", 1))
    assert running.heard()["id"] == "p"
    assert running.heard()["result"]["content"][0]["text"] == "read_note"
    running.say(call("write_note", 2))
    assert running.heard()["result"]["isError"] is True
    assert running.end() == 0
    assert running.connection.statuses() == ["confirmed", "refused"]


def test_a_call_may_come_in_pieces(start):
    running = start()
    for byte in call("read_note"):
        running.say(bytes([byte]))
    assert running.heard()["id"] == 1


def test_words_on_the_wrong_stream_pass(start):
    running = start()
    running.say(call("read_noisy"))
    assert running.reading.readline() == b"some words on the wrong stream\n"
    assert running.heard()["id"] == 1


@pytest.mark.parametrize(("tool", "code"), [("read_dying", 7), ("read_closing", 1)])
def test_a_server_that_dies_leaves_no_call_without_an_answer(start, tool, code):
    running = start()
    running.say(call("read_deaf", 1))
    running.say(call(tool, 2))
    answers = {answer["id"]: answer["result"] for answer in (running.heard(), running.heard())}
    assert set(answers) == {1, 2}
    assert "the server has ended" in answers[2]["content"][0]["text"]
    assert running.join() == code
    assert running.connection.statuses() == ["open", "open"]  # nobody knows whether they were made


def test_an_answer_with_a_double_key_fails_the_call(start):
    running = start()
    running.say(call("read_double"))
    assert "could not be read" in running.heard()["result"]["content"][0]["text"]
    running.say(call("read_note", 2))
    assert running.heard()["id"] == 2


def test_an_answer_that_is_too_long_fails_the_call_and_nothing_else(start, monkeypatch):
    monkeypatch.setattr(stdio, "Lines", lambda: Lines(most=100_000))
    running = start()
    running.say(call("read_long"))
    assert "more than 100000 bytes" in running.heard()["result"]["content"][0]["text"]
    running.say(call("read_note", 2))
    assert running.heard()["result"]["content"][0]["text"] == "read_note"


def test_a_message_that_is_too_long_closes_the_connection(start, monkeypatch):
    monkeypatch.setattr(stdio, "Lines", lambda: Lines(most=1000))
    running = start()
    running.say(call("read_deaf", 1))
    running.say(b"x" * 2000)
    assert running.heard()["id"] == 1
    assert running.join() == 1
    assert any("the connection is closed" in line for line in running.connection.told)


def test_half_a_message_at_the_end_is_not_passed_on(start):
    running = start()
    running.say(call("read_note")[:-1])
    assert running.end() == 0
    assert any("middle of a message" in line for line in running.connection.told)
    assert running.reading.read() == b""


def test_what_was_asked_before_the_client_closed_is_still_answered(start):
    running = start()
    running.say(call("read_slowly"))
    assert running.end() == 0
    assert running.heard()["id"] == 1


def test_a_server_that_does_not_end_is_ended(start, monkeypatch):
    monkeypatch.setattr(stdio, "PATIENCE", 0.1)
    running = start("--stay")
    running.say(PING)
    running.heard()
    assert running.end() == 0


def test_a_client_that_does_not_listen_ends_the_proxy(start):
    running = start()
    running.reading.close()
    running.say(call("write_note"))
    assert running.join() == 0


def test_a_server_that_cannot_be_started(start):
    running = start(command=["/nowhere/at/all"])
    assert running.join() == 127
    assert any("could not be started" in line for line in running.connection.told)


def test_a_pump_that_fails_ends_everything(start, monkeypatch):
    running = start()
    monkeypatch.setattr(running.connection.exchange, "from_client", lambda *_: 1 / 0)
    running.say(call("read_note"))
    assert running.join() == 1


# -- as a command ---------------------------------------------------------------------------------------------


def command(here, *more):
    return [sys.executable, "-m", "safetydrift", "mcp", *here.options, *more]


def test_the_command_guards_a_server(here):
    said = call("write_note", 1) + call("read_note", 2)
    done = subprocess.run(
        command(here, "--task", "Read", "--", *FAKE), input=said, capture_output=True, timeout=60, check=False
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["result"].get("isError", False) for answer in answers] == [True, False]
    assert done.returncode == 0
    assert b"nobody can be asked" in done.stderr
    assert (here.path / "decisions.jsonl").exists()
    assert not (here.path / "sessions.sqlite").exists()


def test_a_named_session_goes_on_in_the_next_process(here):
    for number in (1, 2):
        done = subprocess.run(
            command(here, "--session", "mine", "--", *FAKE),
            input=call("read_note"),
            capture_output=True,
            timeout=60,
            check=True,
        )
        assert json.loads(done.stdout)["id"] == 1, number
    from safetydrift.guard import Guard  # noqa: PLC0415

    with Guard.load(store=here.path / "sessions.sqlite") as guard:
        assert guard.current("mine")[0].steps == 2  # the same number, but another call


def test_a_signal_ends_the_proxy_and_its_server(here):
    with subprocess.Popen(
        command(here, "--", *FAKE, "--stay"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as proxy:
        assert proxy.stdin is not None
        assert proxy.stdout is not None
        proxy.stdin.write(PING)
        proxy.stdin.flush()
        proxy.stdout.readline()
        proxy.send_signal(signal.SIGTERM)
        assert proxy.wait(20) == 128 + signal.SIGTERM


def test_a_call_under_way_when_the_proxy_is_killed_stays_reserved(here):
    from safetydrift.guard import Guard  # noqa: PLC0415
    from safetydrift.guard.decision_log import records, verify  # noqa: PLC0415

    log = here.path / "decisions.jsonl"
    with subprocess.Popen(
        command(here, "--session", "mine", "--", *FAKE),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as proxy:
        assert proxy.stdin is not None
        assert proxy.stdout is not None
        proxy.stdin.write(call("read_deaf", 1) + PING)
        proxy.stdin.flush()
        assert json.loads(proxy.stdout.readline())["id"] == "p"  # so the server has the call
        proxy.kill()
    assert verify(log).holds
    assert [record.get("tool") for record in records(log) if "intervention" in record] == [
        "mcp__notes__read_deaf"
    ]
    with Guard.load(store=here.path / "sessions.sqlite") as guard:
        session, _ = guard._sessions.read("mine")
        assert len(session.reserved) == 1
        assert guard.current("mine")[0].steps == 1


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ([], 2),
        (["--upstream", "http://127.0.0.1:1/mcp", "--", "true"], 2),
        (["--ask", "ftp://x", "--", "true"], 3),
        (["--upstream", "ftp://x"], 3),
        (["--", "/nowhere/at/all"], 127),
    ],
)
def test_what_cannot_guard_does_not_start(here, words, code):
    done = subprocess.run(command(here, *words), input=b"", capture_output=True, timeout=60, check=False)
    assert done.returncode == code, done.stderr
    assert not done.stdout


def test_a_policy_that_cannot_be_read_starts_nothing(here):
    (here.path / "policy.toml").write_text("nonsense")
    mark = here.path / "started"
    done = subprocess.run(
        command(here, "--", "touch", str(mark)), capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 3
    assert not mark.exists()


def test_a_server_that_the_configuration_trusts_has_to_be_named(here, tmp_path):
    config = tmp_path / "config.toml"
    config.write_text('format = "safetydrift.config/1"\n[trust]\nservers = ["fake", "notes"]\n')
    (tmp_path / "policy.toml").write_text(
        'format = "safetydrift.policy/1"\n[[never]]\ntools = ["mcp__unnamed-fake__*"]\n'
    )
    unnamed = ["--config", str(config), *here.options[2:]]
    words = [sys.executable, "-m", "safetydrift", "mcp", *unnamed, "--", *FAKE]
    done = subprocess.run(words, input=call("read_note"), capture_output=True, timeout=60, check=True)
    assert b"say --name" in done.stderr
    assert json.loads(done.stdout)["result"]["isError"] is True


def test_definitions_are_confirmed_by_command(here):
    from safetydrift.integrations.mcp.definitions import Definitions  # noqa: PLC0415

    definitions = Definitions(str(here.path / "mcp-notes.json"))
    definitions.listed([{"name": "a"}])
    definitions.listed([{"name": "a", "description": "new"}])
    for said in (b"confirmed: a", b"nothing had changed"):
        done = subprocess.run(
            command(here, "--confirm-definitions"), capture_output=True, timeout=60, check=True
        )
        assert said in done.stderr
