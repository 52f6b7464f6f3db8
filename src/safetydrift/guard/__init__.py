"""The guard: it stands between an agent and its tools, and decides about every call before it is made.

`Guard` is the entry. A call is proposed, judged, and then confirmed or released; `GuardPolicy` says what a probability
means, a `Decision` what became of a call. Stores keep the state of runs, and a decision log what was decided. Nothing
here imports more than the standard library's cheap parts until it is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from safetydrift._lazy import lazy_names

if TYPE_CHECKING:
    from safetydrift.guard.asking import Answer, Approver, Question, TerminalApprover, WebhookApprover
    from safetydrift.guard.decision import Decision
    from safetydrift.guard.decision_log import DecisionLog
    from safetydrift.guard.guard import Guard
    from safetydrift.guard.policy import GuardPolicy, Rule
    from safetydrift.guard.policy_file import load_policy
    from safetydrift.guard.stores.memory import MemoryStore
    from safetydrift.guard.stores.redis import RedisStore
    from safetydrift.guard.stores.sqlite import SQLiteStore
    from safetydrift.guard.telemetry import Telemetry

__all__ = [
    "Answer",
    "Approver",
    "Decision",
    "DecisionLog",
    "Guard",
    "GuardPolicy",
    "MemoryStore",
    "Question",
    "RedisStore",
    "Rule",
    "SQLiteStore",
    "Telemetry",
    "TerminalApprover",
    "WebhookApprover",
    "load_policy",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "Answer": "safetydrift.guard.asking",
        "Approver": "safetydrift.guard.asking",
        "Decision": "safetydrift.guard.decision",
        "DecisionLog": "safetydrift.guard.decision_log",
        "Guard": "safetydrift.guard.guard",
        "GuardPolicy": "safetydrift.guard.policy",
        "MemoryStore": "safetydrift.guard.stores.memory",
        "Question": "safetydrift.guard.asking",
        "RedisStore": "safetydrift.guard.stores.redis",
        "Rule": "safetydrift.guard.policy",
        "SQLiteStore": "safetydrift.guard.stores.sqlite",
        "Telemetry": "safetydrift.guard.telemetry",
        "TerminalApprover": "safetydrift.guard.asking",
        "WebhookApprover": "safetydrift.guard.asking",
        "load_policy": "safetydrift.guard.policy_file",
    },
)
