"""Asking a person: the question, the answer, and three ways to get one.

An approver is anything with a method ``ask(question, timeout)`` that returns an `Answer`; one with a coroutine
``ask_async`` besides is awaited where a loop runs. Whatever an approver raises, and whatever it returns that is no
`Answer`, is nobody's answer, and the policy decides.
"""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING

from msgspec import Struct

from safetydrift.guard.decision import Decision

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


MAX_SHOWN = 600
"""Characters of the arguments that a question shows."""
MAX_REPLY = 64 * 1024
_YES = frozenset(("y", "yes"))
_NO = frozenset(("n", "no"))


class Question(Struct, frozen=True, gc=False, kw_only=True):
    """What a person is asked.

    Parameters
    ----------
    key, call_id
        The run and the call.
    tool
        The tool's name.
    arguments
        The arguments as text, secrets taken out, cut to `MAX_SHOWN` characters.
    decision
        What the guard found: probability, threshold, rule, reason.
    trajectory
        How the run came where it stands, in words.
    permits
        What a yes would allow, in words. It holds for this one call.
    """

    key: str
    call_id: str
    tool: str
    arguments: str
    decision: Decision
    trajectory: str
    permits: str

    def definition(self) -> dict[str, Any]:
        """Return the question as plain data."""
        decision = self.decision
        return {
            "key": self.key,
            "call_id": self.call_id,
            "tool": self.tool,
            "arguments": self.arguments,
            "probability": None if isnan(decision.probability) else decision.probability,
            "threshold": None if isnan(decision.threshold) else decision.threshold,
            "rule": decision.rule,
            "reason": decision.reason,
            "trajectory": self.trajectory,
            "permits": self.permits,
        }

    def __str__(self) -> str:
        lines = [
            f"The agent wants to call {self.tool} with {self.arguments}",
            f"  why you are asked: {self.decision.reason or self.decision.rule}",
        ]
        if not isnan(self.decision.probability):
            lines.append(f"  probability of a violation: {self.decision.probability:.2f}")
        lines += [f"  so far: {self.trajectory}", f"  a yes allows: {self.permits}"]
        return "\n".join(lines)


class Answer(Struct, frozen=True, gc=False):
    """What a person said.

    Parameters
    ----------
    approved
        Yes or no; None when nobody answered.
    by
        Who answered, as far as it is known.
    """

    approved: bool | None
    by: str = ""


NOBODY = Answer(None)


class Approver:
    """Asks with a function; the base of the other ways to ask.

    Parameters
    ----------
    function
        Takes a `Question` and a time limit in seconds; returns an `Answer`, or True or False.
    """

    def __init__(self, function: Callable[[Question, float], Answer | bool] | None = None) -> None:
        self._function = function

    def ask(self, question: Question, timeout: float) -> Answer:
        """Return the answer of a person; `NOBODY` if none came in time."""
        said = self._function(question, timeout) if self._function is not None else NOBODY
        return Answer(said, "a function") if isinstance(said, bool) else said


class TerminalApprover(Approver):
    """Asks on the terminal that the process was started from, whatever standard input is used for.

    Parameters
    ----------
    path
        The terminal.
    """

    def __init__(self, path: str = "/dev/tty") -> None:
        super().__init__()
        self.path = path

    def ask(self, question: Question, timeout: float) -> Answer:
        """Show the question and wait for a line; anything but a clear yes or no is asked again."""
        import os  # noqa: PLC0415  # only when somebody is asked
        from time import monotonic  # noqa: PLC0415  # as above

        until = monotonic() + timeout
        try:
            terminal = os.open(self.path, os.O_RDWR | os.O_NOCTTY)
        except OSError:
            return NOBODY  # there is no terminal
        try:
            return self._ask(terminal, question, until)
        finally:
            os.close(terminal)

    def _ask(self, terminal: int, question: Question, until: float) -> Answer:
        from os import read, write  # noqa: PLC0415  # as above
        from select import select  # noqa: PLC0415  # as above
        from time import monotonic  # noqa: PLC0415  # as above

        write(
            terminal, f"\n{_printable(str(question))}\nAllow this one call? [y/n] ".encode("utf-8", "replace")
        )
        while (left := until - monotonic()) > 0 and select([terminal], [], [], left)[0]:
            typed = read(terminal, 4096)
            if not typed:
                break
            for line in typed.decode("utf-8", "replace").splitlines():
                word = line.strip().lower()
                if word in _YES or word in _NO:
                    return Answer(word in _YES, "terminal")
            write(terminal, b"Please answer y or n: ")
        write(terminal, b"\nNo answer; the policy decides.\n")
        return NOBODY


