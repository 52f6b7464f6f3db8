"""Patterns of the catalogue: which expressions are bounded, and what a section [content] may say."""

import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from safetydrift.effects.content import Scanner
from safetydrift.effects.content.identifiers import CHECKS, holds
from safetydrift.effects.content.patterns import MAX_CHOICES, Marks, require_bounded
from safetydrift.effects.content.secrets import DETECTORS, detected
from safetydrift.errors import CatalogueError
from safetydrift.formats.catalogue_file import load_catalogue

BOUNDED = [
    r"AKIA[A-Z0-9]{16}",
    r"(?:a|b)?c{2,5}",
    r"[^\]\s]{1,40}+=(?P<value>\S{4,90})",
    r"(?<![0-9])[0-9]{3}-[0-9]{2}(?!\d)",
    r"(?:[a-z]{1,9}+ ){0,5}end",
    r"\bword\b",
    r"[-a]{2}[a-]{2}[+/=_-]{2}",
    r"a\.b\*\(c\)",
]
UNBOUNDED = {
    r"a*b": "upper end",
    r"a+": "upper end",
    r"a{3,}": "upper end",
    r"(a)\1": "references",
    r"(?P<value>a)(?P=value)": "references",
    r"(?i)a": "groups are",
    r"(a|b)": "groups are",
    r"(?:a{0,20}){0,20}": "choices",
    r"(?:a|a){1,40}": "choices",
    r"a{0,99}a{0,99}a{0,99}": "choices",
    r"(?P<value>a)(?P<value>b)": "more than one",
    r"(?:a": "not closed",
    r"a)": "not opened",
    r"{2}": "repetition of nothing",
    r"a{5,2}": "from 5 to 2",
    r"a{0}": "from 0 to 0",
    r"a{1,9000}": "from 1 to 9000",
    r"^a": "anywhere",
    r"a$": "anywhere",
    r"[z-a]": "range",
    r"[\w-z]": "range",
    r"[a--b]": "doubled",
    r"(?<=a{1,2})b": "one length",
    r"a{2}{3}": "repetition of nothing",
    r"\1": "references",
    r"\q": "references",
    r"[a": "cannot take",
    "a" * 3000: "characters",
}


@pytest.mark.parametrize("regex", BOUNDED)
def test_a_bounded_expression_is_taken_and_compiles(regex):
    assert 1 <= require_bounded(regex) <= MAX_CHOICES
    re.compile(regex)


@pytest.mark.parametrize("regex", UNBOUNDED, ids=lambda text: text[:20])
def test_an_expression_without_bounds_is_refused_in_words(regex):
    with pytest.raises(ValueError, match=UNBOUNDED[regex]):
        require_bounded(regex)


@example("[]")
@example("[^]")
@given(st.text(alphabet="ab0-9[]{}(),?|+*\\.^$:=!<>Pvalue\n wd", max_size=24))
def test_whatever_is_taken_compiles(regex):
    try:
        require_bounded(regex)
    except ValueError:
        return
    re.compile(regex)


def test_every_shipped_expression_compiles():
    for pattern in load_catalogue().content.patterns:
        re.compile(pattern.regex)


MARKS = st.text(alphabet="ab_-.K", min_size=1, max_size=4)


@given(
    st.lists(MARKS, min_size=1, max_size=12),
    st.lists(MARKS, max_size=3),
    st.text(alphabet="ab_-.Kx", max_size=60),
    st.booleans(),
)
def test_no_mark_is_overlooked(marks, stems, text, signs):
    assert {mark for mark in marks if mark in text} <= Marks(marks, stems, signs=signs).present(text)


@pytest.mark.parametrize("check", CHECKS)
def test_every_check_can_be_asked_about_anything(check):
    for value in ("", "abc", "0" * 20, "\u0661\u0662", "x-"):
        assert not holds(check, value)


@pytest.mark.parametrize("name", DETECTORS)
def test_every_detector_can_be_asked(name):
    assert list(detected(name, "nothing here\nat all", 3, 6)) == []


