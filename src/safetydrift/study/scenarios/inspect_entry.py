"""What Inspect finds by its entry point: the task, the simulated model, and monitor and guard as approvers."""

from __future__ import annotations

from safetydrift.integrations.inspect import guard_approver
from safetydrift.study.scenarios.approval import monitor_approver, simulated_person
from safetydrift.study.scenarios.simulated import Simulated
from safetydrift.study.scenarios.tasks import acting, end_state, scenarios

__all__ = [
    "Simulated",
    "acting",
    "end_state",
    "guard_approver",
    "monitor_approver",
    "scenarios",
    "simulated_person",
]
