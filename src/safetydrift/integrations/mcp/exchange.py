"""What becomes of each message between a client and a server: the guard's side of the proxy, without the bytes' ways.

A `Run` is what is judged as one trajectory. An `Exchange` is one connection, within which an identifier stands for
one request: the process of a server, a session over HTTP, or a single request where there are no sessions.
"""

from __future__ import annotations

import json
from itertools import count
from threading import Lock
from uuid import uuid4

from safetydrift.errors import MessageError
from safetydrift.integrations.mcp import wire
from safetydrift.monitor.verdict import Intervention
from safetydrift.trace import ToolCall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from safetydrift.guard.decision import Decision
    from safetydrift.guard.guard import Guard
    from safetydrift.integrations.mcp.deciding import Deciding
    from safetydrift.integrations.mcp.definitions import Definitions

    Settle = Callable[[bool, "bytes | None"], None]
    """Told once what becomes of a message: forward it; or do not, and answer with these bytes, or with nothing."""
    Key = tuple[str, Any]

SAID = "SafetyDrift"
TASK_KEY = "safetydrift/task"
"""The key of ``_meta`` under which a client may say what the user asked for."""
MAX_TASK = 64 << 10
MAX_RAW = 4096
LIST, CALL = "tools/list", "tools/call"
GUARDED = frozenset((LIST, CALL))


