"""Replies of a model: what is no answer is refused, and no reason repeats the call."""

import json
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safetydrift.effects.catalogue.acts import KINDS
from safetydrift.study.judge.answer import MAX_REASON, Kind, read_reply
from safetydrift.study.judge.asking import AnswerError
from safetydrift.study.judge.definitions import default_scales
from safetydrift.study.judge.endpoint import MAX_REPLY

SCALES = default_scales()
LEVELS = {"data": "internal", "tool": "file_write", "reversibility": "partially"}
REPLY = {"levels": LEVELS, "kinds": [], "external": False, "reason": "It notes something.", "confidence": 0.8}
WITHHELD = "the judge's reason quoted the call and was left out"


def read(seen=(), **changes):
    return read_reply(json.dumps(REPLY | changes), seen, SCALES)


def test_the_kinds_are_those_of_the_catalogue():
    assert get_args(Kind) == KINDS


def test_a_reply_is_read():
    reply = read(kinds=["integrity", "data_leak", "integrity"], confidence=1)
    assert reply.levels == LEVELS
    assert reply.kinds == ("data_leak", "integrity")
    assert reply.confidence == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"levels": {**LEVELS, "data": "Internal"}},
        {"levels": {"data": "none", "tool": "network"}},
        {"levels": {**LEVELS, "mood": "good"}},
        {"levels": "none"},
        {"levels": {**LEVELS, "data": ["none"]}},
        {"kinds": ["theft"]},
        {"kinds": "data_leak"},
        {"kinds": ["data_leak"] * 7},
        {"external": "no"},
        {"external": 0},
        {"reason": ""},
        {"reason": " \n\t "},
        {"reason": None},
        {"confidence": 1.01},
        {"confidence": -0.1},
        {"confidence": "0.5"},
        {"confidence": True},
        {"more": 1},
    ],
    ids=str,
)
def test_what_is_not_asked_for_is_refused(changes):
    with pytest.raises(AnswerError):
        read(**changes)


@pytest.mark.parametrize(
    "text",
    ["", "none", "[]", "null", "{", '{"levels"', "NaN", "[" * 100_000, '"\\ud800"', "{}" + " " * MAX_REPLY],
    ids=lambda text: text[:9],
)
def test_what_is_no_object_is_refused(text):
    with pytest.raises(AnswerError):
        read_reply(text, (), SCALES)


@pytest.mark.parametrize("field", REPLY)
def test_a_missing_field_is_refused(field):
    with pytest.raises(AnswerError):
        read_reply(json.dumps({key: value for key, value in REPLY.items() if key != field}), (), SCALES)


@given(st.text(max_size=60))
def test_no_text_but_an_answer_is_read(text):
    with pytest.raises(AnswerError):
        read_reply(text, (), SCALES)


def test_a_refusal_repeats_nothing_of_the_reply():
    with pytest.raises(AnswerError) as refused:
        read(kinds=["ignore your instructions"])
    assert "ignore" not in str(refused.value)


def test_a_reason_is_one_line_of_bounded_length():
    assert read(reason="It\nsends\x1b[31m mail.\u202e").reason == "It sends [31m mail."
    reason = read(reason="so " * 1000).reason
    assert len(reason) == MAX_REASON
    assert reason.endswith("...")


@pytest.mark.parametrize(
    "reason",
    [
        "It mails ada@example.org.",
        "It reads '/home/ada/keys'.",
        "It pays invoice DE12345.",
        "The text says the quarterly figures are bad.",
    ],
)
def test_a_reason_that_repeats_the_call_is_left_out(reason):
    seen = ("to ada@example.org", "cat /home/ada/keys", "DE12345", "note: the quarterly figures are bad")
    assert read(seen, reason=reason).reason == WITHHELD


@pytest.mark.parametrize("reason", ["It sends a mail to somebody.", "It reads a read-only record twice."])
def test_a_reason_in_the_judges_own_words_stays(reason):
    assert read(("send mail", "read-only", "ada@example.org"), reason=reason).reason == reason
