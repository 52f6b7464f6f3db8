"""``safetydrift watch``."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from math import isfinite
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console, Group
from rich.text import Text

from safetydrift.cli import options
from safetydrift.cli.output import WIDTH, emit_json, finite, percent, shown

if TYPE_CHECKING:
    from safetydrift.guard.following import Follower, Sessions, Watched

BARS = "▁▂▃▄▅▆▇█"
UNKNOWN = "·"
STYLES = {"allow": "green", "warn": "yellow", "ask": "yellow", "suggest": "red", "block": "red"}
_RISKS = {"critical": "bold red", "elevated": "yellow"}


@click.command
@click.option("--log", type=click.Path(dir_okay=False), metavar="FILE", help="The decision log to follow.")
@click.option(
    "--state",
    type=click.Path(file_okay=False),
    metavar="FOLDER",
    help="The folder of the log, as hooks and proxies know it.",
)
@click.option("--once", is_flag=True, help="Print one frame, and end.")
@click.option(
    "-n", "--limit", type=click.IntRange(min=1), default=8, show_default=True, help="Show this many runs."
)
@click.option(
    "--interval",
    type=click.FloatRange(0.05, 60),
    default=0.5,
    show_default=True,
    help="Seconds between looks at the log.",
)
@options.as_json
def watch(log: str | None, state: str | None, once: bool, limit: int, interval: float, as_json: bool) -> None:
    """Watch the runs that a guard decides about, from its decision log; Ctrl-C ends it.

    The bars are the probability of a violation at the last calls, each from 0 to 1; a dot is one that is not known.

    \b
    Exit codes:
      0  done
      3  with --once: there is no log, or it cannot be read

    \b
    Example:
      safetydrift watch --state ~/.local/state/safetydrift
      safetydrift watch --log decisions.jsonl --once --json
    """
    from safetydrift.guard.following import Follower, Sessions
    from safetydrift.integrations.claude_code import state_folder

    path = Path(log) if log else Path(state or state_folder()) / "decisions.jsonl"
    sessions = Sessions()
    with Follower(path) as follower:
        if once or not (as_json or sys.stdout.isatty()):
            _look(follower, sessions)
            if not follower.found:
                from safetydrift.errors import DecisionLogError

                raise DecisionLogError(f"{path}: there is no decision log")
            _print(follower, sessions, limit, as_json=as_json)
            return
        try:
            if as_json:
                _follow_as_json(follower, sessions, limit, interval)
            else:
                _follow(follower, sessions, limit, interval)
        except KeyboardInterrupt:
            return


def frame(follower: Follower, sessions: Sessions, limit: int) -> Group:
    """Return what is shown at one moment."""
    latest = sessions.latest(limit)
    says = f"{len(sessions)} runs, {sessions.records} records in" if follower.found else "no log yet at"
    lines = [_line(Text(_safe(f"{says} {follower.path}"), style="italic"))]
    for run in latest:
        lines += [Text(""), *_run(run)]
    if len(sessions) > len(latest):
        lines += [Text(""), Text(f"and {len(sessions) - len(latest)} runs that were silent longer")]
    return Group(*lines)


def spark(course: list[float]) -> str:
    """Write probabilities as bars; what is not known is a dot.

    Examples
    --------
    >>> spark([0.0, 0.5, 1.0, float("nan")])
    '▁▅█·'
    """
    return "".join(
        [
            BARS[min(len(BARS) - 1, max(0, int(one * len(BARS))))] if isfinite(one) else UNKNOWN
            for one in course
        ]
    )


def plain(follower: Follower, sessions: Sessions, limit: int) -> dict[str, Any]:
    """Return a frame as plain data."""
    return {
        "log": follower.path,
        "records": sessions.records,
        "runs": len(sessions),
        "latest": [run.as_plain() for run in sessions.latest(limit)],
    }


def _run(run: Watched) -> list[Text]:
    head = Text(_safe(run.key), style="bold")
    head.append(f"  {_safe(run.category) or '-'}  {run.calls} calls", style="not bold")
    outcomes = ", ".join([f"{number} {_safe(what)}" for what, number in run.outcomes.items() if number])
    head.append(f" ({outcomes})" if outcomes else "", style="not bold")
    known = Text(f"  {percent(run.probability)} of {percent(run.threshold)}  ")
    known.append(spark(list(run.course)), style="cyan")
    if run.risk:
        known.append(f"  {_safe(run.risk)}", style=_RISKS.get(run.risk, ""))
        known.append(f" (state {run.state})")
    lines = [head, known]
    for seen in run.recent:
        shadow = f" (would {_safe(seen.shadow)})" if seen.shadow else ""
        line = Text(f"    {_safe(seen.intervention):8}", style=STYLES.get(seen.intervention, ""))
        line.append(f"{percent(seen.probability):>8}  {_safe(seen.tool) or '?'}{shadow}", style="default")
        lines.append(line)
    lines += [Text(f"  ! {_clock(at)} {_safe(words)}", style="red") for at, words in run.alarms]
    return [_line(line) for line in lines]


def _line(text: Text) -> Text:
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _safe(text: str) -> str:
    """Return words of others as part of one line, without what a terminal would obey."""
    return shown(" ".join(text.split("\n")))


def _clock(at: float) -> str:
    try:
        return f"{datetime.fromtimestamp(at):%H:%M:%S}"  # noqa: DTZ006  # of the person who watches
    except (OSError, OverflowError, ValueError):
        return "--:--:--"


def _look(follower: Follower, sessions: Sessions) -> bool:
    """Read what is new; return whether anything is."""
    new = follower.new()
    for record in new:
        sessions.take(record)
    return bool(new)


def _print(follower: Follower, sessions: Sessions, limit: int, *, as_json: bool) -> None:
    if as_json:
        emit_json(plain(follower, sessions, limit))
    else:
        width = None if sys.stdout.isatty() else WIDTH
        Console(highlight=False, width=width).print(frame(follower, sessions, limit))


def _follow(follower: Follower, sessions: Sessions, limit: int, interval: float) -> None:
    from rich.live import Live

    console = Console(highlight=False)
    _look(follower, sessions)
    with Live(frame(follower, sessions, limit), console=console, auto_refresh=False, screen=True) as live:
        while True:
            if _look(follower, sessions):
                live.update(frame(follower, sessions, limit), refresh=True)
            sleep(interval)


def _follow_as_json(follower: Follower, sessions: Sessions, limit: int, interval: float) -> None:
    while True:
        if _look(follower, sessions):
            click.echo(json.dumps(finite(plain(follower, sessions, limit)), allow_nan=False))
        sleep(interval)
