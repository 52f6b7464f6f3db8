"""Work grows with a text's length and no faster, and every reader pays for what it does.

Calls of functions are counted, so the answer is the same on every machine. The long tests draw many more texts, and
compare the time that a long text takes with that of a short one.
"""

import sys
import time
from contextlib import suppress

import pytest
from tests.effects.fragments import COMMON, FRAGMENTS, mixed, nested, repeated

from safetydrift.effects import Labeler
from safetydrift.effects.languages import READERS
from safetydrift.effects.reading import Reading, UnreadableError
from safetydrift.formats.catalogue_file import load_catalogue
from safetydrift.trace import ToolCall

LABELER = Labeler(load_catalogue())
BUDGET = Reading(LABELER.catalogue, LABELER.boundary, READERS).budget
LANGUAGES = [name for name in FRAGMENTS if name not in {"content", "http"}]
SHORT, LONG = 1_000, 4_000
CALLS_A_UNIT = 5
SLACK = 40_000
"""So many calls need no payment: what any text needs, and what is done once for a process."""


def read(language, text):
    """Return the reading of a text, refused or not."""
    reading = Reading(LABELER.catalogue, LABELER.boundary, READERS)
    with suppress(UnreadableError):
        READERS[language](reading, text)
    return reading


def worked(language, text):
    """Return how many functions reading a text calls, and what it pays."""
    READERS[language]  # imported before anything is counted
    calls = 0

    def count(_frame, event, _argument):
        nonlocal calls
        calls += event in {"call", "c_call"}

    former = sys.getprofile()
    sys.setprofile(count)
    try:
        reading = read(language, text)
    finally:
        sys.setprofile(former)
    return calls, BUDGET - reading.budget


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_reader_pays_for_what_it_does(language):
    for piece in FRAGMENTS[language]:
        for shape in (repeated, nested):
            calls, paid = worked(language, shape(piece, LONG))
            assert calls <= SLACK + CALLS_A_UNIT * paid, (piece, shape.__name__, calls, paid)


@pytest.mark.parametrize("language", LANGUAGES)
def test_four_times_the_text_is_no_more_than_a_few_times_the_work(language):
    for piece in FRAGMENTS[language]:
        short, _ = worked(language, repeated(piece, SHORT))
        long, _ = worked(language, repeated(piece, LONG))
        assert long <= SLACK + 5 * short, (piece, short, long)


def test_the_work_of_one_call_has_an_end():
    reading = Reading(LABELER.catalogue, LABELER.boundary, READERS)
    reading.pay(BUDGET)
    with pytest.raises(UnreadableError, match="too much"):
        reading.pay(1)


@pytest.mark.parametrize("depth", [2, 6])
def test_texts_within_texts_share_one_budget(depth):
    inner = "SELECT " + "a, " * 3000
    for _ in range(depth):
        inner = "EXECUTE IMMEDIATE '" + inner.replace("'", "''") + "'; " + "SELECT a; " * 50
    calls, paid = worked("sql", inner)
    assert calls <= SLACK + CALLS_A_UNIT * paid
    assert paid <= 2 * BUDGET


# -- many more texts ---------------------------------------------------------------------------------------

TOOLS = {
    "shell": ("bash", "command"),
    "python": ("python", "code"),
    "sql": ("execute_sql", "sql"),
    "http": ("http_request", "url"),
    "content": ("send_email", "body"),
}
SIZES = {"content": (250_000, 1_000_000), "http": (250_000, 1_000_000)}
GROWTH = 10
"""Four times the text may take so many times as long: more than 4 for noise, less than the 16 of a square."""
TELLING = 0.05
"""Shorter times, in seconds, say nothing about how they grow."""


def seconds(reader, text):
    """Return the least processor time of three that proposing a call with a text takes."""
    taken = []
    for turn in range(3):
        start = time.process_time()
        if reader in TOOLS:
            tool, argument = TOOLS[reader]
            LABELER.propose(ToolCall(tool, {argument: text + " " * turn}))
        else:
            read(reader, text)
        taken.append(time.process_time() - start)
    return min(taken)


def grows_as_it_may(reader, text_of):
    short, long = SIZES.get(reader, (16_000, 64_000))
    slow = seconds(reader, text_of(long))
    return slow < TELLING or slow <= GROWTH * max(seconds(reader, text_of(short)), TELLING / GROWTH)


@pytest.mark.long
@pytest.mark.parametrize("reader", FRAGMENTS)
def test_time_grows_with_the_length_of_what_is_repeated_or_nested(reader):
    slow = [
        (piece, shape.__name__)
        for piece in [*FRAGMENTS[reader], *COMMON]
        for shape in (repeated, nested)
        if not grows_as_it_may(reader, lambda size, piece=piece, shape=shape: shape(piece, size))
    ]
    assert slow == []


@pytest.mark.long
@pytest.mark.parametrize("reader", FRAGMENTS)
def test_time_grows_with_the_length_of_what_is_drawn(reader):
    assert [seed for seed in range(300) if not grows_as_it_may(reader, mixed(reader, seed))] == []
