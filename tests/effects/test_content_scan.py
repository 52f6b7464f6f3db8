"""What texts hold: secrets, identifiers, lists of people; and what only looks like them."""

import pickle
import random
import string
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safetydrift.effects.content import Findings, Scanner
from safetydrift.effects.content import scan as scan_module
from safetydrift.formats.catalogue_file import load_catalogue


@pytest.fixture(scope="module")
def scanner():
    return Scanner(load_catalogue())


def made(alphabet, size, seed=1):
    """A value in the shape of a secret; none stands written in this file."""
    return "".join(random.Random(seed).choices(alphabet, k=size))  # noqa: S311  # not a secret: that is the point


LETTERS = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
B64 = LETTERS + "+/"
CAPITALS = string.ascii_uppercase + "234567"

# kind -> the value, and a text around it
SECRETS = {
    "AWS access key": ("AKIA" + made(CAPITALS, 16), "aws_access_key_id = {}"),
    "AWS secret access key": (made(B64, 40), "AWS_SECRET_ACCESS_KEY={}\n"),
    "Google API key": ("AIza" + made(LETTERS, 35), "key: {}"),
    "Azure storage key": (made(B64, 86) + "==", "AccountName=x;AccountKey={};EndpointSuffix=y"),
    "Azure shared access key": (
        made(B64, 43) + "=",
        "Endpoint=sb://x/;SharedAccessKeyName=y;SharedAccessKey={}",
    ),
    "signed URL": (made(LETTERS, 44), "https://x.blob.core.windows.net/c?sv=2022&sig={}"),
    "GitHub token": ("ghp_" + made(LETTERS, 36), "remote uses {} now"),
    "GitLab token": ("glpat-" + made(LETTERS, 20), "{}"),
    "npm token": ("npm_" + made(LETTERS, 36), "token {}"),
    "PyPI token": ("pypi-AgEIcHlwaS5vcmc" + made(LETTERS, 80), "password = {}"),
    "Hugging Face token": ("hf_" + made(LETTERS, 34), "login with {}"),
    "model provider key": ("sk-ant-api03-" + made(LETTERS, 60), "ANTHROPIC_API_KEY={}"),
    "Slack token": ("xoxb-" + made(string.digits, 11) + "-" + made(LETTERS, 24), "SLACK={}"),
    "webhook address": (
        "T0" + made(CAPITALS, 8) + "/B0" + made(CAPITALS, 8) + "/" + made(LETTERS, 24),
        "https://hooks.slack.com/services/{}",
    ),
    "Stripe key": ("sk_live_" + made(LETTERS, 24), "stripe {}"),
    "Twilio key": ("SK" + made(HEX, 32), "twilio {} x"),
    "SendGrid key": ("SG." + made(LETTERS, 22) + "." + made(LETTERS, 43), "mail key {}"),
    "Mailgun key": ("key-" + made(HEX, 32), "mailgun {}"),
    "Telegram bot token": (":AA" + made(LETTERS, 33), "bot 1234567890{}"),
    "age secret key": ("AGE-SECRET-KEY-1" + made(CAPITALS, 58), "{}"),
    "vendor token": ("dop_v1_" + made(HEX, 64), "do: {}"),
    "JSON web token": ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0." + made(LETTERS, 43), "id_token {}"),
    "bearer token": (made(LETTERS, 40), "use Bearer {} for it"),
    "session cookie": (made(LETTERS, 32), "Set-Cookie: sessionid={}; Path=/"),
    "one-time password seed": (made(CAPITALS, 16), "otpauth://totp/x:y?secret={}&issuer=x"),
    "one-time code": ("493817", "Your verification code is {}."),
    "wallet seed phrase": (" ".join(["apple", "river", "stone"] * 4), "seed phrase: {}"),
    "password in an address": ("s3cr-t", "postgres://app:{}@db.example.org:5432/app"),
    "password hash": ("$6$" + made(LETTERS, 8) + "$" + made(LETTERS, 86), "root:{}:19000:0:99999:7:::"),
    "Kubernetes client key": (made(B64, 200), "    client-key-data: {}\n"),
    "service account key": (made(HEX, 40), '"private_key_id": "{}"'),
    "password in a .pgpass line": ("pgsecret", "db.example.org:5432:app:alice:{}"),
    "password in a .netrc entry": ("netsecret", "machine example.org login alice password {}"),
    "registry login": (made(B64, 24), '"auths": {{"x": {{"auth": "{}"}}}}'),
    "password": ("hunter2", "DB_PASSWORD={}"),
    "secret": (made(LETTERS, 32), 'client_secret: "{}"'),
    "session identifier": (made(LETTERS, 26), "PHPSESSID={};"),
    "access token": ("plainwords", 'headers = {{"PRIVATE-TOKEN": "{}"}}'),
}
IDENTIFIERS = {
    "payment card number": ("4111 1111 1111 1111", "charge {} please"),
    "card security code": ("842", "CVV: {}"),
    "IBAN": ("DE89 3704 0044 0532 0130 00", "send it to {} today"),
    "bank account number": ("0789765432", "Bank Account Number: {}"),
    "bank routing number": ("021000021", "routing number: {}"),
    "salary": ("$84,500", "Salary: {}"),
    "US social security number": ("536-90-4399", "SSN: {}"),
    "US taxpayer number": ("912-90-3457", "his ITIN is {}"),
    "Canadian social insurance number": ("123-456-782", "social insurance {}"),
    "British health service number": ("943 476 5870", "NHS number {}"),
    "British national insurance number": ("AB 12 34 56 C", "National Insurance number: {}"),
    "German tax identification number": ("36 574 261 809", "Steuer-ID {}"),
    "French social security number": ("2 95 10 99 126 111 93", "assurée {}"),
    "Spanish identity number": ("54362315-K", "DNI: {}"),
    "Italian tax code": ("RCCMNL83S18D969H", "codice fiscale {}"),
    "Polish national number": ("44051401359", "PESEL {}"),
    "Dutch citizen number": ("111222333", "BSN {}"),
    "Belgian national number": ("85.07.30-033.28", "rijksregister {}"),
    "Brazilian taxpayer number": ("390.533.447-05", "CPF {}"),
    "Indian Aadhaar number": ("2341 2341 2346", "Aadhaar {}"),
    "Swedish personal number": ("880320-0016", "personnummer {}"),
    "Swiss insurance number": ("756.9217.0769.85", "AHV {}"),
    "passport number": ("HG1378031", "passport number: {}"),
    "date of birth": ("1984-03-05", '"dob": "{}"'),
    "medical record number": ("P-10233", "MRN: {}"),
    "diagnosis": ("acute bronchitis", "patient was diagnosed with {}."),
    "health record": ("chest pain, short of breath", '"patient": 4, "symptoms": "{}"'),
    "table of personal data": ("Ann,Street 1,x", "name,address,ssn\n{}\n"),
    "mark of confidentiality": ("CONFIDENTIAL", "-- {} --"),
    "mark of privilege": ("Attorney-Client Privileged", "{} memo"),
}
LEVELS = [("credentials", kind, *case) for kind, case in SECRETS.items()]
LEVELS += [("sensitive", kind, *case) for kind, case in IDENTIFIERS.items()]


