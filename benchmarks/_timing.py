"""What every benchmark program shares: timing calls, keeping figures, and saying on what they were measured."""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Timing(NamedTuple):
    """Times of one call, in seconds."""

    min: float
    median: float
    max: float

    @classmethod
    def of(cls, seconds: list[float]) -> Timing:
        return cls(min(seconds), statistics.median(seconds), max(seconds))

    def __str__(self) -> str:
        unit, factor = ("ms", 1e3) if self.median >= 1e-4 else ("ns", 1e9)
        return " / ".join(f"{factor * seconds:.{3 if unit == 'ms' else 0}f}" for seconds in self) + f" {unit}"

    def scaled(self, factor: float) -> Timing:
        return Timing(*(factor * seconds for seconds in self))


def measure(fn: Callable[[], object], repeat: int = 7) -> Timing:
    """Time a call `repeat` times, after one call that is not counted and without the garbage collector."""
    return interleaved({"": fn}, repeat)[""]


def interleaved(
    calls: Mapping[str, Callable[[], object]],
    repeat: int = 7,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Timing]:
    """Time several calls in turn, `repeat` rounds of all of them, so that a slow moment of the machine hits all.

    One round before is not counted, and there is no garbage collection.
    """
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for fn in calls.values():
        fn()
    gc.collect()
    gc.disable()
    try:
        for _ in range(repeat):
            for name, fn in calls.items():
                start = clock()
                fn()
                seconds[name].append(clock() - start)
    finally:
        gc.enable()
    return {name: Timing.of(taken) for name, taken in seconds.items()}


def environment() -> dict[str, Any]:
    """Say what a figure depends on besides the code."""
    packages: dict[str, str | None] = {}
    for name in ("msgspec", "numpy", "safetydrift"):
        try:
            packages[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            packages[name] = None
    return {
        "python": sys.version.split()[0],
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "blas_threads": os.environ.get("OPENBLAS_NUM_THREADS"),
        "packages": packages,
    }


def options(title: str) -> argparse.Namespace:
    """Read what every program understands."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--output", type=Path, help="write the figures to this JSON file")
    parser.add_argument(
        "--sessions", type=Path, help="recorded sessions, for a program that goes through some"
    )
    parser.add_argument("--quick", action="store_true", help="smaller inputs, where a program has a choice")
    return parser.parse_args()


def report(title: str, timings: dict[str, Timing], ratios: dict[str, tuple[float, str]]) -> None:
    """Print the timings and the ratios, each with its goal; write both where ``--output`` says.

    A goal is ``none`` or a bound such as ``>= 25``. What is no ratio names its unit.
    """
    output = options(title).output
    print(f"{title}\nmin / median / max of one run")
    for name, timing in timings.items():
        print(f"  {name:<58} {timing}")
    print("ratios of medians")
    for name, (ratio, goal) in ratios.items():
        print(f"  {name:<58} {ratio:.2f}   goal {goal}")
    if output:
        figures = {
            "title": title,
            "environment": environment(),
            "seconds": {name: timing._asdict() for name, timing in timings.items()},
            "ratios": {name: {"ratio": ratio, "goal": goal} for name, (ratio, goal) in ratios.items()},
        }
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
