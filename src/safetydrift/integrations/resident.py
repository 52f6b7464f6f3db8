"""A resident guard: a process that answers hooks on a local socket, so that none of them has to load a model.

It listens at a path in a folder that only its owner can enter, ends by itself when nobody has asked for a while, and
keeps nothing that is not in the store: when it is killed, the next hook judges in its own process and starts another.
"""

from __future__ import annotations

import os
import socket
import sys
from contextlib import suppress
from fcntl import LOCK_EX, LOCK_NB, flock
from hashlib import sha256
from threading import BoundedSemaphore, Thread
from typing import TYPE_CHECKING

from safetydrift._version import __version__
from safetydrift.integrations.claude_code import MAX_EVENT, ClaudeCodeHook, Options, replied

if TYPE_CHECKING:
    from collections.abc import Sequence

ALONE = "SAFETYDRIFT_ALONE"
"""The environment variable by which hooks are told to leave no resident guard behind."""
IDLE = 1800.0
"""Seconds without a question after which it ends."""
PATIENCE = 10.0
AT_ONCE = 64
FOLDER_MODE = 0o077


def socket_path(arguments: Sequence[str]) -> str:
    """Return where the resident guard for some options listens; another version or model listens elsewhere."""
    options = Options(arguments)
    told = "\x1f".join([__version__, *[str(getattr(options, name)) for name in Options.NAMES]])
    return os.path.join(options.state, f"hook-{sha256(told.encode()).hexdigest()[:16]}.sock")  # noqa: PTH118


def leave_behind(path: str, arguments: Sequence[str]) -> None:
    """Start a resident guard that outlives this process; that it could not be started is no error."""
    if os.environ.get(ALONE):
        return
    import subprocess  # noqa: PLC0415  # once per half hour

    command = [sys.executable, "-m", "safetydrift", "hook", "serve", path, *arguments]
    with suppress(OSError):
        subprocess.Popen(  # noqa: S603  # our own command
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=dict(
                os.environ, PYTHONPATH=os.pathsep.join(filter(None, [_root(), os.environ.get("PYTHONPATH")]))
            ),
        )


def serve(path: str, arguments: Sequence[str], idle: float = IDLE) -> int:
    """Answer hooks until nobody has asked for a while; return the exit code."""
    options = Options(arguments)
    folder = os.path.dirname(path)  # noqa: PTH120
    os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103
    if os.stat(folder).st_mode & FOLDER_MODE:  # noqa: PTH116
        os.chmod(folder, 0o700)  # noqa: PTH101
    alone = _alone(path)
    if alone is None:
        return 0  # somebody was quicker
    listener = _listening(path)
    try:
        hook = options.hook()  # a hook that cannot be made is no resident: each call then says why by itself
        _warmed(hook)
        room = BoundedSemaphore(AT_ONCE)
        listener.settimeout(idle)
        while True:
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                return 0
            room.acquire()
            Thread(target=_answered, args=(connection, hook, room), daemon=True).start()
    finally:
        with suppress(OSError):
            os.unlink(path)  # noqa: PTH108
        listener.close()
        os.close(alone)


def _listening(path: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108
    before = os.umask(0o177)
    try:
        listener.bind(path)
    finally:
        os.umask(before)
    listener.listen(AT_ONCE)
    return listener


def _alone(path: str) -> int | None:
    """Return a lock that only one process holds for a path, None if another one does."""
    file = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        flock(file, LOCK_EX | LOCK_NB)
    except OSError:
        os.close(file)
        return None
    return file


def _warmed(hook: ClaudeCodeHook) -> None:
    """Load what the first shell command would load."""
    from safetydrift.trace import ToolCall  # noqa: PLC0415

    if not hasattr(hook.guard, "monitor"):
        return  # a team's guard decides
    hook.guard.monitor.labeler.propose(ToolCall("Bash", {"command": "true"}))


def _answered(connection: socket.socket, hook: ClaudeCodeHook, room: BoundedSemaphore) -> None:
    try:
        with connection, suppress(OSError):
            connection.settimeout(PATIENCE)
            data = bytearray()
            while len(data) <= MAX_EVENT and (part := connection.recv(1 << 20)):
                data += part
            if data:
                reply = replied(bytes(data), lambda: hook, lambda: hook.guard.policy.on_error.value)
                error = f"{reply.error}\n" if reply.error else ""
                connection.sendall(f"{reply.code}\n{reply.output}\0{error}".encode())
    finally:
        room.release()


def _root() -> str:
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120
