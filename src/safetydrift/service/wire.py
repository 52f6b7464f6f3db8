"""What goes over HTTP: every request and every answer of the interface, its bounds included.

The description of the interface (``/openapi.json``) is made from these, so that it cannot say anything else.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

Key = Annotated[str, Meta(min_length=1, max_length=512, description="The run's name, chosen by the agent.")]
CallId = Annotated[
    str, Meta(max_length=256, description="The call's own id: the same call, the same answer.")
]
Name = Annotated[str, Meta(max_length=256)]
Words = Annotated[str, Meta(max_length=65_536)]
Tools = Annotated[
    list[Name], Meta(max_length=512, description="The tools at hand; a safer one may be named.")
]
Deadline = Annotated[
    int, Meta(ge=1, le=600_000, description="Milliseconds after which an answer is of no use any more.")
]


class Request(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The base of all requests: what nobody reads is refused."""


class OpenRun(Request, frozen=True):
    """Open a run, or go on with it."""

    run: Key
    task: Words = ""
    category: Name = ""
    pipeline: Name = ""
    parent: Annotated[str, Meta(max_length=512)] = ""
    agent: Name = ""
    host: Name = ""
    person: Name = ""
    framework: Name = ""
    tools: Tools = field(default_factory=list)


class Hear(Request, frozen=True):
    """Take note of what the user says during a run; a message that comes twice counts once."""

    run: Key
    text: Annotated[str, Meta(max_length=1_048_576)]
    message_id: Annotated[str, Meta(max_length=128)] = ""


class RunOnly(Request, frozen=True):
    """Something about a run as a whole."""

    run: Key


class Propose(Request, frozen=True):
    """Propose a call."""

    run: Key
    tool: Annotated[str, Meta(max_length=65_536)]
    call_id: CallId = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    malformed: Annotated[str, Meta(max_length=65_536)] | None = None
    hints: dict[str, bool] | None = None
    wait_ms: Annotated[int, Meta(ge=0, le=60_000, description="How long to wait for a person's answer.")] = 0
    deadline_ms: Deadline = 10_000
    nonce: Annotated[
        str,
        Meta(max_length=64, description="Made up once per call: a yes is used by the first one that asks."),
    ] = ""
    tools: Tools = field(default_factory=list)


class Settle(Request, frozen=True):
    """Say that a call was made, with what came back."""

    run: Key
    call_id: CallId
    result: str | None = None
    error: str | None = None
    tool: Annotated[str, Meta(max_length=65_536)] = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    deadline_ms: Deadline = 10_000


class Release(Request, frozen=True):
    """Say that a call was not made after all."""

    run: Key
    call_id: CallId


class AnswerCall(Request, frozen=True):
    """Report what a person said about a call, by the agent's own way of asking; null if nobody answered."""

    run: Key
    call_id: CallId
    approved: bool | None
    by: Name = ""
    digest: Annotated[str, Meta(max_length=128, description="Which call the person was shown.")] = ""


class AnswerApproval(Request, frozen=True):
    """Answer a question."""

    approved: bool
    presented: Annotated[str, Meta(max_length=64, description="The digest of the question as it was shown.")]
    reason: Annotated[str, Meta(max_length=2000)] = ""


class OwnDecision(Struct, frozen=True, omit_defaults=True):
    """A call that an agent decided by itself while the service was away."""

    at: float
    run: Key
    call_id: CallId
    tool: Name
    outcome: Literal["allow", "block", "ask"]
    problem: Annotated[str, Meta(max_length=500)] = ""


class Report(Request, frozen=True):
    """Tell of calls that were decided while the service was away."""

    decisions: Annotated[list[OwnDecision], Meta(max_length=256)]
    agent: Name = ""
    host: Name = ""


class NewToken(Request, frozen=True):
    """Make a token."""

    name: Annotated[str, Meta(min_length=1, max_length=128)]
    scopes: Annotated[list[Literal["agent", "reader", "approver", "admin"]], Meta(min_length=1)]
    days: Annotated[float, Meta(gt=0, le=3650)] | None = None


class NewPolicy(Request, frozen=True):
    """Put up a policy: it is checked, and waits for what is decided about it."""

    text: Annotated[str, Meta(max_length=1_048_576)]
    note: Annotated[str, Meta(max_length=2000)] = ""


class DecidePolicy(Request, frozen=True):
    """Put a policy in force, run it beside the one in force, or turn it down."""

    action: Literal["enforce", "observe", "reject"]


# -- answers --------------------------------------------------------------------------------------------------


class RunOpened(Struct, frozen=True):
    """Where a run can be looked at."""

    run: str
    id: int
    url: str


class Decided(Struct, frozen=True, omit_defaults=True):
    """A decision, and the question that it waits for."""

    decision: dict[str, Any]
    approval: dict[str, Any] | None = None


class Settled(Struct, frozen=True):
    """The finding about where a run stands; null if nothing could be recorded."""

    verdict: dict[str, Any] | None


class Done(Struct, frozen=True):
    """Nothing more to say."""

    done: bool = True


class Problem(Struct, frozen=True, omit_defaults=True):
    """What is wrong (RFC 9457)."""

    title: str
    status: int
    detail: str = ""
    type: str = "about:blank"


class Page(Struct, frozen=True):
    """Some of many; ask again with ``before`` for those that follow."""

    items: list[dict[str, Any]]
    before: str | None = None


class Token(Struct, frozen=True):
    """A new token; it is never shown again."""

    id: int
    name: str
    token: str
