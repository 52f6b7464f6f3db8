"""One guarded step: session, lock, memo, clock and a buffered, chained decision record included.

A step is a proposal and its confirmation. Every call is timed in the same rounds, and what counts is its ratio to an
empty method with two arguments. The shipped model has a hazard and follows what was said and read, which costs as
much again; "tables only" is the same guard on a model of tables in the published space, which
asks for neither. No agent framework and no network is included.
"""

from __future__ import annotations

import gc
import sys
import tempfile
import time
import tracemalloc
from functools import partial
from itertools import count
from pathlib import Path
from statistics import quantiles
from timeit import Timer
from typing import TYPE_CHECKING

from _timing import interleaved, options, report

from safetydrift.formats import load_catalogue, load_model, load_space
from safetydrift.guard import DecisionLog, Guard
from safetydrift.monitor.fitting import fit_model
from safetydrift.monitor.settings import FitSettings
from safetydrift.states.trajectory import Trajectory
from safetydrift.trace import Ending, Label, ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable

    from safetydrift.monitor.model import Model

TITLE = "One guarded step"
CATALOGUED = ToolCall("get_most_recent_transactions", {"n": 5})
FLOOR = "empty method, two arguments"


class Empty:
    def step(self, one: object, other: object) -> None:
        pass


def tables_only() -> Model:
    """Return a model of a few runs in the published space."""
    space = load_space("paper")
    read, send = (
        space.encode({"data": "sensitive"}),
        space.encode({"tool": "network", "reversibility": "irreversible"}),
    )
    runs = [
        Trajectory.of_columns(
            f"run-{n}",
            effects=(read, send),
            states=(0, read, space.after(read, send)),
            ending=Ending.COMPLETED,
            label=Label(violated=n % 2 == 0, onset=2 if n % 2 == 0 else None),
            tools=("read", "send"),
        )
        for n in range(8)
    ]
    return fit_model(runs, space, load_catalogue(), FitSettings(strength=0.0), threshold=0.9)[0]


def stepping(guard: Guard, key: str) -> Callable[[], None]:
    guard.session(key, "Pay the rent to anna", category="banking")

    def step() -> None:
        decision = guard.propose(key, CATALOGUED)
        guard.confirm(key, decision.call_id, "[]")

    return step


def after(guard: Guard, key: str, steps: int) -> Callable[[], None]:
    step = stepping(guard, key)
    for _ in range(steps):
        step()
    return step


def shell_commands(guard: Guard, number: int) -> list[float]:
    """Return how long each of so many proposals of a shell command with content took, in seconds; no two are alike."""
    guard.session("shell", "Send the report")
    taken = []
    for one in range(number):
        text = f"Dear anna, the report {one} is ready; the totals of the quarter are in the table below. " * 4
        call = ToolCall("bash", {"command": f"mail -s 'report {one}' anna@example.org <<'EOF'\n{text}\nEOF"})
        start = time.perf_counter()
        decision = guard.propose("shell", call)
        taken.append(time.perf_counter() - start)
        guard.release("shell", decision.call_id)
    return taken


def blocks_grown(guard: Guard, steps: int) -> int:
    step = after(guard, "blocks", 300)
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(steps):
        step()
    gc.collect()
    return sys.getallocatedblocks() - before


def bytes_of_sessions(model: Model, sessions: int, steps: int) -> int:
    """Return the memory that so many sessions take after some steps each, in bytes."""
    guard = Guard(model)
    after(guard, "warm", 10)
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for number in range(sessions):
        after(guard, f"run-{number}", steps)
    gc.collect()
    now, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return now - before


def main() -> None:
    quick = options(TITLE).quick
    times, rounds, long, million = (200, 9, 2_000, 20_000) if quick else (1_000, 21, 10_000, 1_000_000)
    sessions = 1_000 if quick else 10_000
    numbers = count()
    with tempfile.TemporaryDirectory() as folder:

        def guard(model: Model) -> Guard:
            return Guard(model, log=DecisionLog(Path(folder) / f"{next(numbers)}.jsonl"))

        shipped = load_model()
        with guard(shipped) as full, guard(tables_only()) as tables:
            state = full.monitor.start("banking")
            names = {
                "empty": Empty(),
                "monitor": tables.monitor,
                "start": tables.monitor.start(),
                "move": tables.monitor.read_call(tables.monitor.start(), CATALOGUED).move,
                "full": full.monitor,
                "full_start": state,
                "call": CATALOGUED,
            }
            statements = {
                FLOOR: "empty.step(start, move)",
                "bare observe, tables only": "monitor.verdict(monitor.follow(start, move))",
                "check_pending alone, shipped model": "full.check_pending(full_start, call)",
            }
            steps = {
                "guard step, tables only": stepping(tables, "tables"),
                "guard step, shipped model, step 10": after(full, "early", 10),
                f"guard step, shipped model, step {long:,}": after(full, "late", long),
            }
            calls = {
                name: partial(Timer(what, globals=names).timeit, times) for name, what in statements.items()
            }
            calls |= {name: partial(Timer(step).timeit, times) for name, step in steps.items()}
            timings = {name: timing.scaled(1 / times) for name, timing in interleaved(calls, rounds).items()}
            taken = sorted(shell_commands(full, 10 * times))
            grown = blocks_grown(full, million)
        memory = bytes_of_sessions(shipped, sessions, 5)
    goals = {"bare observe, tables only": "<= 6", "guard step, tables only": "<= 30"}
    floor = timings[FLOOR].median
    ratios = {
        f"{name} / empty method": (timing.median / floor, goals.get(name, "none"))
        for name, timing in timings.items()
        if name != FLOOR
    }
    early, late = (timings[name].median for name in list(steps)[1:])
    ratios[f"guard step: step {long:,} / step 10"] = late / early, "<= 1.1"
    hundredths = quantiles(taken, n=100)
    ratios["shell command with content, p50, us"] = 1e6 * hundredths[49], "<= 150"
    ratios["shell command with content, p99, us"] = 1e6 * hundredths[98], "<= 1000"
    ratios[f"blocks grown over {million:,} steps"] = grown, "<= 64"
    ratios["MB for 10,000 sessions of 5 steps"] = memory * 10_000 / sessions / 1e6, "<= 200"
    report(TITLE, timings, ratios)


if __name__ == "__main__":
    main()
