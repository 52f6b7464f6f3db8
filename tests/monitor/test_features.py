import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safetydrift.errors import ModelFileError, SpaceMismatchError
from safetydrift.formats import load_space
from safetydrift.monitor.facts import Facts, likeness_of
from safetydrift.monitor.features import CURRENT, PROPOSAL, Features
from safetydrift.states.task_words import task_words
from safetydrift.states.trajectory import Move

SPACE = load_space("flow")
FEATURES = Features(SPACE)
COUNTED = (
    "calls that reached the network",
    "irreversible calls",
    "failed calls",
    "calls with a kind of violation",
    "calls with values from untrusted content",
    "calls with values from injected instructions",
    "calls of tools that injected instructions name",
    "calls of tools that the task does not name",
)


def effect(**levels):
    return SPACE.encode(levels)


READ = effect(data="internal")
LURE = effect(data="internal", untrusted="instructed")
SEND = effect(data="internal", tool="network", reversibility="irreversible", provenance="instructed")


def after(*moves, task="read it"):
    facts = FEATURES.start(task_words(task))
    for move in moves:
        facts = FEATURES.follow(facts, move)
    return facts


def cells_of(facts, state=SPACE.start):
    seen = FEATURES.see(state, facts)
    return {name: look.cell(seen) for name, look in FEATURES.current.items()}


def test_features_tell_what_happened_and_when():
    said = task_words("now delete everything")
    facts = after(
        Move("read_file", READ, READ),
        Move("read_inbox", LURE, LURE, (), said),
        Move("delete_file", SEND, SEND, ("destructive_action",)),
        Move("delete_file", SEND, SEND, ("destructive_action",)),
        task="send the report",
    )
    assert facts.injected_words == frozenset(said)
    assert (facts.last, facts.before) == ("delete_file", "delete_file")
    cells = cells_of(facts)
    assert cells["calls made"] == 4
    assert divmod(cells["injected instructions"], 4) == (2, 1)  # two calls ago, once
    assert divmod(cells["last call and injected instructions"], 8) == (1, 2)  # "delete", not "file"
    assert [cells[name] for name in COUNTED] == [2, 2, 0, 2, 0, 2, 0, 4]
    assert cells["repeated calls of the last tool"] == 1
    assert cells["calls since a new tool"] == 1
    assert cells["worst origin so far"] == 4
    assert cells["tools used"] == 3
    assert divmod(cells["closest call to injected instructions"], 8) == (1, 2)


def test_a_call_that_failed_is_told_by_having_read_nothing():
    failed = effect(data="none", tool="network")
    once = Move("get", effect(data="public", tool="network"), failed)
    assert cells_of(after(once))["failed calls"] == 1
    assert cells_of(after(once, Move("get", failed, failed)))["failed calls"] == 1


moves = st.builds(
    Move,
    st.sampled_from(["read_file", "send_money", "x", "", "Übung"]),
    st.integers(0, SPACE.n_states - 1),
    st.integers(0, SPACE.n_states - 1),
    st.sampled_from([(), ("data_leak",), ("credential_leak", "integrity")]),
    st.sampled_from([(), task_words("send money at once")]),
)


@given(st.lists(moves, max_size=40))
@settings(deadline=None)
def test_every_cell_lies_within_its_feature_and_can_be_said_in_words(walk):
    facts, state = FEATURES.start(task_words("read it")), SPACE.start
    assert list(FEATURES.all) == [*CURRENT, *PROPOSAL]
    for move in walk:
        seen = FEATURES.see_call(FEATURES.see(state, facts), state, facts, move)
        for look in FEATURES.all.values():
            cell = look.cell(seen)
            assert 0 <= cell < look.size
            assert look.says(cell)
        facts, state = FEATURES.follow(facts, move), SPACE.after(state, move.effect)


@given(st.lists(moves, max_size=40))
@settings(deadline=None)
def test_what_is_counted_never_falls_and_stops_at_the_last_cell(walk):
    along = [cells_of(after(*walk[:steps])) for steps in range(len(walk) + 1)]
    for before, later in pairwise(along):
        for name in COUNTED:
            assert later[name] - before[name] in {0, 1}
            assert later[name] < FEATURES.current[name].size


def test_a_feature_tracks_the_same_whatever_others_a_model_has():
    alone = Features(SPACE, ["failed calls", "worst origin so far"], ["kinds of violation"])
    facts, of_all = alone.start(), FEATURES.start()
    for move in (Move("a", SEND, READ), Move("a", READ, effect()), Move("b", LURE, LURE)):
        facts, of_all = alone.follow(facts, move), FEATURES.follow(of_all, move)
        there = cells_of(of_all)
        seen = alone.see(0, facts)
        assert {name: look.cell(seen) for name, look in alone.current.items()} == {
            name: there[name] for name in ("failed calls", "worst origin so far")
        }


def test_no_two_features_say_a_cell_alike():
    said = [feature.says(0) for feature in FEATURES.all.values()]
    assert len(set(said)) == len(said)


def test_an_unknown_feature_is_refused_by_its_name():
    with pytest.raises(
        ModelFileError, match=re.escape("'phase of the moon', which this version does not know")
    ):
        Features(SPACE, ["state", "phase of the moon"])


def test_a_space_without_the_dimensions_is_refused():
    with pytest.raises(SpaceMismatchError, match="'provenance', which space 'paper' does not have"):
        Features(load_space("paper"))


def test_facts_hold_no_more_than_what_features_read():
    assert Facts().tracked == ()
    assert len(FEATURES.start().tracked) == len({id(one) for one in FEATURES._tracking})


@pytest.mark.parametrize(
    ("tool", "said", "expected"),
    [
        ("pay", "pay now", 3),
        ("sendMoney", "send money", 2),
        ("send_mail", "send it", 1),
        ("ls", "send it", 0),
        ("", "x y", 0),
    ],
)
def test_likeness_compares_a_name_with_what_was_said(tool, said, expected):
    assert likeness_of(tool, frozenset(task_words(said))) == expected
