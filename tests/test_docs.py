"""The commands of the documentation run as written; its TOML is read as what it says it is."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from tests.cli.running import safetydrift

from safetydrift.cli.app import RENAMED, SECTIONS
from safetydrift.cli.study import SECTIONS as STUDY
from safetydrift.effects.labeler import Labeler
from safetydrift.formats import load_catalogue, load_space

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(language):
    for page in PAGES:
        for block in re.findall(
            rf"^```{language}\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE
        ):
            yield page, block


COMMANDS = [
    pytest.param(command, id=f"{page.name}: {command}")
    for page, block in blocks("sh")
    for line in block.splitlines()
    if (command := line.partition("#")[0].strip()).startswith("safetydrift ")
]


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("docs")
    shutil.copytree(ROOT / "examples", folder / "traces")  # as the README says
    (addition,) = [block for _, block in blocks("toml") if "safetydrift.catalogue" in block]
    (folder / "ours.toml").write_text(addition)
    (tutorial,) = [block for _, block in blocks("toml") if "safetydrift.scenario" in block]
    (folder / "mine.toml").write_text(tutorial)
    assert safetydrift("fit", "traces/", "-o", "model.json", "-q", cwd=folder).returncode == 0
    return folder


def test_there_are_commands_to_run():
    assert len(COMMANDS) >= 8


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_documentation_runs_as_written(workplace, command):
    done = safetydrift(*shlex.split(command)[1:], cwd=workplace)
    assert done.returncode == 0, done.stderr


def test_the_space_of_the_documentation_is_a_space(tmp_path):
    (text,) = [block for _, block in blocks("toml") if "safetydrift.space" in block]
    (tmp_path / "space.toml").write_text(text)
    space = load_space(tmp_path / "space.toml")
    assert space.n_states == 20
    Labeler(load_catalogue()).require_cover(space)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), target


def test_every_verb_of_the_command_line_is_documented():
    readme = (ROOT / "README.md").read_text("utf-8") + (ROOT / "docs" / "corpus.md").read_text("utf-8")
    verbs = [verb for part in SECTIONS.values() for verb in part]
    verbs += [f"study {verb}" for part in STUDY.values() for verb in part]
    assert [
        verb for verb in verbs if f"safetydrift {verb}" not in readme and f"make {verb}" not in readme
    ] == []


def test_no_page_names_a_verb_as_it_is_called_no_more():
    for page in PAGES:
        found = re.findall(rf"`?safetydrift ({'|'.join(RENAMED)})\b", page.read_text("utf-8"))
        assert not found, page
