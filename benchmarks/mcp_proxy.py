"""What the MCP proxy adds to a tool call.

The same client asks the same server, directly and through the proxy, in turn; both ways are open all the time. The
server does nothing but answer. What counts is the difference of the medians: a server that works takes longer, the
proxy does not. Each call is judged, reserved, recorded in the chained log, and confirmed with its result. Over HTTP
(with the extra `mcp`) a client and a server of plain sockets keep one connection open.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from itertools import count
from typing import TYPE_CHECKING

from _timing import interleaved, options, report

if TYPE_CHECKING:
    from collections.abc import Callable

TITLE = "The MCP proxy"
GOAL_MS = "<= 1"
_NUMBERS = count(1)

SERVER = """
import json, sys
for line in sys.stdin.buffer:
    number = json.loads(line)["id"]
    result = {"content": [{"type": "text", "text": "three notes"}], "isError": False}
    sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode() + b"\\n")
    sys.stdout.buffer.flush()
"""
HTTP_SERVER = """
import json, socket, sys, threading
def serve(connection):
    file = connection.makefile("rb")
    while file.readline():
        length = 0
        while (line := file.readline().lower()) != b"\\r\\n":
            if line.startswith(b"content-length:"):
                length = int(line[15:])
        number = json.loads(file.read(length))["id"]
        result = {"content": [{"type": "text", "text": "three notes"}], "isError": False}
        body = json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode()
        head = b"HTTP/1.1 200 OK\\r\\ncontent-type: application/json\\r\\ncontent-length: %d\\r\\n\\r\\n"
        connection.sendall(head % len(body) + body)
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    threading.Thread(target=serve, args=(connection,), daemon=True).start()
"""
CALLS = {
    "a catalogued tool": ("read_file", {"path": "notes/today.md"}),
    "a shell command": ("bash", {"command": "grep -rn token src | head -20"}),
}


def message(kind: str) -> bytes:
    tool, arguments = CALLS[kind]
    params = {"name": tool, "arguments": arguments}
    request = {"jsonrpc": "2.0", "id": next(_NUMBERS), "method": "tools/call", "params": params}
    return json.dumps(request).encode()


def checked(answer: bytes) -> None:
    if b"three notes" not in answer:
        raise AssertionError(f"not the server's answer: {answer!r}")


def over_pipes(process: subprocess.Popen[bytes], kind: str) -> Callable[[], object]:
    def call() -> None:
        if process.stdin is None or process.stdout is None:
            raise AssertionError("both are pipes")
        process.stdin.write(message(kind) + b"\n")
        process.stdin.flush()
        checked(process.stdout.readline())

    return call


def over_http(port: int, kind: str) -> Callable[[], object]:
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    file = connection.makefile("rb")

    def call() -> None:
        body = message(kind)
        head = "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: "
        connection.sendall(f"{head}{len(body)}\r\n\r\n".encode() + body)
        file.readline()
        length = 0
        while (line := file.readline().lower()) != b"\r\n":
            if line.startswith(b"content-length:"):
                length = int(line[15:])
        checked(file.read(length))

    return call


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def waiting_for(port: int) -> None:
    for _ in range(1000):
        with socket.socket() as trying:
            if trying.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.01)
    raise AssertionError("nobody listens")


def main() -> None:
    rounds = 300 if options(TITLE).quick else 2000
    with tempfile.TemporaryDirectory() as folder:
        proxy = [sys.executable, "-m", "safetydrift", "mcp", "--state", folder, "--name", "notes"]
        proxy += ["--policy", os.path.join(folder, "policy.toml")]  # noqa: PTH118
        with open(proxy[-1], "w", encoding="ascii") as file:  # noqa: PTH123
            file.write('format = "safetydrift.policy/1"\n[[when]]\nproposal = 1.0\nthen = "block"\n')
        server = [sys.executable, "-c", SERVER]
        commands = {"directly": server, "through the proxy": [*proxy, "--", *server]}
        started = []
        calls: dict[str, Callable[[], object]] = {}
        try:
            for way, command in commands.items():
                process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
                )
                started.append(process)
                calls |= {f"stdio, {kind}, {way}": over_pipes(process, kind) for kind in CALLS}
            if find_spec("httpx2") and find_spec("uvicorn"):
                up, port = free_port(), free_port()
                upstream = ["--upstream", f"http://127.0.0.1:{up}/mcp", "--port", str(port)]
                for command, where in (
                    ([sys.executable, "-c", HTTP_SERVER, str(up)], up),
                    ([*proxy, *upstream], port),
                ):
                    started.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))
                    waiting_for(where)
                for way, where in (("directly", up), ("through the proxy", port)):
                    calls |= {f"http, {kind}, {way}": over_http(where, kind) for kind in CALLS}
            timings = interleaved(calls, rounds)
        finally:
            for process in started:
                process.terminate()
                process.wait()
    ratios = {}
    for name, timing in timings.items():
        if name.endswith("through the proxy"):
            what = name.removesuffix(", through the proxy")
            bare = timings[f"{what}, directly"].median
            ratios[f"{what}: added at p50, ms"] = 1e3 * (timing.median - bare), GOAL_MS
            ratios[f"{what}: through the proxy / directly"] = timing.median / bare, "none"
    report(TITLE, timings, ratios)


if __name__ == "__main__":
    main()
