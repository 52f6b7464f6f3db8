"""Decisions for a SIEM and figures for Prometheus go out; spans of agents that are only observed come in."""

from __future__ import annotations

import json
import re
import socket
import threading

import pytest
from sqlalchemy import text
from starlette.testclient import TestClient
from tests.service.conftest import ASK, Caller

from safetydrift.errors import ConfigError
from safetydrift.service import siem
from safetydrift.service.app import application
from safetydrift.service.settings import Siem

EVIL = "a|b=c\\d\r\nCEF:0|Forged|x|1|y|z|1| act=allow"


@pytest.fixture
def told(make, sqlite):
    """Return a function that has three decisions told to a receiver, and tells once more."""

    def told(run, **receiver):
        service = make(sqlite, siem=[receiver])
        service.enforce(ASK)
        with TestClient(application(service.runtime), base_url="http://127.0.0.1") as client:
            caller = Caller(client, service.token("agent"))
            caller.post("runs", run="r", agent=EVIL, person="mira", host="desk")
            for tool in ("get_balance", "drop_table", "send_mail"):
                caller.propose(tool, tool)
        service = make(sqlite, siem=[receiver])
        service.do(lambda lane: lane.execute(text("UPDATE calls SET at = at - 60"), {}))
        forwarding = siem.Forwarding(service.runtime)
        run(forwarding.turn())
        return forwarding

    return told


def test_each_decision_is_told_once_as_an_event_of_ocsf(told, run, tmp_path):
    file = tmp_path / "out.jsonl"
    forwarding = told(run, format="ocsf", file=str(file))
    run(forwarding.turn())
    events = [json.loads(line) for line in file.read_text().splitlines()]
    assert [one["api"]["operation"] for one in events] == ["get_balance", "drop_table", "send_mail"]
    assert [one["action_id"] for one in events] == [1, 2, 2]
    assert [one["is_alert"] for one in events] == [False, True, True]
    for one in events:
        assert one["type_uid"] == one["class_uid"] * 100 + one["activity_id"]
        assert {
            "actor",
            "api",
            "src_endpoint",
            "time",
            "severity_id",
            "metadata",
            "category_uid",
        } <= one.keys()
        assert one["actor"]["app_name"] == EVIL


def test_cef_is_one_line_that_an_agents_words_cannot_forge(told, run, tmp_path):
    file = tmp_path / "out.cef"
    told(run, format="cef", file=str(file), allowed=False)
    lines = file.read_text().splitlines()
    assert len(lines) == 2
    for line in lines:
        assert len(re.split(r"(?<!\\)\|", line)) >= 8
        assert line.startswith("CEF:0|SafetyDrift|guard|")
        extension = re.split(r"(?<!\\)\|", line, maxsplit=7)[7]
        assert re.findall(r"(?<!\\)\bact=(\w+)", extension) in (["block"], ["ask"])


def test_what_cannot_be_delivered_is_told_later_and_in_order(told, run):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    forwarding = told(run, format="cef", syslog=f"tcp://127.0.0.1:{port}")
    received = bytearray()
    with socket.create_server(("127.0.0.1", port)) as server:

        def take():
            connection, _ = server.accept()
            with connection:
                while part := connection.recv(4096):
                    received.extend(part)

        thread = threading.Thread(target=take)
        thread.start()
        run(forwarding.turn())
        thread.join(10)
    frames, rest = [], bytes(received)
    while rest:
        size, _, rest = rest.partition(b" ")
        frames.append(rest[: int(size)])
        rest = rest[int(size) :]
    assert [re.findall(rb"cs3=(\w+)", one)[0] for one in frames] == [
        b"get_balance",
        b"drop_table",
        b"send_mail",
    ]
    assert [one.partition(b">")[0] for one in frames] == [b"<109", b"<108", b"<108"]


def test_syslog_by_udp_is_one_datagram_per_decision(told, run):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(10)
        told(run, format="ocsf", syslog=f"udp://127.0.0.1:{server.getsockname()[1]}")
        events = [json.loads(server.recv(65536).partition(b" decision - ")[2]) for _ in range(3)]
    assert [one["metadata"]["uid"] for one in events] == ["1", "2", "3"]


@pytest.mark.parametrize("wrong", [{}, {"file": "x", "syslog": "udp://a:1"}, {"syslog": "http://a"}])
def test_a_receiver_that_is_none_is_said_at_the_start(wrong):
    with pytest.raises(ConfigError):
        siem.require_receiver(Siem("ocsf", **wrong))


def test_figures_count_decisions_and_name_no_run_tool_or_person(make, sqlite):
    service = make(sqlite)
    service.enforce(ASK)
    with TestClient(application(service.runtime), base_url="http://127.0.0.1") as client:
        caller = Caller(client, service.token("agent"))
        caller.post("runs", run="a-run", agent="an-agent", person="mira")
        caller.propose("drop_table", "c1", run="a-run")
        text_of = client.get("/metrics").text
    assert 'safetydrift_decisions_total{intervention="block",rule="never"} 1.0' in text_of
    assert "safetydrift_decision_duration_seconds_count 1.0" in text_of
    for name in ("a-run", "an-agent", "mira", "drop_table"):
        assert name not in text_of


def _spans(calls):
    spans = []
    for number, (call_id, name, arguments, result) in enumerate(calls, 1):
        said = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.call.id": call_id,
        }
        said |= {"gen_ai.tool.call.arguments": json.dumps(arguments), "gen_ai.tool.call.result": result}
        span = {"traceId": "ab" * 16, "spanId": f"{number:016x}", "name": f"execute_tool {name}"}
        span |= {"startTimeUnixNano": str(10**18 + number), "endTimeUnixNano": str(10**18 + number + 1)}
        attributes = [{"key": key, "value": {"stringValue": value}} for key, value in said.items()]
        spans.append(span | {"attributes": attributes})
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


def test_spans_of_a_collector_become_runs_that_are_read_only(make, sqlite):
    service = make(sqlite)
    made = [("c1", "read_file", {"path": "notes.txt"}, "hello"), ("c2", "Bash", {"command": "ls"}, "a b")]
    with TestClient(application(service.runtime), base_url="http://127.0.0.1") as client:
        agent, reader = (Caller(client, service.token(scope)) for scope in ("agent", "reader"))
        for batch in (made[:1], made):
            reply = client.post("/v1/traces", json=_spans(batch), headers=agent._headers)
            assert reply.status_code == 200, reply.text
        [run] = reader.get("runs")["items"]
        assert (run["origin"], run["calls"], run["last_tool"]) == ("observed", 2, "Bash")
        assert run["probability"] is not None
        _, second, first = reader.get(f"runs/{run['id']}")["items"]
        assert (first["tool"], first["intervention"], first["result"]) == ("read_file", "observed", "hello")
        assert second["probability"] is not None
        assert client.post("/v1/traces", json=_spans(made), headers=reader._headers).status_code == 403
        assert client.post("/v1/traces", content=b"\x0a", headers=agent._headers).status_code == 415
        assert client.post("/v1/traces", json={"other": 1}, headers=agent._headers).status_code in {200, 422}
        nested = b"[" * 100_000
        headers = agent._headers | {"content-type": "application/json"}
        assert client.post("/v1/traces", content=nested, headers=headers).status_code == 422
        assert len(reader.get("runs")["items"]) == 1
