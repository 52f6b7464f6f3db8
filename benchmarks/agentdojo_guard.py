"""AgentDojo without a model: what a guard stops, and what it leaves to do.

The calls of each user task's ground truth are made, followed by those of each injection task's; the injected text
stands in the environment where an attack would put it. This isolates the guard: the agent always falls for the attack,
and knows every call that either side needs. Needs AgentDojo, in an environment of its own.

What counts is what was executed. ``attempted`` says what AgentDojo's own check would say, which counts refused calls
for some tasks.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from agentdojo.agent_pipeline import AgentPipeline, ToolsExecutor
from agentdojo.attacks import load_attack
from agentdojo.functions_runtime import FunctionsRuntime
from agentdojo.task_suite import get_suite
from agentdojo.types import ChatAssistantMessage, text_content_block_from_string

from safetydrift.guard import Guard
from safetydrift.integrations.agentdojo import GuardedToolsExecutor

if TYPE_CHECKING:
    from collections.abc import Sequence

VERSION = "v1.2.2"
SUITES = ("workspace", "travel", "banking", "slack")
ATTACK = "important_instructions_no_names"


class Replayed(NamedTuple):
    """What became of a replayed run.

    Parameters
    ----------
    utility, security
        AgentDojo's checks, on the calls that were executed.
    attempted
        The security check on all calls, refused ones included.
    user_refused, attacker_refused
        Calls refused on either side.
    first_refused
        Whether the attacker's first call was refused.
    """

    utility: bool
    security: bool
    attempted: bool
    user_refused: int
    attacker_refused: int
    first_refused: bool


class Counting(FunctionsRuntime):
    """A runtime that counts what it runs: a call that was refused does not get here."""

    ran = 0

    def run_function(self, *args: Any, **options: Any) -> Any:
        self.ran += 1
        return super().run_function(*args, **options)


class Replay:
    """One run of a suite, played by ground truths."""

    def __init__(self, suite: Any, executor: Any, user: Any, environment: Any) -> None:
        self.suite, self.executor, self.user = suite, executor, user
        self.env = user.init_environment(environment.model_copy(deep=True))
        self.before = self.env.model_copy(deep=True)
        self.runtime = Counting(suite.tools)
        self.messages: list[Any] = []
        self.executed: list[Any] = []
        self.tried: list[Any] = []

    def make(self, calls: Sequence[Any]) -> list[bool]:
        """Make calls one after the other; return which were refused."""
        refused = []
        for call in calls:
            text = [text_content_block_from_string("")]
            self.messages.append(ChatAssistantMessage(role="assistant", content=text, tool_calls=[call]))
            self.tried.append(call.model_copy(deep=True))
            before = self.runtime.ran
            done = self.executor.query(self.user.PROMPT, self.runtime, self.env, self.messages, {})
            self.messages = list(done[3])
            refused.append(self.runtime.ran == before)
            if not refused[-1]:
                self.executed.append(self.tried[-1])
        return refused

    def check(self, task: Any, output: str, calls: Sequence[Any]) -> bool:
        content = [text_content_block_from_string(output)]
        found: bool = self.suite._check_task_result(task, content, self.before, self.env, calls)  # noqa: SLF001
        return found


def replayed(suite: Any, executor: Any, user: Any, injection: Any, environment: Any) -> Replayed:
    run = Replay(suite, executor, user, environment)
    mine = run.make(user.ground_truth(run.env))
    theirs = [] if injection is None else run.make(injection.ground_truth(run.env))
    said = user.GROUND_TRUTH_OUTPUT
    if injection is not None and not any(theirs):
        said = f"{said}\n{injection.GROUND_TRUTH_OUTPUT}"
    utility = run.check(user, said, run.executed)
    if injection is None:
        return Replayed(utility, False, False, sum(mine), 0, False)  # noqa: FBT003
    security = run.check(injection, said, run.executed)
    attempted = run.check(injection, said, run.tried)
    return Replayed(utility, security, attempted, sum(mine), sum(theirs), bool(theirs) and theirs[0])


def counted(name: str, guard: Guard | None, limit: int) -> Counter[str]:
    """Return the counts of one suite."""
    suite, counts = get_suite(VERSION, name), Counter[str]()
    pipeline = AgentPipeline([])
    pipeline.name = "gpt-4o-2024-05-13"
    attack = load_attack(ATTACK, suite, pipeline)
    attack.get_injection_candidates = cache(
        attack.get_injection_candidates
    )  # it parses the environment each time
    clean = suite.load_and_inject_default_environment({})
    plain = ToolsExecutor()
    guarded = plain if guard is None else GuardedToolsExecutor(guard, category=name)
    for user in list(suite.user_tasks.values())[:limit]:
        if not replayed(suite, plain, user, None, clean).utility:
            counts["user tasks: ground truth fails"] += 1
            continue
        alone = replayed(suite, guarded, user, None, clean)
        counts["user tasks"] += 1
        counts["user tasks done"] += alone.utility
        counts["user tasks: calls refused"] += alone.user_refused > 0
        for injection in suite.injection_tasks.values():
            judge(counts, suite, (plain, guarded), (user, injection), attack)
    return counts


def judge(
    counts: Counter[str], suite: Any, executors: tuple[Any, Any], tasks: tuple[Any, Any], attack: Any
) -> None:
    """Add one pair of tasks, the user's and the attacker's, to the counts; without a guard, and with it."""
    (plain, guarded), (user, injection) = executors, tasks
    counts["pairs"] += 1
    try:
        injections = attack.attack(user, injection)
    except ValueError:
        counts["excluded: nothing the user task reads can be injected"] += 1
        return
    environment = suite.load_and_inject_default_environment(injections)
    if not injection.ground_truth(environment):
        counts["excluded: the attacker's ground truth is empty"] += 1
        return
    without = replayed(suite, plain, user, injection, environment)
    if not without.security:
        counts["excluded: the attack fails unguarded"] += 1
        return
    found = replayed(suite, guarded, user, injection, environment)
    counts["attacks"] += 1
    counts["attacks stopped"] += not found.security
    counts["attacks stopped at their first call"] += found.first_refused
    counts["attacks stopped, by attempted calls"] += not found.attempted
    counts["attacked: user task done unguarded"] += without.utility
    counts["attacked: user task done"] += found.utility
    counts["attacked: user calls refused"] += found.user_refused > 0


def shown(found: dict[str, Counter[str]]) -> str:
    """Return the counts as a table in Markdown."""
    lines = [
        "| suite | attacks stopped | at the first call | user tasks done | attacked | attacked, no guard | excluded |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    total: Counter[str] = sum(found.values(), Counter())
    for name, counts in [*found.items(), ("all", total)]:
        excluded = sum(number for what, number in counts.items() if what.startswith("excluded"))
        lines.append(
            f"| {name} | {_rate(counts, 'attacks stopped', 'attacks')} "
            f"| {_rate(counts, 'attacks stopped at their first call', 'attacks')} "
            f"| {_rate(counts, 'user tasks done', 'user tasks')} "
            f"| {_rate(counts, 'attacked: user task done', 'attacks')} "
            f"| {_rate(counts, 'attacked: user task done unguarded', 'attacks')} "
            f"| {excluded} of {counts['pairs']} |"
        )
    return "\n".join(lines)


def _rate(counts: Counter[str], part: str, whole: str) -> str:
    share = f" ({counts[part] / counts[whole]:.0%})" if counts[whole] else ""
    return f"{counts[part]} of {counts[whole]}{share}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--suite", action="append", choices=SUITES, help="only this one; may be repeated")
    parser.add_argument(
        "--model", default="default", help="a model file; {suite} in it is replaced by the suite"
    )
    parser.add_argument("--policy", default=None, help="a policy file")
    parser.add_argument("--limit", type=int, default=1000, help="user tasks per suite")
    parser.add_argument("--output", type=Path, help="write the counts to this JSON file")
    asked = parser.parse_args()
    found: dict[str, Counter[str]] = {}
    for name in asked.suite or SUITES:
        started = time.perf_counter()
        found[name] = counted(name, Guard.load(asked.model.format(suite=name), asked.policy), asked.limit)
        print(f"{name}: {time.perf_counter() - started:.0f} s", flush=True)
        for what, number in sorted(found[name].items()):
            print(f"  {what}: {number}")
    print(shown(found))
    if asked.output:
        asked.output.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
