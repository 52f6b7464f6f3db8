"""Whether Claude Code's settings name a hook that denies a probe.

The probe runs the very command that is installed, with the policy, the state and the socket of the doctor in place of
the user's, on recorded events.
"""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetydrift.errors import ConfigError
from safetydrift.integrations import claude_code_settings as installed
from safetydrift.integrations.claude_code import Options
from safetydrift.integrations.doctor.findings import Finding
from safetydrift.integrations.resident import ALONE

if TYPE_CHECKING:
    from collections.abc import Iterator

PLACES = ("user", "project", "local")
REASON = "this is the probe of safetydrift doctor"
POLICY = f"""format = "safetydrift.policy/1"
name = "doctor"
always_allow = ["Glob"]
[[never]]
tools = ["Bash"]
reason = "{REASON}"
"""
PATIENCE = 60.0
_AGAIN = "run `safetydrift install claude-code --{}` again, with the options you want"


class Installed:
    """A command line of ours in some settings, taken apart.

    Attributes
    ----------
    line
        As it stands there.
    options
        What it says to the hook.

    Raises
    ------
    ConfigError
        If it is none that `install` writes.
    """

    def __init__(self, line: str) -> None:
        self.line = line
        try:
            words = shlex.split(line)
            self._start, self.socket = _start(words)
            self._before, arguments = words[: self._start], words[self._start :]
            self.options = Options(arguments)
        except ValueError as error:
            raise ConfigError(f"the command is none that we install: {error}") from error

    def probing(self, folder: Path) -> str:
        """Return the same command line with a policy, a state and a socket in a folder of the doctor's."""
        before = list(self._before)
        if self.socket:
            before[-1] = str(folder / "hook.sock")
        words = [*before, "--state", str(folder / "state"), "--policy", str(folder / "policy.toml")]
        for name in ("model", "config", "category", "pipeline"):
            value = getattr(self.options, name)
            if value and (name, value) != ("model", "default"):
                words += [f"--{name}", value]
        return shlex.join(words)


def check_claude_code(folder: Path) -> Iterator[Finding | Installed]:
    """Check every settings file that holds our hooks; yields the commands that are installed, too.

    Parameters
    ----------
    folder
        A folder of the doctor's own.
    """
    found = False
    for where in PLACES:
        path = installed.settings_path(where)
        try:
            settings = installed.read_settings(path)
            ours = installed.is_installed(settings)
        except ConfigError as error:
            yield _failed(
                "the settings can be read", str(error), f"correct {path}; Claude Code cannot read it either"
            )
            continue
        if settings.get("disableAllHooks") is True:
            yield _failed("hooks are switched on", f"{path} says disableAllHooks", "take that line out")
        if ours:
            found = True
            yield from _check_settings(where, path, settings, folder / where)
    if not found:
        yield _failed(
            "the hooks are installed",
            "no settings of yours or of this project name them",
            "run `safetydrift install claude-code` (or with --local, --project)",
        )


def _check_settings(
    where: str, path: Path, settings: dict[str, Any], folder: Path
) -> Iterator[Finding | Installed]:
    handlers = {event: _handler(settings, event) for event in installed.EVENTS}
    missing = [event for event, handler in handlers.items() if handler is None]
    yield _said(
        "the hooks are installed",
        not missing,
        f"{path}",
        f"{path} lacks {', '.join(missing)}",
        _AGAIN.format(where),
    )
    open_ = [
        event
        for event, handler in handlers.items()
        if handler is not None and event != "SessionEnd" and handler.get("onFailure") != "block"
    ]
    yield _said(
        "a hook that cannot run blocks",
        not open_,
        'onFailure is "block"',
        f'{path}: onFailure is not "block" for {", ".join(open_)}',
        _AGAIN.format(where),
    )
    lines = sorted({str(handler["command"]) for handler in handlers.values() if handler is not None})
    for number, line in enumerate(lines):
        try:
            command = Installed(line)
        except ConfigError as error:
            yield _failed("the command is ours", str(error), _AGAIN.format(where))
            continue
        yield command
        yield from _probe(command, folder / str(number), where)
        if command.socket:
            yield _resident(command.socket)


