"""Fingerprints: what was read is recognised in whatever form it goes out, and nothing else is."""

import base64
import random
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from safetydrift.effects.history.fingerprints import (
    GRAM,
    MAX_GRAMS,
    MAX_SHINGLES,
    Fingerprints,
    carries,
    fingerprint,
    passages_of,
)

LETTERS = "abcdefghijklmnopqrstuvwxyz"
SECRETS = st.text(LETTERS + LETTERS.upper() + "0123456789", min_size=16, max_size=64)
WORDS = st.lists(st.text(LETTERS, min_size=3, max_size=9), min_size=12, max_size=80, unique=True)

ENCODINGS = {
    "verbatim": lambda text: text,
    "capitals": str.upper,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 without padding": lambda text: base64.b64encode(text.encode()).decode().rstrip("="),
    "base64 for addresses": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "base64 behind a path": lambda text: "/a/" + base64.b64encode(text.encode()).decode(),
    "hex": lambda text: text.encode().hex(),
    "hex in capitals": lambda text: text.encode().hex().upper(),
    "hex with colons": lambda text: text.encode().hex(":"),
    "hex with escapes": lambda text: "".join(f"\\x{byte:02x}" for byte in text.encode()),
    "percent": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    "quoted for a URL": quote,
    "quoted with plus": quote_plus,
    "in JSON": lambda text: '{"a": "' + text + '"}',
    "in an address": lambda text: f"https://a.example/?q={quote(text)}&r=1",
    "spelt out": " ".join,
    "with dashes": lambda text: "-".join(text[at : at + 4] for at in range(0, len(text), 4)),
}


def of_secret(secret):
    return fingerprint("credentials", "", [secret])


def found(remembered, outgoing, repeatable=frozenset()):
    return list(carries([remembered], outgoing, repeatable))


@pytest.mark.parametrize("encode", ENCODINGS.values(), ids=ENCODINGS.keys())
@settings(deadline=None, max_examples=40)
@given(secret=SECRETS, before=st.text(max_size=20), after=st.text(max_size=20))
def test_a_secret_is_found_in_whatever_form_it_goes_out(encode, secret, before, after):
    assert found(of_secret(secret), f"{before} {encode(secret)} {after}") == ["credentials"]


@settings(deadline=None)
@given(SECRETS, st.integers(GRAM, 16), st.integers(0, 48))
def test_a_part_of_a_secret_is_found(secret, size, start):
    part = secret[min(start, len(secret) - size) :][:size]
    assert found(of_secret(secret), f"key: {part}") == ["credentials"]


@settings(deadline=None)
@given(st.text(LETTERS + "0123456789", min_size=6, max_size=GRAM - 1))
def test_a_short_secret_is_found_whole(secret):
    assert found(of_secret(secret), f"The code is {secret}.") == ["credentials"]
    assert found(of_secret(secret), f"https://a.example/?code={secret}") == ["credentials"]
    assert found(of_secret(secret), f"The code is {secret[:4]} and so on.") == []


@pytest.mark.parametrize("secret", ["", "a", "abcde", "-----"])
def test_what_is_too_short_to_be_told_apart_is_not_remembered(secret):
    assert len(of_secret(secret)) == 0
    assert found(of_secret(secret), f"x {secret} y") == []


@settings(deadline=None)
@given(WORDS)
def test_a_text_is_found_whole_quoted_and_in_a_sentence(words):
    text = " ".join(words)
    remembered = fingerprint("sensitive", text, [])
    for outgoing in (text, text.upper(), "> " + "\n> ".join(words), f"He said: {text}!", "_".join(words)):
        assert found(remembered, outgoing) == ["sensitive"]


@pytest.mark.parametrize(
    "encode", [ENCODINGS[name] for name in ("base64", "hex", "percent", "quoted with plus")]
)
@settings(deadline=None, max_examples=40)
@given(words=WORDS)
def test_a_text_is_found_encoded(encode, words):
    text = " ".join(words)
    assert found(fingerprint("sensitive", text, []), encode(text)) == ["sensitive"]


