"""Codex CLI, Cursor, Gemini CLI and GitHub Copilot: the guard as a command hook, in the words of each.

Their events are read as those of Claude Code are, and answered by the same hook; what differs is here. An agent that
takes a failed hook for a yes is given its refusal in so many words, well before its own time limit. One that cannot ask
its user has the question answered on the page of a team's guard; without one, what has to be asked about is refused.
"""

from __future__ import annotations

import json
import os
import sys
from hashlib import sha256

from msgspec.structs import replace

from safetydrift.integrations.claude_code import (
    BLOCKED,
    MAX_EVENT,
    SAID,
    ClaudeCodeHook,
    Options,
    Reply,
    limit,
    on_error_of,
    replied,
    write,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from safetydrift.guard.guard import Guard

WAIT = 45.0
"""Seconds for which a hook waits for a person; agents wait for `TIMEOUT`."""
TIMEOUT = 60
MAX_OPEN = 4096
"""Calls under way that are remembered for an agent that gives them no identifiers."""


class Dialect:
    """How one agent says things.

    Attributes
    ----------
    name
        In commands.
    events
        Our names of events by theirs.
    fields
        Our names of fields by theirs, where they differ.
    asks
        Whether a hook can have the agent ask its user.
    quiet
        What is written where there is no objection.
    """

    name = ""
    events: Mapping[str, str] = {}
    fields: Mapping[str, str] = {}
    asks = False
    quiet = ""

    def read(self, event: dict[str, Any], told: str) -> dict[str, Any]:
        """Return an event in the words of Claude Code.

        Parameters
        ----------
        event
            As it came in.
        told
            The name of the event by the command line, for agents that do not say it.
        """
        found = {self.fields.get(name, name): value for name, value in event.items()}
        found["hook_event_name"] = self.events.get(str(event.get("hook_event_name") or told), "")
        return found

    def say(self, permission: str, reason: str) -> dict[str, Any]:
        """Return the answer that refuses a call, or asks about it."""
        raise NotImplementedError

    def note(self, text: str) -> dict[str, Any]:  # noqa: ARG002  # most have no place for it
        """Return the answer that lets a call go ahead with a remark to the model; empty where there is none."""
        return {}


class Codex(Dialect):
    """Codex CLI. Whatever is no proper refusal lets the call run: it is never asked, and never merely allowed."""

    name = "codex"
    events = {name: name for name in ("PreToolUse", "PostToolUse", "UserPromptSubmit")}  # noqa: RUF012  # constant

    def say(self, permission: str, reason: str) -> dict[str, Any]:
        """Return a refusal."""
        said = {
            "hookEventName": "PreToolUse",
            "permissionDecision": permission,
            "permissionDecisionReason": reason,
        }
        return {"hookSpecificOutput": said}

    def note(self, text: str) -> dict[str, Any]:
        """Return a remark."""
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "additionalContext": text}}


class Cursor(Dialect):
    """Cursor. An empty output counts as a failure; an allowance would skip its own prompt."""

    name = "cursor"
    events = {  # noqa: RUF012  # constant
        "preToolUse": "PreToolUse",
        "postToolUse": "PostToolUse",
        "postToolUseFailure": "PostToolUseFailure",
        "beforeSubmitPrompt": "UserPromptSubmit",
        "sessionEnd": "SessionEnd",
    }
    fields = {"conversation_id": "session_id", "session_id": "own_session", "tool_output": "tool_response"}  # noqa: RUF012
    quiet = "{}"

    def read(self, event: dict[str, Any], told: str) -> dict[str, Any]:
        """Return an event; what a tool gave back is JSON in a text."""
        found = super().read(event, told)
        found.setdefault("error", found.get("error_message"))
        found["tool_response"] = _from_json(found.get("tool_response"))
        return found

    def say(self, permission: str, reason: str) -> dict[str, Any]:
        """Return a refusal."""
        return {"permission": permission, "user_message": reason, "agent_message": reason}


class GeminiCli(Dialect):
    """Gemini CLI. Calls have no identifiers."""

    name = "gemini-cli"
    events = {  # noqa: RUF012  # constant
        "BeforeTool": "PreToolUse",
        "AfterTool": "PostToolUse",
        "BeforeAgent": "UserPromptSubmit",
        "SessionEnd": "SessionEnd",
    }

    def say(self, permission: str, reason: str) -> dict[str, Any]:
        """Return a refusal."""
        return {"decision": permission, "reason": reason}


class Copilot(Dialect):
    """GitHub Copilot's CLI. Events do not say what they are, and calls have no identifiers."""

    name = "copilot"
    events = {  # noqa: RUF012  # constant
        "preToolUse": "PreToolUse",
        "postToolUse": "PostToolUse",
        "userPromptSubmitted": "UserPromptSubmit",
        "sessionEnd": "SessionEnd",
    }
    fields = {  # noqa: RUF012  # constant
        "sessionId": "session_id",
        "toolName": "tool_name",
        "toolArgs": "tool_input",
        "toolResult": "tool_response",
    }
    asks = True

    def read(self, event: dict[str, Any], told: str) -> dict[str, Any]:
        """Return an event; arguments may be JSON in a text."""
        found = super().read(event, told)
        found["tool_input"] = _from_json(found.get("tool_input"))
        return found

    def say(self, permission: str, reason: str) -> dict[str, Any]:
        """Return a refusal, or a question."""
        return {"permissionDecision": permission, "permissionDecisionReason": reason}


DIALECTS: Mapping[str, Dialect] = {one.name: one for one in (Codex(), Cursor(), GeminiCli(), Copilot())}


def _from_json(value: Any) -> Any:
    """Return what a text says in JSON; anything else as it is."""
    if isinstance(value, str):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


