"""The group of verbs, by reader; each is imported when it is called."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from safetydrift._version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

SECTIONS: Mapping[str, Mapping[str, str]] = {
    "Guard an agent": {
        "install": "Put the guard into an agent's own settings, or take it out.",
        "doctor": "Check that an installed guard refuses a probe, and say what is not covered.",
        "mcp": "Guard an MCP server: judge every tool call between it and its client.",
        "policy": "Check a guard's policy, and backtest it on recorded runs.",
        "explain": "Say what tool calls do, and why: in words, or as JSON lines.",
        "hook": "Answer an agent's hooks: what `install` puts into its settings.",
    },
    "Fit and compare": {
        "label": "Read what every tool call did, and count what could not be read.",
        "fit": "Fit a model on traces or labelled runs.",
        "predict": "Write the probability of a violation at every step of every run.",
        "evaluate": "Compare monitors, model files and predictions with honest baselines.",
        "analyze": "Print what a chain says: horizons, absorption, points of no return.",
        "replay": "Show runs step by step: state, probability, alarm.",
        "card": "Write the card of a model: data, promises, figures, limits.",
        "corpus": "Build or describe the shipped corpus of derived runs.",
        "catalogue": "Check a catalogue: how much of what agents do it covers.",
    },
    "Run a fleet": {
        "serve": "Run a team's guard: one decision point, live runs, approvals, history in a browser.",
        "approvals": "List the questions of a team's guard, and answer them.",
        "watch": "Watch live runs: probability and its course, last calls, alarms.",
        "audit": "Check that nobody has changed a guard's decision log.",
        "drift": "Say whether a deployment's runs still fit a model.",
        "update": "Add runs of your own to a model.",
        "calibrate": "Choose a model's thresholds for a false-alarm budget, a recall, or costs.",
    },
    "Run the published study": {
        "study": "Scenarios, collected runs, the monitor on trial, the paper's analyses, review, judge.",
    },
    "See it at work": {
        "demo": "See where the published chain stops and what the guard stops; replay three runs.",
    },
}

RENAMED: Mapping[str, str] = {
    "effect": "explain --json",
    **{verb: f"study {verb}" for verb in ("scenario", "collect", "trial", "reproduce", "review", "judge")},
}
"""What verbs are called now, by what they were called once."""

EXIT_CODES = """\b
Exit codes:
  0    done
  1    stopped by an unexpected error (a bug: please report it)
  2    the command line was wrong
  3    the input was refused: unreadable, malformed or damaged
  130  interrupted"""


class Verbs(click.Group):
    """A group that imports a verb only when it is called.

    Parameters
    ----------
    package
        Where the verbs are: one module each.
    sections
        What each verb does, by heading.
    renamed
        What verbs are called now, by what they were called once.
    """

    def __init__(
        self,
        *args: Any,
        package: str,
        sections: Mapping[str, Mapping[str, str]],
        renamed: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self.package, self.sections, self.renamed = package, sections, renamed or {}
        self.known = [verb for verbs in sections.values() for verb in verbs]

    def list_commands(self, ctx: click.Context) -> list[str]:  # as click asks
        """Return the verbs, section after section."""
        return self.known

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a verb; None if there is none of that name.

        Raises
        ------
        UsageError
            If the verb is called otherwise now.
        """
        if cmd_name in self.renamed:
            raise click.UsageError(f"{cmd_name!r} is now: {ctx.command_path} {self.renamed[cmd_name]}", ctx)
        if cmd_name not in self.known:
            return None
        command: click.Command = getattr(import_module(f"{self.package}.{cmd_name}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs by section, without importing them."""
        for heading, verbs in self.sections.items():
            with formatter.section(heading):
                formatter.write_dl(list(verbs.items()))


@click.group(
    cls=Verbs,
    package="safetydrift.cli",
    sections=SECTIONS,
    renamed=RENAMED,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EXIT_CODES,
)
@click.version_option(__version__, prog_name="safetydrift")
def app() -> None:
    """Watch an agent's trajectory; know the probability of a violation before it happens.

    PATHS are trace files or folders of them (AgentDojo, OpenHands, ODCV-Bench, OpenAI- or Anthropic-style chats,
    our own formats; plain, .gz, .xz or .zst), or the word "corpus" for the real runs that come with SafetyDrift.

    \b
    Example:
      safetydrift fit corpus -o model.json
      safetydrift predict my-traces/ --model model.json -o predictions.jsonl

    \b
    Shell completion (bash; zsh and fish alike):
      eval "$(_SAFETYDRIFT_COMPLETE=bash_source safetydrift)"
    """
