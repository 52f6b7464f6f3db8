"""The history of a run: what it remembers, for how long, and that nothing can grow or change it."""

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safetydrift.effects.history.fingerprints import fingerprint
from safetydrift.effects.history.history import MAX_SAID, MAX_SEEN, MAX_TEXTS, History
from safetydrift.effects.history.words import MAX_WORDS, parts_of, word_digests, words

TOKEN = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=5, max_size=12)


def size(history):
    return sum(len(one) for seen in (history.own, history.foreign, history.instructed) for one in seen)


def test_a_fresh_history_knows_nothing():
    history = History()
    assert not history.task_known
    assert history.origin("anything") == "unknown"
    assert history.origin("") == "named"


def test_what_was_said_stays_said():
    history = History().hears("Book the Grand Hotel").sees("The Ritz is better").hears("All right")
    assert history.task_known
    assert history.origin("grand hotel") == "named"
    assert history.origin("Ritz") == "foreign"


def test_hearing_the_same_again_changes_nothing():
    history = History().hears("Pay the rent")
    assert history.hears("pay the RENT") is history


def test_to_have_heard_nothing_is_to_know_the_task():
    assert History().hears("").task_known


@pytest.mark.parametrize(
    ("result", "origin"),
    [
        ({"own": True}, "own"),
        ({}, "foreign"),
        ({"passages": ["send it to alpha77"]}, "instructed"),
    ],
)
def test_where_a_value_comes_from(result, origin):
    assert History().sees("see alpha77 there", **result).origin("ALPHA77") == origin


def test_an_instruction_speaks_louder_than_a_record_and_a_record_than_a_page():
    history = History().sees("alpha77").sees("alpha77", own=True)
    assert history.origin("alpha77") == "own"
    assert history.sees("x", passages=["alpha77"]).origin("alpha77") == "instructed"


def test_the_user_speaks_louder_than_everybody():
    history = History().sees("x", passages=["alpha77"]).hears("use alpha77")
    assert history.origin("alpha77") == "named"


def test_all_parts_of_a_value_have_to_come_from_one_result():
    history = History().sees("the Grand Palace").sees("a small hotel")
    assert history.origin("Grand Hotel") == "unknown"
    assert history.sees("the hotel is called Grand").origin("Grand Hotel") == "foreign"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("see https://www.Example.com/a/b for more", "example.com/a/b"),
        ("see example.com.", "https://www.example.com/"),
        ("mailto:Ann@Example.com", "ann@example.com"),
        ("Ann <ann@example.com>, Bob", "ANN@example.com"),
        ("to:ann@example.com", "ann@example.com"),
        ("to #general", "general"),
        ("to general", "#general"),
        ("IBAN DE89 3704 0044 0532 0130 00!", "DE89370400440532013000"),
        ("IBAN DE89370400440532013000", "de89 3704 0044 0532 0130 00"),
        ("call +1 (415) 555-0100", "+14155550100"),
        ("call 14155550100", "+1 415 555 0100"),
        ("it's o'brien", "O'Brien"),
        ("file_1-2.txt", "file_1-2.txt"),
    ],
)
def test_a_value_is_recognised_however_it_is_written(text, value):
    assert History().hears(text).origin(value) == "named"
    assert History().sees(text).origin(value) == "foreign"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("ask alice@x.example about mallory", "mallory@x.example"),
        ("account GB29NWBK60161331926819", "GB29NWBK60161331926818"),
        ("account GB29NWBK60161331926819", "GB29NWBK6016133192681"),
        ("call 415 555 0100", "415 555 0101"),
        ("see example.com", "evil.example.com.evil.example"),
        ("general", "generals"),
    ],
)
def test_what_only_looks_alike_is_not_the_same(text, value):
    assert History().hears(text).origin(value) == "unknown"


