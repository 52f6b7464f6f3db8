"""``safetydrift study``: the published study, one module per verb."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from safetydrift.cli.app import Verbs

if TYPE_CHECKING:
    from collections.abc import Mapping

SECTIONS: Mapping[str, Mapping[str, str]] = {
    "Commands": {
        "scenario": "List, show, verify and begin scenarios: tasks with a sandbox and ways to drift.",
        "collect": "Run scenarios with an agent, real or simulated, and keep the logs.",
        "trial": "Run scenarios with the monitor in the loop, in each intervention, and without it.",
        "reproduce": "Run the whole study again, and put the figures side by side.",
        "review": "Draw calls for people to review, and compare their decisions with ours.",
        "judge": "Ask a language model about calls or steps, record its answers, label with them.",
    },
}


@click.group(cls=Verbs, package="safetydrift.cli.study", sections=SECTIONS)
def study() -> None:
    """Run the published study, or parts of it: on scenarios in a sandbox, or on traces of your own.

    Needs the extra [study]; looking at scenarios needs none.

    \b
    Example:
      safetydrift study scenario list
      safetydrift study reproduce -o study/
    """
