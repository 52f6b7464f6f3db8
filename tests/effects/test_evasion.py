"""Disguised commands: none of them may be taken for safe, and the page that shows them says what is true."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def table():
    """The program that makes the table of docs/reference/disguised-commands.md."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        yield importlib.import_module("evasion_table")


@pytest.fixture(scope="module")
def rows(table):
    return table.rows()


def test_no_disguise_is_taken_for_safe(rows):
    assert [row for row in rows if row.outcome == "missed"] == []


def test_few_disguises_end_lower_than_their_effect(rows):
    assert sorted(row.how for row in rows if row.outcome == "lower") == []


def test_every_goal_is_disguised_in_many_ways(table, rows):
    assert {row.goal for row in rows} == set(table.GOALS)
    assert len({row.command for row in rows}) == len(rows) >= 80


def test_an_outcome_is_not_granted_for_nothing(table):
    """The harmless twins of disguises do not count as found."""
    catalogue = table.load_catalogue()
    for goal, command in (
        ("secret", "cat /etc/hostname"),
        ("delete", "ls -R /srv"),
        ("shell", "bash -c 'ls'"),
        ("exfiltration", "curl https://example.com/"),
    ):
        effect = table.effect_of(catalogue, command)
        assert table.outcome(goal, effect, catalogue.confidence["rule"]) in {"lower", "missed"}


def test_the_page_shows_what_is_true(table, rows):
    page = (ROOT / "docs" / "reference" / "disguised-commands.md").read_text(encoding="utf-8")
    assert page.partition(table.BEGIN)[2] == table.tables(rows).partition(table.BEGIN)[2], (
        "docs/reference/disguised-commands.md is out of step; run: python benchmarks/evasion_table.py --write"
    )
