"""Faults in mid-work: what fails is refused, what was answered is kept, and nothing is allowed that should not be."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from typing import Any

import pytest
from sqlalchemy import select
from tests.service.conftest import ASK, listening, waited

from safetydrift import ToolCall
from safetydrift.guard import Approver, Guard, GuardPolicy
from safetydrift.guard.remote import RemoteGuard
from safetydrift.guard.remote_client import Client, UnreachableError
from safetydrift.monitor.verdict import Intervention
from safetydrift.service.database.schema import calls, reports, run_states

QUICK = GuardPolicy(timeout=0.3)


def nowhere():
    """Return an address at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize(("outcome", "allowed"), [("block", False), ("ask", False), ("allow", True)])
def test_without_the_service_the_policy_for_that_decides(outcome, allowed):
    policy = GuardPolicy(timeout=0.2, ask_timeout=0.2, on_error=Intervention(outcome))
    guard = Guard.remote(nowhere(), "sdt_x", policy=policy)
    decision = guard.propose("r", ToolCall("ls"), "c1")
    assert decision.allowed is allowed
    assert "UnreachableError" in decision.error
    guard.close()


def test_without_the_service_a_person_at_hand_can_still_be_asked():
    policy = GuardPolicy(timeout=0.2, on_error=Intervention.ASK)
    asked = []

    def ask(question, _timeout):
        asked.append(question.tool)
        return question.tool == "ls"

    guard = Guard.remote(nowhere(), "sdt_x", policy=policy, approver=Approver(ask))
    assert guard.propose("r", ToolCall("ls"), "c1").allowed
    assert guard.propose("r", ToolCall("rm"), "c2").refused
    assert asked == ["ls", "rm"]
    guard.close()


