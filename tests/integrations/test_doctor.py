"""The doctor: it finds an installation healthy that is, and says what is wrong with one that is not."""

import json
import re
import socket
import subprocess
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from safetydrift.cli.app import app
from safetydrift.guard import DecisionLog
from safetydrift.guard.stores.sqlite import SQLiteStore
from safetydrift.integrations import claude_code_settings as installer
from safetydrift.integrations import resident
from safetydrift.integrations.claude_code import Options
from safetydrift.integrations.doctor import claude_code, mcp
from safetydrift.integrations.doctor.claude_code import Installed
from safetydrift.integrations.doctor.findings import COVERAGE

LIMITS = Path(__file__).parents[2] / "docs" / "reference" / "limits.md"


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Return a project in a home of its own."""
    for name in ("project", "config"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("SAFETYDRIFT_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path


def examined(*words, code):
    done = CliRunner().invoke(app, ["doctor", *map(str, words), "--json"])
    assert done.exit_code == code, done.output + repr(done.exception)
    return json.loads(done.output)


def failed(found):
    return {one["check"]: one for one in found["checks"] if one["status"] == "failed"}


def install(*words):
    done = CliRunner().invoke(app, ["install", "claude-code", "--local", *map(str, words)])
    assert done.exit_code == 0, done.output


def files(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("words", [(), ("--one-shot",)], ids=["resident", "one-shot"])
def test_an_installed_hook_denies_the_probe_and_nothing_is_changed(home, words):
    policy = home / "it's ours.toml"
    policy.write_text('format = "safetydrift.policy/1"\nname = "ours"\n')
    install("--policy", policy, *words)
    before = files(home)
    found = examined("claude-code", code=0)
    assert found["holds"]
    checks = {one["check"]: one for one in found["checks"]}
    assert checks["the installed command denies a probe"]["status"] == "ok"
    assert checks["it lets through what is allowed"]["status"] == "ok"
    assert str(policy) in checks["the policy can be used"]["detail"]
    assert set(found["coverage"]) == {"claude-code"}
    assert files(home) == before
    assert not (home / "state").exists()


def test_hooks_that_are_missing_are_told_of_with_the_way_to_get_them(home):
    found = failed(examined("claude-code", code=3))
    assert "install claude-code" in found["the hooks are installed"]["repair"]


def broken(home, change):
    install("--one-shot")
    path = home / "project" / ".claude" / "settings.local.json"
    settings = json.loads(path.read_text())
    change(settings)
    path.write_text(json.dumps(settings))
    return failed(examined("claude-code", code=3))


def test_a_hook_that_may_fail_open_is_found(home):
    def change(settings):
        del settings["hooks"]["PreToolUse"][0]["hooks"][0]["onFailure"]

    assert "PreToolUse" in broken(home, change)["a hook that cannot run blocks"]["detail"]


def test_a_hook_that_sees_some_tools_alone_is_none(home):
    def change(settings):
        settings["hooks"]["PreToolUse"][0]["matcher"] = "Bash"
        settings["disableAllHooks"] = True

    found = broken(home, change)
    assert "PreToolUse" in found["the hooks are installed"]["detail"]
    assert "disableAllHooks" in found["hooks are switched on"]["detail"]


def test_a_command_that_cannot_be_started_is_found(home):
    def change(settings):
        for groups in settings["hooks"].values():
            handler = groups[0]["hooks"][0]
            handler["command"] = "/nowhere/" + handler["command"].lstrip("/")

    found = broken(home, change)
    assert "127" in found["the installed command denies a probe"]["detail"]
    assert "again" in found["the installed command denies a probe"]["repair"]


def test_a_command_that_never_denies_is_found(home):
    def change(settings):
        for groups in settings["hooks"].values():
            handler = groups[0]["hooks"][0]
            handler["command"] = "true " + handler["command"]

    assert "the installed command denies a probe" in broken(home, change)


def test_a_command_of_somebody_else_in_our_name_is_found(home):
    def change(settings):
        settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"] = (
            "safetydrift hook claude-code --frobnicate"
        )

    assert "frobnicate" in broken(home, change)["the command is ours"]["detail"]


@pytest.mark.parametrize("said", ["no json", "[]"])
def test_an_answer_that_is_none_is_found(said, tmp_path):
    command = Installed("safetydrift hook claude-code")
    command._before = ["printf", said]
    (finding,) = claude_code._probe(command, tmp_path / "probe", "local")
    assert finding.status == "failed"


def test_the_probe_leaves_no_process_behind(monkeypatch):
    monkeypatch.setenv(resident.ALONE, "1")
    monkeypatch.setattr(subprocess, "Popen", None)
    resident.leave_behind("/nowhere", [])


def test_settings_that_cannot_be_read_are_told_of(home):
    (home / "config" / "settings.json").write_text("{")
    found = failed(examined(code=3))
    assert "settings.json" in found["the settings can be read"]["detail"]


def answering(path, reply):
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen(1)

    def serve():
        connection, _ = listener.accept()
        with connection:
            while connection.recv(4096):
                pass
            connection.sendall(reply)

    thread = threading.Thread(target=serve)
    thread.start()
    return listener, thread


@pytest.mark.parametrize(("reply", "status"), [(b"0\n\0", "ok"), (b"who?", "failed")])
def test_a_resident_guard_is_asked(tmp_path, reply, status):
    listener, thread = answering(tmp_path / "s", reply)
    with listener:
        assert claude_code._resident(str(tmp_path / "s")).status == status
        thread.join()
    assert "killed" in claude_code._resident(str(tmp_path / "s")).detail


def test_a_socket_that_is_none_is_told_of(tmp_path):
    (tmp_path / ("s" * 200)).touch()
    assert claude_code._resident(str(tmp_path / ("s" * 200))).status == "failed"


def test_the_proxy_refuses_the_probe(home):
    found = examined("mcp", code=0)
    assert [one["status"] for one in found["checks"] if one["part"] == "mcp"] == ["ok", "ok"]
    assert not (home / "state").exists()


def test_a_proxy_that_cannot_start_is_found(home, tmp_path):
    (tmp_path / "model.json").write_text("{}")
    found = failed(examined("mcp", "--model", tmp_path / "model.json", code=3))
    assert "exit code 3" in found["the proxy starts"]["detail"]
    assert "--model" in found["the model can be read"]["repair"]


def test_a_proxy_that_lets_the_probe_through_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(mcp, "POLICY", mcp.POLICY.replace("mcp__doctor__probe", "mcp__doctor__allowed"))
    monkeypatch.setattr(
        mcp, "POLICY", mcp.POLICY.replace('["mcp__doctor__allowed"]\n[[', '["mcp__doctor__probe"]\n[[')
    )
    found = {one.check: one.status for one in mcp.check_mcp(Options([]), tmp_path)}
    assert set(found.values()) == {"failed"}
    assert len(found) == 2


def test_the_files_of_a_guard_are_looked_at(home):
    state = home / "state"
    state.mkdir(mode=0o700)
    SQLiteStore(state / "sessions.sqlite").close()
    with DecisionLog(state / "decisions.jsonl") as log:
        log.event("decision")
    policy, config = home / "policy.toml", home / "config.toml"
    policy.write_text('format = "safetydrift.policy/1"\non_error = "allow"\nshadow = true\n')
    config.write_text('format = "safetydrift.config/1"\n')
    before = files(home)
    found = examined("guard", "--policy", policy, "--config", config, code=0)
    assert files(home) == before
    remarks = {one["check"] for one in found["checks"] if one["status"] == "remark"}
    assert remarks == {"what fails is refused", "the policy is in force"}
    details = "\n".join(one["detail"] for one in found["checks"])
    assert "0 sessions" in details
    assert "2 records" in details


def test_damaged_files_are_told_of_with_what_to_do(home):
    state = home / "state"
    state.mkdir(mode=0o700)
    (state / "sessions.sqlite").write_bytes(b"no database at all " * 100)
    with DecisionLog(state / "decisions.jsonl") as log:
        log.event("decision")
    log = state / "decisions.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"event":"decision"', b'"event":"decisiom"'))
    (home / "policy.toml").write_text("[")
    state.chmod(0o777)
    found = failed(
        examined("guard", "--policy", home / "policy.toml", "--config", home / "none.toml", code=3)
    )
    assert set(found) == {
        "the policy can be used",
        "the configuration can be read",
        "the state is yours alone",
        "the store can be used",
        "the decision log holds",
    }
    assert all(one["repair"] for one in found.values())
    assert "line 2" in found["the decision log holds"]["detail"]


def test_a_state_that_is_no_folder_is_told_of(home):
    (home / "state").write_text("")
    assert "the state can be kept" in failed(examined("guard", code=3))


def test_where_no_hooks_are_that_is_said_and_is_no_failure(home):
    found = examined(code=0)
    (told,) = [one for one in found["checks"] if one["part"] == "claude-code"]
    assert told["status"] == "remark"
    assert "not guarded" in told["detail"]
    assert set(found["coverage"]) == {"mcp", "guard"}


def test_people_read_what_was_found_and_what_is_not_covered(home):
    install("--one-shot")
    done = CliRunner().invoke(app, ["doctor"])
    assert done.exit_code == 0, done.output
    for word in (
        "denies a probe",
        "claude-code does not cover",
        "mcp covers",
        "everything that was checked works",
    ):
        assert word in done.output
    (home / "state").write_text("")
    done = CliRunner().invoke(app, ["doctor", "guard"])
    assert "FAILED" in done.output
    assert "repair:" in done.output


def test_what_is_not_covered_stands_under_the_same_words_in_the_documentation():
    headings = set(re.findall(r"\*\*(.+?)\.\*\*", LIMITS.read_text("utf-8")))
    for coverage in COVERAGE.values():
        assert {heading for heading, _ in coverage.not_covered} <= headings


def test_the_probe_keeps_model_and_configuration_of_the_command(tmp_path):
    line = installer.command(["--model", "m.json", "--category", "a b", "--state", "/s"])
    probing = Installed(line).probing(tmp_path)
    assert "--model m.json" in probing
    assert "'a b'" in probing
    assert "/s " not in probing
    assert str(tmp_path / "hook.sock") in probing
