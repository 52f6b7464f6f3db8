"""A guard's decisions go out through OpenTelemetry's SDK, and come back in as runs."""

from __future__ import annotations

import pytest

from safetydrift import ToolCall
from safetydrift.formats import read_traces
from safetydrift.guard import Approver, GuardPolicy, Rule, Telemetry
from safetydrift.monitor.verdict import Intervention

POLICY = GuardPolicy(
    never=(Rule(Intervention.BLOCK, tools=("delete_*",), reason="nothing is deleted"),),
    when=(Rule(Intervention.ASK, tools=("send_*",), reason="look"),),
)


class Exported:
    """An application whose spans end up in a file, as the SDK writes them or an exporter of it."""

    def __init__(self, path, form):
        trace = pytest.importorskip("opentelemetry.sdk.trace")
        export = pytest.importorskip("opentelemetry.sdk.trace.export")
        memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
        self.path, self.form = path, form
        self.tracers = trace.TracerProvider()
        if form == "sdk":
            self.exporter = memory.InMemorySpanExporter()
        else:
            files = pytest.importorskip("opentelemetry.exporter.otlp.json.file.trace_exporter")
            self.exporter = files.FileSpanExporter(path)
        self.tracers.add_span_processor(export.SimpleSpanProcessor(self.exporter))

    def traces(self):
        if self.form == "sdk":
            lines = [span.to_json(indent=None) for span in self.exporter.get_finished_spans()]
            self.path.write_text("\n".join(lines) + "\n")
        self.tracers.shutdown()
        return list(read_traces(self.path))


@pytest.fixture(params=["sdk", "otlp"])
def exported(request, tmp_path):
    return Exported(tmp_path / "decisions.jsonl", request.param)


@pytest.mark.parametrize("content", [False, True])
def test_decisions_come_back_as_runs(make, exported, content):
    answers = iter([True, False])
    guard = make(
        POLICY,
        telemetry=Telemetry(content=content, tracer_provider=exported.tracers),
        approver=Approver(lambda *_: next(answers)),
    )
    for key in ("one", "two"):
        guard.session(key, category="banking")
    proposals = [
        ("one", "read_inbox"),
        ("two", "read_inbox"),
        ("one", "send_email"),
        ("one", "delete_all"),
        ("one", "send_money"),
    ]
    for number, (key, name) in enumerate(proposals):
        guard.propose(key, ToolCall(name, {"n": number}), f"c{number}")
    one, two = exported.traces()
    assert (one.id, two.id, one.source) == ("one", "two", "opentelemetry")
    assert [(step.call.name, step.call.id, step.refused_by) for step in one.steps] == [
        ("read_inbox", "c0", ""),
        ("send_email", "c2", ""),
        ("delete_all", "c3", "guard"),
        ("send_money", "c4", "person"),
    ]
    assert [step.turn for step in one.steps] == [0, 1, 2, 3]
    starts = [step.started for step in one.steps]
    assert None not in starts
    assert starts == sorted(starts, key=lambda start: start or 0)
    if content:
        assert [step.call.args for step in one.steps] == [{"n": n} for n in (0, 2, 3, 4)]
        assert "nothing is deleted" in (one.steps[2].error or "")
    else:
        assert all(step.call.malformed == "" and "arguments" in step.unread for step in one.steps)
    # What was let through brought something back, which decisions do not tell; what was refused did not.
    assert [("result" in step.unread, step.error is None) for step in one.steps] == [(True, True)] * 2 + [
        (False, False)
    ] * 2


def test_decisions_join_the_spans_of_the_application_they_were_made_in(make, exported):
    guard = make(POLICY, telemetry=Telemetry(tracer_provider=exported.tracers))
    guard.session("run", category="banking")
    tracer = exported.tracers.get_tracer("app")
    for number, name in enumerate(["read_inbox", "delete_all"]):
        decision = guard.propose("run", ToolCall(name, {"n": number}), f"c{number}")
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.call.id": f"c{number}",
        }
        with tracer.start_as_current_span(f"execute_tool {name}", attributes=attributes) as span:
            span.set_attribute("gen_ai.conversation.id", "run")
            span.set_attribute("gen_ai.tool.call.arguments", f'{{"n": {number}}}')
            if decision.allowed:
                span.set_attribute("gen_ai.tool.call.result", "two mails")
    (trace,) = exported.traces()
    assert [(step.call.name, step.call.args, step.result, step.refused_by) for step in trace.steps] == [
        ("read_inbox", {"n": 0}, "two mails", ""),
        ("delete_all", {"n": 1}, None, "guard"),
    ]


def test_arguments_too_long_for_a_span_are_marked_as_cut(make, exported):
    guard = make(POLICY, telemetry=Telemetry(content=True, tracer_provider=exported.tracers))
    guard.session("run", category="banking")
    guard.propose("run", ToolCall("read_inbox", {"text": "word " * 1000}), "c0")
    (trace,) = exported.traces()
    assert trace.steps[0].unread == ("arguments", "result")
    assert trace.steps[0].call.malformed
