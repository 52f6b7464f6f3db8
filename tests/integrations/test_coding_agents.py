"""Codex CLI, Cursor, Gemini CLI and Copilot: what each is answered, as their references describe the exchange."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.running import safetydrift

from safetydrift.errors import ConfigError
from safetydrift.integrations import claude_code, coding_agents
from safetydrift.integrations import coding_agents_settings as settings
from safetydrift.integrations.coding_agents import DIALECTS

POLICY = """
format = "safetydrift.policy/1"
name = "test"
never = [{ tools = ["drop_*"], reason = "nothing is dropped" }]
always_ask = [{ tools = ["send_*"], reason = "people decide about mail" }]
when = [{ tools = ["odd_*"], then = "warn", reason = "this is odd" }]
"""

EVENTS: dict[str, Any] = {
    "codex": {
        "prompt": {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "Write to Anna"},
        "before": lambda tool, n: {
            "hook_event_name": "PreToolUse",
            "session_id": "s",
            "turn_id": "t",
            "transcript_path": None,
            "cwd": "/w",
            "model": "m",
            "permission_mode": "default",
            "tool_name": tool,
            "tool_input": {"to": "anna"},
            "tool_use_id": n,
        },
        "after": lambda tool, n: {
            "hook_event_name": "PostToolUse",
            "session_id": "s",
            "tool_name": tool,
            "tool_input": {"to": "anna"},
            "tool_use_id": n,
            "tool_response": "sent",
        },
    },
    "cursor": {
        "prompt": {
            "hook_event_name": "beforeSubmitPrompt",
            "conversation_id": "s",
            "prompt": "Write to Anna",
        },
        "before": lambda tool, n: {
            "hook_event_name": "preToolUse",
            "conversation_id": "s",
            "generation_id": "g",
            "session_id": "other",
            "cursor_version": "2026.09.18",
            "tool_name": tool,
            "tool_input": {"to": "anna"},
            "tool_use_id": f"{n}\nx",
        },
        "after": lambda tool, n: {
            "hook_event_name": "postToolUse",
            "conversation_id": "s",
            "tool_name": tool,
            "tool_input": {"to": "anna"},
            "tool_use_id": f"{n}\nx",
            "tool_output": '{"text": "sent"}',
        },
    },
    "gemini-cli": {
        "prompt": {"hook_event_name": "BeforeAgent", "session_id": "s", "prompt": "Write to Anna"},
        "before": lambda tool, _: {
            "hook_event_name": "BeforeTool",
            "session_id": "s",
            "timestamp": "2026-11-22T10:00:00Z",
            "tool_name": tool,
            "tool_input": {"to": "anna"},
        },
        "after": lambda tool, _: {
            "hook_event_name": "AfterTool",
            "session_id": "s",
            "tool_name": tool,
            "tool_input": {"to": "anna"},
            "tool_response": {"llmContent": "sent"},
        },
    },
    "copilot": {
        "prompt": {"sessionId": "s", "timestamp": 1, "cwd": "/w", "prompt": "Write to Anna"},
        "before": lambda tool, _: {
            "sessionId": "s",
            "timestamp": 1,
            "cwd": "/w",
            "toolName": tool,
            "toolArgs": '{"to": "anna"}',
        },
        "after": lambda tool, _: {
            "sessionId": "s",
            "toolName": tool,
            "toolArgs": '{"to": "anna"}',
            "toolResult": {"textResultForLlm": "sent"},
        },
    },
}
NAMES = {"prompt": "userPromptSubmitted", "before": "preToolUse", "after": "postToolUse"}
REFUSAL = {
    "codex": lambda said: said["hookSpecificOutput"]["permissionDecision"],
    "cursor": lambda said: said["permission"],
    "gemini-cli": lambda said: said["decision"],
    "copilot": lambda said: said["permissionDecision"],
}


@pytest.fixture(params=sorted(DIALECTS))
def agent(request):
    return request.param


@pytest.fixture
def hook(agent, tmp_path, monkeypatch):
    """Return a function that gives an event to the hook of an agent; it returns exit code and output."""
    (tmp_path / "policy.toml").write_text(POLICY)

    def hook(what, tool="", number="1", data=None):
        event = EVENTS[agent][what]
        event = event(tool, number) if callable(event) else event
        written = io.StringIO()
        monkeypatch.setattr(sys, "stdout", written)
        told = ["--state", str(tmp_path / "state"), "--policy", str(tmp_path / "policy.toml")]
        told += ["--event", NAMES[what]] if agent == "copilot" else []
        code = coding_agents.main(agent, told, json.dumps(event).encode() if data is None else data)
        return code, written.getvalue()

    return hook


def _state(tmp_path):
    from safetydrift.guard import Guard  # noqa: PLC0415  # as the hook opened it

    with Guard.load(store=tmp_path / "state" / "sessions.sqlite") as guard:
        return guard.current("s/main")[0]


def test_what_nobody_objects_to_is_left_to_the_agents_own_rules(agent, hook, tmp_path):
    hook("prompt")
    assert hook("before", "read_notes") == (0, "{}" if agent == "cursor" else "")
    hook("after", "read_notes")
    assert _state(tmp_path).steps == 1


def test_a_refusal_is_said_so_that_the_agent_heeds_it(agent, hook):
    hook("prompt")
    code, said = hook("before", "drop_table")
    assert code == 0
    assert REFUSAL[agent](json.loads(said)) == "deny"
    assert "nothing is dropped" in said


def test_a_question_is_only_put_to_an_agent_that_asks(agent, hook):
    hook("prompt")
    _, said = hook("before", "send_mail")
    assert REFUSAL[agent](json.loads(said)) == ("ask" if agent == "copilot" else "deny")


def test_a_remark_lets_the_call_go_ahead(agent, hook):
    hook("prompt")
    code, said = hook("before", "odd_tool")
    assert code == 0
    assert "deny" not in said
    assert ("this is odd" in said) == (agent == "codex")


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"[" * 99_999, b'{"hook_event_name": "PreToolUse"}'])
def test_what_cannot_be_read_is_refused(agent, hook, data):
    code, said = hook("before", "read_notes", data=data)
    assert code == claude_code.BLOCKED or REFUSAL[agent](json.loads(said)) == "deny"


def test_a_session_whose_prompt_was_not_seen_is_judged_all_the_same(hook, tmp_path):
    assert "deny" not in hook("before", "read_notes")[1]
    assert "deny" in hook("before", "drop_table", "2")[1]


def test_alike_calls_without_identifiers_are_each_counted(agent, hook, tmp_path):
    hook("prompt")
    for number in "12":
        hook("before", "read_notes", number)
    for number in "12":
        hook("after", "read_notes", number)
    hook("before", "read_notes", "3")
    hook("after", "read_notes", "3")
    assert _state(tmp_path).steps == 3


def test_installing_twice_is_once_and_taking_out_leaves_the_rest(agent):
    theirs = {"version": 1, "hooks": {"other": [{"command": "theirs"}]}, "more": 1}
    line = settings.command(agent, ["--state", "/somewhere else"])
    once = settings.installed(agent, theirs, line)
    assert settings.is_installed(agent, once)
    assert settings.installed(agent, once, line) == once
    assert settings.removed(agent, once) == theirs
    assert set(DIALECTS[agent].events) < set(once["hooks"])
    with pytest.raises(ConfigError):
        settings.installed(agent, {"hooks": []}, line)
    with pytest.raises(ConfigError):
        settings.installed(agent, {"hooks": {"other": ["theirs"]}}, line)


def test_an_installed_hook_passes_the_doctors_probe_and_a_broken_one_does_not(agent, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert safetydrift("install", agent).returncode == 0
    path = tmp_path / settings.PLACES[agent]
    assert path.exists()
    done = safetydrift("doctor", agent)
    assert done.returncode == 0, done.stdout
    path.write_text(path.read_text().replace(sys.executable, "/bin/true"))
    assert safetydrift("doctor", agent).returncode == 3
    assert safetydrift("install", agent, "--uninstall").returncode == 0
    assert "safetydrift" not in path.read_text()
    assert safetydrift("doctor", agent).returncode == 3
    assert Path(tmp_path, "settings-of-others").exists() is False