@pytest.mark.parametrize(("level", "kind", "value", "text"), LEVELS, ids=lambda item: item[:24])
def test_a_find_has_its_kind_and_its_level_and_spans_the_value_itself(scanner, level, kind, value, text):
    text = "Before.\n" + text.format(value) + "\nAfter."
    findings = scanner.scan(text)
    assert (kind, value) in [(item.what, text[item.start : item.end]) for item in findings.items]
    assert findings.level == level


@pytest.mark.parametrize(("level", "kind", "value", "text"), LEVELS, ids=lambda item: item[:24])
def test_no_word_about_a_find_quotes_it(scanner, level, kind, value, text):
    findings = scanner.scan(text.format(value))
    told = repr(findings) + repr(findings.items) + " ".join(findings.reasons())
    assert len(findings.items) == 1 or level == "credentials"
    assert value not in told or value == "CONFIDENTIAL"


@pytest.mark.parametrize(
    "value",
    [
        "YOUR_API_KEY",
        "your-password-here",
        "xxxxxxxxxxxx",
        "<password>",
        "${DB_PASSWORD}",
        "********",
        "{{ secret }}",
        "os.environ",
        "None",
        "null",
        "process.env.TOKEN",
        "getenv('X')",
        "[REDACTED]",
        "required",
        "$PASSWORD",
        "%(password)s",
        "config.password",
        "true",
        "...",
    ],
)
def test_what_only_stands_for_a_secret_is_none(scanner, value):
    for text in (f"password={value}", f"api_key: {value}", f'"secret": "{value}"', f"PASSWORD = '{value}'"):
        assert not scanner.scan(text), text


@pytest.mark.parametrize("value", ["changeme", "letmein1", "admin123"])
def test_a_weak_password_is_one(scanner, value):
    assert scanner.scan(f'"password": "{value}"').level == "credentials"


def test_a_sample_key_of_the_right_shape_is_a_key(scanner):
    assert scanner.scan("AKIA" + "IOSFODNN7EXAMPLE").level == "credentials"


HARMLESS = {
    "prose": "Please reset your password: use the link in the mail. The secret of good tokens is that they are short.",
    "a password field": '<label for="password">Password:</label><input type="password" placeholder="Enter it">',
    "code": "def check(token: str, password: str) -> bool:\n    return self.password == hash_password(token)\n",
    "a code that reads the environment": 'api_key = os.environ["API_KEY"]\nsecret = config.get("secret")\n',
    "one mail address": "Write to anna@example.org about it.",
    "one phone number": "Phone: +1 555 123 4567",
    "dates and times": "\n".join(f"2026-05-{day:02} 10:{day:02}:00 2026-06-{day:02}" for day in range(1, 28)),
    "a card number with a wrong check digit": "4111 1111 1111 1112",
    "an account number with wrong check digits": "to DE89 3704 0044 0532 0130 01 today",
    "nine digits without the word": "order 536904399 of 536-90-4399",
    "a long number": "1" + "4111111111111111" * 3,
    "a hash": "commit 9fceb02d0ae598e95dc970b74767f19372d61af8, sha256 " + made(HEX, 64),
    "a listing": "-rw-r--r-- 1 root root 10233 May 12 08:00 notes_key.txt\n" * 20,
    "addresses without a password": "http://127.0.0.1:8080/a@b ssh://git@example.org:2424/x.git",
    "a form token of a page": "/logout?requesttoken="
    + made(LETTERS, 44)
    + "&csrf_token="
    + made(LETTERS, 44),
    "a public key": "-----BEGIN PUBLIC KEY-----\nMFwwDQYJKoZIhvcNAQEBBQAD\n-----END PUBLIC KEY-----",
    "an address after a password": "password: https://example.org/reset",
    "a mail address after a password": "send the password to anna@example.org.",
    "a birthday": "Emma's birthday party on 2026-05-16",
    "confidential as a word": "keep this confidential, please",
}


