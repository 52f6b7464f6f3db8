"""The catalogue: refuses what is not well formed, keeps what it was given, and answers by name."""

import copy
import gc
import pickle

import pytest

from safetydrift._garbage import Uncollected
from safetydrift.effects import Catalogue
from safetydrift.effects.catalogue.acts import ACTS
from safetydrift.effects.catalogue.catalogue import CATALOGUE_FORMAT, CONFIDENCES
from safetydrift.effects.catalogue.globs import Globs, NameGlobs
from safetydrift.errors import CatalogueError
from safetydrift.formats.catalogue_file import load_catalogue
from safetydrift.formats.space_file import load_space
from safetydrift.states.dimensions import Accumulation, Dimension
from safetydrift.states.rules import Rule
from safetydrift.states.space import StateSpace

READS = {"data": "internal", "tool": "read_only"}


MISSING = "left out"


ACT = {"effect": READS}


def small(**changes):
    definition: dict[str, object] = {
        "format": CATALOGUE_FORMAT,
        "name": "small",
        "version": "1",
        "scales": {"data": ["none", "internal", "secret"], "tool": ["read_only", "network"]},
        "context": {
            "untrusted": ["none", "read", "instructed"],
            "provenance": ["named", "own", "unknown", "foreign", "instructed"],
            "carried": ["nothing", "secret"],
        },
        "confidence": dict.fromkeys(CONFIDENCES, 0.5),
        "leaks": {"secret": "data_leak"},
        "metadata": {"effect": READS, "note": "keys"},
        "inside": {"data": "none"},
        "acts": dict.fromkeys(ACTS, ACT),
        "roles": {"to": ["to"], "prose": ["body"]},
        "default": {"data": "internal", "tool": "network"},
        "failed": {"data": "none"},
        "shell": {"discard": ["/dev/null"]},
        "tools": [{"names": ["look"], "effect": READS}],
        "patterns": [{"match": ["get_*"], "effect": READS, "note": "reads"}],
        "programs": [{"names": ["ls"], "effect": READS, "note": "lists"}],
        "paths": [{"match": ["*.pem"], "effect": {"data": "internal"}, "note": "keys"}],
    }
    definition.update(changes)
    return {key: value for key, value in definition.items() if value != MISSING}


def tool(**changes):
    return {"tools": [{"names": ["send"], "effect": READS} | changes]}


