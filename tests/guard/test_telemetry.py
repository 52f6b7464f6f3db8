"""OpenTelemetry: what is told of decisions, what is not, and that whoever looks on has no say."""

import json
import subprocess
import sys

import pytest

from safetydrift import ToolCall
from safetydrift.errors import MissingExtraError
from safetydrift.guard import Approver, DecisionLog, Guard, GuardPolicy, Rule, Telemetry
from safetydrift.guard import telemetry as names
from safetydrift.guard.decision import Decision
from safetydrift.monitor.verdict import Intervention

KEY = "AKIAIOSFODNN7EXAMPLE"


class Broken:
    """A telemetry that fails, and counts how often it was asked."""

    def __init__(self):
        self.asked = 0

    def decided(self, *_):
        self.asked += 1
        raise RuntimeError("the collector is on fire")


def test_what_fails_in_telemetry_changes_no_decision(make, tmp_path):
    telemetry = Broken()
    path = tmp_path / "log.jsonl"
    with DecisionLog(path) as log:
        guard = make(log=log, telemetry=telemetry)
        guard.session("run", category="banking")
        assert guard.propose("run", ToolCall("read_inbox"), "1").allowed
        assert guard.propose("run", ToolCall("read_inbox"), "2").allowed
        assert guard.propose("lost", ToolCall("read_inbox"), "1").refused
    assert telemetry.asked == 3
    (told,) = [line for line in path.read_text().splitlines() if "telemetry failed" in line]
    assert "on fire" in told


