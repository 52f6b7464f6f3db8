"""Asking a person, and what happens when nobody answers."""

import asyncio
import json
import os
import pty
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from msgspec.structs import replace

from safetydrift.guard import Answer, Approver, GuardPolicy, Rule, TerminalApprover, WebhookApprover
from safetydrift.guard.asking import Question, answered
from safetydrift.guard.decision import Decision
from safetydrift.monitor.verdict import Intervention
from safetydrift.trace import ToolCall

CALL = ToolCall("send_money", {"recipient": "anna", "password": "hunter2hunter2"})
ASK = GuardPolicy(when=(Rule(Intervention.ASK, reason="this is asked about"),), ask_timeout=5.0)
QUESTION = Question(
    key="run",
    call_id="c1",
    tool="send_money",
    arguments="{}",
    decision=Decision(Intervention.ASK, "why not", probability=0.5, threshold=0.3),
    trajectory="nothing yet",
    permits="this one call",
)


def guard_with(make, function, policy=ASK):
    guard = make(policy, approver=Approver(function))
    guard.session("run", "Pay the rent", category="banking")
    return guard


@pytest.mark.parametrize(("said", "allowed"), [(True, True), (False, False), (Answer(True, "anna"), True)])
def test_a_person_decides(make, said, allowed):
    decision = guard_with(make, lambda *_: said).propose("run", CALL, "c1")
    assert decision.allowed is allowed
    assert decision.answered_by


@pytest.mark.parametrize("outcome", [Intervention.BLOCK, Intervention.ALLOW])
@pytest.mark.parametrize("function", [lambda *_: Answer(None), lambda *_: 1 / 0, lambda *_: "yes", None])
@pytest.mark.filterwarnings("ignore:the guard fails open")
def test_where_nobody_answers_the_policy_does(make, function, outcome):
    decision = guard_with(make, function, replace(ASK, on_unanswered=outcome)).propose("run", CALL, "c1")
    assert decision.intervention is outcome


def test_a_question_tells_what_is_at_stake_and_no_secret(make):
    asked = []

    def no(question, timeout):
        asked.append((question, timeout))
        return False

    guard = guard_with(make, no)
    guard.propose("run", CALL, "c1")
    (question, timeout) = asked[0]
    assert timeout == 5.0
    assert "anna" in question.arguments
    assert "hunter2" not in str(question)
    assert question.trajectory
    assert "send_money" in question.permits
    assert "0." in str(question)
    assert json.dumps(question.definition())


def test_the_answer_is_kept_for_the_same_call(make):
    asked = []

    def yes(*_):
        asked.append(1)
        return True

    guard = guard_with(make, yes)
    assert guard.propose("run", CALL, "c1").allowed
    assert guard.propose("run", CALL, "c1").allowed
    assert len(asked) == 1


def test_the_first_answer_from_outside_counts(asking):
    assert asking.propose("run", CALL, "c1").asks
    assert asking.propose("run", CALL, "c1").asks
    assert asking.answer("run", "c1", approved=False, by="anna").refused
    late = asking.answer("run", "c1", approved=True)
    assert late.refused
    assert late.repeated
    assert asking.current("run")[0].steps == 0


def test_an_approved_call_is_reserved_until_it_is_confirmed(asking):
    asking.propose("run", CALL, "c1")
    assert asking.answer("run", "c1", approved=True).allowed
    assert asking.current("run")[0].steps == 1
    asking.confirm("run", "c1", "sent")
    assert asking.current("run")[0].steps == 1


def test_a_yes_holds_for_the_call_that_was_shown_and_once(asking):
    shown = asking.propose("run", CALL, "c1")
    asking.answer("run", "c1", approved=True, digest=shown.digest)
    asking.confirm("run", "c1", "sent")
    again = asking.propose("run", CALL, "c1")
    assert again.asks
    assert not again.repeated


def test_a_yes_holds_for_as_long_as_the_policy_says(asking, monkeypatch):
    asking.propose("run", CALL, "c1")
    assert asking.answer("run", "c1", approved=True).allowed
    assert asking.propose("run", CALL, "c1").allowed
    later = time.time() + asking.policy.approval_lasts + 1.0
    monkeypatch.setattr("safetydrift.guard.guard.time", lambda: later)
    assert asking.propose("run", CALL, "c1").asks


