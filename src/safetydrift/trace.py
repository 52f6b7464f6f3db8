"""What was recorded: a trace is a run of an agent, a step is one tool call with what came back.

Plain immutable values and no parsing; ``formats`` makes them from files, ``effects`` reads what they did.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from msgspec import Struct, field


class Ending(Enum):
    """How the recording of a run ends."""

    COMPLETED = "completed"
    """The agent finished by itself: it gave its answer, or called its finish tool."""

    CENSORED = "censored"
    """The run was cut off: a step limit, an error, a lost connection. What would have followed is unknown."""


class ToolCall(Struct, frozen=True, gc=False):
    """A call as the agent proposed it.

    Parameters
    ----------
    name
        The tool's name, as the agent wrote it.
    args
        The arguments. Empty when they could not be decoded.
    id
        The call's own identifier; empty where the source has none.
    malformed
        The raw text of arguments that could not be decoded, else None.
    hints
        The tool's MCP annotations (``readOnlyHint`` and the like), where known. Untrusted.
    """

    name: str
    args: Mapping[str, object] = field(default_factory=dict)
    id: str = ""
    malformed: str | None = None
    hints: Mapping[str, bool] | None = None


class Step(Struct, frozen=True, gc=False):
    """One tool call and what came back. Parallel calls are steps of the same turn, in the order proposed.

    Parameters
    ----------
    call
        The proposed call.
    result
        The text that came back; None when nothing did (the call was never executed, or the run ended first).
    error
        The tool's own error message when the call failed, else None.
    turn
        Index of the agent's message that proposed the call, counted from 0.
    said
        What the user said since the previous step; for the first step, the task itself.
    started, ended
        When the call was proposed or began, and when its result was there, in seconds since 1970 (UTC); None
        where the source does not tell.
    refused_by
        Who refused the call, so that it was not made: ``"person"``, ``"hook"``, ``"policy"`` or ``"guard"``.
        Empty for a call that was made, and where nothing is known of a refusal.
    unread
        What existed but is not in the record, or was cut there: ``"arguments"``, ``"result"``.
    """

    call: ToolCall
    result: str | None = None
    error: str | None = None
    turn: int = 0
    said: str = ""
    started: float | None = None
    ended: float | None = None
    refused_by: str = ""
    unread: tuple[str, ...] = ()


NO_ATTACK = "no attack in this run"
NO_SAFETY_LABEL = "task reward only, no safety label"
"""Reasons for which a source's verdict cannot be used although nobody attacked (`Label.unusable`)."""


class Label(Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """What the source itself says about a run.

    Parameters
    ----------
    violated
        Whether the source found a violation; None where it says nothing, or nothing that can be used.
    onset
        The violating call, counted from 1; None where unknown or where there is none.
    exposure
        Calls made when the first result carrying injected text came back; None if none did or it is unknown.
    attempt
        In a run that is not violated: the first call that tried what the attacker wanted, counted from 1.
    attack
        What kind of pressure the run was put under, as the source names it; empty when there was none.
    goal
        What the attacker wanted, as the source names it; empty when nobody attacked.
    unusable
        Why the source's verdict cannot be used, in words; empty when it can.
    origin
        Who says so: for example ``"end-state check"`` or ``"median of four judges >= 3"``.
    """

    violated: bool | None = None
    onset: int | None = None
    exposure: int | None = None
    attempt: int | None = None
    attack: str = ""
    goal: str = ""
    unusable: str = ""
    origin: str = ""


class Trace(Struct, frozen=True, gc=False):
    """A recorded run of an agent.

    Parameters
    ----------
    id
        The record's own path or id.
    steps
        Every tool call, in order.
    source
        Where the run comes from, for example ``"agentdojo"``.
    task
        What was asked, as the source names it; runs of one task are alike and are resampled together.
    category
        The kind of task (a suite, a domain). The published method keeps one chain per category.
    model
        The model, or the pipeline of model and defence, that acted.
    prompt
        The task in the user's words.
    ending
        How the recording ends.
    label
        What the source says about safety.
    tools
        Names of the tools on offer, where the source lists them.
    parent, parent_call
        For the run of a subagent: the id of the run that started it, and of the call that did.
    messages
        How many messages the user sent; 0 where the source does not tell them apart.
    unread
        How many messages or model calls of the run are not in the record, or were cut there.
    """

    id: str
    steps: tuple[Step, ...]
    source: str = ""
    task: str = ""
    category: str = ""
    model: str = ""
    prompt: str = ""
    ending: Ending = Ending.CENSORED
    label: Label = Label()
    tools: tuple[str, ...] = ()
    parent: str = ""
    parent_call: str = ""
    messages: int = 0
    unread: int = 0
