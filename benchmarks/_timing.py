"""What every benchmark program shares: timing a call, and saying on what it ran."""

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
    from collections.abc import Callable


class Timing(NamedTuple):
    """Wall times of one call, in seconds."""

    min: float
    median: float
    max: float

    def __str__(self) -> str:
        return " / ".join(f"{1e3 * seconds:.3f}" for seconds in self) + " ms"

    def scaled(self, factor: float) -> Timing:
        return Timing(*(factor * seconds for seconds in self))


def measure(fn: Callable[[], object], repeat: int = 7) -> Timing:
    """Time a call `repeat` times, after one call that is not counted and without the garbage collector."""
    fn()
    seconds = []
    gc.collect()
    gc.disable()
    try:
        for _ in range(repeat):
            start = time.perf_counter()
            fn()
            seconds.append(time.perf_counter() - start)
    finally:
        gc.enable()
    return Timing(min(seconds), statistics.median(seconds), max(seconds))


def environment() -> dict[str, Any]:
    """Say what a figure depends on besides the code."""
    packages: dict[str, str | None] = {}
    for name in ("numpy", "safetydrift"):
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


def report(title: str, timings: dict[str, Timing], ratios: dict[str, tuple[float, str]]) -> None:
    """Print the timings and the ratios, each with its goal; write both where ``--output`` says."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--output", type=Path, help="write the figures to this JSON file")
    output = parser.parse_args().output
    print(f"{title}\nmin / median / max of one run")
    for name, timing in timings.items():
        print(f"  {name:<52} {timing}")
    print("ratios of medians")
    for name, (ratio, goal) in ratios.items():
        print(f"  {name:<52} {ratio:.2f}   goal {goal}")
    if output:
        figures = {
            "title": title,
            "environment": environment(),
            "seconds": {name: timing._asdict() for name, timing in timings.items()},
            "ratios": {name: {"ratio": ratio, "goal": goal} for name, (ratio, goal) in ratios.items()},
        }
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(json.dumps(figures, indent=2) + "\n")
