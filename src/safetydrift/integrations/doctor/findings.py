"""What a check found, and what a guard covers in general."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "remark", "failed"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check.

    Parameters
    ----------
    part
        What was checked: ``"guard"``, ``"claude-code"`` or ``"mcp"``.
    check
        What it was checked for.
    status
        ``"failed"`` if calls may pass that should not, or nothing can be judged; ``"remark"`` for what deserves a look.
    detail
        What was seen.
    repair
        What to do about it; empty if nothing needs to be done.
    """

    part: str
    check: str
    status: Status
    detail: str = ""
    repair: str = ""


@dataclass(frozen=True, slots=True)
class Coverage:
    """What an installation that works covers, and what it does not; docs/reference/limits.md has the details."""

    covered: tuple[str, ...]
    not_covered: tuple[tuple[str, str], ...]


_ALWAYS = (
    ("What does not pass by it", "tools that are not wrapped, agents without the hooks, code left behind"),
    (
        "What an agent may do to the guard",
        "with a shell and your rights it can edit settings, policy and state",
    ),
    ("What runs inside an allowed call", "a call is allowed or refused as a whole; this is no sandbox"),
    (
        "Harm that no operation tells",
        "made-up results, weakened tests, changed records; say always_ask for what is never to go unasked",
    ),
    ("New kinds of attack", "probabilities come from runs of known tasks, attacks and models"),
    ("Slow leaks", "a summary of secrets in other words passes"),
)

COVERAGE = {
    "guard": Coverage(
        ("every call that is proposed to it, before it is made",),
        (
            ("What an adapter is not shown", "tools that a provider hosts, and what each framework hides"),
            *_ALWAYS,
        ),
    ),
    "claude-code": Coverage(
        (
            "every tool call of Claude Code and of its subagents, where these settings apply",
            "hooks that fail or take too long: the call is blocked (Claude Code 2.1.295 or newer)",
        ),
        (
            (
                "What does not pass by it",
                "sessions where these settings do not apply, and the commands you type yourself",
            ),
            *_ALWAYS[1:],
        ),
    ),
    "mcp": Coverage(
        ("every tools/call of a client whose configuration starts the server through `safetydrift mcp`",),
        (
            (
                "What an MCP server does besides tool calls",
                "resources, prompts, sampling, elicitation and background tasks pass unread",
            ),
            ("MCP servers beside the proxy", "a server that the client reaches by itself is not guarded"),
            *_ALWAYS[1:],
        ),
    ),
    **{
        name: Coverage(
            (covered,),
            (("What does not pass by it", f"{missed}; questions: {asked}"), *_ALWAYS[1:]),
        )
        for name, covered, missed, asked in (
            (
                "codex",
                "shell commands, patches and MCP tools that Codex CLI tells its hooks of",
                "hosted tools, file reads, input to a running command; a hook that is not trusted or times out",
                "Codex cannot be made to ask: they wait on a team's guard, and are refused without one",
            ),
            (
                "cursor",
                "tools that Cursor tells its hooks of; a hook that fails blocks (failClosed)",
                "prompts of `-p` runs: what was asked for is not known there",
                "they wait on a team's guard, and are refused without one",
            ),
            (
                "gemini-cli",
                "tools that Gemini CLI tells its hooks of",
                "a hook that times out; settings that GEMINI_CLI_SYSTEM_SETTINGS_PATH replaces",
                "they wait on a team's guard, and are refused without one",
            ),
            (
                "copilot",
                "tools that Copilot's command line tells its hooks of",
                "a hook that times out; the cloud agent, which reads the repository's hooks alone",
                "Copilot's command line asks its user",
            ),
        )
    },
}
"""For each part: what is covered; headings of docs/reference/limits.md that say what is not, with a short version."""
