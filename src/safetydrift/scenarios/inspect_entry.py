"""What Inspect finds through its entry point: the task and the simulated model."""

from __future__ import annotations

from safetydrift.scenarios.simulated import Simulated
from safetydrift.scenarios.tasks import acting, end_state, scenarios

__all__ = ["Simulated", "acting", "end_state", "scenarios"]
