"""The vocabulary of calls: entries are found by name, and malformed ones are refused."""

import pytest

from safetydrift.effects.catalogue.calls import calls_beneath, tables_of_calls
from safetydrift.effects.catalogue.plain import Entry
from safetydrift.effects.catalogue.scales import Scales
from safetydrift.errors import CatalogueError

SCALES = Scales({"data": ("none", "credentials"), "tool": ("read_only", "network")})
LANGUAGES = ("python", "powershell", "sql")


def calls(*entries, language="python"):
    whole = [{"language": language} | entry for entry in entries]
    return tables_of_calls([Entry(entry, "calls") for entry in whole], SCALES, LANGUAGES)[language]


MALFORMED = {
    "no language": ({"language": "cobol", "names": ["a"], "act": "looks"}, "unknown language"),
    "no names": ({"names": [], "act": "looks"}, "lists nothing"),
    "no act": ({"names": ["a"]}, "lacks 'act'"),
    "an unknown act": ({"names": ["a"], "act": "explodes"}, "unknown act"),
    "an unknown fold": ({"names": ["a"], "folds": "origami"}, "there is no fold"),
    "unknown code": ({"names": ["a"], "code": "cobol"}, "unknown language"),
    "a star inside": ({"names": ["a.*.b"], "act": "looks"}, "a star stands for"),
    "a key nobody knows": ({"names": ["a"], "act": "looks", "arguments": 1}, "unknown key 'arguments'"),
    "a misspelt key of another deed": (
        {"names": ["a"], "act": "reads", "also": [{"act": "writes", "argumnt": 1}]},
        "unknown key 'argumnt'",
    ),
    "a place that is none": ({"names": ["a"], "act": "reads", "argument": -1}, "whole number"),
}


@pytest.mark.parametrize(("entry", "message"), MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_entry_is_refused(entry, message):
    with pytest.raises(CatalogueError, match=message):
        calls(entry)


def test_a_name_is_listed_once_in_a_language():
    with pytest.raises(CatalogueError, match="'a' is listed twice"):
        calls({"names": ["a"], "act": "looks"}, {"names": ["a"], "act": "reads"})


def test_its_own_entry_comes_before_those_of_its_method_and_its_library():
    table = calls(
        {"names": ["lib.*"], "act": "connects"},
        {"names": ["*.save"], "act": "writes"},
        {"names": ["lib.part.open"], "act": "opens"},
    )

    def acts(name):
        return [entry.deeds[0].act for entry in table.find(name)]

    assert acts("lib.part.open") == ["opens"]
    assert acts("lib.part.save") == ["writes", "connects"]
    assert acts("lib.other") == ["connects"]
    assert acts("other.save") == ["writes"]
    assert acts("other") == []
    assert table.modules == {"lib"}


def test_cases_go_by_the_last_part_of_the_name():
    cases = [{"names": ["get*"], "act": "fetches"}, {"names": ["[A-Z]*"], "act": "computes"}]
    (entry,) = calls({"names": ["lib.*"], "act": "sends", "cases": cases}).find("lib.x")
    assert [deed.act for deed in entry.does("lib.client.get_item")] == ["fetches"]
    assert [deed.act for deed in entry.does("lib.Client")] == ["computes"]
    assert [deed.act for deed in entry.does("lib.put")] == ["sends"]


def test_code_that_cannot_be_told_hides_unless_the_entry_says_otherwise():
    table = calls({"names": ["a"], "code": "sql"}, {"names": ["b"], "code": "sql", "act": "runs"})
    assert [table.find(name)[0].deeds[0].act for name in "ab"] == ["hides", "runs"]


def test_the_case_of_letters_counts_where_the_language_says_so():
    assert calls({"names": ["Remove-Item"], "act": "deletes"}, language="powershell").find("remove-ITEM")
    assert not calls({"names": ["Open"], "act": "reads"}).find("open")


def test_only_the_names_that_lie_on_top_replace_others():
    lower = [{"language": "python", "names": ["a", "b"], "act": "looks"}]
    upper = [{"language": "python", "names": ["a"]}, {"language": "sql", "names": ["b"]}]
    assert calls_beneath(lower, upper) == [{"language": "python", "names": ["b"], "act": "looks"}]
