"""From what a command line says to a proxy that is ready to start."""

from __future__ import annotations

import os
import re
import sys
from uuid import uuid4

from safetydrift.errors import ConfigError
from safetydrift.guard.decision_log import DecisionLog
from safetydrift.guard.guard import Guard
from safetydrift.integrations.claude_code import state_folder
from safetydrift.integrations.mcp.deciding import Deciding
from safetydrift.integrations.mcp.definitions import Definitions
from safetydrift.integrations.mcp.exchange import Guarding, Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_LAUNCHERS = re.compile(
    r"(?:npx|npm|pnpm|yarn|bunx|bun|deno|node|uvx?|pipx|docker|podman|env|python|sh|bash|exec|run|dlx|tool|x)[\d.]*"
)
_DECORATION = re.compile(
    r"^(?:mcp-server-|server-|mcp-)|(?:-mcp-server|-mcp|-server)$|\.(?:py|m?js|ts|sh|exe)$"
)
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9-]+")
MAX_NAME = 64
UNNAMED = "unnamed-"


class Settings:
    """What a proxy is told.

    Parameters
    ----------
    command
        The server's command line; empty if it is reached over HTTP.
    upstream
        Its address.
    name
        What it is called; derived from the command or the address if empty.
    session, task, category, pipeline
        The run: its key, what the user asked for, what the model is told of it.
    policy, model, config
        Files of the guard.
    state
        The folder of the decision log, of named sessions and of definitions.
    ask
        The address of a service that asks a person.
    service
        The address of a team's guard that decides instead; SAFETYDRIFT_TOKEN holds our token.
    refuse_changed
        Whether tools whose definition has changed are refused.
    """

    def __init__(
        self,
        command: Sequence[str] = (),
        *,
        upstream: str = "",
        name: str = "",
        session: str = "",
        task: str = "",
        category: str = "",
        pipeline: str = "",
        policy: str | None = None,
        model: str | None = None,
        config: str | None = None,
        state: str | None = None,
        ask: str | None = None,
        refuse_changed: bool = False,
        service: str = "",
    ) -> None:
        self.service = service
        self.command, self.upstream = list(command), upstream
        self.named = bool(name)
        self.name = clean(name) if name else derived_name(command, upstream)
        self.session, self.task = session, task
        self.about = {"category": category, "pipeline": pipeline}
        self.policy, self.model, self.config = policy or None, model or "default", config or None
        self.state = state or state_folder()
        self.ask = ask
        self.refuse_changed = refuse_changed

    @property
    def definitions(self) -> str:
        """The file in which the digests of the tools' definitions are kept."""
        return os.path.join(self.state, f"mcp-{self.name}.json")  # noqa: PTH118  # the idiom of this package

    def guard(self) -> Guard:
        """Return the guard; a session that has a name is kept in a file, and may go on later.

        Raises
        ------
        SafetyDriftError
            If one of its files cannot be believed.
        """
        os.makedirs(self.state, mode=0o700, exist_ok=True)  # noqa: PTH103  # as above
        store = os.path.join(self.state, "sessions.sqlite") if self.session else None  # noqa: PTH118
        log = DecisionLog(os.path.join(self.state, "decisions.jsonl"), buffer=1)  # noqa: PTH118
        approver = None
        if self.service:
            return Guard.remote(self.service, policy=self.policy, agent=f"mcp {self.name}", framework="MCP")
        if self.ask:
            from safetydrift.guard.asking import WebhookApprover  # noqa: PLC0415  # seldom

            try:
                approver = WebhookApprover(self.ask)
            except ValueError as error:
                raise ConfigError(str(error)) from error
        return Guard.load(self.model, self.policy, store, log=log, config=self.config, approver=approver)

    def opened(self) -> tuple[Guarding, Run]:
        """Return the guard's side of the proxy, and the run it watches.

        Raises
        ------
        SafetyDriftError
            If one of the files cannot be believed: what cannot guard does not start.
        """
        guard = self.guard()
        if not self.named and not self.service and self.name in guard.monitor.labeler.boundary.servers:
            self.name = UNNAMED + self.name
            say(
                f"the configuration trusts a server of this name; say --name to mean it, now it is {self.name!r}"
            )
        if guard.approver is None:
            say(
                "nobody can be asked here: where the policy asks, it is on_unanswered that decides (see --ask)"
            )
        guarding = Guarding(
            Deciding(guard),
            Definitions(self.definitions),
            self.name,
            refuse_changed=self.refuse_changed,
            say=say,
        )
        run = Run(guard, self.session or f"mcp-{self.name}-{uuid4().hex[:12]}", self.task, self.about)
        return guarding, run


def say(line: str) -> None:
    """Tell the operator; standard output belongs to the protocol."""
    printable = "".join([char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in line])
    try:
        sys.stderr.write(f"safetydrift: {printable}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        return  # nobody listens


def derived_name(command: Sequence[str], upstream: str = "") -> str:
    """Return what a server is called by the operator's own words; what it calls itself is not believed.

    Examples
    --------
    >>> derived_name(["npx", "-y", "@modelcontextprotocol/server-filesystem@latest", "/data"])
    'filesystem'
    >>> derived_name(["python3", "-m", "weather_mcp"]), derived_name([], "https://api.example.com/mcp")
    ('weather', 'api-example-com')
    """
    if upstream:
        from urllib.parse import urlsplit  # noqa: PLC0415  # as above

        return clean(urlsplit(upstream).hostname or "")
    for word in command:
        base = re.split(r"[/\\]", word)[-1].rsplit("@", 1)[0] or word
        if not word.startswith("-") and _LAUNCHERS.fullmatch(base) is None and "=" not in word:
            return clean(_undecorated(base.replace("_", "-")))
    return "server"


def clean(name: str) -> str:
    """Return a name as it may stand between the double underscores of a tool's."""
    return _NOT_IN_NAMES.sub("-", name).strip("-")[:MAX_NAME] or "server"


def _undecorated(name: str) -> str:
    before = ""
    while name != before:
        before, name = name, _DECORATION.sub("", name)
    return name
