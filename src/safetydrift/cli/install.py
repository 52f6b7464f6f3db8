"""``safetydrift install``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from safetydrift.cli.output import console, notes, shown

_FILE = click.Path(exists=True, dir_okay=False)


@click.group
def install() -> None:
    """Put the guard into an agent's own settings, or take it out.

    \b
    Example:
      safetydrift install claude-code --dry-run
    """


@install.command("claude-code")
@click.option("--user", "where", flag_value="user", default=True, help="For all your projects (the default).")
@click.option(
    "--project", "where", flag_value="project", help="For this project, for everybody who works on it."
)
@click.option("--local", "where", flag_value="local", help="For this project, for you alone.")
@click.option("--uninstall", is_flag=True, help="Take our hooks out again.")
@click.option("--dry-run", is_flag=True, help="Print the settings as they would be, and write nothing.")
@click.option(
    "--resident/--one-shot",
    default=True,
    show_default=True,
    help="Leave a guard running for half an hour after the last call, or load everything for every call.",
)
@click.option("--policy", type=click.Path(exists=True, dir_okay=False), metavar="FILE", help="Policy file.")
@click.option("--model", type=click.Path(exists=True, dir_okay=False), metavar="FILE", help="Model file.")
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="What is inside your organisation.",
)
@click.option(
    "--state", type=click.Path(file_okay=False), metavar="FOLDER", help="Where sessions and the log are kept."
)
@click.option("--service", metavar="URL", help="Ask a team's guard (`safetydrift serve`) instead.")
@click.option(
    "--token",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="The token for it [default: what SAFETYDRIFT_TOKEN says].",
)
def claude_code(
    where: str, uninstall: bool, dry_run: bool, resident: bool, service: str | None, **files: str | None
) -> None:
    """Guard Claude Code: its settings then name our hooks, and keep all others.

    \b
    Example:
      safetydrift install claude-code --local --dry-run
      safetydrift install claude-code --policy policy.toml
    """
    from safetydrift.integrations import claude_code_settings as settings

    path = settings.settings_path(where)
    before = settings.read_settings(path)
    if uninstall:
        after = settings.removed(before)
    else:
        _check(files)
        arguments = [
            word
            for name, value in sorted(files.items())
            if value
            for word in (f"--{name}", str(Path(value).resolve()))
        ]
        arguments += ["--service", service] if service else []
        after = settings.installed(before, settings.command(arguments, resident=resident))
    if dry_run:
        console.print(shown(json.dumps(after, indent=2, ensure_ascii=False)), markup=False)
        return
    _write(path, before, after)


def _check(files: dict[str, Any]) -> None:
    """Refuse files that a guard could not use: the hook would refuse every call."""
    from safetydrift.formats.config_file import load_config
    from safetydrift.formats.model_file import load_model
    from safetydrift.guard.policy_file import load_policy

    model = load_model(files["model"] or "default")
    if files["policy"]:
        load_policy(files["policy"]).check(model.space)
    if files["config"]:
        load_config(files["config"])


def _write(path: Path, before: dict[str, Any], after: dict[str, Any]) -> None:
    from safetydrift.integrations import claude_code_settings as settings

    if before == after:
        notes.print(shown(f"{path} is as it should be"), markup=False)
        return
    backup = settings.write_settings(path, after)
    notes.print(shown(f"wrote {path}"), markup=False)
    if backup is not None:
        notes.print(shown(f"the settings as they were are in {backup}"), markup=False)


def _other(agent: str, title: str) -> None:
    @install.command(agent)
    @click.option("--uninstall", is_flag=True, help="Take our hooks out again.")
    @click.option("--dry-run", is_flag=True, help="Print the settings as they would be, and write nothing.")
    @click.option("--policy", type=_FILE, metavar="FILE", help="Policy file.")
    @click.option("--model", type=_FILE, metavar="FILE", help="Model file.")
    @click.option("--config", type=_FILE, metavar="FILE", help="What is inside your organisation.")
    @click.option(
        "--state",
        type=click.Path(file_okay=False),
        metavar="FOLDER",
        help="Where sessions and the log are kept.",
    )
    @click.option("--service", metavar="URL", help="Ask a team's guard (`safetydrift serve`) instead.")
    @click.option(
        "--token", type=_FILE, metavar="FILE", help="The token for it [default: SAFETYDRIFT_TOKEN]."
    )
    def other(uninstall: bool, dry_run: bool, service: str | None, **files: str | None) -> None:
        from safetydrift.integrations import claude_code_settings as files_of
        from safetydrift.integrations import coding_agents_settings as settings

        path = settings.path_of(agent)
        before = files_of.read_settings(path)
        if uninstall:
            after = settings.removed(agent, before)
        else:
            _check(files)
            named = [(name, str(Path(value).resolve())) for name, value in sorted(files.items()) if value]
            named += [("service", service)] if service else []
            arguments = [word for name, value in named for word in (f"--{name}", value)]
            after = settings.installed(agent, before, settings.command(agent, arguments))
        if dry_run:
            console.print(shown(json.dumps(after, indent=2, ensure_ascii=False)), markup=False)
            return
        _write(path, before, after)
        if not uninstall and agent in settings.TRUST:
            notes.print(shown(settings.TRUST[agent]), markup=False)

    other.help = f"""Guard {title}: its settings in your home then name our hooks, and keep all others.

    \b
    Example:
      safetydrift install {agent} --dry-run
    """


for _agent, _title in (
    ("codex", "Codex CLI"),
    ("cursor", "Cursor"),
    ("gemini-cli", "Gemini CLI"),
    ("copilot", "GitHub Copilot"),
):
    _other(_agent, _title)