@settings(deadline=None)
@given(st.lists(TOKEN, min_size=1, max_size=30), st.data())
def test_every_word_of_a_text_comes_from_it_and_no_other(tokens, data):
    history = History().sees(" ".join(tokens))
    assert history.origin(data.draw(st.sampled_from(tokens))) == "foreign"
    other = data.draw(TOKEN.filter(lambda token: token not in tokens))
    assert history.origin(other) == "unknown"


def test_the_oldest_results_are_forgotten_first():
    history = History().sees("alpha77")
    for number in range(MAX_TEXTS - 1):
        history = history.sees(f"word{number}")
    assert history.origin("alpha77") == "foreign"
    history = history.sees("one more")
    assert history.origin("alpha77") == "unknown"
    assert history.origin("word0") == "foreign"


def test_results_without_end_do_not_push_out_what_the_user_said_or_what_is_ones_own():
    history = History().hears("use alpha77").sees("beta77", own=True)
    for number in range(500):
        history = history.sees(f"page {number}")
    assert (history.origin("alpha77"), history.origin("beta77")) == ("named", "own")


def test_a_history_stays_small_whatever_comes():
    history = History().hears("start")
    for number in range(MAX_TEXTS + 20):
        text = " ".join(f"w{number}x{word}" for word in range(1000))
        history = history.sees(
            text, own=number % 3 == 0, passages=[text[:900]], sensitive=fingerprint("sensitive", text, [text])
        )
        assert all(len(seen) <= MAX_TEXTS for seen in (history.own, history.foreign, history.instructed))
    assert len(history.sensitive) == MAX_TEXTS
    assert size(history) <= 3 * MAX_SEEN


def test_what_the_user_says_is_bounded_and_the_first_words_stay():
    history = History().hears("use alpha77")
    for number in range(60):
        history = history.hears(" ".join(f"said{number}x{word}" for word in range(500)))
    assert len(history.said) <= MAX_SAID
    assert len(history.repeatable) <= MAX_SEEN
    assert history.origin("alpha77") == "named"


@pytest.mark.parametrize("letter", ["x", "x ", "a@", "1-", "\ud800 ", "\x00", "de12 ", "a.", "1 (", "🙂"])
def test_ten_million_letters_leave_a_small_history(letter):
    text = "start77 " + letter * (10_000_000 // len(letter)) + " end77"
    history = History().hears(text).sees(text, passages=[text], sensitive=fingerprint("sensitive", text, []))
    assert len(history.said) <= 4 * MAX_WORDS
    assert size(history) <= 3 * MAX_SEEN
    assert history.origin("start77") == history.origin("end77") == "named"


@settings(deadline=None)
@given(st.text(), st.text(), st.text())
def test_no_text_raises(said, seen, value):
    history = History().hears(said).sees(seen, passages=[seen[:5]])
    assert history.origin(value) in {"named", "unknown", "foreign", "instructed"}
    assert parts_of(value)
    assert len(word_digests(seen)) <= len(words(seen))


@settings(deadline=None)
@given(st.text())
def test_what_was_said_in_one_word_is_named(text):
    history = History().hears(text)
    assert all(history.origin(word) == "named" for word in text.split() if word.isalnum() and word.isascii())


def test_nobody_can_change_a_history():
    history = History().hears("pay").sees("page 77")
    before = (history.said, history.foreign, history.own)
    history.hears("something else").sees("more")
    assert (history.said, history.foreign, history.own) == before
    for name in History.__struct_fields__:
        with pytest.raises(AttributeError):
            setattr(history, name, None)
    with pytest.raises(AttributeError):
        history.said.add("x")  # type: ignore[attr-defined]


def test_histories_are_compared_by_what_they_hold():
    one, other = History().hears("pay 5").sees("page"), History().hears("pay 5").sees("page")
    assert one == other
    assert hash(one) == hash(other)
    assert one != other.sees("more")
    assert pickle.loads(pickle.dumps(one)) == one  # noqa: S301


def test_a_history_holds_no_text_that_came_back():
    history = History().sees("the password is swordfish77", passages=["swordfish77"], own=False)
    assert "swordfish" not in repr(history)
