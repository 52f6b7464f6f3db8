"""What stands between agents and their tools asks the service by configuration alone."""

from __future__ import annotations

import io
import json
import sys

import pytest
from tests.service.conftest import ASK, listening

from safetydrift.integrations import claude_code
from safetydrift.integrations.mcp.opening import Settings
from safetydrift.service import queries
from safetydrift.trace import ToolCall


@pytest.fixture
def service(make, sqlite):
    service = make(sqlite)
    service.enforce(ASK)
    with listening(service.runtime) as url:
        service.url = url
        yield service


@pytest.fixture
def hook(service, tmp_path, monkeypatch):
    """Return a function that gives an event to the hook of Claude Code, as a process would be given it."""
    (tmp_path / "token").write_text(service.token("agent") + "\n")

    def hook(name, url=service.url, **event):
        written = io.StringIO()
        monkeypatch.setattr(sys, "stdout", written)
        told = ["--service", url, "--token", str(tmp_path / "token"), "--state", str(tmp_path)]
        data = json.dumps({"hook_event_name": name, "session_id": "s", **event}).encode()
        code = claude_code.main(told, data)
        assert code == 0
        said = json.loads(written.getvalue() or "{}").get("hookSpecificOutput", {})
        return said.get("permissionDecision")

    return hook


def _proposed(hook, tool, number="1", **more):
    return hook("PreToolUse", tool_name=tool, tool_input={"to": "anna"}, tool_use_id=number, **more)


def test_claude_code_is_guarded_by_the_team(hook, service):
    hook("UserPromptSubmit", prompt="Write to Anna")
    assert _proposed(hook, "read_notes", "1") is None
    hook(
        "PostToolUse",
        tool_name="read_notes",
        tool_input={"to": "anna"},
        tool_use_id="1",
        tool_response="done",
    )
    assert _proposed(hook, "drop_table", "2") == "deny"
    [run] = service.runtime.read(lambda c: queries.run_list(c, service.org(), queries.RunFilter()))
    assert (run["agent"], run["task"], run["calls"], run["refused"]) == ("claude-code", "Write to Anna", 2, 1)


def test_a_question_that_the_agents_own_prompt_answered_waits_no_longer(hook, service):
    hook("UserPromptSubmit", prompt="Write to Anna")
    assert _proposed(hook, "send_mail") == "ask"
    assert service.runtime.read(lambda c: queries.pending(c, service.org())) == 1
    hook(
        "PostToolUse", tool_name="send_mail", tool_input={"to": "anna"}, tool_use_id="1", tool_response="sent"
    )
    assert service.runtime.read(lambda c: queries.pending(c, service.org())) == 0


def test_without_the_service_the_hook_refuses(hook):
    hook("UserPromptSubmit", prompt="Write to Anna")
    assert _proposed(hook, "read_notes", url="http://127.0.0.1:9") == "deny"


def test_the_mcp_proxy_asks_the_service(service, tmp_path, monkeypatch):
    monkeypatch.setenv("SAFETYDRIFT_TOKEN", service.token("agent"))
    settings = Settings(["files"], name="files", task="Tidy up", state=str(tmp_path), service=service.url)
    guarding, run = settings.opened()
    guard = guarding.guard
    guard.session(run.key, "Tidy up")
    assert guard.propose(run.key, ToolCall("read_notes", {}), "1").allowed
    assert guard.propose(run.key, ToolCall("drop_table", {}), "2").refused
    guard.close()
    [found] = service.runtime.read(lambda c: queries.run_list(c, service.org(), queries.RunFilter()))
    assert (found["agent"], found["framework"]) == ("mcp files", "MCP")
