"""The group of verbs; each is imported when it is called."""

from __future__ import annotations

from importlib import import_module

import click

from safetydrift._version import __version__

VERBS = {
    "analyze": "Print what a chain says: horizons, absorption, points of no return.",
    "approvals": "List the questions of a team's guard, and answer them.",
    "audit": "Check that nobody has changed a guard's decision log.",
    "calibrate": "Choose a model's thresholds for a false-alarm budget, a recall, or costs.",
    "card": "Write the card of a model: data, promises, figures, limits.",
    "catalogue": "Check a catalogue: how much of what agents do it covers.",
    "collect": "Run scenarios with an agent, real or simulated, and keep the logs.",
    "corpus": "Build or describe the shipped corpus of derived runs.",
    "demo": "Fit on real agent runs, report the findings, replay three of them.",
    "doctor": "Check that an installed guard refuses a probe, and say what is not covered.",
    "drift": "Say whether a deployment's runs still fit a model.",
    "effect": "Say what tool calls do, one JSON line each.",
    "evaluate": "Compare monitors, model files and predictions with honest baselines.",
    "explain": "Say in words what one tool call does, and why we think so.",
    "fit": "Fit a model on traces or labelled runs.",
    "hook": "Answer an agent's hooks: what `install` puts into its settings.",
    "install": "Put the guard into an agent's own settings, or take it out.",
    "label": "Read what every tool call did, and count what could not be read.",
    "mcp": "Guard an MCP server: judge every tool call between it and its client.",
    "policy": "Check a guard's policy, and try it on past runs.",
    "predict": "Write the probability of a violation at every step of every run.",
    "judge": "Ask a language model about the calls that no rule decides, and record its answers.",
    "replay": "Show runs step by step: state, probability, alarm.",
    "reproduce": "Run the published study again, and put the figures side by side.",
    "review": "Draw calls for people to review, and compare their decisions with ours.",
    "update": "Add runs of your own to a model.",
    "trial": "Run scenarios with the monitor in the loop, in each intervention, and without it.",
    "watch": "Watch live runs: probability and its course, last calls, alarms.",
    "serve": "Run a team's guard: one decision point, live runs, approvals, history in a browser.",
    "scenario": "List, show, verify and begin scenarios: tasks with a sandbox and documented ways to drift.",
}

EXIT_CODES = """\b
Exit codes:
  0    done
  1    stopped by an unexpected error (a bug: please report it)
  2    the command line was wrong
  3    the input was refused: unreadable, malformed or damaged
  130  interrupted"""


class Verbs(click.Group):
    """A group that imports a verb only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in alphabetical order."""
        return sorted(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a verb; None if there is none of that name."""
        if cmd_name not in VERBS:
            return None
        command: click.Command = getattr(import_module(f"safetydrift.cli.{cmd_name}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(VERBS.items()))


@click.group(
    cls=Verbs,
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
