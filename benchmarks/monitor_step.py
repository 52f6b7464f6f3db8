"""One step of the monitor, from the bare look-up to a shell command it has never seen.

Every call is timed in the same rounds, and what counts is its ratio to an empty method with two arguments, the
least that a call of ours could cost in Python. "Bare observe" takes the effect by its index: reading the call is
not part of it, `check` and `check_pending` are. The idiomatic stand-in does what a bare observe does in the style
most code would choose: enums, a frozen dataclass, ``max``, and a reason written out at every step, which the
monitor writes only when asked. No session store, lock, clock, log or agent framework is included, and a step
beside a model that takes seconds to answer is not a throughput.
"""

from __future__ import annotations

import gc
import sys
import tracemalloc
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from itertools import count
from timeit import Timer
from typing import TYPE_CHECKING, NamedTuple

from _timing import interleaved, options, report

from safetydrift.effects.labeler import Labeler
from safetydrift.formats import load_catalogue, load_space
from safetydrift.formats.trajectories import TrajectoryReader
from safetydrift.monitor.fitting import fit_model
from safetydrift.monitor.lookup import LookupMonitor
from safetydrift.states.trajectory import Move
from safetydrift.trace import Step, ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable

    from safetydrift.monitor.model import Model
    from safetydrift.monitor.session import TrajectoryState

TITLE = "One step of the monitor"
CATEGORY = "banking"
CATALOGUED = ToolCall("get_most_recent_transactions", {"n": 5})
SHELL = ToolCall("bash", {"command": "cd src && grep -rn 'token' --include='*.py' . | head -20"})
FLOOR = "empty method, two arguments"
BY_INDEX = "next state and its verdict, by index"
IDIOMATIC = "idiomatic stand-in"


class Sizes(NamedTuple):
    calls: int
    fresh: int
    rounds: int
    steps: int


# -- the idiomatic stand-in ------------------------------------------------------------------------------


class Data(IntEnum):
    NONE = 0
    PUBLIC = 1
    INTERNAL = 2
    SENSITIVE = 3
    CREDENTIALS = 4


class Tool(IntEnum):
    READ_ONLY = 0
    LOCAL_WRITE = 1
    CODE_EXEC = 2
    NETWORK = 3


class Undo(IntEnum):
    FULLY = 0
    PARTIALLY = 1
    IRREVERSIBLE = 2


@dataclass(frozen=True)
class Position:
    data: Data
    tool: Tool
    undo: Undo


@dataclass(frozen=True)
class Finding:
    position: Position
    probability: float
    alarm: bool
    reason: str


class IdiomaticMonitor:
    """Joins and looks up as readable code does when nobody counts nanoseconds."""

    def __init__(self, probabilities: list[float], threshold: float, horizon: int) -> None:
        self.probabilities, self.threshold, self.horizon = probabilities, threshold, horizon

    def observe(self, position: Position, effect: Position) -> tuple[Position, Finding]:
        after = Position(max(position.data, effect.data), max(position.tool, effect.tool), effect.undo)
        probability = self.probabilities[12 * after.data + 3 * after.tool + after.undo]
        reason = f"{probability:.2f} within {self.horizon} steps, threshold {self.threshold:.2f}"
        return after, Finding(after, probability, probability >= self.threshold, reason)


class Empty:
    def step(self, one: object, other: object) -> None:
        pass


# -- the calls -------------------------------------------------------------------------------------------


def state_after(monitor: LookupMonitor, steps: int) -> TrajectoryState:
    """Return where a run stands after the catalogued call was made this many times."""
    state = monitor.start(CATEGORY)
    for _ in range(steps):
        state, _ = monitor.check(state, Step(CATALOGUED))
    return state


def published_model() -> Model:
    """Return tables of the published space, whose three dimensions are those of the idiomatic monitor."""
    space, catalogue = load_space("paper"), load_catalogue()
    return fit_model(list(TrajectoryReader(["corpus"], space, Labeler(catalogue))), space, catalogue)[0]


def position_of(monitor: LookupMonitor, state: int) -> Position:
    data, tool, undo = monitor.model.space.digits(state)
    return Position(Data(data), Tool(tool), Undo(undo))


def stand_in(monitor: LookupMonitor) -> IdiomaticMonitor:
    probabilities = [verdict.probability for verdict in monitor.current_verdicts(CATEGORY)]
    return IdiomaticMonitor(probabilities, monitor.policy.threshold, monitor.policy.horizon)


