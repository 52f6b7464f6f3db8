"""The digest of a question: the same for the same question, another for another, whatever the arguments hold."""

from hashlib import sha256
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safetydrift.errors import JudgeError
from safetydrift.study.judge.question import MAX_ARGUMENTS, MAX_RESULT, Question, excerpt, leaves
from safetydrift.trace import ToolCall

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
ARGS = st.dictionaries(st.text(max_size=8), PLAIN, max_size=5)


def digest(name="t", args=None, result=None, task="", *, model="m", prompt="p", **call):
    return Question(ToolCall(name, args, **call), result, task).digest(model, prompt)


@given(ARGS)
def test_the_order_of_arguments_does_not_matter(args):
    assert (
        digest(args=args) == digest(args=dict(reversed(args.items()))) == digest(args=MappingProxyType(args))
    )


def test_the_digest_is_that_of_the_canonical_json():
    whole = '["0123","openai:x","send",{"n":1,"to":"\\u00e4"},null,["ok",0,""],["do it",0,""]]'
    found = digest("send", {"to": "ä", "n": 1}, "ok", "do it", model="openai:x", prompt="0123")
    assert found == sha256(whole.encode()).hexdigest()


def test_everything_the_answer_depends_on_counts():
    one = {
        digest(),
        digest("u"),
        digest(args={"a": 1}),
        digest(args={"a": "1"}),
        digest(args={"a": True}),
        digest(malformed="{"),
        digest(result=""),
        digest(result="x"),
        digest(task="x"),
        digest(model="n"),
        digest(prompt="q"),
    }
    assert len(one) == 11


def test_identifiers_and_hints_of_the_call_do_not_count():
    assert digest(id="call_7", hints={"readOnlyHint": True}) == digest()


def test_arguments_count_also_where_they_are_not_sent_and_results_only_where_they_are():
    long = "x" * 50_000
    assert digest(args={"a": f"{long}1{long}"}) != digest(args={"a": f"{long}2{long}"})
    assert digest(result=f"{long}1{long}") == digest(result=f"{long}2{long}")
    assert digest(result=long) != digest(result=f"{long}x")


def nested(depth):
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def circular():
    value: dict[str, Any] = {}
    value["a"] = value
    return value


@pytest.mark.parametrize(
    "args",
    [
        {"a": object()},
        {"a": {1, 2}},
        {1: 2, "b": 3},
        {"a": nested(100_000)},
        circular(),
        {"a": 10**5000},
        {"a": "x" * MAX_ARGUMENTS},
    ],
    ids=["object", "set", "keys", "deep", "circular", "huge number", "long"],
)
def test_what_cannot_be_asked_is_refused_with_a_reason_that_quotes_nothing(args):
    with pytest.raises(JudgeError, match=r"cannot be written as JSON|more than"):
        digest(args=args)


def test_an_excerpt_says_how_much_it_leaves_out():
    text = "".join(map(str, range(3000)))
    head, left_out, tail = excerpt(text, MAX_RESULT)
    assert (len(head), len(tail)) == (3000, 1000)
    assert text.startswith(head)
    assert text.endswith(tail)
    assert left_out == len(text) - MAX_RESULT
    assert excerpt("short", 10) == ("short", 0, "")


def test_leaves_are_the_texts_and_the_keys_too_long_for_a_name():
    assert set(leaves({"key": ["a", {"x" * 30: "b"}, 3, None]})) == {"a", "b", "x" * 30}
