"""What Inspect finds through its entry point: the task, the simulated model, and the monitor as approver."""

from __future__ import annotations

from safetydrift.scenarios.approval import monitor_approver, simulated_person
from safetydrift.scenarios.simulated import Simulated
from safetydrift.scenarios.tasks import acting, end_state, scenarios

__all__ = ["Simulated", "acting", "end_state", "monitor_approver", "scenarios", "simulated_person"]
