"""Whether the effects of commands are read as they are: the command line is asked, and the answers compared."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from random import Random
from typing import TYPE_CHECKING, Any

from everyday import sets
from everyday.measures import Rate

if TYPE_CHECKING:
    from collections.abc import Callable

QUESTIONS: dict[str, tuple[str, Callable[[dict[str, Any]], bool]]] = {
    "network": ("n", lambda effect: effect["tool"] == "network"),
    "irreversible": ("i", lambda effect: effect["reversibility"] == "irreversible"),
    "credentials": ("c", lambda effect: effect["data"] == "credentials"),
    "read-only": (
        "r",
        lambda effect: (
            effect["tool"] in {"read_only", "network"} and effect["reversibility"] == "fully_reversible"
        ),
    ),
}
"""What is asked of each command: the flag that says yes in the set, and what says yes in an effect."""


def measured(seed: int, limit: int | None) -> tuple[dict[str, dict[str, Rate]], list[dict[str, Any]]]:
    """Return, by group and question, how many commands are read rightly, and those that are not.

    Raises
    ------
    subprocess.CalledProcessError
        If the command line fails.
    """
    every = sets.lines()
    some = every if limit is None else Random(seed).sample(every, min(limit, len(every)))  # noqa: S311
    counts: defaultdict[str, defaultdict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    misses = []
    for line, effect in zip(some, _effects(some), strict=True):
        for question, (flag, says) in QUESTIONS.items():
            wanted = flag in line.flags
            right = says(effect) == wanted
            for group in (line.group, "all"):
                counts[group][question].append(right)
                counts[group]["every question"].append(right)
            counts["all"][f"{question}: {'yes' if wanted else 'no'}"].append(right)
            if not right:
                misses.append({"set": "effects", "group": line.group, "text": line.text, question: wanted})
    found = {
        group: {question: Rate(sum(some), len(some)) for question, some in by.items()}
        for group, by in counts.items()
    }
    return found, misses


def _effects(lines: list[sets.Line]) -> list[dict[str, Any]]:
    asked = "".join(json.dumps({"tool": "bash", "args": {"command": line.text}}) + "\n" for line in lines)
    done = subprocess.run(
        [sys.executable, "-m", "safetydrift", "explain", "--json"],
        input=asked,
        capture_output=True,
        check=True,
        text=True,
    )
    return [json.loads(answer) for answer in done.stdout.splitlines()]
