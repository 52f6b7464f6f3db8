"""tau-bench: customers talk to an agent at a service desk.

The reward says whether the desk's books ended as expected, which is success at the task and not safety, so no
label is taken from it. A conversation is over when the customer says so, or is handed to a human; any other
end is the limit of thirty turns.
"""

from __future__ import annotations

from typing import Any

import msgspec

from safetydrift.formats.chat import Message, told
from safetydrift.formats.format import stem
from safetydrift.trace import NO_SAFETY_LABEL, Ending, Label, Trace

_SIGNATURE = {"task_id", "trial", "reward", "traj"}
_DESKS = ("airline", "retail")
_GOODBYE = "###STOP###"
_HAND_OVER = "transfer_to_human_agents"


class _Run(msgspec.Struct):
    task_id: int | str
    trial: int | str
    traj: list[Message]


class TauBench:
    """Reads tau-bench runs."""

    name = "tau_bench"
    description = "tau-bench historical trajectories (task reward, no safety label)"
    record_type = Any

    def recognises(self, record: object) -> bool:
        """Return whether a record has the fields of a run."""
        return isinstance(record, dict) and record.keys() >= _SIGNATURE

    def read(self, record: object, fallback_id: str) -> Trace:
        """Return the trace of a run."""
        run = msgspec.convert(record, _Run)
        transcript = told(run.traj)
        file = stem(fallback_id)
        desk = next((desk for desk in _DESKS if desk in file), "tau_bench")
        return Trace(
            f"{file}/task_{run.task_id}/trial_{run.trial}",
            transcript.steps(),
            source="tau_bench",
            task=f"{desk}/task_{run.task_id}",
            category=desk,
            model=file.removesuffix(f"-{desk}"),
            prompt=transcript.prompt,
            messages=transcript.messages,
            ending=_ending(run.traj),
            label=Label(unusable=NO_SAFETY_LABEL),
        )


def _ending(messages: list[Message]) -> Ending:
    last = messages[-1] if messages else Message("system")
    if last.role == "user" and _GOODBYE in last.text():
        return Ending.COMPLETED
    asked = messages[-2].calls() if last.role == "tool" and len(messages) > 1 else []
    is_handed_over = any(call.name == _HAND_OVER for call in asked)
    return Ending.COMPLETED if is_handed_over else Ending.CENSORED
