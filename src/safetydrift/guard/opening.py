"""From the path of a file to what a guard works with; what is open already stays as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from safetydrift.guard.decision_log import DecisionLog
    from safetydrift.guard.policy import GuardPolicy
    from safetydrift.guard.policy_file import WatchedPolicy
    from safetydrift.guard.stores.protocol import Store
    from safetydrift.guard.telemetry import Telemetry


def opened_policy(policy: Any) -> GuardPolicy | WatchedPolicy | None:
    """Return a policy; one in a file is followed."""
    if policy is None or hasattr(policy, "decide") or hasattr(policy, "current"):
        given: GuardPolicy | None = policy
        return given
    from safetydrift.guard.policy_file import WatchedPolicy  # noqa: PLC0415  # a policy in code needs no file

    return WatchedPolicy(policy)


def opened_store(store: Any) -> Store | None:
    """Return a store; a path is that of a SQLite file."""
    if store is None or hasattr(store, "bind"):
        given: Store | None = store
        return given
    from safetydrift.guard.stores.sqlite import SQLiteStore  # noqa: PLC0415  # a run in one process needs none

    return SQLiteStore(store)


def opened_log(log: Any) -> DecisionLog | None:
    """Return a decision log."""
    if log is None or hasattr(log, "decision"):
        given: DecisionLog | None = log
        return given
    from safetydrift.guard.decision_log import DecisionLog  # noqa: PLC0415  # not every guard keeps one

    return DecisionLog(log)


def opened_telemetry(telemetry: Any) -> Telemetry | None:
    """Return what tells OpenTelemetry of decisions, if it is asked for."""
    if telemetry is not True:
        given: Telemetry | None = telemetry or None
        return given
    from safetydrift.guard.telemetry import Telemetry  # noqa: PLC0415  # an extra

    return Telemetry()
