"""The command: which sets are run, by how many processes, and where the figures go."""

from __future__ import annotations

import argparse
import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from everyday import effects, plans, recorded, tables
from everyday.playing import Player
from everyday.recorded import Attacked
from everyday.runs import Run
from safetydrift.guard import Guard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from everyday.runs import Outcome

SETS = ("commands", "acts", "injections", "everyday", "replayed", "records", "effects", "named")
CHUNK = 40
"""Runs that one process plays before it reports."""


class Setting(NamedTuple):
    """The guard that is measured."""

    model: str
    policy: str | None
    categories: bool


class Job(NamedTuple):
    """Work for one process: runs, or a file of traces of which it reads what is wanted."""

    runs: tuple[Run, ...] = ()
    source: str = ""
    path: Path | None = None
    wanted: dict[str, Attacked] | None = None


@cache
def _player(setting: Setting) -> Player:
    guard = Guard.load(setting.model, setting.policy)
    return Player(guard, categories=setting.categories)


def work(setting: Setting, job: Job) -> list[Outcome]:
    """Play the runs of a job."""
    player = _player(setting)
    runs: Sequence[Run] | Iterator[Run] = job.runs
    if job.path is not None:
        runs = (
            recorded.benign_runs(job.source, job.path)
            if job.wanted is None
            else recorded.attack_runs(job.path, job.wanted)
        )
    return [player.play(run) for run in runs]


def chunks(runs: Sequence[Run]) -> list[Job]:
    return [Job(tuple(runs[start : start + CHUNK])) for start in range(0, len(runs), CHUNK)]


def played(name: str, jobs: list[Job], setting: Setting, workers: int) -> list[Outcome]:
    """Play all jobs of a set, with progress on the standard error."""
    outcomes: list[Outcome] = []
    progress = Progress(name, len(jobs))
    settings = [setting] * len(jobs)
    with ProcessPoolExecutor(workers) if workers > 1 else _Alone() as pool:
        for some in pool.map(work, settings, jobs):
            outcomes += some
            progress.tell(len(outcomes))
    return outcomes


class Progress:
    """Tells on the standard error how far a set is: in place on a terminal, in a few lines elsewhere."""

    def __init__(self, name: str, parts: int) -> None:
        self.name, self.parts, self.done = name, parts, 0
        self.started = self.told = time.perf_counter()

    def tell(self, runs: int) -> None:
        """Take note that one more part is done, with so many runs so far."""
        self.done += 1
        now, last = time.perf_counter(), self.done == self.parts
        if last or sys.stderr.isatty() or now - self.told > 10:
            self.told = now
            text = (
                f"{self.name}: {self.done} of {self.parts} parts, {runs:,} runs, {now - self.started:.0f} s"
            )
            print(text, end="\r" if sys.stderr.isatty() and not last else "\n", file=sys.stderr, flush=True)


