"""The guard on the command line: policies, the log, and the settings of Claude Code."""

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from safetydrift.cli.app import app
from safetydrift.guard import DecisionLog

EXAMPLES = Path(__file__).parents[2] / "examples"
POLICY = """
format = "safetydrift.policy/1"
name = "ours"
always_allow = ["get_weather"]
on_error = "allow"
shadow = true
[[always_ask]]
kinds = ["credential_leak"]
[[when]]
proposal = 0.0
then = "warn"
[[when]]
proposal = 0.5
then = "block"
"""


def run(*words, code=0):
    done = CliRunner().invoke(app, list(map(str, words)))
    assert done.exit_code == code, done.output + repr(done.exception)
    return done.output


@pytest.fixture
def policy(tmp_path):
    (tmp_path / "policy.toml").write_text(POLICY)
    return tmp_path / "policy.toml"


def test_a_policy_is_checked_and_what_deserves_a_look_is_told(policy):
    told = run("policy", "check", policy)
    for word in ("ours", "never reached", "on_error", "shadow", "always_allow"):
        assert word in told
    assert len(json.loads(run("policy", "check", policy, "--json"))["remarks"]) == 7


def test_a_policy_that_cannot_be_used_is_refused(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text('format = "safetydrift.policy/1"\n[[when]]\nrisk = "dire"\nthen = "ask"')
    done = CliRunner().invoke(app, ["policy", "check", str(path)])
    assert "dire" in str(done.exception)


def test_a_policy_is_tried_on_past_runs_beside_the_one_in_force(policy, tmp_path):
    old = tmp_path / "old.toml"
    old.write_text('format = "safetydrift.policy/1"\n[[when]]\ncurrent = 0.0\nthen = "block"')
    found = json.loads(run("policy", "test", policy, EXAMPLES, "--current", old, "--json", "-q"))
    for group in ("violating", "not_violating"):
        part = found[group]
        assert sum(part["outcomes"].values()) == sum(part["current"].values()) == part["runs"] > 0
        assert part["outcomes"]["allow"] == 0
        assert part["current"]["block"] == part["runs"]
    shown = run("policy", "test", policy, EXAMPLES, "-q")
    assert "let through" in shown
    assert "warned" in shown


def test_a_log_is_verified(tmp_path):
    path = tmp_path / "log.jsonl"
    with DecisionLog(path) as log:
        for number in range(3):
            log.event("decision", call_id=str(number))
    told = json.loads(run("audit", "verify", path, "--json"))
    assert told["holds"]
    assert told["records"] == 4
    assert run("audit", "verify", path, "--digest", told["digest"])
    assert "cut off" in run("audit", "verify", path, "--digest", "ff", code=3)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2] + lines[3:]) + b"{")
    told = run("audit", "verify", path, code=3)
    assert "line 3" in told
    assert "torn" in told


def test_claude_code_is_guarded_and_left_as_it_was(tmp_path, policy, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = tmp_path / ".claude" / "settings.local.json"
    settings.parent.mkdir()
    settings.write_text('{"model": "opus"}')
    assert "onFailure" in run("install", "claude-code", "--local", "--dry-run")
    assert settings.read_text() == '{"model": "opus"}'
    run("install", "claude-code", "--local", "--policy", policy, "--one-shot")
    assert str(policy) in settings.read_text()
    assert "as it should be" in run("install", "claude-code", "--local", "--policy", policy, "--one-shot")
    run("install", "claude-code", "--local", "--uninstall")
    assert json.loads(settings.read_text()) == {"model": "opus"}


def test_a_policy_that_cannot_be_used_is_not_installed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.toml").write_text("[")
    done = CliRunner().invoke(app, ["install", "claude-code", "--local", "--policy", "policy.toml"])
    assert done.exception is not None
    assert not (tmp_path / ".claude").exists()


def test_the_hook_has_help_and_answers(tmp_path, monkeypatch):
    assert "--policy" in run("hook", "claude-code", "--help")
    monkeypatch.setattr(sys, "stdin", None)
    done = CliRunner().invoke(app, ["hook", "claude-code", "--state", str(tmp_path)], input="{")
    assert done.exit_code == 2
