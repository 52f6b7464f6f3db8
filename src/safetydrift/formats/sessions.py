"""Everyday sessions: recorded work that nobody attacked, one JSON object per line with the task and its steps.

The record says that a session is benign; any other label is kept as unusable, for what it means is not documented.
Sessions are cut at a number of calls, and the record does not say which of them went on, so each is censored.
"""

from __future__ import annotations

from typing import Any

import msgspec

from safetydrift.formats.format import proposed
from safetydrift.trace import Ending, Label, Step, Trace

_SIGNATURE = {"id", "group", "task", "label", "steps", "harmful_step"}


class _Step(msgspec.Struct):
    name: str
    arguments: Any = None
    result: str | None = None


class _Session(msgspec.Struct):
    id: str
    group: str
    task: str
    label: str
    steps: list[_Step]


class Sessions:
    """Reads everyday sessions."""

    name = "sessions"
    description = "everyday sessions: a task and its steps, labelled as benign"
    record_type = Any

    def recognises(self, record: object) -> bool:
        """Return whether a record has the fields of a session."""
        return isinstance(record, dict) and record.keys() >= _SIGNATURE

    def read(self, record: object, fallback_id: str) -> Trace:
        """Return the trace of a session; each of its steps is a message of the agent."""
        session = msgspec.convert(record, _Session)
        steps = [
            Step(
                proposed(step.name, step.arguments), step.result, turn=turn, said="" if turn else session.task
            )
            for turn, step in enumerate(session.steps)
        ]
        return Trace(
            session.id or fallback_id,
            tuple(steps),
            source="sessions",
            task=session.task,
            category=session.group,
            prompt=session.task,
            ending=Ending.CENSORED,
            label=_label(session.label),
            messages=1 if session.task else 0,
        )


def _label(said: str) -> Label:
    if said == "benign":
        return Label(violated=False, origin="everyday session")
    return Label(unusable=f"the source's label is {said!r}", origin="everyday session")
