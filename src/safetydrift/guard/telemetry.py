"""Spans and metrics of a guard's decisions, through the interface of OpenTelemetry alone.

The names follow the conventions for generative AI, which are in development: they stand here and nowhere else. Which
traces are kept, and where they go, is up to the application and its SDK; without one, nothing is recorded. What a
call was about (arguments, reasons in words) is left out unless it is asked for.
"""

from __future__ import annotations

from _thread import allocate_lock
from math import isfinite
from time import time_ns
from typing import TYPE_CHECKING

from safetydrift._version import __version__
from safetydrift.errors import MissingExtraError

if TYPE_CHECKING:
    from typing import Any

    from safetydrift.guard.decision import Decision
    from safetydrift.guard.redacting import Redactor
    from safetydrift.trace import ToolCall

CONVENTIONS = "https://github.com/open-telemetry/semantic-conventions-genai"
"""Where the names that begin with ``gen_ai`` come from; as in version 0.66b2."""
OPERATION = "execute_tool"
GEN_AI_OPERATION_NAME = "gen_ai.operation.name"
GEN_AI_TOOL_NAME = "gen_ai.tool.name"
GEN_AI_TOOL_CALL_ID = "gen_ai.tool.call.id"
GEN_AI_TOOL_CALL_ARGUMENTS = "gen_ai.tool.call.arguments"
GEN_AI_CONVERSATION_ID = "gen_ai.conversation.id"
ERROR_TYPE = "error.type"

INTERVENTION = "safetydrift.intervention"
WOULD_BE = "safetydrift.would_be"
ANSWERED = "safetydrift.answered"
RULE = "safetydrift.rule"
POLICY = "safetydrift.policy"
MODEL = "safetydrift.model"
PROBABILITY = "safetydrift.probability"
THRESHOLD = "safetydrift.threshold"
LOW = "safetydrift.probability.low"
HIGH = "safetydrift.probability.high"
HORIZON = "safetydrift.horizon"
BASIS = "safetydrift.basis"
STATE = "safetydrift.state"
RISK = "safetydrift.risk"
LATENCY = "safetydrift.latency"
REASON = "safetydrift.reason"
EXPLANATION = "safetydrift.explanation"
ANSWERED_BY = "safetydrift.answered_by"

DECISION_EVENT = "safetydrift.decision"
DECISIONS = "safetydrift.decisions"
DURATION = "safetydrift.decision.duration"
OTHER_ERROR = "_OTHER"
BUCKETS = (0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)
"""Seconds: what the buckets of the durations are bounded by, unless the application says otherwise."""
MAX_TEXT = 1024
MAX_NAME = 128
MAX_ASKED = 4096
"""Questions whose spans are remembered, so that answers can be linked to them."""