def _handler(settings: dict[str, Any], event: str) -> dict[str, Any] | None:
    """Return our handler of an event that holds for every tool."""
    for group in settings["hooks"].get(event, []):
        if event in installed.WITH_TOOLS and group.get("matcher", "") not in {"", "*"}:
            continue
        for handler in group["hooks"]:
            if installed.is_ours(handler):
                return dict(handler)
    return None


def _probe(command: Installed, folder: Path, where: str) -> Iterator[Finding]:
    folder.mkdir(parents=True)
    (folder / "policy.toml").write_text(POLICY, "utf-8")
    line = command.probing(folder)
    check = "the installed command denies a probe"
    try:
        said = [_run(line, event, folder) for event in events()]
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        yield _failed(check, f"{command.line}: {error}", _AGAIN.format(where))
        return
    _, (code, denied, words), (other_code, other, other_words) = said
    done = denied.get("hookSpecificOutput", {})
    refused = code == 0 and done.get("permissionDecision") == "deny"
    if not refused or REASON not in str(done.get("permissionDecisionReason")):
        detail = f"{command.line}: exit code {code}, answer {json.dumps(denied)}, {words}"
        yield _failed(check, detail[:1000], _AGAIN.format(where))
    else:
        yield _ok(check, "a shell call, by a rule")
    if other_code or other:
        detail = f"exit code {other_code}, answer {json.dumps(other)}, {other_words}"
        yield _failed("it lets through what is allowed", detail[:1000], _AGAIN.format(where))
    else:
        yield _ok("it lets through what is allowed", "without a word")


def events() -> list[dict[str, Any]]:
    """Return the recorded events of the probe: a prompt, a call that is refused, and one that is not."""
    about = {"session_id": "safetydrift-doctor", "transcript_path": "/dev/null", "cwd": "/"}
    call = about | {"hook_event_name": "PreToolUse"}
    return [
        about | {"hook_event_name": "UserPromptSubmit", "prompt": "Do nothing"},
        call | {"tool_name": "Bash", "tool_input": {"command": "true"}, "tool_use_id": "probe-1"},
        call | {"tool_name": "Glob", "tool_input": {"pattern": "*.md"}, "tool_use_id": "probe-2"},
    ]


def _run(line: str, event: dict[str, Any], folder: Path) -> tuple[int, dict[str, Any], str]:
    """Return exit code, answer and standard error of the hook."""
    done = subprocess.run(  # noqa: S603  # as Claude Code starts it
        ["/bin/sh", "-c", line],
        input=json.dumps(event),
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        timeout=PATIENCE,
        env=os.environ | {ALONE: "1"},
    )
    said = json.loads(done.stdout) if done.stdout.strip() else {}
    if not isinstance(said, dict):
        raise ValueError(f"the answer is no object: {done.stdout[:200]!r}")  # noqa: TRY004  # it is the text that is wrong
    return done.returncode, said, done.stderr.strip()[-500:]


def _resident(path: str) -> Finding:
    """Ask the guard that is resident, if one is, about an event that is of no concern to it."""
    check = "the resident guard answers"
    if not Path(path).exists():
        return _ok(check, "none is running; the next call leaves one behind")
    reply = b""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(10.0)
            connection.connect(path)
            connection.sendall(b'{"hook_event_name": "doctor"}')
            connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(4096):
                reply += part
    except ConnectionRefusedError:
        return _ok(check, "the last one was killed; the next call leaves one behind")
    except OSError as error:
        return _failed(check, f"{path}: {error}", f"end the process that listens there, or remove {path}")
    if reply != b"0\n\0":
        return _failed(check, f"{path}: {reply[:200]!r}", "end the process that listens there")
    return _ok(check, path)


def _start(words: list[str]) -> tuple[int, str]:
    """Return where the hook's own options begin, and the socket of the resident guard; empty if there is none."""
    for position, word in enumerate(words):
        if word.replace("\\", "/").endswith("safetydrift/integrations/hook_client.py"):
            return position + 2, words[position + 1]
        if word == "claude-code" and position and words[position - 1] == "hook":
            return position + 1, ""
    raise ValueError("it starts no hook of ours")


def _said(check: str, holds: bool, good: str, bad: str, repair: str) -> Finding:
    return _ok(check, good) if holds else _failed(check, bad, repair)


def _ok(check: str, detail: str) -> Finding:
    return Finding("claude-code", check, "ok", detail)


def _failed(check: str, detail: str, repair: str) -> Finding:
    return Finding("claude-code", check, "failed", detail, repair)
