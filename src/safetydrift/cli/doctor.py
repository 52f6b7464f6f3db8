"""``safetydrift doctor``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from safetydrift.cli import options
from safetydrift.cli.output import emit_json, say

if TYPE_CHECKING:
    from safetydrift.integrations.doctor.findings import Finding

AGENTS = ("codex", "cursor", "gemini-cli", "copilot")
PARTS = ("claude-code", "mcp", "guard", *AGENTS)
_FILE = click.Path(dir_okay=False)
_MARKS = {"ok": "ok     ", "remark": "remark ", "failed": "FAILED "}


@click.command
@click.argument("part", type=click.Choice(PARTS), required=False)
@click.option("--policy", type=_FILE, metavar="FILE", help="Policy file of the guard.")
@click.option("--model", type=_FILE, metavar="FILE", help="Model file of the guard.")
@click.option("--config", type=_FILE, metavar="FILE", help="What is inside your organisation.")
@click.option(
    "--state", type=click.Path(), metavar="FOLDER", help="Where sessions and the log of the guard are kept."
)
@options.as_json
@click.pass_context
def doctor(context: click.Context, /, part: str | None, as_json: bool, **files: str | None) -> None:
    """Check an installation by making it refuse a harmless probe, and say what is not covered.

    Without a word, all parts are checked that are installed. For claude-code the files are those that the settings
    name; for mcp and guard, those of the options. Nothing of yours is changed.

    \b
    Exit codes:
      0  everything that was checked works
      3  something does not: calls may pass that should not

    \b
    Example:
      safetydrift doctor
      safetydrift doctor claude-code
      safetydrift doctor mcp --policy policy.toml --json
    """
    from safetydrift.integrations.doctor.findings import COVERAGE

    with TemporaryDirectory(prefix="safetydrift-") as folder:
        findings, parts = _examined(part, files, Path(folder))
    holds = all(finding.status != "failed" for finding in findings)
    if as_json:
        emit_json(
            {
                "holds": holds,
                "checks": [asdict(finding) for finding in findings],
                "coverage": {name: asdict(COVERAGE[name]) for name in parts},
            }
        )
    else:
        _tell(findings, parts, holds=holds)
    if not holds:
        from safetydrift.cli import EXIT_REFUSED

        context.exit(EXIT_REFUSED)


def _examined(
    part: str | None, files: dict[str, str | None], folder: Path
) -> tuple[list[Finding], list[str]]:
    """Return what was found, and the parts that were checked."""
    from safetydrift.integrations.claude_code import Options
    from safetydrift.integrations.doctor.claude_code import Installed, check_claude_code
    from safetydrift.integrations.doctor.guard import check_guard
    from safetydrift.integrations.doctor.mcp import check_mcp

    told = Options([word for name, value in files.items() if value for word in (f"--{name}", value)])
    if part in AGENTS:
        return _agent(part, folder, named=True), [part]
    findings: list[Finding] = (
        [] if part else [one for name in AGENTS for one in _agent(name, folder, named=False)]
    )
    guards: list[Options] = [] if part == "claude-code" else [told]
    parts = (
        [part]
        if part
        else [name for name in ("claude-code", "mcp", "guard") if name != "claude-code" or _has_claude_code()]
    )
    if "claude-code" in parts:
        for found in check_claude_code(folder / "claude-code"):
            if isinstance(found, Installed):
                guards.append(found.options)
            else:
                findings.append(found)
    else:
        findings += [] if part else [_not_installed()]
    if "mcp" in parts:
        findings += check_mcp(told, folder / "mcp")
    for number, guard in enumerate(guards):
        own = folder / f"guard-{number}"
        own.mkdir()
        findings += check_guard(guard, own)
    return list(dict.fromkeys(findings)), parts


def _agent(agent: str, folder: Path, *, named: bool) -> list[Finding]:
    """Return what was found of the hooks of another coding agent; nothing where there are none and nobody asks."""
    from safetydrift.errors import ConfigError
    from safetydrift.integrations import claude_code_settings as files_of
    from safetydrift.integrations import coding_agents_settings as settings
    from safetydrift.integrations.coding_agents import DIALECTS
    from safetydrift.integrations.doctor.findings import Finding

    check, again = "its hooks refuse what they cannot judge", f"`safetydrift install {agent}`"
    path = settings.path_of(agent)
    try:
        found = files_of.read_settings(path)
        ours = settings.is_installed(agent, found)
    except ConfigError as error:
        return [Finding(agent, check, "failed", str(error), f"repair {path}")]
    if not ours:
        return [Finding(agent, check, "failed", f"{path} names none of ours", again)] if named else []
    before = next(name for name, own in DIALECTS[agent].events.items() if own == "PreToolUse")
    lines = settings.lines(agent, found, before)
    own = folder / agent
    problems = [problem for line in lines if (problem := settings.probe(agent, line, own))]
    if not lines:
        problems = [f"{path} names none of ours before a call"]
    if problems:
        return [Finding(agent, check, "failed", problems[0], again)]
    return [Finding(agent, check, "ok", str(path), "")]


def _not_installed() -> Finding:
    from safetydrift.integrations.doctor.findings import Finding

    detail = "no settings of yours or of this project name them: Claude Code is not guarded here"
    repair = "`safetydrift install claude-code`, if it should be"
    return Finding("claude-code", "the hooks are installed", "remark", detail, repair)


def _has_claude_code() -> bool:
    """Return whether any settings hold our hooks; settings that cannot be read have to be looked at."""
    from safetydrift.errors import ConfigError
    from safetydrift.integrations import claude_code_settings as settings

    for where in ("user", "project", "local"):
        try:
            if settings.is_installed(settings.read_settings(settings.settings_path(where))):
                return True
        except ConfigError:
            return True
    return False


def _tell(findings: list[Finding], parts: list[str], *, holds: bool) -> None:
    from safetydrift.integrations.doctor.findings import COVERAGE

    styles: dict[str, Any] = {"ok": "", "remark": "yellow", "failed": "red"}
    for finding in findings:
        detail = f": {finding.detail}" if finding.detail else ""
        say(f"{_MARKS[finding.status]} {finding.part}: {finding.check}{detail}", style=styles[finding.status])
        if finding.repair:
            say(f"         repair: {finding.repair}")
    for name in parts:
        say(f"\n{name} covers")
        for what in COVERAGE[name].covered:
            say(f"  - {what}")
        say(f"{name} does not cover")
        for heading, what in COVERAGE[name].not_covered:
            say(f"  - {heading}: {what}")
    say("\neverything that was checked works" if holds else "\nsomething does not work: see FAILED above")
