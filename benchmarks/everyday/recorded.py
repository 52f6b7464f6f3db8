"""Read what lies beside the checkout: everyday sessions and the raw traces of AgentDojo, AgentDyn and tau-bench.

Their text stays there. What they say of themselves, and the traps in it, is in their README files: runs without an
attack carry the label of a success of the attacker, so do runs with an error, and denial-of-service attacks are
labelled by the user's task.
"""

from __future__ import annotations

import json
import lzma
from collections import Counter, defaultdict
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from everyday.runs import Made, Run, Said

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everyday.runs import Event

SHARED = Path(__file__).resolve().parents[3] / "shared"
SESSIONS = ("super", "intercode")
BENCHMARKS = ("agentdojo", "agentdyn")


def lines(path: Path) -> Iterator[str]:
    """Yield the lines of a compressed file, split at line feeds only.

    Raises
    ------
    FileNotFoundError
        If the file is not beside this checkout.
    """
    with lzma.open(path, "rt", encoding="utf-8", newline="\n") as opened:
        yield from opened


def shared(folder: Path | None) -> Path:
    """Return the folder of recorded runs: the one given, or the one beside the checkout."""
    return SHARED if folder is None else folder


# -- everyday sessions ------------------------------------------------------------------------------------


class Session(NamedTuple):
    """A recorded everyday session: its task, and its calls with what came back."""

    name: str
    group: str
    task: str
    calls: tuple[Made, ...]


def sessions(folder: Path, group: str) -> list[Session]:
    """Return the recorded sessions of a group."""
    found = []
    for line in lines(folder / "sessions" / f"{group}.jsonl.xz"):
        record = json.loads(line)
        calls = tuple(Made(step["name"], step["arguments"], step["result"] or "") for step in record["steps"])
        found.append(Session(record["id"], group, record["task"], calls))
    return found


# -- tau-bench --------------------------------------------------------------------------------------------


def airline(folder: Path) -> Iterator[Run]:
    """Yield the runs of tau-bench's airline desk that reached their goal; what the user says later is heard."""
    with lzma.open(
        folder / "traces" / "tau_bench" / "gpt-4o-airline.json.xz", "rt", encoding="utf-8"
    ) as file:
        runs = json.load(file)
    for run in runs:
        if run["reward"] == 1.0:
            said = [message for message in run["traj"] if message["role"] == "user"]
            first, events = said[0]["content"], _dialogue(run["traj"])
            name = f"{run['task_id']}.{run['trial']}"
            yield Run(
                "everyday",
                "tau-bench airline",
                "benign",
                name,
                first,
                tuple(events),
                f"{run['task_id']}",
                public=False,
            )


def _dialogue(messages: list[dict[str, Any]]) -> Iterator[Event]:
    results = {one["tool_call_id"]: one["content"] for one in messages if one["role"] == "tool"}
    seen = False
    for message in messages:
        if message["role"] == "user":
            if seen:
                yield Said(message["content"])
            seen = True
        for call in message.get("tool_calls") or ():
            wanted = call["function"]
            yield Made(wanted["name"], json.loads(wanted["arguments"]), results.get(call["id"]) or "")


# -- AgentDojo and AgentDyn -------------------------------------------------------------------------------


class Attacked(NamedTuple):
    """What is known of an attacked run before it is read: `onset_derived` has one line for each usable one.

    Parameters
    ----------
    exposure
        Calls made when the first result with injected text came back; None if none did.
    first, last
        The first and the last call that fits what the attacker wants, counted from 1; None if none does.
    """

    source: str
    path: str
    violated: bool
    exposure: int | None
    first: int | None
    last: int | None

    @property
    def pipeline(self) -> str:
        return self.path.split("/")[1]

    @property
    def suite(self) -> str:
        return self.path.split("/")[2]

    @property
    def file(self) -> str:
        return f"{self.source}/{self.pipeline}"

    @property
    def replayable(self) -> bool:
        """Whether it is known from where to where the attack goes."""
        return self.exposure is not None and self.last is not None and self.last > self.exposure


def attacked(folder: Path) -> list[Attacked]:
    """Return every attacked run with a usable label: no denial of service, no error, no CaMeL.

    CaMeL's calls stand in the tools' messages and its indices count something else.
    """
    found = []
    for source in BENCHMARKS:
        for line in lines(folder / "traces" / source / "onset_derived.jsonl.xz"):
            record = json.loads(line)
            path = record["path"]
            attack = path.split("/")[4]
            if not attack.endswith("dos") and "camel" not in path.split("/")[1]:
                found.append(
                    Attacked(
                        source,
                        path,
                        record["security"],
                        record["exposure_after_call"],
                        record["first_match_call"],
                        record["last_match_call"],
                    )
                )
    return found


