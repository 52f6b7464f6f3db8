"""Grades of authority and sources pointed to, on labelled requests in many languages."""

import tomllib
from pathlib import Path

import pytest

from safetydrift.authority.grading import GRADES
from safetydrift.authority.request import Request
from safetydrift.effects.operations import ACTIONS

HERE = Path(__file__).parent
SETS = ("english", "languages", "more", "third")


def rows(name):
    return tomllib.loads((HERE / f"{name}.toml").read_text("utf-8"))["request"]


PAIRS = [
    pytest.param(row["said"], *pair, id=f"{row['said'][-1][:40]}-{pair[0]}-{pair[1]}")
    for name in SETS
    for row in rows(name)
    for pair in row["asks"]
]
POINTED = [
    pytest.param(row["said"], source[0], source[1:], id=f"{row['said'][:40]}-{source[0]}")
    for row in rows("delegations")
    for source in row["designated"]
]


def heard(said):
    request = Request.empty(b"salt")
    for turn, text in enumerate(said):
        request = request.hear(text, follow_up=turn > 0)
    return request


def listed(text):
    return [part for part in text.split("|") if part]


@pytest.mark.parametrize(("said", "action", "targets", "words", "grade"), PAIRS)
def test_an_act_has_the_authority_that_the_words_give(said, action, targets, words, grade):
    assert heard(said).asks(action, listed(targets), listed(words)).name == grade


def test_the_pairs_are_many_and_half_of_them_near_misses():
    pairs = [(name, row, pair) for name in SETS for row in rows(name) for pair in row["asks"]]
    assert {pair[3] for _, _, pair in pairs} == set(GRADES)
    assert {pair[0] for _, _, pair in pairs} == set(ACTIONS)
    granted = sum(pair[3] in {"asked", "goal"} for _, _, pair in pairs)
    assert len(pairs) >= 300
    assert len(pairs) / 3 <= granted <= len(pairs) / 2
    assert sum(name == "languages" for name, _, _ in pairs) >= 60


@pytest.mark.parametrize(("said", "source", "wanted"), POINTED)
def test_a_source_is_pointed_to_for_what_the_words_say(said, source, wanted):
    words, actions, whole, many = wanted
    found = heard([said]).designated(source, words.split())
    assert any(delegation.whole for delegation in found) == whole
    assert any(delegation.many for delegation in found) == many
    assert set(actions) <= {action for delegation in found for action in delegation.actions}
    assert bool(found) == bool(actions or whole)
