"""Folding: whoever writes a word differently has written the same word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safetydrift.authority.text import MAX_TEXT, fold, humps_of, words_in

TEXTS = st.text(max_size=200)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("Ｐａｙ", "pay"),
        ("Аliсе", "alice"),  # Cyrillic A and c
        ("p\u200bay\u00ad", "pay"),
        ("PAY\u202e", "pay"),
        ("𝐏𝐚𝐲", "pay"),
        ("ﬁle", "file"),
        ("Straße", "strasse"),
        ("José", "jose"),
        ("İstanbul", "istanbul"),
        ("٣٤٥", "345"),
        ("don’t", "don't"),
        ("a\x00b\x1b", "ab"),
        ("line\none", "line\none"),
    ],
)
def test_a_disguised_word_is_the_word(written, meant):
    assert fold(written) == meant


@given(TEXTS)
def test_folding_twice_changes_nothing_more(text):
    assert fold(fold(text)) == fold(text)


@given(TEXTS)
def test_case_does_not_matter(text):
    assert fold(text.upper().lower()) == fold(text.upper())


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=200))
def test_printable_ascii_only_loses_its_case(text):
    assert fold(text) == text.lower()


@given(st.text(alphabet="aé\u0301\u200bЖ漢", min_size=1, max_size=20))
def test_a_long_text_keeps_its_beginning_and_its_end(seed):
    text = f"begin {seed * (2 * MAX_TEXT // len(seed))} end"
    folded = fold(text)
    assert len(folded) <= MAX_TEXT
    assert folded.startswith("begin")
    assert folded.endswith("end")


def test_vowel_signs_do_not_break_words():
    assert list(words_in("फ़ाइलें हटाओ")) == ["फ़ाइलें", "हटाओ"]


def test_parts_of_a_word_with_humps_are_found_in_their_words_only():
    assert humps_of("janeLong and BOB") == {"janelong": ("jane", "long")}
