"""Raw loops: a model that is played by its typed responses, or by the same as plain tables; no client is needed."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace

import pytest

from safetydrift.guard import Approver
from safetydrift.integrations.raw import GuardedTools

KEY = "run"


def anthropic_message(*calls, typed=False, extra=()):
    content = [
        {"type": "tool_use", "id": call_id, "name": name, "input": args} for call_id, name, args in calls
    ]
    message = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": [{"type": "text", "text": "Let me see."}, *extra, *content],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    if not typed:
        return message
    types = pytest.importorskip("anthropic.types", reason="needs the extra 'anthropic'")
    return types.Message.model_validate(message)


def chat_completion(*calls, typed=False):
    said = [
        {
            "id": call_id,
            "type": "function",
            "function": {
                "name": name,
                "arguments": args if isinstance(args, str) else json.dumps(args),
            },
        }
        for call_id, name, args in calls
    ]
    message = {"role": "assistant", "content": None, "tool_calls": said}
    choice = {"index": 0, "finish_reason": "tool_calls", "message": message, "logprobs": None}
    completion = {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt",
        "choices": [choice],
    }
    if not typed:
        return completion
    chat = pytest.importorskip("openai.types.chat", reason="needs the extra 'openai'")
    return chat.ChatCompletion.model_validate(completion)


def openai_response(*calls, typed=False, extra=()):
    output = [
        {
            "type": "function_call",
            "id": f"fc_{call_id}",
            "call_id": call_id,
            "name": name,
            "arguments": args if isinstance(args, str) else json.dumps(args),
        }
        for call_id, name, args in calls
    ]
    if not typed:
        return {"object": "response", "output": [*extra, *output]}
    types = pytest.importorskip("openai.types.responses", reason="needs the extra 'openai'")
    made = [types.ResponseFunctionToolCall.model_validate(one) for one in output]
    return SimpleNamespace(object="response", output=[*extra, *made])


SHAPES = [
    pytest.param(shape, typed, id=f"{shape.__name__}-{'typed' if typed else 'plain'}")
    for shape in (anthropic_message, chat_completion, openai_response)
    for typed in (False, True)
]


@pytest.fixture
def guarded(guard, tools):
    return GuardedTools(guard, tools.all(), KEY, "Look at it")


def told(replies):
    """Return what the model is told, by call id."""
    found = {}
    for one in replies:
        for part in one["content"] if one.get("role") == "user" else [one]:
            call_id = part.get("tool_use_id") or part.get("tool_call_id") or part.get("call_id")
            found[call_id] = part.get("content", part.get("output"))
    return found


@pytest.mark.parametrize(("shape", "typed"), SHAPES)
def test_every_call_of_a_response_is_answered(guarded, tools, standing, shape, typed):
    calls = [
        ("a", "look", {"text": "x"}),
        ("b", "drop", {"text": "x"}),
        ("c", "peek", {"text": "x"}),
        ("d", "post", {"text": "x"}),
        ("e", "pay", {"text": "x"}),
        ("f", "fail", {"text": "x"}),
    ]
    replies = told(guarded.answers(shape(*calls, typed=typed)))
    assert list(replies) == list("abcdef")
    assert replies["a"] == "look done"
    assert "nothing is dropped here" in replies["b"]
    assert "look away" in replies["c"]
    assert replies["c"].startswith("peek done")
    assert "nothing is posted here" in replies["d"]
    assert "Nobody answered" in replies["e"]
    assert "the disk is on fire" in replies["f"]
    assert tools.made == [("look", "x"), ("peek", "x"), ("fail", "x")]
    steps, under_way, statuses = standing(guarded.guard, KEY)
    assert (steps, under_way) == (3, [])
    assert statuses == dict(
        zip("abcdef", ["confirmed", "refused", "confirmed", *["refused"] * 2, "confirmed"], strict=True)
    )


def test_refusals_and_errors_are_marked_for_anthropic(guarded):
    ((message),) = guarded.answers(anthropic_message(("a", "look", {}), ("b", "drop", {}), ("c", "fail", {})))
    assert [block.get("is_error", False) for block in message["content"]] == [False, True, True]


def test_the_same_call_under_the_same_id_gets_the_same_answer(guarded, guard, tools):
    response = anthropic_message(("a", "look", {"text": "x"}))
    (first,) = guarded.judge(response)
    (again,) = guarded.judge(response)
    assert again[1].repeated
    assert again[1].intervention is first[1].intervention


def test_calls_of_one_response_are_judged_as_if_those_before_them_had_been_made(guard, tools, standing):
    seen = []

    def look(text):
        seen.append(standing(guard, KEY)[1])
        return "done"

    loop = GuardedTools(guard, {"look": look, "peek": look}, KEY, "Look")
    loop.answers(openai_response(("a", "look", {"text": "1"}), ("b", "peek", {"text": "2"})))
    assert seen == [["a", "b"], ["b"]]


def test_coroutines_run_at_the_same_time(guard, standing):
    both = asyncio.Barrier(2)

    async def slow(text):
        await both.wait()
        return f"slow {text}"

    loop = GuardedTools(guard, {"slow": slow}, KEY, "Look")
    response = chat_completion(("a", "slow", {"text": "1"}), ("b", "slow", {"text": "2"}), ("c", "drop", {}))
    replies = told(asyncio.run(loop.aanswers(response)))
    assert replies["a"] == "slow 1"
    assert replies["b"] == "slow 2"
    assert "nothing is dropped" in replies["c"]
    assert standing(guard, KEY)[:2] == (2, [])


def test_a_person_who_agrees_lets_a_call_through(guard, tools):
    guard.approver = Approver(lambda question, timeout: question.tool == "pay")
    loop = GuardedTools(guard, tools.all(), KEY, "Pay the rent")
    loop.answers(anthropic_message(("a", "pay", {"text": "rent"})))
    assert tools.made == [("pay", "rent")]


@pytest.mark.parametrize("arguments", ["{", '["a"]', '{"text": "a", "text": "b"}', "[" * 100_000, '"text"'])
def test_arguments_that_cannot_be_decoded_are_judged_and_not_made(guarded, guard, tools, standing, arguments):
    ((found, decision),) = guarded.judge(chat_completion(("a", "look", arguments)))
    assert found.call.malformed is not None
    replies = told(guarded.answers(chat_completion(("a", "look", arguments))))
    assert "cannot be decoded" in replies["a"] or not decision.allowed
    assert tools.made == []
    assert standing(guard, KEY)[1] == []


def test_a_tool_that_is_not_there_is_said_not_to_be_there(guarded, guard, standing):
    replies = told(guarded.answers(openai_response(("a", "other", {}))))
    assert "no such tool" in replies["a"]
    assert standing(guard, KEY)[2] == {"a": "released"}


def test_a_guard_that_fails_refuses(broken, tools):
    loop = GuardedTools(broken, tools.all(), KEY, "Look")
    replies = told(loop.answers(anthropic_message(("a", "look", {}))))
    assert "could not judge" in replies["a"]
    assert tools.made == []


def test_a_run_that_cannot_be_opened_refuses(unopenable, tools):
    loop = GuardedTools(unopenable, tools.all(), KEY, "Look")
    replies = told(asyncio.run(loop.aanswers(anthropic_message(("a", "look", {})))))
    assert "could not judge" in replies["a"]
    assert tools.made == []


@pytest.mark.parametrize("asynchronous", [False, True])
def test_what_the_provider_made_by_itself_is_a_step(guarded, guard, standing, asynchronous):
    searched = [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "weather"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"title": "It rains"}]},
    ]
    response = anthropic_message(("a", "look", {}), extra=searched)
    replies = asyncio.run(guarded.aanswers(response)) if asynchronous else guarded.answers(response)
    assert list(told(replies)) == ["a"]
    assert standing(guard, KEY)[0] == 2
    hosted = {"type": "mcp_call", "id": "s2", "name": "search", "arguments": '{"q": 1}', "output": "found"}
    assert guarded.answers(openai_response(extra=[hosted])) == []
    assert standing(guard, KEY)[0] == 3


def test_calls_with_free_text_and_shells_of_the_client_are_guarded(guard):
    made = []

    def ran(input="", action=None):  # noqa: A002  # what the providers call it
        made.append(input or action["command"])
        return "ran"

    loop = GuardedTools(guard, {"run": ran, "local_shell": ran}, KEY, "Look")
    items = [
        {"type": "custom_tool_call", "call_id": "a", "name": "run", "input": "1 + 1"},
        {"type": "local_shell_call", "id": "x", "call_id": "b", "action": {"command": ["ls"]}},
    ]
    replies = loop.answers(items)
    assert [one["type"] for one in replies] == ["custom_tool_call_output", "local_shell_call_output"]
    assert made == ["1 + 1", ["ls"]]
    said = {"id": "c", "type": "custom", "custom": {"name": "run", "input": "2"}}
    assert loop.answers({"role": "assistant", "tool_calls": [said]}) == [
        {"role": "tool", "tool_call_id": "c", "content": "ran"}
    ]


def test_structured_content_is_handed_on_as_it_is(guard):
    image = [{"type": "text", "text": "a cat"}, {"type": "image", "source": {"type": "base64", "data": "x"}}]
    loop = GuardedTools(guard, {"look": lambda: image, "count": lambda: {"n": 1}, "none": lambda: None}, KEY)
    replies = told(loop.answers(anthropic_message(("a", "look", {}), ("b", "count", {}), ("c", "none", {}))))
    assert replies == {"a": image, "b": '{"n": 1}', "c": ""}


def test_interrupted_tools_are_taken_to_have_run(guard, standing):
    def stop():
        raise KeyboardInterrupt

    loop = GuardedTools(guard, {"stop": stop}, KEY, "Look")
    with pytest.raises(KeyboardInterrupt):
        loop.answers(anthropic_message(("a", "stop", {})))
    assert standing(guard, KEY)[2] == {"a": "confirmed"}


def test_what_the_user_says_later_is_heard(guarded, guard):
    guarded.hear("Write to bob@example.org")
    assert guard.current(KEY)[0].history is not None
    guarded.hear("And to eve@example.org")


def test_a_response_without_calls_needs_no_answer(guarded):
    assert guarded.answers({"role": "assistant", "content": "Done."}) == []
    assert guarded.answers(anthropic_message()) == []


def test_what_is_no_response_is_an_error_of_the_program(guarded):
    with pytest.raises(TypeError, match="no response"):
        guarded.answers({"error": "overloaded"})


def test_a_cancelled_tool_is_taken_to_have_run_and_a_failing_one_is_told(guard, standing):
    async def slow():
        raise asyncio.CancelledError

    async def fail():
        raise OSError("the disk is on fire")

    loop = GuardedTools(guard, {"slow": slow, "fail": fail}, KEY, "Look")
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(loop.aanswers(anthropic_message(("a", "slow", {}))))
    replies = told(asyncio.run(loop.aanswers(anthropic_message(("b", "fail", {})))))
    assert "on fire" in replies["b"]
    assert standing(guard, KEY)[2] == {"a": "confirmed", "b": "confirmed"}
