import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.states.strategies import spaces

from safetydrift.errors import SpaceError
from safetydrift.formats import load_space
from safetydrift.states.dimensions import Accumulation, Dimension
from safetydrift.states.effect import Effect
from safetydrift.states.rules import Rule
from safetydrift.states.space import StateSpace

DATA = Dimension("data", ("none", "secret"), Accumulation.HIGHEST)
MOOD = Dimension("mood", ("calm", "wild"), Accumulation.LATEST)


@pytest.fixture(scope="module")
def paper() -> StateSpace:
    return load_space("paper")


def test_index_of_the_published_space_is_12_data_3_tool_reversibility(paper):
    for data in range(5):
        for tool in range(4):
            for reversibility in range(3):
                state = 12 * data + 3 * tool + reversibility
                assert paper.digits(state) == (data, tool, reversibility)
                assert paper.encode(paper.decode(state)) == state
    assert paper.n_states == 60
    assert paper.describe(paper.start) == "none/read_only/fully_reversible"


def published_risk(data: int, tool: int, reversibility: int) -> str:  # noqa: C901, PLR0911
    """The twelve rules, written a second time, by hand, from the paper's table."""
    sensitive, credentials = 3, 4
    write, execute, network = 1, 2, 3
    irreversible = 2
    if data == credentials and tool == network and reversibility == irreversible:
        return "violated"
    if data >= sensitive and tool == network and reversibility == irreversible:
        return "violated"
    if data == credentials and tool >= execute:
        return "critical"
    if data >= sensitive and tool == network:
        return "critical"
    if data == credentials:
        return "elevated"
    if data >= sensitive and tool >= execute:
        return "elevated"
    if data >= sensitive and tool >= write and reversibility == irreversible:
        return "elevated"
    if data >= sensitive and tool >= write:
        return "mild"
    if data >= 2 and tool == network:
        return "mild"
    if data >= sensitive:
        return "mild"
    if data >= 2 and tool >= write:
        return "mild"
    return "safe"


def test_shipped_rules_are_the_published_cascade_on_every_state(paper):
    assert len(paper.rules) == 12
    for state in range(60):
        assert paper.risk_name(state) == published_risk(*paper.digits(state))


def test_only_two_states_of_the_published_space_are_violated(paper):
    assert sorted(map(paper.describe, paper.violated)) == [
        "credentials/network/irreversible",
        "sensitive/network/irreversible",
    ]


def test_an_early_harmless_request_does_not_turn_a_later_read_into_a_leak(paper):
    request = Effect.of({"data": "public", "tool": "network", "reversibility": "irreversible"})
    read = Effect.of({"data": "sensitive", "tool": "read_only", "reversibility": "fully_reversible"})
    state = paper.after(paper.after(paper.start, paper.effect_index(request)), paper.effect_index(read))
    assert paper.describe(state) == "sensitive/network/fully_reversible"
    assert paper.risk_name(state) == "critical"


@given(spaces(), st.data())
def test_accumulating_dimensions_never_fall_and_latest_ones_follow_the_effect(space, data):
    state, effect = (data.draw(st.integers(0, space.n_states - 1)) for _ in range(2))
    after = space.digits(space.after(state, effect))
    for dimension, old, done, new in zip(
        space.dimensions, space.digits(state), space.digits(effect), after, strict=True
    ):
        expected = max(old, done) if dimension.accumulation is Accumulation.HIGHEST else done
        assert new == expected


@given(spaces(), st.data())
def test_repeating_an_effect_changes_nothing(space, data):
    state, effect = (data.draw(st.integers(0, space.n_states - 1)) for _ in range(2))
    once = space.after(state, effect)
    assert space.after(once, effect) == once


@given(spaces(), st.data())
def test_order_matters_only_where_the_latest_level_counts(space, data):
    state, first, second = (data.draw(st.integers(0, space.n_states - 1)) for _ in range(3))
    one = space.digits(space.after(space.after(state, first), second))
    other = space.digits(space.after(space.after(state, second), first))
    for dimension, left, right in zip(space.dimensions, one, other, strict=True):
        if dimension.accumulation is Accumulation.HIGHEST:
            assert left == right


@given(spaces())
def test_support_is_exactly_what_some_effect_reaches(space):
    for state in range(space.n_states):
        assert space.support(state) == {space.after(state, effect) for effect in range(space.n_states)}


