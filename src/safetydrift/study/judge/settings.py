"""How a judge asks: which model, where, and what it may cost. No secret is ever kept here."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from safetydrift.errors import JudgeSettingsError

ANTHROPIC, OPENAI, COMPATIBLE = "anthropic", "openai", "openai-compatible"
KEY_VARIABLES = {ANTHROPIC: "ANTHROPIC_API_KEY", OPENAI: "OPENAI_API_KEY", COMPATIBLE: ""}
"""The environment variable that holds the key, by kind of endpoint; a compatible one may need none."""
ADDRESSES = {ANTHROPIC: "https://api.anthropic.com", OPENAI: "https://api.openai.com/v1", COMPATIBLE: ""}
"""The address of the endpoint, by kind."""
_MAX_MODEL = 200
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,99}")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSettings:
    """How a judge asks.

    Attributes
    ----------
    base_url
        Address of the endpoint; a model of kind ``openai-compatible`` needs one, for the others it is known.
    api_key_env
        Name of the environment variable that holds the key. By default ``ANTHROPIC_API_KEY`` or
        ``OPENAI_API_KEY``; a compatible endpoint is sent no key unless a variable is named here.
    timeout
        Seconds one request may take.
    deadline
        Seconds one answer may take in all, with retries and the waits between them; by default four times `timeout`.
    max_tokens
        Tokens a model may write for one answer.
    temperature
        Passed on where given; many models accept no other than their own.
    retries
        How often a request that failed for a passing reason is sent again.
    malformed_retries
        How often a model is asked again after a reply that is no answer.
    backoff
        Seconds to wait before the first retry; doubled for each further one, half of it at random. A longer wait
        that the endpoint asks for is honoured.
    concurrency
        Requests under way at the same time, at most.
    max_requests, max_total_tokens
        What may be spent by the judge for as long as it lives; see `Budget`.
    redact
        Whether secrets are taken out of what is sent. None: unless the endpoint is on this very host.
    """

    base_url: str = ""
    api_key_env: str = ""
    timeout: float = 30.0
    deadline: float = 0.0
    max_tokens: int = 1024
    temperature: float | None = None
    retries: int = 4
    malformed_retries: int = 2
    backoff: float = 0.5
    concurrency: int = 4
    max_requests: int = 2_000
    max_total_tokens: int = 5_000_000
    redact: bool | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        object.__setattr__(self, "deadline", self.deadline or 4 * self.timeout)
        if self.api_key_env and not _VARIABLE.fullmatch(self.api_key_env):
            raise JudgeSettingsError(
                "api_key_env: expected the name of an environment variable (not the key itself)"
            )
        if self.base_url:
            check_address(self.base_url)


@dataclass(frozen=True, slots=True)
class ModelName:
    """A model, as ``kind:name``.

    Attributes
    ----------
    kind
        ``anthropic``, ``openai`` or ``openai-compatible``.
    name
        The model, as its endpoint calls it.
    """

    kind: str
    name: str

    @classmethod
    def parse(cls, text: str) -> ModelName:
        """Read ``kind:name``.

        Raises
        ------
        JudgeSettingsError
            If there is no such kind, or no name.
        """
        kind, _, name = text.partition(":")
        if kind not in ADDRESSES:
            raise JudgeSettingsError(
                f"model {text!r}: expected KIND:NAME with one of the kinds {', '.join(ADDRESSES)}"
            )
        if not name or len(name) > _MAX_MODEL or not name.isprintable() or " " in name:
            raise JudgeSettingsError(
                f"model {text!r}: expected the name of a model after {kind!r} and a colon"
            )
        return cls(kind, name)

    def __str__(self) -> str:
        """Return the name as it was given."""
        return f"{self.kind}:{self.name}"

    def address(self, settings: JudgeSettings) -> str:
        """Return where the model is asked.

        Raises
        ------
        JudgeSettingsError
            If that is not known.
        """
        address = settings.base_url or ADDRESSES[self.kind]
        if not address:
            raise JudgeSettingsError(
                f"model {str(self)!r} needs base_url, for example http://localhost:8000/v1 for a local vLLM "
                "or http://localhost:11434/v1 for Ollama"
            )
        return address


def check_address(address: str) -> None:
    """Refuse an address that cannot be used, or would expose a key or the calls.

    Raises
    ------
    JudgeSettingsError
        If it is no http(s) address, holds a password, a query or a fragment, or is plain http to a host that is
        not near.
    """
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except (ValueError, AttributeError, TypeError):
        raise JudgeSettingsError("base_url: expected an address such as https://host/v1") from None
    if parts.scheme not in {"http", "https"} or not host or not address.isprintable():
        raise JudgeSettingsError("base_url: expected an address such as https://host/v1")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise JudgeSettingsError(
            "base_url: an address holds no user, password, query or fragment; keys come from the environment"
        )
    if parts.scheme == "http" and not _is_near(host):
        raise JudgeSettingsError(
            f"base_url: calls would be sent to {host!r} for everybody on the way to read; use https"
        )


def is_local(address: str) -> bool:
    """Return whether an address is on this very host."""
    host = urlsplit(address).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _is_near(host: str) -> bool:
    """Return whether a host is this one, a private address, or a name without a domain."""
    try:
        address = ip_address(host)
    except ValueError:
        return "." not in host or host.endswith(".localhost")
    return address.is_loopback or address.is_private
