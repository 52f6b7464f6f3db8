"""What a service is told: the command line, and a file for what does not fit on it.

Secrets stand in neither: the file names the environment variables that hold them.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Literal

from msgspec import Struct, ValidationError, convert, field

from safetydrift.errors import ConfigError

SETTINGS_FORMAT = "safetydrift.service/1"
MAX_SETTINGS = 1 << 20
LOOPBACK = frozenset(("127.0.0.1", "::1", "localhost"))
DAY = 86_400.0
DEFAULT_ORGANISATION = "default"


class Retention(Struct, frozen=True, forbid_unknown_fields=True):
    """How long what is kept; 0 is for ever.

    Parameters
    ----------
    contents_days
        Arguments, results, what users said and what was said about calls, redacted as they are.
    decisions_days
        Calls and runs.
    states_days
        The guard's state of a run that nobody goes on with.
    contents
        Whether arguments, results and what users said are stored at all, redacted.
    """

    contents_days: float = 30.0
    decisions_days: float = 365.0
    states_days: float = 7.0
    contents: bool = True


class Slack(Struct, frozen=True, forbid_unknown_fields=True):
    """Questions in a Slack channel.

    Parameters
    ----------
    channel
        Its id.
    approvers
        Who may answer there: names by user id of Slack.
    team
        The id of the workspace; clicks from others are refused.
    """

    channel: str
    team: str
    approvers: dict[str, str]
    token_env: str = "SLACK_BOT_TOKEN"  # noqa: S105  # the name of a variable
    signing_secret_env: str = "SLACK_SIGNING_SECRET"  # noqa: S105  # as above
    organisation: str = "default"
    address: str = "https://slack.com/api"


class Webhook(Struct, frozen=True, forbid_unknown_fields=True):
    """Questions posted to a service of yours, signed.

    Parameters
    ----------
    url
        Where to.
    secret_env
        The environment variable with the key of the signatures, ours and theirs.
    private
        Whether the address may lie in a private network.
    """

    url: str
    secret_env: str
    private: bool = False
    organisation: str = "default"


class Siem(Struct, frozen=True, forbid_unknown_fields=True):
    """Decisions for a SIEM.

    Parameters
    ----------
    format
        ``"ocsf"`` (JSON lines) or ``"cef"``.
    file, syslog
        Where to: a file that is appended to, or ``udp://host:514`` or ``tcp://host:514``.
    allowed
        Whether calls that were simply allowed are told of, too.
    """

    format: Literal["ocsf", "cef"]
    file: str = ""
    syslog: str = ""
    allowed: bool = True
    organisation: str = "default"


class Asking(Struct, frozen=True, forbid_unknown_fields=True):
    """Questions.

    Parameters
    ----------
    yes_holds
        Seconds for which a yes waits to be used.
    escalate_after
        The share of the time for an answer after which everybody is told again; 1 and more is never.
    """

    yes_holds: float = 600.0
    escalate_after: float = 0.5


class Limits(Struct, frozen=True, forbid_unknown_fields=True):
    """Bounds on what anybody may ask of the service.

    Parameters
    ----------
    calls_per_second, burst
        Requests per token, in each worker.
    sign_ins_per_minute
        Attempts per address, in each worker.
    streams
        Pages that follow live, per worker.
    """

    calls_per_second: float = 500.0
    burst: float = 1000.0
    sign_ins_per_minute: float = 10.0
    streams: int = 256


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything a worker needs to know.

    Parameters
    ----------
    host, port, workers, lanes
        Where it listens, in how many processes; connections to the database for decisions, in each.
    database, data
        The address of the database, and the folder of all files.
    public_url
        The address under which people reach the page; from `host` and `port` if empty.
    model, config, policy
        Files, as for `Guard.load`. The policy is the first of a new organisation.
    durable
        Whether SQLite waits for the disk at every commit.
    demo
        Whether made-up runs are shown.
    four_eyes
        Whether a policy that may let more through needs a second person.
    """

    host: str = "127.0.0.1"
    port: int = 8787
    workers: int = 1
    lanes: int = 0
    database: str = ""
    data: str = ""
    public_url: str = ""
    model: str = "default"
    config: str = ""
    policy: str = ""
    durable: bool = False
    demo: bool = False
    four_eyes: bool = True
    telemetry: bool = False
    retention: Retention = Retention()
    asking: Asking = Asking()
    limits: Limits = Limits()
    slack: list[Slack] = field(default_factory=list)
    webhook: list[Webhook] = field(default_factory=list)
    siem: list[Siem] = field(default_factory=list)

    @property
    def url(self) -> str:
        """The address under which people reach the page."""
        if self.public_url:
            return self.public_url.rstrip("/")
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @property
    def organisations(self) -> tuple[str, ...]:
        """The organisations that are named, the default one first."""
        named = [one.organisation for one in self.slack] + [one.organisation for one in self.webhook]
        named += [one.organisation for one in self.siem]
        return tuple(dict.fromkeys([DEFAULT_ORGANISATION, *named]))

    @property
    def secure(self) -> bool:
        """Whether people reach the page over TLS, so that cookies go nowhere else."""
        return self.url.startswith("https://")


def read_settings(path: str) -> dict[str, object]:
    """Return what a file says, as plain data.

    Raises
    ------
    ConfigError
        If it cannot be read or says something that nobody reads.
    """
    try:
        data = Path(path).read_bytes()
        if len(data) > MAX_SETTINGS:
            raise ConfigError(f"{path}: more than {MAX_SETTINGS} bytes")
        said = tomllib.loads(data.decode())
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from error
    if said.pop("format", None) != SETTINGS_FORMAT:
        raise ConfigError(f"{path}: expected format = {SETTINGS_FORMAT!r}")
    return said


def settings_of(said: dict[str, object]) -> Settings:
    """Return settings from plain data.

    Raises
    ------
    ConfigError
        If a part is missing, of the wrong kind, or unknown.
    """
    try:
        return convert(said, Settings)
    except ValidationError as error:
        raise ConfigError(f"settings: {error}") from error


def secret(variable: str) -> str:
    """Return a secret from the environment.

    Raises
    ------
    ConfigError
        If it is not there.
    """
    value = os.environ.get(variable, "")
    if not value:
        raise ConfigError(f"the environment variable {variable} is not set")
    return value
