"""Placeholders of written examples: filled in where a shell could run nothing of them, left alone elsewhere."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safetydrift.effects.boundary import Boundary
from safetydrift.effects.languages.registry import READERS
from safetydrift.effects.languages.shell import read_shell
from safetydrift.effects.languages.shell.placeholders import filled_in
from safetydrift.effects.reading import Reading, UnreadableError
from safetydrift.formats.catalogue_file import load_catalogue

CATALOGUE = load_catalogue()


def effect(command):
    reading = Reading(CATALOGUE, Boundary(), READERS)
    read_shell(reading, command)
    return reading.effect()


@pytest.mark.parametrize(
    ("example", "texts"),
    [
        ("ls", ("ls",)),
        ("ls {{folder}}", ("ls folder",)),
        ("ls {{[-a|--all]}}", ("ls -a",)),
        ("npm {{[i|install]}}", ("npm install",)),
        ("tar tf {{a.tar[.gz|.xz]}}", ("tar tf a.tar.gz",)),
        ("service x {{start|stop}}", ("service x start", "service x stop")),
        ("find . -exec {{wc -l {} }} +", ("find . -exec wc -l {}  +",)),
        ("cat #{input}", ("cat input",)),
        ("echo '{{a|b}}' \"{{c}}\"", ("echo '{{a|b}}' \"{{c}}\"",)),
    ],
)
def test_an_example_is_filled_in(example, texts):
    assert filled_in(example, CATALOGUE.programs) == texts


@pytest.mark.parametrize(
    "text",
    [
        "echo {{a|rm -rf ~}}",
        "echo {{a|rm -rf ~ }}",
        "echo {{a|reboot|b}}",
        "echo {{a|./tool -x}}",
        "echo {{a|b}}/../../bin/rm",
        "echo {{a;rm -rf b}}",
        "echo {{$(rm -rf a)}}",
        "echo {{a\nrm -rf b}}",
    ],
)
def test_what_a_shell_would_run_is_no_placeholder(text):
    assert filled_in(text, CATALOGUE.programs) == (text,)


def test_commands_behind_a_bar_in_braces_are_read():
    assert effect("echo {{a|rm -rf notes }}")["reversibility"] == "irreversible"
    assert effect("echo {{a|rm notes}}")["reversibility"] == "irreversible"


def test_every_choice_counts():
    assert effect("git {{status|clean -f}}")["reversibility"] == "irreversible"
    assert effect("git {{status|log}}")["reversibility"] == "fully_reversible"


@given(st.text(st.sampled_from("{}[]|#ab -'\"\\\n"), max_size=60))
def test_any_text_is_filled_in(text):
    texts = filled_in(text, CATALOGUE.programs)
    assert 1 <= len(texts) <= 4
    with suppress(UnreadableError):
        effect(text)
