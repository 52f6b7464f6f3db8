"""``safetydrift hook``. What agents start is answered before this is imported (`safetydrift.cli.main`)."""

from __future__ import annotations

import click


@click.group
def hook() -> None:
    """Answer an agent's hooks; agents start these by themselves once they are installed.

    \b
    Example:
      safetydrift hook claude-code < event.json
    """


@hook.command("claude-code", context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
@click.pass_context
def claude_code(context: click.Context) -> None:
    """Read an event of Claude Code from standard input, and answer it.

    \b
    Options, all with a value:
      --state FOLDER     where sessions and the decision log are kept
      --policy FILE      the policy; followed while a guard is resident
      --model FILE       the model
      --config FILE      what is inside your organisation
      --category NAME    what kind of task the runs are
      --pipeline NAME    which model acts
      --service URL      a team's guard that decides instead
      --token FILE       our token for it; SAFETYDRIFT_TOKEN if not given

    \b
    Exit codes:
      0  answered; nothing is written where there is no objection
      2  something failed so badly that it could not be said in JSON; Claude Code blocks the call

    \b
    Example:
      safetydrift install claude-code --local
    """
    from safetydrift.integrations.claude_code import main

    context.exit(main(context.args))


def _other(agent: str, title: str) -> None:
    @hook.command(agent, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
    @click.pass_context
    def other(context: click.Context) -> None:
        from safetydrift.integrations.coding_agents import main

        context.exit(main(agent, context.args))

    other.help = f"""Read an event of {title} from standard input, and answer it; options as for claude-code.

    \b
    Example:
      safetydrift install {agent}
    """


for _agent, _title in (
    ("codex", "Codex CLI"),
    ("cursor", "Cursor"),
    ("gemini-cli", "Gemini CLI"),
    ("copilot", "GitHub Copilot"),
):
    _other(_agent, _title)
