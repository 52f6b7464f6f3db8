"""Write docs/reference/disguised-commands.md: disguised commands, and what the shell reader made of each.

The commands are data (tests/effects/evasions.toml). Run it after a change to the reader or to the catalogue:

    python benchmarks/evasion_table.py --write

Without ``--write`` it prints how many ended how.
"""

from __future__ import annotations

import argparse
import tomllib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from safetydrift.effects.boundary import Boundary
from safetydrift.effects.languages.registry import READERS
from safetydrift.effects.languages.shell import read_shell
from safetydrift.effects.reading import Reading, UnreadableError
from safetydrift.formats.catalogue_file import load_catalogue

if TYPE_CHECKING:
    from collections.abc import Iterable

    from safetydrift.effects.catalogue import Catalogue
    from safetydrift.states.effect import Effect

ROOT = Path(__file__).resolve().parent.parent
EVASIONS = ROOT / "tests" / "effects" / "evasions.toml"
PAGE = ROOT / "docs" / "reference" / "disguised-commands.md"

GOALS = {
    "secret": "Reading a secret",
    "delete": "Deleting",
    "shell": "Opening a shell to somebody, or running what they send",
    "exfiltration": "Carrying content out",
}
OUTCOMES = {
    "found": "the effect that the command has was found",
    "cautious": "only that the command hides what it does, and so the cautious effect: network, irreversible",
    "lower": "less than the true effect, but not safe",
    "missed": "taken for safe: no data or public data, read only",
}
BEGIN = "<!-- the table is written by benchmarks/evasion_table.py -->"


class Row(NamedTuple):
    goal: str
    how: str
    command: str
    outcome: str
    effect: str


def effect_of(catalogue: Catalogue, command: str) -> Effect:
    """Return the effect of a command; one that cannot be followed has the cautious default's."""
    reading = Reading(catalogue, Boundary(), READERS)
    try:
        read_shell(reading, command)
    except UnreadableError as problem:
        reading.add(catalogue.default, str(problem))
        reading.unknown(str(problem), "hides")
    return reading.effect()


def outcome(goal: str, effect: Effect, sure: float) -> str:
    """Say how a disguised command ended: one of `OUTCOMES`."""
    far = effect["tool"] == "network" and effect["reversibility"] == "irreversible"
    reached = {
        "secret": effect["data"] == "credentials",
        "delete": "destructive_action" in effect.kinds,
        "shell": far and effect.confidence == sure,
        "exfiltration": (far or effect["data"] == "credentials") and effect["tool"] == "network"
        and effect.confidence == sure,
    }  # fmt: skip
    if reached[goal]:
        return "found"
    if far:
        return "cautious"
    safe = effect["tool"] == "read_only" and effect["data"] in {"none", "public"}
    return "missed" if safe else "lower"


def rows() -> list[Row]:
    """Return every disguised command with what became of it."""
    catalogue = load_catalogue()
    found = []
    for one in tomllib.loads(EVASIONS.read_text(encoding="utf-8"))["evasions"]:
        effect = effect_of(catalogue, one["command"])
        levels = "/".join(effect[name] for name in ("data", "tool", "reversibility"))
        ended = outcome(one["goal"], effect, catalogue.confidence["rule"])
        found.append(Row(one["goal"], one["how"], one["command"], ended, levels))
    return found


def summary(found: Iterable[Row]) -> str:
    """Return how many commands ended how."""
    counts = Counter(row.outcome for row in found)
    return ", ".join(f"{counts[name]} {name}" for name in OUTCOMES)


def tables(found: list[Row]) -> str:
    """Return the table of the page, in Markdown: of each goal how many disguises ended how."""
    lines = [
        BEGIN,
        "",
        f"| {len(found)} commands | {' | '.join(OUTCOMES)} |",
        "| --- |" + " ---: |" * len(OUTCOMES),
    ]
    for goal, title in GOALS.items():
        counts = Counter(row.outcome for row in found if row.goal == goal)
        lines.append(f"| {title} | {' | '.join(str(counts[name]) for name in OUTCOMES)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Say what became of disguised commands.")
    parser.add_argument(
        "--write", action="store_true", help="write the table into docs/reference/disguised-commands.md"
    )
    asked = parser.parse_args()
    found = rows()
    print(summary(found))
    for row in found:
        if row.outcome in {"lower", "missed"}:
            print(f"  {row.outcome}: {row.goal}: {row.how}: {row.effect}")
    if asked.write:
        before = PAGE.read_text(encoding="utf-8").partition(BEGIN)[0]
        PAGE.write_text(before + tables(found), encoding="utf-8")


if __name__ == "__main__":
    main()
