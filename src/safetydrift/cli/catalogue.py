"""``safetydrift catalogue``."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from safetydrift.cli import options
from safetydrift.cli.inputs import Inputs
from safetydrift.cli.output import console, emit_json, percent, table

if TYPE_CHECKING:
    from collections.abc import Mapping

SHOWN = 20
UNDECIDED = ("default", "judge")


@click.group
def catalogue() -> None:
    """Check a catalogue: how much of what agents do it covers.

    \b
    Example:
      safetydrift catalogue check traces/
    """


@catalogue.command
@options.paths
@options.labelling()
@options.reading
@options.as_json
def check(
    paths: tuple[str, ...], labelling: options.Labelling, reading: options.Reading, as_json: bool
) -> None:
    """Show which calls of recorded runs the catalogue decides, and which tools it does not know.

    \b
    Example:
      safetydrift catalogue check traces/ --catalogue ours.toml
    """
    space, labeler = labelling.load()
    inputs = Inputs(paths, space, labeler, reading)
    for _ in inputs:
        pass
    found = _coverage(inputs.tally())
    if as_json:
        emit_json(found | {"catalogue": labeler.catalogue.name, "identity": labeler.catalogue.identity})
    else:
        _show(found)
    inputs.summarise()


def _coverage(tally: Mapping[tuple[str, str], int]) -> dict[str, Any]:
    """Return shares of calls by layer, and the tools by how their calls were decided."""
    layers: Counter[str] = Counter()
    tools: dict[str, Counter[str]] = {}
    for (layer, tool), count in tally.items():
        layers[layer] += count
        tools.setdefault(tool, Counter())[layer] += count
    total = sum(layers.values())
    undecided = {
        tool: sum(by[layer] for layer in UNDECIDED)
        for tool, by in tools.items()
        if any(by[layer] for layer in UNDECIDED)
    }
    guessed = {tool: by["pattern"] for tool, by in tools.items() if by["pattern"]}
    return {
        "calls": total,
        "tools": len(tools),
        "layers": dict(layers.most_common()),
        "decided": None if not total else 1 - sum(undecided.values()) / total,
        "undecided": dict(Counter(undecided).most_common()),
        "by_pattern_only": dict(Counter(guessed).most_common()),
    }


def _show(found: dict[str, Any]) -> None:
    if not found["calls"]:
        console.print("No call was labelled: labelled runs hold effects already; give the traces themselves.")
        return
    shares = [(layer, count, percent(count / found["calls"])) for layer, count in found["layers"].items()]
    title = f"{found['calls']:,} calls of {found['tools']:,} tools, by what decided"
    console.print(table(title, ("layer", "calls", "share"), shares))
    console.print(f"\nDecided without the default or a judge: {percent(found['decided'])}")
    for title, key in (
        ("\nCalls that nothing decides", "undecided"),
        ("\nTools known by a pattern alone; entries of their own would say more", "by_pattern_only"),
    ):
        rows = list(found[key].items())
        if rows:
            console.print(table(title, ("tool", "calls"), rows[:SHOWN]))
            if len(rows) > SHOWN:
                console.print(f"and {len(rows) - SHOWN} more")