MALFORMED = {
    "no table": ([], "expected a table"),
    "no format": (small(format=MISSING), "lacks 'format'"),
    "a later format": (small(format="safetydrift.catalogue/9"), CATALOGUE_FORMAT),
    "no name": (small(name=MISSING), "lacks 'name'"),
    "a name that is a number": (small(name=3), "expected a text, got 3"),
    "no default": (small(default=MISSING), "lacks 'default'"),
    "no scales": (small(scales={}), "one or more dimensions"),
    "no scale of data": (small(scales={"tool": ["read_only", "network"]}), "scales: lacks 'data'"),
    "a context of its own": (small(context={"mood": ["good", "bad"]}), "context: needs exactly"),
    "other origins": (
        small(
            context={
                "untrusted": ["none", "read", "instructed"],
                "provenance": ["mine", "yours"],
                "carried": ["nothing", "secret"],
            }
        ),
        "context.provenance: its levels are",
    ),
    "an act left out": (small(acts={"looks": ACT}), "acts: lacks"),
    "an act nobody knows": (small(acts=dict.fromkeys([*ACTS, "dances"], ACT)), "there is no 'dances'"),
    "a kind nobody knows": (small(**tool(kinds=["mischief"])), "unknown kind 'mischief'"),
    "a leak of no level": (small(leaks={"top": "data_leak"}), "leaks: 'top'"),
    "no confidence": (small(confidence={}), "confidence: needs exactly"),
    "a confidence above one": (small(confidence=dict.fromkeys(CONFIDENCES, 2)), "a number from 0 to 1"),
    "a mark in capitals": (small(instructions=[{"leads": ["Ignore"]}]), "small letters"),
    "a mark of unbounded work": (small(instructions=[{"leads": ["a"], "then": "(a+)+"}]), "then:"),
    "a scale of one level": (
        small(scales={"data": ["none"], "tool": ["read_only", "network"]}),
        "scales.data",
    ),
    "a level named twice": (
        small(scales={"data": ["none", "none"], "tool": ["read_only", "network"]}),
        "scales.data",
    ),
    "an unknown section": (small(tolls=[]), "unknown key 'tolls'"),
    "an unknown level": (
        small(**tool(effect={"data": "top", "tool": "network"})),
        "(send): 'data' has no level",
    ),
    "a level that is a number": (small(**tool(effect={"data": 1, "tool": "network"})), "has no level 1"),
    "an unknown dimension": (small(**tool(effect=READS | {"risk": "x"})), "(send): unknown dimension 'risk'"),
    "a dimension left out": (
        small(**tool(effect={"data": "none"})),
        "(send): the effect lacks a level for 'tool'",
    ),
    "an effect that is a text": (small(**tool(effect="none")), "(send): an effect is a table"),
    "no effect": (small(**tool(effect=None)), "no place in a catalogue"),
    "no names": (small(tools=[{"effect": READS}]), "tools[1]: lacks 'names'"),
    "names that are a text": (
        small(tools=[{"names": "send", "effect": READS}]),
        "tools[1]: names: expected a list",
    ),
    "an empty list of names": (small(tools=[{"names": [], "effect": READS}]), "'names' lists nothing"),
    "a name listed twice": (
        small(tools=[{"names": ["a", "b"], "effect": READS}, {"names": ["c", "b"], "effect": READS}]),
        "tool 'b' is listed twice",
    ),
    "a program listed twice": (small(programs=[{"names": ["ls", "ls"], "effect": READS}]), "program 'ls'"),
    "an unknown language": (
        small(tools=[{"names": ["sh"], "language": "basic", "argument": "text"}]),
        "(sh): unknown language 'basic'; known: awk",
    ),
    "a language without an argument": (
        small(tools=[{"names": ["sh"], "language": "shell"}]),
        "(sh): lacks 'argument'",
    ),
    "a language with an effect": (
        small(tools=[{"names": ["sh"], "language": "shell", "argument": "command", "effect": READS}]),
        "(sh): has a language",
    ),
    "a language with paths": (
        small(tools=[{"names": ["sh"], "language": "shell", "argument": "command", "paths": ["path"]}]),
        "(sh): has a language; paths",
    ),
    "a misspelt key": (small(**tool(path=["file"])), "(send): unknown key 'path'"),
    "a case without values": (small(**tool(cases=[{"argument": "a", "effect": READS}])), "lacks 'values'"),
    "a case that is a text": (small(**tool(cases=["x"])), "expected a table"),
    "tools that are a table": (small(tools={"names": ["x"]}), "tools: expected a list of tables"),
    "a pattern without an effect": (small(patterns=[{"match": ["x*"]}]), "patterns[1] (x*): lacks 'effect'"),
    "a flag that is a text": (
        small(programs=[{"names": ["x"], "effect": READS, "wraps": "yes"}]),
        "true or false",
    ),
    "a count that is negative": (
        small(programs=[{"names": ["x"], "effect": READS, "skip": -1}]),
        "whole number",
    ),
    "a program case without words": (
        small(programs=[{"names": ["x"], "effect": READS, "cases": [{"effect": READS}]}]),
        "lacks 'first', 'words' or 'lacks'",
    ),
    "an unknown kind of paths": (
        small(programs=[{"names": ["x"], "effect": READS, "paths": "all"}]),
        "paths is one of files",
    ),
    "an unknown kind of stdin": (
        small(programs=[{"names": ["x"], "effect": READS, "stdin": "all"}]),
        "'code', 'operands' or",
    ),
    "an annotation without a value": (small(annotations=[{"hint": "h", "effect": READS}]), "lacks 'value'"),
    "no shell section": (small(shell=MISSING), "lacks 'shell'"),
    "something that is no data": (
        small(tools=[{"names": ["x"], "effect": READS, "note": object()}]),
        "object has no",
    ),
}


def pattern_note(catalogue, name):
    entry = catalogue.pattern(name)
    assert entry is not None
    return entry.note


@pytest.fixture(scope="module")
def default():
    return load_catalogue()


