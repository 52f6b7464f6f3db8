"""Claude Agent SDK: the SDK's own client, with a transport that plays Claude Code."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

pytest.importorskip("claude_agent_sdk", reason="needs the extra 'claude-sdk'")
from claude_agent_sdk import ClaudeAgentOptions, CLIConnectionError, HookMatcher, Transport, query

from safetydrift.guard import Approver
from safetydrift.integrations.claude_sdk import EVENTS, guarded


class ClaudeCode(Transport):
    """Sends the events of a session one after the other, or some at once, and keeps what is answered."""

    def __init__(self, *events, new_enough=True):
        self.events, self.new_enough = events, new_enough
        self.answers, self.registered = {}, {}
        self.incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def connect(self):
        pass

    async def write(self, data):
        for line in data.splitlines():
            await self.incoming.put(json.loads(line))

    async def _next(self, kind):
        while True:
            message = await self.incoming.get()
            if message["type"] == kind:
                return message

    async def read_messages(self):
        asked = await self._next("control_request")
        self.registered = asked["request"]["hooks"]
        response = {"commands": [], "hook_on_failure_supported": self.new_enough}
        yield control_response(asked["request_id"], response)
        for number, turn in enumerate(self.events):
            for place, event in enumerate(turn):
                (matcher,) = self.registered[event["hook_event_name"]][-1:]
                request = {
                    "subtype": "hook_callback",
                    "callback_id": matcher["hookCallbackIds"][0],
                    "input": event,
                    "tool_use_id": event.get("tool_use_id"),
                }
                yield {"type": "control_request", "request_id": f"{number}/{place}", "request": request}
            for _ in turn:
                answer = (await self._next("control_response"))["response"]
                number_place = tuple(map(int, answer["request_id"].split("/")))
                self.answers[number_place] = answer.get("response", answer)
        yield {
            "type": "result",
            "subtype": "success",
            "duration_ms": 1,
            "duration_api_ms": 1,
            "is_error": False,
            "num_turns": 1,
            "session_id": "s",
            "result": "Done.",
        }

    async def close(self):
        pass

    def is_ready(self):
        return True

    async def end_input(self):
        pass


def control_response(request_id, response):
    said = {"subtype": "success", "request_id": request_id, "response": response}
    return {"type": "control_response", "response": said}


def event(name, **more):
    common = {"session_id": "s", "transcript_path": "/t", "cwd": "/", "hook_event_name": name}
    return common | more


def call(tool, call_id, given=None, **more):
    tool_input = {"text": "x"} if given is None else given
    return event("PreToolUse", tool_name=tool, tool_input=tool_input, tool_use_id=call_id, **more)


PROMPT = [event("UserPromptSubmit", prompt="Look at it")]


def played(options, *turns, **more):
    async def play():
        code = ClaudeCode(*turns, **more)
        async for _ in query(prompt="Look at it", options=options, transport=code):
            pass
        return code

    return asyncio.run(play())


def permission(answer):
    said = answer.get("hookSpecificOutput", {})
    return said.get("permissionDecision"), said.get("permissionDecisionReason") or said.get(
        "additionalContext"
    )


def test_each_intervention_is_said_as_claude_code_reads_it(guard):
    turn = [call(name, name) for name in ("look", "drop", "pay", "post", "peek")]
    answers = played(guarded(None, guard), PROMPT, turn).answers
    assert answers[0, 0] == {}
    assert answers[1, 0] == {}
    assert permission(answers[1, 1])[0] == "deny"
    assert "nothing is dropped" in permission(answers[1, 1])[1]
    assert permission(answers[1, 2])[0] == "ask"
    assert permission(answers[1, 3])[0] == "deny"
    assert permission(answers[1, 4])[0] is None
    assert "look away" in permission(answers[1, 4])[1]


def test_calls_are_reserved_and_confirmed(guard, standing):
    done = [
        event(
            "PostToolUse", tool_name="look", tool_input={"text": "x"}, tool_use_id="a", tool_response="seen"
        ),
        event("PostToolUseFailure", tool_name="look", tool_input={"text": "x"}, tool_use_id="b", error="no"),
    ]
    played(guarded(None, guard), PROMPT, [call("look", "a"), call("look", "b")], done)
    assert standing(guard, "s/main") == (2, [], {"a": "confirmed", "b": "confirmed"})


def test_a_subagent_is_a_part_of_its_session(guard):
    started = [event("SubagentStart", agent_id="helper", agent_type="general")]
    answers = played(guarded(None, guard), PROMPT, started, [call("look", "a", agent_id="helper")]).answers
    assert answers[2, 0] == {}
    assert guard._sessions.read("s/helper")[0].parent == "s/main"


def test_the_same_call_gets_the_same_answer_and_a_person_is_asked_off_the_loop(guard):
    asked = []
    guard.approver = Approver(lambda question, timeout: not asked.append(question.tool))  # type: ignore[func-returns-value]
    answers = played(guarded(None, guard), PROMPT, [call("pay", "a")], [call("pay", "a")]).answers
    assert answers[1, 0] == answers[2, 0] == {}
    assert asked == ["pay"]


def test_a_failure_blocks_and_the_hooks_say_so(guard):
    theirs = HookMatcher(matcher="Bash", hooks=[])
    code = played(guarded(ClaudeAgentOptions(hooks={"PreToolUse": [theirs]}), guard))
    assert set(code.registered) == set(EVENTS)
    assert [one["matcher"] for one in code.registered["PreToolUse"]] == ["Bash", None]
    assert all(some[-1]["onFailure"] == "block" for some in code.registered.values())
    assert all(some[-1]["timeout"] > guard.policy.timeout for some in code.registered.values())


def test_a_claude_code_that_would_not_block_is_refused(guard):
    with pytest.raises(CLIConnectionError, match="on_failure"):
        played(guarded(None, guard), new_enough=False)


@pytest.mark.parametrize("given", ["no table", ["a"], None])
def test_malformed_arguments_raise_nothing(guard, given):
    odd = call("look", "a") | {"tool_input": given}
    answer = played(guarded(None, guard), PROMPT, [odd]).answers[1, 0]
    assert "subtype" not in answer
    assert guard._sessions.read("s/main")[0].proposals == 1


def test_an_event_without_a_session_is_denied(guard):
    odd = {name: value for name, value in call("look", "a").items() if name != "session_id"}
    answer = played(guarded(None, guard), [odd]).answers[0, 0]
    assert permission(answer)[0] == "deny"


@pytest.mark.parametrize("which", ["broken", "unopenable"])
def test_a_guard_that_fails_denies(request, which):
    answers = played(guarded(None, request.getfixturevalue(which)), PROMPT, [call("look", "a")]).answers
    assert permission(answers[1, 0])[0] == "deny"


def test_a_call_before_any_prompt_is_denied(guard):
    assert permission(played(guarded(None, guard), [call("look", "a")]).answers[0, 0])[0] == "deny"
