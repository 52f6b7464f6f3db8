"""The settings of Claude Code: putting our hooks in, and taking them out, without touching anybody else's."""

from __future__ import annotations

import json
import os
import shlex
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetydrift.errors import ConfigError
from safetydrift.integrations import hook_client
from safetydrift.integrations.claude_code import Options
from safetydrift.integrations.resident import socket_path

if TYPE_CHECKING:
    from collections.abc import Sequence

EVENTS = (
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "UserPromptSubmit",
    "SubagentStart",
    "SessionEnd",
)
"""The events we are told of."""

WITH_TOOLS = frozenset(("PreToolUse", "PostToolUse", "PostToolUseFailure"))
"""Those that are matched by the name of a tool."""

TIMEOUT = 20
"""Seconds that Claude Code waits for a hook; more than a decision may take."""

MAX_SETTINGS = 8 << 20
_OURS = ("safetydrift/integrations/hook_client.py", "safetydrift hook claude-code")


def settings_path(where: str, folder: Path | None = None) -> Path:
    """Return the settings file of the user, of a project, or of a project on this machine alone.

    Parameters
    ----------
    where
        ``"user"``, ``"project"`` or ``"local"``.
    folder
        The project; the current folder if not given.
    """
    if where == "user":
        own = os.environ.get("CLAUDE_CONFIG_DIR")
        return (Path(own) if own else Path.home() / ".claude") / "settings.json"
    name = {"project": "settings.json", "local": "settings.local.json"}[where]
    return (folder or Path.cwd()) / ".claude" / name


def command(arguments: Sequence[str], *, resident: bool = True) -> str:
    """Return the command line of the hook.

    Parameters
    ----------
    arguments
        Options of the hook.
    resident
        Whether a guard stays behind to answer the next ones.
    """
    Options(arguments)  # what it does not know is said now
    if not resident:
        return shlex.join([sys.executable, "-m", "safetydrift", "hook", "claude-code", *arguments])
    script = str(Path(hook_client.__file__).resolve())
    return shlex.join([sys.executable, "-S", script, socket_path(arguments), *arguments])


def installed(settings: dict[str, Any], line: str) -> dict[str, Any]:
    """Return settings with our hooks, and all others as they were; installing twice is installing once.

    Raises
    ------
    ConfigError
        If the hooks among the settings are not what Claude Code reads.
    """
    settings = removed(settings)
    hooks = settings.setdefault("hooks", {})
    for event in EVENTS:
        handler: dict[str, Any] = {"type": "command", "command": line, "timeout": TIMEOUT}
        if event != "SessionEnd":
            handler["onFailure"] = "block"
        group: dict[str, Any] = {"hooks": [handler]}
        hooks.setdefault(event, []).append({"matcher": "*"} | group if event in WITH_TOOLS else group)
    return settings


def removed(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings without our hooks, and all others as they were.

    Raises
    ------
    ConfigError
        If the hooks among the settings are not what Claude Code reads.
    """
    settings = json.loads(json.dumps(settings))
    hooks = settings.get("hooks")
    if hooks is None:
        return settings
    if not isinstance(hooks, dict):
        raise ConfigError("'hooks' is no table")
    for event, groups in list(hooks.items()):
        if not isinstance(groups, list):
            raise ConfigError(f"'hooks.{event}' is no list")
        hooks[event] = [kept for group in groups if (kept := _without_ours(group, event))]
        if not hooks[event]:
            del hooks[event]
    if not hooks:
        del settings["hooks"]
    return settings


def is_installed(settings: dict[str, Any]) -> bool:
    """Return whether our hooks are among the settings."""
    return removed(settings) != settings


def read_settings(path: Path) -> dict[str, Any]:
    """Return the settings in a file; none if there is none.

    Raises
    ------
    ConfigError
        If it cannot be read, or is no JSON table.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
    try:
        settings = json.loads(data or b"{}") if len(data) <= MAX_SETTINGS else None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: no JSON, so it is left alone: {error}") from error
    if not isinstance(settings, dict):
        raise ConfigError(f"{path}: no table of settings, so it is left alone")
    return settings


def write_settings(path: Path, settings: dict[str, Any]) -> Path | None:
    """Write settings; the file is the old one or the new one, never half of it.

    Returns
    -------
    Path or None
        Where a copy of the old file is; None if there was none.

    Raises
    ------
    ConfigError
        If it cannot be written.
    """
    path = path.resolve()  # a link stays a link
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        backup = None
        mode = 0o600
        if path.exists():
            mode = path.stat().st_mode & 0o777
            backup = path.with_name(f"{path.name}.before-safetydrift")
            _replace(backup, path.read_bytes(), mode)
        _replace(path, (json.dumps(settings, indent=2, ensure_ascii=False) + "\n").encode(), mode)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror or error}") from error
    return backup


def _replace(path: Path, data: bytes, mode: int) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(mode)
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise


def _without_ours(group: Any, event: str) -> Any:
    """Return a group of handlers without ours; None if nothing is left of it."""
    if not isinstance(group, dict) or not isinstance(group.get("hooks"), list):
        raise ConfigError(f"'hooks.{event}' holds something that is no group of handlers")
    handlers = [handler for handler in group["hooks"] if not is_ours(handler)]
    if len(handlers) == len(group["hooks"]):
        return group
    return group | {"hooks": handlers} if handlers else None


def is_ours(handler: Any) -> bool:
    """Return whether a handler of an event is one of our hooks."""
    line = handler.get("command") if isinstance(handler, dict) else None
    return isinstance(line, str) and any(mark in line.replace("\\", "/") for mark in _OURS)