class WebhookApprover(Approver):
    """Asks a service of yours: posts the question as JSON and waits for ``{"approved": true, "by": "anna"}``.

    Parameters
    ----------
    url
        Where to post, ``http`` or ``https``. Redirects are not followed.
    headers
        Sent along, for instance a token.

    Raises
    ------
    ValueError
        If the address is none.
    """

    def __init__(self, url: str, headers: Mapping[str, str] | None = None) -> None:
        from urllib.parse import urlsplit  # noqa: PLC0415  # only where somebody is asked this way

        super().__init__()
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError(f"a webhook has an http or https address, not {url!r}")
        self._secure = parts.scheme == "https"
        self._host, self._port = parts.hostname, parts.port
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._headers = {"Content-Type": "application/json"} | dict(headers or {})

    def ask(self, question: Question, timeout: float) -> Answer:
        """Post the question; anything but a well-formed yes or no in time is nobody's answer."""
        import json  # noqa: PLC0415  # only when somebody is asked
        from http.client import HTTPConnection, HTTPException, HTTPSConnection  # noqa: PLC0415  # as above
        from threading import Timer  # noqa: PLC0415  # as above

        kind = HTTPSConnection if self._secure else HTTPConnection
        connection = kind(self._host, self._port, timeout=timeout)
        # The time limit of a socket is for each of its reads; a reply that drips would outlast it.
        bound = Timer(timeout, _cut, (connection,))
        bound.daemon = True
        bound.start()
        try:
            connection.request("POST", self._path, json.dumps(question.definition()), self._headers)
            reply = connection.getresponse()
            if reply.status != 200:  # noqa: PLR2004
                return NOBODY
            said = json.loads(reply.read(MAX_REPLY))
        except (OSError, HTTPException, ValueError, RecursionError, AttributeError):
            return NOBODY
        finally:
            bound.cancel()
            connection.close()
        if not isinstance(said, dict) or not isinstance(said.get("approved"), bool):
            return NOBODY
        return Answer(said["approved"], str(said.get("by", "webhook"))[:200])


def answered(approver: Any, question: Question, timeout: float) -> Answer:
    """Return what an approver answers; whatever goes wrong is nobody's answer."""
    try:
        answer = approver.ask(question, timeout)
    except Exception:  # noqa: BLE001  # an approver of somebody else's may raise anything
        return NOBODY
    return answer if isinstance(answer, Answer) else NOBODY


async def answered_async(approver: Any, question: Question, timeout: float) -> Answer:  # noqa: ASYNC109  # theirs
    """As `answered`, without blocking the loop."""
    import asyncio  # noqa: PLC0415  # only where a loop runs

    ask_async = getattr(approver, "ask_async", None)
    asking = (
        asyncio.to_thread(approver.ask, question, timeout)
        if ask_async is None
        else ask_async(question, timeout)
    )
    try:
        answer = await asyncio.wait_for(asking, timeout)
    except Exception:  # noqa: BLE001  # as above; a cancelled task is no Exception and goes on up
        return NOBODY
    return answer if isinstance(answer, Answer) else NOBODY


def _cut(connection: Any) -> None:
    """Break off a connection from another thread."""
    from contextlib import suppress  # noqa: PLC0415  # as above

    with suppress(OSError, AttributeError):
        connection.sock.shutdown(2)


def _printable(text: str) -> str:
    return "".join(
        [char if char.isprintable() or char == "\n" else "\N{REPLACEMENT CHARACTER}" for char in text]
    )