@pytest.mark.parametrize("kind", HARMLESS)
def test_ordinary_text_holds_nothing(scanner, kind):
    findings = scanner.scan(HARMLESS[kind])
    assert findings == Findings("none")
    assert findings.reasons() == ()


def test_a_private_key_spans_its_body_and_not_its_head(scanner):
    body = "\n".join(made(B64, 64, seed) for seed in range(5))
    text = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{body}\n-----END OPENSSH PRIVATE KEY-----\n"
    (item,) = scanner.scan(text).items
    assert text[item.start : item.end].strip() == body
    assert item.what == "private key"


def test_a_private_key_in_json_is_found(scanner):
    text = (
        '{"private_key": "-----BEGIN PRIVATE KEY-----\\n'
        + made(B64, 64)
        + '\\n-----END PRIVATE KEY-----\\n"}'
    )
    assert "private key" in [item.what for item in scanner.scan(text).items]


def test_single_addresses_are_everywhere_but_a_list_of_people_is_sensitive(scanner):
    addresses = [f"person{number}@example.org" for number in range(10)]
    assert not scanner.scan("\n".join(addresses[:9]))
    assert not scanner.scan("\n".join(addresses[:1] * 30))
    assert scanner.scan("\n".join(addresses)).reasons() == ("holds 1 list of mail addresses",)


def test_a_list_of_phone_numbers_is_sensitive(scanner):
    numbers = [f"phone: (555) 201-{number}" for number in range(4000, 4010)]
    assert not scanner.scan("\n".join(numbers[:9]))
    assert scanner.scan("\n".join(numbers)).reasons() == ("holds 1 list of phone numbers",)


def test_reasons_count_what_was_found(scanner):
    findings = scanner.scan("4111 1111 1111 1111 and 5555 5555 5555 4444, IBAN DE89370400440532013000")
    assert findings.reasons() == ("holds 2 payment card numbers", "holds 1 IBAN")
    assert bool(findings)


def test_the_graver_find_decides_the_level_and_finds_do_not_overlap(scanner):
    findings = scanner.scan("IBAN DE89370400440532013000 password=hunter2 postgres://a:b4nana@db/x " * 3)
    assert findings.level == "credentials"
    spans = [(item.start, item.end) for item in findings.items]
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))


def test_a_letter_that_grows_in_small_letters_moves_no_span(scanner):
    text = "\u0130\u0130\u0130 PASSWORD=hunter2"
    (item,) = scanner.scan(text).items
    assert text[item.start : item.end] == "hunter2"


def test_of_a_long_text_beginning_and_end_are_scanned_and_it_says_so(scanner):
    secret, filler = "password=hunter2\n", "plain words here\n"
    long = filler * 40_000
    middle = len(long) // 2
    text = secret + long[:middle] + secret + long[middle:] + secret
    findings = scanner.scan(text)
    assert [text[item.start : item.end] for item in findings.items] == ["hunter2", "hunter2"]
    assert findings.items[-1].end == len(text) - 1
    assert not findings.complete
    assert scanner.scan(secret).complete
    assert not scanner.scan(long).complete


def test_findings_are_capped_and_say_so(scanner):
    findings = scanner.scan("\n".join(f"password=hunter{number}" for number in range(200)))
    assert len(findings.items) == scan_module.MAX_FINDINGS
    assert not findings.complete


def test_findings_survive_pickling_and_are_unchangeable(scanner):
    findings = scanner.scan("password=hunter2")
    assert pickle.loads(pickle.dumps(findings)) == findings  # noqa: S301  # its own
    with pytest.raises(AttributeError):
        findings.items[0].start = 3


@given(st.text(max_size=400))
def test_no_text_makes_it_fail_and_spans_lie_in_the_text(text):
    scanner = Scanner(_catalogue())
    for wrapped in (
        text,
        f'password="{text}"',
        f"SSN 4111{text}1111 AKIA{text}",
        f"-----BEGIN {text} PRIVATE KEY-----{text}",
    ):
        for item in scanner.scan(wrapped).items:
            assert 0 <= item.start < item.end <= len(wrapped)


_CATALOGUES: list[Any] = []


def _catalogue():
    if not _CATALOGUES:
        _CATALOGUES.append(load_catalogue())
    return _CATALOGUES[0]