def test_an_answer_that_is_none_is_a_refusal():
    """Whoever listens there and says something else does not open the guard."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(65_536)
                    body = b'{"decision": {"intervention": "allow", "latency": "x"}}'
                    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))

        threading.Thread(target=answer, daemon=True).start()
        guard = Guard.remote(f"http://127.0.0.1:{server.getsockname()[1]}", "sdt_x", policy=QUICK)
        decision = guard.propose("r", ToolCall("ls"), "c1")
        assert decision.refused
        assert "ServiceError" in decision.error
        guard.close()


def test_a_token_does_not_go_over_a_network_in_clear():
    with pytest.raises(ValueError, match="in clear"):
        Client("http://guard.example.org", "sdt_x")
    Client("http://guard.example.org", "sdt_x", plain_http=True)
    Client("https://guard.example.org", "sdt_x")
    with pytest.raises(ValueError, match="SAFETYDRIFT_URL"):
        Guard.remote("", "sdt_x")


def test_a_result_that_did_not_arrive_is_sent_before_the_next_call(service):
    secret = service.token("agent")
    with listening(service.runtime) as url:
        guard = Guard.remote(url, secret, policy=GuardPolicy(timeout=20.0))
        guard.session("r", "Tidy up")
        guard.propose("r", ToolCall("Bash", {"command": "cat notes"}), "c1")
        assert isinstance(guard, RemoteGuard)
        client, guard.client = guard.client, Client(nowhere(), "sdt_x")
        assert guard.confirm("r", "c1", "-----BEGIN RSA PRIVATE KEY-----") is None
        lost = guard.propose("r", ToolCall("ls"), "c2")
        assert lost.refused
        assert lost.rule == "on_lost_state"
        guard.client = client
        assert guard.propose("r", ToolCall("ls"), "c3").allowed
        with service.runtime.reader.connect() as connection:
            rows = connection.execute(select(calls.c.call_id, calls.c.status).order_by(calls.c.id)).all()
            assert rows == [("c1", "made"), ("c3", "open")]
            assert connection.execute(select(reports.c.outcome, reports.c.detail)).first()[0] == "block"
        guard.close()


def test_a_database_that_is_away_is_no_yes_and_comes_back(make, tmp_path, postgresql):
    """The connections are cut while calls are made; nothing that was answered is lost."""
    from tests.service.conftest import new_database  # noqa: PLC0415

    service = make(new_database(postgresql))
    secret = service.token("agent")
    cut = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    answered = {}
    with listening(service.runtime) as url:
        guard = Guard.remote(url, secret, policy=GuardPolicy(timeout=5.0))
        guard.session("r", "Tidy up")
        for number in range(30):
            if number % 10 == 5:
                with service.runtime.writer.connect() as connection:
                    connection.exec_driver_sql(cut)
            decision = guard.propose("r", ToolCall("ls", {"n": number}), f"c{number}")
            answered[f"c{number}"] = decision
            guard.confirm("r", f"c{number}", "a b c")
        guard.close()
    by_the_service = {one for one, decision in answered.items() if not decision.error}
    assert len(by_the_service) >= 28
    assert all(decision.refused for one, decision in answered.items() if one not in by_the_service)
    service.runtime.reader.dispose()
    with service.runtime.writer.connect() as connection:
        kept = set(connection.execute(select(calls.c.call_id)).scalars())
    assert by_the_service <= kept


def test_a_database_that_cannot_be_written_is_said_to_be_away(make, sqlite, tmp_path):
    service = make(sqlite)
    secret = service.token("agent")
    with listening(service.runtime) as url:
        guard = Guard.remote(url, secret, policy=GuardPolicy(timeout=8.0))
        guard.session("r", "Tidy up")
        assert guard.propose("r", ToolCall("ls"), "c1").allowed
        with service.runtime.writer.connect() as holder, holder.begin():
            # Somebody else holds the one lock of the file for longer than anybody waits.
            quick = Guard.remote(url, secret, policy=GuardPolicy(timeout=1.0))
            assert quick.propose("r", ToolCall("ls"), "c2").refused
            quick.close()
        assert guard.propose("r", ToolCall("ls"), "c3").allowed
        guard.close()


SERVE = [sys.executable, "-m", "safetydrift", "serve", "--port"]


class Process:
    """`safetydrift serve` as people start it."""

    def __init__(self, folder: Any, *more: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.port = server.getsockname()[1]
        words = [*SERVE, str(self.port), "--data", str(folder), *more]
        self.process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        self.url = f"http://127.0.0.1:{self.port}"
        assert self.process.stderr is not None
        self.said = self.process.stderr
        first = self.said.readline()
        self.token = first.rpartition(" ")[2].strip() if "token" in first else ""

    def ready(self):
        from urllib.request import urlopen  # noqa: PLC0415

        def asked():
            try:
                with urlopen(f"{self.url}/readyz", timeout=2) as reply:  # noqa: S310
                    return json.load(reply)["status"] == "ready"
            except OSError:
                return False

        return waited(asked, 60)

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.said.close()
        return self.process.wait(60)


def test_a_service_that_is_killed_goes_on_where_it_was(tmp_path):
    first = Process(tmp_path)
    first.ready()
    policy = GuardPolicy(timeout=30.0)
    guard = Guard.remote(first.url, first.token, policy=policy)
    guard.session("r", "Tidy up")
    done = [guard.propose("r", ToolCall("ls", {"n": n}), f"c{n}") for n in range(5)]
    guard.confirm("r", "c0", "a")
    assert first.stop(signal.SIGKILL) == -signal.SIGKILL
    second = Process(tmp_path)
    assert second.token == ""
    second.ready()
    again = Guard.remote(second.url, first.token, policy=policy)
    for number, decision in enumerate(done[1:], 1):
        repeated = again.propose("r", ToolCall("ls", {"n": number}), f"c{number}")
        assert repeated.repeated
        assert repeated.probability == decision.probability
    guard.close()
    again.close()
    assert second.stop() == 0


def test_a_worker_that_is_killed_is_replaced_and_nothing_is_lost(tmp_path):
    served = Process(tmp_path, "--workers", "2")
    served.ready()
    guard = Guard.remote(served.url, served.token, policy=GuardPolicy(timeout=30.0))
    guard.session("r", "Tidy up")
    children = waited(lambda: workers_of(served.process.pid))
    answered = []
    for number in range(40):
        if number == 10:
            os.kill(children[0], signal.SIGKILL)
        decision = guard.propose("r", ToolCall("ls", {"n": number}), f"c{number}")
        if not decision.error:
            answered.append(f"c{number}")
        guard.confirm("r", f"c{number}", "a b")
    assert len(answered) == 40
    guard.close()
    assert served.stop() == 0
    from safetydrift.service.database.engine import database_url, reader_engine  # noqa: PLC0415

    engine = reader_engine(database_url("", str(tmp_path)))
    with engine.connect() as connection:
        kept = connection.execute(select(calls.c.call_id, calls.c.status).order_by(calls.c.number)).all()
        assert [row[0] for row in kept] == answered
        assert {row[1] for row in kept} == {"made"}
        assert len(connection.execute(select(run_states.c.key)).all()) == 1
    engine.dispose()


def workers_of(parent):
    """Return the processes that a process has started and that serve."""
    import psutil  # noqa: PLC0415

    found = psutil.Process(parent).children()
    return [one.pid for one in found if "spawn_main" in " ".join(one.cmdline())]


def test_stopping_lets_those_who_wait_go_and_loses_nothing(service):
    """A call that waits for a person does not keep the service from ending, and is asked about again later."""
    service.enforce(ASK)
    secret = service.token("agent")
    with listening(service.runtime) as url:
        guard = Guard.remote(url, secret, policy=GuardPolicy(timeout=0.5, ask_timeout=1.0))
        guard.session("r", "Tidy up")
        decided = []
        thread = threading.Thread(
            target=lambda: decided.append(guard.propose("r", ToolCall("send_mail"), "c1"))
        )
        thread.start()
        waited(lambda: service.runtime.hub._waiting)
        service.runtime.hub.leave()
    thread.join(30)
    assert decided[0].refused
    guard.close()
    client = Client("http://127.0.0.1:1", "x", pause=lambda _: None)
    with pytest.raises(UnreachableError):
        client.post("/", {}, 0.1)
