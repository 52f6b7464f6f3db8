"""What the user's words say of whole commands: of what they amount to, and of what comes along."""

import tomllib
from pathlib import Path

import pytest

from safetydrift.authority.asking import grades
from safetydrift.authority.grading import ASKED, FORBIDDEN, GOAL
from safetydrift.authority.request import Request
from safetydrift.effects.labeler import Labeler
from safetydrift.effects.operations import CERTAIN, Operation
from safetydrift.formats.catalogue_file import load_catalogue
from safetydrift.trace import ToolCall

ROWS = tomllib.loads((Path(__file__).parent / "commands.toml").read_text("utf-8"))["request"]
COVERED = [(row["said"], command) for row in ROWS for command in row.get("covered", ())]
OTHERS = [(row["said"], command) for row in ROWS for command in row.get("others", ())]


@pytest.fixture(scope="module")
def labeler():
    return Labeler(load_catalogue())


def graded(labeler, said, command):
    """Return the grades of the harms of a command."""
    proposal = labeler.read_call(ToolCall("bash", {"command": command}))
    harms = [one for one in proposal.effect.operations if one.harm]
    assert harms
    return [asked.grade for asked in grades(heard(said), harms, (), [command])]


def heard(said):
    return Request.empty(b"salt").hear(said)


@pytest.mark.parametrize(("said", "command"), COVERED)
def test_a_command_that_does_what_was_asked_for_is_covered_in_all_its_parts(labeler, said, command):
    assert set(graded(labeler, said, command)) == {ASKED}


@pytest.mark.parametrize(("said", "command"), OTHERS)
def test_a_near_miss_is_not_covered(labeler, said, command):
    assert set(graded(labeler, said, command)) - {ASKED, GOAL}


@pytest.mark.parametrize(
    "path", ["~/.ssh/id_rsa", "/etc/hosts", "../other/a.py", ".env", "config/.env.production"]
)
@pytest.mark.parametrize("action", ["read", "edit", "run"])
def test_no_goal_covers_credentials_or_what_lies_outside_the_project(action, path):
    assert heard("Fix the failing test.").asks(action, [path]).grade < GOAL


@pytest.mark.parametrize("path", ["src/a.py", ".env.example", "tests/test_login.py"])
def test_a_goal_covers_files_of_the_project(path):
    assert heard("Fix the failing test.").asks("read", [path]).grade == GOAL


def test_what_comes_along_is_covered_only_if_it_names_nobody_else():
    asked = Operation("grant", "ann", "account", "access", CERTAIN, "make an account on this host: ann")
    other = Operation("grant", "eve", "account", "access", CERTAIN, "make an account on this host: eve")
    unnamed = Operation("grant", "", "resource", "access", CERTAIN, "use useradd")
    request = heard("Create the user ann.")
    assert [one.grade == ASKED for one in grades(request, [asked, unnamed])] == [True, True]
    assert [one.grade == ASKED for one in grades(request, [asked, other, unnamed])] == [True, False, False]


def test_what_was_forbidden_is_covered_by_nothing_that_comes_along():
    stop = Operation(
        "disable", "stop auditd", "resource", "safeguards", CERTAIN, "switch off what guards this host"
    )
    delete = Operation(
        "delete", "/var/log/audit", "path", "destruction", CERTAIN, "delete everything below it"
    )
    request = heard("Stop auditd. Don't delete anything.")
    assert [one.grade for one in grades(request, [stop, delete])] == [ASKED, FORBIDDEN]
