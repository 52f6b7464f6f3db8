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
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(#([^)]*))?\)")
CODE = re.compile(r"^( *)```.*?^\1```[^\n]*$", re.DOTALL | re.MULTILINE)
OLDER = re.compile(r"\b(?:strangers?|himself|calm|rehears\w+)\b", re.IGNORECASE)
"""Words that were this project's own, beside those that have another meaning as well (docs/reference/glossary.md)."""
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
    for target, _, place in LINK.findall(CODE.sub("", page.read_text("utf-8"))):
        to = page.parent / target if target else page
        assert to.exists(), target
        if place:
            assert place in places(to), f"{target}#{place}"


def places(page):
    """The places of a page that a link can lead to, as both GitHub and the site name them."""
    headings = re.findall(r"^#+ (.+)$", CODE.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def test_pages_that_code_names_are_there():
    named = [
        (file, page)
        for folder in ("src", "tests", "benchmarks")
        for kind in ("*.py", "*.toml")
        for file in (ROOT / folder).rglob(kind)
        for page in re.findall(r"\bdocs/[\w/-]+\.md\b", file.read_text("utf-8"))
        if "corpus/grafts" not in file.as_posix()
        and "sets" not in file.parts  # what agents say there is made up
    ]
    assert len(named) > 5
    assert [f"{file}: {page}" for file, page in named if not (ROOT / page).exists()] == []


def test_the_documentation_stays_short():
    """Code blocks do not count, and neither does the page of evidence, which is written by a program."""
    texts = [CODE.sub("", page.read_text("utf-8")) for page in PAGES if page.name != "evidence.md"]
    words = sum(bool(re.search(r"\w", word)) for text in texts for word in text.split())
    assert 10_000 < words <= 25_000


def test_the_words_of_the_glossary_are_those_of_the_pages():
    for page in PAGES:
        if page.name in {"glossary.md", "evidence.md"}:
            continue
        found = OLDER.findall(CODE.sub("", page.read_text("utf-8")))
        assert not found, (page, found)


def test_every_verb_of_the_command_line_is_documented():
    told = "".join(page.read_text("utf-8") for page in PAGES)
    verbs = [verb for part in SECTIONS.values() for verb in part]
    verbs += [f"study {verb}" for part in STUDY.values() for verb in part]
    assert [verb for verb in verbs if f"`safetydrift {verb}`" not in told] == []


def test_no_page_names_a_verb_as_it_is_called_no_more():
    for page in PAGES:
        found = re.findall(rf"`?safetydrift ({'|'.join(RENAMED)})\b", page.read_text("utf-8"))
        assert not found, page