@pytest.mark.parametrize(("definition", "message"), MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_catalogue_is_refused_by_the_name_of_the_entry(definition, message):
    with pytest.raises(CatalogueError) as caught:
        Catalogue.from_definition(definition)
    assert message in str(caught.value)


def test_endless_nesting_is_refused_and_does_not_exhaust_the_stack():
    nested: list[object] = []
    for _ in range(100_000):
        nested = [nested]
    with pytest.raises(CatalogueError):
        Catalogue.from_definition(small(tools=nested))


def test_the_definition_gives_the_same_catalogue_back(default):
    for catalogue in (default, Catalogue.from_definition(small())):
        again = Catalogue.from_definition(catalogue.definition())
        assert again == catalogue
        assert again.identity == catalogue.identity
        assert hash(again) == hash(catalogue)
        assert pickle.loads(pickle.dumps(catalogue)) == catalogue  # noqa: S301


def test_nobody_can_change_a_catalogue_through_its_definition():
    given = small()
    catalogue = Catalogue.from_definition(given)
    before = catalogue.identity
    given["tools"].clear()
    catalogue.definition()["tools"].clear()
    assert catalogue == Catalogue.from_definition(small())
    assert Catalogue.from_definition(catalogue.definition()).identity == before


def test_a_change_of_one_level_changes_the_identity():
    other = copy.deepcopy(small())
    other["tools"][0]["effect"] = {"data": "none", "tool": "read_only"}
    assert Catalogue.from_definition(other).identity != Catalogue.from_definition(small()).identity
    assert Catalogue.from_definition(other) != Catalogue.from_definition(small())


def test_the_default_catalogue_covers_the_published_space(default):
    default.require_cover(load_space("paper"))


def test_a_space_with_a_dimension_the_catalogue_lacks_is_refused_by_name(default):
    wider = StateSpace(
        "wider", [Dimension("trust", ("low", "high"), Accumulation.HIGHEST)], ["a"], [Rule({}, "a")], "a"
    )
    with pytest.raises(CatalogueError, match="no scale for 'trust'"):
        default.require_cover(wider)


def test_a_space_with_other_levels_is_refused_by_name(default):
    other = StateSpace(
        "other", [Dimension("data", ("none", "all"), Accumulation.HIGHEST)], ["a"], [Rule({}, "a")], "a"
    )
    with pytest.raises(CatalogueError, match="levels of 'data'"):
        default.require_cover(other)


def test_patterns_match_the_whole_name_and_never_a_part(default):
    catalogue = Catalogue.from_definition(small(patterns=[{"match": ["read"], "effect": READS}]))
    assert catalogue.pattern("read")
    assert catalogue.pattern("READ")
    assert catalogue.pattern("read_secrets") is None
    assert default.pattern("x" * 100_000) is None


def test_the_first_pattern_decides(default):
    assert pattern_note(default, "get_and_delete_all") == "removes something"


@pytest.mark.parametrize(
    ("path", "level"),
    [
        (".env", "credentials"),
        ("/home/u/.ssh/id_rsa", "credentials"),
        ("~/.AWS/./Credentials", "credentials"),
        ("file=@/etc/shadow", "credentials"),
        ("host:/etc/shadow", "credentials"),
        ("server.pem", "credentials"),
        ("http/.env", "credentials"),
        ("/data/payroll_2024.csv", "sensitive"),
        ("/data/patients/1.json", "sensitive"),
        ("https://example.com/reset-password", "public"),
        ("/usr/share/dict/words", "public"),
        ("src/main.py", None),
        ("classname.py", None),
        ("/workspace/tokenizer.py", "internal"),
        ("notes/meeting", None),
        ("", None),
        ("a/" * 5000 + ".env", None),
    ],
)
def test_the_name_of_a_file_tells_its_sensitivity(default, path, level):
    entry = default.path(path)
    told = None if entry is None else default.scales.levels("data")[entry.ranks[0]]
    assert told == level


def test_additions_replace_exact_names_and_come_before_patterns():
    base = Catalogue.from_definition(small())
    additions = {
        "format": CATALOGUE_FORMAT,
        "name": "mine",
        "version": "7",
        "tools": [{"names": ["look", "jump"], "effect": {"data": "none", "tool": "network"}}],
        "patterns": [
            {"match": ["get_all*"], "effect": {"data": "internal", "tool": "network"}, "note": "mine"}
        ],
    }
    both = base.extended(additions)
    assert (both.name, both.version) == ("small+mine", "1+7")
    assert (both.tools["look"].ranks or ())[:2] == (0, 1)
    assert (both.tools["jump"].ranks or ())[:2] == (0, 1)
    assert pattern_note(both, "get_all_of_it") == "mine"
    assert pattern_note(both, "get_one") == "reads"
    assert both.programs.keys() == base.programs.keys()
    assert base == Catalogue.from_definition(small())


def test_additions_with_other_scales_are_refused():
    additions = small(
        name="mine", scales={"data": ["none", "inner", "secret"], "tool": ["read_only", "network"]}
    )
    with pytest.raises(CatalogueError, match="'mine' has other scales"):
        Catalogue.from_definition(small()).extended(additions)


def test_the_catalogue_shows_what_it_holds(default):
    assert repr(default).startswith("<Catalogue 'default' 20")


def test_names_that_come_again_mean_what_they_meant_and_only_so_many_are_remembered():
    names, once = NameGlobs(["to", "*_id", "recipient*"]), Globs(["to", "*_id", "recipient*"], fold=True)
    asked = [
        f"{start}{number}{end}"
        for number in range(600)
        for start, end in (("recipient", ""), ("x", "_ID"), ("", "x"))
    ]
    for _ in range(2):
        assert [name in names for name in asked] == [name in once for name in asked]
    assert len(names._known) < len(asked)
    assert ("recipient" + "x" * 1000) in names
    assert max(map(len, names._known)) < 100


@pytest.mark.parametrize("on", [True, False])
def test_reading_leaves_the_collector_as_it_was(on):
    was = gc.isenabled()
    try:
        (gc.enable if on else gc.disable)()
        with Uncollected():
            assert not gc.isenabled()
        assert gc.isenabled() is on
    finally:
        (gc.enable if was else gc.disable)()
