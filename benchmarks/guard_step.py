"""What guarding costs: a bare observation, one guarded step, recorded sessions with their content, and starting up.

A guarded step is a proposal and its confirmation: session, lock, memo, clock and a buffered, chained decision record
included, on processor time. Every call is timed in the same rounds, and what counts is its ratio to an empty method
with two arguments; of hooks, to an interpreter that does nothing. The shipped model has a risk score and follows what
was said and read; "tables only" is the same guard on a model of tables in the published space, which asks for
neither. With ``--sessions FOLDER`` recorded sessions are gone through, each call once, with its result. No agent
framework and no network is included.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
import time
import tracemalloc
from functools import partial
from itertools import count, islice
from pathlib import Path
from statistics import quantiles
from timeit import Timer
from typing import TYPE_CHECKING

from _timing import Timing, interleaved, options, report
from hook_process import GOALS as HOOK_GOALS
from hook_process import hooks

from safetydrift.formats import load_catalogue, load_model, load_space, read_traces
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
FLOOR, BARE = "empty method, two arguments", "python -c pass"
OBSERVE, STEP = "bare observe, tables only", "guard step, shipped model, step 10"
RESULT = 4096
"""Characters of a recorded result."""


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


def recorded(guard: Guard, sessions: Path, most: int) -> list[float]:
    """Return the processor time of each proposal with its confirmation along recorded sessions, in seconds.

    What the users say is heard before, and is not in it; results are cut off at `RESULT` characters.
    """
    taken = []
    for file in sorted(sessions.glob("*.jsonl.xz")):
        for number, trace in enumerate(islice(read_traces([file]), most)):
            key = f"{file.name}:{number}"
            guard.session(key, trace.task)
            for step in trace.steps:
                if step.said:
                    guard.hear(key, step.said)
                result = step.result[:RESULT] if isinstance(step.result, str) else step.result
                start = time.process_time()
                decision = guard.propose(key, step.call)
                guard.confirm(key, decision.call_id, result, error=step.error)
                taken.append(time.process_time() - start)
            guard.end(key)
    return taken


STARTING = """
import time
start = time.process_time()
import safetydrift
imported = time.process_time()
from safetydrift.guard.guard import Guard
whole = time.process_time()
Guard.load()
print(imported - start, whole - imported, time.process_time() - whole)
"""


def starting(rounds: int) -> dict[str, Timing]:
    """Return the processor time of importing the package, importing its guard, and loading that."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    found = []
    for number in range(rounds + 1):
        command = [sys.executable, "-c", STARTING]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        if number:  # the first one compiles
            found.append([float(part) for part in done.stdout.split()])
    names = ("import safetydrift", "importing the guard, after that", "Guard.load()")
    return {
        name: Timing.of(list(column)) for name, column in zip(names, zip(*found, strict=True), strict=True)
    }


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
    given = options(TITLE)
    quick = given.quick
    times, rounds, long, million = (200, 9, 2_000, 20_000) if quick else (1_000, 21, 10_000, 1_000_000)
    sessions = 1_000 if quick else 10_000
    numbers = count()
    taken: list[float] = []
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
                OBSERVE: "monitor.verdict(monitor.follow(start, move))",
                "check_pending alone, shipped model": "full.check_pending(full_start, call)",
            }
            steps = {
                "guard step, tables only": stepping(tables, "tables"),
                STEP: after(full, "early", 10),
                f"guard step, shipped model, step {long:,}": after(full, "late", long),
            }
            calls = {
                name: partial(Timer(what, globals=names).timeit, times) for name, what in statements.items()
            }
            calls |= {name: partial(Timer(step).timeit, times) for name, step in steps.items()}
            measured = interleaved(calls, rounds, time.process_time)
            timings = {name: timing.scaled(1 / times) for name, timing in measured.items()}
            grown = blocks_grown(full, million)
        if given.sessions is not None:
            with guard(shipped) as content:
                taken = recorded(content, given.sessions, 30 if quick else 400)
        memory = bytes_of_sessions(shipped, sessions, 5)
    timings |= starting(rounds) | {
        name: timing for name, timing in hooks(rounds).items() if name in {BARE, *HOOK_GOALS}
    }
    floor, bare = timings[FLOOR].median, timings[BARE].median
    ratios = {
        f"{name} / empty method": (timings[name].median / floor, goal)
        for name, goal in {OBSERVE: "<= 8", "guard step, tables only": "none", STEP: "<= 400"}.items()
    }
    ratios["guard step, shipped model, us"] = 1e6 * timings[STEP].median, "<= 25"
    early, late = (timings[name].median for name in list(steps)[1:])
    ratios[f"guard step: step {long:,} / step 10"] = late / early, "<= 1.1"
    if taken:
        hundredths = quantiles(taken, n=100)
        ratios[f"{len(taken):,} recorded calls with results, p50, us"] = 1e6 * hundredths[49], "<= 150"
        ratios["the same, p99, us"] = 1e6 * hundredths[98], "<= 1000"
        ratios["the same, p50 / empty method"] = hundredths[49] / floor, "none"
        ratios["the same, p99 / empty method"] = hundredths[98] / floor, "none"
    ratios |= {f"{name} / {BARE}": (timings[name].median / bare, goal) for name, goal in HOOK_GOALS.items()}
    ratios[f"blocks grown over {million:,} steps"] = grown, "<= 64"
    ratios["MB for 10,000 sessions of 5 steps"] = memory * 10_000 / sessions / 1e6, "<= 200"
    report(TITLE, timings, ratios)


if __name__ == "__main__":
    main()
