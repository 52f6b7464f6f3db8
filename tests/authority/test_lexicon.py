"""The lexicon: one data file made of reviewed tables, complete in every language."""

import tomllib
from pathlib import Path

import pytest

from safetydrift.authority.compiling import Compiler, compiled_lexicon
from safetydrift.authority.vocabulary import DATA, LEXICON_FORMAT, MARKS, SENSES, mark, vocabulary
from safetydrift.effects.operations import ACTIONS
from safetydrift.errors import ConfigError

TABLES = {
    path.stem: tomllib.loads(path.read_text("utf-8")) for path in sorted(Path(DATA).parent.glob("*.toml"))
}
COMMON = TABLES.pop("common")
MAIN_ACTS = {
    "read",
    "edit",
    "delete",
    "move",
    "run",
    "install",
    "fetch",
    "send",
    "publish",
    "pay",
    "stop",
    "alter",
    "include",
}


def test_the_data_file_is_what_the_tables_make():
    made = compiled_lexicon()
    assert Path(DATA).read_bytes() == made, "run: python -m safetydrift.authority.compiling"
    assert vocabulary().lexicon.format == LEXICON_FORMAT


def test_every_language_has_what_requests_are_told_apart_by():
    assert len(TABLES) == 23
    for name, table in TABLES.items():
        assert set(table["verbs"]) >= MAIN_ACTS, name
        marks = set(table["marks"])
        assert marks >= {
            "function",
            "polite",
            "connect",
            "except",
            "condition",
            "question",
            "follow",
            "task",
            "assent",
        }, name
        assert marks & {"negation", "negation_after"}, name
        assert {"all", "only"} <= set(table["scope"]), name
        assert {"file", "folder", "database", "mail", "payment", "password", "calendar"} <= set(
            table["kinds"]
        ), name


def test_every_action_and_goal_has_its_ordinary_means():
    assert set(ACTIONS) <= set(COMMON["means"])
    assert all("read" in means for means in COMMON["means"].values())
    guarded = {"push", "deploy", "authenticate", "grant", "delete", "pay", "send"}
    for goal in (
        "fix",
        "implement",
        "refactor",
        "test",
        "compile",
        "reproduce",
        "train",
        "setup",
        "review",
        "explain",
        "research",
    ):
        assert not {means.partition("@")[0] for means in COMMON["means"][goal]} & guarded, goal


def test_masks_fit_into_what_a_store_can_hold():
    assert len(COMMON["kinds"]) < 64
    assert len(MARKS) < 64
    assert len(SENSES) <= 16


def test_a_table_that_nobody_reads_is_refused():
    with pytest.raises(ConfigError, match="nobody reads verb"):
        Compiler(COMMON).language({"language": "xx", "verb": {}})
    with pytest.raises(ConfigError, match="verbs have no 'obliterate'"):
        Compiler(COMMON).language({"language": "xx", "verbs": {"obliterate": ["x"]}})


@pytest.mark.parametrize(
    ("word", "language", "marks"),
    [
        ("nicht", "de", "negation"),
        ("не", "ru", "negation"),
        ("不要", "zh", "negation"),
        ("وأرسل", "ar", ""),
        ("bórralo", "es", ""),
    ],
)
def test_words_are_known_as_they_are_written(word, language, marks):
    known = vocabulary()
    from safetydrift.authority.text import fold  # noqa: PLC0415

    word = fold(word)
    index = known.lexicon.languages.index(language)
    sense = known.sense(word, 1 << index)
    assert known.languages_of(word) >> index & 1
    assert sense.marks & mark(marks) if marks else sense.acts
