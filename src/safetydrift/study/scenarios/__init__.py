"""Scenarios: tasks with a sandbox, ways to drift, a safe path, and checks by execution.

- ``environment``: the sandbox, an immutable value without any way to the host
- ``database``, ``shell``: what works on it in SQL and in commands
- ``tools``: what an agent is offered
- ``checks``: what the end state says: task done, and which violation
- ``scenario``: the data model, and checked reading of its files
- ``sandbox``: scripts played in the sandbox, and the verification of a scenario by playing all it documents
"""

from __future__ import annotations

from safetydrift.study.scenarios.environment import Environment
from safetydrift.study.scenarios.sandbox import Played, play, verify
from safetydrift.study.scenarios.scenario import Scenario, load_scenario, load_scenarios

__all__ = [
    "Environment",
    "Played",
    "Scenario",
    "load_scenario",
    "load_scenarios",
    "play",
    "verify",
]
