"""What entries for programs say beyond their effect: where code stands, and commands behind subcommands."""

import pytest

from safetydrift.effects.boundary import Boundary
from safetydrift.effects.catalogue.entries import CodeOption
from safetydrift.effects.catalogue.languages import LANGUAGES
from safetydrift.effects.catalogue.plain import Entry
from safetydrift.effects.languages.registry import READERS
from safetydrift.effects.languages.shell import read_shell
from safetydrift.effects.reading import Reading
from safetydrift.errors import CatalogueError
from safetydrift.formats.catalogue_file import load_catalogue

CATALOGUE = load_catalogue()
LOOKS = {"data": "none", "tool": "read_only", "reversibility": "fully_reversible"}


def option(**data):
    return CodeOption(Entry({"language": "shell", **data}, "code"), LANGUAGES)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["-c", "ls"], "ls"),
        (["-c"], None),
        (["-cls"], "ls"),
        (["-lc", "ls"], "ls"),
        (["--command", "ls"], "ls"),
        (["--command=ls"], "ls"),
        (["--commands=ls"], None),
        (["-x", "ls"], None),
        (["c", "ls"], None),
    ],
)
def test_code_stands_behind_an_option_or_within_it(words, code):
    assert option(options=["-c", "--command"]).value(words, 0) == code


def test_code_within_a_word_is_what_the_last_star_stands_for():
    settings = option(words=["alias.*=!*", "core.pager=*"])
    assert settings.value(["alias.st=!ls"], 0) == "ls"
    assert settings.value(["core.pager=less -R"], 0) == "less -R"
    assert settings.value(["user.name=me"], 0) is None


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ({}, "lacks 'options' or 'words'"),
        ({"words": ["a=b"]}, "end with a"),
        ({"words": ["*"]}, "end with a"),
    ],
)
def test_code_that_could_not_be_found_is_refused(data, complaint):
    with pytest.raises(CatalogueError, match=complaint):
        option(**data)


def read(program, command):
    catalogue = CATALOGUE.extended(
        {"format": CATALOGUE.definition()["format"], "name": "test", "version": "1", "programs": [program]}
    )
    reading = Reading(catalogue, Boundary(), READERS)
    read_shell(reading, command)
    return reading.effect()


def test_a_command_behind_a_subcommand_is_looked_through():
    case = {"first": ["exec"], "effect": {"tool": "code_exec"}, "wraps": True, "skip": 1}
    program = {"names": ["box"], "effect": LOOKS, "valued": ["-u"], "cases": [case]}
    assert "destructive_action" in read(program, "box exec -it -u root web rm -rf /data").kinds
    assert "destructive_action" not in read(program, "box start rm").kinds


@pytest.mark.parametrize(
    ("paths", "levels"),
    [
        ("files", "credentials/read_only/fully_reversible"),
        ("words", "credentials/read_only/fully_reversible"),
        ("deleted", "none/file_write/irreversible"),
        ("written", "none/file_write/partially"),
        ("copied", "credentials/file_write/partially"),
    ],
)
def test_operands_are_read_written_deleted_or_copied(paths, levels):
    effect = read({"names": ["tool"], "effect": LOOKS, "paths": paths}, "tool ~/.ssh/id_rsa b.txt")
    assert "/".join(effect[name] for name in LOOKS) == levels


def test_options_name_files_that_are_written():
    program = {"names": ["tool"], "effect": LOOKS, "outputs": ["-o", "of=*"]}
    assert read(program, "tool -o out.txt")["tool"] == "file_write"
    assert read(program, "tool of=/dev/sda")["reversibility"] == "irreversible"
    assert read(program, "tool out.txt")["tool"] == "read_only"


def test_a_raw_connection_counts_whoever_is_at_the_other_end():
    effect = {"data": "public", "tool": "network", "reversibility": "fully_reversible"}
    for hosts, external in (("operands", False), ("sockets", True)):
        program = {"names": ["tool"], "effect": effect, "hosts": hosts}
        assert read(program, "tool 127.0.0.1 80").external is external


@pytest.mark.parametrize(
    ("command", "levels"),
    [
        ("dd if=/dev/zero bs=1 count=1", "public/read_only/fully_reversible"),
        ("dd if=/dev/zero of=/dev/sda", "internal/file_write/irreversible"),
        ("gzip", "none/read_only/fully_reversible"),
        ("gzip notes.txt", "internal/file_write/partially"),
        ("gzip -dc notes.gz", "internal/read_only/fully_reversible"),
        ("git config user.name", "internal/read_only/fully_reversible"),
        ("git config user.name Ann", "internal/file_write/partially"),
    ],
)
def test_a_case_may_ask_for_words_that_are_not_there(command, levels):
    assert levels_of(command) == levels


def test_a_case_may_say_that_operands_are_only_named():
    assert levels_of("unzip -l a.zip") == "none/read_only/fully_reversible"
    assert levels_of("unzip -p a.zip") == "internal/read_only/fully_reversible"
    assert levels_of("tar tf a.tar") == "none/read_only/fully_reversible"
    assert levels_of("uniq a.txt /etc/cron.d/b").startswith("internal/")


@pytest.mark.parametrize(
    ("command", "levels"),
    [
        ("/srv/validate_rows.sh rows.csv", "internal/code_exec/fully_reversible"),
        ("/srv/validate_rows.sh rows.csv -o x.txt", "internal/code_exec/partially"),
        ("/srv/validate_rows.sh rows.csv /srv/output/x.txt", "internal/code_exec/partially"),
        ("/srv/allocate_tests.sh rows.csv", "internal/code_exec/partially"),
        ("python3 run_tests.py", "internal/code_exec/fully_reversible"),
        ("python3 /dev/shm/run_tests.py", "internal/code_exec/partially"),
        ("make test", "internal/code_exec/fully_reversible"),
        ("frobnicate --list-all", "internal/code_exec/fully_reversible"),
        ("frobnicate --now", "internal/code_exec/partially"),
    ],
)
def test_a_program_that_is_not_read_is_taken_at_its_name_unless_it_is_told_where_to_write(command, levels):
    assert levels_of(command) == levels


def levels_of(command):
    reading = Reading(CATALOGUE, Boundary(), READERS)
    read_shell(reading, command)
    found = reading.effect()
    return "/".join(found[name] for name in ("data", "tool", "reversibility"))