def test_nothing_of_it_is_imported_unless_it_is_asked_for():
    program = (
        "import sys; from safetydrift import ToolCall; from safetydrift.guard import Guard; g = Guard.load();"
        "g.session('r'); g.propose('r', ToolCall('read_inbox'));"
        "sys.exit(any(m.startswith('opentelemetry') or m.endswith('guard.recorder.telemetry') for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode == 0


def test_without_the_interface_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(MissingExtraError, match=r"safetydrift\[otel\]"):
        Guard.load(telemetry=True)


def test_without_an_sdk_nothing_is_recorded_and_all_goes_on():
    pytest.importorskip("opentelemetry")
    guard = Guard.load(telemetry=True)
    guard.session("run")
    assert guard.propose("run", ToolCall("read_inbox"), "1").allowed
    assert guard.recorder.telemetry is not None


# -- with an SDK ----------------------------------------------------------------------------------------------


class Collected:
    """Spans and metrics of some guards."""

    def __init__(self):
        trace = pytest.importorskip("opentelemetry.sdk.trace")
        export = pytest.importorskip("opentelemetry.sdk.trace.export")
        memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
        metrics = pytest.importorskip("opentelemetry.sdk.metrics")
        reading = pytest.importorskip("opentelemetry.sdk.metrics.export")
        self.exporter, self.reader = memory.InMemorySpanExporter(), reading.InMemoryMetricReader()
        self.tracers, self.meters = trace.TracerProvider(), metrics.MeterProvider([self.reader])
        self.tracers.add_span_processor(export.SimpleSpanProcessor(self.exporter))

    def telemetry(self, **options):
        return Telemetry(tracer_provider=self.tracers, meter_provider=self.meters, **options)

    @property
    def spans(self):
        return self.exporter.get_finished_spans()

    def points(self):
        """Return the points of each metric by its name."""
        (resource,) = self.reader.get_metrics_data().resource_metrics
        (scope,) = resource.scope_metrics
        return {metric.name: list(metric.data.data_points) for metric in scope.metrics}


@pytest.fixture
def collected():
    found = Collected()
    yield found
    found.tracers.shutdown()
    found.meters.shutdown()


def test_each_decision_is_a_span_with_one_event(make, collected):
    guard = make(telemetry=collected.telemetry())
    guard.session("run", category="banking")
    decision = guard.propose("run", ToolCall("read_inbox", {"folder": "private"}), "call-1")
    guard.propose("run", ToolCall("read_inbox", {"folder": "private"}), "call-1")
    (span,) = collected.spans
    assert span.name == "execute_tool read_inbox"
    assert span.kind.name == "INTERNAL"
    assert span.status.status_code.name == "UNSET"
    assert span.attributes["gen_ai.operation.name"] == "execute_tool"
    assert span.attributes["gen_ai.tool.name"] == "read_inbox"
    assert span.attributes["gen_ai.tool.call.id"] == "call-1"
    assert span.attributes["gen_ai.conversation.id"] == "run"
    (event,) = span.events
    assert event.name == "safetydrift.decision"
    assert event.attributes["safetydrift.intervention"] == "allow"
    assert event.attributes["safetydrift.probability"] == decision.probability
    assert event.attributes["safetydrift.horizon"] == decision.verdict.horizon
    assert all(name.startswith(("safetydrift.", "error.")) for name in event.attributes)
    assert event.attributes.items() <= span.attributes.items()
    assert span.end_time - span.start_time == pytest.approx(decision.latency * 1e9, abs=1000)


def test_what_a_call_was_about_is_left_out_unless_it_is_asked_for(make, collected):
    policy = GuardPolicy(never=(Rule(Intervention.BLOCK, tools=("send",), reason="private words"),))
    for content in (False, True):
        guard = make(policy, telemetry=collected.telemetry(content=content))
        guard.session("run")
        guard.propose("run", ToolCall("send", {"text": f"private words {KEY}"}), "1")
    without, with_ = [json.dumps(dict(span.attributes)) for span in collected.spans]
    assert "private" not in without
    assert "arguments" not in without
    assert "private words" in json.loads(with_)["gen_ai.tool.call.arguments"]
    assert "private words" in json.loads(with_)["safetydrift.reason"]
    assert KEY not in with_


def test_an_answer_is_linked_to_its_question(make, collected):
    policy = GuardPolicy(when=(Rule(Intervention.ASK, reason="look"),))
    approver = Approver(lambda question, timeout: True)
    guard = make(policy, telemetry=collected.telemetry(), approver=approver)
    guard.session("run")
    guard.propose("run", ToolCall("send"), "1")
    question, answer = collected.spans
    assert question.attributes["safetydrift.intervention"] == "ask"
    assert answer.attributes["safetydrift.intervention"] == "allow"
    assert answer.attributes["safetydrift.answered"] is True
    assert answer.name == "execute_tool send"
    assert answer.links[0].context.span_id == question.context.span_id


def test_a_failure_of_the_guard_is_an_error_of_the_span(make, collected):
    guard = make(telemetry=collected.telemetry())
    guard.propose("never opened", ToolCall("send"), "1")
    (span,) = collected.spans
    assert span.status.status_code.name == "ERROR"
    assert span.attributes["error.type"] == "LostStateError"
    assert "safetydrift.probability" not in span.attributes


def test_decisions_are_counted_and_timed_without_names_that_an_agent_makes_up(make, collected):
    policy = GuardPolicy(never=(Rule(Intervention.BLOCK, tools=("drop_*",), reason="no"),))
    guard = make(policy, telemetry=collected.telemetry())
    guard.session("run", category="banking")
    for number in range(5):
        guard.propose("run", ToolCall(f"drop_{number}"), str(number))
    points = collected.points()
    (counted,) = points["safetydrift.decisions"]
    (timed,) = points["safetydrift.decision.duration"]
    assert counted.value == timed.count == 5
    assert counted.attributes["safetydrift.intervention"] == "block"
    assert counted.attributes["safetydrift.rule"] == "never 1"
    assert set(counted.attributes) == {"safetydrift.intervention", "safetydrift.rule"}
    assert tuple(timed.explicit_bounds) == names.BUCKETS


def test_spans_are_children_of_the_current_one(make, collected):
    guard = make(telemetry=collected.telemetry())
    guard.session("run")
    with collected.tracers.get_tracer("app").start_as_current_span("agent") as agent:
        guard.propose("run", ToolCall("read_inbox"), "1")
    assert collected.spans[0].parent.span_id == agent.get_span_context().span_id


def test_questions_that_nobody_answers_are_not_kept_for_ever(make, collected, monkeypatch):
    monkeypatch.setattr(names, "MAX_ASKED", 2)
    telemetry = collected.telemetry()
    guard = make(GuardPolicy(shadow=True), telemetry=telemetry)
    for number in range(5):
        decision = Decision(Intervention.ASK, key="run", call_id=str(number), would_be=Intervention.BLOCK)
        telemetry.decided(decision, ToolCall("x" * 1000), "p", "m", guard.redactor)
    assert len(telemetry._asked) == 2
    telemetry.decided(
        Decision(Intervention.BLOCK, key="run", call_id="0", answered_by="me"), None, "p", "m", guard.redactor
    )
    span = collected.spans[-1]
    assert span.name == "execute_tool"
    assert "gen_ai.tool.name" not in span.attributes
    assert collected.spans[0].attributes["safetydrift.would_be"] == "block"
    assert len(collected.spans[0].name) < 200