@settings(deadline=None)
@given(WORDS, st.integers(0, 80))
def test_a_passage_of_a_text_is_found(words, start):
    remembered = fingerprint("sensitive", " ".join(words), [])
    passage = words[min(start, len(words) - 8) :][:8]
    assert found(remembered, " ".join(passage)) == ["sensitive"]


@settings(deadline=None)
@given(WORDS, st.randoms(use_true_random=False))
def test_other_words_of_the_same_number_are_not_found(words, rng):
    other = ["".join(rng.choice("0123456789") for _ in word) + str(at) for at, word in enumerate(words)]
    assert found(fingerprint("sensitive", " ".join(words), []), " ".join(other)) == []


@settings(deadline=None)
@given(WORDS)
def test_the_same_words_far_apart_are_no_passage(words):
    apart = " ".join(f"{word} zz{at}" for at, word in enumerate(words))
    assert found(fingerprint("sensitive", " ".join(words), []), apart) == []


@settings(deadline=None)
@given(SECRETS, SECRETS)
def test_another_secret_of_the_same_kind_is_not_found(one, other):
    runs = {one.lower()[at : at + GRAM] for at in range(len(one))}
    assume(not any(other.lower()[at : at + GRAM] in runs for at in range(len(other))))
    assert found(of_secret(one), other) == []


def test_a_great_many_unrelated_texts_are_told_apart():
    rng = random.Random(7)  # noqa: S311  # no secret depends on it
    remembered = [of_secret("".join(rng.choices(LETTERS, k=40))) for _ in range(64)]
    outgoing = " ".join("".join(rng.choices(LETTERS, k=8)) for _ in range(500))
    assert len(list(carries(remembered, outgoing))) <= 1


@settings(deadline=None)
@given(WORDS)
def test_what_the_user_said_may_go_out(words):
    text = " ".join(words)
    assert found(fingerprint("sensitive", text, []), text, passages_of(text)) == []
    assert found(of_secret("".join(words)), text, passages_of(text)) == []


def test_every_remembered_text_tells_its_own_level():
    remembered = [of_secret("a1b2c3d4e5f6a7b8"), fingerprint("sensitive", "one two three four five six", [])]
    both = "one two three four five six a1b2c3d4e5f6a7b8"
    assert sorted(carries(remembered, both)) == ["credentials", "sensitive"]
    assert list(carries(remembered, "a1b2c3d4e5f6a7b8")) == ["credentials"]
    assert list(carries([], both)) == []


@pytest.mark.parametrize(
    "text", ["word " * 2_000_000, "x" * 10_000_000, "aB3+" * 2_500_000, "4f " * 3_000_000, "%41" * 3_000_000]
)
def test_texts_of_any_size_leave_fingerprints_of_bounded_size(text):
    remembered = fingerprint("sensitive", text, [text, *[f"{n}-secret-{n}" for n in range(2000)]])
    assert len(remembered.shingles) <= MAX_SHINGLES
    assert len(remembered.grams) <= MAX_GRAMS
    list(carries([remembered], text))


def test_distinct_words_without_end_leave_fingerprints_of_bounded_size():
    remembered = fingerprint("sensitive", " ".join(map(str, range(100_000))), [])
    assert 0 < len(remembered) <= MAX_SHINGLES


@pytest.mark.parametrize(
    "text", ["\ud800" * 40, "\udfff key \ud800", "\x00" * 99, "=" * 99, "%%%" * 99, "%ff%fe" * 99]
)
def test_no_text_is_too_strange(text):
    remembered = fingerprint("sensitive", f"one two three four five {text}", [f"abcdefgh{text}"])
    assert found(remembered, f"one two three four five {text}") == ["sensitive"]


@settings(deadline=None)
@given(st.text(), st.text())
def test_no_pair_of_texts_raises(one, other):
    found(fingerprint("sensitive", one, [other]), other)


def test_fingerprints_are_values_and_hold_no_text():
    one, other = of_secret("correcthorsebattery"), of_secret("correcthorsebattery")
    assert one == other
    assert hash(one) == hash(other)
    assert "horse" not in repr(one)
    with pytest.raises(AttributeError):
        one.level = "none"
    assert isinstance(one, Fingerprints)
