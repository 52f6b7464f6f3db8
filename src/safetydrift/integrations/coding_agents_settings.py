"""The settings of Codex CLI, Cursor, Gemini CLI and Copilot: our hooks in and out, everybody else's as they were."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetydrift.errors import ConfigError
from safetydrift.integrations.coding_agents import DIALECTS, TIMEOUT, AgentOptions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PLACES: Mapping[str, str] = {
    "codex": ".codex/hooks.json",
    "cursor": ".cursor/hooks.json",
    "gemini-cli": ".gemini/settings.json",
    "copilot": ".copilot/hooks/safetydrift.json",
}
"""The settings of a user, below their home."""
TRUST = {
    "codex": "Codex asks you to trust new hooks at its next start; until you do, it does not run them.",
    "cursor": "Cursor reads Claude Code's settings as well: guard one of the two, or calls are judged twice.",
}
_EVERY = ".*"
_WITH_TOOLS = frozenset(("PreToolUse", "PostToolUse", "BeforeTool", "AfterTool"))


def path_of(agent: str) -> Path:
    """Return the file of an agent's settings."""
    return Path.home() / PLACES[agent]


def command(agent: str, arguments: Sequence[str]) -> list[str]:
    """Return the command line of a hook; ValueError for options that it does not know."""
    AgentOptions(DIALECTS[agent], arguments)
    return [sys.executable, "-m", "safetydrift", "hook", agent, *arguments]


def installed(agent: str, settings: dict[str, Any], line: Sequence[str]) -> dict[str, Any]:
    """Return settings with our hooks, and all others as they were; installing twice is installing once.

    Raises
    ------
    ConfigError
        If the hooks among the settings are not what the agent reads.
    """
    settings = removed(agent, settings)
    if agent in {"cursor", "copilot"}:
        settings.setdefault("version", 1)
    hooks = settings.setdefault("hooks", {})
    for event in DIALECTS[agent].events:
        hooks.setdefault(event, []).append(_entry(agent, event, line))
    return settings


def _entry(agent: str, event: str, line: Sequence[str]) -> dict[str, Any]:
    if agent == "cursor":
        return {"command": shlex.join(line), "timeout": TIMEOUT, "failClosed": True}
    if agent == "copilot":
        whole = shlex.join([*line, "--event", event])
        return {"type": "command", "bash": whole, "powershell": whole, "timeoutSec": TIMEOUT}
    handler = {
        "type": "command",
        "command": shlex.join(line),
        "timeout": TIMEOUT * 1000 if agent == "gemini-cli" else TIMEOUT,
    }
    group: dict[str, Any] = {"hooks": [handler]}
    return {"matcher": _EVERY} | group if event in _WITH_TOOLS else group


def removed(agent: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings without our hooks, and all others as they were.

    Raises
    ------
    ConfigError
        If the hooks among the settings are not what the agent reads.
    """
    settings = json.loads(json.dumps(settings))
    hooks = settings.get("hooks")
    if hooks is None:
        return settings
    if not isinstance(hooks, dict) or not all(isinstance(entries, list) for entries in hooks.values()):
        raise ConfigError("'hooks' is no table of lists")
    for event, entries in list(hooks.items()):
        kept = [one for entry in entries if (one := _without_ours(agent, entry)) is not None]
        if kept:
            hooks[event] = kept
        else:
            del hooks[event]
    if not hooks:
        del settings["hooks"]
    return settings


def is_installed(agent: str, settings: dict[str, Any]) -> bool:
    """Return whether our hooks are among the settings."""
    return removed(agent, settings) != settings


def lines(agent: str, settings: dict[str, Any], event: str) -> list[str]:
    """Return the command lines of ours that an event starts."""
    entries = settings.get("hooks", {}).get(event, [])
    handlers = [one for entry in entries for one in entry.get("hooks", [entry])]
    return [_line(one) for one in handlers if _is_ours(agent, one)]


def _without_ours(agent: str, entry: Any) -> Any:
    if not isinstance(entry, dict):
        raise ConfigError("'hooks' holds something that is no table")
    if _is_ours(agent, entry):
        return None
    handlers = entry.get("hooks")
    if not isinstance(handlers, list):
        return entry
    kept = [one for one in handlers if not _is_ours(agent, one)]
    if len(kept) == len(handlers):
        return entry
    return entry | {"hooks": kept} if kept else None


def _line(handler: dict[str, Any]) -> str:
    return str(handler.get("command") or handler.get("bash") or "")


def _is_ours(agent: str, handler: Any) -> bool:
    return isinstance(handler, dict) and f"safetydrift hook {agent}" in _line(handler)


def probe(agent: str, line: str, folder: Path) -> str:
    """Have an installed hook refuse an event that it cannot judge; return what is wrong, empty if nothing is.

    Parameters
    ----------
    folder
        Where the probe may write.
    """
    words = shlex.split(line)
    before = next(name for name, ours in DIALECTS[agent].events.items() if ours == "PreToolUse")
    event = {"hook_event_name": before, "tool_name": "Bash", "tool_input": {"command": "true"}, "probe": True}
    words += ["--state", str(folder)]
    try:
        done = subprocess.run(  # noqa: S603  # the line stands in the user's own settings
            words, input=json.dumps(event), capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"it could not be started: {error}"
    if done.returncode == 2:  # noqa: PLR2004  # all of them take it for a refusal
        return ""
    try:
        said = json.loads(done.stdout)
    except ValueError:
        return f"exit code {done.returncode} without an answer: the call would run"
    said = said.get("hookSpecificOutput", said)
    done_word = said.get("permissionDecision") or said.get("permission") or said.get("decision")
    return "" if done_word == "deny" else f"it answered {done_word!r}: the call would run"
