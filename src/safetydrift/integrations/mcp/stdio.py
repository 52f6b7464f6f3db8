"""The proxy over standard input and output: the client speaks to us, we speak to a server that we start.

Bytes are carried by threads, one for each direction: whatever kind of file the standard streams are, reading and
writing them works, and a side that does not read holds up nobody but the one who writes to it.
"""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from threading import Event, Lock, Thread

from safetydrift.errors import MessageError
from safetydrift.integrations.mcp.wire import Lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from safetydrift.integrations.mcp.exchange import Exchange

CHUNK = 1 << 16
PATIENCE = 5.0
"""Seconds that a server is given to end by itself when the client has gone."""
FAILED, NOT_FOUND, SIGNALLED = 1, 127, 128


class StdioProxy:
    """One server, started and guarded.

    Parameters
    ----------
    exchange
        Decides about the messages.
    command
        The server's command line.
    source, sink
        File descriptors of the client's side.
    """

    def __init__(self, exchange: Exchange, command: Sequence[str], source: int = 0, sink: int = 1) -> None:
        self.exchange, self.command = exchange, list(command)
        self._source, self._sink = source, sink
        self._say = exchange.guarding.say
        self._to_client, self._to_server = Lock(), Lock()
        self._over = Event()
        self._client_gone = False
        self._broken = False
        self._signal = 0

    def run(self) -> int:
        """Carry messages until one side ends; return the exit code.

        0 when the client has ended it; the server's own code, or 1 instead of 0, when the server has; 127 when the
        server could not be started; 128 and the number of the signal that ended us.
        """
        try:
            server = subprocess.Popen(  # noqa: S603  # starting it is what we are told to do
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
            )
        except OSError as problem:
            self._say(f"the server could not be started: {problem}")
            return NOT_FOUND
        with server:
            self._listen()
            reader = Thread(target=self._guarded, args=(self._read_server, server), daemon=True)
            reader.start()
            Thread(target=self._guarded, args=(self._read_client, server), daemon=True).start()
            self._over.wait()
            self._end(server, reader)
        return self._code(server)

    def _listen(self) -> None:
        def told(number: int, _frame: object) -> None:
            self._signal = number
            self._over.set()

        with suppress(ValueError):  # not the main thread: signals are somebody else's
            for name in ("SIGTERM", "SIGINT", "SIGHUP"):
                if hasattr(signal, name):
                    signal.signal(getattr(signal, name), told)

    def _guarded(
        self, work: Callable[[subprocess.Popen[bytes]], None], server: subprocess.Popen[bytes]
    ) -> None:
        """Do one direction's work; when it fails, everything ends."""
        try:
            work(server)
        except Exception as problem:  # noqa: BLE001  # a proxy that carries no more must not look as if it did
            self._broken = True
            self._say(f"failed: {type(problem).__name__}: {problem}")
            self._over.set()

    # -- two directions -----------------------------------------------------------------------------------

    def _read_client(self, server: subprocess.Popen[bytes]) -> None:
        lines = Lines()
        for data in _chunks(self._source):
            try:
                for line in lines.feed(data):
                    self._client_line(line, server)
            except MessageError as problem:  # its identifier is unknown: only the end of all tells the client
                self._broken = True
                self._say(f"the client sent {problem}; the connection is closed")
                self._over.set()
                return
        if lines.rest():
            self._say("the client ended in the middle of a message, which was not passed on")
        self._client_gone = True
        with self._to_server, suppress(OSError):
            if server.stdin is not None:
                server.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            server.wait(PATIENCE)
        self._over.set()

    def _client_line(self, line: bytes, server: subprocess.Popen[bytes]) -> None:
        def settle(forward: bool, answer: bytes | None) -> None:
            if forward:
                with (
                    self._to_server,
                    suppress(OSError, ValueError),
                ):  # a server that ended is noticed elsewhere
                    if server.stdin is not None:
                        _write(server.stdin.fileno(), line)
            elif answer is not None:
                self._answer(answer + b"\n")

        if not line.strip():
            settle(forward=True, answer=None)
        else:
            self.exchange.from_client(line, settle)

    def _read_server(self, server: subprocess.Popen[bytes]) -> None:
        if server.stdout is None:
            raise AssertionError("the server's output is a pipe")
        lines = Lines()
        for data in _chunks(server.stdout.fileno()):
            try:
                for line in lines.feed(data):
                    self._server_line(line)
            except MessageError as problem:
                self._say(f"the server sent {problem}, which was not passed on")
                for answer in self.exchange.abandon(f"the server sent {problem}"):
                    self._answer(answer + b"\n")
        if lines.rest():
            self._server_line(lines.rest())
        self._over.set()

    def _server_line(self, line: bytes) -> None:
        for answer in self.exchange.from_server(line):
            self._answer(answer if answer is line else answer + b"\n")

    def _answer(self, data: bytes) -> None:
        try:
            with self._to_client:
                _write(self._sink, data)
        except OSError:  # the client does not listen any more
            self._client_gone = True
            self._over.set()

    # -- the end ------------------------------------------------------------------------------------------

    def _end(self, server: subprocess.Popen[bytes], reader: Thread) -> None:
        """See that the server ends, and that no call stays without an answer."""
        if not (self._signal or self._broken):
            with suppress(subprocess.TimeoutExpired):
                server.wait(1.0)  # it has closed its output, and is about to end
        if server.poll() is None:
            server.terminate()
            try:
                server.wait(2.0)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
        reader.join(1.0)  # what it said last
        for answer in self.exchange.abandon("the server has ended"):
            self._answer(answer + b"\n")

    def _code(self, server: subprocess.Popen[bytes]) -> int:
        if self._signal:
            return SIGNALLED + self._signal
        if self._broken:
            return FAILED
        if self._client_gone:
            return 0
        code = server.returncode
        return SIGNALLED - code if code < 0 else code or FAILED


def _chunks(descriptor: int) -> Iterator[bytes]:
    while True:
        try:
            data = os.read(descriptor, CHUNK)
        except OSError:
            return
        if not data:
            return
        yield data


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
