"""Claude Code: the guard as a command hook.

One process per event reads the event from its standard input and answers on its standard output. Where there is no
objection it says nothing, so that the user's own permission rules stay what they are. What goes wrong denies the
call, unless the policy says otherwise; where not even that can be said in JSON, exit code 2 says it.
"""

from __future__ import annotations

import json
import os
import sys

from safetydrift.monitor.verdict import Intervention

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from safetydrift.guard.decision import Decision
    from safetydrift.guard.guard import Guard

MAX_EVENT = 32 << 20
"""Bytes of an event; a larger one is not read."""
MAX_LEAVES = 20_000
BLOCKED = 2
"""The exit code that blocks where an event can be blocked; its reason is standard error."""
SAID = "SafetyDrift"


class Reply:
    """What a hook answers: exit code, standard output, standard error; `said` is what the output says, as an object."""

    __slots__ = ("code", "error", "output", "said")

    def __init__(self, output: dict[str, Any] | None = None, code: int = 0, error: str = "") -> None:
        self.said = output or {}
        self.output = json.dumps(output) if output else ""
        self.code, self.error = code, error


class ClaudeCodeHook:
    """Answers the events of Claude Code with a guard.

    A run is a session of Claude Code, ``<session_id>/main``; each of its subagents is a part of it,
    ``<session_id>/<agent_id>``, and counts for it.

    Parameters
    ----------
    guard
        Who decides. It needs a store that outlives the process.
    category, pipeline
        What the model is told about the runs, if anything.
    """

    def __init__(self, guard: Guard, category: str = "", pipeline: str = "") -> None:
        self.guard = guard
        self._about = {"category": category, "pipeline": pipeline}
        self._answers: dict[str, Callable[[dict[str, Any]], dict[str, Any] | None]] = {
            "PreToolUse": self._proposed,
            "PostToolUse": self._made,
            "PostToolUseFailure": self._made,
            "UserPromptSubmit": self._heard,
            "SubagentStart": self._begun,
            "SessionEnd": self._ended,
        }

    def answer(self, event: dict[str, Any]) -> Reply:
        """Return the answer to an event; one that is of no concern has an empty one."""
        handle = self._answers.get(str(event.get("hook_event_name")))
        if handle is None:
            return Reply()
        return Reply(handle(event))

    def _proposed(self, event: dict[str, Any]) -> dict[str, Any] | None:
        from safetydrift.trace import ToolCall  # noqa: PLC0415  # most events propose nothing

        key = self._opened(event)
        name, given = event["tool_name"], event.get("tool_input")
        malformed = None if isinstance(given, dict) else json.dumps(given)[:4096]
        call = ToolCall(name, given if isinstance(given, dict) else {}, malformed=malformed)
        decision = self.guard.propose(key, call, _text(event.get("tool_use_id")))
        return said_of(decision)

    def _made(self, event: dict[str, Any]) -> None:
        from safetydrift.trace import ToolCall  # noqa: PLC0415  # as above

        key, call_id = self._opened(event), _text(event.get("tool_use_id"))
        given = event.get("tool_input")
        call = ToolCall(_text(event.get("tool_name")), given if isinstance(given, dict) else {})
        error = event.get("error") if event["hook_event_name"] == "PostToolUseFailure" else None
        result = None if error is not None else as_read(event.get("tool_response"))
        self.guard.confirm(key, call_id, result, error=error, call=call)

    def _heard(self, event: dict[str, Any]) -> None:
        prompt = _text(event.get("prompt"))
        key = _key(event, "main")
        if self.guard.store.read(key) is None:
            self.guard.session(key, prompt, **self._about)
        else:
            self.guard.quiet(key)
            self.guard.hear(key, prompt)

    def _begun(self, event: dict[str, Any]) -> None:
        self._opened(event)

    def _ended(self, _event: dict[str, Any]) -> None:
        self.guard.store.sweep()  # the session itself may be resumed; it expires

    def _opened(self, event: dict[str, Any]) -> str:
        """Return the key of an event's run; that of a subagent is opened, its session has to be open."""
        agent = _text(event.get("agent_id")) or "main"
        key = _key(event, agent)
        if agent != "main":
            self.guard.session(key, parent=_key(event, "main"), **self._about)
        return key