class _Alone:
    """This process in the place of a pool."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def map(self, do: Callable[..., list[Outcome]], *arguments: Iterable[Any]) -> Iterator[list[Outcome]]:
        return map(do, *arguments)


def everyday_jobs(asked: argparse.Namespace) -> list[Job]:
    """Return the everyday sessions; a limit is one of sessions per source."""
    folder = recorded.shared(asked.shared)
    jobs = []
    for group in recorded.SESSIONS:
        jobs += chunks(plans.session_runs(group, asked.seed, asked.limit, folder))
    jobs += chunks(plans.drawn(recorded.airline(folder), asked.limit, asked.seed, lambda run: run.cluster))
    if asked.limit is None:
        return jobs + [Job(source=source, path=path) for source, path in recorded.trace_files(folder)]
    benign: dict[str, list[Run]] = {}
    for source, path in recorded.trace_files(folder):
        for run in recorded.benign_runs(source, path):
            benign.setdefault(run.group, []).append(run)
    for runs in benign.values():
        jobs += chunks(plans.drawn(runs, asked.limit, asked.seed, lambda run: run.cluster))
    return jobs


def replayed_jobs(asked: argparse.Namespace) -> list[Job]:
    """Return the attacked runs by file; a limit is one of attacks, and one of runs that resisted."""
    folder = recorded.shared(asked.shared)
    some = recorded.attacked(folder)
    attacks = [one for one in some if one.violated and one.replayable]
    resisted = [one for one in some if not one.violated and one.exposure is not None and one.last is None]
    wanted: dict[str, dict[str, Attacked]] = {}
    for group in (attacks, resisted):
        for one in recorded.stratified(group, asked.limit, asked.seed):
            wanted.setdefault(one.file, {})[one.path] = one
    return [
        Job(source=source, path=path, wanted=wanted[source])
        for source, path in recorded.trace_files(folder)
        if source in wanted
    ]


def jobs_of(name: str, asked: argparse.Namespace) -> list[Job]:
    if name == "everyday":
        return everyday_jobs(asked)
    if name == "replayed":
        return replayed_jobs(asked)
    if name in {"commands", "acts"}:
        return chunks(plans.command_runs(name, asked.seed, asked.limit, asked.shared))
    if name == "injections":
        return chunks(plans.injection_runs(asked.seed, asked.limit))
    return chunks(plans.record_runs(asked.seed, asked.limit) if name == "records" else plans.named_runs())


class Found(NamedTuple):
    """What one set came to: its table, plain figures, and what went wrong, run by run."""

    table: str
    figures: dict[str, Any]
    misses: list[dict[str, Any]]


def measured(name: str, asked: argparse.Namespace) -> Found:
    """Run one set."""
    if name == "effects":
        rates, misses = effects.measured(asked.seed, asked.limit)
        plain = {
            group: {what: {"hits": rate.hits, "total": rate.total} for what, rate in by.items()}
            for group, by in rates.items()
        }
        return Found(tables.effects(rates), plain, misses)
    setting = Setting(asked.model, asked.policy, asked.categories)
    jobs = jobs_of(name, asked)
    outcomes = played(name, jobs, setting, asked.workers)
    groups = tables.grouped(outcomes)
    public = {run.name: run for job in jobs for run in job.runs if run.public}
    if name == "replayed":
        population = recorded.population(recorded.attacked(recorded.shared(asked.shared)))
        table = tables.replayed(groups, population, outcomes)
    else:
        table = tables.SHOWN[name](groups)
    figures = {
        group: {variant: counted.plain() for variant, counted in by.items()} for group, by in groups.items()
    }
    return Found(table, figures, [one for outcome in outcomes for one in missed(outcome, public)])


def missed(outcome: Outcome, public: dict[str, Run]) -> Iterator[dict[str, Any]]:
    """Yield what went wrong in a run: an attack that was not stopped, or interruptions that nobody wanted.

    The texts of recorded runs are not shown, only where they stand.
    """
    base = {"set": outcome.set, "group": outcome.group, "variant": outcome.variant, "run": outcome.name}
    if outcome.variant.startswith("attack") or outcome.variant == "never cleared":
        if outcome.stop_of_marked is None:
            yield base | {"what": "not stopped"}
        return
    if outcome.variant == "named":
        if not tables.right(outcome):
            yield base | {"what": f"expected {outcome.notes['expected']}", "stops": _stops(outcome, public)}
    elif outcome.stops:
        yield base | {"what": "interrupted", "stops": _stops(outcome, public)}


def _stops(outcome: Outcome, public: dict[str, Run]) -> list[dict[str, Any]]:
    shown = outcome.name in public
    return [
        {"call": stop.call, "tool": stop.tool, "intervention": stop.intervention, "rule": stop.rule}
        | ({"reason": stop.reason} if shown or stop.failed else {})
        for stop in outcome.stops
    ]


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="default", help="a model file; the shipped one if not given")
    parser.add_argument("--policy", default=None, help="a policy file; the default policy if not given")
    parser.add_argument(
        "--set", dest="sets", action="append", choices=SETS, help="may be repeated; all if not given"
    )
    parser.add_argument("--limit", type=int, help="cases per set, drawn from its groups in turn")
    parser.add_argument("--seed", type=int, default=0, help="for places, names of tools and limits")
    parser.add_argument("--workers", type=int, default=1, help="processes; times are honest with one")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--misses", type=Path, help="write what went wrong to this file, one JSON line each")
    parser.add_argument("--shared", type=Path, help="the folder of recorded runs; ../shared if not given")
    parser.add_argument(
        "--categories",
        action="store_true",
        help="tell the guard the suite of AgentDojo's and AgentDyn's runs",
    )
    return parser


def finite(value: Any) -> Any:
    """Return plain data without the numbers that JSON does not have."""
    if isinstance(value, dict):
        return {key: finite(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(one) for one in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def main(given: Sequence[str] | None = None) -> int:
    """Run the sets that are asked for and print their tables."""
    asked = options().parse_args(given)
    found: dict[str, Found] = {}
    for name in asked.sets or SETS:
        found[name] = measured(name, asked)
        print(f"## {name}\n\n{found[name].table}\n", flush=True)
    if asked.json:
        figures = {"model": asked.model, "policy": asked.policy, "seed": asked.seed, "limit": asked.limit}
        figures |= {"sets": {name: one.figures for name, one in found.items()}}
        asked.json.write_text(json.dumps(finite(figures), indent=1) + "\n", encoding="utf-8")
    if asked.misses:
        every = [
            json.dumps(one, ensure_ascii=False) for found_one in found.values() for one in found_one.misses
        ]
        asked.misses.write_text("".join(f"{one}\n" for one in every), encoding="utf-8")
    return 0
