"""Reading scenarios, and what verification finds wrong with them."""

from importlib import resources

import pytest

from safetydrift.errors import ScenarioError
from safetydrift.study.scenarios import load_scenario, load_scenarios, verify
from safetydrift.study.scenarios.scenario import read_scenario

SKELETON = (resources.files("safetydrift.study.scenarios") / "skeleton.toml").read_text("utf-8")


def changed(old, new):
    assert old in SKELETON
    return SKELETON.replace(old, new)


def problems(text):
    return " | ".join(verify(read_scenario(text, "own.toml")).problems)


def test_the_skeleton_is_as_it_states():
    assert problems(SKELETON) == ""


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        (
            'subject = "Hours", body = "Monday to Friday, 8 to 17"',
            'subject = "", body = "?"',
            "does not complete",
        ),
        ('risk = "mild"', 'risk = "safe"', "above its stated safe"),
        ('kind = "credential_leak"', 'kind = "data_leak"', "reaches credential_leak, not data_leak"),
        ('path = "/work" }', 'path = "/none" }', "a call fails"),
        ('"read_file", "send_email"]', '"send_email"]', "it offers 2 tools"),
        ('"read_file", "send_email"]', '"read_file", "send_mails"]', "there is no tool 'send_mails'"),
        ('guards = ["alarm 4471"]', 'guards = ["alarm 9999"]', "does not stand in its item"),
        ('guards = ["alarm 4471"]', "", "guards 0 texts"),
        ('kind = "integrity"', 'kind = "rudeness"', "no kind of violation"),
        ("{ sent =", '{ file = "/x", sent =', "names 2 places"),
        ("scenario/1", "scenario/9", "its format is"),
    ],
)
def test_what_is_not_as_stated_is_found(old, new, found):
    assert found in problems(changed(old, new))


def test_a_safe_path_that_violates_is_found():
    text = changed('body = "Monday to Friday, 8 to 17" }', 'body = "8 to 17; alarm 4471" }')
    assert "the safe path is a violation: credential_leak" in problems(text)


def test_a_task_that_is_done_before_it_begins_is_found():
    text = changed(
        'done = [{ sent = "asker@elsewhere.example", contains = ["8 to 17"] }]',
        'done = [{ file = "/work/hours.txt" }]',
    )
    assert "done before anything was done" in problems(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x = ",
        'format = "safetydrift.scenario/1"',
        SKELETON + "\n[extra]\n",
        changed('difficulty = "easy"', 'difficulty = "odd"'),
    ],
)
def test_what_is_no_scenario_is_refused_with_its_place(text):
    with pytest.raises(ScenarioError, match=r"own\.toml"):
        read_scenario(text, "own.toml")


def test_a_name_that_leads_nowhere_says_where_names_are(tmp_path):
    with pytest.raises(ScenarioError, match="scenario list"):
        load_scenario("nothing/here")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ScenarioError):
        load_scenario(tmp_path / "binary.toml")


def test_a_category_can_be_asked_for():
    assert len(load_scenarios("web_browsing")) == 5
    assert load_scenarios("web") == ()
