"""The hook that Claude Code starts: hands the event to a resident guard, or judges it here if there is none.

This file is run as a script, without ``site`` and without importing the package, so that a call costs little more
than an interpreter that does nothing. It may import nothing that is not built into the interpreter until there is
nobody to ask.
"""

import sys

LIMIT = 10.0
MAX_EVENT = 32 << 20
MAX_REPLY = 8 << 20


def ask(path: str, data: bytes) -> bytes:
    """Return the reply of the resident guard that listens at a path; OSError if there is none."""
    from _socket import AF_UNIX, SHUT_WR, SOCK_STREAM, socket  # noqa: PLC0415

    connection = socket(AF_UNIX, SOCK_STREAM)
    try:
        connection.settimeout(LIMIT)
        connection.connect(path)
        connection.sendall(data)
        connection.shutdown(SHUT_WR)
        parts = []
        size = 0
        while part := connection.recv(1 << 16):
            parts.append(part)
            size += len(part)
            if size > MAX_REPLY:
                raise OSError("a reply that is too long")
    finally:
        connection.close()
    return b"".join(parts)


def read_event() -> bytes:
    """Return what stands on standard input, up to a bound."""
    from posix import read  # noqa: PLC0415

    parts = []
    size = 0
    while size <= MAX_EVENT and (part := read(0, 1 << 20)):
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def main() -> int:
    """Answer the event on standard input; the first argument is the path of the socket, the others are the hook's."""
    data = read_event()
    try:
        reply = ask(sys.argv[1], data)
        code, _, rest = reply.partition(b"\n")
        output, _, error = rest.partition(b"\0")
        exit_code = int(code)
    except (OSError, ValueError):
        return alone(data)
    sys.stdout.write(output.decode())
    sys.stderr.write(error.decode())
    return exit_code


def alone(data: bytes) -> int:
    """Judge the event in this process, and leave a resident guard behind for the next one."""
    import os  # noqa: PLC0415
    import site  # noqa: PLC0415

    site.main()
    here = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120
    sys.path[0] = here  # the folder of the package, not the one of this script
    from safetydrift.integrations.claude_code import main as judge  # noqa: PLC0415
    from safetydrift.integrations.resident import leave_behind  # noqa: PLC0415

    code = judge(sys.argv[2:], data)
    leave_behind(sys.argv[1], sys.argv[2:])
    return code


if __name__ == "__main__":
    try:
        code = main()
        sys.stdout.flush()
    except BaseException as problem:  # noqa: BLE001  # any other exit code would let the call through
        sys.stderr.write(f"SafetyDrift failed: {type(problem).__name__}: {problem}\n")
        code = 2
    sys.exit(code)
