"""What is kept: an audit log that shows tampering, sealed decisions, retention, drift, live events, the demo."""

from __future__ import annotations

import json
import time

import pytest
from sqlalchemy import insert, text
from starlette.testclient import TestClient
from tests.service.conftest import ASK, Caller, waited

from safetydrift.service import audit, drifting, erasing, queries
from safetydrift.service.app import application
from safetydrift.service.database import schema
from safetydrift.service.demo import RUNS, Demo
from safetydrift.service.settings import DAY, Retention


@pytest.fixture
def caller(service):
    """Return a caller who has proposed three calls in a run."""
    service.enforce(ASK)
    with TestClient(application(service.runtime), base_url="http://127.0.0.1") as client:
        agent = Caller(client, service.token("agent"))
        agent.post("runs", run="r", agent="billing", person="mira", task="Pay what is due")
        for number, tool in enumerate(("get_balance", "drop_table", "send_mail")):
            agent.propose(tool, f"c{number}")
        yield agent


def _change(service, statement, **values):
    service.do(lambda lane: lane.execute(text(statement), values))


def _sealed(service):
    _change(service, "UPDATE calls SET at = at - 60")
    return service.do(lambda lane: audit.seal(lane, service.org()))


def _verified(service):
    return service.runtime.read(lambda c: audit.verify(c, service.org()))


@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE calls SET decided = 'allow' WHERE number = 2",
        "UPDATE calls SET intervention = 'allow' WHERE number = 2",
        "UPDATE calls SET tool = 'get_balance' WHERE number = 2",
        "UPDATE calls SET at = at + 5 WHERE number = 2",
        "DELETE FROM calls WHERE number = 2",
        "UPDATE audit SET actor = 'somebody else' WHERE number = 2",
        "UPDATE audit SET detail = '{}' WHERE number = 2",
        "DELETE FROM audit WHERE number = 2",
        "DELETE FROM audit WHERE number = (SELECT max(number) FROM audit)",
    ],
)
def test_the_audit_log_shows_what_was_changed(make, sqlite, tampering):
    service = make(sqlite)
    service.enforce(ASK)
    with TestClient(application(service.runtime), base_url="http://127.0.0.1") as client:
        agent = Caller(client, service.token("agent"))
        agent.post("runs", run="r")
        for number in range(3):
            agent.propose("drop_table", f"c{number}")
    service = make(sqlite)
    assert _sealed(service) == 3
    before = _verified(service)
    assert (before.holds, before.sealed) == (True, 3)
    _change(service, tampering)
    after = _verified(service)
    assert not after.holds
    assert after.problem


def test_a_decision_that_is_written_late_is_not_left_out_of_its_seal(service, caller):
    _change(service, "UPDATE calls SET at = at - 60 WHERE number <> 2")
    assert service.do(lambda lane: audit.seal(lane, service.org())) == 1
    _change(service, "UPDATE calls SET at = at - 60 WHERE number = 2")
    assert service.do(lambda lane: audit.seal(lane, service.org())) == 2
    found = _verified(service)
    assert (found.holds, found.sealed) == (True, 3)


def test_an_answer_that_comes_after_the_seal_breaks_nothing(service, caller):
    assert _sealed(service) == 3
    boss = Caller(caller.client, service.token("approver"))
    question = boss.get("approvals")["items"][0]
    said = {"approved": True, "presented": question["presented_digest"]}
    boss.post(f"approvals/{question['id']}/answer", **said)
    assert caller.propose("send_mail", "c2")["decision"]["intervention"] == "allow"
    assert _verified(service).holds


def test_contents_go_first_and_decisions_later_and_the_log_holds(service, caller):
    _sealed(service)
    old = Retention(contents_days=1.0, decisions_days=30.0, states_days=1.0)
    _change(service, "UPDATE calls SET at = at - :days", days=2 * DAY)
    _change(service, "UPDATE runs SET last = last - :days", days=2 * DAY)
    service.do(lambda lane: erasing.forget(lane, service.org(), old))
    [run] = service.runtime.read(lambda c: queries.run_list(c, service.org(), queries.RunFilter()))
    made = service.runtime.read(lambda c: queries.run_calls(c, service.org(), run["id"]))
    assert [one["arguments"] for one in made] == ["", "", ""]
    assert run["task"] == ""
    assert [one["decided"] for one in made] == ["ask", "block", "allow"]
    assert service.runtime.read(lambda c: queries.search(c, service.org(), "anna")) == []
    _change(service, "UPDATE calls SET at = at - :days", days=40 * DAY)
    _change(service, "UPDATE runs SET last = last - :days", days=40 * DAY)
    while service.do(lambda lane: erasing.forget(lane, service.org(), old)):
        pass
    assert service.runtime.read(lambda c: queries.run_list(c, service.org(), queries.RunFilter())) == []
    assert _verified(service).holds