def said_of(decision: Decision) -> dict[str, Any] | None:
    """Return the answer to a proposed call; None where there is no objection."""
    if decision.intervention is Intervention.ALLOW:
        if decision.error and decision.would_be is None:
            return {"systemMessage": f"{SAID} could not judge a call and let it through: {decision.error}"}
        return None
    if decision.intervention is Intervention.WARN:
        said = {"hookEventName": "PreToolUse", "additionalContext": f"{SAID}: {decision.reason}"}
        return {"hookSpecificOutput": said}
    reason = decision.reason + (NO_PROMPT if "LostStateError" in (decision.error or "") else "")
    if decision.asks:
        return permission("ask", reason)
    return permission("deny", reason) | {"systemMessage": f"{SAID}: {decision.reason}"}


def permission(done: str, reason: str) -> dict[str, Any]:
    """Return the answer that asks about a call, or denies it."""
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": done,
            "permissionDecisionReason": f"{SAID}: {reason}",
        }
    }


def as_read(response: Any) -> str:
    """Return a tool's response as the model reads it: its texts, one after the other."""
    if isinstance(response, str):
        return response
    return "\n".join(_leaves(response))


def _leaves(value: Any) -> Iterator[str]:
    waiting, count = [value], 0
    while waiting and count < MAX_LEAVES:
        count += 1
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            waiting.extend(reversed(one.values()))
        elif isinstance(one, list):
            waiting.extend(reversed(one))
        elif one is not None and not isinstance(one, bool):
            yield str(one)


def _key(event: dict[str, Any], agent: str) -> str:
    session = event["session_id"]
    if not isinstance(session, str) or not session:
        raise ValueError("the event names no session")
    return f"{session}/{agent}"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


# -- as a process ---------------------------------------------------------------------------------------------


