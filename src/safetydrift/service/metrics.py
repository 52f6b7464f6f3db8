"""What Prometheus is told. No run, tool, user or organisation is a label: agents could make up any number of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from safetydrift.guard.decision import Decision

VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
RULES = frozenset(("on_error", "on_timeout", "on_lost_state", "unseen", "always_allow", "a yes holds once"))
"""Rules that are told by name; those of a policy are told by their section."""


def prepare(folder: str) -> None:
    """Have all workers keep their figures in one folder; before any of them counts."""
    where = Path(folder) / "metrics"
    where.mkdir(mode=0o700, parents=True, exist_ok=True)
    for left in where.glob("*.db"):
        left.unlink()
    os.environ[VARIABLE] = str(where)


class Metrics:
    """The figures of a worker."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram  # noqa: PLC0415  # reads the variable

        self._registry = CollectorRegistry()
        own: dict[str, Any] = {"registry": self._registry}
        self.decisions = Counter(
            "safetydrift_decisions", "Decisions about tool calls", ("intervention", "rule"), **own
        )
        self.duration = Histogram(
            "safetydrift_decision_duration_seconds",
            "From the request to the answer, without the time a person was waited for",
            buckets=BUCKETS,
            **own,
        )
        self.errors = Counter("safetydrift_errors", "Requests that failed on our side", ("kind",), **own)
        self.pending = Gauge(
            "safetydrift_approvals_pending", "Questions that wait", multiprocess_mode="mostrecent", **own
        )
        self.queued = Gauge(
            "safetydrift_requests_queued", "Requests that wait for a lane", multiprocess_mode="livesum", **own
        )
        self.info = Gauge(
            "safetydrift_build_info", "The version", ("version",), multiprocess_mode="max", **own
        )

    def decided(self, decision: Decision, seconds: float) -> None:
        """Count a decision."""
        self.decisions.labels(decision.intervention.value, section(decision.rule)).inc()
        self.duration.observe(seconds)

    def text(self) -> bytes:
        """Return the figures of all workers, as Prometheus reads them."""
        from prometheus_client import CollectorRegistry, generate_latest, multiprocess  # noqa: PLC0415  # as above

        if VARIABLE not in os.environ:
            return bytes(generate_latest(self._registry))
        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]  # as it comes
        return bytes(generate_latest(registry))


def section(rule: str) -> str:
    """Return what a rule is called in figures: there are few such names.

    Examples
    --------
    >>> section("never 3"), section("the model's threshold"), section("ours"), section("no rule holds")
    ('never', 'model', 'policy', 'none')
    """
    if rule in RULES:
        return rule
    if rule == "no rule holds" or rule.startswith("unauthorised harm"):
        return "none" if rule == "no rule holds" else "authority"
    first = rule.partition(" ")[0]
    if first in {"never", "always_ask", "when"}:
        return first
    return "model" if "the model's" in rule else "policy"
