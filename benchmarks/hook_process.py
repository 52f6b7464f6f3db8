"""A hook of Claude Code as a process, with a resident guard and without one.

Whole processes are timed in turn, round by round; what counts is the ratio to an interpreter that does nothing, in
the same rounds. Each hook judges a shell command: the state of the session is read from a SQLite file and written back,
and the decision is appended to the chained log, before the answer is given. The resident guard was started before.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from _timing import Timing, interleaved, options, report

from safetydrift.integrations import hook_client
from safetydrift.integrations.resident import socket_path

if TYPE_CHECKING:
    from collections.abc import Callable

TITLE = "A hook of Claude Code"
GOALS = {"hook, resident guard": "<= 1.2", "hook, one process per call": "<= 8"}
_NUMBERS = count()


def event(name: str, **more: object) -> bytes:
    return json.dumps({"session_id": "s", "hook_event_name": name} | more).encode()


def proposal() -> bytes:
    command = {"command": "grep -rn token src | head -20"}
    return event("PreToolUse", tool_name="Bash", tool_input=command, tool_use_id=f"t{next(_NUMBERS)}")


def starting(command: list[str]) -> Callable[[], object]:
    def start() -> None:
        done = subprocess.run(command, input=proposal(), capture_output=True, check=True)
        if done.stdout:
            raise AssertionError(f"the hook objects: {done.stdout!r}")

    return start


def hooks(rounds: int) -> dict[str, Timing]:
    """Return how long hooks take, an interpreter that does nothing, and the socket alone."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # what is installed has been compiled
    with tempfile.TemporaryDirectory() as folder:
        arguments = ["--state", folder]
        path = socket_path(arguments)
        serve = [sys.executable, "-m", "safetydrift", "hook", "serve", path, *arguments]
        resident = subprocess.Popen(serve, stdin=subprocess.DEVNULL)
        try:
            while not Path(path).exists():
                time.sleep(0.01)
            prompt = event("UserPromptSubmit", prompt="Find the token")
            hook_client.ask(path, prompt)
            return interleaved(
                {
                    "python -c pass": starting([sys.executable, "-c", "pass"]),
                    "hook, resident guard": starting(
                        [sys.executable, "-S", hook_client.__file__, path, *arguments]
                    ),
                    "hook, one process per call": starting(
                        [sys.executable, "-m", "safetydrift", "hook", "claude-code", *arguments]
                    ),
                    "the socket alone": lambda: hook_client.ask(path, proposal()),
                    "(settling what is under way)": lambda: hook_client.ask(path, prompt),
                },
                rounds,
            )
        finally:
            resident.terminate()
            resident.wait()


def main() -> None:
    timings = hooks(9 if options(TITLE).quick else 31)
    bare = timings["python -c pass"].median
    goals = GOALS
    ratios = {
        f"{name} / python -c pass": (timing.median / bare, goals.get(name, "none"))
        for name, timing in timings.items()
        if name.startswith("hook")
    }
    ratios["the socket alone, ms"] = 1e3 * timings["the socket alone"].median, "<= 2"
    report(TITLE, timings, ratios)


if __name__ == "__main__":
    main()