def test_a_detector_sees_only_the_line_around_the_place():
    token = "ghp_" + "aB3" * 12
    text = f"{token}\nhere {token} end\n{token}"
    start = text.index(token, 10)
    assert list(detected("github_token", text, start, start + 4)) in (
        [(start, start + 3)],
        [(start, start + len(token))],
    )


# -- the section -----------------------------------------------------------------------------------------


def added(**pattern):
    return {"content": {"patterns": [pattern]}}


def extended(additions):
    return load_catalogue().extended(
        {"format": load_catalogue().definition()["format"], "name": "ours", "version": "1"} | additions
    )


def test_an_operator_adds_words_and_patterns():
    ours = extended(
        {
            "content": {
                "patterns": [
                    {"what": "project name", "level": "sensitive", "words": ["Blue Heron"]},
                    {"what": "badge", "level": "credentials", "marks": ["BDG-"], "regex": "BDG-[0-9]{6}"},
                ]
            }
        }
    )
    findings = Scanner(ours).scan("Blue Heron, opened with BDG-123456; password=hunter2")
    assert findings.reasons() == ("holds 1 project name", "holds 1 badge", "holds 1 password")


def test_additions_come_first_and_keep_what_is_shipped():
    base, ours = (
        load_catalogue(),
        extended(added(what="badge", level="sensitive", marks=["BDG"], regex="BDG[0-9]{6}")),
    )
    assert ours.content.patterns[0].what == "badge"
    assert len(ours.content.patterns) == len(base.content.patterns) + 1
    assert ours.content.mail_addresses == base.content.mail_addresses


def test_an_operator_says_from_how_many_people_on_a_list_is_one():
    ours = extended({"content": {"mail_addresses": 2, "people": "credentials"}})
    assert Scanner(ours).scan("a@example.org b@example.org").level == "credentials"
    never = extended({"content": {"mail_addresses": 0}})
    assert not Scanner(never).scan("\n".join(f"p{n}@example.org" for n in range(50)))


def test_an_operator_adds_placeholders():
    ours = extended({"content": {"placeholders": ["demo-*"]}})
    assert not Scanner(ours).scan("password=demo-4711")
    assert Scanner(load_catalogue()).scan("password=demo-4711")


GOOD = {"what": "badge", "level": "sensitive", "marks": ["B"], "regex": "B[0-9]{3}"}
MALFORMED: dict[str, tuple[dict[str, Any], str]] = {
    "no name": (GOOD | {"what": None}, "place in a catalogue"),
    "an unknown level": (GOOD | {"level": "secret"}, "level is one of"),
    "the lowest level": (GOOD | {"level": "none"}, "level is one of"),
    "no marks": ({key: value for key, value in GOOD.items() if key != "marks"}, "lacks 'marks'"),
    "words and an expression": (GOOD | {"words": ["x"]}, "either 'words' or 'regex'"),
    "marks and digits": (GOOD | {"digits": 9}, "take the place"),
    "few digits": ({"what": "x", "level": "sensitive", "digits": 3, "regex": "[0-9]{3}"}, "at least 9"),
    "an unbounded expression": (GOOD | {"regex": "B.*"}, "upper end"),
    "an unknown check": (GOOD | {"check": "os"}, "unknown check"),
    "an unknown detector": (GOOD | {"detector": "os"}, "unknown detector"),
    "a misspelt key": (GOOD | {"mark": ["x"]}, "unknown key 'mark'"),
}


@pytest.mark.parametrize("kind", MALFORMED)
def test_a_malformed_pattern_is_refused_by_name(kind):
    pattern, message = MALFORMED[kind]
    with pytest.raises(CatalogueError, match=message):
        extended(added(**pattern))


def test_a_catalogue_without_the_section_finds_nothing():
    definition = load_catalogue().definition()
    del definition["content"]
    assert not Scanner(type(load_catalogue())(definition)).scan("password=hunter2")