STATEMENTS = {
    FLOOR: "empty.step(early, effect)",
    "verdict, by index": "monitor.current_verdicts(category)[index]",
    BY_INDEX: "monitor.current_verdicts(category)[space.successors(index)[effect]]",
    "verdict(state)": "monitor.verdict(early)",
    "bare observe, step 10": "monitor.verdict(monitor.follow(early, move))",
    "bare observe, step 10,000": "monitor.verdict(monitor.follow(late, move))",
    IDIOMATIC: "idiomatic.observe(here, there)",
    "check, catalogued tool, step 10": "monitor.check(early, step)",
    "check, catalogued tool, step 10,000": "monitor.check(late, step)",
    "check_pending, catalogued tool, step 10": "monitor.check_pending(early, call)",
    "check_pending, catalogued tool, step 10,000": "monitor.check_pending(late, call)",
    "check, shell command seen before": "monitor.check(early, shell_step)",
    "check_pending, shell command seen before": "monitor.check_pending(early, shell_call)",
}


def step_calls(monitor: LookupMonitor, times: int) -> dict[str, Callable[[], object]]:
    """Return, by name, functions that run one statement this many times."""
    space = monitor.model.space
    early, late = (state_after(monitor, length) for length in (10, 10_000))
    effect = space.effect_index(monitor.labeler.propose(CATALOGUED))
    names = {
        "monitor": monitor,
        "space": space,
        "category": CATEGORY,
        "early": early,
        "late": late,
        "index": early.state,
        "effect": effect,
        "move": Move(CATALOGUED.name, effect, effect),
        "call": CATALOGUED,
        "step": Step(CATALOGUED, "[]"),
        "shell_call": SHELL,
        "shell_step": Step(SHELL, ""),
        "empty": Empty(),
        "idiomatic": stand_in(monitor),
        "here": position_of(monitor, early.state),
        "there": position_of(monitor, effect),
    }
    return {
        name: partial(Timer(statement, globals=names).timeit, times) for name, statement in STATEMENTS.items()
    }


def fresh_commands(monitor: LookupMonitor, times: int) -> Callable[[], None]:
    """Return a function that checks shell commands of which no two are alike."""
    numbers = count()
    state = monitor.start(CATEGORY)

    def check() -> None:
        for number in (next(numbers) for _ in range(times)):
            command = f"cd src && grep -rn 'token{number}' --include='*.py' . | head -20"
            monitor.check(state, Step(ToolCall("bash", {"command": command}), ""))

    return check


def memory(monitor: LookupMonitor, steps: int) -> tuple[int, int]:
    """Return allocated blocks, then peak bytes, by which a run of this many steps grew."""
    step = Step(CATALOGUED, "[]")

    def run(length: int) -> None:
        state = monitor.start(CATEGORY)
        for _ in range(length):
            state, _ = monitor.check(state, step)

    run(100)
    gc.collect()
    before = sys.getallocatedblocks()
    run(steps)
    gc.collect()
    blocks = sys.getallocatedblocks() - before
    tracemalloc.start()
    run(100)
    tracemalloc.reset_peak()
    size, _ = tracemalloc.get_traced_memory()
    run(steps // 10)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return blocks, peak - size


def main() -> None:
    sizes = Sizes(2_000, 100, 15, 100_000) if options(TITLE).quick else Sizes(10_000, 400, 31, 1_000_000)
    monitor = LookupMonitor(published_model())
    unseen = "check, shell command never seen"
    calls = step_calls(monitor, sizes.calls) | {unseen: fresh_commands(monitor, sizes.fresh)}
    timings = interleaved(calls, sizes.rounds)
    timings = {
        name: timing.scaled(1 / (sizes.fresh if name == unseen else sizes.calls))
        for name, timing in timings.items()
    }
    blocks, peak = memory(monitor, sizes.steps)

    def ratio(name: str, other: str) -> float:
        return timings[name].median / timings[other].median

    observe = "bare observe, step 10"
    ratios = {f"{name} / empty method": (ratio(name, FLOOR), "none") for name in timings if name != FLOOR}
    ratios[f"{observe} / empty method"] = ratio(observe, FLOOR), "<= 6"
    for name in (observe, BY_INDEX):
        ratios[f"{IDIOMATIC} / {name}"] = ratio(IDIOMATIC, name), "none"
    for name in ("bare observe", "check, catalogued tool", "check_pending, catalogued tool"):
        longer = ratio(f"{name}, step 10,000", f"{name}, step 10")
        ratios[f"{name}: step 10,000 / step 10"] = longer, "<= 1.05"
    ratios[f"blocks grown over {sizes.steps:,} steps"] = blocks, "<= 8"
    ratios[f"peak growth over {sizes.steps // 10:,} steps, KiB"] = peak / 1024, "<= 4"
    report(TITLE, timings, ratios)


if __name__ == "__main__":
    main()