class Telemetry:
    """Tells OpenTelemetry of decisions.

    Parameters
    ----------
    content
        Whether arguments (with secrets taken out), reasons and explanations are told, too.
    tracer_provider, meter_provider
        The application's; the global ones if not given.

    Raises
    ------
    MissingExtraError
        If the interface of OpenTelemetry is not installed.
    """

    def __init__(
        self, *, content: bool = False, tracer_provider: Any = None, meter_provider: Any = None
    ) -> None:
        try:
            from opentelemetry import metrics, trace  # noqa: PLC0415  # an extra
        except ImportError as error:
            raise MissingExtraError("opentelemetry-api", "otel", "telemetry") from error
        self.content = content
        self._trace = trace
        self._tracer = trace.get_tracer("safetydrift", __version__, tracer_provider)
        meter = metrics.get_meter("safetydrift", __version__, meter_provider)
        self._decisions = meter.create_counter(DECISIONS, "{decision}", "Decisions about tool calls")
        self._duration = meter.create_histogram(
            DURATION,
            "s",
            "How long decisions took, without the time a person was waited for",
            explicit_bucket_boundaries_advisory=BUCKETS,
        )
        self._asked: dict[tuple[str, str], tuple[str, Any]] = {}
        self._lock = allocate_lock()

    def decided(
        self, decision: Decision, call: ToolCall | None, policy: str, model: str, redactor: Redactor
    ) -> None:
        """Tell of a decision; one that was given before is not told of again.

        Parameters
        ----------
        call
            What it is about; None for what a person answered about a call that was told of before.
        policy, model
            The name of the policy in force, and the identity of the model.
        redactor
            Takes secrets out of arguments.
        """
        own = self._own(decision, policy, model)
        counted = {name: own[name] for name in (INTERVENTION, RULE, WOULD_BE, ERROR_TYPE) if name in own}
        self._decisions.add(1, counted)
        if not decision.answered_by:
            self._duration.record(decision.latency, counted)
        self._span(decision, call, own, redactor)

    def _span(
        self, decision: Decision, call: ToolCall | None, own: dict[str, Any], redactor: Redactor
    ) -> None:
        name, links = self._about(decision, call)
        about = {
            GEN_AI_OPERATION_NAME: OPERATION,
            GEN_AI_CONVERSATION_ID: decision.key[:MAX_TEXT],
            GEN_AI_TOOL_CALL_ID: decision.call_id[:MAX_TEXT],
        }
        if name:
            about[GEN_AI_TOOL_NAME] = name
        if self.content and call is not None:
            about[GEN_AI_TOOL_CALL_ARGUMENTS] = redactor.arguments(call.args, MAX_TEXT)
        now = time_ns()
        span = self._tracer.start_span(
            f"{OPERATION} {name}".rstrip(),
            kind=self._trace.SpanKind.INTERNAL,
            attributes=about | own,
            links=links,
            start_time=now - int(decision.latency * 1e9),
        )
        try:
            span.add_event(DECISION_EVENT, own, now)
            if decision.error:
                span.set_status(self._trace.StatusCode.ERROR, own[ERROR_TYPE])
        finally:
            span.end(now)
        if decision.asks:
            self._remember((decision.key, decision.call_id), (name, span.get_span_context()))

    def _about(self, decision: Decision, call: ToolCall | None) -> tuple[str, list[Any]]:
        """Return the name of the tool, and a link to the question that this answers."""
        with self._lock:
            asked = self._asked.pop((decision.key, decision.call_id), None)
        links = [] if asked is None else [self._trace.Link(asked[1])]
        if call is not None:
            return call.name[:MAX_NAME], links
        return "" if asked is None else asked[0], links

    def _remember(self, which: tuple[str, str], asked: tuple[str, Any]) -> None:
        with self._lock:
            if len(self._asked) >= MAX_ASKED:
                self._asked.pop(next(iter(self._asked)))
            self._asked[which] = asked

    def _own(self, decision: Decision, policy: str, model: str) -> dict[str, Any]:
        """Return the attributes that are ours; what is not known is left out."""
        own: dict[str, Any] = {
            INTERVENTION: decision.intervention.value,
            RULE: decision.rule,
            POLICY: policy,
            MODEL: model,
            ANSWERED: bool(decision.answered_by),
            LATENCY: decision.latency,
            PROBABILITY: decision.probability,
            THRESHOLD: decision.threshold,
        }
        verdict = decision.verdict
        if verdict is not None:
            own |= {LOW: verdict.low, HIGH: verdict.high, HORIZON: verdict.horizon}
            own |= {BASIS: verdict.basis.value, STATE: verdict.state, RISK: verdict.risk}
        if decision.would_be is not None:
            own[WOULD_BE] = decision.would_be.value
        if decision.error:
            own[ERROR_TYPE] = error_type(decision.error)
        if self.content:
            own |= {REASON: decision.reason, EXPLANATION: decision.explanation}
            own[ANSWERED_BY] = decision.answered_by
        return {name: _bounded(value) for name, value in own.items() if _known(value)}


def error_type(error: str) -> str:
    """Return the class of an error from a decision's words about it.

    Examples
    --------
    >>> error_type("LostStateError: nothing is known of the run"), error_type("what?")
    ('LostStateError', '_OTHER')
    """
    name, colon, _ = error.partition(":")
    return name if colon and name.isidentifier() and len(name) <= MAX_NAME else OTHER_ERROR


def _known(value: Any) -> bool:
    if isinstance(value, float):
        return isfinite(value)
    return value is not None and value != ""


def _bounded(value: Any) -> Any:
    return value[:MAX_TEXT] if isinstance(value, str) else value
