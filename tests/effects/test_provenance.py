"""Provenance: which values decide what a call does, and where they come from."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safetydrift.effects.boundary import Boundary
from safetydrift.effects.history.history import History
from safetydrift.effects.history.provenance import (
    MAX_DEPTH,
    MAX_VALUES,
    ORIGINS,
    decisive,
    origin_of,
    scalars,
)
from safetydrift.formats.catalogue_file import load_catalogue

ROLES = load_catalogue().roles
NOWHERE = Boundary()


def values(**args):
    return list(decisive(scalars(args), ROLES))


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({"recipient": "DE89370400440532013000"}, ["DE89370400440532013000"]),
        ({"to": ["a@b.example", "c@d.example"]}, ["a@b.example", "c@d.example"]),
        ({"to": "a@b.example, c@d.example"}, ["a@b.example", "c@d.example"]),
        ({"to": "Ann <a@b.example>;Bob"}, ["a@b.example", "Bob"]),
        ({"attendees": [{"email": "a@b.example"}]}, ["a@b.example"]),
        ({"hotel": "The Grand, Vienna"}, ["The Grand, Vienna"]),
        ({"amount": 12345}, ["12345"]),
        ({"amount": 12345.5}, ["12345.5"]),
        ({"role": "admin"}, ["admin"]),
        ({"discount_code": "SAVE20NOW"}, ["SAVE20NOW"]),
        ({"body": "See you on Monday, dear Ann"}, []),
        ({"body": "Read https://x.example/a now"}, ["https://x.example/a"]),
        ({"body": "Pay to GB29NWBK60161331926819"}, ["GB29NWBK60161331926819"]),
        ({"whatever": "long " * 40}, []),
        ({"whatever": "long " * 40 + "a@b.example"}, ["a@b.example"]),
    ],
)
def test_what_decides(args, expected):
    assert list(decisive(scalars(args), ROLES)) == expected


@pytest.mark.parametrize(
    "value",
    [
        0,
        7,
        1000,
        1.5,
        True,
        False,
        None,
        "",
        "  ",
        "true",
        "None",
        "12",
        "50%",
        "10:30",
        "rw",
        "en",
        "2026-11-21",
        "2026-11-21T10:00:00Z",
    ],
)
def test_what_could_come_from_anywhere_decides_nothing(value):
    assert values(argument=value) == []


def test_large_numbers_are_not_written_out():
    assert values(amount=10**100_000) == ["?"]
    assert values(amount=-(10**30)) == [str(-(10**30))]
    assert values(amount=float("inf")) == ["inf"]


def test_the_number_of_values_and_their_depth_are_bounded():
    assert len(values(to=[f"a{n}@b.example" for n in range(1000)])) == MAX_VALUES
    assert len(list(scalars({f"a{n}": "text" for n in range(10_000)}))) <= 4 * MAX_VALUES
    deep: object = "a@b.example"
    for _ in range(100_000):
        deep = [deep]
    assert values(to=deep) == []
    shallow: object = "a@b.example"
    for _ in range(MAX_DEPTH - 1):
        shallow = {"to": shallow}
    assert values(to=shallow) == ["a@b.example"]


def test_ten_million_letters_are_searched_only_so_far():
    assert values(body="x" * 10_000_000 + " a@b.example") == []
    assert values(to="a@b.example " + "x" * 10_000_000) == ["a@b.example"]
    assert values(to="1 " * 5_000_000) is not None


@settings(deadline=None, max_examples=50)
@given(
    st.dictionaries(
        st.text(max_size=8),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
            lambda inner: (
                st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
            ),
            max_leaves=8,
        ),
    )
)
def test_no_arguments_raise(args):
    origin, _ = origin_of(decisive(scalars(args), ROLES), History().hears("x"), NOWHERE)
    assert origin in ORIGINS


def test_the_most_worrying_origin_counts_and_is_told_with_its_value():
    history = (
        History().hears("alpha77").sees("beta77", own=True).sees("gamma77").sees("x", passages=["delta77"])
    )
    named = ["alpha77", "beta77", "zeta77", "gamma77", "delta77"]
    expected = ["named", "own", "unknown", "foreign", "instructed"]
    for count, origin in enumerate(expected, 1):
        assert origin_of(named[:count], history, NOWHERE) == (origin, "" if count == 1 else named[count - 1])
    assert origin_of(reversed(named), history, NOWHERE) == ("instructed", "delta77")
    assert origin_of([], history, NOWHERE) == ("named", "")


def test_what_the_operator_named_is_named():
    boundary = Boundary(recipients=["*@partner.example"])
    history = History().hears("x").sees("y", passages=["ann@partner.example"])
    assert origin_of(["ann@partner.example"], history, boundary)[0] == "named"
    assert origin_of(["ann@partner.example"], history, NOWHERE)[0] == "instructed"
