"""Secrets are taken out, ordinary text stays, and no text takes long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safetydrift.effects.content.redaction import MAX_TEXT, names_a_secret, redact_secrets

KEY = "sk-proj-aB3dE5fG7hI9jK1lM3nO5pQ7"
BLOCK = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz\naC1rZXk\n-----END OPENSSH PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (f"use {KEY} please", KEY),
        ("password=hunter2", "hunter2"),
        ('{"api_key": "abcdefgh"}', "abcdefgh"),
        ("DB_PASSWORD: 's3cr3t'", "s3cr3t"),
        ("Authorization: Bearer abcdef", "abcdef"),
        ("https://me:pa55@example.org/x", "pa55"),
        (BLOCK, "b3BlbnNz"),
        ("-----BEGIN PRIVATE KEY-----\nb3BlbnNz and no end", "b3BlbnNz"),
        ("AWS_SECRET_ACCESS_KEY=abcd/efgh", "abcd/efgh"),
    ],
)
def test_a_secret_is_replaced_by_a_remark(text, secret):
    redacted = redact_secrets(text)
    assert secret not in redacted
    assert "characters redacted]" in redacted


@pytest.mark.parametrize(
    "text",
    [
        "Please move the meeting to Thursday, 14:30.",
        "ls -la /home/ada/projects/quarterly-report",
        "https://example.org/a/very/long/path/without/anything?page=2",
        "a_function_name_of_considerable_length",
        "00000000000000000000000000",
        "the token is missing",
    ],
)
def test_ordinary_text_stays(text):
    assert redact_secrets(text) == text


@given(st.text(alphabet="token=:/@ -BEGINPRIVATKYabc019\"'\n", max_size=400))
def test_every_text_is_read_and_what_was_taken_out_stays_out(text):
    assert isinstance(redact_secrets(text), str)


@pytest.mark.parametrize(
    "piece",
    ["token", "://a", "a:", "-----BEGIN PRIVATE KEY-----", "-----BEGIN ", "auth" * 9 + " ", "aB3" * 40],
)
def test_hostile_repetition_is_read_to_its_end(piece):
    assert len(redact_secrets(piece * (200_000 // len(piece)))) > 0


def test_what_is_too_long_to_be_looked_at_is_not_passed_on():
    assert "tail" not in redact_secrets("x " * (MAX_TEXT // 2) + "tail")


def test_names_that_announce_a_secret():
    assert all(map(names_a_secret, ("password", "X-Api-Key", "client_secret", "accessToken")))
    assert not any(map(names_a_secret, ("path", "recipients", "author_name"[4:], "key")))
