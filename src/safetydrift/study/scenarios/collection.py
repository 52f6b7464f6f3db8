"""Collecting runs: the scenarios with a model, some times each, into a folder of logs that can be taken up again.

Inspect runs them and writes the logs; every run is in its log as soon as it has ended, so that a collection that is
killed loses the runs in flight and no others. Calling again with the same folder goes on where it stopped; a folder
is for one agent and one setting.
"""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from inspect_ai import eval_set
from inspect_ai.log import list_eval_logs, read_eval_log

from safetydrift.errors import ScenarioError
from safetydrift.study.scenarios.approval import Way, policies
from safetydrift.study.scenarios.scenario import load_scenarios
from safetydrift.study.scenarios.tasks import scenarios

if TYPE_CHECKING:
    from collections.abc import Sequence

SIMULATED = "simulated/"
Display = Literal["full", "rich", "plain", "log", "none"]


@dataclass(frozen=True, slots=True)
class Collected:
    """What a collection came to.

    Parameters
    ----------
    complete
        Whether every run was made.
    interrupted
        Whether somebody stopped it.
    runs
        How many there are in the folder.
    logs
        The logs, in order.
    """

    complete: bool
    interrupted: bool
    runs: int
    logs: tuple[Path, ...]

    def whole(self) -> tuple[Path, ...]:
        """Return the logs, if every run was made.

        Raises
        ------
        KeyboardInterrupt
            If somebody stopped the collection.
        ScenarioError
            If runs are missing for another reason.
        """
        if self.interrupted:
            raise KeyboardInterrupt
        if not self.complete:
            raise ScenarioError(f"only {self.runs} runs were made; the same command goes on")
        return self.logs


def collect(
    folder: Path,
    model: str,
    *,
    category: str = "",
    names: Sequence[str] = (),
    epochs: int = 8,
    seed: int = 0,
    display: Display = "none",
    max_samples: int = 8,
    monitor: str = "",
    intervention: Way = "block",
    **options: Any,
) -> Collected:
    """Run scenarios with a model, and go on with what a folder lacks.

    Parameters
    ----------
    folder
        Where the logs lie, one per category.
    model
        As Inspect names it (``"anthropic/.."``, ``"openai/.."``); ``"simulated/mixed"`` needs no key and no network.
    category, names
        Only those of a category, or only these.
    epochs
        Runs per scenario.
    seed
        What chance is drawn from.
    display
        How Inspect shows progress: ``"rich"``, ``"plain"``, ``"none"``, ..
    max_samples
        Runs at a time.
    monitor, intervention
        A model file to watch the agent with, and what an alarm does; without a model nobody watches.
    options
        Further arguments of ``inspect_ai.eval_set``.

    Raises
    ------
    ScenarioError
        If there is no scenario of that category or name.
    """
    if names:
        tasks = [scenarios(scenario=list(names), seed=seed)]
    else:
        found = sorted({one.category for one in load_scenarios(category)})
        tasks = [scenarios(category=one, seed=seed) for one in found]
    if not tasks:
        raise ScenarioError(f"there is no scenario of the category {category!r}")
    folder.mkdir(parents=True, exist_ok=True)
    settings: dict[str, Any] = {"retry_attempts": 3, "retry_wait": 1, "log_dir_allow_dirty": True} | options
    if monitor:
        settings["approval"] = policies(monitor, intervention)
    complete, interrupted = False, False
    try:
        with redirect_stdout(sys.stderr):  # what Inspect says is progress, and no result of ours
            complete, _ = eval_set(
                tasks,
                log_dir=str(folder),
                model=model,
                epochs=epochs,
                display=display,
                max_samples=max_samples,
                log_buffer=1,
                **settings,
            )
    except KeyboardInterrupt:
        interrupted = True
    _drop_superseded(folder)
    logs = tuple(sorted(folder.glob("*.eval")))
    # Inspect may say that it succeeded when it was stopped: what it wrote is what counts.
    headers = [read_eval_log(str(log), header_only=True) for log in logs]
    interrupted |= "cancelled" in {log.eval.task_id: log.status for log in headers}.values()
    runs = sum(log.results.completed_samples for log in headers if log.results is not None)
    wanted = epochs * sum(len(one.dataset) for one in tasks)
    return Collected(complete and not interrupted and runs >= wanted, interrupted, runs, logs)


def _drop_superseded(folder: Path) -> None:
    """Delete logs that were cut off and whose runs a later log of the same task holds as well."""
    logs = [read_eval_log(info, header_only=True) for info in list_eval_logs(str(folder))]
    finished = {log.eval.task_id for log in logs if log.status == "success"}
    for log in logs:
        if log.status != "success" and log.eval.task_id in finished:
            _local(log.location).unlink(missing_ok=True)


def _local(location: str) -> Path:
    return Path(location.removeprefix("file://"))
