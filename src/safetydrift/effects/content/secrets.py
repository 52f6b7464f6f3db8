"""Secrets: which values are real ones, and the detectors of detect-secrets, used as a library.

The library is imported only when a text has passed a pattern that leads to one of its detectors, because importing
it takes longer than everything else here. Its expressions can be made slow, so they see short windows only.
"""

from __future__ import annotations

import re
from math import log2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Detect = Callable[[str], Iterable[str]]

DETECTORS = {
    "artifactory": "ArtifactoryDetector",
    "aws": "AWSKeyDetector",
    "azure_storage_key": "AzureStorageKeyDetector",
    "basic_auth": "BasicAuthDetector",
    "cloudant": "CloudantDetector",
    "discord": "DiscordBotTokenDetector",
    "github_token": "GitHubTokenDetector",
    "gitlab_token": "GitLabTokenDetector",
    "ibm_cloud_iam": "IbmCloudIamDetector",
    "ibm_cos_hmac": "IbmCosHmacDetector",
    "jwt": "JwtTokenDetector",
    "keyword": "KeywordDetector",
    "mailchimp": "MailchimpDetector",
    "npm": "NpmDetector",
    "openai": "OpenAIDetector",
    "private_key": "PrivateKeyDetector",
    "pypi_token": "PypiTokenDetector",
    "sendgrid": "SendGridDetector",
    "slack": "SlackDetector",
    "softlayer": "SoftlayerDetector",
    "square_oauth": "SquareOAuthDetector",
    "stripe": "StripeDetector",
    "telegram_token": "TelegramBotTokenDetector",
    "twilio": "TwilioKeyDetector",
}
"""The detectors that a pattern may name: module and class in ``detect_secrets.plugins``."""

MAX_WINDOW = 400
"""A detector sees at most so many characters at once."""
_BEFORE = 100
_MIN_DIFFERENT = 3
_LONG = 20
_MIN_ENTROPY = 3.0
_STRONG = frozenset("!@#$%^&*+=~?")

MAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}")

_VARIABLE = re.compile(r"\$\w{1,64}")

_ready: dict[str, Detect] = {}


def is_hidden(value: str) -> bool:
    """Return whether a value is masked or a variable rather than written out: ``********``, ``xxxx``, ``$TOKEN``."""
    plain = value.lower().replace("-", "").replace(" ", "")
    masked = len(set(plain)) < _MIN_DIFFERENT and not plain.isdigit()
    return masked or _VARIABLE.fullmatch(value) is not None


def looks_random(value: str) -> bool:
    """Return whether a value without quotes looks like a secret rather than like a word, a name or a path in code.

    >>> [looks_random(text) for text in ("required", "config.password", "hunter2", "CorrectHorse")]
    [False, False, True, True]
    """
    if "://" in value or MAIL.fullmatch(value):
        return False
    letters = any(map(str.isalpha, value))
    digits = any(map(str.isdigit, value))
    if letters and (digits or not _STRONG.isdisjoint(value)):
        return True
    if value.isalpha():
        inner = value[1:]
        return not (inner.islower() or inner.isupper()) or (
            len(value) >= _LONG and entropy(value) > _MIN_ENTROPY
        )
    return False


def entropy(value: str) -> float:
    """Return the entropy of the letters of a value, in bits per letter."""
    size = len(value)
    return -sum([value.count(sign) / size * log2(value.count(sign) / size) for sign in set(value)])


def detected(name: str, text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the spans of what a detector finds around a part of a text, within its line."""
    low = max(text.rfind("\n", 0, start) + 1, start - _BEFORE)
    line_end = text.find("\n", end)
    high = min(len(text) if line_end < 0 else line_end, low + MAX_WINDOW)
    window = text[low:high]
    for value in _detector(name)(window):
        at = window.find(value) if value else -1
        if at >= 0:
            yield low + at, low + at + len(value)


def _detector(name: str) -> Detect:
    if name not in _ready:
        # It imports an HTTP client, about 0.1 s that most texts need not pay.
        from importlib import import_module  # noqa: PLC0415

        _ready[name] = getattr(
            import_module(f"detect_secrets.plugins.{name}"), DETECTORS[name]
        )().analyze_string
    return _ready[name]
