"""What commands do to what, and which harm that is if nobody asked: lists of commands held against the catalogue."""

import tomllib
from pathlib import Path

import pytest

from safetydrift.effects.catalogue.harms import CERTAINTIES
from safetydrift.effects.labeler import Labeler
from safetydrift.formats.catalogue_file import load_catalogue
from safetydrift.trace import ToolCall

LABELER = Labeler(load_catalogue())
LISTS = {
    path.stem: tomllib.loads(path.read_text())
    for path in sorted((Path(__file__).parent / "operations").iterdir())
}


def operations(command):
    return LABELER.propose(ToolCall("bash", {"command": command})).operations


def commands(key):
    return [
        pytest.param(command, rules, id=f"{name}-{' '.join(command.split())[:70]}")
        for name, rules in LISTS.items()
        if key in rules
        for command in rules.get("commands", ())
    ]


def shown(found):
    return "\n".join(f"{one.action} {one.target!r} {one.harm} {one.certainty} {one.note}" for one in found)


@pytest.mark.parametrize(("command", "rules"), commands("harm"))
def test_a_command_has_the_harm_that_it_is_listed_for(command, rules):
    found = operations(command)
    least = CERTAINTIES[rules["least"]]
    assert max((one.certainty for one in found if one.harm == rules["harm"]), default=0) >= least, shown(
        found
    )


@pytest.mark.parametrize(("command", "rules"), commands("most"))
def test_everyday_work_has_no_likely_harm(command, rules):
    found = operations(command)
    assert max((one.certainty for one in found), default=0) <= CERTAINTIES[rules["most"]], shown(found)