def test_everything_of_a_person_goes_on_request(service, caller):
    caller.post("runs", run="other", agent="billing", person="tom", task="Something else")
    caller.propose("get_rate", "x1", run="other")
    boss = Caller(caller.client, service.token("admin"))
    boss("DELETE", "people?person=mira")
    with service.runtime.reader.connect() as connection:
        for table in ("calls", "runs", "messages", "approvals", "audit", "run_states"):
            for row in connection.execute(text(f"SELECT * FROM {table}")):  # noqa: S608  # names of ours
                assert "mira" not in repr(tuple(row)), table
    assert [run["person"] for run in boss.get("runs")["items"]] == ["tom", ""]
    assert boss.get("audit/verify")["items"][0]["holds"]


def test_an_agent_whose_runs_go_otherwise_than_the_model_says_raises_the_alarm_once(make, sqlite):
    service = make(sqlite)
    org, now = service.org(), time.time()

    def runs(number):
        for at in range(number):
            row = {
                "org": org,
                "key": f"{time.time_ns()}-{at}",
                "agent": "odd",
                "opened": now,
                "last": now,
                "ended": now,
            }
            service.do(lambda lane, row=row: lane.execute(insert(schema.runs), row))
        call = (
            "INSERT INTO calls (org, run_id, number, call_id, tool, at, decided, intervention, state) "
            "SELECT org, id, :n, 'c', 't', :now, 'allow', 'allow', :state FROM runs "
            "WHERE NOT EXISTS (SELECT 1 FROM calls WHERE calls.run_id = runs.id AND calls.number = :n)"
        )
        for at, state in enumerate((2697, 3, 2601), 1):
            values = {"n": at, "now": now, "state": state}
            service.do(lambda lane, values=values: lane.execute(text(call), values))

    runs(2)
    service.do(lambda lane: drifting.take(lane, org))
    [first] = service.runtime.read(lambda c: queries.agent_alarms(c, org)).values()
    assert not first["alarmed"]
    runs(40)
    while service.do(lambda lane: drifting.take(lane, org)):
        pass
    [second] = service.runtime.read(lambda c: queries.agent_alarms(c, org)).values()
    assert second["alarmed"]
    assert json.loads(second["state"])["runs"] == 42
    runs(3)
    service.do(lambda lane: drifting.take(lane, org))
    with service.runtime.reader.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM events WHERE kind = 'drift'")).scalar() == 1


def test_the_demo_is_told_once_and_waits_for_people(make, sqlite):
    service = make(sqlite)
    for _ in range(2):
        Demo(service.runtime, service.org()).fill(service.do)
    found = service.runtime.read(lambda c: queries.run_list(c, service.org(), queries.RunFilter(), most=1000))
    assert len(found) == RUNS
    assert service.runtime.read(lambda c: queries.pending(c, service.org())) >= 1
    assert all(run["last"] <= time.time() for run in found)
    service.do(lambda lane: audit.seal(lane, service.org()))
    assert _verified(service).holds


def test_whoever_follows_hears_of_every_change_of_their_own_organisation(make, sqlite):
    from tests.service.conftest import listening  # noqa: PLC0415  # a real socket, for a stream has no end

    httpx = pytest.importorskip("httpx")
    service = make(sqlite)
    secrets = {
        org: (service.token("agent", org=org), service.token("reader", org=org))
        for org in ("default", "other")
    }
    with listening(service.runtime) as url:
        header = {"Authorization": f"Bearer {secrets['default'][1]}"}
        with httpx.stream("GET", f"{url}/api/v1/events", headers=header, timeout=20) as stream:
            lines = stream.iter_lines()
            assert next(lines) == "retry: 2000"
            for org in ("other", "default"):
                own = {"Authorization": f"Bearer {secrets[org][0]}"}
                httpx.post(
                    f"{url}/api/v1/runs", json={"run": org, "agent": org}, headers=own
                ).raise_for_status()
            told = next(line for line in lines if line.startswith("data: "))
        run = json.loads(told[6:])["runs"][0]
        mine = httpx.get(f"{url}/api/v1/runs", headers=header).json()["items"]
        assert [one["id"] for one in mine] == [run["id"]]
        waited(lambda: service.runtime.streams == 0)
        denied = httpx.get(
            f"{url}/api/v1/events", headers={"Authorization": f"Bearer {secrets['default'][0]}"}
        )
        assert denied.status_code == 403