class Guarding:
    """What all connections of a proxy share.

    Parameters
    ----------
    deciding
        Who decides.
    definitions
        What the tools say of themselves.
    server
        The name under which the catalogue and the configuration know the server.
    refuse_changed
        Whether calls of tools whose definition has changed are refused until it is confirmed.
    say
        Told what an operator should know, one line each.
    """

    def __init__(
        self,
        deciding: Deciding,
        definitions: Definitions,
        server: str,
        *,
        refuse_changed: bool = False,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.deciding, self.definitions, self.server = deciding, definitions, server
        self.guard: Guard = deciding.guard
        self.prefix = f"mcp__{server}__"
        self.refuse_changed = refuse_changed
        self.say = say

    def listed(self, tools: Any, key: str) -> None:
        """Take note of a list of tools; say which have changed."""
        try:
            names, changed = self.definitions.listed(tools)
        except Exception as problem:  # noqa: BLE001  # a full disk must not keep the list from the client
            self.say(f"the definitions of the tools could not be kept: {problem}")
            return
        self.guard.tools.update(self.prefix + name for name in names)
        for name in changed:
            outcome = "refused until it is confirmed" if self.refuse_changed else "still allowed"
            what = f"the definition of {self.prefix}{name} has changed since it was first seen"
            self.say(f"{what}; its calls are {outcome}")
            self.deciding.tell("definition changed", key, detail=f"{what}; {outcome}")


class Run:
    """One trajectory.

    Parameters
    ----------
    guard
        Who keeps its state.
    key
        Its name.
    task
        What the user asked for; empty if it is not known yet.
    about
        ``category`` and ``pipeline``, if known.
    """

    def __init__(
        self, guard: Guard, key: str, task: str = "", about: Mapping[str, str] | None = None
    ) -> None:
        self.guard, self.key = guard, key
        self.task, self._about = task, dict(about or {})
        self._open = False
        self._lock = Lock()

    def hear(self, message: dict[str, Any]) -> None:
        """Take note of a task that a message names."""
        said = wire.meta(message).get(TASK_KEY)
        if isinstance(said, str) and said:
            self.told(said[:MAX_TASK])

    def told(self, said: str) -> None:
        """Take note of a task: the first one opens the run, later ones are heard."""
        with self._lock:
            if said == self.task:
                return
            first, self.task = not self._open, said
        if not first:
            self.guard.hear(self.key, said)

    def open(self) -> None:
        """Open it, unless that was done."""
        with self._lock:
            if not self._open:
                self.guard.session(self.key, self.task, **self._about)
                self._open = True


class Request:
    """A request of which no answer has passed yet.

    Attributes
    ----------
    message
        The request.
    call, call_id
        What the guard was asked about; None and empty for a list of tools.
    forwarded
        Whether the server has it.
    note
        What is said beside the result.
    settle
        Told what becomes of it.
    """

    __slots__ = ("call", "call_id", "forwarded", "message", "note", "settle")

    def __init__(
        self, message: dict[str, Any], settle: Settle, call: ToolCall | None = None, call_id: str = ""
    ) -> None:
        self.message, self.settle = message, settle
        self.call, self.call_id = call, call_id
        self.forwarded, self.note = call is None, ""


class Exchange:
    """One connection.

    Parameters
    ----------
    guarding
        What it shares with others.
    run
        The trajectory its calls belong to.
    """

    def __init__(self, guarding: Guarding, run: Run) -> None:
        self.guarding, self.run = guarding, run
        self._guard = guarding.guard
        self._name = uuid4().hex[
            :12
        ]  # of the connection: the next one counts its requests from the start again
        self._numbers = count(1)
        self._waiting: dict[Key, Request] = {}
        self._lock = Lock()

    # -- from the client ----------------------------------------------------------------------------------

    def from_client(self, raw: bytes, settle: Settle) -> None:
        """Decide about a message of the client; nothing raises.

        `settle` is called once: before this returns, or from another thread when a person is being asked.
        """
        try:
            message = wire.read_strictly(raw)
        except MessageError as problem:
            self._refuse(settle, None, wire.PARSE_ERROR, str(problem))
            return
        try:
            if isinstance(message, list):
                self._batch(message, settle)
            elif isinstance(message, dict):
                self._message(message, settle)
            else:
                self._refuse(settle, None, wire.INVALID_REQUEST, "a message is an object")
        except Exception as problem:  # noqa: BLE001  # whatever it is, no call passes by
            self._failed(message, settle, problem)

    def _message(self, message: dict[str, Any], settle: Settle) -> None:
        method = message.get("method")
        key = wire.request_id(message)
        if method is not None and key in self._waiting:
            self.guarding.say(f"dropped a request under an identifier that is in use: {message.get('id')!r}")
            settle(False, None)  # noqa: FBT003  # the request before it is answered under this identifier
        elif method == CALL:
            self._call(message, key, settle)
        elif method == "notifications/cancelled":
            self._cancelled(message, settle)
        else:
            if method is not None:
                self.run.hear(message)
            if method == LIST and key is not None:
                with self._lock:
                    self._waiting[key] = Request(message, settle)
            settle(True, None)  # noqa: FBT003  # of no concern

    def _batch(self, messages: list[Any], settle: Settle) -> None:
        """Refuse a batch with a tool call in it; batches were part of one revision and are of none since."""
        tables = [one for one in messages if isinstance(one, dict)]
        if not any(one.get("method") in GUARDED for one in tables):
            settle(True, None)  # noqa: FBT003
            return
        why = "tool calls are not taken in batches; send them one by one"
        answers = [
            wire.failure(one["id"], wire.INVALID_REQUEST, why)
            for one in tables
            if "method" in one and wire.request_id(one) is not None
        ]
        self.guarding.say(f"refused a batch: {why}")
        settle(False, b"[" + b",".join(answers) + b"]" if answers else None)  # noqa: FBT003

    def _call(self, message: dict[str, Any], key: Key | None, settle: Settle) -> None:
        params = message.get("params")
        if "id" not in message:
            self.guarding.say("dropped a tool call that asks for no answer")
            settle(False, None)  # noqa: FBT003
            return
        if key is None or not isinstance(params, dict) or not isinstance(params.get("name"), str):
            known = None if key is None else message["id"]
            self._refuse(
                settle, known, wire.INVALID_PARAMS, "a tool call names a tool, and has an identifier"
            )
            return
        name = params["name"]
        if self.guarding.refuse_changed and self.guarding.definitions.changed(name):
            self.guarding.say(f"refused {name!r}: its definition has changed and was not confirmed")
            why = "its description has changed since it was looked at, and nobody has confirmed that"
            settle(False, wire.refusal(message, f"{SAID}: {name} is refused: {why}. Tell the user."))  # noqa: FBT003
            return
        self.run.hear(message)
        self.run.open()
        call_id = f"{self._name}:{next(self._numbers)}:{str(message['id'])[:64]}"
        given = params.get("arguments")
        malformed = None if given is None or isinstance(given, dict) else json.dumps(given)[:MAX_RAW]
        args = given if isinstance(given, dict) else {}
        hints = self.guarding.definitions.hints(name)
        call = ToolCall(self.guarding.prefix + name, args, call_id, malformed, hints)
        request = Request(message, settle, call, call_id)
        with self._lock:
            self._waiting[key] = request
        self.guarding.deciding.begin(
            self.run.key, call, call_id, lambda decision: self._decided(key, request, decision)
        )

    def _decided(self, key: Key, request: Request, decision: Decision) -> None:
        settle = request.settle
        with self._lock:
            wanted = self._waiting.get(key) is request
            if wanted and decision.allowed:
                request.forwarded = True
            elif wanted:
                del self._waiting[key]
        if not wanted:  # cancelled, or the server has ended
            if decision.allowed:
                self._guard.release(self.run.key, request.call_id)
            settle(False, None)  # noqa: FBT003
        elif decision.allowed:
            request.note = self._note(decision)
            settle(True, None)  # noqa: FBT003
        else:
            settle(False, wire.refusal(request.message, self._in_its_words(decision)))  # noqa: FBT003

    def _note(self, decision: Decision) -> str:
        if decision.intervention is Intervention.WARN:
            return self._in_its_words(decision)
        if decision.error and decision.would_be is None:
            self.guarding.say(f"could not judge a call and let it through: {decision.error}")
        return ""

    def _in_its_words(self, decision: Decision) -> str:
        """Return the reason with the names of tools as the server has them, which is how the model may know them."""
        return f"{SAID}: {decision.reason}".replace(self.guarding.prefix, "")

    def _cancelled(self, message: dict[str, Any], settle: Settle) -> None:
        params = message.get("params")
        given = params.get("requestId") if isinstance(params, dict) else None
        # What the server has begun with it may finish: that call stays reserved, and counts as made.
        settle(not self.withdraw(wire.request_id({"id": given})), None)

    def withdraw(self, key: Key | None) -> bool:
        """Take back a call that the client does not want any more; False if the server has it, or it is unknown."""
        with self._lock:
            request = None if key is None else self._waiting.get(key)
            if request is None or key is None or request.forwarded:
                return False
            del self._waiting[key]
        self.guarding.deciding.withdraw(self.run.key, request.call_id)
        self._guard.release(self.run.key, request.call_id)
        request.settle(False, None)  # noqa: FBT003
        return True

    def _refuse(self, settle: Settle, request_id: Any, code: int, why: str) -> None:
        self.guarding.say(f"refused a message of the client: {why}")
        settle(False, wire.failure(request_id, code, f"{SAID}: {why}"))  # noqa: FBT003

    def _failed(self, message: Any, settle: Settle, problem: Exception) -> None:
        """Do what the policy says of errors when the proxy itself fails."""
        what = f"{type(problem).__name__}: {problem}"[:500]
        self.guarding.say(f"failed: {what}")
        is_call = isinstance(message, dict) and message.get("method") == CALL
        key = wire.request_id(message) if isinstance(message, dict) else None
        if not is_call:
            # A batch was looked through before anything can fail; a message that calls no tool may pass.
            settle(not isinstance(message, list), None)
            return
        with self._lock:
            request = None if key is None else self._waiting.pop(key, None)
        if request is not None and request.call_id:
            self._guard.release(self.run.key, request.call_id)
        decision = self.guarding.deciding.unjudged(self.run.key, "", what)
        if decision.allowed:
            settle(True, None)  # noqa: FBT003
        else:
            known = key is not None
            settle(False, wire.refusal(message, self._in_its_words(decision)) if known else None)  # noqa: FBT003

    # -- from the server ----------------------------------------------------------------------------------

    def from_server(self, raw: bytes) -> list[bytes]:
        """Return what the client is given for a message of the server, results confirmed; nothing raises.

        Nearly always that is the message as it came; the others are messages without an end of line.
        """
        if not self._waiting:
            return [raw]
        try:
            message = wire.read_loosely(raw)
            if message is None:
                return [raw]  # no reader takes it for a message
            if not isinstance(message, list):
                new = self._response(message)
                return [raw] if new is None else [new] if new else []
            answers = [self._response(one) for one in message]
            if all(new is None for new in answers):
                return [raw]
            parts = [
                wire.written(old) if new is None else new for new, old in zip(answers, message, strict=True)
            ]
            return [b"[" + b",".join(filter(None, parts)) + b"]"]
        except Exception as problem:  # noqa: BLE001  # an answer that was not looked into is not passed on
            why = f"an answer of the server could not be read ({type(problem).__name__}: {problem})"[:500]
            self.guarding.say(why)
            return self.abandon(why)

    def _response(self, message: Any) -> bytes | None:
        """Take note of a message; return what stands in its place: None for itself, empty for nothing."""
        if not isinstance(message, dict) or "method" in message:
            return None
        key = wire.request_id(message)
        with self._lock:
            request = None if key is None else self._waiting.get(key)
            if request is None or key is None or not ("result" in message or "error" in message):
                return None
            if not request.forwarded:
                return b""  # an answer to what was never asked
            del self._waiting[key]
        if request.call is None:
            result = message.get("result")
            self.guarding.listed(result.get("tools") if isinstance(result, dict) else None, self.run.key)
            return None
        self._settled(request, message)
        return self._warned(message, request.note) if request.note else None

    def _settled(self, request: Request, message: dict[str, Any]) -> None:
        key, call_id = self.run.key, request.call_id
        if "result" in message:
            result = message["result"]
            table = result if isinstance(result, dict) else {}
            if table.get("resultType") == "input_required":
                self._guard.release(key, call_id)  # it is proposed again with what is missing
            elif "task" in table and "content" not in table:
                return  # it goes on in the background; it stays reserved, and counts as made
            elif table.get("isError") is True:
                self._guard.confirm(key, call_id, error=wire.texts(result), call=request.call)
            else:
                self._guard.confirm(key, call_id, wire.texts(result), call=request.call)
        else:
            error = message["error"]
            if isinstance(error, dict) and error.get("code") in wire.NOT_MADE:
                self._guard.release(key, call_id)
            else:
                self._guard.confirm(key, call_id, error=wire.texts(error), call=request.call)

    @staticmethod
    def _warned(message: dict[str, Any], note: str) -> bytes | None:
        result = message.get("result")
        if not isinstance(result, dict) or result.get("resultType") == "input_required":
            error = message.get("error")
            if not isinstance(error, dict):
                return None
            said = f"{error.get('message', '')}\n{note}"
            return wire.written(message | {"error": error | {"message": said}})
        content = result.get("content")
        blocks = content if isinstance(content, list) else []
        return wire.written(message | {"result": result | {"content": [*blocks, wire.block(note)]}})

    # -- ends ---------------------------------------------------------------------------------------------

    def waits_for(self, key: Key | None) -> bool:
        """Return whether a guarded request has no answer yet."""
        return key in self._waiting

    def abandon(self, why: str, *, made: bool | None = None, only: Key | None = None) -> list[bytes]:
        """Return an answer for every call that will get no other one.

        Parameters
        ----------
        why
            Said to the model.
        made
            False if the server certainly did not begin with them. Otherwise nobody knows: they stay reserved, which
            counts as made.
        only
            The one request that is meant, if not all of them.
        """
        with self._lock:
            keys = [key for key in self._waiting if only is None or key == only]
            requests = [self._waiting.pop(key) for key in keys]
        answers = []
        for request in requests:
            if request.call is None:
                answers.append(wire.failure(request.message["id"], wire.INTERNAL_ERROR, f"{SAID}: {why}"))
                continue
            if not request.forwarded:
                self.guarding.deciding.withdraw(self.run.key, request.call_id)
            if not request.forwarded or made is False:
                self._guard.release(self.run.key, request.call_id)
                known = "It was not made."
            else:
                known = "Nobody knows whether it was made."
            answers.append(wire.refusal(request.message, f"{SAID}: this call has no result: {why}. {known}"))
        return answers
