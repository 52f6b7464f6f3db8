"""How far the users' own words cover recorded calls: grades of authorised calls against those of others.

Reads the recorded runs beside the checkout (``../shared``). AgentDojo and AgentDyn: the distinct calls of benign
runs that did the user's task are authorised by that task; the distinct calls of runs that were given an injected
goal as their task are not authorised by any user's task of the same suite. InterCode: the commands of a session are
authorised by its task; those of other tasks, drawn at random, are not. What is printed are counts of distinct
(task, call) pairs by grade.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import re
import shlex
import tomllib
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from safetydrift.authority.grading import GRADES
from safetydrift.authority.request import Request

HERE = Path(__file__).parent
SHARED = HERE.parents[1] / "shared"
SALT = b"measurement"
PROGRAMS = {
    **dict.fromkeys(("rm", "rmdir", "unlink", "shred", "truncate"), "delete"),
    **dict.fromkeys(("mv", "cp", "tar", "gzip", "zip", "gunzip", "rename", "rsync", "bzip2", "xz"), "move"),
    **dict.fromkeys(("touch", "mkdir", "tee", "patch", "ln"), "edit"),
    **dict.fromkeys(("chmod", "chown"), "configure"),
    **dict.fromkeys(("curl", "wget"), "fetch"),
    **dict.fromkeys(("apt", "apt-get", "pip", "yum"), "install"),
    **dict.fromkeys(("kill", "pkill"), "stop"),
}
CONNECTORS = re.compile(r"\|\||&&|[;|\n]")
NAMED = re.compile(r"[\w./~*:?=@%\-]+")
"""Targets that are read: no variables, no remains of syntax."""
Task = tuple[str, str]
Act = tuple[str, tuple[str, ...], tuple[str, ...]]


def acts_of_command(command: str) -> set[Act]:
    """Return the acts of a command line that change something, by a small table of programs; unread targets are
    left out."""
    acts = set()
    for part in CONNECTORS.split(command.replace("\\;", "")):
        try:
            words = shlex.split(part, comments=True)
        except ValueError:
            continue
        for index, word in enumerate(words):
            action = PROGRAMS.get(word)
            if action and (index == 0 or words[index - 1] in {"sudo", "-exec", "do", "then"}):
                targets = targets_of(words[index + 1 :], skip=word in {"chmod", "chown"})
                acts.add((action, found_by(words) if words[0] == "find" else tuple(targets), ()))
            elif word == "-delete" and words[0] == "find":
                acts.add(("delete", found_by(words), ()))
            elif word in {">", ">>"} and index + 1 < len(words) and not words[index + 1].startswith("/dev/"):
                acts.add(("edit", (words[index + 1],), ()))
    return {act for act in acts if act[1] and all(NAMED.fullmatch(target) for target in act[1])}


def found_by(words: list[str]) -> tuple[str, ...]:
    """Return what ``find`` finds: the pattern of a name below a folder, or everything in it."""
    patterns = [words[at + 1] for at, word in enumerate(words[:-1]) if word in {"-name", "-iname"}]
    return (
        tuple(f"{words[1].rstrip('/')}/{pattern}" for pattern in patterns or ["*"]) if len(words) > 1 else ()
    )


def targets_of(words: list[str], *, skip: bool) -> list[str]:
    """Return the words that are no options, up to a redirection; `skip`: without the first, which is a mode."""
    targets = []
    for word in words:
        if word[:1] in "<>&" or word[:2] in {"1>", "2>"}:
            break
        if not word.startswith("-") and word not in {"{}", "+"}:
            targets.append(word)
    return targets[1:] if skip else targets


def act_of_call(tools: dict[str, list[Any]], name: str, args: dict[str, object]) -> Act | None:
    """Return the act of a call of a known tool."""
    if name not in tools:
        return None
    action, slots, words, describing = tools[name]
    targets: list[str] = []
    for slot in slots:
        value: Any = args.get(slot)
        targets += value if isinstance(value, list) else [] if value in (None, "") else [value]
    described = [str(words), *(str(args[slot]) for slot in describing if args.get(slot))]
    return str(action), tuple(map(str, targets)), tuple(described)


def suites(folder: str) -> tuple[dict[Task, str], dict[Task, set[Act]]]:
    """Return tasks by (suite, name), injected goals the same way, and the acts of good runs by task."""
    tools = tomllib.loads((HERE / "authority_tools.toml").read_text("utf-8"))["tools"]
    tasks: dict[Task, str] = {}
    acts: dict[Task, set[Act]] = defaultdict(set)
    for path in sorted((SHARED / "traces" / folder).glob("*.jsonl.xz")):
        if path.name.startswith("onset"):
            continue
        with lzma.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                record = json.loads(line)["record"]
                messages = record.get("messages") or []
                said = [message["content"] for message in messages if message["role"] == "user"]
                if (
                    not said
                    or record.get("injection_task_id") not in {None, "None"}
                    or not record.get("utility")
                ):
                    continue
                text = (
                    said[0]
                    if isinstance(said[0], str)
                    else " ".join(part.get("content") or "" for part in said[0])
                )
                key = (record["suite_name"], record["user_task_id"])
                tasks.setdefault(key, text)
                for message in messages:
                    for call in message.get("tool_calls") or []:
                        act = act_of_call(tools, call["function"], call["args"])
                        if act is not None:
                            acts[key].add(act)
    return tasks, acts


def print_table(title: str, rows: dict[str, Counter[str]]) -> None:
    print(f"\n{title}")
    print(f"  {'':<34}" + "".join(f"{grade:>10}" for grade in GRADES) + f"{'pairs':>8}")
    for name, counts in rows.items():
        print(f"  {name:<34}" + "".join(f"{counts[grade]:>10}" for grade in GRADES) + f"{counts.total():>8}")


def measure_suites(folder: str, show: str = "") -> None:
    tasks, acts = suites(folder)
    requests = {key: Request.empty(SALT).hear(text) for key, text in tasks.items()}
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for key, request in requests.items():
        if key[1].startswith("injection"):
            continue
        for act in acts[key]:
            grade = request.asks(*act).name
            kind = act[0] if act[0] in {"read", "fetch"} else "change"
            rows[f"own calls: {kind}"][grade] += 1
            if show == "own" and kind == "change" and grade in {"none", "action", "object", "forbidden"}:
                print(grade, key, act, "|", tasks[key][:150].replace("\n", " "))
        for other in requests:
            if other[0] == key[0] and other[1].startswith("injection"):
                for act in acts[other]:
                    grade = request.asks(*act).name
                    kind = act[0] if act[0] in {"read", "fetch"} else "change"
                    rows[f"injected goals' calls: {kind}"][grade] += 1
                    if show == "injected" and kind == "change" and grade in {"goal", "asked"}:
                        print(grade, key, act, "|", tasks[key][:150].replace("\n", " "))
    print_table(
        f"{folder}: {sum(not k[1].startswith('inj') for k in tasks)} tasks", dict(sorted(rows.items()))
    )


def measure_intercode(show: str = "") -> None:
    with lzma.open(SHARED / "sessions" / "intercode.jsonl.xz", "rt", encoding="utf-8") as lines:
        sessions = [json.loads(line) for line in lines]
    acts: dict[str, set[Act]] = defaultdict(set)
    for session in sessions:
        for step in session["steps"]:
            acts[session["task"]] |= acts_of_command(str(step["arguments"].get("command", step["arguments"])))
    chance = random.Random(1)  # noqa: S311  # a sample, not a secret
    tasks = sorted(acts)
    everything = sorted({act for found in acts.values() for act in found})
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for task in tasks:
        request = Request.empty(SALT).hear(task)
        for act in sorted(acts[task]):
            grade = request.asks(*act).name
            rows[f"own commands: {act[0]}"][grade] += 1
            if show == "own" and grade not in {"asked", "goal"}:
                print(grade, act, "|", task)
        for act in chance.sample(everything, min(40, len(everything))):
            if act not in acts[task]:
                grade = request.asks(*act).name
                rows["other tasks' commands"][grade] += 1
                if show == "other" and grade in {"asked", "goal"}:
                    print(grade, act, "|", task)
    print_table(f"InterCode: {len(tasks)} tasks", dict(sorted(rows.items())))


def main() -> None:
    parser = argparse.ArgumentParser(description="Grades of recorded calls by the users' own words")
    parser.add_argument(
        "--show", choices=("own", "injected", "other"), help="also print the pairs with a surprising grade"
    )
    show = parser.parse_args().show or ""
    for folder in ("agentdojo", "agentdyn"):
        measure_suites(folder, show)
    measure_intercode(show)


if __name__ == "__main__":
    main()
