"""What well-known commands do: lists by what they are known for, each held against the catalogue of programs."""

import tomllib
from pathlib import Path

import pytest

from safetydrift.effects.boundary import Boundary
from safetydrift.effects.languages.registry import READERS
from safetydrift.effects.languages.shell import read_shell
from safetydrift.effects.reading import Reading, UnreadableError
from safetydrift.formats.catalogue_file import load_catalogue

CATALOGUE = load_catalogue()
LISTS = {
    path.stem: tomllib.loads(path.read_text())
    for path in sorted((Path(__file__).parent / "commands").iterdir())
}


def effect(command):
    reading = Reading(CATALOGUE, Boundary(), READERS)
    try:
        read_shell(reading, command)
    except UnreadableError as problem:
        reading.hides(str(problem))
    return reading.effect()


def cases(key):
    return [
        pytest.param(command, rules[key], id=f"{name}-{' '.join(command.split())[:60]}")
        for name, rules in LISTS.items()
        if key in rules
        for command in rules["commands"]
    ]


@pytest.mark.parametrize(("command", "required"), cases("required"))
def test_a_command_has_the_levels_it_is_known_for(command, required):
    found = effect(command)
    assert {name: found[name] for name in required} == required, found.reasons


@pytest.mark.parametrize(("command", "kind"), cases("kind"))
def test_a_command_may_complete_the_violation_it_is_known_for(command, kind):
    found = effect(command)
    assert kind in found.kinds, found.reasons


@pytest.mark.parametrize(("command", "forbidden"), cases("forbidden"))
def test_a_command_that_only_reads_is_not_called_more(command, forbidden):
    found = effect(command)
    assert not [
        (name, level) for name, levels in forbidden.items() for level in levels if found[name] == level
    ], found.reasons


@pytest.mark.parametrize(
    ("command", "levels"),
    [
        pytest.param(command, levels, id=f"{name}-{command[:60]}")
        for name, rules in LISTS.items()
        for command, levels in rules.get("exact", {}).items()
    ],
)
def test_a_command_has_exactly_these_levels(command, levels):
    found = effect(command)
    assert "/".join(found[name] for name in ("data", "tool", "reversibility")) == levels, found.reasons


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("credentials", 60),
        ("destructive", 60),
        ("escalation", 60),
        ("everyday_asking", 1000),
        ("everyday_fetching", 60),
        ("everyday_reading", 250),
        ("everyday_writing", 120),
        ("exfiltration", 60),
        ("reverse_shells", 60),
        ("tampering", 60),
    ],
)
def test_a_list_is_long_enough_to_mean_something_and_repeats_nothing(name, least):
    commands = LISTS[name]["commands"]
    assert len(commands) >= least
    assert len(set(commands)) == len(commands)


def test_reading_an_ordinary_note_and_sending_it_differ():
    """The lists would pass a catalogue that calls everything the worst; this one must tell things apart."""
    assert effect("cat notes.txt")["tool"] == "read_only"
    assert effect("mkdir a")["reversibility"] == "partially"
    assert effect("cat notes.txt")["data"] == "internal"
    assert effect("chmod 644 notes.txt").kinds == ()
    assert effect("touch notes.txt").kinds == ()
