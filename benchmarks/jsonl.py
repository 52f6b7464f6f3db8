"""Reading a large file of traces, from its bare lines to counted transitions.

A synthetic file of SafetyDrift's own format is written to a temporary folder: 200 MB, runs of 12 steps of about
570 bytes. Every way of reading it has a process of its own, for its peak of memory, and the processes take turns;
the file stays in the page cache, so the disk is not measured, nor is decompression. The typed parser reads the
very records that `read_traces` reads, and stops there. End to end means reading, labelling, folding and counting
per category. Three steps in ten have a path or a command to be looked at, and the text is plain ASCII; both differ
from source to source.

``--traces FILE`` times a recorded file instead, compressed with xz or not, up to each station of its way.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

from _timing import Timing, interleaved, report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

TITLE = "Reading traces from JSON Lines"
N_STEPS = 12
TEXT = (
    "account balance transfer invoice report meeting budget quarterly review the a of to please send file "
    "error warning completed pending customer schedule room project update draft final summary attached"
)
WORDS = TEXT.split()


# -- the file ----------------------------------------------------------------------------------------------


def made_up_step(rng: random.Random) -> dict[str, Any]:
    """Return a step, three in ten of them with a path or a command that has to be looked at."""

    def text(n_words: int) -> str:
        return " ".join(rng.choices(WORDS, k=n_words))

    tool, args = rng.choice(
        [
            ("get_most_recent_transactions", {"n": rng.randrange(100)}),
            ("send_email", {"recipients": ["anna@example.com"], "subject": text(5), "body": text(40)}),
            ("search_calendar_events", {"query": text(3), "date": "2026-05-01"}),
            ("get_unread_emails", {}),
            ("create_calendar_event", {"title": text(4), "description": text(20)}),
            ("send_direct_message", {"recipient": "Bob", "body": text(12)}),
            ("get_channels", {}),
            ("read_file", {"path": f"/srv/data/part-{rng.randrange(500)}.csv"}),
            ("read_file", {"file_path": f"notes/{rng.choice(WORDS)}.md"}),
            ("bash", {"command": f"cd work && ls -la {rng.choice(WORDS)} | head"}),
        ]
    )
    return {"tool": tool, "args": args, "call_id": f"call_{rng.getrandbits(64):x}", "result": text(50)}


def write_made_up_traces(path: Path, size: int) -> None:
    """Write traces until the file has this many bytes; the same bytes every time."""
    rng = random.Random(0)  # noqa: S311  # made-up data
    written = number = 0
    with path.open("wb") as file:
        while written < size:
            number += 1
            steps = [made_up_step(rng) | {"turn": turn} for turn in range(N_STEPS)]
            trace = {
                "format": "safetydrift.trace/1",
                "id": f"run-{number}",
                "source": "made up",
                "task": f"task-{number % 97}",
                "category": rng.choice(["banking", "slack", "travel", "workspace"]),
                "prompt": " ".join(rng.choices(WORDS, k=30)),
                "ending": "completed",
                "label": {"violated": False, "origin": "nobody"},
                "steps": steps,
            }
            written += file.write(json.dumps(trace).encode() + b"\n")


# -- ways to read it ---------------------------------------------------------------------------------------


def lines_only(path: Path) -> None:
    with path.open("rb") as file:
        for _ in file:
            pass


def standard_json(path: Path) -> None:
    with path.open("rb") as file:
        for line in file:
            json.loads(line)


def typed_parser(path: Path) -> None:
    import msgspec  # noqa: PLC0415  # only where it is measured: a peak of memory counts what is imported

    from safetydrift.formats.native import Native  # noqa: PLC0415

    decode = msgspec.json.Decoder(Native.record_type).decode
    with path.open("rb") as file:
        for line in file:
            decode(line)


def traces_only(path: Path) -> None:
    from safetydrift.formats import read_traces  # noqa: PLC0415

    for _ in read_traces(path):
        pass


def end_to_end(path: Path) -> None:
    from safetydrift.effects.labeler import Labeler  # noqa: PLC0415
    from safetydrift.effects.labeling import label_trace  # noqa: PLC0415
    from safetydrift.formats import load_catalogue, load_space, read_traces  # noqa: PLC0415
    from safetydrift.markov import TransitionCounts, count_transitions  # noqa: PLC0415

    space, labeler = load_space("paper"), Labeler(load_catalogue())
    counts: dict[str, TransitionCounts] = {}
    waiting: dict[str, list[tuple[int, ...]]] = {}

    def count(category: str) -> None:
        some = count_transitions(waiting.pop(category), space.n_states)
        counts[category] = counts[category] + some if category in counts else some

    for trace in read_traces(path):
        run = label_trace(trace, labeler, space)
        waiting.setdefault(run.category, []).append(run.states)
        if len(waiting[run.category]) == 1000:
            count(run.category)
    for category in tuple(waiting):
        count(category)


def imports_only(path: Path) -> None:
    """Import what end to end imports, and read one line: the base of its peak of memory."""
    with tempfile.TemporaryDirectory() as folder, path.open("rb") as file:
        short = Path(folder, "one.jsonl")
        short.write_bytes(file.readline())
        end_to_end(short)


WAYS: dict[str, Callable[[Path], None]] = {
    "lines only": lines_only,
    "json.loads": standard_json,
    "typed parser alone": typed_parser,
    "read_traces": traces_only,
    "end to end": end_to_end,
    "one line, end to end": imports_only,
}


def read_one_way(way: str, path: Path) -> None:
    """Read the file in this process and print what it took; imports are not in the time."""
    if way != "lines only":
        imports_only(path)
    start = time.perf_counter()
    WAYS[way](path)
    seconds = time.perf_counter() - start
    print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024]))


def in_a_process(way: str, path: Path) -> tuple[float, int]:
    seconds, peak = json.loads(
        subprocess.run(
            [sys.executable, __file__, "--way", way, "--traces", str(path)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )
    return seconds, peak


# -- a recorded file ---------------------------------------------------------------------------------------


def stations(path: Path) -> None:
    """Time the way of a recorded file up to each of its stations."""
    import lzma  # noqa: PLC0415

    import msgspec  # noqa: PLC0415

    from safetydrift.effects.labeler import Labeler  # noqa: PLC0415
    from safetydrift.effects.labeling import label_trace  # noqa: PLC0415
    from safetydrift.formats import load_catalogue, load_space, read_traces  # noqa: PLC0415
    from safetydrift.formats.reading import RECORD_FORMATS  # noqa: PLC0415

    space, labeler = load_space("paper"), Labeler(load_catalogue())

    def lines() -> Iterator[bytes]:
        with (lzma.open if path.suffix == ".xz" else open)(path, "rb") as file:
            yield from file

    first = msgspec.json.decode(next(lines()))
    fitting = next(one for one in RECORD_FORMATS if one.recognises(first))
    parse = msgspec.json.Decoder(fitting.record_type).decode
    ways: dict[str, Callable[[], Iterable[object]]] = {
        "decompressing": lines,
        "+ parsing": lambda: map(parse, lines()),
        f"+ traces ({fitting.name})": lambda: (fitting.read(parse(line), "") for line in lines()),
        "read_traces": lambda: read_traces(path),
        "read_traces + labelling": lambda: (label_trace(one, labeler, space) for one in read_traces(path)),
    }

    def exhausted(way: Callable[[], Iterable[object]]) -> Callable[[], object]:
        return lambda: deque(way(), maxlen=0)

    timings = interleaved({name: exhausted(way) for name, way in ways.items()}, 5)
    for name, timing in timings.items():
        print(f"  {name:<58} {timing}")


# -- the program -------------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=TITLE)
    parser.add_argument("--output", type=Path, help="write the figures to this JSON file")
    parser.add_argument("--quick", action="store_true", help="20 MB instead of 200")
    parser.add_argument("--traces", type=Path, help="time this recorded file instead")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.way:
        read_one_way(asked.way, asked.traces)
        return
    if asked.traces:
        stations(asked.traces)
        return
    megabytes, rounds = (20, 3) if asked.quick else (200, 3)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "traces.jsonl")
        write_made_up_traces(path, megabytes * 10**6)
        lines_only(path)
        seconds: dict[str, list[float]] = {way: [] for way in WAYS}
        peaks: dict[str, int] = {}
        for _ in range(rounds):
            for way in WAYS:
                taken, peak = in_a_process(way, path)
                seconds[way].append(taken)
                peaks[way] = max(peak, peaks.get(way, 0))
    timings = {way: Timing.of(taken) for way, taken in seconds.items() if way != "one line, end to end"}
    whole = timings["end to end"].median
    growth = (peaks["end to end"] - peaks["one line, end to end"]) / 2**20
    ratios = {
        "typed parser alone / end to end": (timings["typed parser alone"].median / whole, ">= 0.8"),
        "json.loads / end to end": (timings["json.loads"].median / whole, ">= 4"),
        "typed parser alone / read_traces": (
            timings["typed parser alone"].median / timings["read_traces"].median,
            "none",
        ),
        "json.loads / read_traces": (timings["json.loads"].median / timings["read_traces"].median, "none"),
        "end to end, MB per second": (megabytes / whole, "none"),
        "end to end, peak memory above one line, MiB": (growth, "<= 64"),
    }
    report(f"{TITLE}, {megabytes} MB", timings, ratios)


if __name__ == "__main__":
    main()