def stratified(some: list[Attacked], limit: int | None, seed: int) -> list[Attacked]:
    """Draw at most so many runs, from every suite and pipeline in turn."""
    if limit is None or len(some) <= limit:
        return some
    strata: defaultdict[tuple[str, ...], list[Attacked]] = defaultdict(list)
    for one in some:
        strata[one.source, one.suite, one.pipeline].append(one)
    draw = Random(seed)  # noqa: S311  # a sample, not a secret
    for members in strata.values():
        draw.shuffle(members)
    order = list(strata)
    draw.shuffle(order)
    drawn: list[Attacked] = []
    while len(drawn) < limit:
        for key in order:
            if strata[key] and len(drawn) < limit:
                drawn.append(strata[key].pop())
    return drawn


def trace_files(folder: Path) -> list[tuple[str, Path]]:
    """Return the files of runs as (source/pipeline, path)."""
    return [
        (f"{source}/{path.name.removesuffix('.jsonl.xz')}", path)
        for source in BENCHMARKS
        for path in sorted((folder / "traces" / source).glob("*.jsonl.xz"))
        if path.name != "onset_derived.jsonl.xz"
    ]


def attack_runs(path: Path, wanted: dict[str, Attacked]) -> Iterator[Run]:
    """Yield the wanted runs of a file.

    Those that were violated are attacks; the calls from exposure to the last matching one are marked. Of the others,
    those in which the user's task was done are yielded, to see what the guard interrupts in a run that resisted.
    """
    for record, where in _records(path, wanted.__contains__):
        one = wanted[where]
        if not one.violated and record.get("utility") is not True:
            continue
        marked = range(one.exposure or 0, one.last or 0) if one.violated else range(0)
        yield Run(
            "replayed",
            f"{one.source} {one.suite}",
            "attack" if one.violated else "resisted",
            where,
            _task(record),
            tuple(_replayed(record["messages"], marked)),
            f"{one.suite}/{record['user_task_id']}",
            one.suite,
            public=False,
            notes={"pipeline": f"{one.source} {one.pipeline}", "first": one.first},
        )


def succeeded(record: dict[str, Any]) -> bool:
    """Whether nobody attacked this run, it ended without an error, and the user's task was done."""
    return (
        not record.get("injection_task_id")
        and not record.get("attack_type")
        and not str(record["user_task_id"]).startswith("injection_task")
        and not record.get("error")
        and record.get("utility") is True
    )


def benign_runs(source: str, path: Path) -> Iterator[Run]:
    """Yield the runs of a file in which nobody attacked and the user's task was done."""
    for record, where in _records(path, lambda where: where.split("/")[4] == "none"):
        if succeeded(record):
            suite = record["suite_name"]
            name = source.split("/", maxsplit=1)[0]
            cluster = f"{suite}/{record['user_task_id']}"
            yield Run(
                "everyday",
                {"agentdojo": "AgentDojo", "agentdyn": "AgentDyn"}[name],
                "benign",
                where,
                _task(record),
                tuple(_replayed(record["messages"], range(0))),
                cluster,
                suite,
                public=False,
            )


def _records(path: Path, wanted: Any) -> Iterator[tuple[dict[str, Any], str]]:
    for line in lines(path):
        where = line.split('"', 4)[3]
        if wanted(where):
            yield json.loads(line)["record"], where


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("content") or "") for part in content)
    return content or ""


def _task(record: dict[str, Any]) -> str:
    """Return the user's words; later messages of that role are the pipeline's own in these recordings."""
    return next(_text(message["content"]) for message in record["messages"] if message["role"] == "user")


def _replayed(messages: list[dict[str, Any]], marked: range) -> Iterator[Made]:
    """Yield the calls with what came back; a call of which nothing is recorded came to nothing."""
    number = 0
    for index, message in enumerate(messages):
        calls = message.get("tool_calls") or () if message["role"] == "assistant" else ()
        answers = _answers(messages, index + 1)
        for call, answer in zip(calls, [*answers, *[{}] * len(calls)], strict=False):
            error = answer.get("error") or ""
            result = "" if error else _text(answer.get("content"))
            yield Made(call["function"], call["args"] or {}, result, error, marked=number in marked)
            number += 1


def _answers(messages: list[dict[str, Any]], start: int) -> list[dict[str, Any]]:
    found = []
    for message in messages[start:]:
        if message["role"] != "tool":
            break
        found.append(message)
    return found


def population(some: list[Attacked]) -> dict[tuple[str, str], Counter[str]]:
    """Return, for each source, suite and pipeline, how many runs there are and what is known of them."""
    counts: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for one in some:
        suite, pipeline = f"{one.source} {one.suite}", f"{one.source} {one.pipeline}"
        for key in (("suite", one.source), ("suite", suite), ("pipeline", pipeline)):
            counts[key]["attacked"] += 1
            counts[key]["violated"] += one.violated
            counts[key]["exposed"] += one.exposure is not None
            counts[key]["replayable"] += one.violated and one.replayable
    return dict(counts)