@given(spaces())
def test_definition_and_space_are_two_forms_of_one_thing(space):
    again = StateSpace.from_definition(space.definition())
    assert again == space
    assert again.definition() == space.definition()
    assert again.risk_of == space.risk_of
    assert pickle.loads(pickle.dumps(again)).identity == space.identity  # noqa: S301 - our own bytes


def test_identity_changes_with_a_rule_and_not_with_a_title():
    def build(title: str, condition: str) -> StateSpace:
        dimension = Dimension("data", ("none", "some", "secret"), Accumulation.HIGHEST, title)
        rules = (Rule({"data": condition}, "bad"), Rule({}, "good"))
        return StateSpace("s", (dimension,), ("good", "bad"), rules, "bad")

    assert build("a", "secret").identity == build("b", "secret").identity
    assert build("a", "secret").identity != build("a", ">= some").identity


def test_what_an_effect_does_not_say_is_an_error_and_what_it_says_beyond_the_space_is_ignored():
    space = StateSpace("s", (DATA, MOOD), ("ok", "bad"), (Rule({}, "ok"),), "bad")
    effect = Effect.of({"data": "secret", "mood": "calm", "colour": "red"})
    assert space.decode(space.effect_index(effect)) == {"data": "secret", "mood": "calm"}
    with pytest.raises(SpaceError, match="says nothing about 'mood'"):
        space.effect_index(Effect.of({"data": "secret"}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dimensions": []}, "one or more dimensions"),
        ({"violated": "gone"}, "no risk level 'gone'"),
        ({"risks": ["ok", "ok", "bad"]}, "names a risk level twice"),
        ({"rules": [{"when": {"data": "secret"}, "risk": "bad"}]}, "no rule of space 's' decides none"),
        ({"rules": [{"when": {"colour": "red"}, "risk": "bad"}]}, "unknown dimension 'colour'"),
        ({"rules": [{"when": {"data": "> none"}, "risk": "bad"}]}, "no level '> none'"),
        ({"rules": [{"risk": "worse"}]}, "unknown risk level 'worse'"),
        ({"rules": [{"when": {"data": 3}, "risk": "bad"}]}, "expected a name, got 3"),
        ({"rules": 7}, "'rules' is a list, not 7"),
        ({"risks": "okbad"}, "'risks' is a list, not 'okbad'"),
        ({"rules": [{"wenn": {"data": "secret"}, "risk": "bad"}]}, "a rule has no 'wenn'"),
        ({"rule": []}, "a space has no 'rule'"),
        ({"name": 7}, "expected a name, got 7"),
        (
            {"dimensions": [{"name": "data", "levels": ["none"], "accumulation": "highest"}]},
            "two or more distinct",
        ),
        ({"dimensions": [{"name": "data", "levels": ["a", "b"], "accumulation": "lowest"}]}, "'lowest'"),
        ({"dimensions": [{"levels": ["a", "b"], "accumulation": "latest"}]}, "lacks or misuses 'name'"),
    ],
)
def test_a_malformed_space_is_refused_with_what_is_wrong(change, message):
    definition = {
        "name": "s",
        "dimensions": [{"name": "data", "levels": ["none", "secret"], "accumulation": "highest"}],
        "risks": ["ok", "bad"],
        "violated": "bad",
        "rules": [{"risk": "ok"}],
    }
    assert StateSpace.from_definition(definition).n_states == 2
    with pytest.raises(SpaceError, match=message.replace("'", ".")):
        StateSpace.from_definition({**definition, **change})


def test_a_space_too_large_for_tables_is_refused():
    dimensions = [Dimension(f"d{i}", ("a", "b", "c", "d"), Accumulation.HIGHEST) for i in range(7)]
    with pytest.raises(SpaceError, match="16384 states; at most 4096"):
        StateSpace("huge", dimensions, ("ok", "bad"), (Rule({}, "ok"),), "bad")


def test_unknown_levels_are_errors_and_never_the_lowest(paper):
    with pytest.raises(SpaceError, match="no level 'secretive'"):
        paper.effect_index(Effect.of({"data": "secretive", "tool": "network", "reversibility": "partially"}))
    with pytest.raises(SpaceError, match="no dimension 'colour'"):
        paper.encode({"colour": "red"})


@given(spaces())
def test_the_first_rule_that_holds_decides_every_state(space):
    for state in range(space.n_states):
        digits = space.digits(state)
        first = next(
            rule
            for rule in space.rules
            if all(
                low <= digit <= high
                for digit, (low, high) in zip(digits, rule.bounds(space.dimensions), strict=True)
            )
        )
        assert space.risk_name(state) == first.risk