def test_a_yes_to_a_call_that_another_has_replaced_allows_neither(asking):
    first = asking.propose("run", CALL, "c1")
    second = asking.propose("run", ToolCall("send_money", {"recipient": "mallory"}), "c1")
    assert first.digest != second.digest
    assert not asking.answer("run", "c1", approved=True, digest=first.digest).allowed
    assert not asking.answer("run", "c1", approved=True).allowed
    assert asking.answer("run", "c1", approved=True, digest=second.digest).allowed


def test_an_answer_says_what_was_found_and_the_same_answer_later_needs_no_more(asking):
    asked = asking.propose("run", CALL, "c1")
    answered_now = asking.answer("run", "c1", approved=True)
    assert answered_now.verdict is not None
    assert answered_now.verdict.within == asked.verdict.within
    assert answered_now.explanation == asked.explanation
    assert asking.answer("run", "c1", approved=True).repeated


def test_an_answer_to_a_call_that_nobody_asked_about_allows_nothing(asking):
    assert asking.answer("run", "never", approved=True).refused


def test_a_call_that_cannot_be_judged_may_be_asked_about(make):
    guard = guard_with(make, lambda *_: True, replace(ASK, on_lost_state=Intervention.ASK))
    for call_id in ("c1", ""):
        decision = guard.propose("nobody", CALL, call_id)
        assert decision.allowed
        assert decision.answered_by
        assert decision.error


def test_a_loop_goes_on_while_a_person_thinks(make):
    class Slow:
        async def ask_async(self, question, timeout):  # noqa: ASYNC109
            await asyncio.sleep(0.01)
            return Answer(True, "anna")

    guard = make(ASK, approver=Slow())
    guard.session("run")
    assert asyncio.run(guard.apropose("run", CALL, "c1")).answered_by == "anna"


def test_a_loop_does_not_wait_for_ever(make):
    class Never:
        async def ask_async(self, question, timeout):  # noqa: ASYNC109
            await asyncio.sleep(60)

    guard = make(replace(ASK, ask_timeout=0.01), approver=Never())
    guard.session("run")
    assert asyncio.run(guard.apropose("run", CALL, "c1")).refused


def test_a_function_is_asked_in_a_thread_where_a_loop_runs(make):
    guard = guard_with(make, lambda *_: threading.current_thread() is not threading.main_thread())
    assert asyncio.run(guard.apropose("run", CALL, "c1")).allowed


# -- terminal -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "said"), [("y\n", True), ("what?\nno\n", False), ("YES\n", True), ("", None)]
)
def test_a_person_at_a_terminal(typed, said):
    ours, theirs = pty.openpty()
    try:
        os.write(ours, typed.encode())
        answer = TerminalApprover(os.ttyname(theirs)).ask(QUESTION, 0.3 if said is None else 5.0)
        shown = ""
        while "y/n" not in shown:
            shown += os.read(ours, 65536).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    assert answer.approved is said
    assert "why not" in shown
    assert "0.50" in shown


def test_without_a_terminal_nobody_answers(tmp_path):
    assert TerminalApprover(str(tmp_path / "none")).ask(QUESTION, 1.0).approved is None


# -- webhook ------------------------------------------------------------------------------------------------


@pytest.fixture
def service():
    """Return a function that starts a service with one answer, and what it was asked."""
    servers = []

    def start(body, status=200):
        asked = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(status)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        server = HTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        servers.append((server, thread))
        return f"http://127.0.0.1:{server.server_port}/ask?x=1", asked

    yield start
    for server, thread in servers:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b'{"approved": true, "by": "anna"}', 200, True),
        (b'{"approved": false}', 200, False),
        (b'{"approved": "yes"}', 200, None),
        (b"[]", 200, None),
        (b"no JSON", 200, None),
        (b'{"approved": true}', 500, None),
        (b'{"approved": true}', 302, None),
    ],
)
def test_a_service_answers(service, body, status, said):
    url, asked = service(body, status)
    answer = answered(WebhookApprover(url, {"X-Token": "t"}), QUESTION, 5.0)
    assert answer.approved is said
    assert asked[0]["tool"] == "send_money"


def test_a_service_that_is_not_there_answers_nothing():
    assert WebhookApprover("http://127.0.0.1:1/").ask(QUESTION, 1.0).approved is None


def test_an_address_that_is_none_is_refused():
    with pytest.raises(ValueError, match="http"):
        WebhookApprover("file:///etc/passwd")
