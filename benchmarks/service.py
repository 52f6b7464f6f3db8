"""A team's guard over HTTP on loopback: how long a decision takes at a steady rate, and pages over a long history.

The service runs as a process of its own, as `safetydrift serve` starts it. Agents are threads with a connection each;
calls are sent at their appointed times, whether those before them were answered or not, and the time is counted from
the appointed one: what waits in a queue is not left out. Each call is proposed and confirmed; proposals are timed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from threading import local
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

AGENTS = 16
CALLS_PER_RUN = 20
PAGES = ("/api/v1/runs", "/api/v1/calls?q=notes", "/api/v1/agents")
_OWN = local()


@contextlib.contextmanager
def served(folder: str, *more: str) -> Iterator[tuple[int, str, int]]:
    """Yield the port, the first token, and the process of a service."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = Path(folder) / "settings.toml"
    settings.write_text(
        'format = "safetydrift.service/1"\n[limits]\ncalls_per_second = 100000\nburst = 100000\n'
    )
    command = [sys.executable, "-m", "safetydrift", "serve", "--data", folder, "--port", str(port), *more]
    command += ["--settings", str(settings)]
    log = Path(folder) / "log"
    with log.open("w") as said:
        process = subprocess.Popen(command, stderr=said)
    try:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=1)
                break
            time.sleep(0.05)
        yield port, re.findall(r"sdt_\S+", log.read_text())[0], process.pid
    finally:
        process.terminate()
        process.wait(30)


def asked(port: int, token: str, path: str, body: dict[str, Any] | None) -> bytes:
    """Return the answer to one request, on the connection of this thread."""
    if not hasattr(_OWN, "connection"):
        _OWN.connection = HTTPConnection("127.0.0.1", port, timeout=30)
        _OWN.connection.connect()
        _OWN.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    _OWN.connection.request("GET" if body is None else "POST", path, data, headers)
    reply = _OWN.connection.getresponse()
    answer: bytes = reply.read()
    if reply.status != 200:
        raise AssertionError(f"{path}: {reply.status} {answer[:200]!r}")
    return answer


def one_call(port: int, token: str, name: str, number: int, due: float) -> float:
    """Propose and confirm a call; return the seconds from when the proposal was due until it was answered."""
    run, call = f"{name}-{number // (AGENTS * CALLS_PER_RUN)}", f"c{number}"
    if number % (AGENTS * CALLS_PER_RUN) < AGENTS:
        asked(
            port, token, "/api/v1/runs", {"run": run, "agent": f"agent-{number % 5}", "task": "Sort my notes"}
        )
    time.sleep(max(0.0, due - time.perf_counter()))
    started = due if number % (AGENTS * CALLS_PER_RUN) >= AGENTS else time.perf_counter()
    proposal = {
        "run": run,
        "call_id": call,
        "tool": "read_file",
        "arguments": {"path": f"notes/{number}.txt"},
    }
    answer = json.loads(asked(port, token, "/api/v1/propose", proposal))
    taken = time.perf_counter() - started
    if answer["decision"]["intervention"] not in {"allow", "warn"}:
        raise AssertionError(answer)
    asked(port, token, "/api/v1/confirm", {"run": run, "call_id": call, "result": "a note"})
    return taken


def steady(port: int, token: str, rate: float, seconds: float, name: str) -> list[float]:
    """Return how long each proposal took, sorted."""
    start = time.perf_counter() + 0.2
    with ThreadPoolExecutor(AGENTS) as agents:
        lanes = [
            agents.submit(
                lambda own: [
                    one_call(port, token, f"{name}-{n % AGENTS}", n, start + n / rate)
                    for n in range(own, int(rate * seconds), AGENTS)
                ],
                own,
            )
            for own in range(AGENTS)
        ]
        return sorted(taken for lane in lanes for taken in lane.result())


def memory(process: int) -> float:
    """Return the resident memory of a process in MiB."""
    text = Path(f"/proc/{process}/status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+) kB", text)[0]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rate", type=float, default=200.0, help="calls per second")
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--database", default="", help="PostgreSQL; SQLite if not given")
    parser.add_argument("--json", metavar="FILE")
    told = parser.parse_args()
    seconds = told.seconds or (10.0 if told.quick else 60.0)
    with tempfile.TemporaryDirectory() as folder:
        more = ["--database", told.database] if told.database else []
        with served(folder, *more) as (port, token, process):
            steady(port, token, 50.0, 2.0, "warm")
            before = memory(process)
            taken = steady(port, token, told.rate, seconds, "run")
            stored = json.loads(asked(port, token, "/api/v1/audit/verify", None))["items"][0]
            pages = {path: timed_page(port, token, path) for path in PAGES}
            found = {
                "calls": len(taken),
                "rate": told.rate,
                "p50_ms": 1000 * median(taken),
                "p95_ms": 1000 * taken[int(0.95 * len(taken))],
                "p99_ms": 1000 * taken[int(0.99 * len(taken))],
                "max_ms": 1000 * taken[-1],
                "memory_mib": [before, memory(process)],
                "audit_holds": stored["holds"],
                "pages_ms": pages,
                "load": os.getloadavg(),
            }
    for name, value in found.items():
        print(f"{name}: {value}")
    if told.json:
        Path(told.json).write_text(json.dumps(found, indent=2))


def timed_page(port: int, token: str, path: str) -> float:
    """Return the median milliseconds of a request."""
    times = []
    for _ in range(9):
        started = time.perf_counter()
        asked(port, token, path, None)
        times.append(time.perf_counter() - started)
    return 1000 * median(times)


if __name__ == "__main__":
    main()