class Options:
    """What a hook is told on its command line.

    Attributes
    ----------
    state
        The folder of the sessions and of the decision log.
    model, policy, config
        Files; an empty policy is the default one, an empty configuration none.
    category, pipeline
        See `ClaudeCodeHook`.
    service, token
        The address of a team's guard that decides instead, and the file with our token; if that is empty, the
        environment variable SAFETYDRIFT_TOKEN says it.
    """

    NAMES: tuple[str, ...] = (
        "state",
        "model",
        "policy",
        "config",
        "category",
        "pipeline",
        "service",
        "token",
    )
    AGENT = "claude-code"
    """What the agent is called to a team's guard."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self.state, self.model = state_folder(), "default"
        self.policy = self.config = self.category = self.pipeline = self.service = self.token = ""
        words = iter(arguments)
        for word in words:
            name, equals, value = word.removeprefix("--").partition("=")
            if not word.startswith("--") or name not in self.NAMES:
                raise ValueError(f"the hook does not know {word!r}; it takes --{', --'.join(self.NAMES)}")
            setattr(self, name, value if equals else next(words, ""))

    def guard(self) -> Guard:
        """Return a guard with its files; the folder is made, for its owner only, if it is not there."""
        if self.service:
            return self._remote()
        from safetydrift.guard.decision_log import DecisionLog  # noqa: PLC0415  # not before it is needed
        from safetydrift.guard.guard import Guard  # noqa: PLC0415  # as above
        from safetydrift.guard.stores.sqlite import SQLiteStore  # noqa: PLC0415  # as above

        os.makedirs(self.state, mode=0o700, exist_ok=True)  # noqa: PTH103  # pathlib is not cheap to import
        store = SQLiteStore(os.path.join(self.state, "sessions.sqlite"))  # noqa: PTH118
        log = DecisionLog(os.path.join(self.state, "decisions.jsonl"), buffer=1)  # noqa: PTH118
        return Guard.load(self.model, self.policy or None, store, log=log, config=self.config or None)

    def _remote(self) -> Guard:
        """Return a guard that asks a team's. Questions are put on its page, and are the agent's own to ask besides."""
        import getpass  # noqa: PLC0415  # only where a team decides

        from safetydrift.guard.remote import RemoteGuard  # noqa: PLC0415  # as above

        token = ""
        if self.token:
            with open(self.token, encoding="utf-8") as file:  # noqa: PTH123  # the idiom of this module
                token = file.read(4096).strip()
        guard = RemoteGuard(
            self.service, token, policy=self.policy or None, agent=self.AGENT, person=getpass.getuser()
        )
        guard.approver = None  # the agent asks its own user
        return guard

    def hook(self) -> ClaudeCodeHook:
        """Return the hook."""
        return ClaudeCodeHook(self.guard(), self.category, self.pipeline)


NO_PROMPT = " No prompt of this session has been seen: the user has to send another one."


def state_folder() -> str:
    """Return where state is kept unless the command line says otherwise."""
    own = os.environ.get("SAFETYDRIFT_STATE")
    if own:
        return own
    base = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")  # noqa: PTH111
    return os.path.join(base, "safetydrift")  # noqa: PTH118


def replied(
    data: bytes,
    hook: Callable[[], ClaudeCodeHook],
    on_error: Callable[[], str],
    named: Callable[[dict[str, Any]], str] | None = None,
) -> Reply:
    """Return the reply to an event as it came in; nothing raises.

    Parameters
    ----------
    data
        The event.
    hook
        Makes the hook, or returns the one there is.
    on_error
        Says what becomes of a call when something goes wrong: ``"block"``, ``"ask"`` or ``"allow"``.
    named
        Says which of our events one is; what it says of itself if not given.
    """
    event: Any = None
    try:
        event = _parsed(data)
        return hook().answer(event)
    except Exception as problem:  # noqa: BLE001  # whatever it is, the call must not pass by it
        if named is not None and isinstance(event, dict):
            event = {"hook_event_name": named(event) or None}
        return failed(event, problem, on_error)


def _parsed(data: bytes) -> Any:
    if len(data) > MAX_EVENT:
        raise ValueError(f"an event of more than {MAX_EVENT} bytes")
    return json.loads(data)


def failed(event: Any, problem: BaseException, on_error: Callable[[], str]) -> Reply:
    """Return the reply when something went wrong on our side."""
    what = f"{type(problem).__name__}: {problem}"[:500]
    try:
        done = on_error()
    except Exception:  # noqa: BLE001  # the policy itself may be what is broken
        done = "block"
    name = event.get("hook_event_name") if isinstance(event, dict) else None
    message = f"{SAID} failed ({what})"
    if done == "allow":
        return Reply({"systemMessage": f"{message}; its policy lets calls through."})
    if name == "PreToolUse":
        reason = f"the guard failed, and its policy for that is to {done} ({what}). Tell the user."
        return Reply(permission("ask" if done == "ask" else "deny", reason))
    if name is None:
        return Reply(code=BLOCKED, error=f"{message}: the event could not be read.")
    # The call has been made, or there is none: what can be done is to say so, and to judge none without its state.
    return Reply({"systemMessage": f"{message}; later calls will be refused if the state is lost."})


def main(arguments: Sequence[str], data: bytes | None = None) -> int:
    """Answer the event on standard input in this process; return the exit code."""
    reply = Reply(code=BLOCKED, error=f"{SAID} could not answer.")
    try:
        options = Options(arguments)
        data = sys.stdin.buffer.read(MAX_EVENT + 1) if data is None else data
        made: list[ClaudeCodeHook] = []

        def hook() -> ClaudeCodeHook:
            made.append(options.hook())
            limit(made[0].guard.policy.timeout)
            return made[0]

        reply = replied(data, hook, lambda: on_error_of(options, made))
        limit(0.0)
        if made:
            made[0].guard.close()
    except Exception as problem:  # noqa: BLE001  # the last resort
        reply = Reply(code=BLOCKED, error=f"{SAID} failed: {type(problem).__name__}: {problem}")
    return write(reply)


def on_error_of(options: Options, made: Sequence[ClaudeCodeHook]) -> str:
    """Return what the policy says of errors, as far as there is one; a broken policy blocks."""
    if made:
        return made[0].guard.policy.on_error.value
    if not options.policy:
        return "block"
    from safetydrift.guard.policy_file import load_policy  # noqa: PLC0415  # seldom

    return load_policy(options.policy).on_error.value


def write(reply: Reply) -> int:
    """Write a reply to standard output and error; return the exit code."""
    if reply.output:
        sys.stdout.write(reply.output)
        sys.stdout.flush()
    if reply.error:
        sys.stderr.write(reply.error + "\n")
    return reply.code


def limit(seconds: float) -> None:
    """Let this process be interrupted after so many seconds; 0 ends that."""
    try:
        from signal import ITIMER_REAL, SIGALRM, setitimer, signal  # noqa: PLC0415  # only in a process of ours
    except ImportError:
        return  # a system without alarms; Claude Code has a time limit of its own
    signal(SIGALRM, _interrupted)
    setitimer(ITIMER_REAL, seconds)


def _interrupted(*_: object) -> None:
    raise TimeoutError("the decision took longer than it may take")
