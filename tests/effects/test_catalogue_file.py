"""Catalogue files: shipped and own ones, additions, and errors that name the file."""

import pytest

from safetydrift.effects import Labeler
from safetydrift.errors import CatalogueError
from safetydrift.formats.catalogue_file import MAX_CATALOGUE_BYTES, load_catalogue, shipped_catalogues
from safetydrift.trace import ToolCall

HEAD = 'format = "safetydrift.catalogue/2"\nname = "mine"\nversion = "1"\n'


def test_the_default_catalogue_is_shipped():
    assert shipped_catalogues() == ("default",)
    assert load_catalogue("default") == load_catalogue()


def test_additions_go_on_top_in_the_order_given(tmp_path):
    entry = '[[tools]]\nnames = ["zap"]\neffect = {{ data = "{}", tool = "read_only", reversibility = "partially" }}\n'
    first, second = tmp_path / "first.toml", tmp_path / "second.toml"
    first.write_text(HEAD + entry.format("public"))
    second.write_text(HEAD + entry.format("sensitive"))
    catalogue = load_catalogue(additions=[first, str(second)])
    assert catalogue.name == "default+mine+mine"
    assert Labeler(catalogue).propose(ToolCall("zap"))["data"] == "sensitive"
    assert len(catalogue.tools) == len(load_catalogue().tools) + 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"format = ", "Invalid value"),
        (b'format = "safetydrift.space/1"', "expected format"),
        (b"\xff", "codec can't decode"),
        (b"x = " + b"[" * 5000, "broken.toml"),
        (b"#" * (MAX_CATALOGUE_BYTES + 1), "at most 1048576 bytes"),
        (b"day = 2024-01-01", "date has no place"),
    ],
    ids=["no toml", "another format", "no text", "endless nesting", "too large", "a date"],
)
def test_a_broken_file_is_refused_by_its_name(tmp_path, content, message):
    path = tmp_path / "broken.toml"
    path.write_bytes(content)
    for load in (lambda: load_catalogue(path), lambda: load_catalogue(additions=[path])):
        with pytest.raises(CatalogueError) as caught:
            load()
        assert "broken.toml" in str(caught.value)
        assert message in str(caught.value)


def test_a_broken_entry_of_an_addition_is_named_with_its_file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(HEAD + '[[tools]]\nnames = ["zap"]\neffect = { data = "all" }\n')
    with pytest.raises(CatalogueError, match=r"mine\.toml: tools\[1\] \(zap\)"):
        load_catalogue(additions=[path])


@pytest.mark.parametrize("name", ["no-such-catalogue", "a\x00b", "docs"])
def test_a_missing_catalogue_says_which_ones_there_are(name):
    with pytest.raises(CatalogueError, match="default"):
        load_catalogue(name)
