"""Run every benchmark program, one after the other, and print what they found as one table.

Each program is a process of its own and writes its figures to a file; a figure without a goal is in the files and
not in the table. Nothing else should be running, and the verdict of one run is about that run.
"""

from __future__ import annotations

import argparse
import json
import operator
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAMS = (
    "monitor_step",
    "labelling",
    "shell_reading",
    "sql_reading",
    "code_reading",
    "content_scan",
    "request_hearing",
    "folding",
    "jsonl",
    "readers",
    "imports",
    "guard_step",
    "hook_process",
    "mcp_proxy",
    "adapters",
    "markov_counting",
    "markov_horizons",
)
BOUNDS = {">=": operator.ge, "<=": operator.le, "<": operator.lt}
HEADINGS = ("what", "figure", "goal", "reached")


class Row(NamedTuple):
    what: str
    figure: float
    goal: str

    @property
    def reached(self) -> bool:
        sign, bound = self.goal.split()
        return bool(BOUNDS[sign](self.figure, float(bound)))


def run(program: str, output: Path, *, quick: bool) -> dict[str, Any]:
    """Run a program and return its figures."""
    path = output / f"{program}.json"
    command = [sys.executable, str(Path(__file__).with_name(f"{program}.py")), "--output", str(path)]
    print(f"== {program}", flush=True)
    subprocess.run([*command, "--quick"] if quick else command, check=True)
    figures: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return figures


def rows(figures: dict[str, Any]) -> Iterator[Row]:
    for what, part in figures["ratios"].items():
        if part["goal"] != "none":
            yield Row(what, part["ratio"], part["goal"])


def table(found: dict[str, list[Row]]) -> str:
    """Return the figures with a goal as a table in Markdown."""
    lines = ["| " + " | ".join(HEADINGS) + " |", "| --- | ---: | ---: | --- |"]
    for program, some in found.items():
        lines += [
            f"| {program}: {row.what} | {row.figure:.2f} | {row.goal} | {'yes' if row.reached else 'no'} |"
            for row in some
        ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Run every benchmark and tabulate the figures that have a goal."
    )
    parser.add_argument("--output", type=Path, required=True, help="folder for the figures of each program")
    parser.add_argument("--quick", action="store_true", help="smaller inputs, where a program has a choice")
    asked = parser.parse_args()
    found = {program: list(rows(run(program, asked.output, quick=asked.quick))) for program in PROGRAMS}
    summary = table(found)
    (asked.output / "summary.md").write_text(summary + "\n", encoding="utf-8")
    print(f"\n{summary}")
    missed = sum(not row.reached for some in found.values() for row in some)
    print(f"\n{sum(map(len, found.values()))} goals, {missed} of them missed")


if __name__ == "__main__":
    main()