class AgentOptions(Options):
    """What a hook is told on its command line; ``--event`` for agents whose events do not say what they are."""

    NAMES: tuple[str, ...] = (*Options.NAMES, "event")

    def __init__(self, dialect: Dialect, arguments: Sequence[str]) -> None:
        self.event, self.dialect = "", dialect
        super().__init__(arguments)
        self.AGENT = dialect.name

    def guard(self) -> Guard:
        """Return a guard; where the agent cannot ask its user, it waits for an answer on the team's page."""
        guard = super().guard()
        if self.service and not self.dialect.asks:
            guard.approver = guard.people  # type: ignore[attr-defined]  # a guard elsewhere has them
            guard.policy = replace(guard.policy, ask_timeout=WAIT)
        return guard

    def hook(self) -> AgentHook:
        """Return the hook."""
        return AgentHook(self.guard(), self)


class AgentHook(ClaudeCodeHook):
    """Answers the events of an agent with a guard.

    Parameters
    ----------
    guard
        Who decides.
    options
        What the hook was told.
    """

    def __init__(self, guard: Guard, options: AgentOptions) -> None:
        super().__init__(guard, options.category, options.pipeline)
        self._options, self._dialect = options, options.dialect

    def answer(self, event: dict[str, Any]) -> Reply:
        """Return the answer to an event."""
        event = self._dialect.read(event, self._options.event)
        if not event["hook_event_name"]:
            raise ValueError("an event of a name that the hook was not installed for")
        if event["hook_event_name"] in {"PreToolUse", "PostToolUse", "PostToolUseFailure"} and not event.get(
            "tool_use_id"
        ):
            numbers = Numbers(self._options.state, event["session_id"])
            event["tool_use_id"] = numbers.of(event, begins=event["hook_event_name"] == "PreToolUse")
        return super().answer(event)

    def _opened(self, event: dict[str, Any]) -> str:
        """Return the key of an event's run; one whose prompt was not seen is opened without."""
        session = event["session_id"]
        if isinstance(session, str) and session and self.guard.store.read(f"{session}/main") is None:
            self.guard.session(f"{session}/main", **self._about)
        return super()._opened(event)


class Numbers:
    """Identifiers for calls that have none: alike calls of a session are taken to end in the order they began.

    Parameters
    ----------
    folder
        Where they are kept.
    session
        The session.
    """

    def __init__(self, folder: str, session: str) -> None:
        os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103  # pathlib is not cheap to import
        name = sha256(str(session).encode("utf-8", "replace")).hexdigest()[:32]
        self._path = os.path.join(folder, f"calls-{name}.json")  # noqa: PTH118

    def of(self, event: Mapping[str, Any], *, begins: bool) -> str:
        """Return the identifier of a call that begins, or of the oldest one like it that has begun."""
        from fcntl import LOCK_EX, flock  # noqa: PLC0415  # only where it is needed

        said = json.dumps([event.get("tool_name"), event.get("tool_input")], sort_keys=True, default=str)
        what = sha256(said.encode("utf-8", "replace")).hexdigest()[:16]
        with os.fdopen(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600), "r+", encoding="utf-8") as file:
            flock(file, LOCK_EX)
            known = json.loads(file.read() or '{"last": 0, "open": []}')
            if begins:
                known["last"] += 1
                known["open"] = [*known["open"][-MAX_OPEN:], [what, known["last"]]]
                number = known["last"]
            else:
                mine = next((one for one in known["open"] if one[0] == what), [what, 0])
                known["open"] = [one for one in known["open"] if one is not mine]
                number = mine[1]
            file.seek(0)
            file.truncate()
            file.write(json.dumps(known))
        return f"{what}-{number}"


def in_words_of(dialect: Dialect, reply: Reply) -> Reply:
    """Return a reply of ours as an agent understands it."""
    said = reply.said.get("hookSpecificOutput", {})
    done, reason = said.get("permissionDecision"), said.get("permissionDecisionReason", "")
    if done == "ask" and not dialect.asks:
        done, reason = (
            "deny",
            f"{reason} Nobody can be asked here: tell the user what you wanted to do, and why.",
        )
    output = dialect.say(done, reason) if done else dialect.note(said.get("additionalContext", ""))
    if not done and not said.get("additionalContext"):
        output = {}
    made = Reply(output or None, reply.code, reply.error)
    made.output = made.output or (dialect.quiet if not reply.code else "")
    return made


def main(name: str, arguments: Sequence[str], data: bytes | None = None) -> int:
    """Answer the event on standard input; return the exit code."""
    reply = Reply(code=BLOCKED, error=f"{SAID} could not answer.")
    try:
        dialect = DIALECTS[name]
        options = AgentOptions(dialect, arguments)
        data = sys.stdin.buffer.read(MAX_EVENT + 1) if data is None else data
        made: list[ClaudeCodeHook] = []

        def hook() -> ClaudeCodeHook:
            made.append(options.hook())
            limit(made[0].guard.policy.timeout + (WAIT if made[0].guard.approver is not None else 0.0))
            return made[0]

        reply = in_words_of(dialect, replied(data, hook, lambda: on_error_of(options, made), _named(options)))
        limit(0.0)
        if made:
            made[0].guard.close()
    except Exception as problem:  # noqa: BLE001  # the last resort: exit code 2 refuses with all of them
        reply = Reply(code=BLOCKED, error=f"{SAID} failed: {type(problem).__name__}: {problem}")
    return write(reply)


def _named(options: AgentOptions) -> Callable[[dict[str, Any]], str]:
    """Return a function that says in our words what an event is."""

    def named(event: dict[str, Any]) -> str:
        said = event.get("hook_event_name") or options.event
        return options.dialect.events.get(str(said), "")

    return named
